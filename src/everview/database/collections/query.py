"""What reads a table with collections: its rows put together, and its meaning in the calculus."""

from __future__ import annotations

from everview.database.catalog.definitions import TableDefinition
from everview.database.catalog.dictionaries import Dictionary
from everview.expr import scalar
from everview.expr.types import Column, Schema, names
from everview.lang.nested.rebuild import arrays, key_column
from everview.lang.nested.syntax import Apply, Expr, Field, For, Record, Rel, Sng, Var
from everview.plan.build import join, map_, project
from everview.plan.nodes import Output, Plan, Source
from everview.plan.traverse import schema_of

_ARRAY = "#array"


def rebuilt(table: TableDefinition) -> Plan:
    """The rows of a table with its collections as arrays, as it is declared (u of the paper)."""
    assert table.collections is not None
    plan: Plan = table.source
    for each in table.dictionaries:
        plan = _with_array(plan, each)
    return project(plan, names(table.collections.columns))


def _with_array(plan: Plan, dictionary: Dictionary) -> Plan:
    """A relation with the collection of a dictionary in the place of its label."""
    elements: Plan = Source(dictionary.relation, dictionary.columns)
    for each in dictionary.inner:
        elements = _with_array(elements, each)
    renamed = zip(dictionary.above, dictionary.labels, strict=True)
    support = map_(plan, tuple(Output(c.name, c.type, scalar.column(n)) for n, c in renamed))
    right = arrays(
        elements, support, dictionary.labels, _packed(dictionary), dictionary.element, _ARRAY
    )
    on = zip(dictionary.above, names(dictionary.labels), strict=True)
    joined = join(plan, right, tuple((key, key_column(own)) for key, own in on), nulls=True)
    kept = [c for c in schema_of(plan) if c.name != dictionary.column]
    outputs = [Output(c.name, c.type, scalar.column(c.name)) for c in kept]
    array = Output(dictionary.column, f"array<{dictionary.element}>", scalar.column(_ARRAY))
    return map_(joined, (*outputs, array))


def _packed(dictionary: Dictionary) -> str:
    if not dictionary.is_record:
        return scalar.column(dictionary.fields[0].name)
    fields = (f"'{name}', {scalar.column(name)}" for name in names(dictionary.fields))
    return f"named_struct({', '.join(fields)})"


def as_query(table: TableDefinition) -> Expr:
    """A table as a query over its relations: what a function that reads it means.

    A collection is a `for` over its dictionary where the label is that of the row. So a function
    that ranges over it is a join, whose derivative reads what is about the elements that change.
    """
    assert table.collections is not None
    row = _Variables(table).fresh(0)
    fields = _components(table.collections.columns, table.dictionaries, row, table, 1)
    return For(row.name, Rel(table.name), None, Sng(Record(fields)))


class _Variables:
    """Names for variables that no relation of a table has."""

    def __init__(self, table: TableDefinition) -> None:
        every = [table.name, *(d.relation for top in table.dictionaries for d in top.walk())]
        self.taken = {each.lower() for each in every}

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
    table: TableDefinition,
    depth: int,
) -> tuple[tuple[str, Expr], ...]:
    below = {each.column: each for each in inner}
    return tuple(
        (c.name, _bag(below[c.name], around, table, depth) if c.name in below else _of(around, c))
        for c in columns
    )


def _of(variable: Var, column: Column) -> Expr:
    return Field(variable, column.name)


def _bag(dictionary: Dictionary, around: Var, table: TableDefinition, depth: int) -> Expr:
    """The elements whose label is that of the collection in `around`."""
    element = _Variables(table).fresh(depth)
    pairs = zip(dictionary.labels, dictionary.above, strict=True)
    tests = [Apply("==", (_of(element, own), Field(around, name))) for own, name in pairs]
    where = tests[0]
    for test in tests[1:]:
        where = Apply("and", (where, test))
    parts = _components(dictionary.fields, dictionary.inner, element, table, depth + 1)
    head: Expr = Record(parts) if dictionary.is_record else parts[0][1]
    return For(element.name, Rel(dictionary.relation), where, Sng(head))
