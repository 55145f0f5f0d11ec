"""Damage is found before it becomes an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from everview.errors import UserError
from everview.store.manifest_log import manifest_path
from everview.store.store import Store
from store.worlds import add, read_segments, rows, value


def file_of(store: Store) -> Path:
    return Path(store.absolute(store.latest().relations["orders"].files[0].path))


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_a_damaged_manifest_names_itself_and_the_way_out(store: Store) -> None:
    add(store, rows((1, "a", 1)))
    path = Path(store.absolute(manifest_path(1)))
    flip(path, path.stat().st_size - 200)
    with pytest.raises(UserError) as caught:
        Store.open_existing(store.folder.root).latest()
    assert caught.value.code == "S002"
    assert manifest_path(1) in caught.value.problem
    assert Store.open_existing(store.folder.root).read(0).epoch == 0


def test_a_manifest_that_ends_too_early_is_not_taken_for_one(store: Store) -> None:
    add(store, rows((1, "a", 1)))
    path = Path(store.absolute(manifest_path(1)))
    whole = path.read_bytes()
    for size in (*range(0, len(whole), 37), len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(UserError, match="S002"):
            Store.open_existing(store.folder.root).latest()


def test_a_truncated_segment_is_refused_on_reading(store: Store) -> None:
    manifest = add(store, rows((1, "a", 1)))
    path, (file,) = file_of(store), manifest.files
    path.write_bytes(path.read_bytes()[: (file.start or 0) + file.bytes - 5])
    with pytest.raises(UserError) as caught:
        read_segments(store, manifest.relations["orders"])
    assert caught.value.code == "S003"
    assert path.name in caught.value.problem
    assert "bytes" in store.verify(manifest)[manifest.files[0].path]


def test_a_missing_segment_is_refused_on_reading(store: Store) -> None:
    manifest = add(store, rows((1, "a", 1)))
    file_of(store).unlink()
    with pytest.raises(UserError, match=r"S003.*missing"):
        read_segments(store, manifest.relations["orders"])
    assert list(store.verify(manifest).values()) == ["it is missing"]


def test_a_flipped_byte_in_a_segment_is_found_by_its_checksum(store: Store) -> None:
    manifest = add(store, rows((1, "a", 1)))
    (file,) = manifest.relations["orders"].files
    flip(file_of(store), (file.start or 0) + 30)
    assert "checksum" in store.verify(manifest)[file.path]
    with pytest.raises(UserError, match="S003"):
        value(store, manifest)


def test_a_destroyed_footer_is_damage_not_a_bug(store: Store) -> None:
    manifest = add(store, rows((1, "a", 1)))
    (file,) = manifest.relations["orders"].files
    flip(file_of(store), (file.start or 0) + file.bytes - 1)
    with pytest.raises(UserError, match="S003"):
        read_segments(store, manifest.relations["orders"])
