"""What a table with collections means in the calculus: a query over its relations."""

from __future__ import annotations

from everview.database.catalog.dictionaries import Dictionary
from everview.expr.types import Column, Schema
from everview.lang.nested.syntax import Apply, Expr, Field, For, Record, Rel, Sng, Var


def as_query(table: str, columns: Schema, dictionaries: tuple[Dictionary, ...]) -> Expr:
    """A table as a query over its relations: what a function that reads it means.

    A collection is a `for` over its dictionary where the label is that of the row. So a function
    that ranges over it is a join, whose derivative reads what is about the elements that change.
    """
    relations = {table, *(each.relation for top in dictionaries for each in top.walk())}
    variables = _Variables({each.lower() for each in relations})
    row = variables.fresh(0)
    fields = _components(columns, dictionaries, row, variables, 1)
    return For(row.name, Rel(table), None, Sng(Record(fields)))


class _Variables:
    """Names for variables that no relation of a table has."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken

    def fresh(self, depth: int) -> Var:
        """The variable of the elements at a depth."""
        name = f"e{depth}"
        while name in self.taken:
            name += "_"
        return Var(name)


def _components(
    columns: Schema,
    inner: tuple[Dictionary, ...],
    around: Var,
    variables: _Variables,
    depth: int,
) -> tuple[tuple[str, Expr], ...]:
    below = {each.column: each for each in inner}
    return tuple(
        (
            c.name,
            _bag(below[c.name], around, variables, depth) if c.name in below else _of(around, c),
        )
        for c in columns
    )


def _of(variable: Var, column: Column) -> Expr:
    return Field(variable, column.name)


def _bag(dictionary: Dictionary, around: Var, variables: _Variables, depth: int) -> Expr:
    """The elements whose label is that of the collection in `around`."""
    element = variables.fresh(depth)
    pairs = zip(dictionary.labels, dictionary.above, strict=True)
    tests = [Apply("==", (_of(element, own), Field(around, name))) for own, name in pairs]
    where = tests[0]
    for test in tests[1:]:
        where = Apply("and", (where, test))
    parts = _components(dictionary.fields, dictionary.inner, element, variables, depth + 1)
    head: Expr = Record(parts) if dictionary.is_record else parts[0][1]
    return For(element.name, Rel(dictionary.relation), where, Sng(head))
