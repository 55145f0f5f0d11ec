"""The ids that a store keeps answer as if every committed transaction were remembered."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.store.manifest import Manifest
from everview.store.manifest_checks import manifest_problem
from everview.store.manifest_codec import decode, encode
from everview.store.manifest_delta import difference
from everview.store.transaction_ids import ID_SECONDS, NO_IDS, CommittedIds

BEGAN = datetime(2026, 5, 1, tzinfo=UTC)
WRITERS = st.sampled_from(["stream", "loader", ""])
IDS = st.sampled_from("pqr") | st.tuples(WRITERS, st.integers(0, 9))
STEPS = st.lists(st.tuples(IDS, st.integers(0, 4 * 24 * 3600)), max_size=30)


@given(STEPS)
def test_ids_answer_as_a_list_of_all_transactions_would(steps) -> None:
    """What came in an epoch is known: of a writer for ever, of a text for seven days."""
    ids, now, epoch = NO_IDS, BEGAN, 0
    done: list[tuple[object, int, datetime]] = []
    for id_, seconds in steps:
        now += timedelta(seconds=seconds)
        kept = [each for each in done if isinstance(each[0], tuple) or now - each[2] <= KEPT]
        if isinstance(id_, str):
            same = [at for other, at, _ in kept if other == id_]
        else:
            same = [at for o, at, _ in kept if isinstance(o, tuple) and o[0] == id_[0] and o >= id_]
        found = ids.epoch_of(id_)
        if same:
            assert found == same[-1]
        elif found is None or not isinstance(id_, str):
            assert found is None
            epoch += 1
            done.append((id_, epoch, now))
            ids = ids.after(id_, epoch, now.isoformat())
    assert {*ids.writers} == {each[0][0] for each in done if isinstance(each[0], tuple)}


KEPT = timedelta(seconds=ID_SECONDS)


def test_a_text_is_forgotten_when_another_comes_after_seven_days() -> None:
    later = BEGAN + KEPT
    ids = NO_IDS.after("p", 1, BEGAN.isoformat())
    assert ids.after("q", 2, (later - timedelta(seconds=1)).isoformat()).epoch_of("p") == 1
    after = ids.after("q", 2, later.isoformat())
    assert (after.epoch_of("p"), after.epoch_of("q")) == (None, 2)


def test_a_commit_does_not_grow_with_the_epochs_or_the_writers_before_it() -> None:
    sizes = []
    for many in (1, 1_000):
        writers = {f"writer {n}": (n, n) for n in range(many)}
        recent = {f"id {n}": (n, int(BEGAN.timestamp())) for n in range(many)}
        before = Manifest(5_000, 4_999, "t", ids=CommittedIds(writers, recent))
        when = BEGAN.isoformat()
        for id_ in (("writer 0", 7_000), "another"):
            after = before.advance(epoch=5_001, created=when).of_transaction(id_)
            sizes.append(len(encode(difference(before, after, 0))))
    assert sizes[:2] == sizes[2:]
    assert max(sizes) < 250


def test_a_writer_takes_the_same_room_after_any_number_of_transactions() -> None:
    manifest = Manifest(0, None, "t")
    for number in range(100, 200):
        following = manifest.advance(epoch=manifest.epoch + 1, created=BEGAN.isoformat())
        manifest = following.of_transaction(("stream", number))
    assert manifest.ids == CommittedIds({"stream": (199, 100)})
    assert decode(encode(manifest), "m") == manifest


@pytest.mark.parametrize(
    "ids",
    [
        CommittedIds({"w": (-1, 1)}),
        CommittedIds({"w": (1 << 63, 1)}),
        CommittedIds({"w": (1, 2)}),
        CommittedIds({}, {"p": (2, 1)}),
        CommittedIds({}, {"p": (-1, 1)}),
        CommittedIds({}, {"p": (1, -5)}),
    ],
)
def test_ids_that_cannot_be_are_refused(ids: CommittedIds) -> None:
    assert manifest_problem(Manifest(1, 0, "t", ids=ids), 1) is not None
