"""The change of top-k: the first rows of every group follow from the old first rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from everview.analysis.sign import Sign, sign
from everview.expr import scalar
from everview.expr.types import is_nested, names, type_in
from everview.plan.build import (
    add,
    columns_of,
    filter_,
    fresh,
    identity,
    join,
    map_,
    negate,
    partition,
    project,
    restrict_to_keys,
    window,
)
from everview.plan.nodes import Aggregate, Filter, Order, Output, Over, Plan, Window
from everview.plan.traverse import CACHE_SIZE, schema_of


@dataclass(frozen=True, slots=True)
class TopK:
    """The rows of a window whose number is at most `most`, and the `rest` of the filter on them."""

    plan: Filter
    window: Window
    number: Over
    most: int
    rest: str | None


@lru_cache(maxsize=CACHE_SIZE)
def top_k(plan: Plan) -> TopK | None:
    """The first rows that a filter keeps, where it is a bound of a row number or a rank.

    The rows must be a bag, and no other column of the window may depend on later rows.
    """
    if not isinstance(plan, Filter) or not isinstance(plan.child, Window):
        return None
    placed, parts = plan.child, scalar.conjuncts(plan.predicate)
    if sign(placed.child) is Sign.ANY:
        return None
    for number in placed.columns:
        bounds = [most for part in parts if (most := _at_most(part, number.name)) is not None]
        if bounds and all(_needs_no_later_row(over, number) for over in placed.columns):
            bound = scalar.canonical(f"{scalar.column(number.name)} <= {min(bounds)}")
            rest = scalar.conjunction(part for part in parts if part != bound)
            return TopK(Filter(placed, bound), placed, number, min(bounds), rest)
    return None


def top_k_change(shape: TopK, d_child: Plan) -> Plan:
    """Δ of the first rows A = σₙ(ΩₖQ), with K the groups that may lack some of A + ΔQ.

    σₙΩₖ(A ⋉ ΔQ − A ⋉ K + Q ⋉ K + ΔQ) − A ⋉ ΔQ: only the rows of the groups in K are read.
    Without keys, nothing is done unless some rows of the change may come among the first.
    """
    keys, child = shape.window.keys, shape.window.child
    old = restrict_to_keys(shape.plan, d_child, keys)
    early = None if keys else _early(shape, old, d_child)
    if early is not None:
        old, d_child = restrict_to_keys(old, early, ()), restrict_to_keys(d_child, early, ())
    held = project(old, columns_of(child))
    short = _short(shape, old, d_child)
    known = add(held, negate(restrict_to_keys(held, short, keys)))
    rows = add(known, restrict_to_keys(child, short, keys), d_child)
    after = filter_(window(rows, keys, shape.window.columns), shape.plan.predicate)
    return add(after, negate(old))


def _early(shape: TopK, old: Plan, d_child: Plan) -> Plan | None:
    """The rows of a change that may come among the first of all rows, perhaps others too.

    What comes after the last of as many rows as are wanted is not among them, neither before the
    change nor after it. Only the first column of the order is looked at; None if it has no bounds.
    """
    (first, *_), schema = shape.number.order, schema_of(d_child)
    type_ = type_in(schema, first.column)
    if is_nested(type_):
        return None
    bound = fresh("bound", names(schema))
    last = partition(_last(shape, old), (), (Aggregate(bound, type_, "max", first.column),))
    value, sign_ = scalar.column(first.column), ">=" if first.descending else "<="
    known = f"{value} IS NULL OR {scalar.column(bound)} IS NULL"
    within = scalar.canonical(f"{value} {sign_} {scalar.column(bound)} OR {known}")
    return project(join(d_child, last, (), within), ())


def _last(shape: TopK, old: Plan) -> Plan:
    """The last of as many rows as are wanted, where there are as many; of equal ones any.

    Numbers that are kept tell it, unless equal rows that are counted have the same number.
    """
    columns = columns_of(shape.window.child)
    if shape.number.function == "rank":
        place = fresh("place", columns_of(shape.window))
        number = Over(place, "int", "row_number", (), shape.number.order)
        counted = window(project(old, columns), shape.window.keys, (number,))
        return project(filter_(counted, _compare(place, "=", shape.most)), columns)
    return project(filter_(old, _compare(shape.number.name, "=", shape.most)), columns)


def _short(shape: TopK, old: Plan, d_child: Plan) -> Plan:
    """The groups of which too few rows are known to come before all that are not held.

    A group that held all its rows is never among them. Of another, what is not held comes after
    the last row that is held: enough is known while as many rows as are wanted come up to it.
    """
    held, keys = project(old, columns_of(shape.window.child)), shape.window.keys
    schema = schema_of(held)
    place, last = (fresh(name, columns_of(shape.window)) for name in ("place", "last"))
    function = "dense_rank" if shape.number.function == "dense_rank" else "row_number"
    behind = Over(place, "int", function, (), (*shape.number.order, Order(last)))
    rows = map_(add(held, d_child), (*identity(schema), Output(last, "int", "0")))
    marks = map_(_last(shape, old), (*identity(schema), Output(last, "int", "1")))
    early = f"{_compare(last, '=', 1)} AND {_compare(place, '<=', shape.most)}"
    return filter_(window(add(rows, marks), keys, (behind,)), scalar.canonical(early))


_NUMBERS = ("row_number", "rank", "dense_rank")


def _needs_no_later_row(over: Over, number: Over) -> bool:
    """Whether a column of the first rows is a function of these alone."""
    common = min(len(over.order), len(number.order))
    return over.function in _NUMBERS and over.order[:common] == number.order[:common]


def _at_most(condition: str, name: str) -> int | None:
    """The greatest value that a condition leaves a column, if it is a bound of it."""
    tree = scalar.parse(condition)
    if not isinstance(tree, exp.LTE | exp.EQ | exp.LT | exp.GTE | exp.GT | exp.Between):
        return None
    column, bound = tree.this, tree.args.get("high") or tree.expression
    if isinstance(tree, exp.GTE | exp.GT):
        column, bound = bound, column
    less = isinstance(tree, exp.LT | exp.GT)
    number = isinstance(bound, exp.Literal) and not bound.is_string and bound.name.isdigit()
    named = isinstance(column, exp.Column) and column.name == name
    return int(bound.name) - less if named and number else None


def _compare(column: str, sign_: str, number: int) -> str:
    return scalar.canonical(f"{scalar.column(column)} {sign_} {number}")
