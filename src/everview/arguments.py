"""Checks the arguments of public calls, before anything is done with them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from operator import index
from typing import Any

from everview.errors import UserError

_PATH_MAX_LENGTH = 4096
_MAX_SHOWN = 60
"""How many characters of a value an error shows."""
_ID_MAX_LENGTH, _NUMBER_MAX = 200, (1 << 62) - 1
_TRANSACTION_ID = "a string, or the name of a writer and a number, such as ('stream', 42)"
_SIZE = "a number of bytes, such as 2147483648 or '2GB', or 0"


def text(parameter: str, value: object) -> str:
    """A string that can be stored and shown: one with half of a surrogate pair cannot."""
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
    """An integer of at least `least`, of any type that Python takes for an index."""
    if isinstance(value, bool):
        raise _wrong(parameter, value, "a whole number")
    try:
        number = index(value)  # type: ignore[arg-type]
    except Exception:
        raise _wrong(parameter, value, "a whole number") from None
    if number < least:
        raise UserError(
            "X002",
            f"{parameter} is {shown(number)}, and must be at least {least}",
            remedy=f"give a whole number from {least}",
        )
    return number


def transaction_id(value: object) -> str | tuple[str, int]:
    """The id of a transaction: a text, or the name of a writer with a number.

    >>> transaction_id("load of May"), transaction_id(("stream", 42))
    ('load of May', ('stream', 42))
    """
    if not isinstance(value, tuple):
        return _short("id", value, _TRANSACTION_ID)
    if len(value) != 2:
        raise _wrong("id", value, _TRANSACTION_ID)
    number = count("the number of id", value[1])
    if number > _NUMBER_MAX:
        raise _wrong("the number of id", number, f"at most {_NUMBER_MAX}")
    return _short("the writer of id", value[0], "a string"), number


def _short(parameter: str, value: object, wanted: str) -> str:
    """A text that is not empty, and that a manifest may hold many of."""
    if not isinstance(value, str):
        raise _wrong(parameter, value, wanted)
    if not 0 < len(text(parameter, value)) <= _ID_MAX_LENGTH:
        raise UserError(
            "X002",
            f"{parameter} has {len(value)} characters: {shown(value)}",
            remedy=f"give a text of 1 to {_ID_MAX_LENGTH} characters",
        )
    return value


def size(parameter: str, value: object) -> int:
    """A number of bytes: a whole number, or a text such as "512MB" or "2GB".

    >>> size("memory", "2GB") == 2 * 2**30, size("memory", "0"), size("memory", 512)
    (True, 0, 512)
    """
    if not isinstance(value, str):
        if isinstance(value, float):
            raise _wrong(parameter, value, _SIZE)
        return count(parameter, value)
    found = re.fullmatch(
        r"\s*(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?)(I?B)?\s*", value.upper(), re.ASCII
    )
    if found is None or (found[2] == "" and "." in found[1]):
        raise _wrong(parameter, value, _SIZE)
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2] or " "))


def flag(parameter: str, value: object) -> bool:
    """True or False, and nothing that is only truthy or falsy."""
    if not isinstance(value, bool):
        raise _wrong(parameter, value, "True or False")
    return value


def one_of(parameter: str, value: object, known: Iterable[str]) -> str:
    """One of the texts that are known."""
    wanted = tuple(known)
    for each in wanted:
        if value == each:
            return each
    raise _wrong(parameter, value, " or ".join(map(repr, wanted)))


def mapping(parameter: str, value: object) -> Mapping[str, Any]:
    """A mapping from names."""
    if not isinstance(value, Mapping):
        raise _wrong(parameter, value, "a dict")
    for name in value:
        text(f"a name in {parameter}", name)
    return value


def names(parameter: str, value: object) -> list[str]:
    """Names in a list, a tuple or a set, each once."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise _wrong(parameter, value, "a name or a list of names")
    return [*dict.fromkeys(text(f"a name in {parameter}", each) for each in value)]


def location(value: object) -> str:
    """A path or URI that a file system may know."""
    if isinstance(value, os.PathLike) and not isinstance(value, type):
        value = os.fspath(value)
    path = text("location", value)
    if not path.strip() or "\0" in path or len(path) > _PATH_MAX_LENGTH:
        raise UserError(
            "X002",
            f"location is empty, too long or holds a NUL: {shown(path)}",
            remedy="give the path of a folder",
        )
    return path


def shown(value: object) -> str:
    """A value as an error shows it, whatever it is.

    What is in the buffers of Arrow is not printed: they may be why there is an error.

    >>> shown("a\\nb"), shown([1] * 99)
    ("'a\\\\nb'", 'a list')
    """
    kind = type(value).__name__
    if value is None:
        return "None"
    printed = ""
    if type(value).__module__.partition(".")[0] != "pyarrow":
        with suppress(Exception):
            unclear = isinstance(value, str) and not value.isprintable()
            printed = ascii(value) if unclear else repr(value)
    text_or_number = isinstance(value, str | bytes | int | float)
    if isinstance(value, type):
        return f"the type {value.__name__}"
    if not printed or not (
        text_or_number or (len(printed) <= _MAX_SHOWN and not set("<\n") & set(printed))
    ):
        return f"{'an' if kind[0].lower() in 'aeio' else 'a'} {kind}"
    return printed if len(printed) <= _MAX_SHOWN else f"{printed[:_MAX_SHOWN]}…"


def named(name: str) -> str:
    """A name as an error shows it: as it is where it is plain, else as a string.

    >>> named("orders"), named("my orders")
    ('orders', "'my orders'")
    """
    return name if name.isidentifier() and len(name) <= _MAX_SHOWN else shown(name)


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
