"""No flipped bit in a file of rows becomes an answer, whoever reads the file.

The rows that were written are the oracle: a read gives exactly them, or names the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import everview as ev
from everview.database.database import Database
from everview.database.handle import Handle
from everview.engines.spark.engine import SparkEngine
from everview.errors import UserError
from everview.store import segments
from everview.store.compaction import compact
from everview.store.manifest import Manifest
from everview.store.store import Store
from store.worlds import read_segments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = 24
ROWS = pa.table(
    {
        "k": pa.array(range(COUNT), pa.int64()),
        "i": pa.array([n % 3 if n % 5 else None for n in range(COUNT)], pa.int32()),
        "s": pa.array([f"name {n % 4}" if n % 7 else None for n in range(COUNT)]),
        "f": pa.array([n / 7 for n in range(COUNT)]),
        "d": pa.array([Decimal(n) / 4 for n in range(COUNT)], pa.decimal128(10, 2)),
        "w": pa.array([Decimal(n) for n in range(COUNT)], pa.decimal128(38, 0)),
        "b": pa.array([n % 2 == 0 for n in range(COUNT)]),
        "x": pa.array([bytes([n]) * (n % 3) for n in range(COUNT)], pa.binary()),
        "t": pa.array([datetime(2026, 1, 1 + n, tzinfo=UTC) for n in range(COUNT)]),
        "y": pa.array([date(2026, 1, 1 + n) for n in range(COUNT)]),
        "l": pa.array([list(range(n % 3)) for n in range(COUNT)], pa.list_(pa.int64())),
        "_w": pa.array([1] * COUNT, pa.int64()),
    }
)
HOW = {
    "quick": (False, []),
    "small": (True, []),
    "with dictionaries": (False, ["i", "s", "f", "b", "y"]),
    "small, with dictionaries": (True, ["i", "s", "d", "t"]),
}


@pytest.fixture(params=HOW, ids=list(HOW))
def committed(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Store, Manifest]:
    dense, repeated = HOW[request.param]
    monkeypatch.setattr(segments, "_repeating", lambda _: repeated)
    store = Store.create_or_open(tmp_path / "shop")
    made = store.write_segment("t", 1, ROWS, ("k",), kind="base", dense=dense)
    store.commit(store.latest().advance(epoch=1, created="", bases={"t": made}))
    return store, store.latest()


def flips(path: Path, every: int = 1) -> Iterator[int]:
    """The file with one bit after another flipped, one in every so many bytes."""
    whole = path.read_bytes()
    for at in range(0, len(whole), every):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        yield at
    path.write_bytes(whole)


def unless_damaged(read: Callable[[], Any]) -> Any:
    """What is read, None where a damaged file is named."""
    try:
        return read()
    except UserError as problem:
        if problem.code != "S003":
            raise
        return None


def path_of(store: Store) -> Path:
    (file,) = store.latest().relations["t"].files
    return Path(store.absolute(file.path))


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 13])
def test_a_flipped_bit_is_found_or_harmless(committed: tuple[Store, Manifest], every: int) -> None:
    store, manifest = committed
    harmless = []
    for at in flips(path_of(store), every):
        rows = unless_damaged(
            lambda: read_segments(store, manifest.relations["t"], schema=ROWS.schema)
        )
        if rows is not None:
            assert rows.equals(ROWS), at
            harmless.append(at)
    assert len(harmless) < path_of(store).stat().st_size / every / 10
    assert read_segments(store, manifest.relations["t"], schema=ROWS.schema).equals(ROWS)


def test_what_duckdb_reads_is_proven_whole(committed: tuple[Store, Manifest]) -> None:
    store, manifest = committed
    for _ in flips(path_of(store), 61):
        with pytest.raises(UserError, match="S003"):
            Store.open_existing(store.folder.root).require_sound(manifest.files, pages=False)


def test_what_others_wrote_is_proven_by_its_pages_and_its_tail(tmp_path: Path) -> None:
    store = Store.create_or_open(tmp_path / "shop")
    directory = store.segment_directory("t", 1)
    store.folder.write(f"{directory}/part-0.parquet", segments._parquet(ROWS, {}))
    made = store.adopt_segment("t", 1, directory, ("k",), kind="base", rows=COUNT)
    store.commit(store.latest().advance(epoch=1, created="", bases={"t": made}))
    (file,) = made.files
    assert file.checksum is None
    for at in flips(path_of(store), 31):
        again = Store.open_existing(store.folder.root)
        unless_damaged(partial(again.require_sound, [file], pages=False))
        rows = unless_damaged(partial(again.read_files, [file], schema=ROWS.schema))
        assert rows is None or rows.equals(ROWS), at
    tail = file.bytes - file.tail.bytes if file.tail else 0
    for at in flips(path_of(store), 31):
        if at >= tail:
            with pytest.raises(UserError, match="S003"):
                Store.open_existing(store.folder.root).require_sound([file], pages=True)


def test_compaction_passes_no_damage_on(committed: tuple[Store, Manifest]) -> None:
    store, _ = committed
    more = store.write_segment("t", 2, ROWS, ("k",))
    store.commit(store.latest().advance(epoch=2, created="", changes={"t": more}))
    manifest = store.latest()
    first = Path(store.absolute(manifest.relations["t"].files[0].path))
    expected = [*ROWS.to_pylist(), *ROWS.to_pylist()]
    for at in flips(first, 97):
        folded: list[pa.Table] = []

        def combine(_: str, rows: pa.Table, into: list[pa.Table] = folded) -> pa.Table:
            into.append(rows)
            return rows

        args = store, manifest, ["t"], {"t": ROWS.schema}, combine
        if unless_damaged(partial(compact, *args, created="")) is not None:
            assert folded[0].to_pylist() == expected, at


def test_a_file_without_page_checksums_is_proven_by_its_own(tmp_path: Path) -> None:
    store = Store.create_or_open(tmp_path / "shop")
    made = store.write_segment("t", 1, ROWS, ("k",), kind="base")
    old = replace(made, files=tuple(replace(file, tail=None) for file in made.files))
    store.commit(store.latest().advance(epoch=1, created="", bases={"t": old}))
    for pages in (False, True):
        for _ in flips(path_of(store), 211):
            again = Store.open_existing(store.folder.root)
            with pytest.raises(UserError, match="S003"):
                again.require_sound(old.files, pages=pages)
            with pytest.raises(UserError, match="S003"):
                again.read_files(old.files)
    assert Store.open_existing(store.folder.root).read_files(old.files).num_rows == COUNT


def declared(db: Any) -> None:
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, g INT, v STRING)")
    db.sql("CREATE VIEW n AS SELECT g, COUNT(*) AS n, MIN(v) AS least FROM t GROUP BY g")
    db.insert("t", [(n, n % 7, f"value {n}") for n in range(3_000)])


def answers(db: Any, compacts: bool) -> tuple[list[Any], list[Any]]:
    if compacts:
        db.compact()
    return sorted(db.read("t").rows()), sorted(db.sql("SELECT * FROM n").rows())


def survive(at: Path, right: Any, opened: Callable[[], Any], times: int) -> int:
    """Flip bits in all Parquet files, so many in each; how many flips were told of."""
    told = number = 0

    def read() -> Any:
        with opened() as db:
            return answers(db, number % 2 == 0)

    for path in sorted(at.glob("segments/*/**/*.parquet")):
        for _ in flips(path, every=max(1, path.stat().st_size // times)):
            number += 1
            found = unless_damaged(read)
            assert found is None or found == right
            told += found is None
    return told


def test_embedded_no_damage_becomes_an_answer_or_is_compacted(tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "shop"), engine="duckdb") as db:
        declared(db)
        right = answers(db, compacts=False)
    again = partial(ev.open, str(tmp_path / "shop"), engine="duckdb")
    assert survive(tmp_path / "shop", right, again, 9) > 5


@pytest.mark.spark
def test_on_spark_no_damage_becomes_an_answer(tmp_path: Path, spark: SparkSession) -> None:
    store = Store.create_or_open(tmp_path / "shop")
    with Database(Handle(store, SparkEngine(spark, large_rows=0), None)) as db:
        db.sql("CREATE TABLE t (id BIGINT, v STRING)")
        db.insert("t", [(n, f"value {n % 100}") for n in range(3_000)])
        right = sorted(db.read("t").rows())
    first, *_ = store.latest().relations["t"].files  # executors may write several
    path, told = Path(store.absolute(first.path)), 0
    for beside in path.parent.glob(".*.crc"):
        beside.unlink()  # Hadoop's own checksums, which only its local file system has
    for _ in flips(path, every=path.stat().st_size // 6):
        kept = Store.open_existing(store.folder.root)
        handle = Handle(kept, SparkEngine(spark, large_rows=0), None)
        rows = unless_damaged(Database(handle).read("t").rows)
        assert rows is None or sorted(rows) == right
        told += rows is None
    assert told > 4
