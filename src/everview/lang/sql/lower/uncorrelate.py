"""A correlated subquery as rows that read nothing around it, and the condition they are asked by.

To compute a subquery for the values D that the rows around it have, D is made of those rows. In a
recursion that would put the recursion below the subquery, where a negation must not find it.
"""

from __future__ import annotations

from dataclasses import replace

from everview.expr import scalar
from everview.lang.sql.lower.subqueries import Inner
from everview.plan.build import columns_of, identity, join, map_
from everview.plan.nodes import Distinct, Filter, Join, Map, Plan, Ref
from everview.plan.traverse import schema_of, walk

Asked = tuple[Plan, tuple[str, ...]]


def independent(inner: Inner) -> tuple[Plan, str | None] | None:
    """Rows without D, and the condition under which one is a row of the subquery for a row around.

    None where the subquery does more with D than to join and to filter.
    """
    found = _apart(inner.over_domain, inner.domain.leaf, ())
    if found is None:
        return None
    rows, conditions = found
    mark = f"{inner.domain.number}/"
    names = {name: mark + name for name in columns_of(rows)}
    names |= {theirs: mine for mine, theirs in inner.pairs}
    outputs = tuple(replace(each, name=names[each.name]) for each in identity(schema_of(rows)))
    asked = scalar.conjunction(scalar.rename(each, names) for each in conditions)
    return map_(rows, outputs), asked


def _apart(plan: Plan, leaf: Ref, conditions: tuple[str, ...]) -> Asked | None:
    """The rows beside D under filters, and all conditions in terms of both."""
    match plan:
        case Filter(child, predicate):
            return _apart(child, leaf, (*conditions, *scalar.conjuncts(predicate)))
        case Map(child, outputs):
            inner = {each.name: each.scalar for each in outputs}
            told = tuple(scalar.substitute(each, inner) for each in conditions)
            return _apart(child, leaf, told)
        case Distinct(child):
            return _apart(child, leaf, conditions)
        case Join(left, right, (), None, _) if leaf not in walk(right):
            return (right, conditions) if left == leaf else _beside(left, right, leaf, conditions)
        case _:
            return None


def _beside(left: Plan, right: Plan, leaf: Ref, conditions: tuple[str, ...]) -> Asked | None:
    """Rows joined with those beside D; no two of their columns may have one name."""
    found = _apart(left, leaf, conditions)
    if found is None or not {*columns_of(found[0])}.isdisjoint(columns_of(right)):
        return None
    return join(found[0], right), found[1]
