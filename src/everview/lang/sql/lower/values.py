"""VALUES: constant rows, each column of the type that all its values have in common."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.types import Column, Schema, Type
from everview.lang.sql.bind.refuse import refuse_parts
from everview.lang.sql.parse.span import span_of
from everview.plan.nodes import Plan, Values

TypeOf = Callable[[str, Schema, exp.Expr], Type]


def lower_values(tree: exp.Values, text: str, type_of: TypeOf) -> Plan:
    """The rows of VALUES, with columns col1, col2, …"""
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
    columns = [_column(cells, type_of) for cells in zip(*rows, strict=True)]
    schema = tuple(Column(f"col{n}", type_) for n, (type_, _) in enumerate(columns, 1))
    return Values(schema, tuple(zip(*(cells for _, cells in columns), strict=True)))


def _cells(row: exp.Expr) -> list[exp.Expr]:
    return list(row.expressions) if isinstance(row, exp.Tuple) else [row]


def _column(cells: tuple[exp.Expr, ...], type_of: TypeOf) -> tuple[Type, tuple[str, ...]]:
    """The common type of some values, and the values as scalars of that type."""
    texts = [scalar.text(cell) for cell in cells]
    types = [type_of(text, (), cell) for text, cell in zip(texts, cells, strict=True)]
    found = list(dict.fromkeys(types))
    common = found[0]
    if len(found) > 1:
        schema = tuple(Column(f"v{n}", type_) for n, type_ in enumerate(found))
        listed = ", ".join(f"`{column.name}`" for column in schema)
        common = type_of(scalar.canonical(f"COALESCE({listed})"), schema, cells[0])
    cast = (
        text if type_ in (common, "void") else scalar.canonical(f"CAST({text} AS {common})")
        for text, type_ in zip(texts, types, strict=True)
    )
    return common, tuple(cast)
