"""Weighted rows of a stored relation, added up."""

from __future__ import annotations

import pyarrow as pa

from everview.engines.duckdb.calculator import Calculator
from everview.expr.types import WEIGHT
from everview.runtime.arrow_types import conform
from everview.runtime.constraints.primary_key import all_differ
from everview.runtime.protocol import Stored
from everview.store.sort_order import ascends, in_order, orderable


def summed(rows: pa.Table, stored: Stored, calculator: Calculator) -> pa.Table:
    """The sum of the rows; nothing is added where their keys tell that no two are equal.

    Rows come in the order in which they are stored, where that costs little.
    """
    by = orderable(rows.schema, stored.sort)
    if ascends(rows, by):
        return conform(rows, stored.schema)
    if not stored.rings:
        ordered = conform(in_order(rows, [*by, WEIGHT]), stored.schema)
        if all_differ(ordered, by):
            return ordered
    return calculator.add_up(rows, stored.schema, stored.rings)
