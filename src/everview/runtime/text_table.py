"""Rows as a text table on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from rich.box import SQUARE
from rich.console import Console, OverflowMethod
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT_WIDTH = 100
"""How many characters a line of a table as text has at most."""
_COLUMN_MIN_WIDTH = 6
"""How much of a column is shown beside long ones."""


def text_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    right: Sequence[str] = (),
    overflow: OverflowMethod = "ellipsis",
) -> Table:
    """A table of values as they are, the columns named in `right` flush right."""
    table = Table()
    for name in columns:
        table.add_column(
            Text(name), justify="right" if name in right else "left", overflow=overflow
        )
    for row in rows:
        table.add_row(*(Text("NULL" if value is None else str(value)) for value in row))
    return table


def table_text(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, more: bool = False) -> str:
    """A table as text of a bounded width, in which every value is one line.

    >>> print(table_text(["id", "name"], [(1, "a"), (2, None)], more=True))
    ┌────┬──────┐
    │ id │ name │
    ├────┼──────┤
    │ 1  │ a    │
    │ 2  │ NULL │
    └────┴──────┘
    … and more rows
    """
    table, cells = Table(box=SQUARE), [[_one_line(value) for value in row] for row in rows]
    for place, name in enumerate(columns):
        widest = max(len(text) for text in (name, *(row[place].plain for row in cells)))
        least = min(widest, _COLUMN_MIN_WIDTH)
        table.add_column(Text(name), no_wrap=True, overflow="ellipsis", min_width=least)
    for row in cells:
        table.add_row(*row)
    out = StringIO()
    Console(file=out, width=_TEXT_WIDTH, markup=False, highlight=False, emoji=False).print(table)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join([*lines, "… and more rows"] if more else lines)


def _one_line(value: Any) -> Text:
    text = "NULL" if value is None else str(value)
    cut = text if len(text) <= _TEXT_WIDTH else f"{text[:_TEXT_WIDTH]}…"
    return Text("".join(char if char.isprintable() else " " for char in cut))


def print_table(rows: pa.Table, limit: int | None = None, console: Console | None = None) -> None:
    """Print the first `limit` rows, and say how many more there are."""
    shown = rows if limit is None else rows.slice(0, limit)
    values = zip(*(column.to_pylist() for column in shown.columns), strict=True)
    out = console or Console(markup=False, highlight=False, emoji=False)
    out.print(text_table(rows.column_names, values))
    if shown.num_rows < rows.num_rows:
        left = rows.num_rows - shown.num_rows
        out.print(f"… and {left} more row{'s' * (left > 1)}")
