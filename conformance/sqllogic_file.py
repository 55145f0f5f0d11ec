"""The sqllogictest format: statements, queries and the answers recorded for them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

from conformance.values import is_written

NAME = "everview"
"""The name by which `skipif` and `onlyif` know this engine."""
_SORTS = ("nosort", "rowsort", "valuesort")
_HASH = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})")


class MalformedError(ValueError):
    """A file that does not follow the format."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that must succeed, or must fail."""

    line: int
    sql: str
    ok: bool


@dataclass(frozen=True, slots=True)
class Hashed:
    """An answer known by the number of its values and their MD5."""

    values: int
    md5: str


@dataclass(frozen=True, slots=True)
class Query:
    """A query, the types of its columns, the order its answer is written in, and the answer."""

    line: int
    sql: str
    types: str
    sort: str
    expected: tuple[tuple[str, ...], ...] | Hashed


Record: TypeAlias = Statement | Query


def read(path: Path) -> list[Record]:
    """The records of a file that are meant for this engine."""
    return list(parse(path.read_text(encoding="utf-8")))


def parse(text: str) -> Iterator[Record]:
    """The records of a text, up to `halt`."""
    for number, lines in _blocks(text):
        while lines and lines[0].split()[0] in ("skipif", "onlyif", "hash-threshold"):
            word, argument = [*lines[0].split(), ""][:2]
            if (word == "skipif" and argument == NAME) or (word == "onlyif" and argument != NAME):
                lines = []
                break
            lines, number = lines[1:], number + 1
        if not lines:
            continue
        if lines[0].split()[0] == "halt":
            return
        yield _record(number, lines)


def _blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Stretches of lines between empty ones, without comments, with the number of the first."""
    found: list[str] = []
    start = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("#"):
            continue
        if line.strip():
            start = start if found else number
            found.append(line.rstrip("\r"))
        elif found:
            yield start, found
            found = []


def _record(number: int, lines: list[str]) -> Record:
    words = lines[0].split()
    match words:
        case ["statement", ("ok" | "error") as wanted, *_]:
            sql = "\n".join(lines[1:]).partition("\n----")[0]
            return Statement(number, sql.rstrip("; \n"), wanted == "ok")
        case ["query", types, *rest]:
            sort = next((word for word in rest if word in _SORTS), "nosort")
            cut = lines.index("----") if "----" in lines else len(lines)
            sql = "\n".join(lines[1:cut]).rstrip("; \n")
            return Query(number, sql, types, sort, _expected(lines[cut + 1 :], len(types), number))
        case _:
            raise MalformedError(f"line {number}: {lines[0]!r} is not a record of sqllogictest")


def _expected(lines: list[str], width: int, number: int) -> tuple[tuple[str, ...], ...] | Hashed:
    """The answer, written a value to a line or a row to a line."""
    hashed = _HASH.fullmatch(lines[0].strip()) if len(lines) == 1 else None
    if hashed:
        return Hashed(int(hashed[1]), hashed[2])
    for separator in ("\t", None):
        rows = [tuple(line.strip("\n").split(separator)) for line in lines]
        if width > 1 and lines and all(len(row) == width for row in rows):
            return tuple(rows)
    if len(lines) % width:
        raise MalformedError(f"line {number}: {len(lines)} values do not fill rows of {width}")
    return tuple(tuple(lines[i : i + width]) for i in range(0, len(lines), width))


def rendered(value: Any, type_: str) -> str:
    """A value as sqllogictest writes it: I as an integer, R with three digits, T as text.

    >>> rendered(1.5, "R"), rendered(True, "I"), rendered("", "T"), rendered(None, "T")
    ('1.500', '1', '(empty)', 'NULL')
    """
    if value is None:
        return "NULL"
    if type_ == "R" and isinstance(value, int | float | Decimal):
        return f"{value:.3f}"
    if type_ == "I" and isinstance(value, bool | int | float | Decimal):
        return str(int(value))
    if isinstance(value, bool):
        return str(value).lower()
    return "".join(c if " " <= c <= "~" else "@" for c in str(value)) or "(empty)"


def is_cell(text: str, value: Any, type_: str) -> bool:
    """Whether a recorded cell says the same as a value of a column of this type."""
    if value is None:
        return text == "NULL"
    return text == rendered(value, type_) or is_written(text, value)


def digest(rows: Sequence[Sequence[Any]], query: Query) -> Hashed:
    """The hash of an answer, its rows in the order given unless the query says how to sort."""
    cells = [[rendered(v, t) for v, t in zip(row, query.types, strict=True)] for row in rows]
    if query.sort == "rowsort":
        cells.sort()
    values = [value for row in cells for value in row]
    if query.sort == "valuesort":
        values.sort()
    text = "".join(f"{value}\n" for value in values)
    return Hashed(len(values), hashlib.md5(text.encode()).hexdigest())
