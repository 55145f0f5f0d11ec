"""Rows as a table on the terminal."""

from __future__ import annotations

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_table(rows: pa.Table, limit: int | None = None, console: Console | None = None) -> None:
    """Print the first `limit` rows, and say how many more there are."""
    shown = rows if limit is None else rows.slice(0, limit)
    table = Table()
    for name in rows.column_names:
        table.add_column(Text(name), justify="left")
    for row in zip(*(column.to_pylist() for column in shown.columns), strict=True):
        table.add_row(*(Text("NULL" if value is None else str(value)) for value in row))
    out = console or Console(markup=False, highlight=False, emoji=False)
    out.print(table)
    if shown.num_rows < rows.num_rows:
        left = rows.num_rows - shown.num_rows
        out.print(f"… and {left} more row{'s' * (left > 1)}")
