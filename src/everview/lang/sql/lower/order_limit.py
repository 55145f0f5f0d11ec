"""ORDER BY, LIMIT and OFFSET: top-k by row number, with ties broken by all columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr import scalar
from everview.expr.scalar import whole_number
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.parse.span import span_of
from everview.plan.build import columns_of, filter_, project, window
from everview.plan.nodes import Order, Over, Plan

_Query = TypeVar("_Query", bound=exp.Expr)


def limit_rows(context: LoweringContext, plan: Plan, tree: exp.Expr) -> Plan:
    """The rows that ORDER BY, LIMIT and OFFSET keep, sorted by columns of the result."""
    limit, offset = limits(tree, context.text)
    if limit is None and not offset:
        return plan
    shown = columns_of(plan)[len(context.domain_columns) :]
    items = order_items(order_clause(tree, context.text), shown, lambda _: False)
    order = tuple(_result_order(node, shown, context.text) for node in items)
    return first_rows(plan, context.domain_columns, order, limit, offset)


def first_rows(
    plan: Plan, keys: tuple[str, ...], order: tuple[Order, ...], limit: int | None, offset: int
) -> Plan:
    """Within each value of `keys`, the rows after the first `offset`, and at most `limit`."""
    if limit is None and not offset:
        return plan
    name, columns = "place", columns_of(plan)
    row_number = Over(name, "int", "row_number", (), with_ties_broken(order, keys, columns))
    bounds = [f"{scalar.column(name)} > {offset}"] if offset else []
    bounds += [f"{scalar.column(name)} <= {offset + limit}"] if limit is not None else []
    kept = filter_(window(plan, keys, (row_number,)), scalar.canonical(" AND ".join(bounds)))
    return project(kept, columns)


def with_ties_broken(
    order: tuple[Order, ...], keys: tuple[str, ...], columns: tuple[str, ...]
) -> tuple[Order, ...]:
    """The order continued by all other columns, so that only equal rows tie."""
    sorted_by = {*keys, *(each.column for each in order)}
    return (*order, *(Order(name) for name in columns if name not in sorted_by))


def limits(tree: exp.Expr, text: str) -> tuple[int | None, int]:
    """How many rows are kept, None for all, and how many are left out before them."""
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    return limit_number(limit, text), limit_number(offset, text) or 0


def limit_number(node: exp.Expr | None, text: str) -> int | None:
    """The whole number after LIMIT or OFFSET."""
    if node is None:
        return None
    value = node.expression
    if isinstance(value, exp.Column | exp.All | exp.Var) and value.name.lower() in ("all", ""):
        return None
    number = whole_number(value) if isinstance(value, exp.Expr) else None
    if number is not None and 0 <= number < 2**31 and not node.args.get("limit_options"):
        return number
    raise UserError(
        "Q009",
        f"{node.key.upper()} needs a number",
        span=span_of(value, text) if isinstance(value, exp.Expr) else Span(text, 0, len(text)),
        remedy="write a whole number",
    )


def without_limit(tree: _Query) -> _Query:
    """The query without LIMIT and ORDER BY, if the LIMIT keeps at least one row.

    This is for queries of which only matters whether they have a row, or that have exactly one.
    """
    limit = tree.args.get("limit")
    kept = whole_number(limit.expression) if limit is not None else None
    if limit is None or not kept or kept < 1:
        return tree
    if tree.args.get("offset") or limit.args.get("limit_options"):
        return tree
    unlimited = tree.copy()
    unlimited.set("limit", None)
    unlimited.set("order", None)
    return unlimited


def order_clause(tree: exp.Expr, text: str) -> exp.Expr:
    """The ORDER BY of a query; without it, which rows come first is nobody's choice."""
    clause = tree.args.get("order")
    if not isinstance(clause, exp.Expr):
        raise refused("LIMIT without ORDER BY", tree, text, "say which rows come first")
    return clause


def order_items(
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
    copy = item.copy()
    copy.set("this", by)
    return copy


def _result_order(node: exp.Expr, shown: tuple[str, ...], text: str) -> Order:
    """An item of ORDER BY that is a column of the result, by position or by name."""
    column = shown_column(node.this, shown, text)
    if column is None:
        raise UserError(
            "Q009",
            "ORDER BY something that is not in the SELECT list",
            span=span_of(node.this, text) or Span(text, 0, len(text)),
            remedy="sort by a column of the result",
        )
    return order_of(node, column)


def order_of(node: exp.Expr, column: str) -> Order:
    """A column with the direction of an item; by default NULLs come first, or last with DESC."""
    descending, nulls = bool(node.args.get("desc")), node.args.get("nulls_first")
    return Order(column, descending, not descending if nulls is None else bool(nulls))


def shown_column(node: exp.Expr, shown: tuple[str, ...], text: str) -> str | None:
    """The column of the result that an item of ORDER BY means, by position or by name."""
    if isinstance(node, exp.Column) and not node.table:
        wanted = node.name.lower()
        return next((name for name in shown if name.lower() == wanted), None)
    return _by_position(node, shown, text)


def _by_position(node: exp.Expr, shown: tuple[str, ...], text: str) -> str | None:
    """The column that a number in ORDER BY means."""
    sign = isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal)
    if not sign and (not isinstance(node, exp.Literal) or node.is_string):
        return None
    at = int(node.name) if node.name.isdigit() and not sign else 0
    if not 1 <= at <= len(shown):
        raise UserError(
            "Q009",
            f"ORDER BY position {node.sql()} is not in the SELECT list",
            span=span_of(node, text) or Span(text, 0, len(text)),
            remedy=f"use 1 to {len(shown)}",
        )
    return shown[at - 1]
