"""An ad hoc query: a plan, and the ORDER BY, LIMIT and OFFSET of the rows to show."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr import scalar
from everview.expr.type_inference import type_of
from everview.lang.sql.lower.context import Analyze
from everview.lang.sql.lower.order_limit import limit_number, order_items, order_of, shown_column
from everview.lang.sql.lower.query import lower_tree
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.span import span_of
from everview.plan.build import columns_of
from everview.plan.nodes import Order, Source
from everview.plan.ordered_query import OrderedQuery

_CLAUSES = ("order", "limit", "offset")


def lower_ordered(text: str, relations: Mapping[str, Source], analyze: Analyze) -> OrderedQuery:
    """A query with ORDER BY, LIMIT and OFFSET at its end."""
    tree = parse_query(text).copy()
    while isinstance(tree, exp.Subquery) and not any(
        tree.args.get(p) for p in ("alias", *_CLAUSES)
    ):
        tree = tree.this
    order, limit, offset = (tree.args.get(part) for part in _CLAUSES)
    for part in _CLAUSES:
        tree.set(part, None)
    plain = lower_tree(tree, text, relations, analyze)
    shown = columns_of(plain)

    def has(name: str) -> bool:
        """Whether a name that is not shown is a column that ORDER BY may read."""
        if not isinstance(tree, exp.Select):
            return False
        trial = tree.copy()
        trial.append("expressions", exp.column(name))
        with suppress(UserError):
            return bool(columns_of(lower_tree(trial, text, relations, analyze)))
        return False

    all_items = order_items(order, shown, has) if order is not None else []
    items = [item for item in all_items if type_of(scalar.text(item.this), ()) != "void"]
    keys = [_key(node, number, shown, text) for number, node in enumerate(items, 1)]
    hidden = [(key.column, node.this) for key, node in zip(keys, items, strict=True)]
    hidden = [(name, node) for name, node in hidden if name not in shown]
    if hidden:
        _may_hide(tree, hidden[0][1], text)
        for name, node in hidden:
            tree.append("expressions", exp.alias_(node, name, quoted=True))
        plain = lower_tree(tree, text, relations, analyze)
    return OrderedQuery(
        plain, shown, tuple(keys), limit_number(limit, text), limit_number(offset, text) or 0
    )


def lower_recursive(
    text: str, relations: Mapping[str, Source], analyze: Analyze
) -> OrderedQuery | None:
    """A query with a recursion; None for any other."""
    clauses = parse_query(text).find_all(exp.With)
    if not any(clause.args.get("recursive") for clause in clauses):
        return None
    return lower_ordered(text, relations, analyze)


def _key(node: exp.Expr, number: int, shown: tuple[str, ...], text: str) -> Order:
    """A key to sort by: a column shown, by position or name, or a hidden one of its own."""
    return order_of(node, shown_column(node.this, shown, text) or f"order {number}")


def _may_hide(tree: exp.Expr, node: exp.Expr, text: str) -> None:
    if not isinstance(tree, exp.Select) or tree.args.get("distinct"):
        raise UserError(
            "Q009",
            "ORDER BY something that is not in the SELECT list",
            span=span_of(node, text) or Span(text, 0, len(text)),
            remedy="sort by a column of the result",
        )
