"""What is stored so that derivatives read old values cheaply: the circuit policy.

A derivative reads old values only through the keys of a change. `bring` turns such a reading into
Fetch steps: through linear operators and joins down to stored relations, by key. The inputs of
distincts, groups and partitions are stored (dbsp Alg. 4.6), of first rows these alone; the inputs
of joins are stored filtered and projected, sorted by the join key, unless a stored relation has
that order already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from everview.analysis.change_bounded import bounded
from everview.differentiate.lifting import is_lifted, trace_of, unlifted
from everview.differentiate.rules import Derive, rule_of
from everview.differentiate.top_k import top
from everview.expr import scalar
from everview.expr.types import Schema
from everview.plan.build import (
    add,
    columns_of,
    distinct,
    filter_,
    groups,
    join,
    map_,
    negate,
    partition,
    positive,
    restrict,
    unnest,
    window,
)
from everview.plan.nodes import (
    Add,
    Change,
    Distinct,
    Empty,
    Filter,
    Fixpoint,
    Groups,
    Join,
    Map,
    Negate,
    Output,
    Partition,
    Plan,
    Positive,
    Ref,
    Restrict,
    Source,
    Totals,
    Unnest,
    Values,
    Window,
)
from everview.plan.traverse import (
    children,
    has_loops,
    reads_change,
    schema_of,
    sources,
    transform,
    walk,
    with_children,
)
from everview.program.arrangements import Demand, States, lookup_column
from everview.program.loops import follow
from everview.program.steps import Compute, Fetch, KeySet, Step, change_name

Columns = tuple[str, ...]

_LINEAR = (Filter, Map, Unnest, Add, Negate, Totals)


@dataclass(slots=True)
class Materializer:
    """Lowers derivatives to steps, asking `states` for the relation each reading is served by."""

    states: States
    steps: list[Step] = field(default_factory=list)
    prefix: str = ""
    _computed: dict[Plan, Ref] = field(default_factory=dict)
    _changes: dict[Plan, Plan] = field(default_factory=dict)
    _fetched: dict[Fetch, Ref] = field(default_factory=dict)

    def compute(self, plan: Plan, name: str | None = None) -> Ref:
        """The result of `plan` as a step of its own; equal plans are computed once."""
        if name is None and isinstance(plan, Ref):
            return plan
        known = self._computed.get(plan)
        if known is None or name is not None:
            ref = Ref(name or f"{self.prefix}t{len(self.steps)}", schema_of(plan))
            self.steps.append(Compute(ref.name, known or self._named_anew(plan) or plan))
            self._computed.setdefault(plan, ref)
            return ref
        return known

    def _named_anew(self, plan: Plan) -> Plan | None:
        """The plan as columns of what is computed already under other names, None if it is not."""
        if not isinstance(plan, Map) or isinstance(plan.child, Ref):
            return None
        for known, ref in self._computed.items():
            if isinstance(known, Map) and known.child == plan.child:
                there = {output.scalar: scalar.column(output.name) for output in known.outputs}
                if all(output.scalar in there for output in plan.outputs):
                    named = (Output(o.name, o.type, there[o.scalar]) for o in plan.outputs)
                    return map_(ref, tuple(named))
        return None

    def change(self, plan: Plan, changed: frozenset[str] | None = None) -> Plan:
        """Δ`plan` over changes, slices and results, when the relations in `changed` change.

        The same rules as `derive`, with one difference: the change of what a join, a distinct or
        a group reads is a step of its own, however often the rule reads it. So the size of a
        program follows the size of the query, and not its depth.
        """
        if changed is not None and not any(s.name in changed for s in sources(plan)):
            return Empty(schema_of(plan))
        self._follow(plan, changed)
        known = self._changes.get(plan)
        if known is None:
            known = self.lower(rule_of(plan).apply(plan, self._change_below(plan, changed)))
            if top(plan) is not None and not isinstance(known, Empty):
                known = self.compute(known)
            self._changes[plan] = known
        return known

    def _follow(self, plan: Plan, changed: frozenset[str] | None) -> None:
        """Let the loops run whose iterations a plan reads, which tells how they change."""
        if isinstance(plan, Fixpoint) and not plan.traced and is_lifted(plan):
            trace = trace_of(plan, plan.result)
            self._changes[plan] = unlifted(self.change(trace, changed))
        elif has_loops(plan) and plan not in self._changes:
            for node in walk(plan):
                if isinstance(node, Fixpoint) and node.traced and node not in self._changes:
                    self._changes |= follow(self, node, changed)

    def inside(self) -> Materializer:
        """A lowering of what is done again and again, over what is known before."""
        prefix = f"{self.prefix}{len(self.steps)}."
        return replace(self, steps=[], prefix=prefix, _computed={}, _fetched={})

    def slice(self, plan: Plan, by: Columns, keys: Ref) -> Fetch:
        """The fetch of what is stored of `plan` with some keys, as a step that is not yet taken."""
        inner = self.inside()
        inner._stored(plan, by, keys, by)
        (step,) = inner.steps
        assert isinstance(step, Fetch)
        return step

    def _change_below(self, plan: Plan, changed: frozenset[str] | None) -> Derive:
        def inline(child: Plan) -> Plan:
            return self.change(child, changed)

        def once(child: Plan) -> Plan:
            made = self.change(child, changed)
            return made if isinstance(made, Empty) else self.compute(made)

        return inline if isinstance(plan, _LINEAR) and top(plan) is None else once

    def lower(self, plan: Plan) -> Plan:
        """A plan over changes, slices and results, equal to `plan`, which is driven by a change."""
        if not sources(plan):
            return transform(plan, _refer)
        match plan:
            case Join(left, right, on, residual, nulls) if bounded(left):
                driver, keys, named = self._driver(left, _lefts(on))
                brought = self.bring(right, _rights(on), keys, named)
                return join(driver, brought, on, residual, nulls)
            case Join(left, right, on, residual, nulls) if bounded(right):
                driver, keys, named = self._driver(right, _rights(on))
                brought = self.bring(left, _lefts(on), keys, named)
                return join(brought, driver, on, residual, nulls)
            case Restrict(child, to, on):
                keys = self.compute(self.lower(to))
                fetch = self._input if not on and _joins(child) else self.bring
                made = restrict(fetch(child, _lefts(on), keys, _rights(on)), keys, on)
                # Summing doubles twice may give two answers: what is published and what is
                # stored must be one result.
                answer = isinstance(child, Partition | Window) or top(child) is not None
                return self.compute(made) if answer and not bounded(child) else made
            case Source() | Join():
                return self.bring(plan, (), None, ())
            case Fixpoint():
                return transform(plan, self._whole)
            case _:
                return with_children(plan, tuple(self.lower(part) for part in children(plan)))

    def _driver(self, plan: Plan, on: Columns) -> tuple[Plan, Ref, Columns]:
        """The side of a join that a change drives, the result with its keys, and their names there.

        What a map only names anew is looked up under its old name, and the map needs no step.
        """
        lowered = self.lower(plan)
        if isinstance(lowered, Map) and isinstance(lowered.child, Ref):
            inner = {o.name: scalar.as_column(o.scalar) for o in lowered.outputs}
            named = tuple(name for column in on if (name := inner[column]) is not None)
            if len(named) == len(on):
                return lowered, lowered.child, named
        driver = self.compute(lowered)
        return driver, driver, on

    def _whole(self, leaf: Plan) -> Plan:
        """A leaf of a loop that is run anew, over the whole of what it reads."""
        return self.bring(leaf, (), None, ()) if isinstance(leaf, Source) else _refer(leaf)

    def bring(self, plan: Plan, by: Columns, keys: Ref | None, theirs: Columns) -> Plan:
        """At least the rows of `plan` whose `by` columns equal `theirs` in `keys`."""
        if bounded(plan):
            return self._once(self.lower(plan))
        demand = self.states.linear_demand(plan, by)
        if demand is not None:
            return self._fetch_linear(plan, demand, keys, by, theirs)
        first = top(plan)
        match plan:
            case Filter() if first is not None and not reads_change(plan):
                answer = self._stored(first.plan, by, keys, theirs, first.window.keys)
                return filter_(answer, first.rest)
            case Filter(child, predicate):
                return filter_(self.bring(child, by, keys, theirs), predicate)
            case Negate(child):
                return negate(self.bring(child, by, keys, theirs))
            case Add(left, right):
                return add(self.bring(left, by, keys, theirs), self.bring(right, by, keys, theirs))
            case Map(child, outputs):
                inner = {o.name: scalar.as_column(o.scalar) for o in outputs}
                traced = tuple(name for b in by if (name := inner[b]) is not None)
                if len(traced) == len(by) or reads_change(child):
                    pairs = [(inner[b], t) for b, t in zip(by, theirs, strict=True) if inner[b]]
                    below = tuple(str(a) for a, _ in pairs)
                    above = tuple(t for _, t in pairs)
                    return map_(self.bring(child, below, keys, above), outputs)
            case Unnest(child, array, element, position, outer):
                own = set(columns_of(child))
                kept = [(b, t) for b, t in zip(by, theirs, strict=True) if b in own]
                if len(kept) == len(by) or reads_change(child):
                    brought = self.bring(child, _lefts(kept), keys, _rights(kept))
                    return unnest(brought, array, element, position, outer=outer)
            case Join():
                return self._bring_join(plan, by, keys, theirs)
            case Fixpoint(result, _, _, False) if is_lifted(plan):
                return unlifted(self.bring(trace_of(plan, result), by, keys, theirs))
            case Distinct(child):
                return distinct(self._input(child, by, keys, theirs))
            case Positive(child):
                return positive(self._input(child, by, keys, theirs))
            case Groups(child, group) if set(by) <= set(group):
                return groups(self.bring(child, by, keys, theirs), group)
            case Partition(child, group, aggregates) if set(by) <= set(group):
                if not reads_change(plan):
                    return self._stored(plan, by, keys, theirs, group)
                if self.states.linear_demand(_old_part(child), by) is not None:
                    return partition(self.bring(child, by, keys, theirs), group, aggregates)
                return partition(self._input(child, by, keys, theirs), group, aggregates)
            case Window(child, group, columns) if set(by) <= set(group):
                if not reads_change(plan):
                    return self._stored(plan, by, keys, theirs, group)
                return window(self._input(child, by, keys, theirs), group, columns)
            case _:
                pass
        if reads_change(plan):
            parts = tuple(self.bring(part, (), None, ()) for part in children(plan))
            return with_children(plan, parts)
        return self._stored(plan, by, keys, theirs)

    def _input(self, plan: Plan, by: Columns, keys: Ref | None, theirs: Columns) -> Plan:
        """The input of a distinct or a partition: what is old of it comes from a state."""
        if isinstance(plan, Add):
            left = self._input(plan.left, by, keys, theirs)
            return add(left, self._input(plan.right, by, keys, theirs))
        if not reads_change(plan):
            return self._stored(plan, by, keys, theirs)
        return self.bring(plan, by, keys, theirs)

    def _once(self, plan: Plan) -> Plan:
        """A step of its own where the work is worth sharing; filters and maps are not."""
        cheap = Filter | Map | Negate | Add | Ref | Values | Empty
        return plan if all(isinstance(node, cheap) for node in walk(plan)) else self.compute(plan)

    def _bring_join(self, plan: Join, by: Columns, keys: Ref | None, theirs: Columns) -> Plan:
        """One side by the keys given, the other by the join keys of what came."""
        left_columns = set(columns_of(plan.left))
        pairs = tuple(zip(by, theirs, strict=True))
        on_left = tuple((b, t) for b, t in pairs if b in left_columns)
        on_right = tuple((b, t) for b, t in pairs if b not in left_columns)
        lefts, rights = _lefts(plan.on), _rights(plan.on)
        if on_left or not on_right:
            given = on_left
            first = self.compute(self.bring(plan.left, _lefts(given), keys, _rights(given)))
            second = self._other(plan.right, rights, first, lefts, on_right, keys)
            return join(first, second, plan.on, plan.residual, plan.nulls)
        first = self.compute(self.bring(plan.right, _lefts(on_right), keys, _rights(on_right)))
        second = self._other(plan.left, lefts, first, rights, (), keys)
        return join(second, first, plan.on, plan.residual, plan.nulls)

    def _other(
        self,
        side: Plan,
        on: Columns,
        first: Ref,
        first_on: Columns,
        given: tuple[tuple[str, str], ...],
        keys: Ref | None,
    ) -> Plan:
        if on or not given:
            return self.bring(side, on, first, first_on)
        return self.bring(side, _lefts(given), keys, _rights(given))

    def _fetch_linear(
        self, plan: Plan, demand: Demand, keys: Ref | None, by: Columns, theirs: Columns
    ) -> Plan:
        """Map and Filter again over the slice of the relation that serves the demand."""
        serving = self.states.serve(demand)
        column = serving.lookup(demand.by)
        slice_ = self._fetch(
            serving.name, serving.schema, column, keys, tuple(zip(demand.by, theirs, strict=True))
        )

        def onto(node: Plan) -> Plan:
            match node:
                case Source():
                    return slice_
                case Filter(child, _) if serving.filtered:
                    return onto(child)
                case Filter(child, predicate):
                    return filter_(onto(child), predicate)
                case Map(child, outputs):
                    return map_(onto(child), outputs)
                case _:
                    raise AssertionError(node)

        return onto(plan)

    def _stored(
        self, plan: Plan, by: Columns, keys: Ref | None, theirs: Columns, sort: Columns = ()
    ) -> Plan:
        """The slice of a state that holds the value of `plan` itself."""
        state = self.states.store(plan, by or sort or columns_of(plan))
        column = lookup_column(schema_of(plan), state.sort, by)
        pairs = tuple(zip(by, theirs, strict=True))
        return self._fetch(state.name, schema_of(plan), column, keys, pairs)

    def _fetch(
        self,
        relation: str,
        schema: Schema,
        column: str | None,
        keys: Ref | None,
        pairs: tuple[tuple[str, str], ...],
    ) -> Plan:
        """A slice by one column; `pairs` tells which columns agree with which of the keys."""
        by = column if keys is not None else None
        wanted: tuple[KeySet, ...] = ()
        if keys is not None:
            theirs = dict(reversed(pairs))  # of two that one column agrees with, the first
            key = theirs.pop(by, "") if by else ""
            wanted = (KeySet(keys.name, key, tuple(theirs.items()) if by else ()),)
        fresh = Fetch(f"{self.prefix}s{len(self.steps)}", relation, schema, by, wanted)
        known = self._fetched.setdefault(replace(fresh, result=""), Ref(fresh.result, schema))
        if known.name == fresh.result:
            self.steps.append(fresh)
        return known


def _joins(plan: Plan) -> bool:
    """Whether the whole of `plan` is that of a join, which costs more to make than to keep."""
    if bounded(plan) or reads_change(plan):
        return False
    return isinstance(plan, Join) or (
        isinstance(plan, _LINEAR) and any(map(_joins, children(plan)))
    )


def _old_part(plan: Plan) -> Plan:
    """Of an old value plus its change, the old value."""
    return _old_part(plan.left) if isinstance(plan, Add) and reads_change(plan) else plan


def _refer(node: Plan) -> Plan:
    return Ref(change_name(node.name), node.schema) if isinstance(node, Change) else node


def _lefts(pairs: Iterable[tuple[str, str]]) -> Columns:
    return tuple(a for a, _ in pairs)


def _rights(pairs: Iterable[tuple[str, str]]) -> Columns:
    return tuple(b for _, b in pairs)
