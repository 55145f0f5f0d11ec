"""Rebuilding: the plan that puts a shredded query back into its nested form (u of the paper).

It runs when somebody reads, on the engine that reads: inner bags become arrays, in ascending order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from everview.expr import scalar
from everview.expr.types import Column, Type, names, struct_of
from everview.lang.nested.shred import Leaf, Shredded
from everview.lang.nested.types import ELEMENT, Bag, Base, Product
from everview.lang.nested.types import Type as NestedType
from everview.lang.sql.lower.collections import collected, with_arrays
from everview.plan.build import distinct, map_, project
from everview.plan.nodes import Output, Plan, Source
from everview.plan.traverse import schema_of


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """The relations of a shredded query that have a dictionary, by path, and how each is stored."""

    relations: Mapping[str, Shredded]
    stored: Mapping[str, Source]

    def plan(self) -> Plan:
        """The rows of the query, with its inner bags as arrays."""
        flat = self.relations[""]
        fields = flat.element.fields if isinstance(flat.element, Product) else ()
        rows = fields or ((ELEMENT, flat.element),)
        outputs = (Output(n, spark_type(t), _packed(t, n)) for n, t in rows)
        return map_(self._nested(flat), tuple(outputs))

    def _nested(self, relation: Shredded) -> Plan:
        """A relation with an array in the place of each label of its elements."""
        stored = plan = self._stored(relation)
        for leaf in relation.leaves:
            below = self.relations.get(relation.below(leaf))
            if isinstance(leaf.type, Bag) and below is not None:
                plan = self._with_bag(plan, leaf, leaf.type, below, stored)
        return plan

    def _stored(self, relation: Shredded) -> Plan:
        """A relation as it is stored; the label of one that is shared is called as above it."""
        source = self.stored[relation.path]
        if relation.shared is None:
            return source
        called = dict(
            zip(names(relation.shared.dictionary.label), names(relation.labels), strict=True)
        )
        outputs = (
            Output(called.get(c.name, c.name), c.type, scalar.column(c.name)) for c in source.schema
        )
        return map_(source, tuple(outputs))

    def _with_bag(self, plan: Plan, leaf: Leaf, type_: Bag, below: Shredded, stored: Plan) -> Plan:
        keys = names(below.labels)
        item = Output(leaf.path, spark_type(type_.element), packed_element(type_.element))
        arrays = collected(self._nested(below), distinct(project(stored, keys)), keys, item)
        joined = with_arrays(plan, arrays, tuple((key, key) for key in keys), leaf.path)
        return project(joined, (*_without(schema_of(plan), keys), leaf.path))


def _without(schema: tuple[Column, ...], keys: tuple[str, ...]) -> Iterator[str]:
    return (column.name for column in schema if column.name not in keys)


def spark_type(type_: NestedType) -> Type:
    """The type of Spark's that values are read as.

    >>> spark_type(Bag(Product((("a", Base("int")),))))
    'array<struct<a:int>>'
    """
    match type_:
        case Base(name):
            return name
        case Bag(element):
            return f"array<{spark_type(element)}>"
        case Product(fields):
            return struct_of((name, spark_type(each)) for name, each in fields)


def packed_element(element: NestedType) -> str:
    """The scalar that makes an element of the columns of a dictionary."""
    if not isinstance(element, Product):
        return scalar.column(ELEMENT)
    fields = (f"'{name}', {_packed(each, name)}" for name, each in element.fields)
    return f"named_struct({', '.join(fields)})"


def _packed(type_: NestedType, path: str) -> str:
    """A component as one value: the column of a leaf, a struct of the columns below a tuple."""
    if not isinstance(type_, Product):
        return scalar.column(path)
    fields = (f"'{name}', {_packed(each, f'{path}.{name}')}" for name, each in type_.fields)
    return scalar.canonical(f"named_struct({', '.join(fields)})")
