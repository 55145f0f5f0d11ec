"""The store's errors, S001 to S013, each with its remedy."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from everview.errors import UserError


class _Shown(Protocol):
    @property
    def shown(self) -> str: ...


class _InFolder(Protocol):
    @property
    def folder(self) -> _Shown: ...


P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=_InFolder)

_SYSTEM = {
    errno.ENOSPC: "free some room on the disk, or remove old epochs with retain; then try again",
    errno.EDQUOT: "free some room, or ask for a larger quota; then try again",
    errno.EFBIG: "raise the limit on the size of a file (ulimit -f), then try again",
    errno.EACCES: "give this user the right to read and write the folder, then try again",
    errno.EPERM: "give this user the right to read and write the folder, then try again",
    errno.EROFS: "make the file system writable, or open the store with read_only=True",
    errno.EMFILE: "raise the limit on open files (ulimit -n), or close some; then try again",
    errno.ENFILE: "let the system open more files, or close some; then try again",
    errno.EIO: "check the disk and its connection, then try again",
    errno.ESTALE: "mount the file system again, then try again",
    errno.ENODEV: "mount the file system again, then try again",
    errno.ENOTDIR: "put the folder back that was there, then try again",
    errno.ENOENT: "put back what was removed or moved, then try again",
    errno.ENAMETOOLONG: "choose a shorter path",
    errno.ELOOP: "put a folder or a file in the place of the link",
}
"""What a user can do about what the operating system refuses."""
_WORDS = {os.strerror(number): number for number in _SYSTEM}
_SPOKEN = tuple(
    words for words, number in _WORDS.items() if number not in (errno.ENOENT, errno.EPERM)
)
"""How other programs in the process speak of it; they say the rest of many things."""


def newer_format(path: str, found: int, known: int) -> UserError:
    """A manifest that a later everview wrote."""
    return UserError(
        "S001",
        f"{path} has store format {found}; this everview reads formats up to {known}",
        remedy="upgrade everview",
    )


def damaged_manifest(path: str, reason: str, good: int | None = None) -> UserError:
    """A manifest that is not what was written; `good` is the last epoch that is."""
    return UserError(
        "S002",
        f"manifest {path} is damaged: {reason}",
        remedy=f"restore this file from a backup, or {_at(good)}",
    )


def damaged_segment(path: str, reason: str, good: int | None = None) -> UserError:
    """A segment file that is not what the manifest says; the epoch `good` does not need it."""
    return UserError(
        "S003",
        f"segment file {path} is damaged: {reason}",
        remedy=f"restore this file from a backup, run `everview repair`, or {_at(good)}",
    )


def naming_good(problem: UserError, good: int | None) -> UserError:
    """The error for the newest manifest, with the last epoch that can be opened."""
    if problem.code != "S002" or good is None:
        return problem
    remedy = f"restore this file from a backup, or {_at(good)}"
    return UserError(problem.code, problem.problem, remedy=remedy)


def _at(good: int | None) -> str:
    if good is None:
        return "open the store at an earlier epoch"
    return f"read the last good epoch: open it with epoch={good}, or a command with --epoch {good}"


def no_store(location: str, reason: str = "there is no store there") -> UserError:
    """Nothing to open."""
    return UserError(
        "S004",
        f"cannot open {location}: {reason}",
        remedy="check the path, or create a store there first",
    )


def not_a_store(location: str, reason: str) -> UserError:
    """A folder that belongs to somebody else."""
    return UserError(
        "S005",
        f"cannot create a store at {location}: {reason}",
        remedy="choose an empty or a new folder",
    )


def not_retained(wanted: str, oldest: int, newest: int, remedy: str) -> UserError:
    """History that retention has removed, or that is still to come."""
    return UserError(
        "S006",
        f"{wanted} is not retained; the store holds epochs {oldest} to {newest}",
        remedy=remedy,
    )


def lost_race(epoch: int) -> UserError:
    """A commit that came second."""
    return UserError(
        "S007",
        f"another writer committed epoch {epoch} first",
        remedy="reopen the store and run the transaction again",
    )


def locked(location: str, holder: str) -> UserError:
    """A second writer."""
    return UserError(
        "S008",
        f"the store {location} is open for writing by {holder}",
        remedy="close the other one, or open this one with read_only=True",
    )


def no_exclusive_create(location: str, reason: str) -> UserError:
    """A filesystem on which the switch to the next epoch is not atomic."""
    return UserError(
        "S009",
        f"cannot commit to {location}: {reason}, so two writers could both win",
        remedy="keep the store on a local disk, or open it with single_writer=True "
        "and see to it that only one process ever writes",
    )


def out_of_reach(location: str | None, problem: str, number: int) -> UserError:
    """What the operating system refuses; nothing is committed then."""
    where = "" if location is None else f"the store {location}: "
    return UserError("S010", f"{where}{problem}", remedy=_SYSTEM[number])


def perhaps_lost(location: str, epoch: int, problem: OSError) -> UserError:
    """An epoch that everybody sees, and that a power cut may still take away."""
    return UserError(
        "S010",
        f"the store {location}: epoch {epoch} is committed, but may not be on disk: "
        f"{problem.strerror or problem}",
        remedy="do not run the transaction again; check the disk, and commit another one",
    )


def rows_lost(location: str, written: int, seen: int) -> UserError:
    """Executors wrote rows into files that the driver does not see, or not all of them."""
    return UserError(
        "S011",
        f"executors wrote {written:,} rows to {location}, and the driver sees {seen:,} of them",
        remedy="keep the store where the driver and all executors see the same files: on a shared "
        "disk or an object store, not on the local disk of each; nothing was committed",
    )


def a_link(location: str, path: str) -> UserError:
    """A symbolic link in the place of a folder or a file of ours: it may lead anywhere."""
    return UserError(
        "S012",
        f"{location} is not safe to use: {path} is a symbolic link",
        remedy="put a folder or a file of the store in its place; the store's own folder may be "
        "reached by a link",
    )


def unusable_catalog(location: str, reason: str) -> UserError:
    """Declarations that cannot be read, or do not fit what is stored."""
    return UserError(
        "S013",
        f"the declarations of {location} cannot be used: {reason}",
        remedy="open the store at an earlier epoch, or restore it from a backup",
    )


@contextmanager
def translating(location: str, but: type[Exception] = UserError) -> Iterator[None]:
    """Turn what the operating system refuses into an error that says what to do about it.

    What the caller deals with itself, `but`, goes on as it is.
    """
    try:
        yield
    except (UserError, but):
        raise
    except Exception as problem:
        if (found := of_system(problem, location)) is not None:
            raise found from problem
        raise


@contextmanager
def best_effort() -> Iterator[None]:
    """Go on where the operating system refuses what can be done later."""
    try:
        yield
    except UserError as problem:
        if problem.code != "S010":
            raise


def translated(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """A method of the store whose system errors are translated."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with translating(self.folder.shown):
            return method(self, *args, **kwargs)

    return call


def of_system(problem: BaseException, location: str | None) -> UserError | None:
    """The error for what the operating system refused, None if a failure is anything else.

    >>> of_system(OSError(errno.ENOSPC, "No space left on device"), "shop").problem
    'the store shop: No space left on device'
    """
    seen: BaseException | None = problem
    while seen is not None:
        if isinstance(seen, OSError):
            if seen.errno in _SYSTEM:
                where = f": {seen.filename}" if isinstance(seen.filename, str) else ""
                return out_of_reach(location, f"{os.strerror(seen.errno)}{where}", seen.errno)
        elif isinstance(seen, Exception):
            spoken = str(seen)
            for words in _SPOKEN:
                if words in spoken:
                    return out_of_reach(location, words, _WORDS[words])
        seen = seen.__cause__
    return None
