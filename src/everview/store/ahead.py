"""The file of the next epoch, made while nobody waits for it.

A new file, and its name on disk, take as long as all else that a small change writes. So as soon as
an epoch is committed an empty file is made for the one after it, named like any file of that epoch:
if it is never used, retention deletes it with whatever else a crash may leave behind.
"""

from __future__ import annotations

import os
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field

from everview.store.place import Place
from everview.store.together import fresh_path


@dataclass(slots=True)
class Ahead:
    """At most one file that is made, or being made, and used for one epoch only."""

    place: Place
    lasting: str | None = None
    """The file last taken that was made ahead: its name is on disk."""
    _path: str = ""
    _epoch: int = -1
    _made: Future[None] | None = None
    _process: int = field(default_factory=os.getpid)

    def make(self, epoch: int) -> None:
        """Begin to make the file of an epoch, where files are ours to make."""
        assert self._made is None, "one at a time"
        self._path, self._epoch = fresh_path(epoch), epoch
        self._made = self.place.begin_file(self._path)

    def path(self, epoch: int) -> str:
        """A file for an epoch: the one that was made for it, else one that is not there yet."""
        made, self._made = self._made, None
        if made is None:
            return fresh_path(epoch)
        usable = made.exception() is None and self._epoch == epoch
        if usable and self.place.is_file(self._path):  # somebody may have taken it away
            self.lasting = self._path
            return self._path
        self._remove()
        return fresh_path(epoch)

    def drop(self) -> None:
        """Delete the file that was made and not taken; again, or in a fork, does nothing."""
        made, self._made = self._made, None
        if made is not None and os.getpid() == self._process:
            made.exception()
            self._remove()

    def _remove(self) -> None:
        with suppress(OSError):
            self.place.remove(self._path)
