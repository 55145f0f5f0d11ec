"""Constraints as checks of a change: keys, NOT NULL, that deleted rows exist, assertions."""

from __future__ import annotations

from everview.expr import scalar
from everview.plan.build import (
    add,
    columns_of,
    distinct,
    filter_,
    groups,
    negate,
    totals,
)
from everview.plan.nodes import Measure, Ref, Source
from everview.program.lowering import Lookup, Lowering
from everview.program.steps import Check, Step, change_name

DUPLICATE_KEY = "primary key"
MISSING_ROW = "deleted row exists"
NOT_NULL = "not null"
ASSERTION = "assertion"


def checks(
    source: Source,
    sort: tuple[str, ...],
    not_null: tuple[str, ...],
    deletes: bool,
    lowering: Lowering,
) -> list[Step]:
    """The checks of one table, on a change and the rows it meets (minimal-changes §I)."""
    change = Ref(change_name(source.name), source.schema)
    steps: list[Step] = []
    if not_null:
        nulls = " OR ".join(f"{scalar.column(name)} IS NULL" for name in not_null)
        bad = distinct(filter_(change, scalar.canonical(nulls)))
        steps.append(Check(NOT_NULL, source.name, not_null, bad))
    if not (source.key or deletes):
        return steps
    by = source.key or sort[:1]
    # A slice may hold rows with other keys: they keep the rules already.
    after = add(lowering.lower_lookup(source, Lookup.of(change, by)), change)
    if source.key:
        count = Measure("count(*)", "bigint", "count")
        counted = groups(totals(after, source.key, (count,)), source.key)
        twice = filter_(counted, scalar.canonical("`count(*)` > 1"))
        steps.append(Check(DUPLICATE_KEY, source.name, source.key, twice))
    if deletes:
        missing = distinct(negate(after))
        steps.append(Check(MISSING_ROW, source.name, columns_of(source), missing))
    return steps


def stays_empty(name: str, text: str, change: Ref) -> Check:
    """The check of a view that is empty before a transaction: no row may come to it."""
    return Check(ASSERTION, name, columns_of(change), distinct(change), text)
