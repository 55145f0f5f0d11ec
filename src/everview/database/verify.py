"""Verifies every file that a store needs against its checksum, and names what needs the damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from everview.errors import UserError
from everview.store.manifest import DataFile, Manifest
from everview.store.manifest_log import Logged, manifest_path
from everview.store.store import Store

THREADS = 4
"""How many files are read at a time."""

Progress = Callable[[int, int], None]
"""Called with how many files are verified, of how many."""


def no_progress(_done: int, _of: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file that is not as it was written: its path, what is wrong, and who needs it.

    `relations` and `epochs` are those that need the file. A manifest belongs to no relation.
    """

    path: str
    reason: str
    relations: tuple[str, ...]
    epochs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """The retained epochs of a store, the files and bytes that they need, and what is damaged."""

    oldest: int
    newest: int
    files: int
    bytes: int
    damaged: tuple[Damaged, ...]

    @property
    def ok(self) -> bool:
        """Whether every byte that matters is as it was written."""
        return not self.damaged

    @property
    def last_good(self) -> int | None:
        """The newest epoch that needs no damaged file, or None."""
        bad = {epoch for each in self.damaged for epoch in each.epochs}
        good = (e for e in range(self.newest, self.oldest - 1, -1) if e not in bad)
        return next(good, None)

    def of_epoch(self, epoch: int) -> tuple[Damaged, ...]:
        """The damaged files that one epoch needs."""
        return tuple(each for each in self.damaged if epoch in each.epochs)


@dataclass(slots=True)
class _Referenced:
    """A file, with the relations and epochs that refer to it."""

    file: DataFile
    relations: set[str] = field(default_factory=set)
    epochs: list[int] = field(default_factory=list)


def verify(store: Store, on_progress: Progress = no_progress) -> Verification:
    """Read everything that the retained epochs of a store need, as it lies on disk now."""
    files: dict[tuple[str, int | None], _Referenced] = {}
    epochs = store.epochs()
    damaged = _damaged_manifests(store, range(epochs[0], epochs[-1] + 1), files)
    damaged += _damaged(store, list(files.values()), on_progress)
    size = sum(each.file.bytes for each in files.values())
    return Verification(epochs[0], epochs[-1], len(files), size, tuple(damaged))


def _damaged_manifests(
    store: Store, epochs: Iterable[int], files: dict[tuple[str, int | None], _Referenced]
) -> list[Damaged]:
    """Each damaged manifest, with all epochs that are read from it; the files that others name."""
    found: list[Damaged] = []
    logged: Logged | None = None
    for epoch in epochs:
        try:
            logged = store.log.read(epoch, logged)
            _add_references(logged.manifest, files)
        except UserError as problem:
            follows = logged is not None and logged.epoch == epoch - 1
            if not found or follows or not store.log.is_document(epoch):
                found.append(Damaged(manifest_path(epoch), problem.problem, (), (epoch,)))
            else:  # its own file is sound: it needs the one that was found before
                found[-1] = replace(found[-1], epochs=(*found[-1].epochs, epoch))
    return found


def _add_references(manifest: Manifest, files: dict[tuple[str, int | None], _Referenced]) -> None:
    for name, relation in manifest.relations.items():
        for segment in (*relation.segments, *relation.feed):
            for file in segment.files:
                each = files.setdefault((file.path, file.start), _Referenced(file))
                each.relations.add(name)
                if each.epochs[-1:] != [manifest.epoch]:
                    each.epochs.append(manifest.epoch)


def _damaged(store: Store, files: list[_Referenced], on_progress: Progress) -> Iterator[Damaged]:
    with ThreadPoolExecutor(THREADS) as pool:
        reasons = pool.map(lambda each: store.damage(each.file), files)
        for done, (each, reason) in enumerate(zip(files, reasons, strict=True), start=1):
            if reason is not None:
                relations, epochs = tuple(sorted(each.relations)), tuple(each.epochs)
                yield Damaged(each.file.path, reason, relations, epochs)
            on_progress(done, len(files))
