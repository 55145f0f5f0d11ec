"""What new declarations make stale, and the order in which what is missing is built."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from everview.database.catalog.catalog import Catalog
from everview.database.cost.measurements import Sample
from everview.database.error_context import in_views, sound
from everview.database.violations import violation
from everview.lang.sql.recompute.partition_query import RecomputedBlock
from everview.plan.build import add, negate
from everview.plan.nodes import Plan, Source
from everview.plan.traverse import children, schema_of, sources, walk, with_children
from everview.program.steps import Program
from everview.runtime.protocol import Engine, Snapshot
from everview.runtime.retry import CalculationError
from everview.store.manifest import Manifest, Opaque, Segment


@dataclass(slots=True)
class Built:
    """What an epoch writes: values that replace, and changes that add; and what building took."""

    bases: dict[str, Segment] = field(default_factory=dict)
    changes: dict[str, Segment] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    spent: dict[str, Sample] = field(default_factory=dict)

    def on(
        self,
        manifest: Manifest,
        created: str = "",
        catalog: Opaque | None = None,
        note: Opaque | None = None,
    ) -> Manifest:
        """The epoch after `manifest` with all of it."""
        return manifest.advance(
            epoch=manifest.epoch + 1,
            created=created,
            bases=self.bases,
            changes=self.changes,
            dropped=self.dropped,
            catalog=catalog,
            note=note,
        )


Around = Callable[[str, str], AbstractContextManager[Any]]
"""What happens around the building of a relation, which is, say, the 3rd of 75."""


def _quietly(_name: str, _which: str) -> AbstractContextManager[Any]:
    return nullcontext()


def build(
    old: Catalog,
    new: Catalog,
    engine: Engine,
    before: Snapshot,
    around: Around = _quietly,
    faulty: Collection[str] = (),
    unreadable: Collection[str] = (),
) -> Built:
    """Everything that `new` declares and the store does not hold, or holds as `old` meant it.

    A view that has the same columns as before takes what differs as a change, so that those who
    follow it are told; nothing that stays the same is written. What is `faulty` is built again,
    and a view that is `unreadable` takes the place of what there was.
    """
    manifest = before.manifest
    gone = stale(old, new, faulty)
    reshaped = {n for n in gone if n in new.views and old.schema(n) != new.schema(n)}
    reshaped |= new.views.keys() & {*unreadable}
    present = set(manifest.relations) - gone
    needed = {*before.stored, *new.states_beyond_reach()}
    made = Built(dropped=frozenset((set(manifest.relations) - needed) | reshaped))
    made.bases |= {
        name: Segment("", manifest.epoch + 1, "base", ())
        for name in set(new.tables) - set(manifest.relations)
    }
    told = new.views.keys() & (gone - reshaped)
    wanted = _to_build(new, present)
    views = [name for name, _ in wanted if name in new.views]

    @contextmanager
    def blaming(name: str, which: str) -> Iterator[None]:
        with around(name, which):
            try:
                yield
            except CalculationError as problem:
                asked = (name,) if name in views else views
                raise in_views(problem, {n: new.views[n].query for n in asked}) from problem

    _build(made, wanted, told, engine, before, blaming)
    return made


def rebuild(
    catalog: Catalog,
    moved: Collection[str],
    changes: Mapping[str, Segment],
    engine: Engine,
    before: Snapshot,
) -> Built:
    """The views and states that are `moved` by changes of tables, from their plans.

    States are written anew. A view takes what differs as a change, so its feed is the same as if
    it had been maintained.
    """
    made = Built(changes={name: segment for name, segment in changes.items() if segment.rows})
    _build(made, _anew(catalog, moved), catalog.views.keys() & {*moved}, engine, before)
    return made


def rows_read(
    catalog: Catalog, moved: Collection[str], snapshot: Snapshot, changes: Mapping[str, int]
) -> dict[str, int]:
    """How many rows building each view and state that is `moved` reads, after so large changes."""
    return {
        name: sum(snapshot.relation(each).rows + changes.get(each, 0) for each in _under(what))
        for name, what in _anew(catalog, moved)
    }


def _anew(catalog: Catalog, moved: Collection[str]) -> list[tuple[str, Plan | RecomputedBlock]]:
    held = {*catalog.parts, *catalog.views, *catalog.maintenance.states.stored}
    return _to_build(catalog, held - {*moved})


def _under(what: Plan | RecomputedBlock) -> tuple[str, ...]:
    return (
        what.reads
        if isinstance(what, RecomputedBlock)
        else tuple(each.name for each in sources(what))
    )


def _build(
    made: Built,
    wanted: Sequence[tuple[str, Plan | RecomputedBlock]],
    told: Collection[str],
    engine: Engine,
    before: Snapshot,
    around: Around = _quietly,
) -> None:
    """Build what is wanted; views that are `told` take what differs from what they hold."""
    for number, (name, what) in enumerate(wanted, start=1):
        snapshot = Snapshot(before.store, made.on(before.manifest), before.stored)
        epoch = snapshot.manifest.epoch
        began = perf_counter()
        with around(name, f"{number} of {len(wanted)}"), sound(snapshot):
            if isinstance(what, RecomputedBlock):
                made.changes[name] = _recomputed(what, engine, snapshot)
            elif name in told:
                differs = add(what, negate(Source(name, schema_of(what))))
                segment = engine.build(name, differs, snapshot, epoch)
                made.changes[name] = replace(segment, kind="change")
            else:
                made.bases[name] = engine.build(name, what, snapshot, epoch)
        spent = (perf_counter() - began) * 1000
        made.spent[name] = Sample(sum(snapshot.relation(n).rows for n in _under(what)), spent)


def _recomputed(part: RecomputedBlock, engine: Engine, snapshot: Snapshot) -> Segment:
    rows = engine.recompute(part.name, part.as_query, {}, snapshot, {})
    return written(part.name, rows, engine, snapshot, snapshot.manifest.epoch)


def written(name: str, rows: object, engine: Engine, snapshot: Snapshot, epoch: int) -> Segment:
    """Weighted rows as a change of a relation that nothing follows yet."""
    alone = Program((name,), (), frozenset((name,)))
    return engine.run(alone, {name: [rows]}, snapshot, epoch, violation).segments[name]


def stale(old: Catalog, new: Catalog, faulty: Collection[str] = ()) -> frozenset[str]:
    """The relations of both whose value is another one: by their own query, or what they read.

    What is `faulty` has another value than it should.
    """
    states = new.maintenance.states.stored
    found = {name for name in faulty if name in new.views or name in states}
    for name, view in new.views.items():
        found |= {part.name for part in view.parts if found & {*part.reads}}
        compiled = new.compiled(name)
        same = name in old.views and old.compiled(name) == compiled
        if name in old.views and not (same and _unmoved(compiled.plan, found)):
            found.add(name)
    return frozenset(found | {s.name for s in states.values() if not _unmoved(s.plan, found)})


def _unmoved(plan: Plan, found: Collection[str]) -> bool:
    return not any(source.name in found for source in sources(plan))


def _to_build(
    catalog: Catalog, present: Collection[str]
) -> list[tuple[str, Plan | RecomputedBlock]]:
    """The relations that are not `present`, each over relations built before it.

    What a state holds is read from the state and not computed again: cheaper, and for sums of
    doubles, whose last digits depend on the order of addition, the only way to have one value.
    """
    states = {s.name: s.plan for s in catalog.maintenance.states.stored.values()}
    views = {name: catalog.compiled(name).plan for name in catalog.views}
    plans = states | views
    smallest_first = sorted(states, key=lambda name: len(tuple(walk(states[name]))))
    parts = catalog.parts
    waiting = [name for name in (*parts, *smallest_first, *views) if name not in present]
    ready = {*present, *catalog.tables}
    found: list[tuple[str, Plan | RecomputedBlock]] = []

    def reads(name: str) -> tuple[str, ...]:
        part = parts.get(name)
        return part.reads if part else tuple(s.name for s in sources(plans[name]))

    while waiting:
        name = next(n for n in waiting if all(read in ready for read in reads(n)))
        waiting.remove(name)
        known = {states[other]: other for other in states if other in ready}
        found.append((name, parts.get(name) or reading(plans[name], known)))
        ready.add(name)
    return found


def reading(plan: Plan, known: Mapping[Plan, str]) -> Plan:
    """The plan with every subplan that a relation holds replaced by that relation."""
    if plan in known:
        return Source(known[plan], schema_of(plan))
    return with_children(plan, tuple(reading(part, known) for part in children(plan)))
