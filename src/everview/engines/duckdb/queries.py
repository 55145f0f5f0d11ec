"""Queries as they are asked once, in process: SQL text to a plan, and the plan to rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlglot import exp

from everview.arguments import did_you_mean
from everview.database.audit_query import declared
from everview.errors import Span, UserError
from everview.expr import scalar as scalars
from everview.expr.quoting import duckdb_name as quoted
from everview.expr.types import WEIGHT, Schema, Type, type_in
from everview.expr.typing import type_of
from everview.lang.sql.bind.user_functions import CALLED
from everview.lang.sql.lower.top_level_query import OrderedQuery, lower_ordered
from everview.plan.nodes import Plan, Source
from everview.plan.traverse import loop_free, schema_of
from everview.runtime.protocol import Snapshot
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.sql import DUCKDB, emit_consolidated


def lowered(sql: str, snapshot: Snapshot) -> OrderedQuery:
    """The plan of a query over stored relations."""
    return lower_ordered(sql, declared(snapshot), analyze)


def described(sql: str, relations: Mapping[str, Schema]) -> Schema:
    """The columns of a query over relations."""
    known = {name.lower(): Source(name, schema) for name, schema in relations.items()}
    with known_to_spark():
        query = lower_ordered(sql, known, analyze)
    must_be_known(query)
    found = {column.name: column for column in schema_of(query.plan)}
    return tuple(found[name] for name in query.columns)


@contextmanager
def known_to_spark() -> Iterator[None]:
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


def analyze(scalar: str, schema: Schema, span: Span | None) -> Type:
    """Types that our own rules do not know are known to Spark alone."""
    unknown = _unknown(scalar, schema)
    written = span is None or f"{unknown}(" in span.text.lower().replace(" (", "(")
    near = did_you_mean(unknown, CALLED) if unknown and unknown not in CALLED else ""
    told = f"the function {unknown}" if unknown and written else "this expression"
    raise UserError(
        "E011",
        f"the embedded engine does not know how Spark types {told}",
        span=span,
        remedy=f"{near}write it with functions it knows, or open the store with engine='spark'",
    )


def _unknown(text: str, schema: Schema) -> str:
    """The innermost function of a scalar whose type is not known; nothing if it is an operator."""
    nodes = list(scalars.parse(text).walk(bfs=False))
    for node in reversed(nodes):
        if isinstance(node, exp.Func) and type_of(scalars.text(node), schema) is None:
            named = isinstance(node, exp.Anonymous)
            return (node.name if named else node.sql_name()).lower()
    return ""


@contextmanager
def refused_by_name() -> Iterator[None]:
    """Refuse what is not shown to give Spark's answer."""
    try:
        yield
    except NotAtParity as problem:
        raise UserError(
            "E011",
            f"the embedded engine cannot answer this as Spark would: {problem}",
            remedy="write it with functions it knows, or open the store with engine='spark'",
        ) from None


def must_be_known(query: OrderedQuery) -> None:
    """Refuse by name what is not shown to give Spark's answer, also inside loops."""
    with refused_by_name():
        for plan in loop_free(query.plan):
            emit_consolidated(plan, DUCKDB)


def is_known(plan: Plan) -> bool:
    """Whether all of a plan is shown to give Spark's answer."""
    try:
        for each in loop_free(plan):
            emit_consolidated(each, DUCKDB)
    except NotAtParity:
        return False
    return True


def rows_sql(query: OrderedQuery, relations: Mapping[str, str]) -> str:
    """SQL for the rows of a query, each as often as its weight says, in the order asked for."""
    shown = ", ".join(map(quoted, query.columns))
    weighted = emit_consolidated(query.plan, DUCKDB, relations)
    sql = f"SELECT {shown} FROM (SELECT *, unnest(range({WEIGHT})) FROM ({weighted}))"
    if query.order:
        schema = schema_of(query.plan)
        keys = (
            f"{DUCKDB.sort_key(quoted(key.column), type_in(schema, key.column))} "
            f"{'DESC' if key.descending else 'ASC'} "
            f"NULLS {'FIRST' if key.nulls_first else 'LAST'}"
            for key in query.order
        )
        sql += f" ORDER BY {', '.join(keys)}"
    if query.limit is not None:
        sql += f" LIMIT {query.limit}"
    return sql + (f" OFFSET {query.offset}" if query.offset else "")
