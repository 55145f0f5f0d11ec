"""How files are made in the folder of a store: atomically, only if absent, and durably.

Atomic creation (`create`) and durability rest on the local filesystem. On any other,
pyarrow offers no exclusive create: `create` checks, writes and moves, which is safe for one
writer and not for two, so it is refused unless the caller vouches with `single_writer=True`.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from everview.store import errors

Location: TypeAlias = str | os.PathLike[str]

LAST_LINE_BYTES = 1 << 16
"""What is read of a file to find its last line; more if the line is longer."""
SYNC_THREADS = 16
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder; every path given to its methods is relative to it, with slashes."""

    filesystem: fs.FileSystem
    root: str
    shown: str
    single_writer: bool = False

    @property
    def is_local(self) -> bool:
        """Whether it has links and syncs, on which atomic creation and durability rest."""
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def inside(self, path: str) -> str:
        """The path as the filesystem knows it."""
        return f"{self.root}/{path}" if path else self.root

    def absolute(self, path: str) -> str:
        """The path as other programs, such as Spark, know it."""
        return f"{self.shown}/{path}" if path else self.shown

    def names(self, folder: str) -> list[str]:
        """What lies directly in a folder, sorted; nothing when there is no such folder."""
        self.require_no_links(folder)
        selector = fs.FileSelector(self.inside(folder), allow_not_found=True)
        return sorted(info.base_name for info in self.filesystem.get_file_info(selector))

    def exists(self, path: str) -> bool:
        """Whether a file or a folder is there."""
        if self.is_local:
            return os.path.exists(self.inside(path))
        return bool(self._info(path).type != fs.FileType.NotFound)

    def is_file(self, path: str) -> bool:
        """Whether a file is there."""
        if self.is_local:
            return os.path.isfile(self.inside(path))
        return bool(self._info(path).type == fs.FileType.File)

    def size(self, path: str) -> int | None:
        """The size of a file in bytes, None when there is none."""
        size: int | None = self._info(path).size
        return size

    def require_no_links(self, path: str) -> None:
        """Refuse a path below this folder on whose way there is a symbolic link, if it is local."""
        at = path if self.is_local else ""
        while at:
            if os.path.islink(self.inside(at)):
                raise errors.a_link(self.shown, at)
            at = parent_of(at)

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it; again does nothing."""
        self.filesystem.create_dir(self.inside(path), recursive=True)

    def last_line(self, path: str) -> bytes:
        """The last line of a file, whatever lies before it."""
        with self.filesystem.open_input_file(self.inside(path)) as file:
            size, span = file.size(), LAST_LINE_BYTES
            while True:
                start = max(0, size - span)
                file.seek(start)
                tail = bytes(file.read(size - start))
                at = tail.rfind(b"\n", 0, -1)
                if at >= 0 or not start:
                    return tail[at + 1 :]
                span *= 4

    def write(self, path: str, content: pa.Buffer | bytes) -> None:
        """Write a file whole, not yet durably; the folder that it is in is made if need be."""
        try:
            self._write(path, content)
        except FileNotFoundError:
            self.make_folder(parent_of(path))
            self._write(path, content)

    def remove(self, path: str) -> None:
        """Delete a file or a folder with all that is in it; what a link leads to stays."""
        if self.is_local:
            self.require_no_links(parent_of(path))
            whole = self.inside(path)
            if os.path.isdir(whole) and not os.path.islink(whole):
                shutil.rmtree(whole)
            else:
                os.unlink(whole)
        elif self.is_file(path):
            self.filesystem.delete_file(self.inside(path))
        else:
            self.filesystem.delete_dir(self.inside(path))

    def create(self, path: str, content: bytes, *, once: Callable[[], None] = lambda: None) -> bool:
        """Create a file with `content` if there is none; True when this call did it.

        Readers see the whole file or no file; of many writers one gets True. The file has no name
        before `once` has returned.
        """
        self.require_exclusive_create()
        temporary = self._write_temporary(path, content)
        if not self.is_local:
            once()
            return self._move(temporary, path)
        try:
            once()
            return self._link(temporary, path)
        finally:
            os.unlink(self.inside(temporary))

    def replace(self, path: str, content: bytes) -> None:
        """Put a file with `content` in the place of another; readers see either one whole."""
        temporary = self._write_temporary(path, content)
        self.filesystem.move(self.inside(temporary), self.inside(path))
        self.sync_folders([parent_of(path)])

    def require_exclusive_create(self) -> None:
        """Refuse a filesystem on which two writers could both win."""
        if not (self.is_local or self.single_writer):
            reason = f"filesystem {self.filesystem.type_name!r} cannot create a file only if absent"
            raise errors.no_exclusive_create(self.shown, reason)

    def begin_sync(self, path: str) -> Future[None] | None:
        """Make a file and its name survive a power cut, while the caller goes on; if it is ours."""
        if not self.is_local:
            return None
        return _sync_pool(os.getpid()).submit(self._fsync, path, parent_of(path))

    def sync_folders(self, folders: Iterable[str]) -> None:
        """Make the names of all that is in some folders survive a power cut."""
        if self.is_local:
            self._fsync(*folders)

    def _fsync(self, *paths: str) -> None:
        for path in paths:
            handle = os.open(self.inside(path), os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _write_temporary(self, path: str, content: bytes) -> str:
        """A file beside another with content for it, on disk where that is ours to do."""
        temporary = f"{parent_of(path)}/.{path.rpartition('/')[2]}.{uuid4().hex}.tmp"
        self.write(temporary, content)
        try:
            if self.is_local:
                self._fsync(temporary)
        except OSError:
            self._discard(temporary)
            raise
        return temporary

    def _write(self, path: str, content: pa.Buffer | bytes) -> None:
        if self.is_local:
            try:
                with open(self.inside(path), "wb") as file:
                    file.write(content)
            except OSError as problem:
                if problem.errno != errno.ENOENT:
                    self._discard(path)
                raise
            return
        with self.filesystem.open_output_stream(self.inside(path), compression=None) as stream:
            stream.write(content)

    def _discard(self, path: str) -> None:
        """Delete what is left of a file that could not be written: it takes room on a full disk."""
        with suppress(OSError):
            os.unlink(self.inside(path))

    def _info(self, path: str) -> fs.FileInfo:
        return self.filesystem.get_file_info(self.inside(path))

    def _link(self, file: str, path: str) -> bool:
        try:
            os.link(self.inside(file), self.inside(path))
        except FileExistsError:
            return False
        except OSError as problem:
            if problem.errno not in _NO_LINKS:
                raise
            raise errors.no_exclusive_create(self.shown, "it has no hard links") from problem
        self._fsync(parent_of(path))
        return True

    def _move(self, temporary: str, path: str) -> bool:
        if self.exists(path):
            self.remove(temporary)
            return False
        self.filesystem.move(self.inside(temporary), self.inside(path))
        return True


def folders_of(path: str) -> list[str]:
    """The folders that a file is in, below that of the store, innermost first.

    >>> folders_of("segments/orders/1.parquet")
    ['segments/orders', 'segments']
    """
    above = path.split("/")[:-1]
    return ["/".join(above[:end]) for end in range(len(above), 0, -1)]


def parent_of(path: str) -> str:
    """The folder that a file or a folder is in."""
    return path.rpartition("/")[0]


@cache
def _sync_pool(_process: int) -> ThreadPoolExecutor:
    """Threads that wait for the disk: files synced at the same time take as long as one.

    Each process has its own: a fork inherits a pool without its threads, which would never sync.
    """
    return ThreadPoolExecutor(SYNC_THREADS, "everview-sync")


def resolve(
    location: Location, filesystem: fs.FileSystem | None = None, *, single_writer: bool = False
) -> Folder:
    """The folder that a path, a URI, or a path on a given filesystem stands for."""
    text = os.fspath(location)
    if filesystem is None and "://" in text:
        try:
            filesystem, path = fs.FileSystem.from_uri(text)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
            raise errors.no_store(text, str(problem)) from problem
    else:
        path = text
    while isinstance(filesystem, fs.SubTreeFileSystem):
        filesystem, path = filesystem.base_fs, f"{filesystem.base_path}{path.lstrip('/')}"
    if filesystem is None or isinstance(filesystem, fs.LocalFileSystem):
        root = os.path.abspath(os.path.expanduser(path))
        return Folder(filesystem or fs.LocalFileSystem(), root, root)
    return Folder(filesystem, path.rstrip("/"), text.partition("?")[0].rstrip("/"), single_writer)
