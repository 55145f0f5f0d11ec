"""The change of windows with bounded RANGE frames: only the cells around a change are read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from everview.expr import scalar
from everview.expr.types import FLOATS, INTEGERS, Column, Type, decimal_parts, is_nested, type_in
from everview.plan.build import (
    add,
    columns_of,
    fresh,
    identity,
    map_,
    negate,
    project,
    restrict_to_keys,
    unnest,
    window,
)
from everview.plan.nodes import Output, Plan, Window
from everview.plan.traverse import CACHE_SIZE, schema_of

_DAYS = {"DAY": 1, "MONTH": 31, "YEAR": 366}
_SECONDS = {"DAY": 86_400, "HOUR": 3_600, "MINUTE": 60, "SECOND": 1}
_SPELLED = (*INTEGERS, "string", "date")
"""Types of keys that can be part of a text to look rows up by."""


@dataclass(frozen=True, slots=True)
class RangeFrame:
    """A window over buckets of its order column, so wide that no frame reaches beyond the next.

    The bucket of a row is its `cell`; `spot` is one text of cell and keys, to look rows up by.
    """

    node: Window
    cell: Output
    spot: Output | None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that rows of one cell of one group agree on, the most telling first."""
        return (*self._spot, self.cell.name, *self.node.keys)

    @property
    def _spot(self) -> tuple[str, ...]:
        return (self.spot.name,) if self.spot else ()

    def with_cells(self, plan: Plan) -> Plan:
        """The rows of `plan`, each with its cell."""
        return self._with_spot(map_(plan, (*identity(schema_of(plan)), self.cell)))

    def neighbours(self, changed: Plan, reach: int) -> Plan:
        """The cells of rows of `changed` and as many on either side as `reach` says."""
        cell, computed = scalar.column(self.cell.name), {self.cell.name, *self._spot}
        steps = range(1, reach + 1)
        near = (cell, *(f"{cell} {side} {step}" for side in "-+" for step in steps))
        element = Column(fresh("near", columns_of(changed)), "bigint")
        moved = unnest(changed, scalar.canonical(f"ARRAY({', '.join(near)})"), element)
        # All other columns stay: without them a row that comes and one that goes would cancel.
        kept = (each for each in identity(schema_of(changed)) if each.name not in computed)
        here = Output(self.cell.name, "bigint", scalar.column(element.name))
        return self._with_spot(map_(moved, (*kept, here)))

    def _with_spot(self, plan: Plan) -> Plan:
        return map_(plan, (*identity(schema_of(plan)), self.spot)) if self.spot else plan


def range_frame_change(shape: RangeFrame, d_child: Plan) -> Plan:
    """Δ of a window, with N the cells next to changed ones and N′ those next to N.

    Ωₖ(Q ⋉ N′ + ΔQ) ⋉ N − Ωₖ(Q ⋉ N′) ⋉ N.
    """
    node, changed = shape.node, shape.with_cells(d_child)
    touched = shape.neighbours(changed, 1)
    rows = restrict_to_keys(
        shape.with_cells(node.child), shape.neighbours(changed, 2), shape.columns
    )
    after, before = (
        restrict_to_keys(window(some, node.keys, node.columns), touched, shape.columns)
        for some in (add(rows, changed), rows)
    )
    return project(add(after, negate(before)), columns_of(node))


@lru_cache(maxsize=CACHE_SIZE)
def range_frame(plan: Plan) -> RangeFrame | None:
    """The cells of a window, if all its frames are bounded ranges and its values are exact.

    What is inexact cannot be computed twice: the old answer would have to be read.
    """
    if not isinstance(plan, Window):
        return None
    schema, orders = schema_of(plan.child), {over.order for over in plan.columns}
    exact = all(over.type not in FLOATS and not is_nested(over.type) for over in plan.columns)
    if len(orders) != 1 or len(order := orders.pop()) != 1 or not exact:
        return None
    column = order[0].column
    type_ = type_in(schema, column)
    reaches = [_reach(over.frame, type_) for over in plan.columns]
    known = [reach for reach in reaches if reach is not None]
    number = _number(column, type_)
    if len(known) < len(reaches) or number is None:
        return None
    taken = columns_of(plan)
    name = fresh("cell", taken)
    # From two on, so that no neighbour of a cell is beyond the greatest number there is.
    cell = Output(name, "bigint", scalar.canonical(f"{number} DIV {max(2, *known)}"))
    spelled = [key for key in plan.keys if type_in(schema, key) in _SPELLED]
    return RangeFrame(plan, cell, _spot(spelled, name, taken) if spelled else None)


def _spot(keys: list[str], cell: str, taken: tuple[str, ...]) -> Output:
    """A text that tells most cells of most groups apart: rows are looked up by one column."""
    parts = ", ".join(f"CAST({scalar.column(name)} AS STRING)" for name in (*keys, cell))
    return Output(fresh("spot", taken), "string", scalar.canonical(f"CONCAT_WS(':', {parts})"))


def _number(column: str, type_: Type) -> str | None:
    """The whole number nearest below or above a value, whichever is nearer to zero."""
    text, parts = scalar.column(column), decimal_parts(type_)
    if type_ == "date":
        return f"CAST(DATEDIFF({text}, DATE '1970-01-01') AS BIGINT)"
    if type_ == "timestamp":
        return f"UNIX_SECONDS({text})"
    whole = type_ in INTEGERS or (parts is not None and parts[0] - parts[1] <= 18)
    return f"CAST({text} AS BIGINT)" if whole else None


_BOUND = re.compile(
    r"(?:INTERVAL '(\d+)' (\w+)|(\d+(?:\.\d+)?)) (?:PRECEDING|FOLLOWING)|CURRENT ROW"
)


def _reach(frame: str, type_: Type) -> int | None:
    """How far apart the numbers of a row and of one in its frame can be; None for any distance."""
    if not frame.startswith("RANGE BETWEEN "):
        return None
    ends = [_BOUND.fullmatch(end) for end in frame.removeprefix("RANGE BETWEEN ").split(" AND ")]
    units = _SECONDS if type_ == "timestamp" else _DAYS
    reaches = []
    for end in ends:
        if end is None or (end[2] and end[2] not in units):
            return None
        reaches.append(int(end[1]) * units[end[2]] if end[1] else ceil(float(end[3] or 0)))
    # A fraction of a number or a second may lie between two cells.
    return max(reaches) + (0 if type_ in (*INTEGERS, "date") else 1)
