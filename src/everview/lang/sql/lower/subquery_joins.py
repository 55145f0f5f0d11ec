"""What subqueries answer, joined to the rows around them: as conditions, and as values."""

from __future__ import annotations

from everview.expr import scalar
from everview.expr.types import type_in
from everview.lang.sql.lower.grouping import group_each
from everview.lang.sql.lower.outer_joins import matched
from everview.lang.sql.lower.subqueries import Inner, Kind, Lower
from everview.lang.sql.lower.uncorrelate import independent
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
from everview.plan.nodes import Aggregate, Output, Plan
from everview.plan.traverse import recurs, schema_of

_ROWS = Aggregate("rows", "bigint", "count")

# Conditions that only keep rows: a join that asks for a partner.


def keep_existing(plan: Plan, inner: Inner) -> Plan:
    """The rows for which the subquery has some."""
    if recurs(plan) and (found := independent(inner)):
        return matched(plan, *found)
    some = distinct(project(inner.plan, inner.keys))
    return project(join(plan, some, inner.pairs, nulls=True), columns_of(plan))


def drop_existing(plan: Plan, inner: Inner) -> Plan:
    """The rows for which the subquery has none."""
    return add(plan, negate(keep_existing(plan, inner)))


def keep_in(lower: Lower, plan: Plan, inner: Inner, left: tuple[str, ...]) -> Plan:
    """The rows for which `left IN (subquery)` is true."""
    keyed, asked = _keyed(plan, left, lower)
    return project(_in_rows(keyed, inner, asked), columns_of(plan))


def keep_not_in(lower: Lower, plan: Plan, inner: Inner, left: tuple[str, ...]) -> Plan:
    """The rows for which `left NOT IN (subquery)` is true."""
    keyed, asked = _keyed(plan, left, lower)
    if len(asked) > 1:
        return project(filter_(_compared(keyed, inner, asked), _NONE), columns_of(plan))
    kept = filter_(_told(keyed, inner), _sure(asked[0]))
    return project(add(kept, negate(_in_rows(kept, inner, asked))), columns_of(plan))


# Values that stand in an expression: one row for each value of the domain, joined back.


def attach_exists(plan: Plan, inner: Inner, name: str) -> Plan:
    """The rows with a column that says whether the subquery has any."""
    answers = group_each(project(inner.plan, inner.keys), inner.values, inner.keys, (_ROWS,))
    return _beside(plan, answers, inner.pairs, Output(name, "boolean", "`rows` > 0"))


def attach_in(lower: Lower, plan: Plan, inner: Inner, left: tuple[str, ...], name: str) -> Plan:
    """The rows with `left IN (subquery)` as a value: in Spark, what is not known is false."""
    keyed, asked = _keyed(plan, left, lower)
    found = _matched(keyed, inner, asked)
    return map_(found, (*identity(schema_of(plan)), Output(name, "boolean", "`yes` > 0")))


def attach_not_in(lower: Lower, plan: Plan, inner: Inner, left: tuple[str, ...], name: str) -> Plan:
    """The rows with `left NOT IN (subquery)` as a value: what is not known is false here too."""
    keyed, asked = _keyed(plan, left, lower)
    if len(asked) > 1:
        found, text = _compared(keyed, inner, asked), _NONE
    else:
        found = _told(_matched(keyed, inner, asked), inner)
        text = f"`yes` = 0 AND ({_sure(asked[0])})"
    flag = Output(name, "boolean", scalar.canonical(text))
    return map_(found, (*identity(schema_of(plan)), flag))


def attach_null_in(plan: Plan, inner: Inner, name: str, *, if_empty: bool) -> Plan:
    """The rows with NULL IN (subquery), or NOT IN: as a value, Spark knows that it is not known."""
    answers = group_each(inner.plan, inner.values, inner.keys, (_ROWS,))
    text = f"CASE WHEN `rows` > 0 THEN CAST(NULL AS BOOLEAN) ELSE {str(if_empty).upper()} END"
    return _beside(plan, answers, inner.pairs, Output(name, "boolean", scalar.canonical(text)))


def attach_unequal(
    lower: Lower, plan: Plan, inner: Inner, left: tuple[str, ...], name: str
) -> Plan:
    """The rows with whether `left` is unequal to ALL rows of the subquery, NULL if not known."""
    keyed, asked = _keyed(plan, left, lower)
    found = _told(_matched(keyed, inner, asked), inner)
    text = (
        "CASE WHEN `yes` > 0 THEN FALSE WHEN `rows` = 0 THEN TRUE "
        f"WHEN {scalar.column(asked[0])} IS NULL OR `rows` > `known` THEN NULL ELSE TRUE END"
    )
    flag = Output(name, "boolean", scalar.canonical(text))
    return map_(found, (*identity(schema_of(plan)), flag))


def attach_scalar(plan: Plan, inner: Inner, name: str, *, one_row: bool) -> Plan:
    """The rows with the one value of the subquery, NULL where it has none."""
    value = inner.outputs[0]
    type_ = type_in(schema_of(inner.plan), value)
    if one_row:
        answers = project(inner.plan, (*inner.keys, value))
        return _beside(plan, answers, inner.pairs, Output(name, type_, scalar.column(value)))
    wanted = (_ROWS, Aggregate("value", type_, "max", value))
    answers = group_each(inner.plan, inner.values, inner.keys, wanted)
    single = scalar.canonical("ev_single(`rows`, `value`)")
    return _beside(plan, answers, inner.pairs, Output(name, type_, single))


def attach_all(plan: Plan, inner: Inner, left: str, kind: Kind, name: str) -> Plan:
    """The rows with whether `left` compares so with ALL rows of the subquery, NULL if not known."""
    value = inner.outputs[0]
    type_ = type_in(schema_of(inner.plan), value)
    wanted = (
        _ROWS,
        Aggregate("known", "bigint", "count", value),
        Aggregate("least", type_, "min", value),
        Aggregate("most", type_, "max", value),
    )
    answers = group_each(inner.plan, inner.values, inner.keys, wanted)
    bounds = {"=": ("least", "most"), "<": ("least",), "<=": ("least",)}.get(kind, ("most",))
    holds = " AND ".join(f"({left}) {kind} `{bound}`" for bound in bounds)
    text = (
        f"CASE WHEN `rows` = 0 THEN TRUE WHEN ({left}) IS NULL THEN NULL "
        f"WHEN NOT ({holds}) THEN FALSE WHEN `rows` > `known` THEN NULL ELSE TRUE END"
    )
    return _beside(plan, answers, inner.pairs, Output(name, "boolean", scalar.canonical(text)))


def _beside(
    plan: Plan, answers: Plan, pairs: tuple[tuple[str, str], ...], *outputs: Output
) -> Plan:
    """The rows with something computed from the one answer for their values."""
    joined = join(plan, answers, pairs, nulls=True)
    return map_(joined, (*identity(schema_of(plan)), *outputs))


def _keyed(plan: Plan, left: tuple[str, ...], lower: Lower) -> tuple[Plan, tuple[str, ...]]:
    """The rows with what is asked for by IN in columns of their own."""
    schema, number = schema_of(plan), lower.number()
    outputs = tuple(
        Output(f"in {number} {n}", lower.type_(text, schema, scalar.parse(text)), text)
        for n, text in enumerate(left)
    )
    return map_(plan, (*identity(schema), *outputs)), tuple(o.name for o in outputs)


def _in_rows(keyed: Plan, inner: Inner, asked: tuple[str, ...]) -> Plan:
    """The rows whose asked columns equal a row of the subquery; NULL equals nothing."""
    some, ours = distinct(inner.plan), schema_of(keyed)
    on, equal = list(inner.pairs), []
    for mine, theirs in zip(asked, inner.outputs, strict=True):
        if type_in(ours, mine) == type_in(schema_of(some), theirs):
            on.append((mine, theirs))
            equal.append(scalar.canonical(f"{scalar.column(mine)} IS NOT NULL"))
        else:
            equal.append(_equal(mine, theirs))
    found = filter_(join(keyed, some, tuple(on), nulls=True), scalar.conjunction(equal))
    return project(found, columns_of(keyed))


def _told(keyed: Plan, inner: Inner) -> Plan:
    """The rows with how many rows the subquery has for them, and how many are not NULL."""
    output = inner.outputs[0]
    wanted = (_ROWS, Aggregate("known", "bigint", "count", output))
    answers = group_each(inner.plan, inner.values, inner.keys, wanted)
    counts = (Output("rows", "bigint", "`rows`"), Output("known", "bigint", "`known`"))
    return _beside(keyed, answers, inner.pairs, *counts)


def _matched(keyed: Plan, inner: Inner, asked: tuple[str, ...]) -> Plan:
    """The rows with `yes`, how many rows of the subquery equal what they ask for."""
    values, pairs, keys = _asked_values(keyed, inner, asked)
    mine = tuple((k, v) for k, (_, v) in zip(keys, inner.pairs, strict=False))
    some = distinct(inner.plan)
    equal = [_equal(a, b) for a, b in zip(keys[len(mine) :], inner.outputs, strict=True)]
    rows = filter_(join(values, some, mine, nulls=True), scalar.conjunction(equal))
    answers = group_each(project(rows, keys), values, keys, (_ROWS,))
    return _beside(keyed, answers, pairs, Output("yes", "bigint", "`rows`"))


def _compared(keyed: Plan, inner: Inner, asked: tuple[str, ...]) -> Plan:
    """The rows with `yes`, how many rows of the subquery equal theirs, and `open`, how many may."""
    values, pairs, keys = _asked_values(keyed, inner, asked)
    mine = tuple((k, v) for k, (_, v) in zip(keys, inner.pairs, strict=False))
    both = join(values, inner.plan, mine, nulls=True)
    equal = " AND ".join(
        f"({_equal(a, b)})" for a, b in zip(keys[len(mine) :], inner.outputs, strict=True)
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
    answers = group_each(map_(both, (*kept, *flags)), values, keys, counts)
    told = tuple(Output(n, "bigint", scalar.column(n)) for n in ("yes", "open"))
    return _beside(keyed, answers, pairs, *told)


_NONE = "`yes` = 0 AND `open` = 0"


def _sure(asked: str) -> str:
    """Whether no NULL on either side leaves NOT IN open, over what `_told` told."""
    known = f"`rows` = `known` AND NOT {scalar.column(asked)} IS NULL"
    return scalar.canonical(f"`rows` = 0 OR ({known})")


def _asked_values(
    keyed: Plan, inner: Inner, asked: tuple[str, ...]
) -> tuple[Plan, tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The values asked for, with those of the domain; how rows and values agree; their names."""
    columns = (*inner.domain.offered, *asked)
    pairs = tuple((column, f"of {column}") for column in columns)
    schema = schema_of(keyed)
    outputs = tuple(Output(n, type_in(schema, c), scalar.column(c)) for c, n in pairs)
    return distinct(map_(keyed, outputs)), pairs, tuple(n for _, n in pairs)


def _equal(mine: str, theirs: str) -> str:
    return scalar.canonical(f"{scalar.column(mine)} = {scalar.column(theirs)}")
