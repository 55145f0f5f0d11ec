"""Few rows of many relations lie in one file, and each is read as if it had its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from everview.errors import UserError
from everview.store.change_file import (
    CHANGE_MAX_BYTES,
    CHANGE_MAX_ROWS,
    UNMEASURED_MAX_ROWS,
    fits_change_file,
)
from everview.store.compaction import compact
from everview.store.compaction_policy import WHOLE, Policy
from everview.store.manifest import FORMAT, Manifest, Segment
from everview.store.manifest_codec import decode, encode
from everview.store.manifest_log import manifest_path
from everview.store.retention import retire
from everview.store.store import Store
from store.worlds import SCHEMA, combine, read_segments, rows, value

KINDS = pa.schema(
    [
        ("k", pa.int64()),
        ("d", pa.decimal128(38, 10)),
        ("t", pa.date32()),
        ("s", pa.list_(pa.struct([("a", pa.string()), ("b", pa.map_(pa.string(), pa.int32()))]))),
        ("_w", pa.int64()),
    ]
)


@pytest.fixture
def alone(tmp_path: Path) -> Store:
    return Store.create_or_open(tmp_path / "shop", created="2026-01-01T00:00:00Z")


def commit(store: Store, changes: dict[str, Segment]) -> Manifest:
    epoch = store.latest().epoch + 1
    store.commit(store.latest().advance(epoch=epoch, created="t", changes=changes))
    return store.latest()


def files(store: Store) -> list[Path]:
    return [
        path for path in Path(store.folder.root).rglob("*") if path.suffix in (".arrow", ".parquet")
    ]


def test_what_an_epoch_changes_is_one_file_and_read_back_as_it_was(alone: Store) -> None:
    nested = [[{"a": "x", "b": [("y", None)]}, None], [], None]
    given = {
        "orders": rows((2, "b", 1), (None, "c", -1), (1, "a", 2)),
        "nothing": rows(),
        "kinds": pa.table(
            {
                "k": [3, 1, 2],
                "d": [Decimal("1.5"), None, Decimal("-2")],
                "t": [None, date(2026, 1, 1), date(1, 1, 1)],
                "s": nested,
                "_w": [1, 1, -1],
            },
            schema=KINDS,
        ),
    }
    made = alone.write_changes(1, {name: (each, ("k",)) for name, each in given.items()})
    assert len(files(alone)) == 1
    assert made["nothing"].files == ()
    again = Store.open_existing(alone.folder.root)
    commit(alone, made)
    manifest = again.latest()
    assert decode(encode(manifest), "m") == manifest
    assert again.verify(manifest) == {}
    for name in ("orders", "kinds"):
        (segment,) = manifest.relations[name].segments
        for store in (alone, again):
            found = store.rows_of(segment, given[name].schema)
            assert found.sort_by("k") == given[name].sort_by("k")
    assert value(again, manifest) == {(1, "a"): 2, (2, "b"): 1, (None, "c"): -1}
    (piece,) = manifest.relations["orders"].files
    assert (piece.low, piece.high, piece.has_null) == (("int", 1), ("int", 2), True)


def test_keys_and_columns_are_chosen_of_a_piece_as_of_a_file(alone: Store) -> None:
    table = rows((1, "a", 1), (2, "b", 1), (None, "c", 1))
    made = alone.write_changes(1, {"other": (table, ("k",)), "orders": (table, ("k",))})
    relation = commit(alone, made).relations["orders"]
    found = read_segments(alone, relation, columns=["v"], key="k", keys=pa.array([2, None]))
    assert sorted(found["v"].to_pylist()) == ["b", "c"]


def test_a_file_stays_as_long_as_somebody_needs_a_piece_of_it(alone: Store) -> None:
    both = {"orders": (rows((1, "a", 1)), ("k",)), "other": (rows((2, "b", 1)), ("k",))}
    later = {name: (rows((3, "c", 1)), ("k",)) for name in both}
    commit(alone, alone.write_changes(1, both))
    commit(alone, alone.write_changes(2, later))
    alone.commit(
        compact(alone, alone.latest(), ["orders"], {"orders": SCHEMA}, combine, created="t")
    )
    assert not [path for path in retire(alone, 1) if path.startswith("changes/")]
    assert value(alone, alone.latest(), "other") == {(2, "b"): 1, (3, "c"): 1}
    alone.commit(compact(alone, alone.latest(), ["other"], {"other": SCHEMA}, combine, created="t"))
    assert [path for path in retire(alone, 1) if path.startswith("changes/")]
    assert value(alone, alone.latest(), "other") == {(2, "b"): 1, (3, "c"): 1}
    assert value(alone, alone.latest()) == {(1, "a"): 1, (3, "c"): 1}


def test_folded_changes_that_are_few_lie_in_one_file_again_and_bases_in_their_own(
    alone: Store,
) -> None:
    names, schemas = ("orders", "other"), {"orders": SCHEMA, "other": SCHEMA}
    for number in range(4):
        table = rows((number, "a", 1), (0, "b", (-1) ** number))
        commit(
            alone,
            alone.write_changes(alone.latest().epoch + 1, dict.fromkeys(names, (table, ("k",)))),
        )
    before, known = value(alone, alone.latest()), {*files(alone)}
    policy = Policy(changes=1, growth=float("inf"))
    some = compact(alone, alone.latest(), names, schemas, combine, created="t", policy=policy)
    alone.commit(some)
    assert [path.suffix for path in {*files(alone)} - known] == [".arrow"]
    known = {*files(alone)}
    alone.commit(compact(alone, some, names, schemas, combine, created="t", policy=WHOLE))
    assert [path.suffix for path in {*files(alone)} - known] == [".parquet"] * 2
    again = Store.open_existing(alone.folder.root)
    assert all(value(again, again.latest(), name) == before for name in names)


def test_a_manifest_is_read_that_lies_behind_the_rows_of_its_epoch(alone: Store) -> None:
    few = {"orders": (rows((1, "line\nline", 1)), ("k",))}
    manifest = commit(alone, alone.write_changes(1, few))
    (path,) = files(alone)
    old = path.read_bytes() + b"\n" + encode(replace(manifest, format=3))
    path.write_bytes(old)  # up to format 3 both were one file with two names
    Path(alone.absolute(manifest_path(1))).write_bytes(old)
    again = Store.open_existing(alone.folder.root)
    assert again.latest() == replace(manifest, format=3)
    assert value(again, again.latest()) == {(1, "line\nline"): 1}
    assert again.verify(again.latest()) == {}


def test_only_one_of_two_writers_of_few_rows_has_the_epoch(alone: Store) -> None:
    other = Store.open_existing(alone.folder.root)
    both = [
        (store, store.write_changes(1, {"orders": (rows((number, "a", 1)), ("k",))}))
        for number, store in enumerate((alone, other))
    ]
    begun = [(s, s.latest().advance(epoch=1, created="t", changes=made)) for s, made in both]
    other._is_newest = lambda epoch: True  # type: ignore[method-assign]
    for store, manifest in begun[:1]:
        store.commit(manifest)
    with pytest.raises(UserError, match="S007"):
        other.commit(begun[1][1])
    assert value(alone, Store.open_existing(alone.folder.root).latest()) == {(0, "a"): 1}
    commit(alone, alone.write_changes(2, {"orders": (rows((7, "a", 1)), ("k",))}))
    assert len(retire(alone, 1)) == 3, "two manifests, and the file of the one that lost"
    assert value(alone, alone.latest()) == {(0, "a"): 1, (7, "a"): 1}


def test_what_is_not_there_or_not_whole_is_refused(alone: Store) -> None:
    table = rows(*((number, "a", 1) for number in range(50)))
    made = alone.write_changes(1, {"orders": (table, ("k",)), "other": (table, ("k",))})
    manifest = commit(alone, made)
    again = Store.open_existing(alone.folder.root)
    (path,) = files(alone)
    end = max((each.start or 0) + each.bytes for each in manifest.files)
    path.write_bytes(path.read_bytes()[: end - 8])
    assert read_segments(again, manifest.relations["orders"]).num_rows == 50
    with pytest.raises(UserError, match=r"S003.*bytes"):
        read_segments(again, manifest.relations["other"])
    assert list(again.verify(manifest)) == [manifest.files[0].path]
    path.unlink()
    with pytest.raises(UserError, match=r"S003.*missing"):
        read_segments(again, manifest.relations["orders"])
    lost = alone.write_changes(2, {"orders": (table, ("k",))})
    for each in files(alone):
        each.unlink()
    with pytest.raises(UserError, match=r"S003.*missing"):
        commit(alone, lost)
    assert alone.latest().epoch == 1


def test_a_store_of_the_format_before_is_read_and_goes_on(alone: Store) -> None:
    segment = alone.write_segment("orders", 1, rows((1, "a", 1)), ("k",))
    new = alone.latest().advance(epoch=1, created="t", changes={"orders": segment})
    alone.folder.create(manifest_path(1), encode(replace(new, format=1)))
    again = Store.open_existing(alone.folder.root)
    assert again.latest().format == 1
    commit(again, again.write_changes(2, {"orders": (rows((2, "b", 1)), ("k",))}))
    assert Store.open_existing(alone.folder.root).latest().format == FORMAT
    assert value(again, again.latest()) == {(1, "a"): 1, (2, "b"): 1}


def test_many_rows_and_large_ones_have_files_of_their_own() -> None:
    assert fits_change_file(rows())
    assert fits_change_file(rows(*[(1, "a", 1)] * (CHANGE_MAX_ROWS - 1)))
    assert not fits_change_file(rows(*[(1, "a", 1)] * CHANGE_MAX_ROWS))
    large = "a" * (CHANGE_MAX_BYTES // UNMEASURED_MAX_ROWS)
    assert not fits_change_file(rows(*[(1, large, 1)] * UNMEASURED_MAX_ROWS))
    assert fits_change_file(rows(*[(1, large, 1)] * (UNMEASURED_MAX_ROWS - 1)))
