"""A view in relational algebra: what its text reads, and its plan."""

from __future__ import annotations

from collections.abc import Mapping

from everview.lang.relalg.check import Binding
from everview.lang.relalg.lower import Leaf, lower_expression
from everview.lang.relalg.nodes import (
    Expression,
    Project,
    Relation,
    children,
    relations,
    with_children,
)
from everview.lang.relalg.parse import parse_query
from everview.lang.relalg.printer import print_expression
from everview.lang.sql.lower.context import Analyze
from everview.plan.build import distinct
from everview.plan.nodes import Plan, Source


def reads_of(text: str) -> tuple[str, ...]:
    """The relations that an expression names, as it spells them."""
    return tuple(dict.fromkeys(each.name for each in relations(parse_query(text))))


def lower_view(text: str, known: Mapping[str, Source], analyze: Analyze) -> Plan:
    """The plan of a view; a table that is a bag is read as the set of its rows."""
    bound = Binding(known, analyze).bound(parse_query(text))
    sets: dict[Leaf, Plan] = {
        each: distinct(known[each.name.lower()]) for each in relations(bound.query)
    }
    return lower_expression(bound.query, sets)


def reading_instead(text: str, name: str, instead: str, columns: Mapping[str, str]) -> str:
    """The text of a view over another relation, through a projection to the columns of before.

    Without `columns` the relation has those of before, and no others.

    >>> reading_instead("r join s", "R", "t", {"a": "b"})
    'Π[b AS a](t) ⋈ s'
    """

    def changed(node: Expression) -> Expression:
        if isinstance(node, Relation) and node.name.lower() == name.lower():
            pairs = tuple((now, before) for before, now in columns.items())
            return Project(Relation(instead), pairs) if pairs else Relation(instead)
        return with_children(node, map(changed, children(node)))

    return print_expression(changed(parse_query(text)))
