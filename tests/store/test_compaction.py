"""Compaction keeps every value, in bounded memory, and rewrites only what a change meets."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everview.errors import UserError
from everview.store import compaction
from everview.store.bounds import UNKNOWN
from everview.store.compaction import compact, fold_all, is_there, replace_runs
from everview.store.compaction_policy import WHOLE, Policy, next_run
from everview.store.manifest import DataFile, Manifest, Relation, Segment
from everview.store.retention import retire
from everview.store.sorted_merge import SortedFile, merge_sorted
from everview.store.store import Store
from store import worlds
from store.worlds import SCHEMA, add, added_up, combine, rows, value

SCHEMAS = {"orders": SCHEMA}
SMALL_FILES = Policy(changes=0, fraction=0.0, least_rows=0, growth=float("inf"), file_rows=10)


@pytest.fixture
def in_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is small enough to be added up at once."""
    monkeypatch.setattr(compaction, "MEMORY_ROWS", 0)
    monkeypatch.setattr(compaction, "BATCH_ROWS", 2)
    monkeypatch.setattr(compaction, "CHUNK_ROWS", 4)


def compacted(store: Store, policy: Policy = WHOLE) -> Manifest:
    done = compact(store, store.latest(), ["orders"], SCHEMAS, combine, created="t", policy=policy)
    store.commit(done)
    again = Store.open_existing(store.folder.root)
    assert again.latest() == done
    assert again.verify(done) == {}
    return done


KEYS = {
    pa.int64(): st.integers(-3, 3),
    pa.string(): st.sampled_from(["", "a", "ä", "b" * 70, "b" * 71, "\U0010ffff"]),
    pa.date32(): st.dates(date(1, 1, 1), date(1, 1, 4)),
    pa.timestamp("us", "UTC"): st.integers(-2, 2).map(
        lambda n: datetime(1970, 1, 1).replace(microsecond=500) if n > 0 else None
    ),
    pa.decimal128(5, 2): st.sampled_from([Decimal("1.00"), Decimal("-1.50"), Decimal("0.01")]),
}


@settings(deadline=None, max_examples=150)
@given(st.data(), st.sampled_from(list(KEYS)), st.integers(1, 3), st.integers(1, 9))
def test_merging_files_gives_every_row_once_and_no_key_in_two_chunks(
    data: st.DataObject, type_: pa.DataType, size: int, most: int
) -> None:
    keys = st.lists(st.one_of(st.none(), KEYS[type_]), max_size=6)
    given_keys = data.draw(st.lists(keys, max_size=5))
    tables = [_sorted(pa.array(each, type_)) for each in given_keys]
    bounded = data.draw(st.booleans())
    files = [_file(table, size, bounded) for table in tables if table.num_rows]
    files.sort(key=lambda f: (f.low is not None, _order(f.low)))
    chunks = list(merge_sorted(files, "k", most))
    expected = sorted(repr(k) for table in tables for k in table["k"].to_pylist())
    assert sorted(repr(k) for chunk in chunks for k in chunk["k"].to_pylist()) == expected
    counts = {k: expected.count(k) for k in expected}
    for key, count in counts.items():
        if count <= most:
            assert sum(key in map(repr, chunk["k"].to_pylist()) for chunk in chunks) == 1


def _sorted(keys: pa.Array) -> pa.Table:
    table = pa.table({"k": keys})
    return table.take(pa.compute.array_sort_indices(keys, null_placement="at_start"))


def _file(table: pa.Table, size: int, bounded: bool) -> SortedFile:
    def batches() -> Iterator[pa.Table]:
        for start in range(0, table.num_rows, size):
            yield table.slice(start, size)

    values = table["k"].drop_null()
    low = values[0] if bounded and len(values) == table.num_rows else None
    return SortedFile(table.num_rows, low, batches)


def _order(low: pa.Scalar | None) -> Any:
    return 0 if low is None else low.as_py()


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_whatever_is_compacted_when_and_how_the_value_stays(data: st.DataObject) -> None:
    entries = st.tuples(
        st.one_of(st.none(), st.integers(0, 9)), st.sampled_from("ab"), st.sampled_from((-1, 1, 2))
    )
    policies = st.builds(
        Policy,
        changes=st.integers(0, 3),
        fraction=st.sampled_from((0.0, 0.5, 1.0)),
        least_rows=st.sampled_from((0, 3, 100)),
        growth=st.sampled_from((0.5, 2.0, float("inf"))),
        file_rows=st.sampled_from((1, 2, 5, 1_000)),
    )
    expected: dict[tuple[object, ...], int] = {}
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        store = Store.create_or_open(Path(folder) / "shop", created="t")
        for _ in range(data.draw(st.integers(1, 8))):
            change = rows(*data.draw(st.lists(entries, min_size=1, max_size=8)))
            add(store, change)
            expected = added_up(pa.concat_tables([_as_table(expected), change]))
            if data.draw(st.booleans()):
                patched.setattr(compaction, "MEMORY_ROWS", data.draw(st.sampled_from((0, 1_000))))
                patched.setattr(compaction, "BATCH_ROWS", data.draw(st.integers(1, 4)))
                patched.setattr(compaction, "CHUNK_ROWS", data.draw(st.integers(1, 9)))
                patched.setattr(compaction, "KEY_ROWS", data.draw(st.integers(1, 9)))
                policy = data.draw(policies)
                done = compact(
                    store, store.latest(), ["orders"], SCHEMAS, combine, created="t", policy=policy
                )
                store.commit(done)
            assert value(store, store.latest()) == expected
            for file in store.latest().relations["orders"].files:
                _must_be_within_bounds(store, file)
        again = Store.open_existing(store.folder.root)
        assert value(again, again.latest()) == expected
        retire(again, keep_epochs=1)
        assert again.verify(again.latest()) == {}
        assert value(again, again.latest()) == expected


def _as_table(value: dict[tuple[object, ...], int]) -> pa.Table:
    return rows(*((*row, weight) for row, weight in value.items()))  # type: ignore[misc]


def _must_be_within_bounds(store: Store, file: DataFile) -> None:
    keys = store.read_files([file], schema=SCHEMA)["k"].to_pylist()
    assert file.has_null or None not in keys
    for key in keys:
        if key is not None and file.low and file.high:
            assert file.low[1] <= key <= file.high[1]


@pytest.mark.usefixtures("in_ranges")
def test_a_run_that_is_folded_range_by_range_is_consolidated(store: Store) -> None:
    for number in range(6):
        add(store, rows(*((key, "a", 1) for key in (None, *range(number, 20)))))
    add(store, rows((3, "a", -4), (7, "gone", 1)))
    add(store, rows((7, "gone", -1)))
    expected = value(store, store.latest())
    (base,) = compacted(store, SMALL_FILES).relations["orders"].segments
    assert value(store, store.latest()) == expected
    assert base.rows == len(expected)
    assert len(base.files) > 1
    assert max(file.rows for file in base.files) <= 20
    ends = [(file.low[1], file.high[1]) for file in base.files if file.low and file.high]
    assert ends == sorted(ends)


@pytest.mark.usefixtures("in_ranges")
def test_a_fold_holds_a_bounded_number_of_rows(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "together", False)  # pieces are small, and read whole
    for number in range(4):
        add(store, rows(*((key, str(number), 1) for key in range(500))))
    most = 0

    def counting(name: str, table: pa.Table) -> pa.Table:
        nonlocal most
        most = max(most, table.num_rows)
        return combine(name, table)

    done = compact(store, store.latest(), ["orders"], SCHEMAS, counting, created="t")
    assert value(store, done) == value(store, store.latest())
    assert most < 50


def based(store: Store, keys: int = 100) -> Relation:
    """A base of files of ten keys each."""
    add(store, rows(*((key, "base", 1) for key in range(keys))))
    add(store, rows((0, "more", 1)))
    return compacted(store, SMALL_FILES).relations["orders"]


def test_only_files_that_a_change_meets_are_rewritten(store: Store) -> None:
    before = based(store)
    assert len(before.files) == 10
    add(store, rows((55, "base", -1), (55, "new", 1)))
    expected = value(store, store.latest())
    after = compacted(store, SMALL_FILES).relations["orders"]
    assert len(after.segments) == 1
    assert value(store, store.latest()) == expected
    assert len(set(before.files) & set(after.files)) == 9
    (base,) = after.segments
    lows = [file.low[1] for file in base.files if file.low]
    assert lows == sorted(lows)


def test_recent_keys_rewrite_nothing_old(store: Store) -> None:
    before = based(store)
    add(store, rows(*((key, "new", 1) for key in range(100, 130))))
    expected = value(store, store.latest())
    after = compacted(store, SMALL_FILES).relations["orders"]
    assert value(store, store.latest()) == expected
    assert set(before.files[:-1]) <= set(after.files), "the last one is small, and so it grows"


def test_a_null_key_meets_the_file_with_null_keys(store: Store) -> None:
    add(store, rows((None, "a", 2), *((key, "base", 1) for key in range(100))))
    add(store, rows((0, "more", 1)))
    before = compacted(store, SMALL_FILES).relations["orders"]
    add(store, rows((None, "a", -2)))
    after = compacted(store, SMALL_FILES).relations["orders"]
    assert (None, "a") not in value(store, store.latest())
    assert after.rows == before.rows - 1
    assert len(set(before.files) & set(after.files)) == len(before.files) - 1


def test_a_file_without_bounds_is_always_taken() -> None:
    def file(name: str, low: int | None, high: int | None) -> DataFile:
        bounds = (None if low is None else ("int", low), None if high is None else ("int", high))
        return DataFile(name, 1_000, 1, None, *bounds, has_null=False)

    known, unknown = file("known", 0, 9), DataFile("unknown", 1_000, 1, None)
    assert (unknown.low, unknown.high, unknown.has_null) == (None, None, UNKNOWN.has_null)
    change = Segment("c", 2, "change", (file("new", 50, 60),), ("k",))
    relation = Relation(
        "r", (Segment("b", 1, "base", (known, file("old", 50, 55), unknown), ("k",)), change)
    )
    run = next_run(relation, Policy(changes=0, fraction=0.0, least_rows=0, file_rows=10))
    assert run is not None
    assert run.kept == (known,)
    other = Relation("r", (Segment("b", 1, "base", (known, unknown), ("v",)), change))
    run = next_run(other, WHOLE)
    assert run is not None
    assert run.kept == (), "it is sorted by something else"


def test_small_files_beside_a_fold_are_taken_with_it(store: Store) -> None:
    based(store)
    for start in range(100, 200, 2):
        add(store, rows((start, "new", 1), (start + 1, "new", 1)))
        compacted(store, SMALL_FILES)
    files = store.latest().relations["orders"].files
    assert len(files) < 10 + 50 / 2
    assert value(store, store.latest()) == {
        **{(key, "base" if key < 100 else "new"): 1 for key in range(200)},
        (0, "more"): 1,
    }


def test_a_run_that_is_gone_is_not_replaced_and_what_came_later_stays(store: Store) -> None:
    for key in range(4):
        add(store, rows((key, "a", 1)))
    run = next_run(store.latest().relations["orders"], WHOLE)
    assert run is not None
    folds = fold_all(store, [run], SCHEMAS, combine, 5)
    add(store, rows((9, "later", 1)))
    expected = value(store, store.latest())
    (fold,) = folds
    assert is_there(store.latest(), fold)
    done = replace_runs(store.latest(), folds, "t", {})
    store.commit(done)
    assert value(store, done) == expected
    assert [each.kind for each in done.relations["orders"].segments] == ["base", "change"]
    assert not is_there(done, fold)
    assert replace_runs(done, folds, "t", {}).relations["orders"].segments == (
        done.relations["orders"].segments
    )


def test_segments_that_somebody_folds_are_left_alone(store: Store) -> None:
    for key in range(9):
        add(store, rows((key, "a", 1)))
    relation = store.latest().relations["orders"]
    run = next_run(relation, Policy(changes=2), after=relation.segments[4].id)
    assert run is not None
    assert run.segments == relation.segments[5:]
    assert next_run(relation, Policy(changes=5), after=relation.segments[4].id) is None


def test_a_fold_that_is_ended_leaves_no_file_behind(store: Store) -> None:
    for key in range(4):
        add(store, rows(*((key * 100 + n, "a", 1) for n in range(30))))
    run = next_run(store.latest().relations["orders"], SMALL_FILES)
    assert run is not None
    before = sorted(str(path) for path in Path(store.folder.root).rglob("*"))
    calls = 0

    def ending() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fold_all(store, [run], SCHEMAS, combine, 5, ending)
    assert sorted(str(path) for path in Path(store.folder.root).rglob("*")) == before


def test_a_file_that_is_lost_before_the_commit_is_not_named(store: Store) -> None:
    for key in range(4):
        add(store, rows((key, "a", 1)))
    before = store.latest()
    done = compact(store, before, ["orders"], SCHEMAS, combine, created="t")
    store.discard(done.relations["orders"].files)
    with pytest.raises(UserError, match=r"S003.*missing"):
        store.commit(done)
    assert store.latest() == before


def test_retention_removes_replaced_files_from_a_directory_that_stays(store: Store) -> None:
    before = based(store)
    add(store, rows((55, "new", 1)))
    after = compacted(store, SMALL_FILES).relations["orders"]
    deleted = retire(store, keep_epochs=1)
    (replaced,) = set(before.files) - set(after.files)
    assert replaced.path in deleted
    assert store.verify(store.latest()) == {}
    assert retire(store, keep_epochs=1) == []


def test_row_groups_of_sorted_files_are_small(store: Store) -> None:
    import pyarrow.parquet as pq

    table = pa.table({"k": range(40_000), "v": ["x"] * 40_000, "_w": [1] * 40_000}, schema=SCHEMA)
    (file,) = store.write_segment("orders", 1, table, ("k",)).files
    metadata = pq.read_metadata(store.absolute(file.path))
    assert [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)] == [
        16_384,
        16_384,
        7_232,
    ]


@pytest.mark.parametrize("recent", [False, True], ids=["random keys", "recent keys"])
def test_a_changed_row_is_rewritten_few_times(tmp_path: Path, recent: bool) -> None:
    """The store alone, with a base that its changes outgrow.

    A file of few rows is mostly its footer, so bytes alone would say little: rows are counted too.
    """
    store = Store.create_or_open(tmp_path / "shop", created="t")
    chance, policy = random.Random(7), Policy(changes=16, least_rows=500, file_rows=1_000)
    add(store, rows(*((key, f"base {key}", 1) for key in range(5_000))))
    changed = written = rewritten = 0
    for number in range(1_000):
        fresh = (5_000 + number * 10 + n for n in range(10))
        keys = fresh if recent else (chance.randrange(100_000) for _ in range(10))
        before = add(store, rows(*((key, f"value {number}", 1) for key in keys)))
        changed += before.relations["orders"].segments[-1].bytes
        if next_run(before.relations["orders"], policy):
            done = compact(store, before, ["orders"], SCHEMAS, combine, created="t", policy=policy)
            named = set(before.relations["orders"].files)
            new = [file for file in done.relations["orders"].files if file not in named]
            written += sum(file.bytes for file in new)
            rewritten += sum(file.rows for file in new)
            store.commit(done)
    assert value(store, store.latest()).keys() >= {(key, f"base {key}") for key in range(5_000)}
    assert written < 10 * changed, written / changed
    assert rewritten < 10 * 10_000, rewritten / 10_000
    assert len(store.latest().relations["orders"].segments) <= 18
