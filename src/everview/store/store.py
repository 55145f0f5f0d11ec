"""The store: a folder of immutable segments, and one manifest per epoch that names them.

Writing a segment has no effect. `commit` creates the next manifest only if it is absent, and with
that every relation moves to the next epoch at once; a crash before it leaves the old epoch.
Durability: `commit` returns after the manifest and each file it newly names are on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock
from weakref import finalize

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from everview.store import change_file, errors, manifest_codec, segments
from everview.store.checksums import MISSING
from everview.store.filesystem import Location, Place, folders_of, resolve
from everview.store.lock import WriterLock
from everview.store.manifest import DataFile, Kind, Manifest, Opaque, Relation, Segment
from everview.store.manifest_log import Manifests, manifest_path
from everview.store.preallocate import Ahead
from everview.store.pruning import files_for
from everview.store.reader import Reader

_OURS = frozenset(("manifests", "segments", change_file.FOLDER, "lock"))


class Store:
    """Epochs of relations, in one place; safe to read from any number of processes."""

    def __init__(self, place: Place, epoch: int | None = None) -> None:
        self.place = place
        self.manifests = Manifests(place)
        self._pinned = epoch
        self._last: Manifest | None = None
        self._guard = Lock()
        self._committing = False
        """The manifest on disk may be newer than the last one seen: a commit is going on, or was
        ended by an exception."""
        self._lately = change_file.Lately()
        self._syncing: dict[str, Future[None] | None] = {}
        self._lasting: set[str] = set()
        self._reader = Reader(place, self.manifests.last_without)
        self._lock: WriterLock | None = None
        self._ahead = Ahead(place)
        finalize(self, self._ahead.drop)

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
            raise errors.no_store(store.place.shown)
        return store

    def epochs(self) -> list[int]:
        """The epochs that can be read, ascending and without gaps."""
        found = self.manifests.epochs()
        return found if self._pinned is None else [e for e in found if e <= self._pinned]

    @errors.told
    def latest(self) -> Manifest:
        """The newest epoch; costs two existence checks, or none if nobody else may write."""
        if self._pinned is not None:
            self._last = pinned = self.read(self._pinned)
            return pinned
        last, alone = self._last, self._lock is not None and self._lock.is_alone
        if last is not None and ((alone and not self._committing) or self._is_newest(last.epoch)):
            return last
        with self._guard:  # a manifest read before a commit never replaces the one committed
            self._last = last = self.manifests.newest()
        return last

    def read(self, epoch: int) -> Manifest:
        """The manifest of a retained epoch."""
        last = self._last
        if last is not None and last.epoch == epoch:
            return last
        return self.manifests.read(epoch)

    def removed(self, epoch: int) -> Exception | None:
        """The error for a reader of an epoch that retention has removed, None if it has not."""
        if self.place.exists(manifest_path(epoch)):
            return None
        wanted = f"epoch {epoch}, which was being read and has been removed meanwhile,"
        return self.manifests.not_retained(wanted, "read again, from an epoch that is retained")

    def feed(self, name: str, after: int, upto: int | None = None) -> tuple[Segment, ...]:
        """The changes of a relation after one epoch up to another, oldest first.

        value(upto) = value(after) + Σ feed(after, upto), for a relation that existed at `after`.
        """
        newest = self.latest() if upto is None else self.read(upto)
        first = max(after + 1, newest.relations[name].since)
        if first <= newest.epoch and first < self.epochs()[0]:
            remedy = f"read {name} whole, and follow its changes from that epoch on"
            raise self.manifests.not_retained(
                f"the change feed of {name} after epoch {after}", remedy
            )
        walked = (self.read(epoch) for epoch in range(first, newest.epoch + 1))
        return tuple(segment for each in walked for segment in self._told(each, name))

    def _told(self, manifest: Manifest, name: str) -> tuple[Segment, ...]:
        if name in manifest.relations:
            return manifest.relations[name].feed
        path = self.place.absolute(manifest_path(manifest.epoch))
        raise errors.damaged_manifest(path, f"it has no relation {name!r}")

    @errors.told
    def write_segment(
        self,
        relation: str,
        epoch: int,
        table: pa.Table,
        sort_by: Sequence[str] = (),
        *,
        kind: Kind = "change",
        lasting: bool = False,
    ) -> Segment:
        """Write rows as one sorted file under a fresh name, for `epoch` to name.

        Rows that are `lasting` are written smaller, which takes longer.
        """
        made = segments.write(self.place, relation, epoch, table, sort_by, kind, lasting=lasting)
        return self._begun(made)

    @errors.told
    def write_parts(
        self, relation: str, epoch: int, parts: Iterable[pa.Table], sort_by: Sequence[str]
    ) -> Segment:
        """Write the base of a relation that comes in parts, all of its rows in order."""
        return self._begun(
            segments.write_parts(self.place, relation, epoch, parts, sort_by, "base")
        )

    @errors.told
    def write_together(
        self, epoch: int, few: Mapping[str, tuple[pa.Table, Sequence[str]]]
    ) -> dict[str, Segment]:
        """Few rows of each of some relations, sorted, as changes in one file for `epoch` to name.

        They are remembered for a while, so that nobody has to read them.
        """
        made = change_file.write(self.place, epoch, few, self._ahead.path)
        for segment, rows in made.values():
            self._lately.add(segment, rows)
        return {name: segment for name, (segment, _) in made.items()}

    def rows_of(self, segment: Segment, schema: pa.Schema) -> pa.Table:
        """The rows of a segment in their order, from memory where few were written here lately."""
        known = self._lately.rows(segment)
        if known is None:
            return self.read_files(segment.files, schema=schema)
        return known if known.schema.equals(schema) else known.select(schema.names).cast(schema)

    def segment_directory(self, relation: str, epoch: int) -> str:
        """A fresh directory, relative and not yet made, for executors to write into."""
        return f"{segments.folder_of(relation)}/{segments.fresh_id(epoch)}"

    @errors.told
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
        made = segments.adopt(self.place, epoch, directory, sort_by, kind)
        if rows is not None and made.rows != rows:
            raise errors.rows_lost(self.place.absolute(directory), rows, made.rows)
        return self._begun(made)

    def absolute(self, path: str) -> str:
        """A relative path as other programs can open it."""
        return self.place.absolute(path)

    @errors.told
    def commit(self, manifest: Manifest, note: Callable[[], Opaque] | None = None) -> None:
        """Make `manifest` the newest epoch, or raise S007 when another writer was first.

        `note` is asked for when all Parquet files are on disk, so that it can tell how long that
        took. The manifest is put behind what was written together, where the files are local: one
        file with two names is made, and reaches the disk, in the time of one.
        """
        self.place.require_exclusive_create()
        assert manifest.parent == manifest.epoch - 1, "an epoch follows its parent"
        if self.latest().epoch != manifest.parent:
            raise errors.lost_race(manifest.epoch)
        added = self._added(manifest)
        few = next((path for path in added if change_file.is_shared(path)), None)
        shared = few if self.place.is_local else None
        self._make_lasting([path for path in added if path != shared])
        if note is not None:
            manifest = replace(manifest, note=note())
        path, content = manifest_path(manifest.epoch), manifest_codec.encode(manifest)
        self._committing = True
        try:
            if shared is None:
                made = self.place.create(path, content)
            else:
                self._make_folders_lasting([shared])
                made = self._create_from(shared, manifest_codec.following(content), path)
        except OSError as problem:
            self._last = None  # the epoch may be there all the same
            if self.place.exists(path):
                shown = self.place.shown
                raise errors.perhaps_lost(shown, manifest.epoch, problem) from problem
            raise
        if not made:
            self._last = None
            raise errors.lost_race(manifest.epoch)
        self._syncing.clear()
        with self._guard:
            self._last = manifest
        self._committing = False
        self._ahead.passed(manifest.epoch)
        if shared is not None:
            self._ahead.make(manifest.epoch + 1)

    def forget(self) -> None:
        """Drop what is remembered of epochs and files, after an exception at any moment."""
        self._last = None
        self._lately, self._syncing = change_file.Lately(), {}
        self._ahead.drop()

    def close(self) -> None:
        """Leave nothing behind that was made for a commit to come."""
        self._ahead.drop()

    def writer_lock(self) -> WriterLock | None:
        """Take the right to write; None where only `single_writer=True` keeps writers apart."""
        self.place.require_exclusive_create()
        relations = (f"segments/{name}" for name in self.place.names("segments"))
        for folder in ("manifests", change_file.FOLDER, *relations):
            self.place.require_no_links(folder)
        if not self.place.is_local:
            return None
        self._lock = WriterLock(self.place.inside("lock"), self.place.shown)
        self._last = None
        return self._lock

    def read_segments(
        self,
        relation: Relation,
        *,
        columns: Sequence[str] | None = None,
        key: str | None = None,
        keys: pa.Array | None = None,
        schema: pa.Schema | None = None,
    ) -> pa.Table:
        """The weighted rows of all segments, not added up; with `keys`, those whose `key` is in it.

        `schema` gives the columns of a relation without rows, and the types for the others.
        """
        files = files_for(relation, key, keys)
        return self.read_files(files, columns=columns, key=key, keys=keys, schema=schema)

    def read_files(
        self,
        files: Sequence[DataFile],
        *,
        columns: Sequence[str] | None = None,
        key: str | None = None,
        keys: pa.Array | None = None,
        schema: pa.Schema | None = None,
    ) -> pa.Table:
        """The rows of `files`, filtered as `read_segments` does; null is a key like any other."""
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

    @errors.told
    def _create(self, created: str) -> None:
        place = self.place
        if place.is_file(""):
            raise errors.not_a_store(place.shown, "it is a file")
        others = [name for name in place.names("") if name not in _OURS]
        if others:
            raise errors.not_a_store(place.shown, f"it is not empty (it holds {others[0]!r})")
        place.require_exclusive_create()
        place.make_folder("manifests")
        place.make_folder("segments")
        # Losing this race is fine: the winner made the same empty store.
        place.create(manifest_path(0), manifest_codec.encode(Manifest(0, None, created)))
        place.sync_folders(["manifests", ""])

    def _is_newest(self, epoch: int) -> bool:
        """There and without a successor.

        Retention removes the oldest first, so a successor that was removed means that `epoch` was
        too; asking for the successor first makes the answer right under a concurrent removal.
        """
        successor = self.place.exists(manifest_path(epoch + 1))
        return not successor and self.place.exists(manifest_path(epoch))

    def _added(self, manifest: Manifest) -> list[str]:
        """The files of segments that the parent does not name."""
        assert manifest.parent is not None
        before = self.read(manifest.parent).relations
        found: set[str] = set()
        for name, relation in manifest.relations.items():
            old = before.get(name) or Relation(name, ())
            if relation.feed or relation.segments is not old.segments:
                fresh = {*relation.segments, *relation.feed} - {*old.segments, *old.feed}
                found.update(file.path for segment in fresh for file in segment.files)
        return [*found]

    def _begun(self, segment: Segment) -> Segment:
        """A segment whose files are on their way to the disk while the caller goes on."""
        for file in segment.files:
            self._syncing[file.path] = self.place.begin_sync(file.path)
        return segment

    def _create_from(self, shared: str, content: bytes, path: str) -> bool:
        try:
            named = shared == self._ahead.lasting
            return self.place.create_from(shared, content, path, named=named)
        except FileNotFoundError:
            raise errors.damaged_segment(self.place.absolute(shared), MISSING) from None

    def _make_lasting(self, paths: list[str]) -> None:
        """What is in the files, and their names, are on disk after this."""
        for path in paths:
            begun = self._syncing.pop(path, None) or self.place.begin_sync(path)
            with suppress(FileNotFoundError):
                if begun is not None:
                    begun.result()
            if not self.place.is_file(path):
                raise errors.damaged_segment(self.place.absolute(path), MISSING)
        self._make_folders_lasting(paths)

    def _make_folders_lasting(self, paths: list[str]) -> None:
        """The folders that files are in have their names on disk after this."""
        fresh = {folder for path in paths for folder in folders_of(path)} - self._lasting
        self.place.sync_folders({folder.rpartition("/")[0] for folder in fresh})
        self._lasting |= fresh
