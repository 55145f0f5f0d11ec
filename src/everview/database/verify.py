"""Every byte that a store needs, verified: which files are damaged, and what needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from everview.errors import UserError
from everview.store.manifest import DataFile, Manifest
from everview.store.manifest_log import Logged, manifest_path
from everview.store.store import Store

AT_ONCE = 4
"""So many files are read at a time."""

Tell = Callable[[int, int], None]
"""Is told how many files are verified, of how many."""


def silent(_done: int, _of: int) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file that is not as it was written, what is wrong, and the relations and epochs it is of.

    A manifest is of no relation.
    """

    path: str
    reason: str
    relations: tuple[str, ...]
    epochs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Verification:
    """What a store holds, and what of it is damaged."""

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
        """The newest epoch that needs nothing that is damaged."""
        bad = {epoch for each in self.damaged for epoch in each.epochs}
        good = (e for e in range(self.newest, self.oldest - 1, -1) if e not in bad)
        return next(good, None)

    def of_epoch(self, epoch: int) -> tuple[Damaged, ...]:
        """What is damaged of one epoch."""
        return tuple(each for each in self.damaged if epoch in each.epochs)


@dataclass(slots=True)
class _Named:
    """A file with all that name it."""

    file: DataFile
    relations: set[str] = field(default_factory=set)
    epochs: list[int] = field(default_factory=list)


def verify(store: Store, tell: Tell = silent) -> Verification:
    """Read all that the retained epochs of a store need, as it lies on disk now."""
    named: dict[tuple[str, int | None], _Named] = {}
    epochs = store.epochs()
    found = _damaged_manifests(store, range(epochs[0], epochs[-1] + 1), named)
    found += _damaged(store, list(named.values()), tell)
    size = sum(each.file.bytes for each in named.values())
    return Verification(epochs[0], epochs[-1], len(named), size, tuple(found))


def _damaged_manifests(
    store: Store, epochs: Iterable[int], named: dict[tuple[str, int | None], _Named]
) -> list[Damaged]:
    """Each damaged manifest, with all epochs that are read from it; the files that others name."""
    found: list[Damaged] = []
    logged: Logged | None = None
    for epoch in epochs:
        try:
            logged = store.log.read(epoch, logged)
            _name(logged.manifest, named)
        except UserError as problem:
            follows = logged is not None and logged.epoch == epoch - 1
            if not found or follows or not store.log.is_document(epoch):
                found.append(Damaged(manifest_path(epoch), problem.problem, (), (epoch,)))
            else:  # its own file is sound: it needs the one that was found before
                found[-1] = replace(found[-1], epochs=(*found[-1].epochs, epoch))
    return found


def _name(manifest: Manifest, named: dict[tuple[str, int | None], _Named]) -> None:
    for name, relation in manifest.relations.items():
        for segment in (*relation.segments, *relation.feed):
            for file in segment.files:
                each = named.setdefault((file.path, file.start), _Named(file))
                each.relations.add(name)
                if each.epochs[-1:] != [manifest.epoch]:
                    each.epochs.append(manifest.epoch)


def _damaged(store: Store, named: list[_Named], tell: Tell) -> Iterator[Damaged]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        reasons = pool.map(lambda each: store.damage(each.file), named)
        for done, (each, reason) in enumerate(zip(named, reasons, strict=True), start=1):
            if reason is not None:
                relations, epochs = tuple(sorted(each.relations)), tuple(each.epochs)
                yield Damaged(each.file.path, reason, relations, epochs)
            tell(done, len(named))
