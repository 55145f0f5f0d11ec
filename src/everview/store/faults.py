"""The store's errors, S001 to S009, each with its remedy."""

from __future__ import annotations

from everview.errors import UserError


def newer_format(path: str, found: int, known: int) -> UserError:
    """A manifest that a later everview wrote."""
    return UserError(
        "S001",
        f"{path} has store format {found}; this everview reads formats up to {known}",
        remedy="upgrade everview",
    )


def damaged_manifest(path: str, reason: str) -> UserError:
    """A manifest that is not what was written."""
    return UserError(
        "S002",
        f"manifest {path} is damaged: {reason}",
        remedy="open the store at an earlier epoch, or restore this file from a backup",
    )


def damaged_segment(path: str, reason: str) -> UserError:
    """A segment file that is not what the manifest says."""
    return UserError(
        "S003",
        f"segment file {path} is damaged: {reason}",
        remedy="restore this file from a backup, or read an epoch that does not name it",
    )


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
