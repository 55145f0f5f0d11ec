"""Orders of windows, without the columns behind a key: no two rows tie there."""

from __future__ import annotations

from dataclasses import replace

from everview.analysis.keys import Keys, keys
from everview.plan.build import window
from everview.plan.nodes import Order, Over, Plan, Window
from everview.plan.traverse import transform


def shorten_orders(plan: Plan) -> Plan:
    """The same relation: rows that agree on a key are one row, so what follows decides nothing.

    Columns that are there to break ties are then read only where there is no key.
    """
    return transform(plan, _shorten)


def _shorten(node: Plan) -> Plan:
    if not isinstance(node, Window):
        return node
    known = keys(node.child)
    columns = tuple(_with_order(over, frozenset(node.keys), known) for over in node.columns)
    return node if columns == node.columns else window(node.child, node.keys, columns)


def _with_order(over: Over, same: frozenset[str], known: Keys) -> Over:
    """A function over the shortest order that says as much; rows of a group are the `same` there.

    A group of at most one row needs an order nevertheless, which the engines ask for.
    """
    kept: list[Order] = []
    for each in over.order:
        if kept and any(key <= same for key in known):
            break
        kept.append(each)
        same |= {each.column}
    return over if len(kept) == len(over.order) else replace(over, order=tuple(kept))
