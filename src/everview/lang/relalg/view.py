"""A view in relational algebra: what its text reads, and its plan."""

from __future__ import annotations

from collections.abc import Mapping

from everview.lang.relalg.check import Binding
from everview.lang.relalg.lower import Leaf, lower_expression
from everview.lang.relalg.nodes import (
    Expression,
    Product,
    Project,
    Relation,
    Select,
    children,
    relations,
    with_children,
)
from everview.lang.relalg.parse import parse_query
from everview.lang.relalg.printer import print_expression
from everview.lang.sql.bind.read_through import names_in
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

    Where a projection above says which columns count, it has only those: a column that a view does
    not read can be dropped later. Without `columns` the relation has those of before.

    >>> reading_instead("r join s", "R", "t", {"a": "b", "c": "c"})
    'Π[b AS a, c](t) ⋈ s'
    >>> reading_instead("Π[a](r) − s", "R", "t", {"a": "b", "c": "c"})
    'Π[a](Π[b AS a](t)) − s'
    """

    def changed(node: Expression, read: frozenset[str] | None) -> Expression:
        if isinstance(node, Relation) and node.name.lower() == name.lower():
            pairs = [(now, before) for before, now in columns.items()]
            kept = [pair for pair in pairs if read is None or pair[1].lower() in read] or pairs[:1]
            return Project(Relation(instead), tuple(kept)) if kept else Relation(instead)
        return with_children(node, (changed(each, _read(node, read)) for each in children(node)))

    return print_expression(changed(parse_query(text), None))


def _read(node: Expression, read: frozenset[str] | None) -> frozenset[str] | None:
    """The columns that count below an operator, of which some count above it; None for all."""
    match node:
        case Project(_, columns):
            return frozenset(own.lower() for own, _ in columns)
        case Select(_, condition) if read is not None:
            return read | names_in(condition)
        case Product():
            return read
        case _:
            return None
