"""When a recorded cell says the same as a value."""

from __future__ import annotations

import doctest
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib import import_module
from typing import Any

import pytest
from conformance.values import decode_row, difference, encode_row, is_value, written

SAME = [
    ("NULL", None),
    ("250", 250),
    ("250.0", 250),
    ("12.5", Decimal("12.50")),
    ("33.333333333333336", Decimal("33.333333")),
    ("0.30000000000000004", 0.3),
    ("NaN", float("nan")),
    ("true", True),
    ("False", False),
    ("2024-01-31", date(2024, 1, 31)),
    ("2024-01-31 00:00:00", date(2024, 1, 31)),
    ("2024-01-31 10:00:00", datetime(2024, 1, 31, 10, tzinfo=UTC)),
    ("(empty)", ""),
    ("[1, 2]", [1, 2]),
    ("[a, NULL]", ["a", None]),
    ("['a', 'b']", ["a", "b"]),
    ("{'k': 1}", {"k": 1}),
    ("Row(low=1, high=None)", {"low": 1, "high": None}),
]
DIFFERENT = [
    ("NULL", 0),
    ("0", None),
    ("NULL", "None"),
    ("250", 251),
    ("0.3", 0.3000001),
    ("12.51", Decimal("12.50")),
    ("true", False),
    ("2024-01-30", date(2024, 1, 31)),
    ("2024-01-31 10:00:01", datetime(2024, 1, 31, 10, tzinfo=UTC)),
    ("a", "A"),
    ("[1, 2]", [2, 1]),
    ("text", 1),
]


@pytest.mark.parametrize(("text", "value"), SAME)
def test_a_cell_may_be_written_in_the_ways_of_several_engines(text: str, value: Any) -> None:
    assert written("NULL")(text, value)


@pytest.mark.parametrize(("text", "value"), DIFFERENT)
def test_a_cell_that_says_something_else_is_different(text: str, value: Any) -> None:
    assert not written("NULL")(text, value)


def test_bags_differ_by_rows_and_by_how_often_they_occur() -> None:
    same = written("NULL")
    assert difference([("1",), ("1",)], [(1,), (1,)], same) == ([], [])
    assert difference([("1",), ("1",)], [(1,)], same) == ([("1",)], [])
    assert difference([("1",)], [(1,), (2,)], same) == ([], [(2,)])
    assert difference([("1", "2")], [(1,)], same) == ([("1", "2")], [(1,)])


def test_typed_values_are_compared_exactly_but_for_doubles() -> None:
    assert is_value(0.1 + 0.2, 0.3)
    assert not is_value(0.3, 0.3001)
    assert not is_value(1, 1.0)
    assert not is_value(Decimal("1.0"), Decimal("1.00"))
    assert not is_value(None, "")


def test_rows_are_kept_without_loss() -> None:
    row = (1, True, 0.1, Decimal("1.20"), "é", None, b"\x00", date(2024, 2, 29), [1, None])
    moment = datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC)
    assert decode_row(encode_row((*row, moment, {"k": "v"}))) == (*row, moment, {"k": "v"})


@pytest.mark.parametrize("module", ["cases", "refusals", "sqllogic_file", "values"])
def test_the_examples_in_the_source_hold(module: str) -> None:
    result = doctest.testmod(import_module(f"conformance.{module}"))
    assert result.attempted > 0
    assert result.failed == 0
