"""Whether what a caller hands over can be an argument at all, before anything is done with it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from operator import index
from typing import Any

from everview.errors import UserError

_LONGEST_PATH = 4096
_SHOWN = 60
"""So many characters of a value are shown in an error."""


def text(parameter: str, value: object) -> str:
    """A text that can be stored and shown: half of a surrogate pair cannot."""
    if not isinstance(value, str):
        raise _wrong(parameter, value, "a string")
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise UserError(
            "X002",
            f"{parameter} holds half of a surrogate pair, which is no character: {shown(value)}",
            remedy="decode the bytes it comes from with the encoding they have",
        )
    return value


def count(parameter: str, value: object, least: int = 0) -> int:
    """A whole number that is not too small; any type that Python counts with will do."""
    if isinstance(value, bool):
        raise _wrong(parameter, value, "a whole number")
    try:
        found = index(value)  # type: ignore[arg-type]
    except Exception:
        raise _wrong(parameter, value, "a whole number") from None
    if found < least:
        raise UserError(
            "X002",
            f"{parameter} is {shown(found)}, and must be at least {least}",
            remedy=f"give a whole number from {least}",
        )
    return found


def flag(parameter: str, value: object) -> bool:
    """True or False, and nothing that only counts as one of them."""
    if not isinstance(value, bool):
        raise _wrong(parameter, value, "True or False")
    return value


def mapping(parameter: str, value: object) -> Mapping[str, Any]:
    """A mapping from names."""
    if not isinstance(value, Mapping):
        raise _wrong(parameter, value, "a dict")
    for name in value:
        text(f"a name in {parameter}", name)
    return value


def location(value: object) -> str:
    """A path or URI that a file system may know."""
    if isinstance(value, os.PathLike) and not isinstance(value, type):
        value = os.fspath(value)
    path = text("location", value)
    if not path.strip() or "\0" in path or len(path) > _LONGEST_PATH:
        raise UserError(
            "X002",
            f"location is empty, too long or holds a NUL: {shown(path)}",
            remedy="give the path of a folder",
        )
    return path


def shown(value: object) -> str:
    """A value as an error shows it, whatever it is.

    >>> shown("a\\nb"), shown([1] * 99)
    ("'a\\\\nb'", 'a list')
    """
    kind = type(value).__name__
    if value is None:
        return "None"
    try:
        told = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    except Exception:
        told = ""
    text_or_number = isinstance(value, str | bytes | int | float)
    if isinstance(value, type):
        return f"the type {value.__name__}"
    if not told or not (text_or_number or (len(told) <= _SHOWN and not set("<\n") & set(told))):
        return f"{'an' if kind[0].lower() in 'aeio' else 'a'} {kind}"
    return told if len(told) <= _SHOWN else f"{told[:_SHOWN]}…"


def named(name: str) -> str:
    """A name as an error shows it: as it is where it is plain, else as a string.

    >>> named("orders"), named("my orders")
    ('orders', "'my orders'")
    """
    return name if name.isidentifier() and len(name) <= _SHOWN else shown(name)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The beginning of a remedy: the known name that is nearest, if any is near.

    >>> did_you_mean("ordres", ["orders", "items"])
    'did you mean orders? '
    """
    spelled = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), list(spelled), 1)
    return f"did you mean {spelled[near[0]]}? " if near else ""


def _wrong(parameter: str, value: object, wanted: str) -> UserError:
    return UserError(
        "X002",
        f"{parameter} must be {wanted}, not {shown(value)}",
        remedy=f"give {wanted}",
    )
