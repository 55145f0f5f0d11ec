"""How a table with collections is stored: a flat relation, and a dictionary for each collection.

The label of a collection in a row is the row's primary key. The label of one inside an element is a
number that no other collection has. So equal collections have labels of their own, and a row or an
element is the support of its collections: one that is empty has no rows, and is not missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from everview.expr.types import Column, Schema, Type, element_of, fields_of, names

LABEL, DIGEST, ELEMENT = "label", "_digest", "element"
"""The columns of a dictionary with the label inside an element, with a digest of the row by which
it is looked up, and with the element where it is no struct."""
LABEL_TYPE = "bigint"


@dataclass(frozen=True, slots=True)
class Collections:
    """The columns of a table as they are declared, and which of its arrays are collections.

    These are named by their paths, each after the one that it is inside of.
    """

    columns: Schema
    paths: tuple[str, ...]

    def type_text(self, column: Column) -> str:
        """The type of a column as CREATE TABLE declares it."""
        return self._declared(column.name, column.type)

    def _declared(self, path: str, type_: Type) -> str:
        if path not in self.paths:
            return type_.upper()
        element = element_of(type_) or ""
        fields = [f"{c.name}: {self._declared(f'{path}.{c.name}', c.type)}" for c in parts(element)]
        if element.startswith("struct<"):
            return f"BAG<STRUCT<{', '.join(fields)}>>"
        return f"BAG<{fields[0].partition(': ')[2]}>"


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The dictionary of one collection: the relation of its labels and elements.

    `column` is the collection's name in the row or element that it is part of, and `above` are the
    columns that have its label there. `labels` and `digest` are what the dictionary calls them.
    """

    table: str
    path: str
    column: str
    element: Type
    above: tuple[str, ...]
    labels: Schema
    digest: str
    inner: tuple[Dictionary, ...]

    @property
    def relation(self) -> str:
        """The name of the relation."""
        return f"{self.table}.{self.path}"

    @property
    def is_record(self) -> bool:
        """Whether its elements are structs, with a column for each field."""
        return self.element.startswith("struct<")

    @property
    def fields(self) -> Schema:
        """The parts of an element, as they are declared."""
        return parts(self.element)

    @property
    def plain(self) -> Schema:
        """The parts of an element that are no collections."""
        inner = {each.column for each in self.inner}
        return tuple(each for each in self.fields if each.name not in inner)

    @property
    def columns(self) -> Schema:
        """The columns of the relation: a collection inside an element is its label."""
        inner = {each.column for each in self.inner}
        shown = (Column(c.name, LABEL_TYPE) if c.name in inner else c for c in self.fields)
        return (*self.labels, *shown, Column(self.digest, "bigint"))

    def walk(self) -> Iterator[Dictionary]:
        """This and all below it, each after the one that it is inside of."""
        yield self
        for each in self.inner:
            yield from each.walk()


def parts(element: Type) -> Schema:
    """The fields of a struct; of another element one, which is itself.

    >>> parts("struct<a:int,b:array<int>>")
    (Column(name='a', type='int'), Column(name='b', type='array<int>'))
    """
    if not element.startswith("struct<"):
        return (Column(ELEMENT, element),)
    return tuple(Column(name, type_) for name, type_ in fields_of(element))


def dictionaries(table: str, key: Schema, declared: Collections) -> tuple[Dictionary, ...]:
    """The dictionaries of the columns of a table, with those inside them."""
    return tuple(
        _dictionary(table, column.name, column, names(key), key, declared)
        for column in declared.columns
        if column.name in declared.paths
    )


def _dictionary(
    table: str,
    path: str,
    column: Column,
    above: tuple[str, ...],
    label: Schema,
    declared: Collections,
) -> Dictionary:
    element = element_of(column.type)
    if element is None:
        raise ValueError(f"the collection {path} is no array")
    taken = {each.name.lower() for each in parts(element)}
    labels = []
    for each in label:
        labels.append(Column(_free(each.name, table, taken), each.type))
        taken.add(labels[-1].name.lower())
    inner = tuple(
        _dictionary(
            table,
            f"{path}.{each.name}",
            each,
            (each.name,),
            (Column(LABEL, LABEL_TYPE),),
            declared,
        )
        for each in parts(element)
        if f"{path}.{each.name}" in declared.paths
    )
    digest = _free(DIGEST, table, taken)
    return Dictionary(table, path, column.name, element, above, tuple(labels), digest, inner)


def _free(name: str, table: str, taken: set[str]) -> str:
    """A name, after that of the table if an element has a part of that name."""
    while name.lower() in taken:
        name = f"{table}_{name}"
    return name
