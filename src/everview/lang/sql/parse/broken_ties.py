"""A query with its ties broken in another way: other answers to it that SQL permits."""

from __future__ import annotations

from sqlglot import exp

_BY_PLACE = (exp.RowNumber, exp.Lead, exp.Lag, exp.Ntile)
"""Functions that number rows or count them off, so that rows that tie have places of their own."""


def with_broken_ties(query: exp.Expr, seed: int) -> exp.Expr | None:
    """The query with a random last key in every ORDER BY that decides between rows that tie.

    These are the orders of ROWS frames, of functions that go by the place of a row, and of LIMIT:
    there a finer order gives one of the answers that the query permits. Where rows that tie are
    peers, as in RANGE frames and RANK, a finer order would mean something else, so it is left
    alone. None if the query has no such order.
    """
    tree = query.copy()
    orders = [_order_of(node) for node in tree.find_all(exp.Window) if _by_place(node)]
    orders += [_order_of(node) for node in tree.find_all(exp.Query) if node.args.get("limit")]
    for place, order in enumerate(orders):
        # Seeds of their own: two windows may put equal rows in two orders.
        key = exp.Rand(this=exp.Literal.number(seed * len(orders) + place))
        order.append("expressions", exp.Ordered(this=key, nulls_first=True))
    return tree if orders else None


def _by_place(window: exp.Window) -> bool:
    call = window.this
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    if not isinstance(call, exp.Func) or window.args.get("alias"):
        return False
    spec = window.args.get("spec")
    return isinstance(call, _BY_PLACE) or (spec is not None and spec.args.get("kind") == "ROWS")


def _order_of(node: exp.Expr) -> exp.Expr:
    order = node.args.get("order")
    if order is None:
        order = exp.Order(expressions=[])
        node.set("order", order)
    return order
