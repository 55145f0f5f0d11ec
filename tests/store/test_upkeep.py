"""Compaction changes no value, and retention removes only what nobody names."""

from __future__ import annotations

import os
import random

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.errors import UserError
from everview.store.compaction import compact
from everview.store.compaction_policy import DEFAULT, WHOLE, Policy, next_run
from everview.store.manifest import DataFile, Relation, Segment
from everview.store.retention import retire
from everview.store.store import Store
from store import worlds
from store.worlds import SCHEMA, add, combine, rows, value

SCHEMAS = {"orders": SCHEMA}


def sized(base: int, *changes: int) -> Relation:
    sizes = [("base", base)] if base else []
    sizes += [("change", size) for size in changes]
    return Relation(
        "r", tuple(Segment(k, 1, k, (DataFile("f", size, 1, "c"),)) for k, size in sizes)
    )


def folded(relation: Relation) -> int:
    """Where the suffix to be folded begins."""
    run = next_run(relation, DEFAULT)
    return len(relation.segments) - (len(run.segments) if run else 0)


def grown(store: Store, epochs: int, seed: int = 1) -> None:
    chance = random.Random(seed)
    for _ in range(epochs):
        add(store, rows(*((chance.randrange(3), "a", chance.choice((-1, 1))) for _ in range(4))))


@pytest.mark.parametrize("policy", [WHOLE, Policy(changes=3, growth=1.0)])
def test_compaction_keeps_every_epoch_and_the_feed(store: Store, policy: Policy) -> None:
    grown(store, 12)
    before = {epoch: value(store, store.read(epoch)) for epoch in store.epochs()}
    told = store.feed("orders", 0)
    compacted = compact(
        store, store.latest(), ["orders"], SCHEMAS, combine, created="t", policy=policy
    )
    store.commit(compacted)
    assert store.latest().epoch == 13
    assert value(store, store.latest()) == before[12]
    assert {epoch: value(store, store.read(epoch)) for epoch in before} == before
    assert store.feed("orders", 0) == told
    assert len(compacted.relations["orders"].segments) < 12


def test_compaction_needs_no_file_that_was_written_here_lately(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "together", True)
    grown(store, 5)
    after = value(store, store.latest())
    again = Store.open_existing(store.folder.root)
    for path in {file.path for file in store.latest().files}:
        store.folder.remove(path)
    done = compact(store, store.latest(), ["orders"], SCHEMAS, combine, created="t")
    assert value(store, done) == after
    with pytest.raises(UserError, match=r"S003.*missing"):
        compact(again, again.latest(), ["orders"], SCHEMAS, combine, created="t")


def test_whole_compaction_leaves_one_base_without_equal_rows(store: Store) -> None:
    grown(store, 5)
    done = compact(store, store.latest(), ["orders"], SCHEMAS, combine, created="t")
    (base,) = done.relations["orders"].segments
    assert (base.kind, base.sort_by) == ("base", ("k",))
    assert base.rows == len(value(store, done))


def test_only_the_changes_are_folded_below_a_big_base(store: Store) -> None:
    add(store, rows(*((key, "base", 1) for key in range(99))))
    add(store, rows((99, "base", 1)))
    store.commit(compact(store, store.latest(), ["orders"], SCHEMAS, combine, created="t"))
    grown(store, 4)
    expected = value(store, store.latest())
    done = compact(
        store, store.latest(), ["orders"], SCHEMAS, combine, created="t", policy=Policy(changes=3)
    )
    assert [segment.kind for segment in done.relations["orders"].segments] == ["base", "change"]
    assert done.relations["orders"].segments[0] == store.latest().relations["orders"].segments[0]
    assert done.relations["orders"].feed == ()
    assert value(store, done) == expected


def test_rows_that_cancel_out_leave_nothing(store: Store) -> None:
    add(store, rows((1, "a", 1)))
    add(store, rows((1, "a", -1)))
    done = compact(store, store.latest(), ["orders"], SCHEMAS, combine, created="t")
    assert done.relations["orders"].segments == ()


def test_an_epoch_after_compaction_adds_to_the_base(store: Store) -> None:
    grown(store, 5)
    store.commit(compact(store, store.latest(), ["orders"], SCHEMAS, combine, created="t"))
    expected = value(store, store.latest())
    add(store, rows((7, "x", 2)))
    assert value(store, store.latest()) == expected | {(7, "x"): 2}


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (sized(0), False),
        (sized(1_000_000), False),
        (sized(1_000_000, *[1] * 8), False),
        (sized(1_000_000, *[1] * 9), True),
        (sized(1_000_000, 999_999), False),
        (sized(1_000_000, 1_000_000), True),
        (sized(10, 99_000), False),
        (sized(0, 200_000), False),
        (sized(0, 200_000, 150_000), False),
        (sized(0, 200_000, 200_000), True),
    ],
)
def test_many_pieces_or_much_change_ask_for_compaction(relation: Relation, expected: bool) -> None:
    assert (next_run(relation, DEFAULT) is not None) is expected


def test_a_big_base_is_not_rewritten_for_many_small_changes() -> None:
    assert folded(sized(1_000_000, *[1] * 9)) == 1
    assert folded(sized(1_000_000, 300, *[1] * 8)) == 2


@settings(deadline=None)
@given(st.lists(st.integers(1, 1000), min_size=1, max_size=300))
def test_pieces_stay_few_and_rewriting_stays_cheap(changes: list[int]) -> None:
    sizes: list[int] = []
    base, rewritten = 10**9, 0
    for change in changes:
        sizes.append(change)
        first = folded(sized(base, *sizes)) - 1
        if first < len(sizes):
            rewritten += sum(sizes[first:])
            sizes[first:] = [sum(sizes[first:])]
    assert len(sizes) <= DEFAULT.changes
    assert sum(sizes) == sum(changes)
    assert rewritten <= 8 * sum(changes) + 8 * max(changes) * 8


def test_retention_deletes_only_what_no_kept_epoch_names(store: Store) -> None:
    grown(store, 6)
    store.commit(compact(store, store.latest(), ["orders"], SCHEMAS, combine, created="t"))
    grown(store, 3, seed=2)
    kept = {epoch: value(store, store.read(epoch)) for epoch in (8, 9, 10)}
    deleted = retire(store, keep_epochs=3)
    assert store.epochs() == [8, 9, 10]
    assert {epoch: value(store, store.read(epoch)) for epoch in (8, 9, 10)} == kept
    assert len([path for path in deleted if path.startswith(("segments/", "changes/"))]) == 6
    assert retire(store, keep_epochs=3) == []
    with pytest.raises(UserError, match=r"S006.*8 to 10"):
        store.read(7)


def test_a_change_that_is_only_told_is_kept_as_long_as_its_epoch(store: Store) -> None:
    grown(store, 1)
    base = store.write_segment("orders", 2, rows((5, "e", 1)), ("k",), kind="base")
    told = store.write_segment("orders", 2, rows((6, "f", 1)), ("k",))
    recomputed = store.latest().advance(
        epoch=2, created="t", bases={"orders": base}, changes={"orders": told}
    )
    store.commit(recomputed)
    retire(store, keep_epochs=1)
    assert store.feed("orders", 1) == (told,)
    assert store.read_files(told.files).num_rows == 1


def test_the_feed_refuses_to_leave_out_what_was_retired(store: Store) -> None:
    grown(store, 6)
    retire(store, keep_epochs=3)
    assert [segment.epoch for segment in store.feed("orders", 3)] == [4, 5, 6]
    assert store.feed("orders", 6) == ()
    with pytest.raises(UserError, match=r"S006.*change feed of orders after epoch 2"):
        store.feed("orders", 2)


def test_the_feed_of_a_younger_relation_begins_with_it(store: Store) -> None:
    grown(store, 4)
    add(store, rows((1, "a", 1)), "young")
    retire(store, keep_epochs=1)
    assert [segment.epoch for segment in store.feed("young", 0)] == [5]


def test_a_running_writer_loses_nothing_and_a_crashed_one_is_cleaned_up(store: Store) -> None:
    grown(store, 2)
    crashed = store.write_segment("orders", 2, rows((1, "a", 1)), ("k",)).files[0].path
    running = store.write_segment("orders", 3, rows((1, "a", 1)), ("k",)).files[0].path
    torn = "manifests/.00000000000000000002.json.ab.tmp"
    store.folder.write(torn, b"{")
    store.folder.write("segments/orders/notes.txt", b"not ours")
    assert sorted(retire(store, keep_epochs=9)) == [torn, crashed]
    assert store.folder.exists(running)
    assert store.folder.exists("segments/orders/notes.txt")


def test_a_directory_of_executors_goes_as_a_whole(store: Store) -> None:
    directory = store.segment_directory("orders", 1)
    os.makedirs(store.absolute(directory))
    pq.write_table(rows((1, "a", 1)), store.absolute(f"{directory}/part-0.parquet"))
    store.folder.write(f"{directory}/.part-0.parquet.crc", b"crc")
    segment = store.adopt_segment("orders", 1, directory, ("k",), kind="base")
    store.commit(store.latest().advance(epoch=1, created="t", bases={"orders": segment}))
    assert retire(store, keep_epochs=2) == []
    store.commit(store.latest().advance(epoch=2, created="t", dropped={"orders"}))
    assert directory in retire(store, keep_epochs=1)
    assert not store.folder.exists(directory)
