"""Which columns of a plan are never NULL."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from everview.expr import scalar
from everview.plan.build import columns_of
from everview.plan.nodes import (
    Add,
    Distinct,
    Filter,
    Groups,
    Join,
    Map,
    Negate,
    Partition,
    Plan,
    Positive,
    Restrict,
    Totals,
    Unnest,
    Window,
)
from everview.plan.traverse import CACHE_SIZE

Columns = frozenset[str]


@lru_cache(maxsize=CACHE_SIZE)
def never_null(plan: Plan) -> Columns:
    """Columns that hold a value in every row, because a condition or a join demands one.

    What a table declares is not asked: it is not part of a plan.
    """
    match plan:
        case Filter(child, predicate):
            return never_null(child) | _demanded(predicate)
        case Map(child, outputs):
            known = never_null(child)
            return frozenset(o.name for o in outputs if scalar.as_column(o.scalar) in known)
        case Join(left, right, on, residual, nulls):
            known = never_null(left) | never_null(right)
            pairs = (pair for pair in on if not nulls or known & {*pair})
            equal = frozenset(column for pair in pairs for column in pair)
            return known | equal | (_demanded(residual) if residual else frozenset())
        case Add(left, right):
            return never_null(left) & never_null(right)
        case Negate(child) | Distinct(child) | Positive(child) | Restrict(child, _, _):
            return never_null(child)
        case Groups(child, _) | Window(child, _, _):
            return never_null(child)
        case Totals(child, keys, _) | Partition(child, keys, _):
            return never_null(child) & {*keys}
        case Unnest(child, _, _, _, _):
            return never_null(child) & {*columns_of(child)}
        case _:
            return frozenset()


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def _demanded(predicate: str) -> Columns:
    """The columns without whose values a condition does not hold."""
    found = set[str]()
    for part in scalar.conjuncts(predicate):
        operands: list[exp.Expr | None] = [scalar.never_null_operand(part)]
        match scalar.parse(part):
            case exp.Between(this=tested) | exp.In(this=tested):
                operands = [tested]
            case exp.Expression() as tree if isinstance(tree, _COMPARISONS):
                operands = [tree.this, tree.expression]
        found |= {each.name for each in operands if isinstance(each, exp.Column)}
    return frozenset(found)
