"""An expression of relational algebra to a plan whose every operator gives a set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import assert_never

from everview.expr import scalar
from everview.expr.types import type_in
from everview.lang.relalg.nodes import (
    Add,
    Deleted,
    Difference,
    Expression,
    Inserted,
    Intersection,
    Mod,
    NaturalJoin,
    Nothing,
    Product,
    Project,
    Relation,
    Select,
    Sub,
    Union,
)
from everview.lang.sql.lower.outer_joins import semi_join
from everview.plan.build import (
    add,
    columns_of,
    distinct,
    filter_,
    identity,
    join,
    map_,
    negate,
    project,
)
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of

Leaf = Relation | Deleted | Inserted


def lower_expression(expression: Expression, leaves: Mapping[Leaf, Plan]) -> Plan:
    """The plan of a checked expression over the sets that its leaves stand for.

    Every row of every operator has weight one, if it has that in the leaves: Π and ∪ alone can
    derive a row twice, and are followed by a distinct. NULL equals NULL throughout.
    """
    lower = partial(lower_expression, leaves=leaves)
    match expression:
        case Relation() | Deleted() | Inserted():
            return leaves[expression]
        case Select(child, condition):
            return filter_(lower(child), condition)
        case Project(child, columns):
            return distinct(_projected(lower(child), columns))
        case Product(left, right):
            return join(lower(left), lower(right))
        case Union(left, right) | Add(left, right):
            return _union(lower(left), lower(right))
        case Intersection(left, right):
            return semi_join(lower(left), lower(right))
        case Difference(left, right) | Sub(left, right):
            return _difference(lower(left), lower(right))
        case NaturalJoin(left, right):
            return _natural_join(lower(left), lower(right))
        case Mod(child, deleted, inserted):
            return _union(_difference(lower(child), lower(deleted)), lower(inserted))
        case Nothing():
            raise AssertionError("the constructors leave ∅ only as a whole")
        case _:
            assert_never(expression)


def _projected(plan: Plan, columns: tuple[tuple[str, str], ...]) -> Plan:
    schema = schema_of(plan)
    outputs = (Output(given, type_in(schema, own), scalar.column(own)) for own, given in columns)
    return map_(plan, tuple(outputs))


def _union(left: Plan, right: Plan) -> Plan:
    return distinct(add(left, right))


def _difference(left: Plan, right: Plan) -> Plan:
    """S − T = S + −(S ∩ T), in which no weight is negative."""
    return add(left, negate(semi_join(left, right)))


def _natural_join(left: Plan, right: Plan) -> Plan:
    """Pairs equal in the columns of one name, of which those of the left stay."""
    shared = [name for name in columns_of(right) if name in columns_of(left)]
    aside = {name: f"partner.{name}" for name in shared}
    outputs = tuple(
        replace(each, name=aside.get(each.name, each.name)) for each in identity(schema_of(right))
    )
    kept = (*columns_of(left), *(name for name in columns_of(right) if name not in shared))
    return project(join(left, map_(right, outputs), tuple(aside.items()), nulls=True), kept)
