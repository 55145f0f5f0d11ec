"""Rows as an HTML table, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_CELL_CHARACTERS = 200
"""How much of a value is shown."""


def html_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, more: bool = False) -> str:
    """A table in which every name and value is text: none of it is read as HTML.

    >>> html_table(["a"], [("<b>",), (None,)])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr><tr><td><i>NULL</i></td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"{table}<p>… and more rows</p>" if more else table


def _cell(value: Any) -> str:
    if value is None:
        return "<td><i>NULL</i></td>"
    text = str(value)
    cut = text if len(text) <= _CELL_CHARACTERS else f"{text[:_CELL_CHARACTERS]}…"
    return f"<td>{escape(cut)}</td>"
