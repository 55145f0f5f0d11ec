"""The store: a folder of immutable segments, and one manifest per epoch that names them.

Writing a segment has no effect. `commit` creates the next manifest only if it is absent, and with
that every relation moves to the next epoch at once; a crash before it leaves the old epoch.
Durability: `commit` returns after the manifest and each file it newly names are on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from everview.store import change_file, errors, manifest_codec, segments
from everview.store.checksums import MISSING
from everview.store.filesystem import Folder, Location, folders_of, parent_of, resolve
from everview.store.group_reader import KeyTest
from everview.store.lock import WriterLock
from everview.store.manifest import DataFile, Kind, Manifest, Opaque, Segment
from everview.store.manifest_delta import Delta
from everview.store.manifest_log import Logged, ManifestLog, manifest_path
from everview.store.pruning import Probe, RangeProbe
from everview.store.reader import FileGroups, Reader

_OURS = frozenset(("manifests", "segments", change_file.FOLDER, "lock"))


class Store:
    """Epochs of relations, in one folder; safe to read from any number of processes."""

    def __init__(self, folder: Folder, epoch: int | None = None) -> None:
        self.folder = folder
        self.log = ManifestLog(folder)
        self._pinned = epoch
        self._last: Logged | None = None
        """The newest epoch that was seen."""
        self._recent: Logged | None = None
        """The epoch that was last read, so that reading one after the other reads a file each."""
        self._guard = Lock()
        self._committing = False
        """The manifest on disk may be newer than the last one seen: a commit is going on, or was
        ended by an exception."""
        self._written = change_file.RecentRows()
        self._syncing: dict[str, Future[None] | None] = {}
        self._durable_folders: set[str] = set()
        self._durable_files: set[str] = set()
        """Files that are on disk and wait to be named by a commit."""
        self._reader = Reader(folder, self.log.last_without)
        self._lock: WriterLock | None = None

    @classmethod
    def create_or_open(
        cls,
        location: Location,
        *,
        filesystem: fs.FileSystem | None = None,
        single_writer: bool = False,
        created: str | None = None,
    ) -> Store:
        """The store at `location`; a new one begins with the empty epoch 0."""
        store = cls(resolve(location, filesystem, single_writer=single_writer))
        if not store.epochs():
            store._create(created or datetime.now(UTC).isoformat())
        return store

    @classmethod
    def open_existing(
        cls,
        location: Location,
        *,
        filesystem: fs.FileSystem | None = None,
        single_writer: bool = False,
        epoch: int | None = None,
    ) -> Store:
        """The store at `location`, which must be there; with an `epoch`, as it was then."""
        store = cls(resolve(location, filesystem, single_writer=single_writer), epoch)
        if not store.epochs():
            raise errors.no_store(store.folder.shown)
        return store

    def epochs(self) -> list[int]:
        """The epochs that can be read, ascending and without gaps."""
        found = self.log.epochs()
        return found if self._pinned is None else [e for e in found if e <= self._pinned]

    @errors.translated
    def latest(self) -> Manifest:
        """The newest epoch; costs two existence checks, or none if nobody else may write."""
        return self._newest().manifest

    def read(self, epoch: int) -> Manifest:
        """The manifest of a retained epoch."""
        last = self._last
        if last is not None and last.epoch == epoch:
            return last.manifest
        self._recent = recent = self.log.read(epoch, self._recent)
        return recent.manifest

    def removed(self, epoch: int) -> Exception | None:
        """The error for a reader of an epoch that retention has removed, None if it has not."""
        if self.folder.exists(manifest_path(epoch)):
            return None
        wanted = f"epoch {epoch}, which was being read and has been removed meanwhile,"
        return self.log.not_retained(wanted, "read again, from an epoch that is retained")

    def feed(
        self,
        name: str,
        after: int,
        upto: int | None = None,
        formerly: Iterable[tuple[int, str]] = (),
    ) -> tuple[Segment, ...]:
        """The changes of a relation after one epoch up to another, oldest first.

        value(upto) = value(after) + Σ feed(after, upto), for a relation that existed at `after`.
        `formerly` are its names until some epochs, in order.
        """
        names = tuple(formerly)

        def called(epoch: int) -> str:
            return next((former for until, former in names if epoch < until), name)

        newest = self.latest() if upto is None else self.read(upto)
        first = max(after + 1, newest.relations[name].since)
        if first <= newest.epoch and first < self.epochs()[0]:
            remedy = f"read {name} whole, and follow its changes from that epoch on"
            raise self.log.not_retained(f"the change feed of {name} after epoch {after}", remedy)
        walked = (self.read(epoch) for epoch in range(first, newest.epoch + 1))
        fed = ((each, called(each.epoch)) for each in walked)
        return tuple(segment for each, then in fed for segment in self._feed_of(each, then))

    def _feed_of(self, manifest: Manifest, name: str) -> tuple[Segment, ...]:
        if name in manifest.relations:
            return manifest.relations[name].feed
        path = self.folder.absolute(manifest_path(manifest.epoch))
        raise errors.damaged_manifest(path, f"it has no relation {name!r}")

    @errors.translated
    def write_segment(
        self,
        relation: str,
        epoch: int,
        table: pa.Table,
        sort_by: Sequence[str] = (),
        *,
        kind: Kind = "change",
        dense: bool = False,
    ) -> Segment:
        """Write rows as one sorted file under a fresh name, for `epoch` to name.

        `dense` files are smaller and take longer to write.
        """
        new = segments.NewSegment(relation, epoch, tuple(sort_by), kind)
        return self._begin_sync(segments.write(self.folder, new, table, dense=dense))

    @errors.translated
    def write_parts(
        self,
        relation: str,
        epoch: int,
        parts: Iterable[pa.Table],
        sort_by: Sequence[str],
        *,
        kind: Kind = "base",
        dense: bool = False,
    ) -> Segment:
        """Write a segment that comes in parts, all of its rows in order, each as a file."""
        new = segments.NewSegment(relation, epoch, tuple(sort_by), kind)
        return self._begin_sync(segments.write_parts(self.folder, new, parts, dense=dense))

    @errors.translated
    def write_changes(
        self, epoch: int, few: Mapping[str, tuple[pa.Table, Sequence[str]]]
    ) -> dict[str, Segment]:
        """Write small changes, by relation with their sort keys, as the change file of `epoch`.

        Their rows are kept in memory for a while, so that nobody has to read them.
        """
        written = change_file.write(self.folder, epoch, few)
        for segment, rows in written.values():
            self._written.add(segment, rows)
        for path in {file.path for segment, _ in written.values() for file in segment.files}:
            self._syncing[path] = self.folder.begin_sync(path)
        return {name: segment for name, (segment, _) in written.items()}

    def keep_recent(self, max_bytes: int) -> None:
        """Keep so much of the small changes that are written from now on in memory."""
        self._written = change_file.RecentRows(max_bytes)

    @property
    def recent_bytes(self) -> int:
        """How much of the small changes that were just written is in memory."""
        return self._written.bytes

    def rows_of(self, segment: Segment, schema: pa.Schema) -> pa.Table:
        """The rows of a segment in their order, from memory where few were written here lately."""
        known = self._written.rows(segment)
        if known is None or any(file.layout is not None for file in segment.files):
            return self.read_files(segment.files, schema=schema)
        return known if known.schema.equals(schema) else known.select(schema.names).cast(schema)

    def batches(self, file: DataFile, schema: pa.Schema, size: int) -> Iterator[pa.Table]:
        """The weighted rows of a file in their order, `size` at a time."""
        return self._reader.batches(file, schema, size)

    @errors.translated
    def sync(self, segment: Segment) -> None:
        """Wait until the files of a segment are on disk, so that its commit need not."""
        paths = {file.path for file in segment.files}
        self._make_durable(paths)
        self._durable_files |= paths

    def discard(self, files: Iterable[DataFile]) -> None:
        """Delete Parquet files that no epoch names or will name, as far as that is possible."""
        for file in files:
            if file.start is None:
                with suppress(OSError):
                    self.folder.remove(file.path)

    def segment_directory(self, relation: str, epoch: int) -> str:
        """A fresh directory, relative and not yet made, for executors to write into."""
        return f"{segments.folder_of(relation)}/{segments.fresh_id(epoch)}"

    @errors.translated
    def adopt_segment(
        self,
        relation: str,
        epoch: int,
        directory: str,
        sort_by: Sequence[str] = (),
        *,
        kind: Kind = "change",
        rows: int | None = None,
    ) -> Segment:
        """Register what executors wrote into a `segment_directory` of the relation.

        `rows` is how many they say it was: where disks are not shared, fewer or none are here.
        """
        assert directory.startswith(segments.folder_of(relation) + "/"), directory
        new = segments.NewSegment(relation, epoch, tuple(sort_by), kind)
        adopted = segments.adopt(self.folder, new, directory)
        if rows is not None and adopted.rows != rows:
            raise errors.rows_lost(self.folder.absolute(directory), rows, adopted.rows)
        return self._begin_sync(adopted)

    def absolute(self, path: str) -> str:
        """A relative path as other programs can open it."""
        return self.folder.absolute(path)

    @errors.translated
    def commit(self, manifest: Manifest, note: Callable[[], Opaque] | None = None) -> None:
        """Make `manifest` the newest epoch, or raise S007 when another writer was first.

        `note` is asked for when all Parquet files are on disk, so that it can say how long that
        took.
        """
        self.folder.require_exclusive_create()
        assert manifest.parent == manifest.epoch - 1, "an epoch follows its parent"
        parent = self._newest()
        if parent.epoch != manifest.parent:
            raise errors.lost_race(manifest.epoch)
        added = _newly_named(parent.manifest, parent.delta_to(manifest))
        shared = {path for path in added if change_file.is_change_file(path)}
        self._make_durable(added - shared)
        if note is not None:
            manifest = replace(manifest, note=note())
        content, committed = parent.encode_next(manifest)
        self._create_manifest(manifest.epoch, content, shared)
        self._syncing.clear()
        self._durable_files -= added
        with self._guard:
            self._last = committed
        self._committing = False

    def _create_manifest(self, epoch: int, content: bytes, shared: Collection[str]) -> None:
        """The commit itself: whoever creates the file of an epoch has made it.

        The file with its small changes, `shared`, is synced at the same time as its content.
        """
        path = manifest_path(epoch)
        self._committing = True
        try:
            created = self.folder.create(path, content, once=lambda: self._make_durable(shared))
        except OSError as problem:
            self._last = None  # the epoch may be there all the same
            if self.folder.exists(path):
                raise errors.perhaps_lost(self.folder.shown, epoch, problem) from problem
            raise
        if not created:
            self._last = None
            raise errors.lost_race(epoch)

    def make_checkpoint(self, epoch: int) -> None:
        """See to it that an epoch, and those after it, can be read without those before it."""
        made, last = self.log.make_checkpoint(epoch), self._newest()
        with self._guard:
            if self._last is last and last.checkpoint < epoch:
                size = made.checkpoint_bytes
                self._last = replace(last, checkpoint=epoch, checkpoint_bytes=size)

    def forget(self) -> None:
        """Drop what is remembered of epochs and files, after an exception at any moment."""
        self._last, self._recent = None, None
        self._written = change_file.RecentRows(self._written.max_bytes)
        self._syncing = {}

    def writer_lock(self) -> WriterLock | None:
        """Take the right to write; None where only `single_writer=True` keeps writers apart."""
        self.folder.require_exclusive_create()
        relations = (f"segments/{name}" for name in self.folder.names("segments"))
        for folder in ("manifests", change_file.FOLDER, *relations):
            self.folder.require_no_links(folder)
        if not self.folder.is_local:
            return None
        self._lock = WriterLock(self.folder.inside("lock"), self.folder.shown)
        self._last = None
        return self._lock

    def read_files(
        self,
        files: Sequence[DataFile],
        *,
        columns: Sequence[str] | None = None,
        key: str | None = None,
        keys: pa.Array | None = None,
        schema: pa.Schema | None = None,
    ) -> pa.Table:
        """The weighted rows of `files`, not consolidated; with `keys`, those whose `key` is in it.

        `schema` gives the columns where there are no files, and the types for the others. Null is a
        key like any other.
        """
        needed = columns if columns is None or key is None else [*dict.fromkeys([*columns, key])]
        chosen = schema
        if schema is not None and needed is not None:
            chosen = pa.schema([schema.field(name) for name in needed])
        tables = [self._reader.rows(file, needed, chosen) for file in files]
        if chosen is not None:
            tables = tables or [chosen.empty_table()]
        rows = pa.concat_tables(tables, promote_options="default") if tables else pa.table({})
        if key is not None and keys is not None and rows.num_columns:
            rows = rows.filter(pc.is_in(rows[key], value_set=keys.cast(rows[key].type)))
        return rows if columns is None or not rows.num_columns else rows.select(list(columns))

    def row_groups(
        self, files: Iterable[DataFile], schema: pa.Schema, probe: Probe | RangeProbe | None
    ) -> list[FileGroups]:
        """Where in some Parquet files wanted keys may be, as `Reader` tells."""
        return self._reader.row_groups(files, schema, probe)

    def read_groups(
        self,
        found: Iterable[FileGroups],
        schema: pa.Schema,
        test: KeyTest | None,
        most: float = inf,
        most_bytes: float = inf,
    ) -> pa.Table:
        """The rows of row groups that pass a test, not consolidated, as `Reader` gives them."""
        return self._reader.read_groups(found, schema, test, most, most_bytes)

    def require_sound(self, files: Iterable[DataFile], *, pages: bool) -> None:
        """Refuse damaged Parquet files before another program reads them, as `Reader` does."""
        self._reader.require_sound(files, pages=pages)

    def damage(self, file: DataFile) -> str | None:
        """What is wrong with a file, looked at as a whole and again each time."""
        return self._reader.damage(file)

    def verify(self, manifest: Manifest) -> dict[str, str]:
        """Each damaged file of an epoch with what is wrong with it; empty when all is well."""
        found = ((file.path, self.damage(file)) for file in manifest.files)
        return {path: problem for path, problem in found if problem}

    @errors.translated
    def _create(self, created: str) -> None:
        folder = self.folder
        if folder.is_file(""):
            raise errors.not_a_store(folder.shown, "it is a file")
        others = [name for name in folder.names("") if name not in _OURS]
        if others:
            raise errors.not_a_store(folder.shown, f"it is not empty (it holds {others[0]!r})")
        folder.require_exclusive_create()
        folder.make_folder("manifests")
        folder.make_folder("segments")
        # Losing this race is fine: the winner made the same empty store.
        folder.create(manifest_path(0), manifest_codec.encode(Manifest(0, None, created)))
        folder.sync_folders(["manifests", ""])

    def _newest(self) -> Logged:
        last, alone = self._last, self._lock is not None and self._lock.is_alone
        if self._pinned is not None:
            if last is None:
                self._last = last = self.log.read(self._pinned)
            return last
        if last is not None and ((alone and not self._committing) or self._is_newest(last.epoch)):
            return last
        with self._guard:  # a manifest read before a commit never replaces the one committed
            self._last = last = self.log.newest(last)
        return last

    def _is_newest(self, epoch: int) -> bool:
        """There and without a successor.

        Retention removes the oldest first, so a successor that was removed means that `epoch` was
        too; asking for the successor first makes the answer right under a concurrent removal.
        """
        successor = self.folder.exists(manifest_path(epoch + 1))
        return not successor and self.folder.exists(manifest_path(epoch))

    def _begin_sync(self, segment: Segment) -> Segment:
        """A segment whose files are on their way to the disk while the caller goes on."""
        for file in segment.files:
            self._syncing[file.path] = self.folder.begin_sync(file.path)
        return segment

    def _make_durable(self, paths: Iterable[str]) -> None:
        """What is in the files, and their names, are on disk after this."""
        waiting = {
            path: None
            if path in self._durable_files
            else self._syncing.pop(path, None) or self.folder.begin_sync(path)
            for path in paths
        }
        for path, syncing in waiting.items():
            with suppress(FileNotFoundError):
                if syncing is not None:
                    syncing.result()
            if not self.folder.is_file(path):
                raise errors.damaged_segment(self.folder.absolute(path), MISSING)
        fresh = {folder for path in waiting for folder in folders_of(path)} - self._durable_folders
        self.folder.sync_folders({parent_of(folder) for folder in fresh})
        self._durable_folders |= fresh


def _newly_named(before: Manifest, delta: Delta) -> set[str]:
    """The files that an epoch names and the one before it does not."""
    changed = (name for name, each in delta.relations.items() if each.removed)
    named = (before.relations[name].files for name in (*changed, *delta.dropped))
    return delta.paths - {file.path for files in named for file in files}
