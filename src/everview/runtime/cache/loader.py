"""Loads relations into the cache in the background, so that no transaction waits for it.

One thread loads one relation after the other, each into a cache of its own. The thread that writes
takes a finished copy over in one step. What came after it was begun is added then, as to any copy.
A relation that cannot be read is left out: who fetches its rows from files meets the damage.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread, get_native_id, main_thread

from everview.runtime.cache.relation_cache import RelationCache
from everview.runtime.protocol import Snapshot
from everview.runtime.workspace import Workspace

AT_ONCE_ROWS, AT_ONCE_BYTES = 50_000, 4 << 20
"""A relation of fewer rows in smaller files is loaded at once: that takes milliseconds."""
AT_ONCE_SHARE = 1 / 4
"""So is what is missing of one, if it is no larger part of what is in memory."""
NICENESS = 10
"""By how much the priority of the thread is lowered, where the system can do that."""


class _Stopped(Exception):  # noqa: N818  (a signal to the thread)
    """What is being loaded is wanted no more."""


@dataclass(slots=True)
class Loader:
    """The relations that are wanted in memory, and those that were loaded meanwhile.

    One thread writes at a time, and it calls all that is public; the thread that loads only takes
    from `_wanted` and adds to `_loaded`, each in one step, so there is no lock.
    """

    cache: RelationCache
    _wanted: deque[tuple[str, Snapshot]] = field(default_factory=deque)
    _loaded: deque[tuple[str, RelationCache | None]] = field(default_factory=deque)
    _asked: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The segments at which each relation was asked for, until it is there; for good if it failed.
    """
    _stopped: bool = False
    _thread: Thread | None = None

    def is_at_hand(self, name: str, snapshot: Snapshot) -> bool:
        """Whether a relation is in memory, or nearly so; else it is asked for."""
        self.take_over()
        missing = self.cache.missing(name, snapshot)
        rows = sum(segment.rows for segment in missing)
        if rows <= AT_ONCE_ROWS and sum(segment.bytes for segment in missing) <= AT_ONCE_BYTES:
            return True
        segments = snapshot.relation(name).segments
        held = sum(segment.rows for segment in segments) - rows
        if rows <= AT_ONCE_SHARE * held:
            return True
        ids = tuple(segment.id for segment in segments)
        asked = self._asked.get(name)
        if asked is None or ids[: len(asked)] != asked:
            self._asked[name] = ids[:1]
            self._wanted.append((name, snapshot))
        return False

    def start(self) -> None:
        """Begin to load what was asked for, beside whatever comes next."""
        if self._wanted and (self._thread is None or not self._thread.is_alive()):
            self._thread = Thread(target=self._load_all, name="everview-loader")
            self._thread.start()

    def take_over(self) -> None:
        """Hold the copies that were loaded since."""
        while self._loaded:
            name, loaded = self._loaded.popleft()
            if loaded is not None:
                self.cache.take_over(name, loaded)
                self._asked.pop(name, None)

    def wait(self) -> None:
        """Wait until all that was asked for is loaded."""
        while self._wanted or (self._thread is not None and self._thread.is_alive()):
            self.start()
            if self._thread is not None:
                self._thread.join()
        self.take_over()

    def stop(self) -> None:
        """Give up what is being loaded; its thread ends by itself, soon."""
        self._stopped = True
        self._wanted.clear()

    def _load_all(self) -> None:
        with suppress(OSError, AttributeError):
            os.setpriority(os.PRIO_PROCESS, get_native_id(), NICENESS)
        with suppress(_Stopped, IndexError), self._workspace() as workspace:
            while self._wanted:
                self._must_go_on()
                name, snapshot = self._wanted.popleft()  # none is left once it is stopped
                loading = self.cache.for_loader(workspace, self._must_go_on)
                self._loaded.append((name, _loaded(loading, name, snapshot)))

    @contextmanager
    def _workspace(self) -> Iterator[Workspace]:
        """A workspace for this thread; the database may have been closed meanwhile."""
        try:
            workspace = self.cache.workspace.sibling()
        except Exception as problem:
            raise _Stopped from problem
        try:
            yield workspace
        finally:
            with suppress(Exception):
                workspace.sql.leave()

    def _must_go_on(self) -> None:
        """End the thread when the cache is dropped, or when the program ends."""
        if self._stopped or not main_thread().is_alive():
            raise _Stopped


def _loaded(cache: RelationCache, name: str, snapshot: Snapshot) -> RelationCache | None:
    """The cache, with a relation in it; None if it cannot be read."""
    try:
        cache.load(name, snapshot)
    except _Stopped:
        raise
    except Exception:
        return None
    return cache
