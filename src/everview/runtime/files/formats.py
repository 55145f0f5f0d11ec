"""The formats of files that rows are copied from and to, and how they are told apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from everview.arguments import did_you_mean, shown
from everview.errors import UserError
from everview.expr.types import Schema, is_nested

CSV, JSON, PARQUET, ARROW = "csv", "json", "parquet", "arrow"
FORMATS = (CSV, JSON, PARQUET, ARROW)
TEXTS = (CSV, JSON)
"""The formats in which every value is written as text."""
_ENDINGS = {
    ".csv": CSV,
    ".json": JSON,
    ".jsonl": JSON,
    ".ndjson": JSON,
    ".parquet": PARQUET,
    ".arrow": ARROW,
    ".feather": ARROW,
    ".ipc": ARROW,
}
_COMPRESSED = ".gz"


@dataclass(frozen=True, slots=True)
class FileOptions:
    """What is said about files beside their path; a format that is not said is told by a name."""

    format: str | None = None
    header: bool = True
    delimiter: str = ","

    def of(self, paths: Iterable[str]) -> str:
        """The one format of all files."""
        if self.format is not None:
            return self.format
        found = {path: ending(path) for path in paths}
        for path, each in found.items():
            if each is None:
                raise _unclear(f"the name of {shown(path)} does not tell its format")
        if len(set(found.values())) > 1:
            raise _unclear("the files are of several formats")
        return str(next(iter(found.values())))


def known_format(name: str) -> str:
    """The format of a name that a user gives."""
    aliases = {"jsonl": JSON, "ndjson": JSON, "feather": ARROW, "ipc": ARROW}
    lower = name.lower()
    found = aliases.get(lower, lower)
    if found not in FORMATS:
        raise UserError(
            "F001",
            f"there is no format {shown(name)}",
            remedy=f"{did_you_mean(name, FORMATS)}write FORMAT {', '.join(FORMATS)}",
        )
    return found


def ending(path: str) -> str | None:
    """The format that the name of a file tells, None if none; texts alone may be compressed.

    >>> ending("a/b.csv.gz"), ending("b.NDJSON"), ending("b"), ending("b.parquet.gz")
    ('csv', 'json', None, None)
    """
    suffixes = [each.lower() for each in PurePath(path).suffixes]
    compressed = is_compressed(path) and suffixes.pop()
    found = _ENDINGS.get(suffixes[-1]) if suffixes else None
    return None if compressed and found not in TEXTS else found


def is_compressed(path: str) -> bool:
    """Whether a file of texts is compressed, by its name."""
    return path.lower().endswith(_COMPRESSED)


def must_be_writable(schema: Schema, format_: str) -> None:
    """Refuse columns that a format of texts does not hold."""
    for column in schema:
        if format_ in TEXTS and (is_nested(column.type) or column.type == "binary"):
            raise UserError(
                "F002",
                f"the column {column.name} is {column.type.upper()}, "
                f"which {format_.upper()} does not hold",
                remedy="use Parquet or Arrow, or leave the column out",
            )


def _unclear(problem: str) -> UserError:
    return UserError("F001", problem, remedy=f"say it: (FORMAT {' | '.join(FORMATS)})")
