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

AT_ONCE = 8
"""So many files are verified at a time."""


@dataclass(slots=True)
class Reader:
    """Files of one place; what was proven of each is remembered, as long as the process lives.

    `good` is the newest epoch that names none of some files, which an error tells.
    """

    folder: Folder
    good: Callable[[Collection[str]], int | None]
    _whole: set[str] = field(default_factory=set)
    _tails: set[str] = field(default_factory=set)
    _staying: set[str] = field(default_factory=set)

    def rows(
        self, file: DataFile, columns: Sequence[str] | None, schema: pa.Schema | None
    ) -> pa.Table:
        """The rows of a file, with the columns and types that are wanted."""
        if file.start is None and file.tail is None:
            self.require_sound([file], pages=False)
        with self._told(file):
            self._must_stay(file)
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
            with ThreadPoolExecutor(AT_ONCE) as pool:
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
                told := errors.of_system(problem, self.folder.shown)
            ):
                raise told from problem
            return str(problem)
        return None

    def _verify(self, file: DataFile, whole: bool) -> None:
        with self._told(file):
            self._must_stay(file)
            checksums.verify_size(self.folder, file)
            if whole:
                checksums.verify_whole(self.folder, file)
            else:
                checksums.verify_tail(self.folder, file)
        (self._whole if whole else self._tails).add(file.path)

    def _must_stay(self, file: DataFile) -> None:
        """A file of the store is no link, and in no linked folder."""
        if file.path not in self._staying:
            self.folder.require_no_links(file.path)
            self._staying.add(file.path)

    @contextmanager
    def _told(self, file: DataFile) -> Iterator[None]:
        """Name a file that is damaged, and the last epoch that does without it."""
        where = self.folder.absolute(file.path)
        try:
            with errors.translating(self.folder.shown):
                yield
        except (Damage, OSError, pa.ArrowException, KeyError) as problem:
            good = self.good({file.path})
            raise errors.damaged_segment(where, str(problem), good) from problem
