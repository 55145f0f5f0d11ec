"""The rows of stored files, refused where a file is not what the manifest says."""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from typing import TypeVar

import pyarrow as pa

from everview.errors import UserError
from everview.store import checksums, errors, segments
from everview.store.checksums import Damage
from everview.store.filesystem import Folder
from everview.store.footers import Footer, Footers
from everview.store.group_reader import KeyTest, chunks, read_groups
from everview.store.layouts import fitted, name_in, names_in
from everview.store.manifest import DataFile
from everview.store.pruning import Probe, RangeProbe

THREADS = 8
"""So many files are read at a time: waiting for a disk or a network takes no core."""

T = TypeVar("T")
U = TypeVar("U")


class TooManyRows(Exception):  # noqa: N818  (a finding, for whoever set the limit)
    """More rows were found than somebody wants to have in memory."""


@dataclass(frozen=True, slots=True)
class FileGroups:
    """The row groups of a file that may hold wanted rows, and what they take with some columns."""

    file: DataFile
    footer: Footer
    groups: tuple[int, ...]
    bytes: int

    @property
    def chunks(self) -> list[FileGroups]:
        """The same in parts that are decoded at a time."""
        parts = [tuple(part) for part in chunks(self.groups, self.footer.metadata)]
        share = self.bytes // max(1, len(parts))
        return [FileGroups(self.file, self.footer, part, share) for part in parts]


@dataclass(slots=True)
class Reader:
    """Files of one store; what was verified of each is remembered as long as the process lives.

    `good` is the newest epoch that names none of some files, for errors.
    """

    folder: Folder
    good: Callable[[Collection[str]], int | None]
    _whole: set[str] = field(default_factory=set)
    _tails: set[str] = field(default_factory=set)
    _link_free: set[str] = field(default_factory=set)
    _footers: Footers = field(default_factory=Footers)

    def rows(
        self, file: DataFile, columns: Sequence[str] | None, schema: pa.Schema | None
    ) -> pa.Table:
        """The rows of a file, with the columns and types that are wanted."""
        if file.start is None and file.tail is None:
            self.require_sound([file], pages=False)
        with self._naming_damage(file):
            self._require_no_link(file)
            wanted = columns if schema is None else names_in(schema, file.layout)
            rows = segments.read(self.folder, file, wanted)
            if rows.num_rows != file.rows:  # a damaged page may promise fewer
                raise Damage(f"{rows.num_rows} rows were read, not {file.rows}")
            return rows if schema is None else fitted(rows, schema, file.layout)

    def row_groups(
        self, files: Iterable[DataFile], schema: pa.Schema, probe: Probe | RangeProbe | None
    ) -> list[FileGroups]:
        """Where in some Parquet files wanted keys may be, by the statistics of row groups.

        Each file is there as it was, and its footer is verified: the pages are, when they are read.
        """
        every = list(files)
        self.require_sound([file for file in every if file.tail is None], pages=True)
        found = []
        for file, footer in zip(every, _map_parallel(self._footer, every), strict=True):
            count = footer.metadata.num_row_groups
            key = name_in(schema.field(probe.key), file.layout) if probe else None
            ranges = footer.ranges(key) if key is not None else None
            groups = probe.groups_of(ranges, count) if probe else range(count)
            size = int(footer.sizes(names_in(schema, file.layout))[list(groups)].sum())
            if len(groups):
                found.append(FileGroups(file, footer, tuple(map(int, groups)), size))
        return found

    def read_groups(
        self,
        found: Iterable[FileGroups],
        schema: pa.Schema,
        test: KeyTest | None,
        most: float = inf,
        most_bytes: float = inf,
    ) -> pa.Table:
        """The rows of row groups that pass a test, with the columns and types of `schema`.

        They are decoded part by part, on all cores; more than `most` rows, or than `most_bytes` in
        memory, raise `TooManyRows`.
        """
        parts = [part for each in found for part in each.chunks]
        kept = size = 0
        counting = Lock()

        def read(part: FileGroups) -> pa.Table:
            nonlocal kept, size
            if kept > most or size > most_bytes:
                raise TooManyRows
            with self._naming_damage(part.file):
                path = self.folder.inside(part.file.path)
                with self.folder.filesystem.open_input_file(path) as source:
                    parquet = checksums.verified(source, part.footer.metadata)
                    rows = read_groups(parquet, part.groups, schema, test, part.file.layout)
            with counting:
                kept += rows.num_rows
                size += rows.nbytes
            return rows

        tables = _map_parallel(read, parts)
        if kept > most or size > most_bytes:
            raise TooManyRows
        return pa.concat_tables(tables or [schema.empty_table()])

    def _footer(self, file: DataFile) -> Footer:
        """The footer of a file that is there in its whole length."""
        with self._naming_damage(file):
            self._require_no_link(file)
            checksums.verify_size(self.folder, file)
            return self._footers.get(file.path, lambda: self._parsed(file))

    def _parsed(self, file: DataFile) -> Footer:
        with self.folder.filesystem.open_input_file(self.folder.inside(file.path)) as source:
            footer = Footer(checksums.opened(source, file).metadata)
        if file.tail is not None:
            self._tails.add(file.path)
        return footer

    def batches(self, file: DataFile, schema: pa.Schema, size: int) -> Iterator[pa.Table]:
        """The rows of a file, `size` at a time, with the types that are wanted."""
        if file.start is not None:
            yield self.rows(file, None, schema)
            return
        if file.tail is None:
            self.require_sound([file], pages=False)
        with self._naming_damage(file):
            self._require_no_link(file)
            for rows in segments.read_batches(self.folder, file, size):
                yield fitted(rows, schema, file.layout)

    def require_sound(self, files: Iterable[DataFile], *, pages: bool) -> None:
        """Refuse damaged Parquet files before another program reads them; each is asked once.

        `pages` is whether that program verifies pages itself: then their tails are enough.
        """
        needed = [
            (file, not pages or file.tail is None)
            for file in files
            if file.path not in self._whole
            and not (pages and file.tail is not None and file.path in self._tails)
        ]
        _map_parallel(lambda each: self._verify(*each), needed)

    def damage(self, file: DataFile) -> str | None:
        """What is wrong with a file, looked at as a whole and again each time."""
        try:
            self.folder.require_no_links(file.path)
        except UserError as problem:
            return problem.problem
        try:
            checksums.verify_size(self.folder, file)
            checksums.verify_whole(self.folder, file)
        except (Damage, pa.ArrowException) as found:
            return str(found)
        except OSError as problem:
            if problem.errno != errno.EIO and (
                refused := errors.of_system(problem, self.folder.shown)
            ):
                raise refused from problem
            return str(problem)
        return None

    def _verify(self, file: DataFile, whole: bool) -> None:
        with self._naming_damage(file):
            self._require_no_link(file)
            checksums.verify_size(self.folder, file)
            if whole:
                checksums.verify_whole(self.folder, file)
            else:
                checksums.verify_tail(self.folder, file)
        (self._whole if whole else self._tails).add(file.path)

    def _require_no_link(self, file: DataFile) -> None:
        """A file of the store is no link, and in no linked folder."""
        if file.path not in self._link_free:
            self.folder.require_no_links(file.path)
            self._link_free.add(file.path)

    @contextmanager
    def _naming_damage(self, file: DataFile) -> Iterator[None]:
        """Name a file that is damaged, and the last epoch that does without it."""
        where = self.folder.absolute(file.path)
        try:
            with errors.translating(self.folder.shown):
                yield
        except (Damage, OSError, pa.ArrowException, KeyError) as problem:
            good = self.good({file.path})
            raise errors.damaged_segment(where, str(problem), good) from problem


def _map_parallel(read: Callable[[T], U], items: Sequence[T]) -> list[U]:
    """`read` of each item, in order; the first exception ends it."""
    if len(items) < 2:
        return [read(item) for item in items]
    with ThreadPoolExecutor(min(len(items), THREADS)) as pool:
        try:
            return list(pool.map(read, items))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
