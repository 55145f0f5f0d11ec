"""SQL between the user and an engine: who reads a text, the engine itself or we.

An engine that evaluates text, as Spark does, is given the text: its answer is the definition. To
any other engine a query is lowered, and it is given a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from everview.database.audit_query import declared, inlined, written_minus_stored
from everview.errors import UserError
from everview.expr.types import Schema, names
from everview.lang.nested.from_sql import has_collections
from everview.lang.sql.lower.nested_items import nested_relation
from everview.lang.sql.lower.top_level_query import lower_ordered, lower_recursive
from everview.lang.sql.parse.ctes import reads_of
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.statements import Query
from everview.plan.nodes import Plan, Source
from everview.plan.ordered_query import OrderedQuery
from everview.plan.traverse import schema_of
from everview.runtime.protocol import Changes, Engine, Snapshot, TooLarge
from everview.runtime.results import Result


def read(engine: Engine, name: str, snapshot: Snapshot, pending: Changes | None = None) -> Result:
    """The rows of a stored relation, each as often as its weight says, after pending changes.

    One that is beyond a given memory budget is read in batches or by Spark, and not whole.
    """
    schema = snapshot.stored[name].schema
    own = {name: pending[name]} if pending and pending.get(name) else {}
    result = engine.select(OrderedQuery(Source(name, schema), names(schema)), snapshot, own)
    return within_budget(result, engine)


def read_plan(
    engine: Engine, plan: Plan, snapshot: Snapshot, pending: Changes | None = None
) -> Result:
    """The rows of a plan over stored relations, after pending changes."""
    return engine.select(OrderedQuery(plan, names(schema_of(plan))), snapshot, pending or {})


def within_budget(result: Result, engine: Engine) -> Result:
    """Rows that are read whole only as far as a given budget allows; their bytes are counted."""
    budget = engine.local.budget
    if not budget.given:
        return result

    def arrow() -> pa.Table:
        try:
            if result.at_most is not None:
                return result.at_most(budget.readable)
            return _collected(result, budget.readable)
        except TooLarge:
            spark = ", or to_spark()" if result.frame is not None else ""
            raise UserError(
                "E018",
                f"the rows take more than {_shown_bytes(budget.readable)}, "
                f"and the memory budget is {_shown_bytes(budget.held)}",
                remedy=f"read them with batches(){spark}, or open the store with more memory",
            ) from None

    return replace(result, arrow=arrow)


def _collected(result: Result, most: float) -> pa.Table:
    """All rows, gathered from batches."""
    found: list[pa.RecordBatch] = []
    size = 0
    for batch in result.batches() if result.stream is not None else ():
        found.append(batch)
        size += batch.nbytes
        if size > most:
            raise TooLarge("rows to be read")
    if found:
        return pa.Table.from_batches(found)
    rows = result.arrow()
    if rows.nbytes > most:
        raise TooLarge("rows to be read")
    return rows


def _shown_bytes(size: float) -> str:
    return f"{int(size) >> 20} MB"


def select(
    engine: Engine, sql: str, reads: Sequence[str], snapshot: Snapshot, pending: Changes
) -> Result:
    """The rows of a query over stored relations, with changes that are not committed yet."""
    known = declared(snapshot)
    if engine.text is None or _reads_collections(sql, reads, known):
        return engine.select(lower_ordered(sql, known, engine.analyze), snapshot, pending)

    def own() -> OrderedQuery | None:
        return lower_recursive(sql, known, engine.analyze)

    return engine.text.select(sql, reads, snapshot, pending, own)


def _reads_collections(sql: str, reads: Sequence[str], known: Mapping[str, Source]) -> bool:
    """Whether a query has collections, or reads a nested view in SQL.

    An engine knows no ARRAY(SELECT …), and sees the labels of a view alone.
    """
    return has_collections(sql) or any(nested_relation(known, name) is not None for name in reads)


def describe(
    engine: Engine, sql: str, relations: Mapping[str, Schema], *, once: bool = False
) -> Schema:
    """The columns of a query over relations, or a UserError when it cannot be answered.

    A query that runs `once`, and is not kept, may read what whoever opened the store allows.
    """
    known = {name.lower(): Source(name, schema) for name, schema in relations.items()}
    if engine.text is None or _reads_collections(sql, reads_of(parse_query(sql)), known):
        with only_known_to_spark():
            query = lower_ordered(sql, known, engine.analyze)
        if (problem := engine.refusal(query.plan)) is not None:
            raise problem
        columns = {column.name: column for column in schema_of(query.plan)}
        return tuple(columns[name] for name in query.columns)
    try:
        return engine.text.describe(sql, relations, once=once)
    except UserError:
        recursive = lower_recursive(sql, known, engine.analyze)
        if recursive is None:
            raise
        return tuple(c for c in schema_of(recursive.plan) if c.name in recursive.columns)


def recompute(
    engine: Engine,
    name: str,
    query: Query,
    views: Mapping[str, Plan],
    snapshot: Snapshot,
    pending: Changes,
) -> Any:
    """A query after the pending changes minus the stored rows of `name`, as a change.

    `views` are those under it that the changes move, in order, as plans.
    """
    if engine.text is not None:
        return engine.text.recompute(name, (query.text, query.reads), views, snapshot, pending)
    with only_known_to_spark():
        plan = written_minus_stored(name, {name: query.text}, snapshot, engine.analyze)
    plans: dict[str, Plan] = {}
    for view, each in views.items():
        plans[view] = inlined(each, plans)
    return engine.evaluate(inlined(plan, plans), snapshot, pending)


@contextmanager
def only_known_to_spark() -> Iterator[None]:
    """Refuse what the language of views cannot say: only Spark could answer it."""
    try:
        yield
    except UserError as problem:
        if problem.code != "Q020":
            raise
        raise UserError(
            "E011",
            f"the embedded engine cannot recompute this as Spark would: {problem.problem}",
            span=problem.span,
            remedy="open the store with engine='spark'",
        ) from None
