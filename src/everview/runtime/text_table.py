"""Rows as a text table on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, OverflowMethod
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pyarrow as pa


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


def print_table(rows: pa.Table, limit: int | None = None, console: Console | None = None) -> None:
    """Print the first `limit` rows, and say how many more there are."""
    shown = rows if limit is None else rows.slice(0, limit)
    values = zip(*(column.to_pylist() for column in shown.columns), strict=True)
    out = console or Console(markup=False, highlight=False, emoji=False)
    out.print(text_table(rows.column_names, values))
    if shown.num_rows < rows.num_rows:
        left = rows.num_rows - shown.num_rows
        out.print(f"… and {left} more row{'s' * (left > 1)}")
