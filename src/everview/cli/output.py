"""How values are written: as tables for people, as JSON for programs."""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Iterable, Sequence
from datetime import date, time
from typing import Any

import click
from rich.console import Console

from everview.errors import UserError
from everview.runtime.text_table import text_table

_FILE_WIDTH = 10_000
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def console() -> Console:
    """Standard output; values are shown as they are, and never cut when they go to a file."""
    width = None if sys.stdout.isatty() else _FILE_WIDTH
    return Console(width=width, markup=False, highlight=False, emoji=False)


def print_rows(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], right: Sequence[str] = ()
) -> None:
    """Print rows as a table, the columns named in `right` flush right."""
    console().print(text_table(columns, rows, right=right, overflow="fold"))


def print_json(value: Any) -> None:
    """Print one JSON object on one line."""
    click.echo(json.dumps(plain(value), ensure_ascii=False, allow_nan=False))


def records(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows as objects.

    >>> records(("id", "name"), [(1, "ann")])
    [{'id': 1, 'name': 'ann'}]
    """
    twice = sorted(name for name in set(columns) if columns.count(name) > 1)
    if twice:
        raise UserError(
            "L001",
            f"two columns are called {twice[0]}, and a JSON object holds only one",
            remedy="rename one of them with AS, or leave out --json",
        )
    return [dict(zip(columns, row, strict=True)) for row in rows]


def plain(value: Any) -> Any:
    """A value as JSON has it: what JSON cannot hold exactly becomes text.

    >>> from decimal import Decimal
    >>> plain([Decimal("10.00"), date(2024, 2, 29), float("inf"), b"ab", None])
    ['10.00', '2024-02-29', 'inf', 'YWI=', None]
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case date() | time():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {str(key): plain(each) for key, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case _:
            return str(value)


def human_size(count: int) -> str:
    """A number of bytes for people.

    >>> [human_size(n) for n in (0, 999, 1536, 5 * 2**30)]
    ['0 B', '999 B', '1.5 KiB', '5.0 GiB']
    """
    power = min(max(count.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    return f"{count} B" if power == 0 else f"{count / 1024**power:.1f} {_UNITS[power]}"
