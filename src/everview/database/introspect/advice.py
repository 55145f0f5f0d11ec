"""Advice: another policy for a view, where what its transactions read says so."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from everview.compiler import View
from everview.database.introspect.history import Entry
from everview.plan.nodes import Distinct, Groups, Join, Partition, Plan, Window
from everview.plan.traverse import walk
from everview.program.maps import FAN_OUT, Rows, circuit_rows, map_rows, paying_maps, products_in
from everview.program.policy import CIRCUIT, CLEARLY, HIGHER_ORDER, under

EPOCHS = 20
"""How many of the newest epochs are looked at."""
ENOUGH = 3
"""How many transactions must have been measured."""


def advice(view: View, entries: Iterable[Entry], rows: Rows) -> str:
    """The policy under which a view would clearly read less than it did, with both figures.

    Of the other policies is estimated what a changed row of the relation that reads most would
    read.
    """
    measured = [
        each.rows_read / each.rows_in
        for each in entries
        if each.view == view.source.name and each.way != "recompute"
        if each.rows_in and each.rows_read is not None
    ]
    if len(measured) < ENOUGH:
        return ""
    read = median(measured)
    expected = _expected(view.query or view.plan, rows)
    expected.pop(view.policy, None)
    if not expected:
        return ""
    other = min(expected, key=lambda each: expected[each])
    if read < CLEARLY * expected[other]:
        return ""
    return (
        f"{other}: half of the last {len(measured)} transactions read {read:.0f} rows or more for "
        f"each changed row, and it would read about {expected[other]:.0f} at most"
    )


def _expected(plan: Plan, rows: Rows) -> dict[str, float]:
    """About how many rows a changed row reads at most, under each policy that stores something."""
    split = products_in(under(HIGHER_ORDER, plan))
    joins = sum(FAN_OUT for node in walk(plan) if isinstance(node, Join))
    others = sum(isinstance(n, Groups | Distinct | Partition | Window) for n in walk(plan))
    if not split:
        return {CIRCUIT: joins + others}
    circuit, higher = float(others), float(others)
    for each in split:
        kept = paying_maps(each, rows)
        circuit += max(circuit_rows(each, place, rows) for place in each.members)
        higher += max(map_rows(each, place, kept, rows) for place in each.members)
    return {CIRCUIT: circuit, HIGHER_ORDER: higher}
