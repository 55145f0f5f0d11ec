"""The plan of each relation of a shredded query: ordinary plans, each with its own derivative.

A dictionary is the join of its labels with the bodies of its bags. So the derivative of a join does
what the paper asks: a bag that is there gets the change, a label that appears is initialised from
the new state, and a label whose last use goes takes its rows with it (§2.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.quoting import spark_type
from everview.lang.nested.lower import ONCE, Lowering, Rows, column_name
from everview.lang.nested.normal_form import Collection, Comprehension, Term, Tuple, totals_in
from everview.lang.nested.shred import Leaf, Member, Occurrence, Shredded
from everview.lang.nested.types import Base
from everview.plan.build import add, distinct, filter_, map_
from everview.plan.nodes import Output, Plan
from everview.plan.traverse import schema_of


@dataclass(frozen=True, slots=True)
class Dictionaries:
    """The relations of one query by path; `stored` has those that are stored already."""

    relations: Mapping[str, Shredded]
    lowering: Lowering
    stored: Mapping[str, Plan]

    def plan(self, path: str) -> Plan:
        """The plan of the relation at a path."""
        relation = self.relations[path]
        if not relation.members:
            raise UserError(
                "N005",
                f"the collection {path or 'of the query'} is always empty",
                remedy="leave it out",
            )
        plans: list[Plan] = []
        for number, member in enumerate(relation.members):
            if member.part.negative:
                raise UserError(
                    "N007",
                    "⊖ occurs in changes only: no row of a view is there less than zero times",
                    remedy="leave it out, or use a SQL view with EXCEPT ALL",
                )
            plans += self._member(relation, number, member)
        return add(*plans)

    def _member(self, relation: Shredded, number: int, member: Member) -> Iterator[Plan]:
        around = ONCE if member.under is None else self._labels(relation, member.under)
        terms = [leaf.of(member.part.head) for leaf in relation.leaves]
        heads = tuple(each for each in terms if not isinstance(each, Collection | Tuple))
        for rows in self.lowering.rows(member.part, around, heads):
            outputs = list(_label(relation, member.under))
            for leaf, term in zip(relation.leaves, terms, strict=True):
                if not isinstance(term, Collection | Tuple):
                    outputs.append(self._base(leaf, term, rows))
                    continue
                below = self.relations[relation.below(leaf)]
                outputs += _label(below, below.occurrences[number])
            yield map_(rows.plan, tuple(outputs))

    def _base(self, leaf: Leaf, term: Term, rows: Rows) -> Output:
        assert isinstance(leaf.type, Base)
        text = scalar.canonical(rows.sql(term))
        if self.lowering.type(text, schema_of(rows.plan)) != leaf.type.name:
            text = scalar.canonical(f"CAST({text} AS {spark_type(leaf.type.name)})")
        return Output(leaf.path, leaf.type.name, text)

    def _labels(self, relation: Shredded, occurrence: Occurrence) -> Plan:
        """The support of an occurrence: its labels in the relation above, once each."""
        above = self.relations[relation.above]
        names = [column_name(each) for each in occurrence.values]
        part = above.members[occurrence.member].part
        if not above.path and _is_linear(part):
            (rows,) = self.lowering.rows(part, ONCE, ())
            outputs = (
                Output(name, column.type, scalar.column(name))
                for name, column in zip(names, occurrence.columns, strict=True)
            )
            return distinct(map_(rows.plan, tuple(outputs)))
        plan: Plan = self.stored[above.path]
        if relation.branch:
            here = f"{scalar.column(relation.branch)} = {occurrence.number}"
            plan = filter_(plan, scalar.canonical(here))
        outputs = (
            Output(name, column.type, scalar.column(column.name))
            for name, column in zip(names, occurrence.columns, strict=True)
        )
        return distinct(map_(plan, tuple(outputs)))


def _is_linear(part: Comprehension) -> bool:
    """Whether labels are read as cheaply from the table as from the relation above them.

    Then the table's arrangements serve both sides of the dictionary's join.
    """
    tables = [each for each in part.generators if isinstance(each.source, str)]
    one_table = len(tables) == len(part.generators) == 1
    return one_table and not any(map(totals_in, part.conditions))


def _label(relation: Shredded, own: Occurrence | None) -> Iterator[Output]:
    """The label columns of a relation: the values of one occurrence, null for the others."""
    if own is None:
        return
    values = {c: column_name(value) for c, value in zip(own.columns, own.values, strict=True)}
    for column in relation.labels:
        if column.name == relation.branch:
            text = str(own.number)
        elif column in values:
            text = scalar.column(values[column])
        else:
            text = scalar.canonical(f"CAST(NULL AS {spark_type(column.type)})")
        yield Output(column.name, column.type, text)
