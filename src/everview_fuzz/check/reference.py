"""The reference for portable queries: what DuckDB itself answers to the text of a view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa
from sqlglot import exp, parse_one

from everview.database.verdict import ViewAudit, compare
from everview.engines.duckdb.evaluator import duckdb_workspace
from everview.expr.dialect import DIALECT
from everview.expr.types import Schema
from everview.runtime.arrow_types import arrow_schema
from everview.sqlgen.sql import DUCKDB
from everview_fuzz.case import Row, View


class Reference:
    """DuckDB, asked for the rows of portable queries."""

    def __init__(self) -> None:
        self._workspace = duckdb_workspace()

    def close(self) -> None:
        """Give the memory back."""
        self._workspace.sql.close()

    def wrong(
        self, view: View, schema: Schema, rows: pa.Table, relations: Mapping[str, pa.Table]
    ) -> ViewAudit:
        """A portable view's rows against the answer over the relations it may read."""
        return compare(view.name, schema, self.answer(view.query, schema, relations), rows)

    def answer(self, query: str, schema: Schema, relations: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a portable query, with the names and types of `schema`."""
        try:
            for name, rows in relations.items():
                self._workspace.register(name, rows)
            return self._workspace.rows(_typed(in_duckdb(query), schema))
        except Exception as problem:
            self._workspace.sql.close()
            self._workspace = duckdb_workspace()
            raise Unanswered(str(problem).splitlines()[0]) from problem
        finally:
            self._workspace.clear()


class Unanswered(Exception):  # noqa: N818 - it is an outcome, not an error of ours
    """DuckDB has no answer: it refuses the query, or fails on the values."""


def table_of(schema: Schema, rows: Counter[Row]) -> pa.Table:
    """The rows of a table, each as often as it is there."""
    fields = list(arrow_schema(schema))[:-1]
    listed = list(rows.elements())
    columns = zip(*listed, strict=True) if listed else ((),) * len(fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.table(arrays, names=[field.name for field in fields])


def _typed(sql: str, schema: Schema) -> str:
    """The query with its columns cast: DuckDB's sums of integers are wider than ours."""
    names = [f"c{number}" for number in range(len(schema))]
    casts = (
        f'CAST({name} AS {DUCKDB.type_(column.type)}) AS "{column.name}"'
        for name, column in zip(names, schema, strict=True)
    )
    return f"SELECT {', '.join(casts)} FROM ({sql}) AS asked({', '.join(names)})"


@lru_cache(maxsize=1024)
def in_duckdb(query: str) -> str:
    """A portable query in DuckDB's spelling.

    >>> in_duckdb("SELECT `a` FROM t LEFT SEMI JOIN u ON t.a <=> u.b")
    'SELECT "a" FROM "t" SEMI JOIN "u" ON "t"."a" IS NOT DISTINCT FROM "u"."b"'
    """
    tree = parse_one(query, read=DIALECT)
    return tree.transform(_spelled).sql(dialect="duckdb", identify=True)


def _spelled(node: exp.Expr) -> exp.Expr:
    """By its definition what DuckDB does not know in every place, or answers otherwise.

    COUNT_IF of no rows is NULL there.
    """
    if isinstance(node, exp.CountIf):
        counted = exp.If(this=node.this.transform(_spelled), true=exp.Literal.number(1))
        return exp.Count(this=exp.Case(ifs=[counted]))
    if isinstance(node, exp.In) and isinstance(node.this, exp.Tuple) and node.args.get("query"):
        return _row_in(node)
    return node


def _row_in(node: exp.In) -> exp.Expr:
    """IN of several values: true for a row that is equal, NULL for one that may be."""
    values = [value.transform(_spelled) for value in node.this.expressions]
    query = node.args["query"].unnest().transform(_spelled)
    names = [f"m{number}" for number in range(len(values))]
    columns = [exp.column(name, table="members") for name in names]
    equal = exp.and_(*(exp.EQ(this=a, expression=b) for a, b in zip(values, columns, strict=True)))

    def some(condition: exp.Expr) -> exp.Exists:
        alias = exp.TableAlias(
            this=exp.to_identifier("members"), columns=[exp.to_identifier(name) for name in names]
        )
        members = exp.Subquery(this=query.copy(), alias=alias)
        return exp.Exists(this=exp.select("1").from_(members).where(condition))

    unknown = exp.Is(this=exp.paren(equal.copy()), expression=exp.Null())
    true = exp.If(this=some(equal), true=exp.true())
    null = exp.If(this=some(unknown), true=exp.Null())
    return exp.paren(exp.Case(ifs=[true, null], default=exp.false()))
