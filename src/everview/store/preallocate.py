"""The files of the next epochs, made while nobody waits for them.

A new file, and its name on disk, take as long as all else that a small change writes. So as soon as
an epoch is committed empty files are made for those after it, each named like any file of its
epoch: if it is never used, retention deletes it with whatever else a crash may leave behind. They
are made several at a time, and more each time: what is done beside a change holds it up as well.
"""

from __future__ import annotations

import os
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field

from everview.store.change_file import fresh_path
from everview.store.filesystem import Place

MOST = 16
"""So many files are made at once, at most."""


@dataclass(slots=True)
class Ahead:
    """Files that are made, or being made, each of which is used for one epoch only."""

    place: Place
    lasting: str | None = None
    """The file last taken that was made ahead: its name is on disk."""
    _paths: dict[int, str] = field(default_factory=dict)
    _made: Future[None] | None = None
    _many: int = 1
    _process: int = field(default_factory=os.getpid)

    def make(self, epoch: int) -> None:
        """See to it that the file of an epoch is made, where files are ours to make."""
        if epoch not in self._paths and self._is_ours:
            self.drop()
            self._paths = {each: fresh_path(each) for each in range(epoch, epoch + self._many)}
            self._made = self.place.begin_files(self._paths.values())
            self._many = min(2 * self._many, MOST)

    def path(self, epoch: int) -> str:
        """A file for an epoch: the one that was made for it, else one that is not there yet."""
        made = self._paths.pop(epoch, None) if self._is_ours else None
        if made is None or self._made is None:
            return fresh_path(epoch)
        if self._made.exception() is None and self.place.is_file(made):
            self.lasting = made
            return made
        self._remove(made)  # perhaps somebody has taken it away
        return fresh_path(epoch)

    def passed(self, epoch: int) -> None:
        """Delete the files of epochs up to this one that were not taken."""
        for each in [each for each in self._paths if each <= epoch]:
            self._remove(self._paths.pop(each))

    def drop(self) -> None:
        """Delete all files that were not taken; again, or in a fork, does nothing."""
        for path in self._paths.values():
            self._remove(path)
        self._paths, self._made = {}, None

    @property
    def _is_ours(self) -> bool:
        """Whether this is the process that had the files made, and not a fork of it."""
        return os.getpid() == self._process

    def _remove(self, path: str) -> None:
        if self._made is None or not self._is_ours:
            return
        self._made.exception()  # it is there now, or never
        with suppress(OSError):
            self.place.remove(path)
