"""Rebuilding: the plan that puts a shredded query back into its nested form (u of the paper).

It runs when somebody reads, on the engine that reads: inner bags become arrays, in ascending order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from everview.expr import scalar
from everview.expr.types import Column, Schema, Type, names, struct_of
from everview.lang.nested.shred import Leaf, Shredded
from everview.lang.nested.types import ELEMENT, Bag, Base, Product
from everview.lang.nested.types import Type as NestedType
from everview.plan.build import add, distinct, join, map_, partition, project
from everview.plan.nodes import Aggregate, Output, Plan, Source
from everview.plan.traverse import schema_of

_ITEM, _KEY = "#item", "#key"


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """The relations of a shredded query by path, and how each is stored."""

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
            if isinstance(leaf.type, Bag):
                below = self.relations[relation.below(leaf)]
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
        packed, item = _packed_element(type_.element), spark_type(type_.element)
        support = project(stored, keys)
        right = arrays(self._nested(below), support, below.labels, packed, item, leaf.path)
        joined = join(plan, right, tuple((key, key_column(key)) for key in keys), nulls=True)
        shown = tuple(_without(schema_of(plan), keys))
        return project(joined, (*shown, leaf.path))


def key_column(label: str) -> str:
    """What `arrays` calls a column of a label."""
    return f"{_KEY}.{label}"


def arrays(
    elements: Plan, support: Plan, labels: Schema, packed: str, item: Type, column: str
) -> Plan:
    """For each label of a support its elements in one array, in ascending order.

    Both plans have the columns of the label. `packed` is an element as one value of the type
    `item`, which may be NULL: so it is put in a box while elements are collected.
    """
    keys = names(labels)
    boxed: Type = struct_of(((ELEMENT, item),))
    box = f"named_struct('{ELEMENT}', {packed})"
    kept = tuple(Output(c.name, c.type, scalar.column(c.name)) for c in labels)
    rows = map_(elements, (*kept, Output(_ITEM, boxed, scalar.canonical(box))))
    nothing = Output(_ITEM, boxed, scalar.canonical(f"CAST(NULL AS {boxed})"))
    empty = map_(distinct(support), (*kept, nothing))
    collected = Aggregate(_ITEM, f"array<{boxed}>", "collect_list", _ITEM)
    bags = partition(add(rows, empty), keys, (collected,))
    renamed = (Output(key_column(c.name), c.type, scalar.column(c.name)) for c in labels)
    unboxed = scalar.canonical(f"({scalar.column(_ITEM)}).{ELEMENT}")
    return map_(bags, (*renamed, Output(column, f"array<{item}>", unboxed)))


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


def _packed_element(element: NestedType) -> str:
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
