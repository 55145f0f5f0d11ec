"""The SQL of a sqllogictest file, as Everview reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp

from conformance.sqllogic_file import Query
from everview.errors import UserError

_TYPES = {
    exp.DType.INT: "BIGINT",
    exp.DType.FLOAT: "DOUBLE",
    exp.DType.TEXT: "STRING",
    exp.DType.VARCHAR: "STRING",
    exp.DType.CHAR: "STRING",
}
"""SQLite has integers of 64 bits, doubles and texts, whatever they are called."""


@dataclass(frozen=True, slots=True)
class Made:
    """A CREATE TABLE with Spark's types."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class View:
    """A query as a view, and the columns of its answer that it was ordered by."""

    name: str
    sql: str
    order: tuple[tuple[int, bool], ...] | None


def says_nothing(sql: str, dialect: str) -> bool:
    """Whether a statement cannot change an answer: indexes and settings."""
    words = sql.upper().split()[:3]
    return "INDEX" in words or words[:1] in (["PRAGMA"], ["SET"])


def made_table(sql: str, dialect: str) -> Made | None:
    """The table that a statement creates, if it does; its types widened to what SQLite keeps."""
    tree = _parsed(sql, dialect)
    if not (isinstance(tree, exp.Create) and tree.kind == "TABLE"):
        return None
    if dialect == "sqlite":
        for type_ in tree.find_all(exp.DataType):
            if type_.this in _TYPES:
                type_.replace(exp.DataType.build(_TYPES[type_.this], dialect="spark"))
    table = tree.find(exp.Table)
    assert table is not None
    return Made(table.name, tree.sql(dialect="spark"))


def halves(sql: str, dialect: str) -> list[str]:
    """An INSERT of several rows as two statements; anything else as it is."""
    tree = _parsed(sql, dialect)
    if not (isinstance(tree, exp.Insert) and isinstance(tree.expression, exp.Values)):
        return [sql]
    rows = tree.expression.expressions
    if len(rows) < 2:
        return [sql]
    parts = []
    for chosen in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
        part = tree.copy()
        part.expression.set("expressions", [row.copy() for row in chosen])
        parts.append(part.sql(dialect=dialect))
    return parts


def needed_tables(sql: str, dialect: str) -> set[str]:
    """The tables that a query reads; none can be told for a text that cannot be read."""
    try:
        tree = _parsed(sql, dialect)
    except UserError:
        return {""}
    made = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    return {table.name.lower() for table in tree.find_all(exp.Table)} - made


def as_view(query: Query, dialect: str) -> View:
    """The query as a view with columns c1, c2, …, without the order of its rows, in its dialect."""
    tree = _parsed(query.sql, dialect)
    ordered = tree.args.get("order")
    positions = _positions(tree, ordered) if ordered else ()
    if ordered and not tree.args.get("limit"):
        tree.set("order", None)
    name = f"query_{query.line}"
    columns = ", ".join(f"c{i}" for i in range(1, len(query.types) + 1))
    text = tree.sql(dialect=dialect)
    return View(name, f"CREATE MATERIALIZED VIEW {name} ({columns}) AS {text}", positions)


def _positions(tree: exp.Expr, order: exp.Expr) -> tuple[tuple[int, bool], ...] | None:
    """The columns of the answer that ORDER BY names, each with whether it descends."""
    names = [each.lower() for each in getattr(tree, "named_selects", [])]
    texts = [each.sql().lower() for each in getattr(tree, "selects", [])]
    found = []
    for each in order.expressions:
        key, descends = each.this, bool(each.args.get("desc"))
        if isinstance(key, exp.Literal) and key.is_int:
            found.append((int(key.name) - 1, descends))
        elif key.sql().lower() in texts:
            found.append((texts.index(key.sql().lower()), descends))
        elif key.name.lower() in names:
            found.append((names.index(key.name.lower()), descends))
        else:
            return None
    return tuple(found)


def put_in_order(view: View, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows in the order that the query asked for, NULL first as in SQLite."""
    if view.order is None:
        raise UserError(
            "S001",
            "a hash of rows ordered by something that is not in the answer",
            remedy="use rowsort, or write the values",
        )
    ordered = list(rows)
    for position, descends in reversed(view.order):
        ordered.sort(key=lambda row: (row[position] is not None, row[position]), reverse=descends)
    return ordered


def _parsed(sql: str, dialect: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(sql, dialect=dialect)
    except sqlglot.errors.SqlglotError as problem:
        raise UserError(
            "S002", "syntax that is not read", remedy="correct the text of the file"
        ) from problem
