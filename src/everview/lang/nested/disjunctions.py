"""Disjunctions in join conditions, as disjoint sets of conditions that each have an equality.

A join by `a = x OR b = y` compares all pairs of rows. The same pairs are those with `a = x`, and
those with `b = y` but not `a = x`: two joins by keys. A condition is true or false, so NOT is
exact.
"""

from __future__ import annotations

from everview.lang.nested.normal_form import (
    Call,
    Term,
    conjuncts,
    free_columns,
    may_fail,
    negation,
)

Conditions = tuple[Term, ...]
_SIDES_MAX = 8
"""A disjunction of more sides stays as it is."""


def disjoint(conditions: Conditions) -> list[Conditions]:
    """Sets of conditions, of which a row satisfies exactly one if it satisfies `conditions`.

    There is one set unless a disjunction is the only way to join by equality. What may fail stays
    together with what is to be tested before it.
    """
    if any(map(_joins, conditions)):
        return [conditions]
    for place, each in enumerate(conditions):
        sides = _disjuncts(each)
        if not 1 < len(sides) <= _SIDES_MAX or any(map(may_fail, sides)):
            continue
        if all(any(map(_joins, conjuncts(side))) for side in sides):
            others = conditions[:place] + conditions[place + 1 :]
            before = tuple(map(negation, sides))
            return [
                others + conjuncts(side) + before[:position] for position, side in enumerate(sides)
            ]
    return [conditions]


def _disjuncts(test: Term) -> tuple[Term, ...]:
    if isinstance(test, Call) and test.function == "or":
        return tuple(side for each in test.args for side in _disjuncts(each))
    return (test,)


def _joins(test: Term) -> bool:
    """Whether a condition is an equality between values of different variables."""
    if not isinstance(test, Call) or test.function != "==":
        return False
    left, right = ({c.variable for c in free_columns(each)} for each in test.args)
    return bool(left and right) and left.isdisjoint(right)
