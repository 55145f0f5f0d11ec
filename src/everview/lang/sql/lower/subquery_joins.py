"""EXISTS, IN, comparisons with ALL and scalar subqueries as joins with the outer rows."""

from __future__ import annotations

from dataclasses import replace

from everview.expr import scalar
from everview.expr.types import type_in
from everview.lang.sql.lower.collections import collected, element_of_columns, with_arrays
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.domain import group_each_value
from everview.lang.sql.lower.outer_joins import semi_join_on
from everview.lang.sql.lower.subqueries import ComputedSubquery, Kind
from everview.plan.build import (
    add,
    columns_of,
    distinct,
    filter_,
    identity,
    join,
    map_,
    negate,
    project,
)
from everview.plan.nodes import Aggregate, Distinct, Filter, Join, Map, Output, Plan, Ref, Values
from everview.plan.traverse import recurs, schema_of, walk

_ROWS = Aggregate("rows", "bigint", "count")

# Conditions that only keep rows: semi and anti joins.


def keep_existing(plan: Plan, subquery: ComputedSubquery) -> Plan:
    """The rows for which the subquery has some."""
    if recurs(plan) and (uncorrelated := _uncorrelated(subquery)):
        return semi_join_on(plan, *uncorrelated)
    some = distinct(project(subquery.plan, subquery.keys))
    return project(join(plan, some, subquery.pairs, nulls=True), columns_of(plan))


def drop_existing(plan: Plan, subquery: ComputedSubquery) -> Plan:
    """The rows for which the subquery has none."""
    return add(plan, negate(keep_existing(plan, subquery)))


def keep_in(
    context: LoweringContext, plan: Plan, subquery: ComputedSubquery, left: tuple[str, ...]
) -> Plan:
    """The rows for which `left IN (subquery)` is true."""
    rows, left_columns = _with_left_columns(plan, left, context)
    return project(_in_rows(rows, subquery, left_columns), columns_of(plan))


def keep_not_in(
    context: LoweringContext, plan: Plan, subquery: ComputedSubquery, left: tuple[str, ...]
) -> Plan:
    """The rows for which `left NOT IN (subquery)` is true."""
    rows, left_columns = _with_left_columns(plan, left, context)
    if len(left_columns) > 1:
        return project(
            filter_(_with_comparisons(rows, subquery, left_columns), _NONE), columns_of(plan)
        )
    kept = filter_(_with_counts(rows, subquery), _is_known(left_columns[0]))
    return project(add(kept, negate(_in_rows(kept, subquery, left_columns))), columns_of(plan))


# Values in an expression: one row for each value of the domain, joined back.


def with_exists(plan: Plan, subquery: ComputedSubquery, name: str) -> Plan:
    """The rows with a column that says whether the subquery has any."""
    per_value = group_each_value(
        project(subquery.plan, subquery.keys), subquery.values, subquery.keys, (_ROWS,)
    )
    return _joined_back(plan, per_value, subquery.pairs, Output(name, "boolean", "`rows` > 0"))


def with_in(
    context: LoweringContext,
    plan: Plan,
    subquery: ComputedSubquery,
    left: tuple[str, ...],
    name: str,
) -> Plan:
    """The rows with `left IN (subquery)` as a value: in Spark, unknown is false here."""
    rows, left_columns = _with_left_columns(plan, left, context)
    matched = _with_matches(rows, subquery, left_columns)
    return map_(matched, (*identity(schema_of(plan)), Output(name, "boolean", "`yes` > 0")))


def with_not_in(
    context: LoweringContext,
    plan: Plan,
    subquery: ComputedSubquery,
    left: tuple[str, ...],
    name: str,
) -> Plan:
    """The rows with `left NOT IN (subquery)` as a value: in Spark, unknown is false here too."""
    rows, left_columns = _with_left_columns(plan, left, context)
    if len(left_columns) > 1:
        compared, text = _with_comparisons(rows, subquery, left_columns), _NONE
    else:
        compared = _with_counts(_with_matches(rows, subquery, left_columns), subquery)
        text = f"`yes` = 0 AND ({_is_known(left_columns[0])})"
    flag = Output(name, "boolean", scalar.canonical(text))
    return map_(compared, (*identity(schema_of(plan)), flag))


def with_null_in(plan: Plan, subquery: ComputedSubquery, name: str, *, if_empty: bool) -> Plan:
    """The rows with NULL IN (subquery), or NOT IN: as a value, Spark makes this one NULL."""
    per_value = group_each_value(subquery.plan, subquery.values, subquery.keys, (_ROWS,))
    text = f"CASE WHEN `rows` > 0 THEN CAST(NULL AS BOOLEAN) ELSE {str(if_empty).upper()} END"
    return _joined_back(
        plan, per_value, subquery.pairs, Output(name, "boolean", scalar.canonical(text))
    )


def with_unequal(
    context: LoweringContext,
    plan: Plan,
    subquery: ComputedSubquery,
    left: tuple[str, ...],
    name: str,
) -> Plan:
    """The rows with whether `left` is unequal to ALL rows of the subquery, NULL if unknown."""
    rows, left_columns = _with_left_columns(plan, left, context)
    compared = _with_counts(_with_matches(rows, subquery, left_columns), subquery)
    text = (
        "CASE WHEN `yes` > 0 THEN FALSE WHEN `rows` = 0 THEN TRUE "
        f"WHEN {scalar.column(left_columns[0])} IS NULL OR `rows` > `known` THEN NULL ELSE TRUE END"
    )
    flag = Output(name, "boolean", scalar.canonical(text))
    return map_(compared, (*identity(schema_of(plan)), flag))


def with_scalar(plan: Plan, subquery: ComputedSubquery, name: str, *, one_row: bool) -> Plan:
    """The rows with the one value of the subquery, NULL where it has none."""
    value = subquery.outputs[0]
    type_ = type_in(schema_of(subquery.plan), value)
    if one_row:
        per_value = project(subquery.plan, (*subquery.keys, value))
        return _joined_back(
            plan, per_value, subquery.pairs, Output(name, type_, scalar.column(value))
        )
    wanted = (_ROWS, Aggregate("value", type_, "max", value))
    per_value = group_each_value(subquery.plan, subquery.values, subquery.keys, wanted)
    single = scalar.canonical("ev_single(`rows`, `value`)")
    return _joined_back(plan, per_value, subquery.pairs, Output(name, type_, single))


def with_array(plan: Plan, subquery: ComputedSubquery, name: str) -> Plan:
    """The rows with an array of the rows of the subquery, empty where it has none."""
    columns = tuple(c for c in schema_of(subquery.plan) if c.name in subquery.outputs)
    type_, element = element_of_columns(columns, subquery.shown)
    support = subquery.values if subquery.keys else Values((), ((),))
    arrays = collected(subquery.plan, support, subquery.keys, Output(name, type_, element))
    return with_arrays(plan, arrays, subquery.pairs, name)


def with_all(plan: Plan, subquery: ComputedSubquery, left: str, kind: Kind, name: str) -> Plan:
    """The rows with whether `left` compares so with ALL rows of the subquery, NULL if unknown."""
    value = subquery.outputs[0]
    type_ = type_in(schema_of(subquery.plan), value)
    wanted = (
        _ROWS,
        Aggregate("known", "bigint", "count", value),
        Aggregate("least", type_, "min", value),
        Aggregate("most", type_, "max", value),
    )
    per_value = group_each_value(subquery.plan, subquery.values, subquery.keys, wanted)
    bounds = {"=": ("least", "most"), "<": ("least",), "<=": ("least",)}.get(kind, ("most",))
    holds = " AND ".join(f"({left}) {kind} `{bound}`" for bound in bounds)
    text = (
        f"CASE WHEN `rows` = 0 THEN TRUE WHEN ({left}) IS NULL THEN NULL "
        f"WHEN NOT ({holds}) THEN FALSE WHEN `rows` > `known` THEN NULL ELSE TRUE END"
    )
    return _joined_back(
        plan, per_value, subquery.pairs, Output(name, "boolean", scalar.canonical(text))
    )


def _joined_back(
    plan: Plan, per_value: Plan, pairs: tuple[tuple[str, str], ...], *outputs: Output
) -> Plan:
    """The rows with columns computed from the one row of `per_value` for their values."""
    joined = join(plan, per_value, pairs, nulls=True)
    return map_(joined, (*identity(schema_of(plan)), *outputs))


def _with_left_columns(
    plan: Plan, left: tuple[str, ...], context: LoweringContext
) -> tuple[Plan, tuple[str, ...]]:
    """The rows with the left side of IN in columns of its own, and the names of those."""
    schema, number = schema_of(plan), context.fresh_number()
    outputs = tuple(
        Output(f"in {number} {n}", context.type_of(text, schema, scalar.parse(text)), text)
        for n, text in enumerate(left)
    )
    return map_(plan, (*identity(schema), *outputs)), tuple(o.name for o in outputs)


def _in_rows(rows: Plan, subquery: ComputedSubquery, left_columns: tuple[str, ...]) -> Plan:
    """The rows whose left side equals a row of the subquery; NULL equals nothing."""
    some, ours = distinct(subquery.plan), schema_of(rows)
    on, equal = list(subquery.pairs), []
    for mine, theirs in zip(left_columns, subquery.outputs, strict=True):
        if type_in(ours, mine) == type_in(schema_of(some), theirs):
            on.append((mine, theirs))
            equal.append(scalar.canonical(f"{scalar.column(mine)} IS NOT NULL"))
        else:
            equal.append(_equal(mine, theirs))
    pairs = filter_(join(rows, some, tuple(on), nulls=True), scalar.conjunction(equal))
    return project(pairs, columns_of(rows))


def _with_counts(rows: Plan, subquery: ComputedSubquery) -> Plan:
    """The rows with `rows` and `known`: how many the subquery has, and how many are not NULL."""
    output = subquery.outputs[0]
    wanted = (_ROWS, Aggregate("known", "bigint", "count", output))
    per_value = group_each_value(subquery.plan, subquery.values, subquery.keys, wanted)
    counts = (Output("rows", "bigint", "`rows`"), Output("known", "bigint", "`known`"))
    return _joined_back(rows, per_value, subquery.pairs, *counts)


def _with_matches(rows: Plan, subquery: ComputedSubquery, left_columns: tuple[str, ...]) -> Plan:
    """The rows with `yes`, the number of rows of the subquery that equal their left side."""
    values, pairs, keys = _left_values(rows, subquery, left_columns)
    mine = tuple((k, v) for k, (_, v) in zip(keys, subquery.pairs, strict=False))
    some = distinct(subquery.plan)
    equal = [_equal(a, b) for a, b in zip(keys[len(mine) :], subquery.outputs, strict=True)]
    matches = filter_(join(values, some, mine, nulls=True), scalar.conjunction(equal))
    per_value = group_each_value(project(matches, keys), values, keys, (_ROWS,))
    return _joined_back(rows, per_value, pairs, Output("yes", "bigint", "`rows`"))


def _with_comparisons(
    rows: Plan, subquery: ComputedSubquery, left_columns: tuple[str, ...]
) -> Plan:
    """The rows with `yes` and `open`: for how many rows the comparison is true, and unknown."""
    values, pairs, keys = _left_values(rows, subquery, left_columns)
    mine = tuple((k, v) for k, (_, v) in zip(keys, subquery.pairs, strict=False))
    both = join(values, subquery.plan, mine, nulls=True)
    equal = " AND ".join(
        f"({_equal(a, b)})" for a, b in zip(keys[len(mine) :], subquery.outputs, strict=True)
    )
    kept = tuple(o for o in identity(schema_of(both)) if o.name in keys)
    flags = (
        Output("is", "int", scalar.canonical(f"CASE WHEN {equal} THEN 1 END")),
        Output("may be", "int", scalar.canonical(f"CASE WHEN ({equal}) IS NULL THEN 1 END")),
    )
    counts = (
        Aggregate("yes", "bigint", "count", "is"),
        Aggregate("open", "bigint", "count", "may be"),
    )
    per_value = group_each_value(map_(both, (*kept, *flags)), values, keys, counts)
    outputs = tuple(Output(n, "bigint", scalar.column(n)) for n in ("yes", "open"))
    return _joined_back(rows, per_value, pairs, *outputs)


_NONE = "`yes` = 0 AND `open` = 0"


def _is_known(left: str) -> str:
    """Whether no NULL on either side makes NOT IN unknown, over the columns of `_with_counts`."""
    known = f"`rows` = `known` AND NOT {scalar.column(left)} IS NULL"
    return scalar.canonical(f"`rows` = 0 OR ({known})")


def _left_values(
    rows: Plan, subquery: ComputedSubquery, left_columns: tuple[str, ...]
) -> tuple[Plan, tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The distinct values of the domain and the left side; which columns are equal; their names."""
    columns = (*subquery.domain.offered, *left_columns)
    pairs = tuple((column, f"of {column}") for column in columns)
    schema = schema_of(rows)
    outputs = tuple(Output(n, type_in(schema, c), scalar.column(c)) for c, n in pairs)
    return distinct(map_(rows, outputs)), pairs, tuple(n for _, n in pairs)


def _equal(mine: str, theirs: str) -> str:
    return scalar.canonical(f"{scalar.column(mine)} = {scalar.column(theirs)}")


Uncorrelated = tuple[Plan, tuple[str, ...]]
"""Rows without D, and conditions over them and D."""


def _uncorrelated(subquery: ComputedSubquery) -> tuple[Plan, str | None] | None:
    """The subquery as rows that read nothing of D, and the condition that relates them to a row.

    None where the subquery does more with D than to join and to filter. D is made of the outer
    rows, so in a recursion it would put the recursion below the subquery, where no negation may
    stand above it. Without D it is not there.
    """
    uncorrelated = _without_domain(subquery.over_leaf, subquery.domain.leaf, ())
    if uncorrelated is None:
        return None
    rows, conditions = uncorrelated
    mark = f"{subquery.domain.number}/"
    names = {name: mark + name for name in columns_of(rows)}
    names |= {theirs: mine for mine, theirs in subquery.pairs}
    outputs = tuple(replace(each, name=names[each.name]) for each in identity(schema_of(rows)))
    condition = scalar.conjunction(scalar.rename(each, names) for each in conditions)
    return map_(rows, outputs), condition


def _without_domain(plan: Plan, leaf: Ref, conditions: tuple[str, ...]) -> Uncorrelated | None:
    """The rows that a plan joins with D, and all its conditions, in terms of both."""
    match plan:
        case Filter(child, predicate):
            return _without_domain(child, leaf, (*conditions, *scalar.conjuncts(predicate)))
        case Map(child, outputs):
            inner = {each.name: each.scalar for each in outputs}
            inside = tuple(scalar.substitute(each, inner) for each in conditions)
            return _without_domain(child, leaf, inside)
        case Distinct(child):
            return _without_domain(child, leaf, conditions)
        case Join(left, right, (), None, _) if leaf not in walk(right):
            return (
                (right, conditions)
                if left == leaf
                else _joined_without_domain(left, right, leaf, conditions)
            )
        case _:
            return None


def _joined_without_domain(
    left: Plan, right: Plan, leaf: Ref, conditions: tuple[str, ...]
) -> Uncorrelated | None:
    """Rows joined with those that are joined with D; no two of their columns may have one name."""
    uncorrelated = _without_domain(left, leaf, conditions)
    if uncorrelated is None or not {*columns_of(uncorrelated[0])}.isdisjoint(columns_of(right)):
        return None
    return join(uncorrelated[0], right), uncorrelated[1]
