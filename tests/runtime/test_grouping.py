"""Rows with equal keys are found, added up and put in order as Python finds them."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.runtime.vector import join
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.grouping import group_rows
from everview.runtime.vector.join import matching_pairs, semi_join_mask
from everview.runtime.vector.window import row_numbers

WIDE = 2**63 - 1
VALUES = {
    pa.int64(): st.sampled_from([None, 0, 1, -1, 5, WIDE, -WIDE - 1]),
    pa.int32(): st.sampled_from([None, 0, 1, -1, 2**31 - 1]),
    pa.string(): st.sampled_from([None, "", "a", "b", "é"]),
    pa.date32(): st.sampled_from([None, 0, 1, -1]),
    pa.bool_(): st.sampled_from([None, True, False]),
    pa.decimal128(38, 2): st.sampled_from(
        [None, *map(Decimal, ("0.00", "1.50", "-1.50", "9" * 36 + ".99", "92233720368547758.08"))]
    ),
}


@st.composite
def keyed(draw: st.DrawFn, sides: int, *, nulls: bool = True) -> list[list[pa.Array]]:
    """The same keys of several relations, each a list of arrays, some of them parts of longer."""
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    made = []
    for _ in range(sides):
        count, cut = draw(st.integers(0, 8)), draw(st.integers(0, 2))
        values = {type_: VALUES[type_].filter(lambda v: nulls or v is not None) for type_ in types}
        made.append(
            [
                pa.array(
                    draw(st.lists(values[type_], min_size=count + cut, max_size=count + cut)), type_
                ).slice(cut)
                for type_ in types
            ]
        )
    return made


def tuples(keys: list[pa.Array]) -> list[tuple[object, ...]]:
    return list(zip(*(key.to_pylist() for key in keys), strict=True))


def batch(keys: list[pa.Array]) -> tuple[pa.RecordBatch, list[str]]:
    names = [str(place) for place in range(len(keys))]
    return pa.record_batch(keys, names=names), names


@pytest.mark.parametrize("many", [1, 1_000])
@given(sides=keyed(2), nulls=st.booleans())
def test_rows_meet_where_their_keys_are_equal(many, sides, nulls):
    left, right = map(tuples, sides)
    expected = [
        (i, j)
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if a == b and (nulls or None not in a)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "SORT_PROBES_MIN_KEYS", many)
        at, there = matching_pairs(*sides, nulls=nulls)
        assert sorted(zip(at.tolist(), there.tolist(), strict=True)) == expected
        if right:
            assert semi_join_mask(*sides).tolist() == [a in right for a in left]


def test_keys_of_different_types_do_not_meet():
    with pytest.raises(Unsupported):
        matching_pairs([pa.array([1])], [pa.array([1], pa.int32())], nulls=True)


@given(keys=keyed(1), data=st.data())
def test_groups_are_added_up_exactly(keys, data):
    rows, names = batch(keys[0])
    count = rows.num_rows

    def cells(of: st.SearchStrategy[object]) -> list[object]:
        return data.draw(st.lists(of, min_size=count, max_size=count))

    weights = cells(st.integers(-3, 3))
    digits = data.draw(st.sampled_from([5, 17, 30]))
    units = cells(st.none() | st.integers(-(10**digits), 10**digits))
    with localcontext(prec=60):  # the usual 28 digits would lose some of these
        prices = [None if u is None else Decimal(u).scaleb(-2) for u in units]
    integers = cells(st.none() | st.integers(-5, 5))
    columns = [_decimals(units), pa.array(integers, pa.int64())]
    targets = [pa.decimal128(38, 2), pa.decimal128(38, 0)]
    groups = group_rows(rows, names)
    found = groups.key_columns(rows, names)
    sums = groups.sums(columns, targets, np.array(weights, np.int64))
    expected: dict[tuple[object, ...], list[Decimal]] = {}
    with localcontext(prec=60):
        for key, w, price, integer in zip(tuples(keys[0]), weights, prices, integers, strict=True):
            total = expected.setdefault(key, [Decimal(0), Decimal(0)])
            total[0] += (price or 0) * w
            total[1] += (integer or 0) * w
    shown = zip(*(column.to_pylist() for column in (*found.values(), *sums)), strict=True)
    assert Counter(shown) == Counter((*key, *total) for key, total in expected.items())


_LARGE = st.integers(2**60, 2**63 - 1) | st.integers(1 - 2**63, -(2**60)) | st.integers(-9, 9)


@given(
    rows=st.lists(st.tuples(st.integers(0, 1), _LARGE, st.integers(-9, 9)), min_size=1),
    weighted=st.booleans(),
)
def test_sums_that_need_more_than_64_bits_are_told_from_those_that_do_not(rows, weighted):
    keys, units, weights = zip(*rows, strict=True)
    factors = weights if weighted else [1] * len(rows)
    of = pa.record_batch({"k": keys})
    groups = group_rows(of, ["k"])
    values = pa.array(map(Decimal, units), pa.decimal128(19, 0))
    given_ = np.array(factors, np.int64) if weighted else None
    (sums,) = groups.sums([values], [pa.decimal128(38, 0)], given_)
    expected: Counter[int] = Counter()
    for key, unit, factor in zip(keys, units, factors, strict=True):
        expected[key] += unit * factor
    found = groups.key_columns(of, ["k"])["k"].to_pylist()
    assert dict(zip(found, map(int, sums.to_pylist()), strict=True)) == expected


def _decimals(units: list[int | None]) -> pa.Array:
    """Decimals that are part of a longer array, with something where they are null."""
    there = pa.array([False, *(unit is not None for unit in units)])
    values = [7, *(7 if unit is None else unit for unit in units)]
    data = b"".join(value.to_bytes(16, "little", signed=True) for value in values)
    # The values of an array of truths are the bits of a validity.
    buffers = [there.buffers()[1], pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.decimal128(31, 2), len(values), buffers).slice(1)


def test_a_sum_that_does_not_fit_its_type_is_left_to_the_database():
    groups = group_rows(pa.record_batch({"k": [1, 1]}), ["k"])
    nines = pa.array([Decimal(99), Decimal(1)], pa.decimal128(2, 0))
    with pytest.raises(Unsupported):
        groups.sums([nines], [pa.decimal128(2, 0)])
    assert groups.sums([nines], [pa.decimal128(3, 0)])[0].to_pylist() == [100]


@given(keys=keyed(2, nulls=False), descending=st.lists(st.booleans(), min_size=3, max_size=3))
def test_rows_are_numbered_by_whatever_orders_them(keys, descending):
    ordered = keys[0]
    group = [place % 2 for place in range(len(ordered[0]))]
    rows = pa.record_batch(
        [pa.array(group, pa.int64()), *ordered], names=["g", *map(str, range(len(ordered)))]
    )
    order = [(str(place), descending[place]) for place in range(len(ordered))]
    found = row_numbers(rows, ["g"], order)
    by_group: dict[int, list[tuple[int, tuple[object, ...]]]] = {}
    for g, number, row in zip(group, found.tolist(), tuples(ordered), strict=True):
        by_group.setdefault(g, []).append((number, row))
    for numbered in by_group.values():
        assert sorted(number for number, _ in numbered) == list(range(1, len(numbered) + 1))
        shown = [row for _, row in sorted(numbered, key=lambda each: each[0])]
        expected = list(shown)
        for place in reversed(range(len(ordered))):
            expected.sort(key=lambda row: _bytes(row[place]), reverse=descending[place])
        assert shown == expected


def _bytes(value: object) -> object:
    return value.encode() if isinstance(value, str) else value
