"""The query of a constraint: the rows that violate it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from everview.expr.quoting import spark_name
from everview.expr.scalar import is_volatile
from everview.expr.types import Schema, names
from everview.lang.sql.parse.constraints import ASSERTION, CHECK, UNIQUE, Constraint
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.trees import read_trees


def violating_queries(constraint: Constraint, schemas: Mapping[str, Schema]) -> tuple[str, ...]:
    """Queries that have rows if and only if the constraint is violated, the best one first.

    A condition that is unknown is not violated. Each later query says less about the rows, and is
    for what the earlier ones cannot say.
    """
    if constraint.kind == ASSERTION:
        return _of_assertion(constraint.condition)
    table = spark_name(constraint.table)
    columns = [spark_name(name) for name in constraint.columns]
    present = " AND ".join(f"{table}.{name} IS NOT NULL" for name in columns)
    listed = ", ".join(f"{table}.{name}" for name in columns)
    if constraint.kind == CHECK:
        every = ", ".join(map(spark_name, names(schemas[constraint.table])))
        return (f"SELECT {every} FROM {table} WHERE NOT ({constraint.condition})",)
    if constraint.kind == UNIQUE:
        count = spark_name(_unused("rows", constraint.columns))
        return (
            f"SELECT {listed}, COUNT(*) AS {count} FROM {table} WHERE {present} "
            f"GROUP BY {listed} HAVING COUNT(*) > 1",
        )
    assert constraint.references is not None
    pairs = zip(columns, map(spark_name, constraint.references.columns), strict=True)
    same = " AND ".join(f"{table}.{ours} = {_REFERRED}.{theirs}" for ours, theirs in pairs)
    referred = f"{spark_name(constraint.references.table)} AS {_REFERRED}"
    return (f"SELECT {listed} FROM {table} LEFT ANTI JOIN {referred} ON {same} WHERE {present}",)


_REFERRED = "`referred to`"


def _unused(name: str, taken: tuple[str, ...]) -> str:
    while name.lower() in map(str.lower, taken):
        name += "_"
    return name


def _of_assertion(condition: str) -> tuple[str, ...]:
    """The rows of the query that should have none, or the values that should compare."""
    (tree,), (tokens,) = read_trees(condition)
    inner = tree.this if isinstance(tree, exp.Not) else None
    if isinstance(inner, exp.Exists) and isinstance(inner.this, exp.Query):
        # NOT EXISTS ( … ): the text between the parentheses, so that errors have their places.
        rows = condition[tokens[3].start : tokens[-2].end + 1]
        return rows, f"SELECT 1 AS violated WHERE NOT ({condition})"
    values = [each for each in tree.find_all(exp.Subquery, bfs=False) if _is_value(each)]
    if not values:
        return (f"SELECT 1 AS violated WHERE NOT ({condition})",)
    given = []
    for number, value in enumerate(values, start=1):
        name = f"value_{number}"
        given.append(f"{value.sql(dialect=QUERIES)} AS {name}")
        column = exp.column(name, table="given")
        if value is tree:
            tree = column
        else:
            value.replace(column)
    left = tree.sql(dialect=QUERIES)
    return (f"SELECT * FROM (SELECT {', '.join(given)}) AS given WHERE NOT ({left})",)


def _is_value(node: exp.Subquery) -> bool:
    """Whether a subquery stands for a value, and in no other query."""
    many = node.find_ancestor(exp.Query, exp.In, exp.Exists, exp.Any, exp.All)
    return many is None and isinstance(node.this, exp.Query)


def problem_in_expression(text: str, schema: Schema | None) -> str | None:
    """Why an expression is none over the columns of one row; without a schema, over nothing."""
    known = None if schema is None else {name.lower() for name in names(schema)}
    for node in parse_query(text).walk():
        if isinstance(node, exp.Query):
            return "it holds a query"
        if isinstance(node, exp.AggFunc | exp.Window):
            return "it holds an aggregate or a window"
        if isinstance(node, exp.Column):
            if known is None:
                return f"it names the column {node.name}"
            if not node.table and node.name.lower() not in known and not _in_lambda(node):
                return f"there is no column {node.name}"
        if is_volatile(node) and (schema is not None or not isinstance(node, NOW)):
            return "it gives another answer every time"
    return None


NOW = (exp.CurrentTimestamp, exp.CurrentDate)
"""What a default may ask for: it is computed once, when rows are inserted."""


def _in_lambda(node: exp.Column) -> bool:
    return node.find_ancestor(exp.Lambda) is not None
