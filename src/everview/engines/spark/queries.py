"""Queries over stored relations: weights out, pending changes in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from uuid import uuid4

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession, functions

from everview.engines.spark import actions
from everview.engines.spark.door import allowed_frame, ask, callable_in
from everview.engines.spark.errors import ends_early, explained, fails_inside, not_accepted
from everview.engines.spark.recursion import without_loops
from everview.engines.spark.relations import Relations, as_frame, ddl, stored_frame
from everview.errors import Span, UserError
from everview.expr.quoting import spark_name
from everview.expr.types import (
    FLOATS,
    INTEGERS,
    WEIGHT,
    Column,
    Schema,
    Type,
    decimal_parts,
    is_nested,
    names,
)
from everview.lang.sql.allowlist.allow import NOTHING, Allow
from everview.lang.sql.allowlist.checked_text import checked_text, outside, spelled
from everview.lang.sql.bind.nested_types import with_sorted_lists
from everview.lang.sql.lower.context import Analyze
from everview.lang.sql.lower.top_level_query import OrderedQuery, lower_recursive
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.statements import Query
from everview.plan.nodes import Plan, Source
from everview.plan.traverse import schema_of, sources
from everview.runtime.arrow_types import conform
from everview.runtime.protocol import Changes, Snapshot
from everview.runtime.results import Result
from everview.sqlgen.scalar import to_spark
from everview.sqlgen.sql import SPARK, consolidate, emit_consolidated


def asked(
    session: SparkSession,
    sql: str,
    reads: Sequence[str],
    snapshot: Snapshot,
    pending: Changes,
    own: Callable[[], DataFrame | None],
    allow: Allow = NOTHING,
) -> Result:
    """A query in which every relation read is an ordinary table of its own name.

    `own` answers a recursion that Spark does not read, or ends at a limit; it has no other answer.
    """
    frames = {name: plain_frame(session, name, snapshot, pending) for name in reads}
    try:
        frame = over(session, sql, frames, allow)
    except UserError:
        found = own()
        if found is None:
            raise
        return Result(lambda: actions.collect(found), lambda: found)

    def arrow() -> pa.Table:
        try:
            with explained():
                return actions.collect(frame)
        except (PySparkException, Py4JJavaError) as problem:
            found = own() if ends_early(problem) else None
            if found is not None:
                return actions.collect(found)
            if not fails_inside(problem):
                raise
            raise UserError(
                "E016",
                "Spark's optimizer fails on this query",
                remedy="write it in another way, or create it as a view, which Everview reads",
            ) from problem

    return Result(arrow, lambda: frame)


def analyzed(session: SparkSession, scalar: str, schema: Schema, span: Span | None) -> Type:
    """The type that Spark's analyzer gives a scalar, which must be one of each row by itself."""
    columns = ", ".join(f"CAST(NULL AS {c.type}) AS {spark_name(c.name)}" for c in schema)
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


def described(
    session: SparkSession,
    sql: str,
    relations: Mapping[str, Schema],
    analyze: Analyze,
    allow: Allow = NOTHING,
) -> Schema:
    """The columns of a query over relations of which only the columns are known."""
    empty = {name: session.createDataFrame([], ddl(schema)) for name, schema in relations.items()}
    try:
        found = over(session, sql, empty, allow).schema
    except UserError:
        known = {name.lower(): Source(name, schema) for name, schema in relations.items()}
        own = lower_recursive(sql, known, analyze)
        if own is None:
            raise
        return tuple(c for c in schema_of(own.plan) if c.name in own.columns)
    return tuple(Column(field.name, field.dataType.simpleString()) for field in found)


def over(
    session: SparkSession, sql: str, frames: Mapping[str, DataFrame], allow: Allow = NOTHING
) -> DataFrame:
    """A query in which each frame has the name of a table; beside them it reads what is allowed."""
    with Relations(session) as relations:
        for name, frame in frames.items():
            relations.give(name, frame)
        known = {name.lower(): view for name, view in relations.names.items()}
        tree, written = with_sorted_lists(parse_query(sql)), ""
        callable_ = callable_in(session) | allow.functions
        try:
            for table in outside(tree, known):
                found = allowed_frame(session, table, allow)
                if found is not None:
                    relations.give(spelled(table), found)
                    known[spelled(table)] = relations.names[spelled(table)]
            written = checked_text(tree, known, callable_, sql)
            return ask(session, written, callable_)
        except PySparkException as problem:
            raise not_accepted(problem, written, sql) from None


def plain_frame(
    session: SparkSession, name: str, snapshot: Snapshot, pending: Changes
) -> DataFrame:
    """A relation as an ordinary table: each row as often as its weight says."""
    with Relations(session) as relations:
        relations.give(name, _weighted_frame(session, name, snapshot, pending))
        return ask(session, _plain(relations.names[name], snapshot.stored[name].schema))


def _weighted_frame(
    session: SparkSession, name: str, snapshot: Snapshot, pending: Changes
) -> DataFrame:
    """The weighted rows of a relation, with changes that are not committed yet."""
    parts = [stored_frame(session, name, snapshot)]
    parts += [as_frame(session, rows) for rows in pending.get(name, ())]
    return reduce(DataFrame.unionByName, parts)


def _plain(name: str, schema: Schema) -> str:
    columns = listed_names(names(schema))
    total = consolidate(f"SELECT * FROM {name}", schema, (), SPARK)
    repeated = f"explode(array_repeat(0, CAST({WEIGHT} AS INT)))"
    return f"SELECT {columns} FROM ({total}) AS q LATERAL VIEW {repeated} AS _copy"


def listed_names(columns: Sequence[str]) -> str:
    """Columns as a SELECT list."""
    return ", ".join(map(spark_name, columns))


def weighted(
    session: SparkSession, rows: DataFrame, table: str, schema: Schema, weight: int
) -> DataFrame:
    """A DataFrame of the user's, cast to the table's types, with a weight."""
    given = {name.lower(): name for name in rows.columns}
    unknown = sorted(set(given) - {name.lower() for name in names(schema)})
    if unknown:
        raise UserError(
            "T001",
            f"{table}: the DataFrame has an unknown column: {unknown[0]}",
            remedy=f"the columns are {', '.join(names(schema))}",
        )
    try:
        ours = _in_session(session, rows)
        types = {field.name: field.dataType.simpleString() for field in ours.schema.fields}
        columns = [
            _taken(found, types[found], c, table) if found else functions.lit(None).cast(c.type)
            for c in schema
            for found in (given.get(c.name.lower()),)
        ]
        named = [each.alias(c.name) for each, c in zip(columns, schema, strict=True)]
        return ours.select(*named, functions.lit(weight).cast("bigint").alias(WEIGHT))
    except PySparkException as problem:
        raise not_accepted(problem) from None


def limited(rows: DataFrame, table: str, lengths: Sequence[tuple[str, int]]) -> DataFrame:
    """Rows whose texts are as long as they may be; blanks at the end give way, as in Spark."""
    for name, length in lengths:
        value = functions.col(spark_name(name))
        bare = functions.rtrim(value)
        problem = f"{table}: a text in {name} is longer than VARCHAR({length}) may be"
        kept = (
            functions.when(functions.length(value) <= length, value)
            .when(functions.length(bare) <= length, functions.rpad(bare, length, " "))
            .when(value.isNotNull(), functions.raise_error(functions.lit(problem)))
        )
        rows = rows.withColumn(name, kept)
    return rows


def _taken(name: str, given: str, column: Column, table: str) -> SparkColumn:
    """A column of the user's in the type of the table's; an error where a value would change.

    Spark's own assignment cuts fractions off, rounds decimals and drops the time of a day.
    """
    value = functions.col(spark_name(name))
    cast = value.cast(column.type)
    if not _may_round(given, column.type):
        return cast
    problem = f"{table}: a value of {name} is not a {column.type.upper()}"
    changed = cast.cast(given) != value
    return functions.when(changed, functions.raise_error(functions.lit(problem))).otherwise(cast)


def _may_round(given: str, wanted: str) -> bool:
    """Whether a cast may change a value without an error."""
    if given in FLOATS or decimal_parts(given):
        return wanted in INTEGERS or wanted == "boolean" or decimal_parts(wanted) is not None
    if given.startswith("timestamp"):
        return wanted == "date" or wanted in INTEGERS
    if is_nested(given):
        return given != wanted and "map<" not in given  # maps are not compared
    return given in INTEGERS and wanted == "boolean"


def _in_session(session: SparkSession, rows: DataFrame) -> DataFrame:
    """A frame of another session of the same Spark, as one of ours."""
    name = f"everview_{uuid4().hex}"
    rows.createGlobalTempView(name)
    try:
        return session.table(f"global_temp.{name}")
    finally:
        session.catalog.dropGlobalTempView(name)


def evaluated(
    session: SparkSession, plan: Plan, snapshot: Snapshot, pending: Changes, careful: bool
) -> pa.Table:
    """The weighted rows of a plan, with changes that are not committed yet, to the driver."""
    with Relations(session) as relations:
        for source in sources(plan):
            frame = _weighted_frame(session, source.name, snapshot, pending)
            relations.give(source.name, frame)
            if careful or pending.get(source.name):
                relations.add_up(source.name, snapshot.stored[source.name])
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
        relations.give("asked", as_frame(session, rows))
        plain = _plain(relations.names["asked"], schema_of(query.plan))
        sql = f"SELECT {listed_names(query.columns)} FROM ({plain}) AS q" + (
            f" ORDER BY {keys}" if keys else ""
        )
        sql += f" LIMIT {query.limit}" if query.limit is not None else ""
        return ask(session, sql + (f" OFFSET {query.offset}" if query.offset else ""))


def recomputed(
    session: SparkSession,
    name: str,
    query: Query,
    views: Mapping[str, Plan],
    snapshot: Snapshot,
    pending: Changes,
) -> DataFrame:
    """A query after the pending changes minus the stored rows of `name`."""
    schema = snapshot.stored[name].schema
    read = {source.name for plan in views.values() for source in sources(plan)}
    with Relations(session) as relations:
        for each in sorted({*query.reads, *read} - {*views}):
            relations.give(each, _weighted_frame(session, each, snapshot, pending))
            if each in read:
                relations.add_up(each, snapshot.stored[each])
        for view, plan in views.items():
            with without_loops(plan, session, relations) as left:
                rows = emit_consolidated(left, SPARK, relations.names)
                relations.give(view, ask(session, rows))
        plain = {n: _plain(relations.names[n], snapshot.stored[n].schema) for n in query.reads}
        frames = {each: ask(session, sql) for each, sql in plain.items()}
        relations.give("made", over(session, query.text, frames).toDF(*names(schema)))
        relations.give("stored", stored_frame(session, name, snapshot))
        both = (
            f"SELECT *, CAST(1 AS BIGINT) AS {WEIGHT} FROM {relations.names['made']} UNION ALL "
            f"SELECT {listed_names(names(schema))}, -{WEIGHT} "
            f"FROM {relations.names['stored']}"
        )
        return ask(session, consolidate(both, schema, (), SPARK))
