"""Rows looked up in memory are those that a look at every row finds."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.expr.types import WEIGHT
from everview.runtime.cache import key_set, sorted_run
from everview.runtime.cache.key_set import Keys
from everview.runtime.cache.sorted_run import Run, Tight

KEYS = {
    "bigint": (pa.int64(), st.integers(-3, 3)),
    "date": (pa.date32(), st.dates(date(2024, 1, 1), date(2024, 1, 5))),
    "string": (pa.string(), st.sampled_from(["", "a", "ab", "b", "é", "日本", "\U0001f600"])),
    "decimal": (pa.decimal128(9, 2), st.decimals(-1, 1, places=1)),
    "boolean": (pa.bool_(), st.booleans()),
}


def roomy(rows: pa.Table, by: str) -> Tight:
    """Packed rows with their texts."""
    return Tight.of(rows, by, each=10**9)


def looked_up(parts: list[Run], wanted: list, type_: pa.DataType) -> list:
    schema = pa.schema([("n", pa.int64()), ("k", type_)])
    keys = Keys(pa.chunked_array([pa.array(wanted, type_)]))
    found = sorted_run.among(parts, "k", keys, schema)
    assert found.schema == schema
    return sorted(found.column("n").to_pylist())


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize(
    ("make", "by"),
    [(Run, "k"), (Run, "n"), (Run, None), (Tight.of, "k"), (Tight.of, "n"), (roomy, "n")],
)
@pytest.mark.parametrize("many", [0, sorted_run.PARALLEL_ROWS])
@given(data=st.data())
def test_a_lookup_finds_what_a_look_at_every_row_finds(kind, make, by, many, data):
    type_, values = KEYS[kind]
    keys = data.draw(st.lists(st.none() | values, max_size=12))
    wanted = data.draw(st.lists(st.none() | values, max_size=4))
    rows = pa.table({"k": pa.array(keys, type_), "n": pa.array(range(len(keys)), pa.int64())})
    expected = [number for number, key in enumerate(keys) if key in wanted]
    cut = data.draw(st.integers(0, len(keys)))
    parts = [make(rows[:cut], by), Run(rows[cut:], by)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_run, "PARALLEL_ROWS", many)
        assert looked_up(parts, wanted, type_) == expected


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("pieces", [0, 2, 8])
@given(data=st.data())
def test_rows_in_pieces_are_found_as_if_they_lay_together(kind, pieces, data):
    type_, values = KEYS[kind]
    given_ = data.draw(st.lists(st.lists(st.none() | values, max_size=5), max_size=5))
    wanted = data.draw(st.lists(st.none() | values, max_size=4))
    schema = pa.schema([("k", type_), ("n", pa.int64())])
    keys = [key for piece in given_ for key in piece]
    numbers = iter(range(len(keys)))
    rows = pa.Table.from_batches(
        [pa.record_batch([piece, [next(numbers) for _ in piece]], schema) for piece in given_],
        schema,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_run, "PIECES", pieces)
        parts = sorted_run.in_pieces(rows, "k", room=10**9)
        assert len(parts) <= max(1, pieces)
    expected = [number for number, key in enumerate(keys) if key in wanted]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_set, "MANY", 0)
        assert looked_up(parts, wanted, type_) == expected


def packed(pieces: list[list], type_: pa.DataType, each: float = 0) -> list[Run]:
    """Runs of packed rows, alike where they can be; rows are numbered through all of them."""
    parts: list[Run] = []
    first, like = 0, None
    for keys in pieces:
        numbers = range(first, first + len(keys))
        columns = {"k": pa.array(keys, type_), "n": pa.array(numbers, pa.int64())}
        made = Tight.of(pa.table(columns), "k", like, each)
        parts.append(made)
        first, like = first + len(keys), made.packed.layout
    return parts


@pytest.mark.parametrize("kind", KEYS)
@given(data=st.data())
def test_runs_that_are_joined_hold_the_same_rows(kind, data):
    type_, values = KEYS[kind]
    some = values if data.draw(st.booleans()) else st.none() | values
    pieces = data.draw(st.lists(st.lists(some, max_size=5), max_size=5))
    if data.draw(st.booleans()):
        cuts = sorted(data.draw(st.lists(st.integers(0, 12), max_size=3)))
        every = sorted(data.draw(st.lists(values, max_size=12)))
        pieces = [every[a:b] for a, b in pairwise([0, *cuts, len(every)])]
    wanted = data.draw(st.lists(st.none() | values, max_size=4))
    before = packed(pieces, type_)
    none = pa.schema([("n", pa.int64()), ("k", type_)]).empty_table()
    whole = pa.concat_tables([none, *(run.every(["n", "k"]) for run in before)]).to_pylist()
    after = sorted_run.joined(before)
    assert [row for run in after for row in run.every(["n", "k"]).to_pylist()] == whole
    keys = [key for piece in pieces for key in piece]
    expected = [number for number, key in enumerate(keys) if key in wanted]
    assert looked_up(after, wanted, type_) == expected


@pytest.mark.parametrize(
    ("pieces", "count"),
    [
        ([[1, 2], [2, 3], [4]], 1),
        ([[1, 2], [4], [2, 3]], 2),
        ([[2, 3], [1]], 2),
        ([[1], [], [2]], 3),
        ([[None, 1], [2]], 2),
    ],
)
def test_runs_are_joined_where_each_is_above_the_one_before_it(pieces, count):
    assert len(sorted_run.joined(packed(pieces, pa.int64()))) == count


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("by", ["k", None])
@given(data=st.data())
def test_a_run_knows_whether_rows_with_one_key_come_and_go(kind, by, data):
    type_, values = KEYS[kind]
    keys = data.draw(st.lists(values, max_size=8))
    weights = data.draw(st.lists(st.sampled_from([-2, -1, 1, 3]), min_size=8, max_size=8))
    signs = {key if by else None: set() for key in keys}
    for key, weight in zip(keys, weights, strict=False):
        signs[key if by else None].add(weight > 0)
    table = pa.table({"k": pa.array(keys, type_), WEIGHT: pa.array(weights[: len(keys)])})
    run = Run(table.cast(pa.schema([("k", type_), (WEIGHT, pa.int64())])), by)
    expected = any(len(each) == 2 for each in signs.values())
    if run.by is None:  # booleans have no order
        expected = {True, False} == {weight > 0 for weight in weights[: len(keys)]}
    assert run.comes_and_goes == expected


SMALL = st.integers(-2, 2)
PAIRS = {
    "whole": (pa.int32(), pa.int64(), SMALL),
    "huge": (pa.int64(), pa.int64(), st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])),
    "dates": (pa.date32(), pa.date32(), st.dates(date(2024, 1, 1), date(2024, 1, 3))),
    "nulls": (pa.int64(), pa.int64(), st.none() | SMALL),
    "texts": (pa.string(), pa.string(), st.sampled_from(["a", "b", ""])),
}


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("make", [Run, Tight.of])
@given(data=st.data())
def test_rows_that_agree_in_all_columns_are_brought_and_of_whole_numbers_no_others(
    make, kind, data
):
    ours, theirs, values = PAIRS[kind]
    pairs = data.draw(st.lists(st.tuples(values, values), max_size=12))
    wanted = data.draw(st.lists(st.tuples(values, values), min_size=1, max_size=4))
    first, second = (pa.array([pair[at] for pair in pairs], ours) for at in (0, 1))
    rows = pa.table({"k": first, "m": second, "n": pa.array(range(len(pairs)), pa.int64())})
    asked = pa.table(
        {name: pa.array([pair[at] for pair in wanted], theirs) for at, name in enumerate("km")}
    )
    cut = data.draw(st.integers(0, len(pairs)))
    parts = [make(rows[:cut], "k"), Run(rows[cut:], "k")]
    keys = Keys(asked["k"].cast(ours, safe=False), asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_run, "NARROWED", data.draw(st.sampled_from([0, 2, 5])))
        patch.setattr(sorted_run, "WORTH", worth := data.draw(st.sampled_from([0, 2])))
        found = sorted_run.among(parts, "k", keys, rows.schema)
    brought = sorted(found.column("n").to_pylist())
    needed = [number for number, pair in enumerate(pairs) if pair in wanted]
    assert set(needed) <= set(brought)
    assert len(brought) == len(set(brought))
    # What came in one run may go in another: of equal rows all are brought, or none.
    complete = {pairs[number] for number in brought}
    assert brought == [number for number, pair in enumerate(pairs) if pair in complete]
    if kind in ("whole", "huge", "dates") and brought != needed:
        firsts = {pair[0] for pair in wanted}
        every = [number for number, pair in enumerate(pairs) if pair[0] in firsts]
        assert brought == every
        assert len(every) < max(5, worth * len(wanted))


def test_many_rows_are_searched_and_not_passed_over(monkeypatch):
    monkeypatch.setattr(sorted_run, "_scanned", None)
    texts = [f"{number // 2:05d}" for number in range(20_000)]
    rows = pa.table({"k": texts, "n": pa.array(range(20_000), pa.int64())})
    assert looked_up([Run(rows, "k")], ["00007", "09999", "x"], pa.string()) == [
        14,
        15,
        19998,
        19999,
    ]


@pytest.mark.parametrize(("room", "stays"), [(10, False), (10**9, True)])
def test_a_run_for_which_there_is_no_room_lies_in_a_file(monkeypatch, room, stays):
    monkeypatch.setattr(sorted_run, "PARALLEL_ROWS", 100)
    prices = [None, *(Decimal(number) for number in range(500, 0, -1))]
    rows = pa.table({"k": pa.array(prices, pa.decimal128(9, 2)), "n": pa.array(range(501))})
    run = Run(rows, "k", room=room)
    assert (run.resident > 0) == stays
    assert run.rows.column("k").to_pylist() == [None, *sorted(prices[1:])]
    assert looked_up([run], [None, Decimal(500), Decimal(7)], pa.decimal128(9, 2)) == [0, 1, 494]


def test_a_run_stays_in_memory_where_the_disk_has_no_room_either(monkeypatch):
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(sorted_run, "PARALLEL_ROWS", 100)
    monkeypatch.setattr(sorted_run.pa, "OSFile", full)
    run = Run(pa.table({"k": pa.array(range(501))}), "k", room=10)
    assert run.resident > 0
    assert run.rows.column("k").to_pylist() == list(range(501))


def test_many_rows_are_the_same_in_large_pages(monkeypatch):
    rows = pa.table(
        {
            "k": pa.array([3, None, 1, 2], pa.int64()),
            "t": ["", None, "é", "longer text"],
            "b": [True, None, False, True],
            "m": pa.array(
                [[("a", [1, None])], [], None, []], pa.map_(pa.string(), pa.list_(pa.int32()))
            ),
        }
    )
    expected = Run(rows, "k").rows
    monkeypatch.setattr(sorted_run, "PARALLEL_ROWS", 0)
    monkeypatch.setattr(sorted_run, "WIDE", 0)
    moved = Run(rows, "k")
    assert moved.rows.equals(expected)
    assert moved.resident == expected.nbytes
