"""Semantic checks of an expression: relations, columns and types, one spelling for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from everview.arguments import did_you_mean
from everview.errors import Span, UserError
from everview.expr.types import PLAIN_NAME, Column, Schema, names, unusable_name
from everview.lang.relalg.condition import bound_condition
from everview.lang.relalg.nodes import (
    Binary,
    Difference,
    Expression,
    Intersection,
    NaturalJoin,
    Product,
    Project,
    Relation,
    Select,
    Union,
)
from everview.lang.sql.lower.context import Analyze
from everview.plan.nodes import Source


@dataclass(frozen=True, slots=True)
class Bound:
    """An expression that passed all checks, and its columns."""

    query: Expression
    schema: Schema


@dataclass(frozen=True, slots=True)
class Binding:
    """What the names of an expression are bound to: relations by lower-case name."""

    known: Mapping[str, Source]
    analyze: Analyze

    def bound(self, query: Expression) -> Bound:
        """The expression in declared spellings with its columns, or an error with its place."""
        match query:
            case Relation():
                return self._relation(query)
            case Select(child, condition, span):
                below = self.bound(child)
                text = bound_condition(condition, span, below.schema, self.analyze)
                return Bound(replace(query, child=below.query, condition=text), below.schema)
            case Project(child):
                return _project(query, self.bound(child))
            case Product(left, right):
                return _product(query, self.bound(left), self.bound(right))
            case NaturalJoin(left, right):
                return _natural_join(query, self.bound(left), self.bound(right))
            case Union(left, right) | Intersection(left, right) | Difference(left, right):
                return _set_operation(query, self.bound(left), self.bound(right))
            case _:
                raise AssertionError(f"{type(query).__name__} occurs in changes only")

    def _relation(self, node: Relation) -> Bound:
        source = self.known.get(node.name.lower())
        if source is None:
            every = sorted(each.name for each in self.known.values())
            listed = f"there are: {', '.join(every)}" if every else "create it first"
            remedy = f"{did_you_mean(node.name, every)}{listed}"
            raise UserError(
                "R002", f"there is no table or view {node.name}", span=node.span, remedy=remedy
            )
        for column in source.schema:
            if "map<" in column.type:
                raise UserError(
                    "R004",
                    f"the rows of {source.name} are no set: the map {column.name} has no equality",
                    span=node.span,
                    remedy="read a view in SQL without it, or with MAP_ENTRIES of it",
                )
        return Bound(replace(node, name=source.name), source.schema)


def _project(node: Project, below: Bound) -> Bound:
    columns = [(_column(name, below.schema, node.span), given) for name, given in node.columns]
    schema: list[Column] = []
    for column, given in columns:
        if problem := unusable_name(given):
            raise UserError("Q011", problem, span=node.span, remedy=PLAIN_NAME)
        if given.lower() in (each.name.lower() for each in schema):
            problem = f"two columns are called {given}"
            remedy = "give every column a name of its own with AS"
            raise UserError("R003", problem, span=node.span, remedy=remedy)
        schema.append(Column(given, column.type))
    pairs = tuple((column.name, given) for column, given in columns)
    # A column keeps its own spelling, unless AS says otherwise.
    kept = tuple((own, own if own.lower() == given.lower() else given) for own, given in pairs)
    named = tuple(Column(given, each.type) for (_, given), each in zip(kept, schema, strict=True))
    return Bound(replace(node, child=below.query, columns=kept), named)


def _column(name: str, schema: Schema, span: Span | None) -> Column:
    for column in schema:
        if column.name.lower() == name.lower():
            return column
    here = names(schema)
    remedy = f"{did_you_mean(name, here)}the columns here are {', '.join(here)}"
    raise UserError("R003", f"unknown column {name}", span=span, remedy=remedy)


def _common(left: Schema, right: Schema) -> list[tuple[Column, Column]]:
    """The columns that both sides have by name, whatever the case."""
    theirs = {column.name.lower(): column for column in right}
    return [(c, theirs[c.name.lower()]) for c in left if c.name.lower() in theirs]


def _product(node: Product, left: Bound, right: Bound) -> Bound:
    common = _common(left.schema, right.schema)
    if common:
        raise UserError(
            "R003",
            f"both sides of × have a column {common[0][0].name}",
            span=node.span,
            remedy="rename it on one side with Π[… AS …], or join with ⋈",
        )
    return Bound(_over(node, left, right), left.schema + right.schema)


def _natural_join(node: NaturalJoin, left: Bound, right: Bound) -> Bound:
    common = _common(left.schema, right.schema)
    for mine, theirs in common:
        if mine.type != theirs.type:
            raise _other_types("⋈", mine, theirs, node.span)
    shared = {theirs for _, theirs in common}
    rest = tuple(column for column in right.schema if column not in shared)
    same = _spelled(right, {theirs.name: mine.name for mine, theirs in common})
    return Bound(_over(node, left, same), left.schema + rest)


def _set_operation(node: Union | Intersection | Difference, left: Bound, right: Bound) -> Bound:
    sign = {Union: "∪", Intersection: "∩", Difference: "−"}[type(node)]
    ours, theirs = ([name.lower() for name in names(s)] for s in (left.schema, right.schema))
    if ours != theirs:
        raise UserError(
            "R004",
            f"the sides of {sign} have other columns: "
            f"{', '.join(names(left.schema))} and {', '.join(names(right.schema))}",
            span=node.span,
            remedy="give both the same columns in the same order with Π[… AS …]",
        )
    for mine, other in zip(left.schema, right.schema, strict=True):
        if mine.type != other.type:
            raise _other_types(sign, mine, other, node.span)
    same = _spelled(right, dict(zip(names(right.schema), names(left.schema), strict=True)))
    return Bound(_over(node, left, same), left.schema)


def _spelled(side: Bound, spellings: Mapping[str, str]) -> Bound:
    """The right side with the columns that it shares spelled as on the left."""
    if all(own == given for own, given in spellings.items()):
        return side
    columns = tuple((name, spellings.get(name, name)) for name in names(side.schema))
    schema = tuple(Column(spellings.get(each.name, each.name), each.type) for each in side.schema)
    return Bound(Project(side.query, columns), schema)


def _other_types(sign: str, mine: Column, theirs: Column, span: Span | None) -> UserError:
    return UserError(
        "R004",
        f"{mine.name} is {mine.type} on one side of {sign} and {theirs.type} on the other",
        span=span,
        remedy="CAST one of them in a view in SQL, and read that",
    )


def _over(node: Binary, left: Bound, right: Bound) -> Binary:
    return replace(node, left=left.query, right=right.query)
