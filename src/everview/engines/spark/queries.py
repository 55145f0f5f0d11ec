"""Plans and stored relations as Spark DataFrames: weights out, pending changes in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark import actions
from everview.engines.spark.door import ask
from everview.engines.spark.errors import not_accepted
from everview.engines.spark.recursion import without_loops
from everview.engines.spark.relations import Relations, as_frame, part_frame, stored_frame
from everview.errors import Span, UserError
from everview.expr.quoting import spark_name, spark_type
from everview.expr.types import WEIGHT, Schema, Type, names
from everview.plan.nodes import Plan
from everview.plan.ordered_query import OrderedQuery
from everview.plan.traverse import schema_of, sources
from everview.runtime.arrow_types import conform
from everview.runtime.protocol import Changes, Snapshot
from everview.sqlgen.scalar import to_spark
from everview.sqlgen.sql import SPARK, consolidate, emit_consolidated


def analyze(session: SparkSession, scalar: str, schema: Schema, span: Span | None) -> Type:
    """The type that Spark's analyzer gives a scalar, which must be one of each row by itself."""
    columns = ", ".join(
        f"CAST(NULL AS {spark_type(c.type)}) AS {spark_name(c.name)}" for c in schema
    )
    rows, text = f"(SELECT {columns or 1}) AS t", to_spark(scalar)
    try:
        frame = ask(session, f"SELECT {text} AS x FROM {rows}", span=span)
        found = str(frame.schema["x"].dataType.simpleString())
    except PySparkException as problem:
        raise not_accepted(problem, span=span) from None
    try:  # Where a row is looked at by itself, Spark knows no aggregate, window or generator.
        _ = ask(session, f"SELECT 1 FROM {rows} WHERE ({text}) IS NULL", span=span).schema
    except PySparkException:
        raise UserError(
            "Q020",
            "a function here is computed of many rows, or makes rows, in a way that views "
            "do not know yet",
            span=span,
            remedy="use another aggregate, such as SUM, COUNT, AVG, MIN or MAX",
        ) from None
    return found


def plain_frame(
    session: SparkSession, name: str, snapshot: Snapshot, pending: Changes, sign: int = 1
) -> DataFrame:
    """A relation as an ordinary table: each row as often as its weight says, times a `sign`.

    A base is read as it is, without a shuffle: no row of it cancels another.
    """
    relation, schema = snapshot.relation(name), snapshot.stored[name].schema
    is_base = relation.is_base and not pending.get(name)
    if relation.has_unit_weights and not pending.get(name) and sign == 1:
        return stored_frame(session, name, snapshot).select(*map(spark_name, names(schema)))
    with Relations(session) as relations:
        relations.give(name, weighted_frame(session, name, snapshot, pending))
        sql = plain_sql(relations.names[name], schema, consolidated=is_base, sign=sign)
        return ask(session, sql)


def weighted_frame(
    session: SparkSession, name: str, snapshot: Snapshot, pending: Changes
) -> DataFrame:
    """The weighted rows of a relation, with changes that are not committed yet."""
    parts = [stored_frame(session, name, snapshot)]
    parts += [part_frame(session, part, name, snapshot) for part in pending.get(name, ())]
    return reduce(DataFrame.unionByName, parts)


def plain_sql(name: str, schema: Schema, *, consolidated: bool = False, sign: int = 1) -> str:
    """SQL for a weighted relation as an ordinary table: each row as often as its weight says.

    With the `sign` -1, those are shown whose weight is negative. Rows that cancel are taken out
    first, unless it is `consolidated`.
    """
    columns = listed_names(names(schema))
    rows = f"SELECT * FROM {name}"
    total = rows if consolidated else consolidate(rows, schema, (), SPARK)
    repeated = f"explode(array_repeat(0, CAST({WEIGHT} * {sign} AS INT)))"
    return f"SELECT {columns} FROM ({total}) AS q LATERAL VIEW {repeated} AS _copy"


def listed_names(columns: Sequence[str]) -> str:
    """Columns as a SELECT list."""
    return ", ".join(map(spark_name, columns))


def evaluate(
    session: SparkSession, plan: Plan, snapshot: Snapshot, pending: Changes, consolidated: bool
) -> pa.Table:
    """The weighted rows of a plan, with changes that are not committed yet, to the driver."""
    with Relations(session) as relations:
        for source in sources(plan):
            frame = weighted_frame(session, source.name, snapshot, pending)
            relations.give(source.name, frame)
            if consolidated or pending.get(source.name):
                relations.consolidate(source.name, snapshot.stored[source.name])
        with without_loops(plan, session, relations) as left:
            frame = ask(session, emit_consolidated(left, SPARK, relations.names))
            return conform(actions.collect(frame), schema_of(plan))


def shown(session: SparkSession, query: OrderedQuery, rows: pa.Table) -> DataFrame:
    """The weighted rows of a query as it shows them: some columns, sorted and cut."""
    keys = ", ".join(
        f"{spark_name(key.column)} {'DESC' if key.descending else 'ASC'} "
        f"NULLS {'FIRST' if key.nulls_first else 'LAST'}"
        for key in query.order
    )
    with Relations(session) as relations:
        relations.give("rows", as_frame(session, rows))
        plain = plain_sql(relations.names["rows"], schema_of(query.plan))
        sql = f"SELECT {listed_names(query.columns)} FROM ({plain}) AS q" + (
            f" ORDER BY {keys}" if keys else ""
        )
        sql += f" LIMIT {query.limit}" if query.limit is not None else ""
        return ask(session, sql + (f" OFFSET {query.offset}" if query.offset else ""))
