"""The typing rules of NRC⁺ (nested-collections, Fig. 3): the type of an expression, or why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from everview.arguments import did_you_mean, named
from everview.errors import UserError
from everview.expr import scalar
from everview.expr.aggregates import result_type
from everview.expr.type_inference import type_of
from everview.expr.types import Column, Schema
from everview.lang.nested.primitives import PRIMITIVES, Primitive, accepts, literal
from everview.lang.nested.syntax import (
    Aggregate,
    Apply,
    Choice,
    Const,
    Empty,
    Expr,
    Field,
    Flatten,
    For,
    Let,
    Negate,
    Record,
    Rel,
    Sng,
    Times,
    Union,
    Var,
)
from everview.lang.nested.text import print_expr
from everview.lang.nested.types import (
    BOOLEAN,
    NOTHING,
    VOID,
    Bag,
    Base,
    Product,
    Type,
    common,
    element_type,
    field_names,
    field_type,
    place,
    shown,
)

Context = Mapping[str, Type]
"""The types of the variables around an expression: Γ and Π of the paper."""


class IllTypedError(UserError):
    """An expression has no type, or another one than is expected of it."""

    def __init__(self, expr: Expr, problem: str, remedy: str, code: str = "N003") -> None:
        super().__init__(code, problem, remedy=remedy)
        self.expr = expr


def row_type(schema: Schema) -> Product:
    """The type of the rows of a relation."""
    return Product(tuple((column.name, Base(column.type)) for column in schema))


@dataclass(frozen=True, slots=True)
class Checker:
    """Types expressions over relations, whose elements have the types given."""

    relations: Mapping[str, Type]

    def type(self, expr: Expr, context: Context | None = None) -> Type:
        """The type of an expression; an IllTypedError names expression, expected and found."""
        around = context or {}
        match expr:
            case Rel(name):
                return Bag(self._relation(expr, name))
            case Var(name):
                return around[name]
            case Const(value):
                return Base(type_of(literal(value), ()) or "string")
            case Let(name, bound, body):
                self.bag(bound, around)
                return self.type(body, {**around, name: self.type(bound, around)})
            case For(name, source, where, body):
                inner = {**around, name: self.bag(source, around)}
                if where is not None:
                    self.boolean(where, inner)
                self.bag(body, inner)
                return self.type(body, inner)
            case Sng(item):
                return Bag(self.type(item, around))
            case Empty():
                return Bag(NOTHING)
            case Union(left, right):
                elements = self.bag(left, around), self.bag(right, around)
                return self._common_of(right, *map(Bag, elements))
            case Negate(child):
                self.bag(child, around)
                return self.type(child, around)
            case Times(left, right):
                parts = (self.bag(left, around), self.bag(right, around))
                return Bag(Product(tuple((place(i), each) for i, each in enumerate(parts))))
            case Flatten(child):
                return self._flatten(child, around)
            case Record(fields):
                return Product(tuple((name, self.type(each, around)) for name, each in fields))
            case Field(child, name):
                return self._field(expr, self.type(child, around), name)
            case Apply(function, args):
                return self._apply(expr, PRIMITIVES[function], args, around)
            case Choice(test, then, otherwise):
                self.boolean(test, around)
                types = (self.type(each, around) for each in (then, otherwise))
                return self._common_of(otherwise, *types)
            case Aggregate():
                return self._aggregate(expr, around)
            case _:
                assert_never(expr)

    def bag(self, expr: Expr, context: Context) -> Type:
        """The type of the elements of an expression, which must be a bag or an array."""
        found = self.type(expr, context)
        element = element_type(found)
        if element is None:
            raise _expected(expr, "a bag", found, "iterate over a table or a collection")
        return element

    def boolean(self, expr: Expr, context: Context) -> None:
        """Refuse a condition that is not a boolean."""
        found = self.type(expr, context)
        if isinstance(found, Bag):
            raise _bag_tested(expr, found)
        if found not in (BOOLEAN, VOID, NOTHING):
            raise _expected(expr, "boolean", found, "write a comparison")

    def _relation(self, expr: Expr, name: str) -> Type:
        found = self.relations.get(name)
        if found is None:
            near = did_you_mean(name, tuple(self.relations))
            remedy = f"{near}there are: {', '.join(self.relations) or 'none'}"
            raise IllTypedError(expr, f"there is no relation {named(name)}", remedy, "N004")
        return found

    def _flatten(self, child: Expr, context: Context) -> Type:
        inner = self.bag(child, context)
        element = element_type(inner)
        if element is None:
            found = self.type(child, context)
            raise _expected(child, "a bag of bags", found, "flatten a collection of collections")
        return Bag(element)

    def _field(self, expr: Expr, type_: Type, name: str) -> Type:
        found = field_type(type_, name)
        if found is None:
            have = field_names(type_)
            remedy = f"{did_you_mean(name, have)}there are: {', '.join(have)}"
            if element_type(type_) is not None:
                have, remedy = (name,), "its elements have no order: iterate over them"
            problem = f"{print_expr(expr)}: expected a tuple with {named(name)}, "
            raise IllTypedError(
                expr, problem + f"found {shown(type_)}", remedy if have else "leave it out"
            )
        return found

    def _common_of(self, right: Expr, first: Type, second: Type) -> Type:
        """The type of what may be a value of one type, or of the other, which `right` has."""
        found = common(first, second)
        if found is None:
            raise _expected(right, shown(first), second, "give both the same type")
        return found

    def _apply(
        self, expr: Expr, primitive: Primitive, args: tuple[Expr, ...], context: Context
    ) -> Type:
        types = [self.type(each, context) for each in args]
        if NOTHING in types:
            return BOOLEAN if primitive.gives_boolean else NOTHING
        for each, found in zip(args, types, strict=True):
            if isinstance(found, Bag) or (isinstance(found, Base) and "array<" in found.name):
                raise _bag_tested(each, found)
            if not isinstance(found, Base) or not accepts(primitive, found.name):
                wanted = (
                    "a base value" if primitive.takes in ("any", "ordered") else primitive.takes
                )
                raise _expected(each, wanted, found, _remedy(primitive))
        if primitive.takes in ("any", "ordered") and len(types) == 2 and common(*types) is None:
            raise _expected(args[1], shown(types[0]), types[1], "compare values of one type")
        if primitive.gives_boolean:
            return BOOLEAN
        columns = tuple(
            Column(str(i), each.name) for i, each in enumerate(types) if isinstance(each, Base)
        )
        result = type_of(
            primitive.sql.format(*map(scalar.column, map(str, range(len(types))))), columns
        )
        if result is None:
            raise _expected(expr, "a type of Spark's", types[0], "write it in another way")
        return Base(result)

    def _aggregate(self, expr: Aggregate, context: Context) -> Type:
        element = self.bag(expr.child, context)
        match expr.function:
            case "len":
                return Base("bigint")
            case "any" | "all":
                if element not in (BOOLEAN, VOID, NOTHING):
                    raise _expected(expr.child, "Bag(boolean)", Bag(element), "write a comparison")
                return BOOLEAN
            case function:
                known = element not in (VOID, NOTHING)
                found = result_type(function, element.name) if isinstance(element, Base) else None
                if not known or found is None:
                    wanted = "a bag of numbers" if function == "sum" else "a bag of base values"
                    raise _expected(expr.child, wanted, Bag(element), "take one component of it")
                return Base(found)


def _remedy(primitive: Primitive) -> str:
    """What to write where an operand has another type than a primitive takes."""
    if primitive.name == "concat":
        return "+ puts texts together; a whole number is one by str(…) or in an f-string"
    if primitive.name in ("and", "or", "not"):
        return f"{primitive.name} takes conditions, such as x is not None"
    if primitive.name == "text":
        return "a text may be made of texts and whole numbers"
    return f"{primitive.name} takes nothing else"


def _expected(expr: Expr, wanted: str, found: Type, remedy: str) -> IllTypedError:
    return IllTypedError(
        expr, f"{print_expr(expr)}: expected {wanted}, found {shown(found)}", remedy
    )


def _bag_tested(expr: Expr, found: Type) -> IllTypedError:
    """What the positive fragment leaves out: predicates see base values only (App. A.2)."""
    return IllTypedError(
        expr,
        f"{print_expr(expr)} is {shown(found)}: whole collections are not compared or tested",
        "use any(…), all(…) or len(…) of it, or a SQL view with EXISTS, EXCEPT or DISTINCT",
        "N002",
    )
