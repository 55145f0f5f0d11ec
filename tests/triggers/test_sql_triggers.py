"""Views of SQL kept by triggers: after every thousand events they are what DuckDB computes."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import everview as ev
from everview.trigger_programs.program import parse_program, print_program
from triggers.tpch_events import COLUMNS, Events, declarations, views


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


def follow(seed: int, events: int, *, nulls: bool, step: int = 1000) -> Counter[str]:
    """Orders and lines come and go, in every way that rows are handed over."""
    names = views()
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


@pytest.mark.parametrize("nulls", [False, True])
def test_views_of_tpch_follow_orders_and_lines(nulls):
    seen = follow(7, 3000, nulls=nulls)
    assert all(seen[name] for name in views()), seen


@pytest.mark.slow
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_views_of_tpch_follow_long_streams(seed, nulls):
    follow(seed, 30_000, nulls=nulls)


def test_programs_of_tpch_read_back():
    running = ev.triggers(script(nulls=False, names=views()))
    program = parse_program(running.text)
    assert print_program(program) == running.text
