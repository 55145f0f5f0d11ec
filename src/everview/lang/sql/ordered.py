"""A query as it is asked once: a plan, and the order and number of the rows to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from everview.errors import Span, UserError
from everview.lang.sql.lower import Analyze, lower_tree
from everview.lang.sql.parse import parse_query
from everview.lang.sql.place import span_of
from everview.plan.build import columns_of
from everview.plan.nodes import Plan, Source


@dataclass(frozen=True, slots=True)
class Order:
    """One column to sort by."""

    column: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class OrderedQuery:
    """The rows of `plan`, of which `columns` are shown, sorted and cut."""

    plan: Plan
    columns: tuple[str, ...]
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0


def lower_ordered(text: str, relations: Mapping[str, Source], analyze: Analyze) -> OrderedQuery:
    """A query with ORDER BY, LIMIT and OFFSET at its end."""
    tree = parse_query(text).copy()
    while isinstance(tree, exp.Subquery) and not tree.args.get("alias"):
        tree = tree.this
    order, limit, offset = (tree.args.get(part) for part in ("order", "limit", "offset"))
    for part in ("order", "limit", "offset"):
        tree.set(part, None)
    plain = lower_tree(tree, text, relations, analyze)
    shown = columns_of(plain)
    keys = [_key(node, number, shown, text) for number, node in enumerate(_nodes(order), 1)]
    hidden = [(key.column, node.this) for key, node in zip(keys, _nodes(order), strict=True)]
    hidden = [(name, node) for name, node in hidden if name not in shown]
    if hidden:
        _may_hide(tree, hidden[0][1], text)
        for name, node in hidden:
            tree.append("expressions", exp.alias_(node, name, quoted=True))
        plain = lower_tree(tree, text, relations, analyze)
    return OrderedQuery(plain, shown, tuple(keys), _number(limit, text), _number(offset, text) or 0)


def _nodes(order: exp.Expr | None) -> list[exp.Expr]:
    return list(order.expressions) if order is not None else []


def _key(node: exp.Expr, number: int, shown: tuple[str, ...], text: str) -> Order:
    """What a row is sorted by: a column shown, by position or name, or one of its own."""
    inner, descending = node.this, bool(node.args.get("desc"))
    nulls = node.args.get("nulls_first")
    first = not descending if nulls is None else bool(nulls)
    column = f"order {number}"
    if isinstance(inner, exp.Literal) and not inner.is_string:
        position = int(inner.name) if inner.name.isdigit() else 0
        if not 1 <= position <= len(shown):
            raise UserError(
                "Q009",
                f"ORDER BY position {inner.name} is not in the SELECT list",
                span=span_of(inner, text) or Span(text, 0, len(text)),
                remedy=f"use 1 to {len(shown)}",
            )
        column = shown[position - 1]
    elif isinstance(inner, exp.Column) and not inner.table:
        named = (name for name in shown if name.lower() == inner.name.lower())
        column = next(named, column)
    return Order(column, descending, first)


def _may_hide(tree: exp.Expr, node: exp.Expr, text: str) -> None:
    if not isinstance(tree, exp.Select) or tree.args.get("distinct"):
        raise UserError(
            "Q009",
            "ORDER BY something that is not in the SELECT list",
            span=span_of(node, text) or Span(text, 0, len(text)),
            remedy="sort by a column of the result",
        )


def _number(node: exp.Expr | None, text: str) -> int | None:
    if node is None:
        return None
    value = node.expression
    if isinstance(value, exp.Literal) and value.name.isdigit():
        return int(value.name)
    raise UserError(
        "Q009",
        f"{node.key.upper()} needs a number",
        span=span_of(value, text) if isinstance(value, exp.Expr) else Span(text, 0, len(text)),
        remedy="write a whole number",
    )
