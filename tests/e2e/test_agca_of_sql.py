"""SQL printed as AGCA says the same: read back, each total has the value that SQL gives."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest

import everview as ev
from everview.errors import UserError
from everview.trigger_programs.program import parse_program, print_program

TABLES = """
    CREATE TABLE o (id INT PRIMARY KEY, c INT NOT NULL, amt DECIMAL(12,2), q INT, d DATE NOT NULL);
    CREATE TABLE cu (c INT PRIMARY KEY, n STRING NOT NULL, boss INT);
"""
KEYS = ("SELECT n, SUM(amt) AS s, COUNT(*) AS k, COUNT(amt) AS m", "GROUP BY n")
JOIN = "FROM o JOIN cu ON o.c = cu.c"
QUERIES = {
    "group": f"{KEYS[0]} {JOIN} {KEYS[1]}",
    "no group": "SELECT SUM(amt * (1 - 0.1)) AS s, COUNT(*) AS k FROM o WHERE q > 1",
    "between": f"{KEYS[0]} {JOIN} WHERE q BETWEEN 1 AND 2 AND amt IS NOT NULL {KEYS[1]}",
    "dates": f"""{KEYS[0]} {JOIN} WHERE d >= DATE '2024-01-31'
        AND d < DATE '2024-01-31' + INTERVAL 1 MONTH {KEYS[1]}""",
    "case": f"""SELECT n, SUM(CASE WHEN n IN ('x', 'y') OR n LIKE 'a%' THEN 1 ELSE 0 END) AS s,
        SUM(CASE WHEN NOT n = 'x' AND o.c > 1 THEN q ELSE 2 END) AS t {JOIN}
        WHERE q >= 0 GROUP BY n""",
    "or": f"SELECT n, COUNT(*) AS k {JOIN} WHERE n = 'x' OR o.c > 1 AND n <> 'nobody' GROUP BY n",
    "self-join": """SELECT one.c, COUNT(*) AS k, SUM(two.q) AS s FROM o one JOIN o two
        ON one.d = two.d AND one.amt < two.amt GROUP BY one.c""",
    "null keys": """SELECT a.n, COUNT(*) AS k FROM cu a JOIN cu b ON a.boss = b.c GROUP BY a.n""",
    "union all": """SELECT c, COUNT(*) AS k, SUM(v) AS s FROM (SELECT c, q AS v FROM o
        UNION ALL SELECT c, boss * 2 AS v FROM cu) GROUP BY c""",
    "null group": "SELECT boss, COUNT(*) AS k, SUM(c) AS s FROM cu GROUP BY boss",
    "or of nulls": "SELECT COUNT(*) AS k FROM o WHERE NOT (q = 1 AND amt > 2) OR c > 3",
    "is null": "SELECT COUNT(*) AS k FROM o WHERE q IS NULL OR amt + q > 3",
    "case of nulls": """SELECT c, SUM(CASE WHEN q = 1 THEN amt WHEN amt > 2 THEN q ELSE 3 END) AS s,
        SUM(CASE WHEN q > 1 THEN q + amt END) AS t, COUNT(CASE WHEN q = 2 THEN 1 END) AS k
        FROM o GROUP BY c""",
    "year": """SELECT EXTRACT(YEAR FROM d) AS y, MONTH(d) AS m, COUNT(*) AS k, SUM(q) AS s
        FROM o GROUP BY EXTRACT(YEAR FROM d), MONTH(d)""",
    "or over both": f"""{KEYS[0]} {JOIN} WHERE (n = 'x' AND q = 1) OR (n <> 'y' AND q > 0)
        OR (q = 3 AND boss = 1) {KEYS[1]}""",
    "zero": f"SELECT n, SUM(0) AS s, COUNT(*) AS k, COUNT(amt) AS m {JOIN} GROUP BY n",
    "never": f"SELECT n, SUM(q) AS s, COUNT(*) AS k {JOIN} WHERE d IS NULL OR n <> 'q' GROUP BY n",
    "computed key": "SELECT c + 1 AS key, COUNT(*) AS k FROM o GROUP BY c + 1",
}


def rows(rng: random.Random, count: int, start: int) -> tuple[list, list]:
    orders = [
        (
            start + each,
            rng.randint(1, 4),
            rng.choice([None, "1.50", "2.25", "7.00"]),
            rng.choice([None, 0, 1, 2, 3]),
            rng.choice(["2024-01-30", "2024-01-31", "2024-02-28", "2024-02-29"]),
        )
        for each in range(count)
    ]
    names = ["x", "y", "ab", "z"]
    customers = [(c, rng.choice(names), rng.choice([None, 1, 2, 3])) for c in range(1, 5)]
    return orders, customers


@pytest.mark.parametrize("name", QUERIES)
def test_sql_reads_back_from_agca_with_the_same_totals(name: str, tmp_path: Path) -> None:
    rng = random.Random(name)
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        db.sql(f"CREATE VIEW v AS {QUERIES[name]}")
        text = db.explain("v", "agca")
        totals = db.agca(text)
        program = parse_program(db.explain("v", "triggers"))
        assert print_program(program).rstrip("\n") == db.explain("v", "triggers")
        running = ev.triggers(text)
        orders, customers = rows(rng, 12, 0)
        db.insert("o", orders)
        db.insert("cu", customers)
        db.delete("o", orders[::3])
        for table in ("o", "cu"):
            if f"on +{table}(" in running.text:
                running.insert(table, db.read(table).rows())
        keys = len(db.catalog.schema(totals[0])) - 1
        found = {each: {r[:-1]: r[-1] for r in db.read(each).rows()} for each in totals}
        for each in totals:
            in_process = {r[:-1]: r[-1] for r in running.result(each)}
            assert in_process == found[each], each
        by_kind = {each.partition(" ")[2]: each for each in totals}
        answer = db.read("v").rows()
        assert answer
        view = db.catalog.compiled("v")
        measured = [output.scalar for output in (view.query or view.plan).outputs][keys:]
        for row in answer:
            for value, text_of in zip(row[keys:], measured, strict=True):
                kinds = [k for k in by_kind if f"`{k}`" in text_of]
                total = next(k for k in kinds if k.startswith("sum") or len(kinds) == 1)
                counted = [k for k in kinds if k.startswith("count")]
                count = found[by_kind[counted[0]]].get(row[:keys], 0) if counted else 1
                expected = found[by_kind[total]].get(row[:keys], 0)
                if total.startswith("sum") and count == 0:
                    expected = None
                assert value == expected, (row, total)
        assert db.audit().ok


NESTED = [
    "q < (SELECT COUNT(*) FROM o)",
    "amt > (SELECT 0.25 * SUM(amt) FROM o WHERE q > 0)",
    "o.c = 1 OR NOT amt < (SELECT SUM(amt) FROM o WHERE q = 3)",
    "(SELECT COUNT(*) FROM cu WHERE boss = 1) < (SELECT SUM(q * amt) FROM o)",
    "(SELECT SUM(boss) FROM cu WHERE c < 3) IS NULL",
    "CASE WHEN q = 1 THEN 2 ELSE o.c END <= (SELECT COUNT(q) - 3 FROM o WHERE amt <> amt OR q = 2)",
]


def test_conditions_with_nested_aggregates_read_back_with_the_same_answers(tmp_path: Path) -> None:
    rng = random.Random(7)
    orders, customers = rows(rng, 10, 0)
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        totals = []
        for at, condition in enumerate(NESTED):
            query = f"SELECT n, COUNT(*) AS k {JOIN} WHERE {condition} GROUP BY n"
            db.sql(f"CREATE VIEW v{at} AS {query}")
            [total] = db.agca(db.explain(f"v{at}", "agca"))
            totals.append((f"v{at}", total, query))
        for change in (
            lambda: (db.insert("o", orders), db.insert("cu", customers)),
            lambda: db.delete("o", orders[::2]),
            lambda: db.insert("o", orders[:1]),
            lambda: (db.delete("o", orders[:1]), db.delete("o", orders[1::2])),
        ):
            change()
            for view, total, query in totals:
                found = sorted(db.read(total).rows())
                assert found == sorted(db.read(view).rows()) == sorted(plain(db, query)), query


def plain(db: ev.Database, query: str) -> list:
    """The rows of a query in DuckDB, over the rows of the tables."""
    with duckdb.connect() as connection:
        connection.execute(TABLES.replace("STRING", "VARCHAR"))
        for table in ("o", "cu"):
            for row in db.read(table).rows():
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)
        return connection.execute(query).fetchall()


REFUSED = {
    "SELECT boss + 1 AS b, COUNT(*) AS k FROM cu GROUP BY boss + 1": "may be NULL",
    "SELECT n, MIN(c) AS k FROM cu GROUP BY n": "no GROUP BY",
    "SELECT n FROM cu": "no GROUP BY",
    "SELECT n, SUM(c / 2) AS k FROM cu GROUP BY n": "no GROUP BY",
    "SELECT COUNT(*) AS k FROM o LEFT JOIN cu ON o.c = cu.c": "outer join",
    "SELECT COUNT(*) AS k FROM cu WHERE upper(n) = 'X'": "no place",
    "SELECT COUNT(*) AS k FROM o WHERE d > '2024-01-01'": "cast",
    "SELECT COUNT(*) AS k FROM o WHERE q > (SELECT MAX(boss) FROM cu)": "no SUM, COUNT or AVG",
    "SELECT COUNT(*) AS k FROM o WHERE q > (SELECT AVG(boss) FROM cu)": "no place",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_agca_cannot_say_is_refused_by_name(query: str, tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        db.sql(f"CREATE VIEW v AS {query}")
        with pytest.raises(UserError, match=REFUSED[query]) as refused:
            db.explain("v", "agca")
        assert refused.value.code == "G009"
