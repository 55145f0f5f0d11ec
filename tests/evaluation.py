"""Plans evaluated by definition, in memory: the oracle of the law tests.

A value is a list of weighted rows. Nothing here is clever, nothing goes through SQL.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from math import ceil, floor, isnan, nan, prod
from operator import and_, or_, xor
from typing import Any, assert_never

import pyarrow as pa

from everview.engines.duckdb.evaluator import duckdb_workspace
from everview.expr.aggregates import counts_copies
from everview.expr.types import decimal_parts, names
from everview.plan.build import columns_of
from everview.plan.nodes import (
    Add,
    Aggregate,
    Change,
    Distinct,
    Empty,
    Filter,
    Fixpoint,
    Groups,
    Join,
    Map,
    Measure,
    Negate,
    Over,
    Partition,
    Plan,
    Positive,
    Recursive,
    Ref,
    Restrict,
    Source,
    Totals,
    Unnest,
    Values,
    Window,
)
from everview.plan.traverse import schema_of, walk
from everview.program.steps import change_name
from everview.runtime.arrow_types import conform
from everview.sqlgen.sql import DUCKDB, emit_consolidated
from scalar_meaning import value
from strategies import Bag, Row, as_arrow, as_bag

Rows = list[tuple[Row, int]]
Columns = tuple[str, ...]
Relations = Mapping[str, tuple[Columns, Rows]]
"""For each name the columns, and rows that have them in that order."""

WORKSPACE = duckdb_workspace()


def evaluate(plan: Plan, old: Mapping[str, Bag], change: Mapping[str, Bag] | None = None) -> Bag:
    """The value of `plan` over old relations and their changes, as a bag."""
    relations: dict[str, tuple[Columns, Rows]] = {}
    for node in walk(plan):
        match node:
            case Source(name, schema, _):
                relations[name] = names(schema), list(old[name].items())
            case Change(name, schema):
                rows = list((change or {})[name].items())
                relations[change_name(name)] = names(schema), rows
            case _:
                pass
    return bag_of(rows_of(plan, relations))


def calculate(
    plan: Plan,
    old: Mapping[str, Bag],
    change: Mapping[str, Bag] | None = None,
    *,
    careful: bool = False,
) -> Bag:
    """The same, computed by DuckDB from the SQL of the plan."""
    relations: dict[str, pa.Table] = {}
    for node in walk(plan):
        match node:
            case Source(name, schema, _):
                relations[name] = as_arrow(old[name], schema)
            case Change(name, schema):
                relations[change_name(name)] = as_arrow((change or {})[name], schema)
            case _:
                pass
    if not careful:
        return as_bag(WORKSPACE.evaluate_over(plan, relations))
    for name, rows in relations.items():
        WORKSPACE.register(name, rows)
    try:
        made = WORKSPACE.rows(emit_consolidated(plan, DUCKDB, careful=True))
        return as_bag(conform(made, schema_of(plan)))
    finally:
        WORKSPACE.clear()


def bag_of(rows: Rows) -> Bag:
    """Weighted rows added up."""
    return Counter(_added_up(rows))


def rows_of(plan: Plan, relations: Relations) -> Rows:
    """The weighted rows of `plan`: each case is the definition of its operator."""

    def rows(node: Plan) -> Rows:
        match node:
            case Empty():
                return []
            case Values(_, texts):
                return [(tuple(value(text, {}) for text in row), 1) for row in texts]
            case Source(name, schema, _) | Ref(name, schema):
                return _picked(*relations[name], names(schema))
            case Change(name, schema):
                return _picked(*relations[change_name(name)], names(schema))
            case Filter(child, predicate):
                columns = columns_of(child)
                return [(r, w) for r, w in rows(child) if value(predicate, _named(columns, r))]
            case Map(child, outputs):
                columns = columns_of(child)
                return [
                    (tuple(value(o.scalar, _named(columns, r)) for o in outputs), w)
                    for r, w in rows(child)
                ]
            case Unnest(child):
                return [each for r, w in rows(child) for each in _unnested(node, r, w)]
            case Add(left, right):
                return rows(left) + _picked(columns_of(right), rows(right), columns_of(left))
            case Negate(child):
                return [(r, -w) for r, w in rows(child)]
            case Join():
                return _joined(node, rows(node.left), rows(node.right))
            case Distinct(child):
                return [(r, 1) for r, w in _added_up(rows(child)).items() if w > 0]
            case Positive(child):
                return [(r, w) for r, w in _added_up(rows(child)).items() if w > 0]
            case Totals(child, keys, measures):
                return _totals(rows(child), columns_of(child), keys, measures)
            case Groups(child, keys):
                return _groups(rows(child), columns_of(child), keys)
            case Partition(child, keys, aggregates):
                return _partition(rows(child), columns_of(child), keys, aggregates)
            case Window(child, keys, overs):
                return _window(rows(child), columns_of(child), keys, overs)
            case Restrict(child, to, on):
                wanted = {r for r, _ in _picked(columns_of(to), rows(to), tuple(b for _, b in on))}
                found = rows(child)
                keys = _picked(columns_of(child), found, tuple(a for a, _ in on))
                return [e for e, (key, _) in zip(found, keys, strict=True) if key in wanted]
            case Recursive(name, schema):
                return _picked(*relations[f"recursive {name}"], names(schema))
            case Fixpoint():
                return _reached(node, relations)
            case _:
                assert_never(node)

    return rows(plan)


class EndlessError(Exception):
    """A loop that does not end within its limit."""


def _reached(node: Fixpoint, relations: Relations, most: int = 60) -> Rows:
    """Xₙ₊₁ = B(Xₙ) from X₀ = 0 until they are equal."""
    columns = {name: columns_of(body) for name, body in node.equations}
    now: dict[str, dict[Row, int]] = {name: {} for name in columns}
    trace: Rows = []
    for iteration in range(1, (node.limit or most) + 2):
        known = {f"recursive {n}": (columns[n], list(now[n].items())) for n in columns}
        every = {**relations, **known}
        after = {name: _added_up(rows_of(body, every)) for name, body in node.equations}
        if after == now:
            return trace if node.traced else list(now[node.result].items())
        lost = [(row, -weight) for row, weight in now[node.result].items()]
        moved = _added_up([*after[node.result].items(), *lost])
        trace += [((*row, iteration), weight) for row, weight in moved.items()]
        now = after
    raise EndlessError(node.result)


def _named(columns: Columns, row: Row) -> dict[str, Any]:
    return dict(zip(columns, row, strict=True))


def _is_nan(v: Any) -> bool:
    return isinstance(v, float) and isnan(v)


def _picked(columns: Columns, rows: Rows, wanted: Columns) -> Rows:
    """The columns wanted, in that order."""
    places = [columns.index(name) for name in wanted]
    return [(tuple(row[i] for i in places), weight) for row, weight in rows]


def _added_up(rows: Rows) -> dict[Row, int]:
    found: dict[Row, int] = {}
    for row, weight in rows:
        found[row] = found.get(row, 0) + weight
    return {row: weight for row, weight in found.items() if weight}


def _unnested(node: Unnest, row: Row, weight: int) -> Rows:
    found = value(node.array, _named(columns_of(node.child), row))
    items: list[Row] = list(enumerate(found or ()))
    if node.outer and not items:
        items = [(None, None)]
    return [((*row, *(item if node.position else item[1:])), weight) for item in items]


def _joined(node: Join, left: Rows, right: Rows) -> Rows:
    names_ = names(schema_of(node.left) + schema_of(node.right))
    lefts, rights = columns_of(node.left), columns_of(node.right)
    on = [(lefts.index(a), rights.index(b)) for a, b in node.on]
    pairs = [
        (a + b, v * w)
        for a, v in left
        for b, w in right
        if all((a[i],) == (b[j],) and (node.nulls or a[i] is not None) for i, j in on)
    ]
    if node.residual is None:
        return pairs
    return [(r, w) for r, w in pairs if value(node.residual, _named(names_, r))]


Group = list[tuple[dict[str, Any], int]]


def _by_key(rows: Rows, columns: Columns, keys: Columns) -> dict[Row, Group]:
    found: dict[Row, Group] = {}
    for row, weight in rows:
        named = _named(columns, row)
        found.setdefault(tuple(named[key] for key in keys), []).append((named, weight))
    return found


def _totals(rows: Rows, columns: Columns, keys: Columns, measures: tuple[Measure, ...]) -> Rows:
    return [
        ((*key, *(_measured(m, group) for m in measures)), sum(w for _, w in group))
        for key, group in _by_key(rows, columns, keys).items()
    ]


def _measured(measure: Measure, group: Group) -> Any:
    if measure.function == "product":
        products = (prod(Decimal(r[name]) for name in measure.factors) for r, _ in group)
        return int(sum(products)) if measure.type == "bigint" else sum(products, Decimal(0))
    if measure.column is None:
        return sum(w for _, w in group)
    present = [(r[measure.column], w) for r, w in group if r[measure.column] is not None]
    if measure.function == "count":
        return sum(w for _, w in present)
    return sum((Decimal(v) * w for v, w in present), Decimal(0))


def _groups(rows: Rows, columns: Columns, keys: Columns) -> Rows:
    measured = [name for name in columns if name not in keys]
    grouped = _by_key(rows, columns, keys)
    if not keys:
        grouped.setdefault((), [])
    return [
        ((*key, *(sum(r[name] for r, _ in group) for name in measured)), 1)
        for key, group in grouped.items()
        if not keys or sum(w for _, w in group) > 0
    ]


def _partition(
    rows: Rows, columns: Columns, keys: Columns, aggregates: tuple[Aggregate, ...]
) -> Rows:
    standing = list(_added_up(rows).items())
    if any(counts_copies(a.function) for a in aggregates):
        standing = [(row, weight) for row, weight in standing if weight > 0]
    grouped = _by_key(standing, columns, keys)
    if not keys:
        grouped.setdefault((), [])
    return [
        ((*key, *(_aggregated(a, group) for a in aggregates)), 1) for key, group in grouped.items()
    ]


def _aggregated(aggregate: Aggregate, group: Group) -> Any:
    if aggregate.column is None:
        return sum(w for _, w in group)
    if aggregate.function in ("max_by", "min_by"):
        return _extreme(aggregate, group)
    if aggregate.function == "listagg":
        return _listed(aggregate, group)
    values = [(tuple(r[name] for name in aggregate.arguments), w) for r, w in group]
    present = [(v[0] if len(v) == 1 else v, w) for v, w in values if None not in v]
    if aggregate.distinct:
        present = [(v, 1) for v in dict.fromkeys(v for v, _ in present)]
    count = sum(w for _, w in present)
    if aggregate.function == "count":
        return count
    if aggregate.function == "collect_list":
        return tuple(sorted((v for v, w in present for _ in range(w)), key=_rank))
    if not present:
        return None
    match aggregate.function:
        case "sum" | "avg":
            return _total(aggregate, present, count)
        case "min":
            return min((v for v, _ in present), key=_rank)
        case "max":
            return max((v for v, _ in present), key=_rank)
        case "bit_and":
            return reduce(and_, (v for v, _ in present))
        case "bit_or":
            return reduce(or_, (v for v, _ in present))
        case "bit_xor":
            return reduce(xor, (v for v, w in present for _ in range(w)))
        case "mode":
            return _mode(aggregate, present)
        case "percentile_cont" | "percentile_disc":
            return _percentile(aggregate, present)
        case _:
            raise AssertionError(aggregate)


def _rank(v: Any) -> tuple[Any, ...]:
    """Where a value comes in the order: NULL before every number, and NaN behind."""
    if isinstance(v, tuple):
        return (1, False, tuple(map(_rank, v)))
    return (0,) if v is None else (1, _is_nan(v), v)


def _total(aggregate: Aggregate, present: list[tuple[Any, int]], count: int) -> Any:
    total = sum(v * w for v, w in present)
    if aggregate.function == "avg":
        if count == 0:
            return None
        if parts := decimal_parts(aggregate.type):
            mean = Decimal(total) / count
            return mean.quantize(Decimal(1).scaleb(-parts[1]), ROUND_HALF_UP)
        total = total / count
    # One object for every NaN, so that it equals itself.
    return nan if _is_nan(total) else total


def _extreme(aggregate: Aggregate, group: Group) -> Any:
    """The value of the row that is first or last; of rows that tie, the least or greatest."""
    pairs = [tuple(r[name] for name in aggregate.arguments) for r, _ in group]
    ranked = [(_rank(by), _rank(v), v) for v, by in pairs if by is not None]
    pick = max if aggregate.function == "max_by" else min
    return pick(ranked, key=lambda each: each[:2])[2] if ranked else None


def _listed(aggregate: Aggregate, group: Group) -> str | None:
    rows = [r for r, w in group for _ in range(w) if r[aggregate.column or ""] is not None]
    for each in reversed(aggregate.order):
        rows.sort(key=lambda r: _rank(r[each.column]), reverse=each.descending)
        rows.sort(key=lambda r: (r[each.column] is None) != each.nulls_first)
    found = [r[aggregate.column or ""] for r in rows]
    separator = aggregate.fixed.strip("'")
    return separator.join(dict.fromkeys(found) if aggregate.distinct else found) if rows else None


def _mode(aggregate: Aggregate, present: list[tuple[Any, int]]) -> Any:
    often: Counter[Any] = Counter()
    for v, w in present:
        often[v] += w
    ordered = sorted(often, key=_rank, reverse=aggregate.order[0].descending)
    return max(ordered, key=lambda v: often[v])


def _percentile(aggregate: Aggregate, present: list[tuple[Any, int]]) -> float:
    """The value at a place in the order, or between two of them."""
    found = sorted((v for v, w in present for _ in range(w)), key=_rank)
    if aggregate.order and aggregate.order[0].descending:
        found.reverse()
    part = float(aggregate.fixed)
    if aggregate.function == "percentile_disc":
        return float(found[max(ceil(len(found) * part), 1) - 1])
    place = (len(found) - 1) * part
    low, high = found[floor(place)], found[ceil(place)]
    if low == high:
        return float(low)
    between = low + (high - low) * (place - floor(place))
    return nan if _is_nan(between) else float(between)


def _window(rows: Rows, columns: Columns, keys: Columns, overs: tuple[Over, ...]) -> Rows:
    standing = [(row, weight) for row, weight in _added_up(rows).items() if weight > 0]
    numbered = any(over.function == "row_number" for over in overs)
    return [
        ((*row.values(), *(_over(over, row, group, copy) for over in overs)), times)
        for group in _by_key(standing, columns, keys).values()
        for row, weight in group
        for copy, times in ([(i, 1) for i in range(weight)] if numbered else [(0, weight)])
    ]


def _over(over: Over, row: dict[str, Any], group: Group, copy: int) -> Any:
    """The value of a function at a row: of the rows up to it and its equals in the order."""
    here = _placed(over, row)
    before = [(_placed(over, r), w) for r, w in group if _placed(over, r) < here]
    upto = [(r, w) for r, w in group if _is_in_frame(over, r, row)]
    match over.function:
        case "row_number":
            tied = (w for r, w in upto if _placed(over, r) == here and repr(r) < repr(row))
            return 1 + sum(w for _, w in before) + sum(tied) + copy
        case "rank":
            return 1 + sum(w for _, w in before)
        case "dense_rank":
            return 1 + len({at for at, _ in before})
        case "count":
            return sum(w for _, w in upto)
        case "sum":
            present = [(v, w) for r, w in upto if (v := value(over.arguments[0], r)) is not None]
            return sum(v * w for v, w in present) if present else None
        case _:
            raise AssertionError(over)


def _is_in_frame(over: Over, row: dict[str, Any], here: dict[str, Any]) -> bool:
    """Whether a row is read at another: up to it, or in a range of numbers around it."""
    if not over.frame:
        return _placed(over, row) <= _placed(over, here)
    a, b = (each[over.order[0].column] for each in (row, here))
    if a is None or b is None:
        return a is b
    low, high = map(int, re.fullmatch(FRAME, over.frame).groups())  # type: ignore[union-attr]
    apart = b - a if over.order[0].descending else a - b
    return bool(-low <= apart <= high)


FRAME = r"RANGE BETWEEN (\d+) PRECEDING AND (\d+) FOLLOWING"


def _placed(over: Over, row: dict[str, Any]) -> tuple[tuple[Any, ...], ...]:
    """Where a row comes in the order."""
    return tuple(
        (0 if o.nulls_first else 2,)
        if row[o.column] is None
        else (1, *_rank(-row[o.column] if o.descending else row[o.column]))
        for o in over.order
    )
