"""The types of NRC⁺: base types, products with named fields, and bags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from everview.expr.type_inference import type_of
from everview.expr.types import Column, element_of, fields_of

ELEMENT = "element"
"""The column of a relation whose elements are base values or bags themselves."""


@dataclass(frozen=True, slots=True)
class Base:
    """Values of the database's domain; the type is Spark's. That of None alone is `void`."""

    name: str


@dataclass(frozen=True, slots=True)
class Product:
    """A × B × …, each component with a name; those of a tuple are `_1`, `_2`, …"""

    fields: tuple[tuple[str, Type], ...]


@dataclass(frozen=True, slots=True)
class Bag:
    """Elements of one type, each with an integer multiplicity."""

    element: Type


Type: TypeAlias = Base | Product | Bag

UNIT = Product(())
"""The type of the empty tuple: 1. A boolean is a Bag(1)."""
VOID = Base("void")
"""The type of None, which fits any base type."""
NOTHING = Base("?")
"""The type of the elements of ∅, which fits any other."""
BOOLEAN = Base("boolean")


def shown(type_: Type) -> str:
    """The text of a type.

    >>> shown(Bag(Product((("name", Base("string")), ("rel", Bag(Base("string")))))))
    'Bag(⟨name: string, rel: Bag(string)⟩)'
    """
    match type_:
        case Base(name):
            return name
        case Bag(element):
            return f"Bag({shown(element)})"
        case Product(()):
            return "1"
        case Product(fields):
            return f"⟨{', '.join(f'{name}: {shown(each)}' for name, each in fields)}⟩"


def place(position: int) -> str:
    """The name of a component of a tuple, from zero.

    >>> place(0)
    '_1'
    """
    return f"_{position + 1}"


def common(*types: Type) -> Type | None:
    """The type that values of all types are given, by Spark's rules; None where there is none.

    >>> common(Base("int"), VOID, Base("bigint"))
    Base(name='bigint')
    """
    found: Type | None = types[0]
    for each in types[1:]:
        found = found and _both(found, each)
    return found


def _both(left: Type, right: Type) -> Type | None:
    if left == right or NOTHING in (left, right):
        return right if left == NOTHING else left
    match left, right:
        case (Base(), Product() | Bag()) | (Product() | Bag(), Base()):
            both = (_opened(left), _opened(right))
            return None if Base in map(type, both) else _both(*both)
        case Base(a), Base(b):
            if "void" in (a, b):
                return right if a == "void" else left
            columns = (Column("a", a), Column("b", b))
            return None if "string" in (a, b) else _named(type_of(_EITHER, columns))
        case Bag(a), Bag(b):
            element = _both(a, b)
            return element and Bag(element)
        case Product(a), Product(b) if [name for name, _ in a] == [name for name, _ in b]:
            parts = [_both(one, other) for (_, one), (_, other) in zip(a, b, strict=True)]
            known = [(name, part) for (name, _), part in zip(a, parts, strict=True) if part]
            return Product(tuple(known)) if len(known) == len(a) else None
        case _:
            return None


def _opened(type_: Type) -> Type:
    """An array of the database as a bag, and a struct as a product; any other type as it is."""
    if not isinstance(type_, Base):
        return type_
    if (element := element_of(type_.name)) is not None:
        return Bag(Base(element))
    fields = fields_of(type_.name) if type_.name.startswith("struct<") else ()
    return Product(tuple((name, Base(each)) for name, each in fields)) if fields else type_


_EITHER = "CASE WHEN TRUE THEN `a` ELSE `b` END"


def _named(name: str | None) -> Base | None:
    return None if name is None else Base(name)


def element_type(type_: Type) -> Type | None:
    """The type of the elements of a bag, or of an array of the database; None for others."""
    if isinstance(type_, Bag):
        return type_.element
    if type_ == NOTHING:
        return type_
    inner = element_of(type_.name) if isinstance(type_, Base) else None
    return None if inner is None else Base(inner)


def field_type(type_: Type, name: str) -> Type | None:
    """The type of a component, or of a field of a struct of the database; None without one."""
    if isinstance(type_, Product):
        return dict(type_.fields).get(name)
    if type_ == NOTHING:
        return type_
    if isinstance(type_, Base) and type_.name.startswith("struct<"):
        return _named(dict(fields_of(type_.name)).get(name))
    return None


def field_names(type_: Type) -> tuple[str, ...]:
    """The names of the components of a type."""
    if isinstance(type_, Product):
        return tuple(name for name, _ in type_.fields)
    if isinstance(type_, Base) and type_.name.startswith("struct<"):
        return tuple(name for name, _ in fields_of(type_.name))
    return ()
