"""Which arrangement, a stored and sorted relation, serves which lookup."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from everview.expr import scalar
from everview.expr.types import Schema, names, searchable
from everview.plan.build import filter_, project
from everview.plan.nodes import Filter, Map, Plan, Source
from everview.plan.text import digest, print_plan
from everview.plan.traverse import TREE_MAX_NODES, schema_of, sources, tree_size
from everview.program.steps import State

Columns = tuple[str, ...]

_NAME = re.compile(r"[\w.()*']{1,80}")
"""What of the order of a state can be part of its name, which is that of a folder too."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Rows of a source wanted by key: after a filter, for some of the columns."""

    source: Source
    by: Columns
    columns: frozenset[str]
    predicate: str | None

    @property
    def all_columns(self) -> frozenset[str]:
        """The columns wanted and those the filter looks at."""
        return self.columns | (scalar.columns(self.predicate) if self.predicate else frozenset())

    @property
    def order(self) -> Columns:
        """The order to store the rows in: rows are looked up by one column, however many agree."""
        first = lookup_column(self.source.schema, (), self.by)
        return self.by if first is None else (first,)


@dataclass(frozen=True, slots=True)
class Serving:
    """The stored relation that answers a demand, and whether it is filtered already.

    One that is brought `whole` is in an order that does not help.
    """

    name: str
    schema: Schema
    sort: Columns
    filtered: bool
    whole: bool = False

    def lookup(self, by: Columns) -> str | None:
        """The column to look up by, None to bring the whole relation."""
        return None if self.whole else lookup_column(self.schema, self.sort, by)


def lookup_column(schema: Schema, sort: Columns, by: Columns) -> str | None:
    """The column of `by` to look up by: the first in the sort order, else any."""
    usable = searchable(schema, by)
    return next((name for name in sort if name in usable), usable[0] if usable else None)


@dataclass(slots=True)
class Arrangements:
    """The arrangements of a catalog: demands are gathered, `arrange` decides what is stored."""

    sorts: Mapping[str, Columns]
    """The sort order of every table and view."""
    maps: frozenset[Plan] = frozenset()
    """The products of totals that are kept for any view: changes look them up where they can."""
    stored: dict[str, State] = field(default_factory=dict)
    _demands: dict[tuple[str, Columns], list[Demand]] = field(default_factory=dict)
    _arranged: dict[tuple[str, Columns], tuple[State, str | None]] = field(default_factory=dict)
    _wanted: dict[tuple[Plan, Columns], None] = field(default_factory=dict)

    def linear_demand(self, plan: Plan, by: Columns) -> Demand | None:
        """What `plan` wants of a source, if it is filters and maps over one and `by` is its own."""
        node, wanted, lookup = plan, frozenset(names(schema_of(plan))), by
        predicates: list[str] = []
        while not isinstance(node, Source):
            match node:
                case Filter(child, predicate):
                    predicates.append(predicate)
                    node = child
                case Map(child, outputs):
                    inner = {o.name: scalar.as_column(o.scalar) for o in outputs}
                    traced = tuple(c for b in lookup if (c := inner[b]) is not None)
                    if len(traced) != len(lookup) or predicates:
                        return None
                    used = (scalar.columns(o.scalar) for o in outputs if o.name in wanted)
                    wanted, lookup = frozenset().union(*used), traced
                    node = child
                case _:
                    return None
        return Demand(node, lookup, wanted, scalar.conjunction(predicates))

    def is_sorted(self, demand: Demand) -> bool:
        """Whether the source of a demand is stored in an order that serves it."""
        return self.sorts[demand.source.name][:1] == demand.by[:1]

    def serve(self, demand: Demand, *, stored: bool = True) -> Serving:
        """The relation that answers the demand; unless a state is to be `stored`, its source."""
        source = demand.source
        order = self.sorts[source.name]
        if not demand.by or order[:1] == () or order[0] in demand.by:
            wanted = tuple(c for c in source.schema if c.name in demand.all_columns)
            return Serving(source.name, wanted, order, filtered=False)
        if not stored:
            read = demand.all_columns | {*demand.by}
            every = tuple(c for c in source.schema if c.name in read)
            return Serving(source.name, every, order, filtered=False, whole=True)
        mark = (source.name, demand.order)
        self._demands.setdefault(mark, []).append(demand)
        state, predicate = self._arranged.get(mark) or self._arrangement(mark)
        if not _holds(state, predicate, demand):
            # The demand is new since relations were arranged; that is done again.
            state, predicate = self._arrangement(mark)
        wanted_columns = _stored_for(demand, predicate)
        schema = tuple(c for c in schema_of(state.plan) if c.name in wanted_columns)
        return Serving(state.name, schema, state.sort, predicate is not None)

    def arrange(self) -> None:
        """Decide, from all demands gathered so far, what each arrangement holds."""
        for mark in self._demands:
            previous = self._arranged.get(mark) or self._arrangement(mark)
            self.stored.pop(previous[0].name, None)
            self._arranged[mark] = self._arrangement(mark)
            state = self._arranged[mark][0]
            self.stored[state.name] = state
        # An arrangement that held one of these may hold something else now.
        for plan, by in self._wanted:
            self.store(plan, by)

    def _arrangement(self, mark: tuple[str, Columns]) -> tuple[State, str | None]:
        """The columns anyone wants; the filter too, where all who ask have the same."""
        demands = self._demands[mark]
        source, order = demands[0].source, mark[1]
        predicates = {d.predicate for d in demands}
        predicate = demands[0].predicate if len(predicates) == 1 else None
        wanted = frozenset[str]().union(*(_stored_for(d, predicate) for d in demands))
        kept = tuple(c.name for c in source.schema if c.name in wanted)
        return _state(project(filter_(source, predicate), kept), order), predicate

    def store(self, plan: Plan, by: Columns) -> State:
        """The state that holds `plan`, made when there is none that can be looked up so."""
        self._wanted[plan, by] = None
        for state in self.stored.values():
            if state.plan == plan and (not state.sort or state.sort[0] in by):
                return state
        state = _state(plan, by)
        self.stored[state.name] = state
        return state


def _stored_for(demand: Demand, predicate: str | None) -> frozenset[str]:
    """The columns to store for a demand, in an arrangement that has applied a predicate or none."""
    return (demand.all_columns if predicate is None else demand.columns) | {*demand.by}


def _holds(state: State, predicate: str | None, demand: Demand) -> bool:
    """Whether an arrangement has the rows and the columns of a demand."""
    columns = {*names(schema_of(state.plan))}
    return predicate in (None, demand.predicate) and _stored_for(demand, predicate) <= columns


def _state(plan: Plan, by: Columns) -> State:
    """A state named after what it is made from and by a digest of its content."""
    content = print_plan(plan) if tree_size(plan) <= TREE_MAX_NODES else digest(plan)
    marked = hashlib.blake2b(f"{by}\n{content}".encode(), digest_size=5).hexdigest()
    origin = "_".join(source.name for source in sources(plan)[:3]) or "constant"
    shown = "_".join(by[:2])
    order = shown if _NAME.fullmatch(shown) else "all"
    return State(f"{origin}__by_{order}__{marked}".replace(".", "_"), plan, by)
