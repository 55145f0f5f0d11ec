"""The manifests of a store as they lie on disk: an epoch is a checkpoint and the deltas after it.

The file of an epoch holds its manifest whole, a *checkpoint*, or what it changes of the epoch
before, a *delta*. An epoch is read from the last checkpoint at or before it. Files are created and
never changed, but for one step of retention: a checkpoint takes the place of the delta of the
oldest epoch that stays. Readers may see either, since both stand for the same manifest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from everview.errors import UserError
from everview.store import errors, manifest_codec
from everview.store.filesystem import Folder
from everview.store.manifest import Manifest
from everview.store.manifest_checks import manifest_problem
from everview.store.manifest_delta import Contradiction, Delta, difference, follow

FOLDER = "manifests"
CHECKPOINT_MIN_DELTAS = 32
"""A checkpoint follows so many deltas, and not before they have the bytes of the one before: so
what checkpoints cost does not grow with the store either."""
CHECKPOINT_MAX_DELTAS = 256
"""Who opens a store reads no more files than this."""
READ_ATTEMPTS = 3
"""How often an epoch is read again whose deltas retention removed meanwhile."""
_NAME = re.compile(r"(\d{20})\.json")
_OLDEST = re.compile(r"(\d{20})\.oldest")


def manifest_path(epoch: int) -> str:
    """Zero-padded, so that the order of the names is the order of the epochs."""
    return f"{FOLDER}/{epoch:020d}.json"


def _mark_path(epoch: int) -> str:
    return f"{FOLDER}/{epoch:020d}.oldest"


def _numbers(shape: re.Pattern[str], names: Iterable[str]) -> list[int]:
    return [int(name[1]) for name in map(shape.fullmatch, names) if name]


@dataclass(frozen=True, slots=True)
class Logged:
    """A manifest, the checkpoint that it is read from, and how large that and its deltas are."""

    manifest: Manifest
    checkpoint: int
    checkpoint_bytes: int
    delta_bytes: int = 0

    @property
    def epoch(self) -> int:
        """The epoch of the manifest."""
        return self.manifest.epoch

    @property
    def is_checkpoint(self) -> bool:
        """Whether the epoch is read from its own file alone."""
        return self.checkpoint == self.epoch

    @property
    def wants_checkpoint(self) -> bool:
        """Whether the next epoch is to be written whole."""
        deltas = self.epoch - self.checkpoint
        paid = deltas >= CHECKPOINT_MIN_DELTAS and self.delta_bytes >= self.checkpoint_bytes
        return paid or deltas >= CHECKPOINT_MAX_DELTAS

    def delta_to(self, manifest: Manifest) -> Delta:
        """What the next epoch changes."""
        return difference(self.manifest, manifest, self.checkpoint)

    def encode_next(self, manifest: Manifest) -> tuple[bytes, Logged]:
        """The file of the next epoch, and the epoch as it is read from it."""
        if self.wants_checkpoint:
            content = manifest_codec.encode(manifest)
            return content, Logged(manifest, manifest.epoch, len(content))
        content = manifest_codec.encode(self.delta_to(manifest))
        return content, self.followed_by(manifest, len(content))

    def followed_by(self, manifest: Manifest, delta_bytes: int) -> Logged:
        """The next epoch, whose file holds a delta of so many bytes."""
        read = self.delta_bytes + delta_bytes
        return Logged(manifest, self.checkpoint, self.checkpoint_bytes, read)


@dataclass(frozen=True, slots=True)
class ManifestLog:
    """The epochs of a store that can be read."""

    folder: Folder

    @errors.translated
    def epochs(self) -> list[int]:
        """The epochs, ascending and without gaps.

        A listing is no snapshot: it may miss a new epoch and then the old one that was removed for
        it. So what seems to be empty is listed again.
        """
        return self._retained() or self._retained()

    def read(self, epoch: int, known: Logged | None = None) -> Logged:
        """A retained epoch, if it could be one of ours; no file up to a `known` epoch is read."""
        for _ in range(READ_ATTEMPTS):
            try:
                return self._read(epoch, known)
            except _Missing as problem:
                missing = problem.epoch
                if missing == epoch or epoch not in self.epochs():
                    raise self.not_retained(f"epoch {epoch}", "read one of those epochs") from None
        shown = self.folder.absolute(manifest_path(missing))
        raise errors.damaged_manifest(shown, f"it is missing, and epoch {epoch} needs it")

    def newest(self, known: Logged | None = None) -> Logged:
        """The newest epoch; if it cannot be read, the error names the last one that can."""
        epochs = self.epochs()
        if not epochs:
            raise errors.no_store(self.folder.shown)
        try:
            return self.read(epochs[-1], known)
        except UserError as problem:
            raise errors.naming_good(problem, self.last_without(())) from problem

    def last_without(self, damaged: Collection[str]) -> int | None:
        """The newest epoch that can be read and names none of some files."""
        readable = (
            manifest.epoch
            for manifest in self._newest_first()
            if not any(file.path in damaged for file in manifest.files)
        )
        return next(readable, None)

    def is_document(self, epoch: int) -> bool:
        """Whether the file of an epoch is as it was written, whatever it follows."""
        try:
            self._document(epoch)
        except (UserError, _Missing):
            return False
        return True

    def make_checkpoint(self, epoch: int) -> Logged:
        """See to it that an epoch, and those after it, can be read without those before it."""
        logged = self.read(epoch)
        if logged.is_checkpoint:
            return logged
        content = manifest_codec.encode(logged.manifest)
        self.folder.replace(manifest_path(epoch), content)
        return Logged(logged.manifest, epoch, len(content))

    def drop_before(self, epoch: int) -> list[str]:
        """Delete the manifests of all epochs before one; their paths.

        The oldest go first, so that an epoch without a successor is the newest. On the way there
        are deltas without their checkpoint: a mark, which a crash leaves behind, says from where on
        epochs are retained.
        """
        names = self.folder.names(FOLDER)
        paths = [manifest_path(each) for each in _numbers(_NAME, names) if each < epoch]
        marks = [_mark_path(each) for each in _numbers(_OLDEST, names)]
        if paths:
            self.folder.replace(_mark_path(epoch), b"")
            marks = [*dict.fromkeys([*marks, _mark_path(epoch)])]
        for path in [*paths, *marks]:
            self.folder.remove(path)
        return paths

    def not_retained(self, wanted: str, remedy: str) -> Exception:
        """The error for what retention has removed, or is still to come."""
        epochs = self.epochs()
        if not epochs:
            return errors.no_store(self.folder.shown)
        return errors.not_retained(wanted, epochs[0], epochs[-1], remedy)

    def _retained(self) -> list[int]:
        names = self.folder.names(FOLDER)
        oldest = max(_numbers(_OLDEST, names), default=0)
        return [epoch for epoch in _numbers(_NAME, names) if epoch >= oldest]

    def _read(self, epoch: int, known: Logged | None) -> Logged:
        """The walk back to a checkpoint, or to what is known, and forward again."""
        deltas: list[tuple[Delta, int]] = []
        at, start = epoch, known
        while start is None or start.epoch != at:
            document, size = self._document(at)
            if isinstance(document, Manifest):
                start = Logged(document, at, size)
            else:
                deltas.append((document, size))
                at -= 1
        *_, logged = self._from(start, deltas)
        self._require_sound(logged)
        return logged

    def _from(self, start: Logged, deltas: Sequence[tuple[Delta, int]]) -> Iterator[Logged]:
        """An epoch and those that deltas, the newest first, make of it."""
        logged = start
        yield logged
        for delta, size in reversed(deltas):
            if delta.checkpoint > start.checkpoint and self._is_delta(delta.checkpoint):
                reason = f"it refers to epoch {delta.checkpoint}, which is no checkpoint"
                raise self._damaged(delta.epoch, reason)
            try:
                logged = logged.followed_by(follow(logged.manifest, delta), size)
            except Contradiction as problem:
                raise self._damaged(delta.epoch, str(problem)) from problem
            yield logged

    def _is_delta(self, epoch: int) -> bool:
        try:
            document, _ = self._document(epoch)
        except (UserError, _Missing):
            return False
        return isinstance(document, Delta)

    def _document(self, epoch: int) -> tuple[Manifest | Delta, int]:
        """What the file of an epoch holds, and how many bytes it is."""
        path = manifest_path(epoch)
        self.folder.require_no_links(path)
        try:
            with errors.translating(self.folder.shown, but=FileNotFoundError):
                raw = self.folder.last_line(path)
        except FileNotFoundError:
            raise _Missing(epoch) from None
        except OSError as problem:
            raise self._damaged(epoch, str(problem)) from problem
        document = manifest_codec.decode(raw, self.folder.absolute(path))
        if document.epoch != epoch:
            raise self._damaged(epoch, f"it is that of epoch {document.epoch}")
        if isinstance(document, Delta) and not 0 <= document.checkpoint < epoch:
            reason = f"it refers to epoch {document.checkpoint}, which is not before it"
            raise self._damaged(epoch, reason)
        return document, len(raw)

    def _require_sound(self, logged: Logged) -> None:
        if wrong := manifest_problem(logged.manifest, logged.epoch):
            raise self._damaged(logged.epoch, wrong)

    def _newest_first(self) -> Iterator[Manifest]:
        """The epochs that can be read, newest first; each file is read once."""
        deltas: list[tuple[Delta, int]] = []
        for epoch in reversed(self.epochs()):
            try:
                document, size = self._document(epoch)
            except (UserError, _Missing):
                deltas = []
                continue
            if isinstance(document, Delta):
                deltas.append((document, size))
                continue
            yield from reversed([*self._readable(Logged(document, epoch, size), deltas)])
            deltas = []

    def _readable(
        self, checkpoint: Logged, deltas: Sequence[tuple[Delta, int]]
    ) -> Iterator[Manifest]:
        """A checkpoint and the epochs after it, oldest first, as far as they are sound."""
        try:
            for logged in self._from(checkpoint, deltas):
                self._require_sound(logged)
                yield logged.manifest
        except UserError:
            return

    def _damaged(self, epoch: int, reason: str) -> UserError:
        return errors.damaged_manifest(self.folder.absolute(manifest_path(epoch)), reason)


class _Missing(Exception):  # noqa: N818  (retention may have removed it)
    """An epoch whose file is not there."""

    def __init__(self, epoch: int) -> None:
        super().__init__(epoch)
        self.epoch = epoch
