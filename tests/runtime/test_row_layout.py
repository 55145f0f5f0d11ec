"""Rows that are packed are, unpacked, the rows they were."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.runtime.cache import row_layout
from everview.runtime.cache.row_layout import Packed, rows_at

BOUNDS = [sign * 2**bits + more for bits in (7, 15, 31) for sign in (1, -1) for more in (-1, 0, 1)]
COLUMNS = {
    "tinyint": (pa.int8(), st.integers(-128, 127)),
    "int": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "bigint": (pa.int64(), st.sampled_from([*BOUNDS, -(2**63), 2**63 - 1, 0])),
    "date": (pa.date32(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    "timestamp": (
        pa.timestamp("us", tz="UTC"),
        st.sampled_from([datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 1, 2, 3, 4, UTC)]),
    ),
    "decimal": (
        pa.decimal128(15, 2),
        st.decimals("-9999999999999.99", "9999999999999.99", places=2),
    ),
    "wide": (pa.decimal128(38, 0), st.sampled_from([Decimal(2**62), Decimal(10**30), Decimal(-1)])),
    "text": (
        pa.string(),
        st.sampled_from(
            ["", "a", "é", "日本", "\0", "a\0", "x" * 12, "y" * 13, "é" * 20, "z" * 300]
        ),
    ),
    "boolean": (pa.bool_(), st.booleans()),
    "double": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5])),
    "list": (pa.list_(pa.int32()), st.lists(st.integers(0, 3), max_size=2)),
}


@pytest.mark.parametrize("each", [0, 10**9])
@pytest.mark.parametrize("nulls", [False, True])
@given(data=st.data())
def test_what_is_packed_is_taken_out_as_it_was(nulls, each, data):
    kinds = data.draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=5))
    count = data.draw(st.integers(0, 20))
    arrays = []
    for kind in kinds:
        type_, values = COLUMNS[kind]
        chosen = st.none() | values if nulls else values
        drawn = data.draw(st.lists(chosen, min_size=count, max_size=count))
        arrays.append(pa.array(drawn, type_))
    names = [f"c{place} as {kind}" for place, kind in enumerate(kinds)]
    rows = pa.table(arrays, names)
    apart = data.draw(st.sampled_from(names))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_layout, "WASTE", data.draw(st.sampled_from([1, 2, 10**9])))
        patch.setattr(row_layout, "TEXTS", data.draw(st.sampled_from([0, 1 << 15])))
        patch.setattr(row_layout, "PIECE", data.draw(st.sampled_from([3, 1 << 20])))
        tight = Packed(rows, apart, each=each)
    assert apart in tight.rest.column_names
    for name in names:
        assert tight.column(name).combine_chunks().equals(rows[name].combine_chunks())
    if not count:
        return
    places = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=8)), np.int64)
    wanted = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    expected = rows.select(wanted).take(pa.array(places))
    assert rows_at([(tight, places)], wanted).equals(expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_layout, "PARALLEL_ROWS", 1)
        patch.setattr(row_layout, "NEAR", 3)
        assert rows_at([(tight, places)], wanted).equals(expected)
    for name in names:
        type_ = tight.type_of(name)
        if type_ is not None:
            found = tight.numbers(name, places).tolist()
            whole = (
                rows[name]
                .combine_chunks()
                .cast(pa.int64() if type_.bit_width == 64 else pa.int32())
            )
            assert found == whole.cast(pa.int64()).take(pa.array(places)).to_pylist()


def test_numbers_take_what_they_need_and_few_texts_a_byte():
    count = 20_000
    rows = pa.table(
        {
            "k": pa.array(range(count), pa.int64()),
            "price": pa.array(
                [Decimal(n % 100_000) / 100 for n in range(count)], pa.decimal128(15, 2)
            ),
            "day": pa.array([10_000 + n % 90 for n in range(count)], pa.date32()),
            "flag": pa.array(["AB"[n % 2] * 10 for n in range(count)]),
            "note": pa.array([f"note {n}" for n in range(count)]),
            "_w": pa.array(np.ones(count, np.int64)),
        }
    )
    tight = Packed(rows, "k")
    assert tight.rest.column_names == ["k", "note"]
    assert tight.nbytes - tight.rest.nbytes < count * (4 + 2 + 1 + 1) + 100
    assert tight.column("flag").type == pa.string()


def test_a_text_that_only_seemed_to_have_few_values_stays_as_it_is(monkeypatch):
    monkeypatch.setattr(row_layout, "TEXTS", 4)
    texts = ["a", "b"] * 5_000 + [f"{number}" for number in range(50)]
    tight = Packed(pa.table({"k": range(len(texts)), "t": texts}), "k")
    assert tight.rest.column_names == ["k", "t"]
    assert tight.column("t").to_pylist() == texts


def part(low: int, texts: str, count: int = 40) -> pa.Table:
    return pa.table(
        {
            "k": pa.array(range(count), pa.int64()),
            "n": pa.array([low + number % 5 for number in range(count)], pa.int64()),
            "t": pa.array([texts[number % len(texts)] for number in range(count)]),
        }
    )


@pytest.mark.parametrize(
    ("second", "alike"),
    [
        (part(10, "ba"), True),
        (part(-100, "b"), True),
        (part(10, "abc"), False),
        (part(1_000, "ab"), False),
        (part(10, "ab", count=0), False),
        (part(10, "ab").set_column(1, "n", pa.array([None] * 40, pa.int64())), False),
    ],
)
def test_parts_that_fit_one_layout_are_unpacked_together(second, alike):
    first = part(0, "ab")
    one = Packed(first, "k")
    other = Packed(second, "k", one.layout)
    assert (other.layout is one.layout) == alike
    places = np.array([3, 0, 7, 7]) if len(second) else np.empty(0, np.int64)
    expected = [each.take(pa.array(places)) for each in (first, second)]
    found = [rows_at([(each, places)], ["t", "k", "n"]) for each in (one, other)]
    for each, rows in zip(found, expected, strict=True):
        assert each.equals(rows.select(["t", "k", "n"]))
    if alike:
        both = rows_at([(one, places), (other, places[:2])], ["n", "t"])
        rows = pa.concat_tables([expected[0], expected[1][:2]]).select(["n", "t"])
        assert both.combine_chunks().equals(rows.combine_chunks())


def worded(width: int, count: int = 40, more: str = "") -> pa.Table:
    """Texts that differ, of about one length."""
    texts = [f"{number:0{width - number % 2}d}" for number in range(count)]
    return pa.table({"k": pa.array(range(count), pa.int64()), "t": [*texts[:-1], texts[-1] + more]})


@pytest.mark.parametrize(
    ("second", "alike"),
    [(worded(10), True), (worded(12), True), (worded(6), True), (worded(13), False)],
)
def test_texts_of_about_one_length_lie_with_the_rest_of_their_row(second, alike):
    first = worded(10)
    one = Packed(first, "k", each=13)
    other = Packed(second, "k", one.layout, each=20)
    assert one.rest.column_names == other.rest.column_names == ["k"]
    assert (other.layout is one.layout) == alike
    for tight, rows in ((one, first), (other, second)):
        assert tight.column("t").to_pylist() == rows["t"].to_pylist()
        places = np.array([39, 0, 0])
        assert rows_at([(tight, places)], ["t"])["t"].to_pylist() == [
            rows["t"][int(place)].as_py() for place in places
        ]


@pytest.mark.parametrize(
    ("rows", "each"), [(worded(10), 12), (worded(10, more="x" * 15), 99), (worded(253), 10**9)]
)
def test_texts_that_would_take_too_much_room_stay_as_they_are(rows, each):
    tight = Packed(rows, "k", each=each)
    assert tight.rest.column_names == ["k", "t"]
    assert tight.column("t").to_pylist() == rows["t"].to_pylist()
