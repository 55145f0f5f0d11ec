"""Which files a path names, and that none of them lies where it may not."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from glob import glob, has_magic

from everview.arguments import shown
from everview.errors import UserError
from everview.lang.sql.allowlist.allow import Allow

_SCHEME = re.compile(r"^(?:file:(?://)?)(?=/)")
_REMOTE = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")


def is_remote(path: str) -> bool:
    """Whether a path is a URL of another file system than this machine's."""
    return _REMOTE.match(local(path)) is not None


def local(path: str) -> str:
    """A path without the `file:` of this machine's file system."""
    return _SCHEME.sub("", path)


def must_be_allowed(path: str, allow: Allow, *, writing: bool = False) -> None:
    """Refuse a path that whoever opened the store did not name, links followed."""
    inside = allow.reaches(path)
    if inside and not is_remote(path):
        if writing:  # such a name is no pattern
            inside = _lies_inside(_real_parent(path), allow)
        elif not has_magic(path):
            inside = _lies_inside(os.path.realpath(local(path)), allow)
    if not inside:
        raise UserError(
            "F003",
            f"the path {shown(path)} is not allowed",
            remedy="name it when the store is opened: allow=['files:FOLDER'], --allow files:FOLDER",
        )


def files_at(path: str, allow: Allow | None) -> list[str]:
    """The files of a path, a folder or a pattern, in order; each is where `allow` says.

    Names that begin with `_` or `.` are not rows. No link is followed out of what is allowed.
    """
    given = local(path)
    found = sorted(
        os.path.realpath(each)
        for named in (_matching(given) if has_magic(given) else [given])
        for each in _below(named)
    )
    if not found:
        raise UserError(
            "F004",
            f"there is no file {shown(path)}",
            remedy="check the path; names that begin with _ or . are left out",
        )
    for each in found:
        if allow is not None and not _lies_inside(each, allow):
            raise UserError(
                "F003",
                f"{shown(path)} leads to {shown(each)}, which is not allowed",
                remedy="leave out links that lead elsewhere, or allow that folder too",
            )
    return found


def _matching(pattern: str) -> list[str]:
    """What a pattern matches, without names that are no rows."""
    named = glob(pattern, recursive=True)
    return [each for each in named if not _is_hidden(os.path.basename(each))]


def _below(path: str) -> Iterator[str]:
    if os.path.isfile(path) and not _is_hidden(os.path.basename(path)):
        yield path
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(each for each in folders if not _is_hidden(each))
        yield from (os.path.join(folder, name) for name in names if not _is_hidden(name))


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _lies_inside(real: str, allow: Allow) -> bool:
    prefixes = (os.path.realpath(local(each)) for each in allow.files if not is_remote(each))
    return any(real == each or real.startswith(each.rstrip("/") + "/") for each in prefixes)


def _real_parent(path: str) -> str:
    folder, name = os.path.split(os.path.abspath(local(path)))
    return os.path.join(os.path.realpath(folder), name)
