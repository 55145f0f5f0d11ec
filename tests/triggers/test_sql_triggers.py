"""Views of SQL kept by triggers: after every thousand events they are what DuckDB computes."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from datetime import date, datetime
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import everview as ev
from everview.errors import UserError
from everview.trigger_programs.program import parse_program, print_program
from everview.trigger_programs.running import checksum_of
from triggers.tpch_events import COLUMNS, CONSTANT_WORK, Events, declarations, views


def script(*, nulls: bool, names: dict[str, str]) -> str:
    made = (f"CREATE VIEW {name} AS {query};\n" for name, query in names.items())
    return declarations(nulls=nulls) + "".join(made)


class Oracle:
    """The same rows in DuckDB, which reads the text of each query."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        for name, columns in COLUMNS.items():
            self.connection.execute(f"CREATE TABLE {name} ({columns.replace('STRING', 'VARCHAR')})")

    def fill(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        self.connection.execute(f"DELETE FROM {table}")
        if rows:
            incoming = arrow(table, rows)
            self.connection.register("incoming", incoming)
            self.connection.execute(f"INSERT INTO {table} FROM incoming")
            self.connection.unregister("incoming")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query).fetchall()


def agree(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> bool:
    """Equal as bags; where DuckDB divides in doubles, to six places."""
    if len(ours) != len(theirs):
        return False

    def sortable(row: tuple[Any, ...]) -> list[tuple[bool, str]]:
        return [
            (value is None, f"{value:.3f}" if isinstance(value, float | Decimal) else str(value))
            for value in row
        ]

    def equal(a: Any, b: Any) -> bool:
        if isinstance(b, float):
            return a is not None and math.isclose(float(a), b, rel_tol=1e-9, abs_tol=1e-6)
        return a == b

    pairs = zip(sorted(ours, key=sortable), sorted(theirs, key=sortable), strict=True)
    return all(all(map(equal, a, b)) for a, b in pairs)


def compared(running: Any, oracle: Oracle, names: dict[str, str]) -> Counter[str]:
    """How many rows each view has, all of them equal to those of the oracle."""
    found: Counter[str] = Counter()
    for name, query in names.items():
        rows = running.result(name)
        assert agree(rows, oracle.rows(query)), name
        found[name] = len(rows)
    return found


def follow(
    seed: int, events: int, *, nulls: bool, names: dict[str, str], step: int = 1000
) -> Counter[str]:
    """Orders and lines come and go, in every way that rows are handed over."""
    running = ev.triggers(script(nulls=nulls, names=names))
    oracle, world = Oracle(), Events(seed, nulls=nulls)
    dimensions = world.dimensions()
    for table, rows in dimensions.items():
        oracle.fill(table, rows)
    late = {"customer": dimensions.pop("customer"), "nation": dimensions.pop("nation")}
    for table, rows in dimensions.items():
        running.insert(table, rows)
    stream = list(world.stream(events))
    seen: Counter[str] = Counter()
    tables: dict[str, Counter[tuple[Any, ...]]] = {"orders": Counter(), "lineitem": Counter()}
    for start in range(0, len(stream), step):
        chunk = stream[start : start + step]
        if start % (3 * step) == 0:
            for relation, row, sign in chunk:
                (running.insert if sign > 0 else running.delete)(relation, [row])
        elif start % (3 * step) == step:
            running.apply(chunk)
        else:
            for relation in ("orders", "lineitem"):
                for sign, change in ((1, running.insert), (-1, running.delete)):
                    rows = [row for r, row, s in chunk if (r, s) == (relation, sign)]
                    change(relation, arrow(relation, rows))
        for table, rows in late.items():
            running.insert(table, rows)
        late = {}
        for relation, row, sign in chunk:
            tables[relation][row] += sign
        for table, rows in tables.items():
            oracle.fill(table, list(rows.elements()))
        seen |= compared(running, oracle, names)
    return seen


def arrow(relation: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    types = {"INT": pa.int32(), "BIGINT": pa.int64(), "STRING": pa.string(), "DATE": pa.date32()}
    listed = [each.split(" ") for each in COLUMNS[relation].split(", ")]
    columns = list(zip(*rows, strict=True)) or [()] * len(listed)
    return pa.table(
        {
            name: pa.array(list(column), types.get(type_, pa.decimal128(15, 2)))
            for (name, type_), column in zip(listed, columns, strict=True)
        }
    )


def test_views_of_tpch_follow_orders_and_lines():
    seen = follow(7, 2000, nulls=False, names=views())
    assert all(seen[name] for name in views()), seen


def test_views_of_tpch_follow_orders_and_lines_with_nulls():
    names = views(("01", "05", "09", "12", "14"))
    seen = follow(7, 2000, nulls=True, names=names)
    assert all(seen[name] for name in names), seen


@pytest.mark.slow
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_views_of_tpch_follow_long_streams(seed, nulls):
    follow(seed, 30_000, nulls=nulls, names=views())


@pytest.mark.parametrize("name", CONSTANT_WORK)
def test_programs_of_tpch_read_back_and_loop_over_no_whole_map(name):
    running = ev.triggers(script(nulls=False, names=views((name,))))
    assert print_program(parse_program(running.text)) == running.text
    assert not re.search(r"for e\d+, w\d+ in m\d+\.items", running._generated.text)


@pytest.mark.parametrize("name", ["01", "03", "05", "10"])
def test_a_product_that_several_values_begin_with_is_computed_once(name):
    made = ev.triggers(script(nulls=False, names=views((name,))))._generated
    for text in (made.rows["lineitem", 1], made.batches["lineitem", 1]):
        assert len(re.findall(r"r\d+ \* \(1 (?:\* c\d+ )?- r\d+\)", text)) == 1


def test_no_map_of_a_program_holds_pairs_of_orders_and_suppliers():
    """TPC-H 5: what is known of an order by its key, and of a supplier by its own, are two maps."""
    running = ev.triggers(script(nulls=False, names=views(("05",))))
    maps = [line for line in running.text.splitlines() if line.startswith("map ")]
    joined = [each for each in maps if "orders(" in each and "supplier(" in each]
    assert all("lineitem(" in each for each in joined), joined


SHOP = """
    CREATE TABLE c (id INT PRIMARY KEY, nation STRING);
    CREATE TABLE o (id INT PRIMARY KEY, c INT, amount DECIMAL(8,2), day DATE NOT NULL);
    CREATE VIEW v AS SELECT nation, SUM(amount) AS s, COUNT(*) AS n FROM o JOIN c ON o.c = c.id
        WHERE day < DATE '2024-01-01' GROUP BY nation HAVING COUNT(*) > 0;
    CREATE VIEW pairs AS SELECT a.c, COUNT(*) AS n FROM o a JOIN o b ON a.c = b.c GROUP BY a.c
"""
DAY = date(2023, 5, 1)


def shop() -> Any:
    running = ev.triggers(SHOP)
    running.insert("c", [(1, "FR"), (2, None)])
    running.insert("o", [(1, 1, Decimal("1.50"), DAY), (2, 2, None, DAY)])
    return running


BAD = {
    "another table": lambda t: t.insert("p", [(1,)]),
    "too few columns": lambda t: t.insert("c", [(1,)]),
    "too few columns of one of two": lambda t: t.insert("c", [(3, "x"), (1,)]),
    "no rows": lambda t: t.insert("c", 7),
    "a text for a number": lambda t: t.insert("c", [("x", "FR")]),
    "a text for a number, second": lambda t: t.insert("c", [(3, "FR"), ("x", "FR")]),
    "a number for a text": lambda t: t.delete("c", [(1, 1)]),
    "NULL in a key": lambda t: t.insert("c", [(None, "FR")]),
    "NULL in a key, second": lambda t: t.insert("c", [(3, "FR"), (None, "FR")]),
    "a float": lambda t: t.insert("o", [(3, 1, 1.5, DAY)]),
    "too many digits": lambda t: t.insert("o", [(3, 1, Decimal("1.001"), DAY)]),
    "too many digits, second": lambda t: t.insert(
        "o", [(3, 1, Decimal("1.0"), DAY), (4, 1, Decimal("1.001"), DAY)]
    ),
    "not a number": lambda t: t.insert("o", [(3, 1, Decimal("NaN"), DAY)]),
    "too large": lambda t: t.insert("o", [(3, 1, Decimal(10**7), DAY)]),
    "beyond the type": lambda t: t.insert("c", [(2**31, "FR")] * 2),
    "a datetime": lambda t: t.insert("o", [(3, 1, None, datetime(2023, 1, 1))]),
    "Arrow of another type": lambda t: t.insert("c", pa.table({"a": ["x"], "b": ["y"]})),
    "Arrow that is narrow": lambda t: t.insert("c", pa.table({"a": [1]})),
    "a bad row among tables": lambda t: t.apply([("c", (3, "x"), 1), ("o", (1, "x", 1, DAY), 1)]),
    "another view": lambda t: t.result("w"),
    "a name that is none": lambda t: t.insert(["c"], [(1, "FR")]),
    "a view that is none": lambda t: t.result(["v"]),
    "a text for a row": lambda t: t.insert("c", ["ab"]),
    "a set for a row": lambda t: t.delete("c", [{1, 2}]),
    "a dict for a row": lambda t: t.insert("c", [{0: 1, 1: "FR"}]),
    "no changes": lambda t: t.apply(7),
    "a change of two parts": lambda t: t.apply([("c", (3, "x"))]),
    "a weight without end": lambda t: t.apply([("c", (3, "x"), 10**12)]),
    "Arrow beyond the calendar": lambda t: t.insert("o", arrow_of_days([10**8])),
}
VALUES = {
    "i": [2**31, -(2**31) - 1, 2**40, 2**80, True, 1.0, Fraction(7, 2), Decimal("1.9")],
    "b": [2**63, None, "1", Decimal(1)],
    "s": ["\ud800", b"x", 7],
    "v": ["abcd", "\ud800", "ééé é"],
    "d": [Decimal("1000.00"), Decimal("0.001"), Decimal("1E+5000"), Decimal("sNaN"), 10**5],
    "day": [datetime(2020, 1, 1), "2020-01-01", 7],
}
ROW = (1, 2, "a", "b", Decimal("1.00"), DAY)


def every_type() -> Any:
    running = ev.triggers(
        "CREATE TABLE t (i INT, b BIGINT NOT NULL, s STRING, v VARCHAR(3), d DECIMAL(5,2),"
        " day DATE); CREATE VIEW q AS SELECT s, v, day, SUM(b) AS b, SUM(i) AS i, SUM(d) AS d"
        " FROM t GROUP BY s, v, day; CREATE VIEW pairs AS SELECT COUNT(*) AS n FROM t x JOIN t y"
        " ON x.v = y.v"
    )
    running.insert("t", [ROW])
    return running


WAYS = {
    "one row": lambda t, row: t.insert("t", [row]),
    "one row of a list": lambda t, row: t.insert("t", [list(row)]),
    "two rows": lambda t, row: t.insert("t", (ROW, row)),
    "a row to delete": lambda t, row: t.delete("t", [row]),
    "changes": lambda t, row: t.apply([("t", ROW, 1), ("t", row, -1)]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("column", VALUES)
def test_a_value_that_does_not_fit_is_refused_in_every_way_it_may_come(column, way):
    running = every_type()
    before = running.snapshot()
    at = list(VALUES).index(column)
    for bad in VALUES[column]:
        with pytest.raises(UserError, match=f"column {column} of t has"):
            WAYS[way](running, (*ROW[:at], bad, *ROW[at + 1 :]))
        assert running.snapshot() == before


@pytest.mark.parametrize("way", WAYS)
def test_blanks_beyond_the_length_of_a_text_are_cut_off(way):
    running = every_type()
    WAYS[way](running, (*ROW[:3], "b     ", *ROW[4:]))
    assert {row[1] for row in running.result("q")} <= {"b", "b  "}


def arrow_of_days(days: list[int]) -> pa.Table:
    filled = [pa.array([each] * len(days)) for each in (9, 1, Decimal("1.00"))]
    days = pa.array(days, pa.int32()).cast(pa.date32())
    return pa.table([*filled, days], names=["id", "c", "amount", "day"])


SNAPSHOTS = {
    "nothing": lambda kept: None,
    "brackets without end": lambda kept: "[" * 100_000,
    "a list of maps": lambda kept: {**kept, "maps": [*kept["maps"].values()]},
    "an entry without a value": lambda kept: changed(kept, lambda key, value: [key]),
    "a key that is too long": lambda kept: changed(kept, lambda key, value: [[*key, 1], value]),
    "a value that is a text": lambda kept: changed(kept, lambda key, value: [key, "x"]),
    "a value that is 0": lambda kept: changed(kept, lambda key, value: [key, 0]),
    "a value that is no number": lambda kept: changed(kept, lambda k, v: [k, {"decimal": "NaN"}]),
    "a key that is a flag": lambda kept: changed(kept, lambda key, value: [[True] * len(key), 1]),
    "an entry twice": lambda kept: {**kept, "maps": {n: e * 2 for n, e in kept["maps"].items()}},
    "a digit": lambda kept: json.dumps(kept).replace("1.50", "1.51"),
    "an entry less": lambda kept: json.dumps({**kept, "maps": {**kept["maps"], "m1": []}}),
}


def changed(kept: dict[str, Any], change: Any) -> dict[str, Any]:
    maps = {name: [change(*each) for each in entries] for name, entries in kept["maps"].items()}
    return {**kept, "maps": maps}


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_snapshot_that_is_damaged_changes_nothing(name):
    running = shop()
    before = running.snapshot()
    given = SNAPSHOTS[name](json.loads(before))
    if isinstance(given, dict):  # with a checksum that fits
        given = json.dumps({**given, "checksum": checksum_of(given["maps"])})
    with pytest.raises(UserError) as refused:
        running.restore(given)
    assert refused.value.code == "G008"
    assert running.snapshot() == before


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_changes_nothing(name):
    running = shop()
    before = running.snapshot()
    with pytest.raises(UserError) as refused:
        BAD[name](running)
    assert refused.value.code == "G008"
    assert running.snapshot() == before
    assert sorted(running.result("pairs")) == [(1, 1), (2, 1)]


@pytest.mark.parametrize("table", ["c", "o"])
@pytest.mark.parametrize("rows", [1, 2, 40])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_an_exception_in_the_middle_changes_nothing(table, rows, steps):
    """A map raises after some writes, as an interruption would."""
    running = shop()
    running.insert("o", [(3, 30, Decimal("9.00"), DAY), (4, 30, Decimal("1.00"), DAY)])
    before = running.snapshot()
    left = [steps]

    class Failing(dict):
        def __setitem__(self, key, value):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            super().__setitem__(key, value)

    running._install({name: Failing(entries) for name, entries in running._maps.items()})
    new = {
        "o": [(10 + n, 1 + n % 3, Decimal("2.50"), DAY) for n in range(rows)],
        "c": [(30 + n, "FR") for n in range(rows)],
    }[table]
    with pytest.raises(KeyboardInterrupt):
        running.insert(table, new)
    assert state(running) == state(before)
    running.insert(table, new)
    running.delete(table, new)
    assert state(running) == state(before)


def state(of: Any) -> dict[str, Any]:
    """The entries of a snapshot, in an order that does not depend on what was tried before."""
    maps = json.loads(of if isinstance(of, str) else of.snapshot())["maps"]
    return {name: sorted(entries, key=str) for name, entries in maps.items()}


def test_snapshots_of_sql_are_exact_and_of_one_program():
    running = shop()
    again = ev.triggers(SHOP)
    again.restore(running.snapshot())
    again.delete("o", [(1, 1, Decimal("1.50"), DAY)])
    running.delete("o", arrow_of_shop([(1, 1, Decimal("1.50"), DAY)]))
    assert again.result("v") == running.result("v") == [(None, None, 1)]
    assert again.snapshot() == running.snapshot()
    with pytest.raises(UserError, match="another program"):
        again.restore(ev.triggers(SHOP.replace("2024", "2025")).snapshot())


def arrow_of_shop(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    types = pa.int64(), pa.int16(), pa.decimal128(20, 4), pa.date32()
    names = ["id", "c", "amount", "day"]
    return pa.table(dict(zip(names, map(pa.array, map(list, columns), types), strict=True)))


def test_groups_vanish_and_return_and_the_empty_group_stays():
    running = ev.triggers(
        "CREATE TABLE t (k STRING, v INT, w DECIMAL(4,1));"
        "CREATE VIEW g AS SELECT k, SUM(v) AS s, AVG(w) AS a, COUNT(w) AS n FROM t GROUP BY k;"
        "CREATE VIEW e AS SELECT SUM(v) AS s, COUNT(*) AS n, AVG(v) AS a FROM t"
    )
    assert (running.result("g"), running.result("e")) == ([], [(None, 0, None)])
    rows = [("x", 1, None), ("x", -1, Decimal("2.5")), (None, None, None)]
    for each in rows:
        running.insert("t", [each])
    found = sorted(running.result("g"), key=str)
    assert found == [("x", 0, Decimal("2.50000"), 1), (None, None, None, 0)]
    assert running.result("e") == [(0, 3, 0.0)]
    assert [str(t) for t in running.to_arrow("g").schema.types] == [
        *("string", "int64", "decimal128(8, 5)", "int64")
    ]
    running.delete("t", rows)
    assert (running.result("g"), running.result("e")) == ([], [(None, 0, None)])


def test_batches_subtract_decimals_of_different_scales():
    running = ev.triggers(
        "CREATE TABLE t (a DECIMAL(10,2), b DECIMAL(10,4), c INT);"
        "CREATE VIEW v AS SELECT SUM(b - a) AS x, SUM(b * (c - a)) AS y, SUM(-a - b) AS z,"
        " SUM(c - (a - b)) AS w FROM t WHERE c - a < b - 1"
    )
    rows = [(Decimal("1.25"), Decimal("2.1234"), 2), (Decimal("-3.50"), Decimal("7.0001"), -1)]
    kept, gone = [*rows, *rows], [(Decimal("0.01"), Decimal("9.9999"), 3)] * 2
    running.insert("t", [*kept, *gone])
    running.delete("t", gone)
    exact = [(b - a, b * (c - a), -a - b, c - (a - b)) for a, b, c in kept]
    assert running.result() == [tuple(map(sum, zip(*exact, strict=True)))]


BIG, WIDE = Decimal("9999999999999999.99"), Decimal("123456789012345678901234567890123456.78")
EXACTLY = {
    "SELECT COUNT(*) AS n FROM t WHERE a * a = 99999999999999999800000000000000.0001": [(1,)],
    "SELECT COUNT(*) AS n FROM t WHERE d = 1234.5 - 0.01": [(1,)],
    f"SELECT COUNT(*) AS n FROM t WHERE -a < 0.5 - {BIG}": [(1,)],
    "SELECT k, SUM(k) AS s FROM t GROUP BY k": [(WIDE, WIDE)],
}


@pytest.mark.parametrize("digits", [28, 2])
@pytest.mark.parametrize("query", EXACTLY)
def test_no_digit_is_lost_whatever_the_context_of_the_user(query, digits):
    row = (BIG, WIDE, Decimal("1234.49"))
    types = [pa.decimal128(18, 2), pa.decimal128(38, 2), pa.decimal128(6, 2)]
    columns = [pa.array([value], type_) for value, type_ in zip(row, types, strict=True)]
    for given in ([row], (row,), pa.table(columns, ["a", "k", "d"])):
        with localcontext(Context(prec=digits)):
            table = "CREATE TABLE t (a DECIMAL(18,2), k DECIMAL(38,2), d DECIMAL(6,2))"
            running = ev.triggers(f"{table}; CREATE VIEW v AS {query}")
            running.insert("t", given)
            assert running.result() == EXACTLY[query]


REFUSED = {
    "CREATE TABLE t (a INT); SELECT 1": "G010",
    "CREATE TABLE t (a INT)": "G010",
    "CREATE TABLE t (a INT); CREATE TABLE T (a INT)": "G010",
    "CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t": "G009",
    "CREATE TABLE t (a DOUBLE); CREATE VIEW v AS SELECT a, COUNT(*) AS n FROM t GROUP BY a": "G009",
    "CREATE TABLE t (a INT); CREATE VIEW v AS SELECT MAX(a) AS m FROM t": "G009",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_trigger_program_is_refused(text):
    with pytest.raises(UserError) as refused:
        ev.triggers(text)
    assert refused.value.code == REFUSED[text]


BEYOND = {
    "SELECT t.a, SUM(u.c) AS m FROM t LEFT JOIN u ON t.a = u.a GROUP BY t.a": "outer join",
    "SELECT a, SUM(b) AS m FROM t WHERE b > (SELECT SUM(c) FROM u) GROUP BY a": "subquery",
    "SELECT a, SUM(b) AS m FROM (SELECT DISTINCT a, b FROM t) GROUP BY a": "DISTINCT",
    "SELECT a, SUM(b) AS m FROM (SELECT a, b FROM t ORDER BY b LIMIT 3) GROUP BY a": "LIMIT",
    "SELECT a, SUM(m) AS m FROM (SELECT a, MAX(b) AS m FROM t GROUP BY a) GROUP BY a": "no SUM",
    "SELECT e, COUNT(*) AS n FROM t LATERAL VIEW explode(arr) AS e GROUP BY e": "explode",
    "SELECT COUNT(*) AS n FROM (VALUES (1), (2)) AS v(x)": "VALUES",
    "SELECT a, SUM(b) AS m FROM (SELECT a, b FROM t EXCEPT ALL SELECT a, c FROM u) GROUP BY a": (
        "EXCEPT ALL"
    ),
}


@pytest.mark.parametrize("query", BEYOND)
def test_a_view_without_triggers_is_named_with_what_is_in_the_way(query):
    tables = "CREATE TABLE t (a INT, b INT, arr ARRAY<INT>); CREATE TABLE u (a INT, c INT);"
    with pytest.raises(UserError, match=f"q has no triggers.*{BEYOND[query]}"):
        ev.triggers(f"{tables} CREATE VIEW q AS {query}")


def test_comments_before_a_text_take_no_time():
    """A comment ends at its first end, so there is one way to read many of them."""
    comments = "/* a */ " * 60
    agca = ev.triggers(f"{comments} q[] := Sum(r(x) * x)")
    sql = ev.triggers(
        f"{comments} CREATE TABLE r (x INT); CREATE VIEW q AS SELECT SUM(x) AS s FROM r"
    )
    for each in (agca, sql):
        each.insert("r", [(2,), (3,)])
        assert each.result() == [(5,)]


def test_a_view_may_read_a_view_before_it():
    running = ev.triggers(
        "CREATE TABLE t (a INT, b INT); "
        "CREATE VIEW some AS SELECT a + 1 AS c, b FROM t WHERE b > 1;"
        "CREATE VIEW n AS SELECT b, SUM(c) AS s FROM some GROUP BY b"
    )
    running.insert("t", [(1, 1), (2, 2), (3, 2)])
    assert running.result() == [(2, 7)]
