"""What the embedded engine answers and what it refuses by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlglot import exp

from everview.arguments import did_you_mean
from everview.errors import Span, UserError
from everview.expr import scalar as scalars
from everview.expr.quoting import duckdb_name as quoted
from everview.expr.type_inference import type_of
from everview.expr.types import WEIGHT, Schema, Type, type_in
from everview.lang.sql.parse.functions import PARSED_FUNCTIONS
from everview.plan.nodes import Plan
from everview.plan.ordered_query import OrderedQuery
from everview.plan.traverse import loop_free, schema_of
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.sql import DUCKDB, emit_consolidated


def analyze(scalar: str, schema: Schema, span: Span | None) -> Type:
    """Refuse a scalar that our own rules do not type: its type is known to Spark alone."""
    unknown = _unknown(scalar, schema)
    in_text = span is None or f"{unknown}(" in span.text.lower().replace(" (", "(")
    misspelled = unknown and unknown not in PARSED_FUNCTIONS
    near = did_you_mean(unknown, PARSED_FUNCTIONS) if misspelled else ""
    what = f"the function {unknown}" if unknown and in_text else "this expression"
    raise UserError(
        "E011",
        f"the embedded engine does not know how Spark types {what}",
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


def must_be_known(plan: Plan) -> None:
    """Refuse by name what is not shown to give Spark's answer, also inside loops."""
    with refused_by_name():
        for part in loop_free(plan):
            emit_consolidated(part, DUCKDB)


def rows_sql(query: OrderedQuery, items: Mapping[str, str]) -> str:
    """SQL for the rows of a query, each as often as its weight says, in its order."""
    shown = ", ".join(map(quoted, query.columns))
    weighted = emit_consolidated(query.plan, DUCKDB, items)
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
