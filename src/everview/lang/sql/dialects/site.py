"""A construct of another dialect with its context, and helpers to build its translation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from sqlglot import exp, parse_one

from everview.errors import UserError
from everview.expr.dialect import DIALECT
from everview.expr.types import storable_type
from everview.lang.sql.dialects.meanings import Meaning
from everview.lang.sql.dialects.types import Kind, Kinds, kind_of_type
from everview.lang.sql.parse.span import span_of

Rewrite: TypeAlias = Callable[[], exp.Expr]
"""Builds the translation of a node, after its parts were translated."""


@dataclass(frozen=True, slots=True)
class ForeignText:
    """A text in a dialect, with the meaning of its constructs."""

    dialect: str
    meaning: Meaning
    text: str

    def refuse(self, node: exp.Expr, construct: str, remedy: str) -> NoReturn:
        """Refuse a construct by name, at its place."""
        raise UserError(
            "Q002",
            f"what {construct} means in {self.dialect} cannot be told here",
            span=span_of(node, self.text),
            remedy=remedy,
        )


@dataclass(frozen=True, slots=True)
class TranslationSite:
    """A node to translate, with its dialect and the kinds of its parts."""

    node: exp.Expr
    reading: ForeignText
    kinds: Kinds

    @property
    def meaning(self) -> Meaning:
        """What the constructs of the dialect mean."""
        return self.reading.meaning

    def refuse(self, construct: str, remedy: str) -> NoReturn:
        """Refuse the construct by name."""
        self.reading.refuse(self.node, construct, remedy)


def kind_of(type_: exp.Expr | None) -> Kind:
    """The kind of a type as it is written."""
    return kind_of_type(storable_type(type_.sql(dialect=DIALECT))) if type_ else None


def number(node: exp.Expr | None) -> int | None:
    """The value of a whole number that is written out."""
    if isinstance(node, exp.Neg):
        inner = number(node.this)
        return None if inner is None else -inner
    return int(node.name) if isinstance(node, exp.Literal) and node.name.isdigit() else None


def called(name: str, *args: exp.Expr) -> exp.Expr:
    """A call of a function."""
    return exp.Anonymous(this=name, expressions=list(args))


def cast(node: exp.Expr, type_: str) -> exp.Expr:
    """A cast to a type of Spark."""
    return exp.Cast(this=bare(node), to=exp.DataType.build(type_, dialect=DIALECT))


def of_type(cast: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A value cast as another cast does."""
    return type(cast)(this=value, to=cast.args["to"], safe=cast.args.get("safe"))


def bare(node: exp.Expr) -> exp.Expr:
    """A tree without parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def templated(template: str, *args: exp.Expr) -> exp.Expr:
    """A template of Spark SQL with trees in place of {0}, {1}, …"""
    names = [f"argument{at}" for at in range(len(args))]
    tree = exp.Paren(this=parse_one(template.format(*names), read=DIALECT))
    for column in list(tree.find_all(exp.Column)):
        column.replace(exp.Paren(this=args[names.index(column.name)].copy()))
    return tree
