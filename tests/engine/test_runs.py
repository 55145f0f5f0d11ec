"""Rows looked up in memory are those that a look at every row finds."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.engine.duckdb import runs
from everview.engine.duckdb.runs import Run

KEYS = {
    "bigint": (pa.int64(), st.integers(-3, 3)),
    "date": (pa.date32(), st.dates(date(2024, 1, 1), date(2024, 1, 5))),
    "string": (pa.string(), st.sampled_from(["", "a", "ab", "b", "é", "日本", "\U0001f600"])),
    "decimal": (pa.decimal128(9, 2), st.decimals(-1, 1, places=1)),
    "boolean": (pa.bool_(), st.booleans()),
}


def looked_up(parts: list[Run], wanted: list, type_: pa.DataType) -> list:
    schema = pa.schema([("n", pa.int64()), ("k", type_)])
    found = runs.among(parts, "k", pa.chunked_array([pa.array(wanted, type_)]), schema)
    assert found.schema == schema
    return sorted(found.column("n").to_pylist())


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("by", ["k", "n", None])
@pytest.mark.parametrize("many", [0, runs.MANY])
@given(data=st.data())
def test_a_lookup_finds_what_a_look_at_every_row_finds(kind, by, many, data):
    type_, values = KEYS[kind]
    keys = data.draw(st.lists(st.none() | values, max_size=12))
    wanted = data.draw(st.lists(st.none() | values, max_size=4))
    rows = pa.table({"k": pa.array(keys, type_), "n": pa.array(range(len(keys)), pa.int64())})
    expected = [number for number, key in enumerate(keys) if key in wanted]
    cut = data.draw(st.integers(0, len(keys)))
    parts = [Run(part, by) for part in (rows[:cut], rows[cut:])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "MANY", many)
        assert looked_up(parts, wanted, type_) == expected


def test_many_rows_are_searched_and_not_passed_over(monkeypatch):
    monkeypatch.setattr(Run, "scanned", None)
    texts = [f"{number // 2:05d}" for number in range(20_000)]
    rows = pa.table({"k": texts, "n": pa.array(range(20_000), pa.int64())})
    assert looked_up([Run(rows, "k")], ["00007", "09999", "x"], pa.string()) == [
        14,
        15,
        19998,
        19999,
    ]


def test_a_large_run_lies_in_a_file(monkeypatch):
    monkeypatch.setattr(runs, "LARGE_BYTES", 1000)
    prices = [None, *(Decimal(number) for number in range(500, 0, -1))]
    rows = pa.table({"k": pa.array(prices, pa.decimal128(9, 2)), "n": pa.array(range(501))})
    run = Run(rows, "k")
    assert run.rows.column("k").to_pylist() == [None, *sorted(prices[1:])]
    assert looked_up([run], [None, Decimal(500), Decimal(7)], pa.decimal128(9, 2)) == [0, 1, 494]
