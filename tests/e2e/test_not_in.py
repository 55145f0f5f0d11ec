"""IN and NOT IN over NULLs, under NOT, AND, OR and CASE, in every clause that takes a condition."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

import everview as ev
from e2e import conditions
from e2e.checking import differences
from e2e.conditions import Both, Greater, In, Is, Not

CHOSEN = (
    Not(Both("OR", Greater("a", 2), In("a", "nulls"))),
    Not(Both("AND", Greater("a", 2), In("a", "nulls"))),
    Not(Both("OR", Greater("a", 2), In("a", "nulls", negated=True))),
    Not(Both("AND", Greater("a", 2), In("b", "known", negated=True))),
    Is(In("a", "nulls"), "=", False),
    Not(Is(In("a", "nulls"), "=", True)),
    In("a", "none", negated=True),
)
DOUBTED = 10
"""How many conditions are made up."""


def some_conditions() -> list[conditions.Condition]:
    pick = random.Random(11)
    found = list(CHOSEN)
    while len(found) < len(CHOSEN) + DOUBTED:
        made = conditions.some_condition(pick)
        # Spark takes `x OR NOT x` for true, and `CASE` with equal branches for one of them.
        if made not in found and conditions.text(made).count("IN (") < 5 and not _twice(made):
            found.append(made)
    return found


def _twice(node: conditions.Condition) -> bool:
    """Whether a leaf occurs twice, negated or not."""
    words = conditions.text(node).replace("NOT IN", "IN").split(" IN (")
    leaves = [before[-1] + after.split(")")[0] for before, after in pairwise(words)]
    return len(set(leaves)) < len(leaves)


class Tables:
    """Rows to ask about, and three tables to look in: without NULLs, with some, and empty."""

    def __init__(self, db, seed: int) -> None:
        self.db = db
        self.pick = random.Random(seed)
        db.sql("CREATE TABLE rows (k INT PRIMARY KEY, a INT, b INT)")
        for name in ("known", "nulls", "none"):
            db.sql(f"CREATE TABLE {name} (c INT)")

    def transact(self) -> None:
        """Insert, delete and update, NULLs among what comes and goes."""
        maybe = (None, 1, 2, 3, 4)
        with self.db.transaction() as tx:
            present = self.db.read("rows").rows()
            tx.delete("rows", self.pick.sample(sorted(present, key=repr), len(present) // 3))
            keys = self.pick.sample(range(9), 5)
            tx.upsert("rows", [(k, self.pick.choice(maybe), self.pick.choice(maybe)) for k in keys])
            for name, values in (("known", maybe[1:]), ("nulls", maybe)):
                gone = sorted(self.db.read(name).rows(), key=repr)
                tx.delete(name, self.pick.sample(gone, len(gone) // 2))
                tx.insert(name, [(self.pick.choice(values),) for _ in range(2)])

    def asked(self) -> list[dict[str, object]]:
        return [dict(zip("kab", row, strict=True)) for row in self.db.read("rows").rows()]

    def looked_in(self) -> dict[str, list[object]]:
        names = ("known", "nulls", "none")
        return {name: [row[0] for row in self.db.read(name).rows()] for name in names}


@pytest.fixture
def tables(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        yield Tables(db, seed=3)


def test_a_negated_or_of_an_unknown_in_keeps_no_row(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE s1 (a INT); CREATE TABLE s2 (c INT)")
        where = "a > 5 OR a IN (SELECT c FROM s2)"
        db.sql(f"CREATE VIEW v AS SELECT a FROM s1 WHERE NOT ({where})")
        inside = "a IN (SELECT c FROM s2)"
        db.sql(f"CREATE VIEW w AS SELECT a, {inside} AS x, NOT ({inside}) AS y FROM s1")
        db.sql("INSERT INTO s2 VALUES (7), (9), (NULL)")
        db.sql("INSERT INTO s1 VALUES (NULL), (5), (8), (11)")
        assert db.read("v").rows() == []
        assert {row[1:] for row in db.read("w").rows()} == {(False, False)}
        db.sql("DELETE FROM s2 WHERE c IS NULL")
        assert db.read("v").rows() == [(5,)]
        assert Counter(db.read("w").rows()) == Counter(
            [(None, False, False), (5, False, True), (8, False, True), (11, False, True)]
        )
        db.sql("UPDATE s2 SET c = 5 WHERE c = 9")
        assert db.read("v").rows() == []


def test_conditions_with_in_mean_what_they_mean_after_not_is_pushed_to_them(tables, engine):
    wanted = some_conditions()
    queries = {}
    for number, condition in enumerate(wanted):
        said = conditions.text(condition)
        queries[f"kept{number}"] = f"SELECT k FROM rows WHERE {said}"
        queries[f"told{number}"] = f"SELECT k, {said} AS x FROM rows"
    for name, query in queries.items():
        tables.db.sql(f"CREATE VIEW {name} AS {query}")
    for _ in range(3):
        tables.transact()
        rows, among = tables.asked(), tables.looked_in()
        for number, condition in enumerate(wanted):
            found = {row["k"]: conditions.value(condition, row, among) for row in rows}
            assert dict(tables.db.read(f"told{number}").rows()) == found, conditions.text(condition)
            kept = Counter((k,) for k, truth in found.items() if truth)
            assert Counter(tables.db.read(f"kept{number}").rows()) == kept
    if engine == "spark":
        assert differences(tables.db, queries) == []


WHOLE = "(a > 1 OR b IN (SELECT c FROM nulls))"
INSIDE = "SELECT k, a, b IN (SELECT c FROM nulls) AS x FROM rows"
# A condition that is selected beside NOT of its own alias is left out: what Spark answers to it
# depends on the query that is put around.
CLAUSES = {
    "having": f"SELECT a, b, COUNT(*) AS n FROM rows GROUP BY a, b HAVING NOT {WHOLE}",
    "having_count": """SELECT b, COUNT(*) AS n FROM rows GROUP BY b
        HAVING NOT (COUNT(*) > 1 OR b IN (SELECT c FROM nulls))""",
    "joined": """SELECT x.k, y.k AS j FROM rows x JOIN rows y
        ON x.k = y.k AND NOT (x.a > 1 OR x.b IN (SELECT c FROM nulls))""",
    "inner_where": """SELECT x.k FROM rows x, known y
        WHERE NOT (x.a > y.c OR x.b IN (SELECT c FROM nulls))""",
    "filtered": f"SELECT COUNT(*) FILTER (WHERE NOT {WHOLE}) AS n FROM rows",
    "cased": f"SELECT k, CASE WHEN NOT {WHOLE} THEN 1 ELSE 2 END AS n FROM rows",
    "simple_case": """SELECT k, CASE NOT (a IN (SELECT c FROM nulls)) WHEN TRUE THEN 1
        WHEN FALSE THEN 2 ELSE 3 END AS n FROM rows""",
    "coalesced": "SELECT k, NOT COALESCE(a IN (SELECT c FROM nulls), TRUE) AS n FROM rows",
    "is_null": "SELECT k FROM rows WHERE (a IN (SELECT c FROM nulls)) IS NULL",
    "is_false": "SELECT k FROM rows WHERE (a IN (SELECT c FROM nulls)) IS FALSE",
    "safe": "SELECT k, NOT ((a IN (SELECT c FROM nulls)) <=> TRUE) AS n FROM rows",
    "pairs": "SELECT k, NOT ((a, b) IN (SELECT c, c FROM nulls) OR a > 3) AS n FROM rows",
    "null_in": """SELECT k, NULL IN (SELECT c FROM nulls) AS n,
        NULL NOT IN (SELECT c FROM none) AS m,
        NOT (CAST(NULL AS INT) IN (SELECT c FROM known WHERE c > rows.a)) AS l FROM rows""",
    "correlated": """SELECT k FROM rows WHERE NOT (a > 3 OR b IN
        (SELECT c FROM nulls WHERE COALESCE(c, 2) >= rows.a))""",
    "nested": """SELECT k FROM rows WHERE EXISTS (SELECT 1 FROM known WHERE c >= rows.a
        AND NOT (c > 3 OR c IN (SELECT c FROM nulls)))""",
    "grouped_by": """SELECT NOT (a IN (SELECT c FROM nulls)) AS n, COUNT(*) AS m FROM rows
        GROUP BY 1""",
    "derived": f"SELECT k FROM ({INSIDE}) WHERE NOT x",
    "derived_both": f"SELECT k, x FROM ({INSIDE}) AS q WHERE NOT (q.x OR q.a > 2)",
    "derived_value": f"SELECT k, NOT x AS y FROM ({INSIDE})",
    "with": f"WITH q AS ({INSIDE}) SELECT q.k FROM q JOIN q AS r ON q.k = r.k WHERE NOT q.x",
    "renamed": f"SELECT p FROM ({INSIDE}) AS q(p, a, y) WHERE NOT y = TRUE",
}


@pytest.mark.spark
def test_every_clause_reads_a_condition_as_plain_spark_does(spark, tmp_path):
    import everview as ev

    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        tables = Tables(db, seed=5)
        for name, query in CLAUSES.items():
            db.sql(f"CREATE VIEW v_{name} AS {query}")
        for _ in range(3):
            tables.transact()
            assert differences(db, {f"v_{name}": query for name, query in CLAUSES.items()}) == []


KEPT = {
    "having": (1, 0, 0),
    "derived": (1, 0, 0),
    "derived_both": (1, 0, 0),
    "renamed": (1, 0, 0),
    "with": (1, 0, 0),
    "joined": (1, 0, 0),
    "correlated": (1, 2, 0),
}
"""How many rows a query has where all is known, some is NULL in the table, or in the row."""


@pytest.mark.parametrize("name", KEPT)
def test_what_is_not_known_is_left_out_in_every_clause(open_db, tmp_path, name):
    with open_db(tmp_path / "store") as db:
        Tables(db, seed=1)
        db.sql(f"CREATE VIEW v AS {CLAUSES[name]}")
        counts = []
        db.sql("INSERT INTO rows VALUES (1, 1, 1); INSERT INTO nulls VALUES (3)")
        counts.append(len(db.read("v").rows()))
        db.sql("INSERT INTO nulls VALUES (NULL)")
        if name == "correlated":  # a NULL counts as 2 there, and so not for a greater a
            db.sql("INSERT INTO rows VALUES (2, 3, 1), (3, 3, 2)")
        counts.append(len(db.read("v").rows()))
        db.sql("DELETE FROM nulls WHERE c IS NULL; UPDATE rows SET b = NULL")
        counts.append(len(db.read("v").rows()))
        assert tuple(counts) == KEPT[name]


def test_any_and_all_are_not_known_where_sql_does_not_know(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE r (a INT); CREATE TABLE s (c INT)")
        told = "a = ANY (SELECT c FROM s) AS x, a <> ALL (SELECT c FROM s) AS y"
        db.sql(f"CREATE VIEW v AS SELECT a, {told}, NOT (a = ANY (SELECT c FROM s)) AS z FROM r")
        db.sql("CREATE VIEW w AS SELECT a FROM r WHERE NOT (a > 9 OR a = ANY (SELECT c FROM s))")
        db.sql("INSERT INTO r VALUES (1), (2), (NULL)")
        assert {row[1:] for row in db.read("v").rows()} == {(False, True, True)}
        assert Counter(db.read("w").rows()) == Counter([(1,), (2,)])
        db.sql("INSERT INTO s VALUES (1), (NULL)")
        assert Counter(db.read("v").rows()) == Counter(
            [(1, True, False, False), (2, None, None, None), (None, None, None, None)]
        )
        assert db.read("w").rows() == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM (SELECT k, x FROM {} AS q) AS p WHERE NOT x",
        "SELECT k FROM (SELECT * FROM {} AS q) AS p WHERE NOT x",
        "SELECT k FROM (SELECT k, y AS z FROM {} AS q(k, y)) AS p WHERE NOT z",
        "SELECT k FROM (SELECT k, x AND k > 0 AS y FROM {} AS q) AS p WHERE NOT y",
        "WITH q AS (SELECT * FROM {}), p AS (SELECT x, k FROM q) SELECT k FROM p WHERE x = FALSE",
    ],
)
@pytest.mark.parametrize("rows", ["SELECT DISTINCT {}", "SELECT {} UNION SELECT 1, TRUE"])
def test_what_has_no_opposite_is_refused_however_deep_it_lies(tmp_path, query, rows):
    inner = f"({rows.format('k, a IN (SELECT c FROM known) AS x FROM rows')})"
    with ev.open(str(tmp_path), engine="duckdb") as db:
        Tables(db, 1)
        with pytest.raises(ev.UserError, match=r"NOT of .*, which is IN"):
            db.sql(f"CREATE VIEW v AS {query.format(inner)}")


def test_what_is_no_in_is_negated_however_deep_it_lies(tmp_path):
    with ev.open(str(tmp_path), engine="duckdb") as db:
        Tables(db, 1)
        db.insert("rows", [(1, 1, 1), (2, 3, 3), (3, None, 2)])
        inner = "SELECT k, x FROM (SELECT DISTINCT k, a > 2 AS x FROM rows) AS q"
        db.sql(f"CREATE VIEW v AS SELECT k FROM ({inner}) AS p WHERE NOT x")
        assert db.read("v").rows() == [(1,)]
