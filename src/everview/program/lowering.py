"""How a derivative is read from stored relations: lookups by key, down to arrangements.

A derivative reads old values only through the keys of a change. `lower_lookup` turns such a reading
into Fetch steps: through linear operators and joins down to stored relations, by key. This is the
circuit policy: the inputs of distincts, groups and partitions are stored (dbsp Alg. 4.6), of top-k
the first rows alone; the inputs of joins are stored filtered and projected, sorted by the join key,
unless a stored relation has that order already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from everview.analysis.change_bounded import bounded
from everview.analysis.keys import keys
from everview.differentiate.lifting import is_lifted, trace_of, unlifted
from everview.differentiate.top_k import top_k
from everview.expr import scalar
from everview.expr.types import FLOATS, Schema
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
    totals,
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
    reads_change,
    schema_of,
    sources,
    transform,
    walk,
    with_children,
)
from everview.program.arrangements import Arrangements, Demand, Serving, lookup_column
from everview.program.ranges import key_ranges
from everview.program.steps import Compute, Fetch, KeyRange, KeySet, Limit, Step, change_name

Columns = tuple[str, ...]

Pairs = tuple[tuple[str, str], ...]

_LINEAR = (Filter, Map, Unnest, Add, Negate, Totals)


@dataclass(frozen=True, slots=True)
class Lookup:
    """Which rows of a plan are wanted: those that agree with a row of `keys` on all `pairs`.

    A pair is a column of the plan and one of `keys`. Without `keys` all rows are wanted. Ranges are
    those of a plan above which nothing counts its rows: a join that has them as its condition.
    """

    keys: Ref | None
    pairs: Pairs
    ranges: tuple[KeyRange, ...] = ()
    """Without pairs: ranges of columns, outside of each of which no row is wanted."""

    @classmethod
    def of(cls, keys: Ref, columns: Columns) -> Lookup:
        """The lookup by columns that have the same names in the plan and in `keys`."""
        return cls(keys, tuple((name, name) for name in columns))

    @property
    def by(self) -> Columns:
        """The columns of the plan."""
        return tuple(ours for ours, _ in self.pairs)

    def renamed(self, inner: Mapping[str, str | None]) -> Lookup:
        """The same for a plan below, as far as its columns have names there."""
        pairs = ((name, theirs) for ours, theirs in self.pairs if (name := inner[ours]) is not None)
        return Lookup(self.keys, tuple(pairs))

    def only(self, columns: Columns) -> Lookup:
        """The same by those of the columns that a plan below has."""
        pairs = tuple((ours, theirs) for ours, theirs in self.pairs if ours in columns)
        return Lookup(self.keys, pairs)


WHOLE = Lookup(None, ())


@dataclass(slots=True)
class Lowering:
    """Lowers plans to steps, asking `arrangements` which relation serves each lookup.

    `reads` remembers which `operator`'s change looks up which relation, by which column.
    """

    arrangements: Arrangements
    steps: list[Step] = field(default_factory=list)
    prefix: str = ""
    operator: Plan | None = None
    in_loop: bool = False
    """Whether the steps are taken at every iteration of a loop, which keeps what it has fetched."""
    stores: bool = True
    """Whether lookups may ask for states; if not, old values are computed from the tables."""
    reads: dict[Plan | None, dict[tuple[str, str | None], None]] = field(default_factory=dict)
    _computed: dict[Plan, Ref] = field(default_factory=dict)
    _fetched: dict[Fetch, Ref] = field(default_factory=dict)
    _looked_up: dict[tuple[Plan | None, bool, Plan, Lookup], Plan] = field(default_factory=dict)
    """What was looked up for an operator, from states or not: a plan may occur many times."""

    def compute(self, plan: Plan, name: str | None = None) -> Ref:
        """The result of `plan` as a step of its own; equal plans are computed once."""
        if name is None and isinstance(plan, Ref):
            return plan
        known = self._computed.get(plan)
        if known is None or name is not None:
            ref = Ref(name or f"{self.prefix}t{len(self.steps)}", schema_of(plan))
            self.steps.append(Compute(ref.name, known or self._reuse_projection(plan) or plan))
            self._computed.setdefault(plan, ref)
            return ref
        return known

    def _reuse_projection(self, plan: Plan) -> Plan | None:
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

    def inside(self) -> Lowering:
        """A lowering of steps that are taken again at every iteration, with names of their own."""
        prefix = f"{self.prefix}{len(self.steps)}."
        return replace(
            self, steps=[], prefix=prefix, in_loop=True, _computed={}, _fetched={}, _looked_up={}
        )

    def slice(self, plan: Plan, by: Columns, keys: Ref) -> Fetch:
        """The fetch of what is stored of `plan` with some keys, as a step that is not yet taken."""
        inner = self.inside()
        inner._stored(plan, Lookup.of(keys, by))
        (step,) = inner.steps
        assert isinstance(step, Fetch)
        return step

    def lower(self, plan: Plan) -> Plan:
        """A plan over changes, slices and results, equal to `plan`, which is driven by a change."""
        if not sources(plan):
            return transform(plan, _refer)
        match plan:
            case Join(left, right, on, residual, nulls) if bounded(left):
                driver, lookup = self._driver(left, _turned(on))
                lookup = self._with_ranges(lookup, residual, right, driver)
                return join(driver, self._joined(right, lookup), on, residual, nulls)
            case Join(left, right, on, residual, nulls) if bounded(right):
                driver, lookup = self._driver(right, on)
                lookup = self._with_ranges(lookup, residual, left, driver)
                return join(self.lower_lookup(left, lookup), driver, on, residual, nulls)
            case Restrict(child, to, on):
                keys = self.compute(self.lower(to))
                fetch = self._input if not on and _joins(child) else self.lower_lookup
                rows = restrict(fetch(child, Lookup(keys, on)), keys, on)
                # Summing doubles twice may give two answers: what is published and what is
                # stored must be one result.
                answer = isinstance(child, Partition | Window) or top_k(child) is not None
                return self.compute(rows) if answer and not bounded(child) else rows
            case Source() | Join():
                return self.lower_lookup(plan, WHOLE)
            case Fixpoint():
                return transform(plan, self._whole)
            case _:
                return with_children(plan, tuple(self.lower(part) for part in children(plan)))

    def _with_ranges(
        self, lookup: Lookup, condition: str | None, wanted: Plan, driver: Plan
    ) -> Lookup:
        """The lookup of one side of a join without keys, by the ranges that its condition has."""
        if lookup.pairs or self.in_loop or lookup.keys is None:
            return lookup
        named = {each.name: each.name for each in schema_of(driver)}
        if isinstance(driver, Map):
            plain = ((o.name, scalar.as_column(o.scalar)) for o in driver.outputs)
            named = {name: inner for name, inner in plain if inner is not None}
        asking = tuple(each for each in schema_of(driver) if each.name in named)
        found = key_ranges(condition, schema_of(wanted), asking)
        return replace(lookup, ranges=tuple(_asked_as(each, named) for each in found))

    def _joined(self, plan: Plan, lookup: Lookup) -> Plan:
        """The side of a join that a change looks up.

        Totals that are looked up by a unique key of what they total are of one row: that row is
        looked up itself, and nothing is stored for them.
        """
        match plan:
            case Add(left, right):
                return add(self._joined(left, lookup), self._joined(right, lookup))
            case Totals(child, group, measures) if not bounded(plan):
                if any(key <= {*lookup.by} for key in keys(child)):
                    return totals(self.lower_lookup(child, lookup), group, measures)
                return self.lower_lookup(plan, lookup)
            case _:
                return self.lower_lookup(plan, lookup)

    def _driver(self, plan: Plan, pairs: Pairs) -> tuple[Plan, Lookup]:
        """The side of a join that a change drives, and the lookup of the other by its keys.

        Keys that a map only renames are looked up under their old names: the map needs no step.
        """
        lowered = self.lower(plan)
        if isinstance(lowered, Map) and isinstance(lowered.child, Ref):
            inner = {o.name: scalar.as_column(o.scalar) for o in lowered.outputs}
            named = tuple((a, name) for a, b in pairs if (name := inner[b]) is not None)
            if len(named) == len(pairs):
                return lowered, Lookup(lowered.child, named)
        driver = self.compute(lowered)
        return driver, Lookup(driver, pairs)

    def _whole(self, leaf: Plan) -> Plan:
        """A leaf of a loop that is run from scratch, over the whole of what it reads."""
        return self.lower_lookup(leaf, WHOLE) if isinstance(leaf, Source) else _refer(leaf)

    def lower_lookup(self, plan: Plan, lookup: Lookup) -> Plan:
        """At least the rows of `plan` that a lookup asks for.

        They come from the relations below `plan` where the keys can be followed there, else from a
        state that holds `plan` itself.
        """
        asked = (self.operator, self.stores, plan, lookup)
        if asked not in self._looked_up:
            self._looked_up[asked] = self._lower_lookup(plan, lookup)
        return self._looked_up[asked]

    def _lower_lookup(self, plan: Plan, lookup: Lookup) -> Plan:
        if bounded(plan):
            return self._once(self.lower(plan))
        ranged = self._fetch_ranged(plan, lookup.keys, lookup.ranges)
        if ranged is not None:
            return ranged
        if lookup.ranges and not isinstance(plan, Add):
            # What is below may be counted, in groups that are not as a range is.
            lookup = replace(lookup, ranges=())
        demand = self.arrangements.linear_demand(plan, lookup.by)
        if demand is not None:
            return self._fetch_linear(plan, demand, lookup)
        rows = self._lookup_below(plan, lookup)
        if rows is not None:
            return rows
        if reads_change(plan):
            parts = tuple(self.lower_lookup(part, WHOLE) for part in children(plan))
            return with_children(plan, parts)
        return self._stored(plan, lookup, plan.keys if isinstance(plan, Partition | Window) else ())

    def _lookup_below(self, plan: Plan, lookup: Lookup) -> Plan | None:
        """The rows from lookups of what `plan` reads; None where `plan` itself must be stored."""
        match plan:
            case Filter() if not reads_change(plan) and (first := top_k(plan)) is not None:
                return filter_(self._stored(first.plan, lookup, first.window.keys), first.rest)
            case Filter() | Negate() | Add() | Map() | Unnest():
                return self._lookup_linear(plan, lookup)
            case Join():
                return self._lookup_join(plan, lookup)
            case Fixpoint(result, _, _, False) if is_lifted(plan):
                return unlifted(self.lower_lookup(trace_of(plan, result), lookup))
            case Distinct(child):
                return distinct(self._input(child, lookup))
            case Positive(child):
                return positive(self._input(child, lookup))
            case Groups(child, group) if set(lookup.by) <= set(group):
                return groups(self.lower_lookup(child, lookup), group)
            case Partition(child, group, aggregates):
                if not reads_change(plan) or not set(lookup.by) <= set(group):
                    return None
                linear = self.arrangements.linear_demand(_old_part(child), lookup.by) is not None
                rows = self.lower_lookup if linear else self._input
                return partition(rows(child, lookup), group, aggregates)
            case Window(child, group, columns):
                if not reads_change(plan) or not set(lookup.by) <= set(group):
                    return None
                return window(self._input(child, lookup), group, columns)
            case _:
                return None

    def _lookup_linear(
        self, plan: Filter | Negate | Add | Map | Unnest, lookup: Lookup
    ) -> Plan | None:
        """Through a linear operator; None where a key is computed by it."""
        match plan:
            case Filter(child, predicate):
                return filter_(self.lower_lookup(child, lookup), predicate)
            case Negate(child):
                return negate(self.lower_lookup(child, lookup))
            case Add(left, right):
                return add(self.lower_lookup(left, lookup), self.lower_lookup(right, lookup))
            case Map(child, outputs):
                below = lookup.renamed({o.name: scalar.as_column(o.scalar) for o in outputs})
                if len(below.pairs) < len(lookup.pairs) and not reads_change(child):
                    return None
                return map_(self.lower_lookup(child, below), outputs)
            case Unnest(child, array, element, position, outer):
                below = lookup.only(columns_of(child))
                if len(below.pairs) < len(lookup.pairs) and not reads_change(child):
                    return None
                rows = self.lower_lookup(child, below)
                return unnest(rows, array, element, position, outer=outer)

    def _lookup_join(self, plan: Join, lookup: Lookup) -> Plan:
        """One side by the keys given, the other by the join keys of what came."""
        left, right = (lookup.only(columns_of(side)) for side in (plan.left, plan.right))
        if left.pairs or not right.pairs:
            first = self.compute(self.lower_lookup(plan.left, left))
            by_join = Lookup(first, _turned(plan.on))
            by_join = self._with_ranges(by_join, plan.residual, plan.right, first)
            second = self.lower_lookup(plan.right, by_join if plan.on or not right.pairs else right)
            return join(first, second, plan.on, plan.residual, plan.nulls)
        first = self.compute(self.lower_lookup(plan.right, right))
        by_join = self._with_ranges(Lookup(first, plan.on), plan.residual, plan.left, first)
        second = self.lower_lookup(plan.left, by_join)
        return join(second, first, plan.on, plan.residual, plan.nulls)

    def _input(self, plan: Plan, lookup: Lookup) -> Plan:
        """The input of a distinct or a partition: what is old of it comes from a state."""
        if isinstance(plan, Add):
            return add(self._input(plan.left, lookup), self._input(plan.right, lookup))
        if not reads_change(plan):
            return self._stored(plan, lookup)
        return self.lower_lookup(plan, lookup)

    def _once(self, plan: Plan) -> Plan:
        """A step of its own where the work is worth sharing; filters and maps are not."""
        cheap = Filter | Map | Negate | Add | Ref | Values | Empty
        return plan if all(isinstance(node, cheap) for node in walk(plan)) else self.compute(plan)

    def _fetch_ranged(
        self, plan: Plan, keys: Ref | None, ranges: tuple[KeyRange, ...]
    ) -> Plan | None:
        """The rows of a plan in a range of a column of the relation that it filters and maps.

        One that the relation is sorted by already is taken before others.
        """
        demands = (
            (each, demand)
            for each in ranges
            if each.column in columns_of(plan)
            and (demand := self.arrangements.linear_demand(plan, (each.column,))) is not None
        )
        best = min(demands, key=lambda each: not self.arrangements.is_sorted(each[1]), default=None)
        if best is None:
            return None
        range_, demand = best
        serving = self.arrangements.serve(demand, stored=self.stores)
        own = None if serving.whole else replace(range_, column=demand.by[0])
        rows = self._fetch(serving.name, serving.schema, None, Lookup(keys, ()), own)
        return self._over(plan, serving, rows)

    def _fetch_linear(self, plan: Plan, demand: Demand, lookup: Lookup) -> Plan:
        """Map and Filter again over the slice of the relation that serves the demand."""
        serving = self.arrangements.serve(demand, stored=self.stores)
        pairs = zip(demand.by, (theirs for _, theirs in lookup.pairs), strict=True)
        wanted = Lookup(lookup.keys, tuple(pairs))
        rows = self._fetch(serving.name, serving.schema, serving.lookup(demand.by), wanted)
        return self._over(plan, serving, rows)

    def _over(self, plan: Plan, serving: Serving, rows: Plan) -> Plan:
        """The maps and filters of a plan, over rows of the relation that serves it."""

        def onto(node: Plan) -> Plan:
            match node:
                case Source():
                    return rows
                case Filter(child, _) if serving.filtered:
                    return onto(child)
                case Filter(child, predicate):
                    return filter_(onto(child), predicate)
                case Map(child, outputs):
                    return map_(onto(child), outputs)
                case _:
                    raise AssertionError(node)

        return onto(plan)

    def _stored(self, plan: Plan, lookup: Lookup, group: Columns = ()) -> Plan:
        """The slice of a state that holds the value of `plan` itself, sorted by group or all."""
        if not self.stores and (rows := self._from_tables(plan, lookup)) is not None:
            return rows
        state = self.arrangements.store(plan, lookup.by or group or columns_of(plan))
        column = lookup_column(schema_of(plan), state.sort, lookup.by)
        return self._fetch(state.name, schema_of(plan), column, lookup)

    def _from_tables(self, plan: Plan, lookup: Lookup) -> Plan | None:
        """At least the rows wanted of what would be stored, computed from the tables.

        None where it must be stored: loops, and aggregates of doubles, whose last digits depend on
        the order of addition. What was published must be found again.
        """
        if any(c.type in FLOATS for c in schema_of(plan)) or top_k(plan) is not None:
            return None
        match plan:
            case Totals(child, group, measures):
                return totals(self._whole_groups(child, group, lookup), group, measures)
            case Partition(child, group, aggregates):
                return partition(self._whole_groups(child, group, lookup), group, aggregates)
            case Window(child, group, columns):
                return window(self._whole_groups(child, group, lookup), group, columns)
            case Map(child, outputs):
                below = lookup.renamed({o.name: scalar.as_column(o.scalar) for o in outputs})
                return map_(self.lower_lookup(child, below), outputs)
            case Unnest(child, array, element, position, outer):
                rows = self.lower_lookup(child, lookup.only(columns_of(child)))
                return unnest(rows, array, element, position, outer=outer)
            case Groups(child, group):
                return groups(self.lower_lookup(child, WHOLE), group)
            case Filter() | Join() | Add() | Negate() | Distinct() | Positive():
                return self.lower_lookup(plan, lookup)
            case _:
                return None

    def _whole_groups(self, child: Plan, group: Columns, lookup: Lookup) -> Plan:
        """The groups that a lookup is about, each whole; all groups where it is about values."""
        known = set(lookup.by) <= set(group)
        return self.lower_lookup(child, lookup if known else WHOLE)

    def _fetch(
        self,
        relation: str,
        schema: Schema,
        column: str | None,
        lookup: Lookup,
        range_: KeyRange | None = None,
    ) -> Plan:
        """A slice of a stored relation by one column, by ranges of one, or the whole of it."""
        keys = lookup.keys
        by = column if keys is not None else None
        wanted: tuple[KeySet, ...] = ()
        if keys is not None:
            theirs = dict(reversed(lookup.pairs))  # of two that one column agrees with, the first
            key = theirs.pop(by, "") if by else ""
            wanted = (KeySet(keys.name, key, tuple(theirs.items()) if by else (), range_),)
        fresh = Fetch(f"{self.prefix}s{len(self.steps)}", relation, schema, by, wanted)
        self.reads.setdefault(self.operator, {})[relation, fresh.reads_by] = None
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


def _asked_as(range_: KeyRange, named: Mapping[str, str]) -> KeyRange:
    """A range with its limits under the names that the relation that asks has for them."""

    def limit(each: Limit | None) -> Limit | None:
        return None if each is None else replace(each, column=named[each.column])

    return replace(range_, low=limit(range_.low), high=limit(range_.high))


def _turned(pairs: Pairs) -> Pairs:
    return tuple((b, a) for a, b in pairs)
