"""Validates constraints that are new, or whose meaning has changed, on the rows that are there."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager

from everview.database.catalog.catalog import Catalog
from everview.database.violations import must_be_empty, must_hold
from everview.expr.quoting import spark_name
from everview.plan.nodes import Empty
from everview.program.constraints import NOT_NULL
from everview.program.steps import Check
from everview.runtime.protocol import Engine, Snapshot

AtStatement = Callable[[str], AbstractContextManager[None]]
"""A context in which errors are shown at the statement that declares a table or constraint."""


def validate(
    old: Catalog,
    new: Catalog,
    stale: Collection[str],
    engine: Engine,
    after: Snapshot,
    at_statement: AtStatement,
) -> None:
    """Refuse the next catalog if rows that are there violate what it demands for the first time.

    `stale` are the views whose rows are other ones in `after`.
    """
    for name, table in new.tables.items():
        before = old.tables.get(name)
        if before is None:
            continue
        fresh = tuple(column for column in table.not_null if column not in before.not_null)
        if fresh:
            nulls = " OR ".join(f"{spark_name(column)} IS NULL" for column in fresh)
            columns = ", ".join(spark_name(column.name) for column in table.columns)
            query = f"SELECT {columns} FROM {spark_name(name)} WHERE {nulls}"
            check = Check(NOT_NULL, name, fresh, Empty(table.columns))
            with at_statement(name):
                must_be_empty(check, query, (name,), engine, after)
    for assertion in new.maintenance.assertions:
        former = old.constraints.get(assertion.name)
        known = former is not None and former.enforced and former.name not in old.beyond_reach
        reads = new.reads(assertion.name)
        if known and old.assertion(assertion.name) == assertion and not {*reads} & {*stale}:
            continue
        with at_statement(assertion.name):
            must_hold(assertion, engine, after)
