"""How each operator of a view is kept fresh: by which law, with what state, reading how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from everview.differentiate.rules import RULES
from everview.plan.nodes import Plan, Ref, Source
from everview.plan.text import INDENT, print_plan
from everview.plan.traverse import children, sources
from everview.plan.types import Schema
from everview.program.materialize import Materializer
from everview.program.states import States
from everview.program.steps import fetch_mark


@dataclass(frozen=True, slots=True)
class Measured:
    """The rows that a fetch brought when a transaction changed so many rows of tables."""

    rows: int
    changed: int

    @property
    def each(self) -> float:
        """Rows read for each changed row."""
        return self.rows / max(self.changed, 1)


@dataclass(frozen=True, slots=True)
class Known:
    """What a store knows of its past: the last cost of each fetch, and the sizes of relations."""

    measured: Mapping[str, Measured] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def explain_operators(view: str, plan: Plan, states: States, known: Known) -> str:
    """The operators of a view, each with its law and what it reads for a change."""
    reading = _Reading(states)
    reading.change(plan)
    unique = {source.name: source.key for source in sources(plan)}

    def shown(node: Plan, depth: int) -> list[str]:
        rule = RULES[type(node)]
        notes = [f"{rule.kind}: {rule.law}"]
        for relation, by in reading.reads.get(node, {}):
            kept = relation in states.stored
            notes.append(_read(relation, by, kept, unique.get(relation, ()), known))
        below = (line for child in children(node) for line in shown(child, depth + 1))
        margin = INDENT * depth
        return [margin + _title(node), *(f"{margin}{INDENT}-- {each}" for each in notes), *below]

    return "\n".join((f"-- {view}: {_total(reading, known)}", *shown(plan, 0)))


def _title(node: Plan) -> str:
    first = print_plan(node).partition("\n")[0]
    return f'Source "{node.name}"' if isinstance(node, Source) else first


def _read(relation: str, by: str | None, kept: bool, unique: tuple[str, ...], known: Known) -> str:
    rows = known.sizes.get(relation)
    size = "" if rows is None else f" ({rows} rows stored)"
    what = f"state {relation}{size}" if kept else f"{relation}{size}"
    found = known.measured.get(fetch_mark(relation, by))
    if by is None:
        return f"reads {what} whole, or not at all"
    if found is not None:
        return f"reads {what} by {by}: {found.each:.1f} rows a changed row, last time"
    if unique == (by,):
        return f"reads {what} by {by}: at most one row a key"
    return f"reads {what} by {by}: not measured yet"


def _total(reading: _Reading, known: Known) -> str:
    """The price of a view: what all its fetches brought, for each changed row."""
    marks = {fetch_mark(*each) for reads in reading.reads.values() for each in reads}
    if not marks:
        return "reads nothing but the change"
    measured = [known.measured[mark].each for mark in marks if mark in known.measured]
    if not measured:
        return "what it reads has not been measured yet"
    return f"{sum(measured):.1f} rows read a changed row, last time"


@dataclass(slots=True)
class _Reading(Materializer):
    """A lowering that remembers which operator reads which relation, by which column."""

    reads: dict[Plan, dict[tuple[str, str | None], None]] = field(default_factory=dict)
    _within: list[Plan] = field(default_factory=list)

    def change(self, plan: Plan, changed: frozenset[str] | None = None) -> Plan:
        """As for a program; what is fetched meanwhile is read by this operator."""
        self._within.append(plan)
        made = Materializer.change(self, plan, changed)
        self._within.pop()
        return made

    def _fetch(
        self,
        relation: str,
        schema: Schema,
        column: str | None,
        keys: Ref | None,
        key: str | None,
    ) -> Plan:
        by = column if keys is not None else None
        self.reads.setdefault(self._within[-1], {})[relation, by] = None
        return Materializer._fetch(self, relation, schema, column, keys, key)
