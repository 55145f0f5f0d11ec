"""A delta says exactly what an epoch changes, and costs what it changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.store.manifest import DataFile, Manifest, Relation, Segment
from everview.store.manifest_codec import decode, encode
from everview.store.manifest_delta import Contradiction, Delta, RelationDelta, difference, follow

NAMES = st.sampled_from("abcd")
VALUES = st.integers(0, 3) | st.text("xy", max_size=2) | st.none()
NOTES = st.dictionaries(
    st.sampled_from("kmn"),
    VALUES | st.dictionaries(NAMES, VALUES | st.dictionaries(NAMES, VALUES, max_size=2)),
)

TIMES = st.datetimes(datetime(2026, 1, 1), datetime(2026, 2, 1), timezones=st.just(UTC)).map(
    datetime.isoformat
)
IDS = st.none() | NAMES | st.tuples(NAMES, st.integers(0, 5))


def segment(number: int, kind: Any = "change") -> Segment:
    file = DataFile(f"segments/r/{number}.parquet", 1, 10, "crc32:0", ("int", 1), ("int", 2))
    return Segment(str(number), number // 100, kind, (file,), ("k",))


@st.composite
def next_epochs(draw: st.DrawFn, before: Manifest) -> Manifest:
    """Whatever a pipeline makes of an epoch: changes, bases, drops, compaction, repair."""
    numbers = iter(range(100 * (before.epoch + 1), 100 * (before.epoch + 2)))
    some = st.dictionaries(NAMES, st.just(None), max_size=3)
    after = before.advance(
        epoch=before.epoch + 1,
        created=draw(TIMES),
        changes={name: segment(next(numbers)) for name in draw(some)},
        bases={name: segment(next(numbers), "base") for name in draw(some)},
        dropped=draw(st.lists(NAMES, max_size=2)),
        catalog=draw(st.none() | NOTES),
        note=draw(NOTES),
    ).of_transaction(draw(IDS))
    folded = {
        name: replace(each, segments=(*each.segments[:kept], segment(next(numbers))))
        for name, each in after.relations.items()
        if (kept := draw(st.integers(0, 5))) < len(each.segments)
    }
    return replace(after, relations={**after.relations, **folded})


@given(st.data())
def test_following_a_difference_leads_to_the_next_epoch(data: st.DataObject) -> None:
    before = Manifest(0, None, "t")
    read = before
    for _ in range(5):
        after = data.draw(next_epochs(before))
        delta = difference(before, after, 0)
        raw = encode(delta)
        assert decode(raw, "m") == delta
        read = follow(read, decode(raw, "m"))  # type: ignore[arg-type]
        assert read == after
        assert encode(read) == encode(after)
        new = {f.path for f in after.files} - {f.path for f in before.files}
        assert new <= delta.paths
        before = after


@given(st.data())
def test_no_flipped_bit_of_a_delta_goes_unnoticed(data: st.DataObject) -> None:
    before = Manifest(0, None, "t")
    raw = bytearray(encode(difference(before, data.draw(next_epochs(before)), 0)))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Exception, match="S002"):
        decode(bytes(raw), "m")


def filled(relations: int, segments: int) -> Manifest:
    """An epoch with so many relations of so many segments, and a note about all of them."""
    made = {
        f"r{n}": Relation(f"r{n}", tuple(segment(1000 * n + at) for at in range(segments)))
        for n in range(relations)
    }
    note = {"samples": {"builds": {name: [1, 2.5] for name in made}, "changes": {}}, "kind": "x"}
    return Manifest(9, 8, "t", {"tables": [*made]}, made, note)


def test_a_delta_does_not_grow_with_relations_or_segments() -> None:
    sizes = []
    for relations, segments in ((5, 4), (200, 4), (5, 400), (200, 10)):
        before = filled(relations, segments)
        samples: Any = before.note["samples"]
        after = before.advance(
            epoch=10,
            created="t",
            changes={f"r{n}": segment(n) for n in range(3)},
            note={"samples": {**samples, "changes": {"r1": [1, 1.5]}}, "kind": "transaction"},
        )
        sizes.append(len(encode(difference(before, after, 0))))
        assert follow(before, difference(before, after, 0)) == after
    assert max(sizes) - min(sizes) < 20
    assert max(sizes) < 1_200


BASE = Manifest(1, 0, "t", {}, {"r": Relation("r", (segment(1), segment(2)), (), 0)}, {"k": {}})
WRONG = {
    "another epoch": Delta(3, 0, "t"),
    "a drop of nothing": Delta(2, 0, "t", dropped=("x",)),
    "a drop twice": Delta(2, 0, "t", dropped=("r", "r")),
    "a change of nothing": Delta(2, 0, "t", relations={"x": RelationDelta()}),
    "an unknown segment": Delta(2, 0, "t", relations={"r": RelationDelta(("3",))}),
    "a segment that is not last": Delta(2, 0, "t", relations={"r": RelationDelta(("1",))}),
    "more segments than there are": Delta(
        2, 0, "t", relations={"r": RelationDelta(("1", "1", "2"))}
    ),
    "a new one that loses some": Delta(2, 0, "t", relations={"r": RelationDelta(("2",), since=2)}),
    "no such note": Delta(2, 0, "t", same_notes=(("x",),)),
    "a note without a path": Delta(2, 0, "t", same_notes=((),)),
    "a note that is there": Delta(2, 0, "t", note={"k": {}}, same_notes=(("k",),)),
    "a note too deep": Delta(2, 0, "t", note={"k": 1}, same_notes=(("k", "x"),)),
}


@pytest.mark.parametrize("delta", WRONG.values(), ids=WRONG)
def test_a_delta_of_something_else_contradicts(delta: Delta) -> None:
    with pytest.raises(Contradiction):
        follow(BASE, delta)
