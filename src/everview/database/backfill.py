"""Backfill: which views and states to build from their queries, in which order, as which change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from time import perf_counter
from typing import Any

from everview.database.catalog.catalog import Catalog
from everview.database.cost.measurements import Measurement
from everview.database.error_context import name_views, report_damage
from everview.database.queries import recompute
from everview.database.violations import violation
from everview.differentiate.lifting import is_lifted, trace_of, unlifted
from everview.differentiate.recursion import loop_sum
from everview.lang.sql.recompute.partition_query import RecomputedBlock
from everview.plan.build import add, distinct, negate
from everview.plan.nodes import Distinct, Fixpoint, Plan, Source
from everview.plan.traverse import children, schema_of, sources, walk, with_children
from everview.program.steps import Program
from everview.runtime.protocol import Engine, Snapshot
from everview.runtime.retry import CalculationError
from everview.store.manifest import Manifest, Opaque, Segment


@dataclass(slots=True)
class EpochWrites:
    """What an epoch writes: `bases` that replace a relation, `changes` that add to it."""

    bases: dict[str, Segment] = field(default_factory=dict)
    changes: dict[str, Segment] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    build_times: dict[str, Measurement] = field(default_factory=dict)

    def advance(
        self,
        manifest: Manifest,
        created: str = "",
        catalog: Opaque | None = None,
        note: Opaque | None = None,
    ) -> Manifest:
        """The manifest of the epoch after `manifest`."""
        return manifest.advance(
            epoch=manifest.epoch + 1,
            created=created,
            bases=self.bases,
            changes=self.changes,
            dropped=self.dropped,
            catalog=catalog,
            note=note,
        )


AroundBuild = Callable[[str, str], AbstractContextManager[Any]]
"""A context around the build of a relation: its name, and its position, such as "3 of 75"."""


def _nothing_around(_name: str, _position: str) -> AbstractContextManager[Any]:
    return nullcontext()


def backfill(
    old: Catalog,
    new: Catalog,
    engine: Engine,
    before: Snapshot,
    around: AroundBuild = _nothing_around,
    faulty: Collection[str] = (),
    unreadable: Collection[str] = (),
    same: Collection[str] = (),
) -> EpochWrites:
    """Everything that `new` declares and the store does not hold, or holds as `old` meant it.

    A view that has the same columns as before takes the difference as a change, so that its change
    feed goes on; nothing that stays the same is written. What is `faulty` is built again, and what
    is `unreadable` is replaced, since nothing can be compared with it. The views in `same` have the
    rows that they need, though their text or what they read is called otherwise.
    """
    manifest = before.manifest
    stale = stale_relations(old, new, faulty, same)
    replaced = {n for n in stale if n in new.views and old.schema(n) != new.schema(n)}
    replaced |= new.views.keys() & {*unreadable}
    present = set(manifest.relations) - stale
    needed = {*before.stored, *new.states_beyond_reach()}
    writes = EpochWrites(dropped=frozenset((set(manifest.relations) - needed) | replaced))
    writes.bases |= {
        name: Segment("", manifest.epoch + 1, "base", ())
        for name in set(new.tables) - set(manifest.relations)
    }
    differing = new.views.keys() & (stale - replaced)
    missing = _build_order(new, present)
    views = [name for name, _ in missing if name in new.views]

    @contextmanager
    def naming_views(name: str, position: str) -> Iterator[None]:
        with around(name, position):
            try:
                yield
            except CalculationError as problem:
                suspects = (name,) if name in views else views
                queries = {n: new.views[n].query for n in suspects}
                raise name_views(problem, queries) from problem

    _build(writes, missing, differing, engine, before, naming_views)
    return writes


def rebuild(
    catalog: Catalog,
    moved: Collection[str],
    changes: Mapping[str, Segment],
    engine: Engine,
    before: Snapshot,
) -> EpochWrites:
    """The views and states that `changes` of tables move, recomputed from their plans.

    A state is replaced. A view takes the difference as a change, so its change feed is the same as
    if it had been maintained.
    """
    writes = EpochWrites(changes={name: each for name, each in changes.items() if each.rows})
    order = _order_of(catalog, moved)
    _build(writes, order, catalog.views.keys() & {*moved}, engine, before)
    return writes


def rows_read(
    catalog: Catalog, moved: Collection[str], snapshot: Snapshot, changes: Mapping[str, int]
) -> dict[str, int]:
    """How many rows recomputing each view and state that is `moved` reads, `changes` included."""
    return {
        name: sum(snapshot.relation(each).rows + changes.get(each, 0) for each in _reads(query))
        for name, query in _order_of(catalog, moved)
    }


def _order_of(catalog: Catalog, moved: Collection[str]) -> list[tuple[str, Plan | RecomputedBlock]]:
    held = {*catalog.parts, *catalog.views, *catalog.maintenance.states.stored}
    return _build_order(catalog, held - {*moved})


def _reads(query: Plan | RecomputedBlock) -> tuple[str, ...]:
    return (
        query.reads
        if isinstance(query, RecomputedBlock)
        else tuple(each.name for each in sources(query))
    )


def _build(
    writes: EpochWrites,
    order: Sequence[tuple[str, Plan | RecomputedBlock]],
    differing: Collection[str],
    engine: Engine,
    before: Snapshot,
    around: AroundBuild = _nothing_around,
) -> None:
    """Build relations in order; those that are `differing` take the difference as a change."""
    for number, (name, what) in enumerate(order, start=1):
        snapshot = Snapshot(before.store, writes.advance(before.manifest), before.stored)
        epoch = snapshot.manifest.epoch
        began = perf_counter()
        with around(name, f"{number} of {len(order)}"), report_damage(snapshot):
            if isinstance(what, RecomputedBlock):
                writes.changes[name] = _recomputed(what, engine, snapshot)
            elif name in differing:
                differs = add(what, negate(Source(name, schema_of(what))))
                segment = engine.build(name, differs, snapshot, epoch)
                writes.changes[name] = replace(segment, kind="change")
            else:
                writes.bases[name] = engine.build(name, what, snapshot, epoch)
        rows = sum(snapshot.relation(n).rows for n in _reads(what))
        writes.build_times[name] = Measurement(rows, (perf_counter() - began) * 1000)


def _recomputed(part: RecomputedBlock, engine: Engine, snapshot: Snapshot) -> Segment:
    rows = recompute(engine, part.name, part.as_query, {}, snapshot, {})
    return write_change(part.name, rows, engine, snapshot, snapshot.manifest.epoch)


def write_change(
    name: str, rows: object, engine: Engine, snapshot: Snapshot, epoch: int
) -> Segment:
    """Write weighted rows as a change of a relation that no view reads yet."""
    alone = Program((name,), (), frozenset((name,)))
    return engine.run(alone, {name: [rows]}, snapshot, epoch, violation).segments[name]


def stale_relations(
    old: Catalog, new: Catalog, faulty: Collection[str] = (), unchanged: Collection[str] = ()
) -> frozenset[str]:
    """The views and states of both catalogs whose value in the store is not the one of `new`.

    Their own query is another one, they are `faulty`, or they read a relation that is stale; a view
    that is `unchanged` has the query that it had.
    """
    states = new.maintenance.states.stored
    stale = {name for name in faulty if name in new.views or name in states}
    for name, view in new.views.items():
        stale |= {part.name for part in view.parts if stale & {*part.reads}}
        compiled = new.compiled(name)
        former = old.compiled(name).meaning if name in old.views else None
        same = name in unchanged or former == compiled.meaning
        if name in old.views and not (same and _reads_none(compiled.plan, stale)):
            stale.add(name)
    return frozenset(stale | {s.name for s in states.values() if not _reads_none(s.plan, stale)})


def _reads_none(plan: Plan, relations: Collection[str]) -> bool:
    return not any(source.name in relations for source in sources(plan))


def _build_order(
    catalog: Catalog, present: Collection[str]
) -> list[tuple[str, Plan | RecomputedBlock]]:
    """The relations that are not `present`, each after those that it reads.

    A subplan that a state holds is read from the state: cheaper than computing it again, and for
    sums of doubles, whose last digits depend on the order of addition, the only way to one value.
    """
    states = {s.name: s.plan for s in catalog.maintenance.states.stored.values()}
    views = {name: catalog.compiled(name).plan for name in catalog.views}
    plans = states | views
    smallest_first = sorted(states, key=lambda name: len(tuple(walk(states[name]))))
    parts = catalog.parts
    waiting = [name for name in (*parts, *smallest_first, *views) if name not in present]
    ready = {*present, *catalog.tables}
    order: list[tuple[str, Plan | RecomputedBlock]] = []

    def reads(name: str) -> tuple[str, ...]:
        return _reads(parts.get(name) or plans[name])

    while waiting:
        name = next(n for n in waiting if all(read in ready for read in reads(n)))
        waiting.remove(name)
        built = {states[other]: other for other in states if other in ready}
        order.append((name, parts.get(name) or _reading_states(plans[name], built)))
        ready.add(name)
    return order


def _reading_states(plan: Plan, states: Mapping[Plan, str]) -> Plan:
    """The plan with every subplan that a state holds replaced by that state."""

    @cache  # a plan may occur in another many times
    def replaced(node: Plan) -> Plan:
        if node in states:
            return Source(states[node], schema_of(node))
        if isinstance(node, Fixpoint) and not node.traced and is_lifted(node):
            reached = _reached_in_states(node, states)
            if reached is not None:
                return reached
        return with_children(node, tuple(map(replaced, children(node))))

    return replaced(plan)


def _reached_in_states(node: Fixpoint, states: Mapping[Plan, str]) -> Plan | None:
    """What a loop reaches, from a state that holds its iterations, so that it is not run again."""
    trace, total = trace_of(node, node.result), loop_sum(node)
    if trace in states:
        return unlifted(Source(states[trace], schema_of(trace)))
    if total in states and isinstance(node.body(node.result), Distinct):
        return distinct(unlifted(Source(states[total], schema_of(total))))
    return None
