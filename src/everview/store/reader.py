"""The rows of stored files, refused where a file is not what the manifest says."""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from everview.errors import UserError
from everview.store import checksums, errors, segments
from everview.store.checksums import Damage
from everview.store.filesystem import Folder
from everview.store.manifest import DataFile

VERIFY_THREADS = 8


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

    def rows(
        self, file: DataFile, columns: Sequence[str] | None, schema: pa.Schema | None
    ) -> pa.Table:
        """The rows of a file, with the columns and types that are wanted."""
        if file.start is None and file.tail is None:
            self.require_sound([file], pages=False)
        with self._naming_damage(file):
            self._require_no_link(file)
            rows = segments.read(self.folder, file, columns)
            return rows if schema is None else rows.select(schema.names).cast(schema)

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
        if len(needed) == 1:
            self._verify(*needed[0])
        elif needed:
            with ThreadPoolExecutor(VERIFY_THREADS) as pool:
                list(pool.map(lambda each: self._verify(*each), needed))

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
