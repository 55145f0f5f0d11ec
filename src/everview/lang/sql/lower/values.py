"""Constant rows: VALUES, each column of the type that its values have in common, and RANGE(…)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.scalar import whole_number
from everview.expr.types import Column, Schema, Type
from everview.lang.sql.bind.refuse import refuse_parts, refused
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.parse.span import span_of
from everview.plan.nodes import Plan, Values

TypeOf = Callable[[str, Schema, exp.Expr], Type]
"""The type of a scalar over columns."""
RANGE_MAX_ROWS = 100_000
"""A view stores its rows, so a longer range should be a table."""


def lower_values(context: LoweringContext, tree: exp.Values) -> Plan:
    """The rows of VALUES, with columns col1, col2, …"""
    text = context.text
    rows = [_cells(row) for row in tree.expressions]
    for above, row in pairwise(rows):
        if len(above) != len(row):
            raise UserError(
                "Q012",
                f"rows of VALUES have {len(above)} and {len(row)} values",
                span=span_of(row[0], text),
                remedy="give every row as many values",
            )
    refuse_parts(tree, text)
    for column in tree.find_all(exp.Column):
        raise UserError(
            "Q007",
            f"unknown column {column.sql(dialect='spark')}",
            span=span_of(column, text),
            remedy="VALUES reads no columns: write the value, or SELECT it",
        )
    columns = [_column(cells, context.type_of) for cells in zip(*rows, strict=True)]
    schema = tuple(Column(f"col{n}", type_) for n, (type_, _) in enumerate(columns, 1))
    return Values(schema, tuple(zip(*(cells for _, cells in columns), strict=True)))


def _cells(row: exp.Expr) -> list[exp.Expr]:
    return list(row.expressions) if isinstance(row, exp.Tuple) else [row]


def _column(cells: tuple[exp.Expr, ...], type_of: TypeOf) -> tuple[Type, tuple[str, ...]]:
    """The common type of some values, and the values as scalars of that type."""
    texts = [scalar.text(cell) for cell in cells]
    types = [type_of(text, (), cell) for text, cell in zip(texts, cells, strict=True)]
    distinct = list(dict.fromkeys(types))
    common = distinct[0]
    if len(distinct) > 1:
        schema = tuple(Column(f"v{n}", type_) for n, type_ in enumerate(distinct))
        listed = ", ".join(f"`{column.name}`" for column in schema)
        common = type_of(scalar.canonical(f"COALESCE({listed})"), schema, cells[0])
    cast = (
        text if type_ in (common, "void") else scalar.canonical(f"CAST({text} AS {common})")
        for text, type_ in zip(texts, types, strict=True)
    )
    return common, tuple(cast)


def range_query(node: exp.Table, text: str) -> exp.Expr | None:
    """RANGE(first, end, step) in FROM as a query for its numbers, None for any other item."""
    call = node.this
    if not isinstance(call, exp.Anonymous) or call.name.lower() != "range":
        return None
    given = [whole_number(each) for each in call.expressions]
    numbers = [each for each in given if each is not None]
    if len(numbers) != len(given) or not 1 <= len(numbers) <= 3:
        raise refused("this form of RANGE", call, text, "write range(first, end, step) in numbers")
    first, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) == 3 else 1
    rows = range(first, end, step) if step else range(0)
    if not step or len(rows) > RANGE_MAX_ROWS:
        raise refused("this RANGE", call, text, f"let it have at most {RANGE_MAX_ROWS} rows")
    last = rows[-1] if rows else first
    ends = [_bigint(first), _bigint(last), _bigint(step)]
    array = exp.Anonymous(this="SEQUENCE", expressions=ends)
    query = exp.select(exp.alias_(exp.Explode(this=array), "id"))
    return query if rows else query.where(exp.false())


def _bigint(value: int) -> exp.Expr:
    number = exp.Literal.number(abs(value))
    return exp.cast(exp.Neg(this=number) if value < 0 else number, "BIGINT")
