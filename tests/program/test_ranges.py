"""The range of a join condition holds every value for which the condition is true."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.expr.types import Column
from everview.program.ranges import key_ranges
from everview.program.steps import KeyRange, Limit
from everview.store.ranges import LEAST, MOST, Ranges, moved

HOUR = 3_600 * 1_000_000
WANTED = (
    Column("x", "int"),
    Column("d", "date"),
    Column("t", "timestamp"),
    Column("p", "decimal(10,2)"),
    Column("f", "double"),
)
ASKING = (
    Column("y", "bigint"),
    Column("z", "int"),
    Column("e", "date"),
    Column("u", "timestamp"),
    Column("q", "decimal(12,2)"),
    Column("r", "decimal(12,3)"),
    Column("g", "double"),
)
CONDITIONS = {
    "x BETWEEN y AND z": [KeyRange("x", Limit("y"), Limit("z"))],
    "x > y AND z >= x": [KeyRange("x", Limit("y", 1), Limit("z"))],
    "x + 2 < y - (3 - 1)": [KeyRange("x", None, Limit("y", -5))],
    "d < e + INTERVAL '3' DAY": [KeyRange("d", None, Limit("e", 2))],
    "t >= u - INTERVAL '1' HOUR": [KeyRange("t", Limit("u", -HOUR), None)],
    # A day may have 25 hours.
    "t > u - INTERVAL '1' DAY": [KeyRange("t", Limit("u", -48 * HOUR), None)],
    "p > q AND x < y AND x > z": [
        KeyRange("x", Limit("z", 1), Limit("y", -1)),
        KeyRange("p", Limit("q", 1), None),
    ],
    "f < g": [],
    "p < r": [],
    "d < u": [],
    "x < y OR x > z": [],
    "NOT x < y": [],
    "x < y * 2": [],
    "x < 5": [],
    "x = y": [],
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_comparison_bounds_a_column_by_one_of_the_other_side(condition):
    assert [*key_ranges(condition, WANTED, ASKING)] == CONDITIONS[condition]


ends = st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), max_size=8)


@given(ends, st.lists(st.integers(-25, 25), max_size=30))
def test_ranges_find_the_values_between_their_ends_each_once(pairs, values):
    array = np.array(pairs, np.int64).reshape(-1, 2)
    ranges, ordered = Ranges(array[:, 0], array[:, 1]), np.sort(np.array(values, np.int64))
    first, sizes = ranges.find(ordered)
    found = [at for a, n in zip(first, sizes, strict=True) for at in range(a, a + n)]
    wanted = [any(low <= value <= high for low, high in pairs) for value in ordered]
    assert found == [at for at, each in enumerate(wanted) if each]


@given(ends, st.integers(-25, 25), st.integers(0, 9))
def test_a_file_is_read_if_and_only_if_a_range_meets_its_bounds(pairs, low, length):
    array = np.array(pairs, np.int64).reshape(-1, 2)
    ranges = Ranges(array[:, 0], array[:, 1])
    met = any(a <= b and a <= low + length and low <= b for a, b in pairs)
    assert bool(ranges.meets(low, low + length)) == met


@given(st.integers(LEAST, MOST), st.integers(2 * LEAST, 2 * MOST))
def test_a_limit_beyond_64_bits_is_the_last_there_is(value, plus):
    [found] = moved(np.array([value]), plus).tolist()
    assert found == min(max(value + plus, LEAST), MOST) or abs(plus) > MOST
