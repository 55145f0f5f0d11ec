"""The agenda of a loop against the definition of what it follows, over rows of many types."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.expr.types import ITERATION, Column
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.recursion.worklist import Worklist
from everview.runtime.vector import chunks
from everview.runtime.vector.chunks import AppendOnlyRows, RowChunks
from everview.runtime.vector.row_ids import RowIds

NAN = float("nan")
LAST = 6

VALUES = {
    "int": (None, 0, -1, 2**31 - 1),
    "bigint": (0, 1, -(2**63)),
    "string": (None, "", "a", "\x00"),
    "double": (None, 0.0, -0.0, NAN, 1.5),
    "float": (None, 0.0, -0.0, NAN, 0.5),
    "decimal(12,2)": (None, Decimal("0.00"), Decimal("-1.50")),
    "boolean": (None, True, False),
    "date": (None, 0, 1),
    "timestamp": (None, 0, 1),
    "array<double>": (None, [], [None], [0.0], [-0.0], [NAN]),
    "struct<a:int,b:string>": (None, {"a": 1, "b": None}, {"a": None, "b": "x"}),
}
SCHEMAS = (
    (),
    *((Column("a", type_),) for type_ in VALUES),
    (Column("a", "int"), Column("b", "int")),
    (Column("a", "bigint"), Column("b", "string")),
    (Column("a", "double"), Column("b", "array<double>")),
)


def _same(value):
    """A value as one that equals those which are the same in SQL."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, list):
        return tuple(map(_same, value))
    return tuple(value.items()) if isinstance(value, dict) else value


def _batch(schema, entries):
    """Weighted rows at iterations as a batch."""
    lifted = arrow_schema((*schema, Column(ITERATION, "int")))
    rows = [(*row, when, weight) for row, when, weight in entries]
    columns = [
        pa.array([row[place] for row in rows], field.type) for place, field in enumerate(lifted)
    ]
    return pa.record_batch(columns, schema=lifted)


def _sums(rows):
    """The weights of rows at iterations, added up, without those that cancel."""
    found = defaultdict(int)
    for *row, when, weight in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        found[tuple(map(_same, row)), when] += weight
    return {place: weight for place, weight in found.items() if weight}


@st.composite
def _entries(draw, schema, most, large=2**60):
    row = st.tuples(*(st.sampled_from(VALUES[column.type]) for column in schema))
    weight = st.sampled_from((-2, -1, 1, 2, -large, large))
    return draw(st.lists(st.tuples(row, st.integers(1, LAST), weight), max_size=most))


def _moved(history, changes):
    """What each iteration adds to whether a row is there, minus what it added before."""
    found = {}
    for row in {row for row, _ in changes}:
        old = new = 0
        for when in range(1, LAST + 1):
            was, is_ = old > 0, new > 0
            old += history.get((row, when), 0)
            new += history.get((row, when), 0) + changes.get((row, when), 0)
            found[row, when] = (new > 0) - is_ - (old > 0) + was
    return {place: weight for place, weight in found.items() if weight}


def _followed(schema, history, early, late):
    """What an agenda finds, where some changes come first and others as late as they can."""
    by = schema[0].name if schema else None
    made, found = Worklist(schema, by), {}
    made.receive(_batch(schema, early))
    for iteration in range(1, LAST + 1):
        made.receive(_batch(schema, [entry for entry in late if entry[1] == iteration]))
        assert made.next is None or made.next >= iteration
        changes = made.changes(iteration)
        if history is None:
            moved = made.pass_on(iteration, changes)
        else:
            fresh = made.unseen(changes[0])
            asked = made.unfetched(fresh)
            made.learn(_batch(schema, _brought(history, by, asked)))
            made.begin(fresh, iteration)
            moved = made.advance(iteration, changes)
        if len(moved[0]):
            found |= _sums(made.at(iteration, moved))
    assert made.next is None
    return found, _sums(made.received())


def _brought(history, by, asked):
    """The entries of rows with the keys that were asked for, all of them without a key."""
    if asked is None or by is None:
        return () if asked is None else history
    keys = set(map(_same, asked.column(by).to_pylist()))
    return [entry for entry in history if _same(_stored(asked.schema, by, entry[0][0])) in keys]


def _stored(schema, by, value):
    """A value as it comes back from a column."""
    return pa.array([value], schema.field(by).type)[0].as_py()


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@given(data=st.data())
def test_rows_of_a_set_come_and_go_when_their_sums_say(schema, data):
    history = data.draw(_entries(schema, 7, large=2**62))
    early, late = data.draw(_entries(schema, 3)), data.draw(_entries(schema, 3))
    old, changes = _sums(_batch(schema, history)), _sums(_batch(schema, early + late))
    assert _followed(schema, history, early, late) == (_moved(old, changes), changes)


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@given(data=st.data())
def test_a_bag_is_its_sum(schema, data):
    early, late = data.draw(_entries(schema, 3)), data.draw(_entries(schema, 3))
    changes = _sums(_batch(schema, early + late))
    assert _followed(schema, None, early, late) == (changes, changes)


@given(sizes=st.lists(st.integers(1, 9), max_size=9), few=st.sampled_from((2, 32)), data=st.data())
def test_pieces_are_taken_from_as_one(sizes, few, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "MAX_CHUNKS", few)
        _take_as_one(sizes, data)


def _take_as_one(sizes, data):
    pieces, end = RowChunks(pa.schema([("n", pa.int64())])), 0
    for size in sizes:
        pieces.append(pa.record_batch({"n": range(end, end + size)}))
        end += size
        wanted = sorted(data.draw(st.sets(st.integers(0, end - 1), min_size=1)))
        assert pieces.take(np.array(wanted)).column("n").to_pylist() == wanted
        first = data.draw(st.integers(0, end))
        later = [n for rows in pieces.since(first) for n in rows.column("n").to_pylist()]
        assert later == list(range(first, end))
    assert pieces.table().column("n").to_pylist() == list(range(end))


@pytest.mark.parametrize("type_", ["int", "bigint", "string"])
@given(data=st.data())
def test_rows_are_those_that_came_whenever_a_null_does(type_, data):
    parts = data.draw(st.lists(st.lists(st.sampled_from((None, 0, 1)), min_size=1), min_size=1))
    schema = arrow_schema((Column("a", type_),))
    made, came = AppendOnlyRows(schema), []
    for part in parts:
        values = [value if value is None or type_ != "string" else str(value) for value in part]
        made.append([pa.array(values, schema.field("a").type)], len(part))
        came += values
        wanted = sorted(data.draw(st.sets(st.integers(0, len(came) - 1), min_size=1)))
        [found] = made.take(np.array(wanted))
        assert found.to_pylist() == [came[place] for place in wanted]
        assert found.type == schema.field("a").type
        again = data.draw(st.lists(st.integers(0, len(came) - 1), min_size=1))
        [found] = made.take_any(np.array(again))
        assert found.to_pylist() == [came[place] for place in again]


def test_there_are_few_pieces_however_many_come():
    pieces = RowChunks(pa.schema([("n", pa.int64())]))
    for number in range(1000):
        pieces.append(pa.record_batch({"n": [number]}))
    assert pieces.table().column("n").num_chunks < 2 * chunks.MAX_CHUNKS


def test_a_text_that_is_no_text_is_told_from_others():
    raw = pa.array([b"\xff", b"\xfe", b"\xff", None], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 4, raw.buffers())
    assert RowIds().of([texts], 4).tolist() == [0, 1, 0, 2]
