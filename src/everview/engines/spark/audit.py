"""The difference that an audit looks for, computed by Spark: a view's query minus the view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark import actions
from everview.engines.spark.checked_query import over
from everview.engines.spark.door import ask
from everview.engines.spark.errors import NOT_ACCEPTED, ends_early, fails_inside
from everview.engines.spark.queries import listed_names, plain_frame
from everview.engines.spark.relations import Relations, ddl, stored_frame
from everview.errors import UserError
from everview.expr.types import WEIGHT, Column, Schema, names
from everview.lang.sql.allowlist.allow import NOTHING, Allow
from everview.lang.sql.parse.broken_ties import with_broken_ties
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.parser import parse_query
from everview.plan.nodes import Plan
from everview.runtime.protocol import Difference, Snapshot
from everview.sqlgen.sql import SPARK, consolidate, emit_consolidated

DIFFERENCES = 1_000_000
"""An audit looks at no more differing rows than these."""
SHUFFLED_ROWS = 10_000
"""Tables of more rows are not put in another order to see whether rows tie."""
ORDERS = 8
"""In how many orders Spark is asked before its answer counts as the only one."""
NOT_HANDED = "Q023"
RANDOM = Allow(functions=frozenset({"rand"}))
"""What breaks ties is random, which no view may be."""


def text_difference(
    session: SparkSession,
    name: str,
    text: Mapping[str, str],
    tables: Mapping[str, DataFrame],
    snapshot: Snapshot,
    allow: Allow = NOTHING,
) -> Difference | str:
    """A view's query minus the view, or why Spark does not read the query.

    Spark reads texts that are written back from the trees of the queries: what our parser does not
    see in them is not there. Views that the query reads are evaluated from their own texts over
    the tables alone; `text` gives those, in order of declaration.
    """
    listed = listed_names(names(snapshot.stored[name].schema))
    known = dict(tables)
    try:
        for view, sql in text.items():
            try:
                frame = over(session, sql, known, allow)
            except UserError as problem:
                # What is not handed to Spark, like an ASOF join, is not read by it either.
                if problem.code not in (NOT_ACCEPTED, NOT_HANDED):
                    raise
                return f"Spark does not read it: {problem.problem}"
            known[view] = frame.toDF(*names(snapshot.stored[view].schema))
        with Relations(session) as relations:
            relations.give("query", known[name])
            relations.give("stored", stored_frame(session, name, snapshot))
            both = (
                f"SELECT {listed}, 1 AS {WEIGHT}, 0 AS _rows "
                f"FROM {relations.names['query']} UNION ALL "
                f"SELECT {listed}, -{WEIGHT}, {WEIGHT} FROM {relations.names['stored']}"
            )
            return _consolidated_difference(session, both, snapshot.stored[name].schema)
    except (PySparkException, Py4JJavaError) as problem:
        # Spark's optimizer fails on some texts, like LISTAGG(DISTINCT …) beside COUNT(DISTINCT …),
        # a correlated COUNT beside a key of GROUP BY under UNION ALL, or an IN in ON that compares
        # columns of both sides.
        # It also ends a recursion that ours does not.
        if ends_early(problem):
            return "Spark ends the recursion at a limit of its own"
        if not fails_inside(problem):
            raise
        return "Spark's optimizer fails on it"


def stored_tables(
    session: SparkSession, tables: Sequence[str], snapshot: Snapshot
) -> dict[str, DataFrame]:
    """Each table as it is stored, a row as often as its weight says."""
    return {table: plain_frame(session, table, snapshot, {}) for table in tables}


def is_deterministic(
    session: SparkSession,
    name: str,
    text: Mapping[str, str],
    tables: Mapping[str, DataFrame],
    snapshot: Snapshot,
) -> bool:
    """Whether Spark has one answer, in whatever order rows arrive and however ties are broken.

    Where one window sorts the rows for another, those that tie come in one order however they
    arrive. Tables of many rows are not put in another order, so there it is not known.
    """
    held = {each: actions.collect_some(rows, SHUFFLED_ROWS + 1) for each, rows in tables.items()}
    if any(rows.num_rows > SHUFFLED_ROWS for rows in held.values()):
        return False
    first = None
    for seed in range(ORDERS):
        shuffled = {
            each: session.createDataFrame(
                rows.take(pa.array(_order(rows.num_rows, seed), pa.int64())).combine_chunks(),
                ddl(snapshot.stored[each].schema),
            )
            for each, rows in held.items()
        }
        broken = {view: _with_broken_ties(sql, seed) for view, sql in text.items()}
        found = text_difference(session, name, broken, shuffled, snapshot, RANDOM)
        if isinstance(found, str):
            return False
        answer = sorted(map(repr, found.weighted.to_pylist()))
        first = answer if first is None else first
        if answer != first:
            return False
    return True


def _with_broken_ties(sql: str, seed: int) -> str:
    tree = with_broken_ties(parse_query(sql), seed)
    return sql if tree is None else tree.sql(dialect=QUERIES)


def _order(rows: int, seed: int) -> list[int]:
    """The places of rows as they are, the other way round, or shuffled."""
    places = list(range(rows))
    if seed < 2:
        return places[:: -1 if seed else 1]
    Random(seed).shuffle(places)
    return places


def plan_difference(
    session: SparkSession, name: str, plan: Plan, snapshot: Snapshot
) -> Difference | None:
    """The rows of `plan`, which is a view's query minus the view.

    None if Spark's optimizer fails on the plan, as it does on some texts.
    """
    listed = listed_names(names(snapshot.stored[name].schema))
    with Relations(session) as relations:
        relations.give_stored(plan, snapshot, consolidated=True)
        rows = emit_consolidated(plan, SPARK, relations.names)
        both = (
            f"SELECT {listed}, {WEIGHT}, 0 AS _rows FROM ({rows}) AS q UNION ALL "
            f"SELECT {listed}, 0, {WEIGHT} FROM {relations.names[name]}"
        )
        try:
            return _consolidated_difference(session, both, snapshot.stored[name].schema)
        except (PySparkException, Py4JJavaError) as problem:
            if not fails_inside(problem):
                raise
            return None


def _consolidated_difference(session: SparkSession, both: str, schema: Schema) -> Difference:
    counted = (*schema, Column("_rows", "bigint"))
    held = ask(session, consolidate(both, counted, ("_rows",), SPARK))
    with actions.kept(held) as rows:
        wrong = rows.where(f"{WEIGHT} <> 0").drop("_rows")
        found = actions.collect_some(wrong, DIFFERENCES)
        total = actions.collect(rows.selectExpr("COALESCE(SUM(_rows), 0) AS _rows"))
        return Difference(int(total.column("_rows")[0].as_py()), found)
