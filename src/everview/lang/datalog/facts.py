"""Files of facts: one fact per line, its values separated by tabs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from everview.errors import UserError
from everview.expr.types import Schema, Type
from everview.lang.datalog.program import GivenRelation, Row

_READ: dict[Type, Callable[[str], int | float | str | bool]] = {
    "int": int,
    "bigint": lambda text: int(text) % 2**32,
    "double": float,
    "string": str,
    "boolean": lambda _: True,
}
SIZES = {"int": (-(2**31), 2**31 - 1)}


def facts_in(text: str, given: GivenRelation, where: str) -> Iterator[Row]:
    """The facts of a file; `where` is what it is called in an error."""
    tab = given.read.parameters.get("delimiter", "\t") if given.read is not None else "\t"
    for number, line in enumerate(text.splitlines(), start=1):
        if line or given.columns[0].type == "string":
            yield row_of(line.split(tab), given.columns, f"{where}, line {number}")


def row_of(cells: Sequence[str], columns: Schema, where: str) -> Row:
    """A fact from its values as text.

    >>> from everview.expr.types import Column
    >>> row_of(("7", "ann"), (Column("id", "int"), Column("name", "string")), "people")
    (7, 'ann')
    """
    if len(cells) != len(columns):
        raise UserError(
            "D004",
            f"{where}: {len(columns)} values were expected, not {len(cells)}",
            remedy="write a fact a line, its values between tabs",
        )
    try:
        row = tuple(_READ[column.type](cell) for column, cell in zip(columns, cells, strict=True))
        for value, column in zip(row, columns, strict=True):
            low, high = SIZES.get(column.type, (None, None))
            if low is not None and high is not None and not low <= int(value) <= high:
                raise ValueError(f"{value} does not fit 32 bits")
    except ValueError as problem:
        types = ", ".join(f"{column.name} {column.type}" for column in columns)
        raise UserError(
            "D005", f"{where}: {problem}", remedy=f"write values of these types: {types}"
        ) from None
    return row
