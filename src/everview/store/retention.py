"""What may be deleted: old manifests, and then the files that no remaining manifest names."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta

from everview.store import errors
from everview.store.change_file import FOLDER
from everview.store.manifest import Manifest
from everview.store.segments import epoch_of
from everview.store.store import Store

_TEMPORARY = re.compile(r"\.(\d{20})\..*\.tmp")


@errors.translated
def retire(store: Store, keep_epochs: int, grace: timedelta = timedelta(0)) -> list[str]:
    """Keep the newest `keep_epochs` epochs, and return the paths that were deleted.

    An epoch that was the newest less than `grace` ago is kept too: somebody may be reading it.
    A file of an epoch after the newest is left alone: a running writer may be about to name it.
    The oldest epoch that stays becomes a checkpoint before anything goes, so that no epoch needs a
    manifest that is deleted. Manifests go first and oldest first, so that a crash, at worst, leaves
    files nobody names, which the next call deletes.
    """
    assert keep_epochs >= 1, "the newest epoch always stays"
    epochs = store.epochs()
    old = _replaced_before(store, epochs[:-keep_epochs], grace)
    kept = epochs[len(old) :]
    named = {file.path for epoch in kept for file in store.read(epoch).files}
    stale = _abandoned(store, kept[-1])
    stale += _unnamed(store, kept[-1], named)
    store.make_checkpoint(kept[0])
    manifests = store.log.drop_before(kept[0])
    for path in stale:
        store.folder.remove(path)
    return manifests + stale


def _replaced_before(store: Store, epochs: Sequence[int], grace: timedelta) -> Sequence[int]:
    """Those of the oldest epochs that have not been the newest for some time."""
    if not grace:
        return epochs
    limit = datetime.now(UTC) - grace
    young = (n for n, epoch in enumerate(epochs) if not _is_before(store.read(epoch + 1), limit))
    return epochs[: next(young, len(epochs))]


def _is_before(manifest: Manifest, limit: datetime) -> bool:
    """Whether an epoch was made before a moment; what has no time of ours is taken for young."""
    try:
        made = datetime.fromisoformat(manifest.created)
    except ValueError:
        return False
    return (made if made.tzinfo else made.replace(tzinfo=UTC)) < limit


def _unnamed(store: Store, newest: int, named: Collection[str]) -> list[str]:
    """What was written up to an epoch and is not named: files, directories, files in directories.

    Compaction may keep some of the files of a directory and replace the others.
    """
    entries = {_entry(path) for path in named}
    written = _written(store, newest)
    stale = [path for path in written if path not in entries]
    for directory in (path for path in written if path in entries and path not in named):
        files = (f"{directory}/{name}" for name in store.folder.names(directory))
        stale += [path for path in files if path.endswith(".parquet") and path not in named]
    return stale


def _written(store: Store, newest: int) -> list[str]:
    """The files and directories of segments that belong to an epoch up to `newest`."""
    relations = (f"segments/{relation}" for relation in store.folder.names("segments"))
    return [
        f"{folder}/{name}"
        for folder in (*relations, FOLDER)
        for name in store.folder.names(folder)
        if (epoch := epoch_of(name)) is not None and epoch <= newest
    ]


def _abandoned(store: Store, newest: int) -> list[str]:
    """Temporary manifests that a crash left behind."""
    return [
        f"manifests/{name}"
        for name in store.folder.names("manifests")
        if (found := _TEMPORARY.fullmatch(name)) and int(found[1]) <= newest
    ]


def _entry(path: str) -> str:
    """The file, or the directory of files, directly below the folder it was written into."""
    return "/".join(path.split("/")[:3])
