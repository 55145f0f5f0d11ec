"""ORDER BY, LIMIT and OFFSET: what they say, before anything is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlglot import exp

from everview.errors import Span, UserError
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.lower.frames import whole_number
from everview.lang.sql.parse.span import span_of
from everview.plan.nodes import Order

_Query = TypeVar("_Query", bound=exp.Expr)


def limits(tree: exp.Expr, text: str) -> tuple[int | None, int]:
    """How many rows are kept, None for all, and how many are left out before them."""
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    return number(limit, text), number(offset, text) or 0


def number(node: exp.Expr | None, text: str) -> int | None:
    """The whole number after LIMIT or OFFSET."""
    if node is None:
        return None
    value = node.expression
    if isinstance(value, exp.Column | exp.All | exp.Var) and value.name.lower() in ("all", ""):
        return None
    found = whole_number(value) if isinstance(value, exp.Expr) else None
    if found is not None and 0 <= found < 2**31 and not node.args.get("limit_options"):
        return found
    raise UserError(
        "Q009",
        f"{node.key.upper()} needs a number",
        span=span_of(value, text) if isinstance(value, exp.Expr) else Span(text, 0, len(text)),
        remedy="write a whole number",
    )


def unlimited(tree: _Query) -> _Query:
    """The query without a LIMIT that keeps a row if there is one, and without an order."""
    limit = tree.args.get("limit")
    kept = whole_number(limit.expression) if limit is not None else None
    if limit is None or not kept or kept < 1:
        return tree
    if tree.args.get("offset") or limit.args.get("limit_options"):
        return tree
    made = tree.copy()
    made.set("limit", None)
    made.set("order", None)
    return made


def order_clause(tree: exp.Expr, text: str) -> exp.Expr:
    """The ORDER BY of a query; without it, which rows come first is nobody's choice."""
    clause = tree.args.get("order")
    if not isinstance(clause, exp.Expr):
        raise refused("LIMIT without ORDER BY", tree, text, "say which rows come first")
    return clause


def ordered(
    clause: exp.Expr, shown: Sequence[str], hidden: Callable[[str], bool]
) -> list[exp.Expr]:
    """The items of an ORDER BY.

    ORDER BY ALL is by every column of the result, unless a column is called so: one that is
    `shown`, or a `hidden` one that ORDER BY may name.
    """
    items = list(clause.expressions)
    for at, item in enumerate(items):
        if not isinstance(item.this, exp.Var) or item.this.name.lower() != "all":
            continue
        if len(items) == 1 and "all" not in map(str.lower, shown) and not hidden("all"):
            return [_with(item, exp.Literal.number(place + 1)) for place in range(len(shown))]
        items[at] = _with(item, exp.column("all"))
    return items


def _with(item: exp.Expr, by: exp.Expr) -> exp.Expr:
    """The direction of an item for something else."""
    made = item.copy()
    made.set("this", by)
    return made


def order_by(node: exp.Expr, shown: tuple[str, ...], text: str) -> Order:
    """An item of ORDER BY that is a column of the result, by position or by name."""
    column = shown_column(node.this, shown, text)
    if column is None:
        raise UserError(
            "Q009",
            "ORDER BY something that is not in the SELECT list",
            span=span_of(node.this, text) or Span(text, 0, len(text)),
            remedy="sort by a column of the result",
        )
    return placed(node, column)


def placed(node: exp.Expr, column: str) -> Order:
    """The direction of an item: NULLs first when rising, last when falling, unless it says so."""
    descending, nulls = bool(node.args.get("desc")), node.args.get("nulls_first")
    return Order(column, descending, not descending if nulls is None else bool(nulls))


def shown_column(node: exp.Expr, shown: tuple[str, ...], text: str) -> str | None:
    """The column of the result that an item of ORDER BY means, by position or by name."""
    if isinstance(node, exp.Column) and not node.table:
        wanted = node.name.lower()
        return next((name for name in shown if name.lower() == wanted), None)
    return position(node, shown, text)


def position(node: exp.Expr, shown: tuple[str, ...], text: str) -> str | None:
    """The column that a number in ORDER BY means."""
    sign = isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
    if not sign and (not isinstance(node, exp.Literal) or node.is_string):
        return None
    place = int(node.name) if node.name.isdigit() and not sign else 0
    if not 1 <= place <= len(shown):
        raise UserError(
            "Q009",
            f"ORDER BY position {node.sql()} is not in the SELECT list",
            span=span_of(node, text) or Span(text, 0, len(text)),
            remedy=f"use 1 to {len(shown)}",
        )
    return shown[place - 1]
