"""What a store holds: tables, views and states with their sizes, and how each view is refreshed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from everview.database.catalog.catalog import Catalog
from everview.database.introspect.advice import EPOCHS, advice
from everview.database.introspect.deltas import policy_line
from everview.database.introspect.history import Entry, history
from everview.database.introspect.operators import states_for
from everview.differentiate.lifting import is_lifted
from everview.plan.nodes import Fixpoint
from everview.plan.traverse import walk
from everview.program.maps import Rows
from everview.program.policy import Decision
from everview.runtime.protocol import Held, Local
from everview.store.manifest import Manifest
from everview.store.store import Store


@dataclass(frozen=True, slots=True)
class RelationStatus:
    """One stored relation: what it is and how large.

    `kind` is `"table"`, `"view"`, `"part"` (a block of a view that is recomputed), `"state"` or
    `"constraint"`, which stores nothing and whose text is in `refresh`.
    `rows` does not count deleted rows, and is None where the number is not known. `reads` are the
    tables and views that a view reads, and `refresh` says whether it is maintained incrementally,
    or what of it is recomputed. `held` is how many bytes of it are in memory now. `policy` says
    how a view is maintained and why so, and `states` are the relations stored for it. `advice`
    names a policy under which it would read clearly less than its last transactions did.
    """

    name: str
    kind: str
    rows: int | None
    bytes: int
    segments: int
    reads: tuple[str, ...]
    refresh: str = ""
    held: int = 0
    policy: str = ""
    states: tuple[str, ...] = ()
    advice: str = ""


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """How many bytes may be held in memory between transactions, and how many are held now.

    `given` is whether the store was opened with a budget; if not, it is a share of the machine.
    """

    budget: int
    held: int
    given: bool


def memory_status(local: Local, store: Store) -> MemoryStatus:
    """The budget, and what is held of relations and of small changes that were just written."""
    held = local.held.held_bytes + store.recent_bytes
    return MemoryStatus(local.budget.held, held, local.budget.given)


def status(catalog: Catalog, manifest: Manifest, held: Held, store: Store) -> list[RelationStatus]:
    """Tables, then views, then what is recomputed of them, then states, then constraints."""
    measured = history(store, catalog, EPOCHS)
    counts = tuple((name, each.rows) for name, each in manifest.relations.items())
    kinds = dict.fromkeys(catalog.tables, "table") | dict.fromkeys(catalog.views, "view")
    kinds |= dict.fromkeys(catalog.parts, "part")
    kinds |= dict.fromkeys(catalog.maintenance.states.stored, "state")
    reads = {name: catalog.reads(name) for name in catalog.views}
    reads |= {name: part.reads for name, part in catalog.parts.items()}
    refreshes = {name: refresh(catalog, name) for name in catalog.views}
    totals = {name for name, each in catalog.stored().items() if each.rings}
    relations = []
    for name, kind in kinds.items():
        relation = manifest.relations.get(name)
        segments = relation.segments if relation else ()
        size = sum(file.bytes for segment in segments for file in segment.files)
        rows = relation.weight if relation else 0
        if name in totals:
            rows = None
        read, how = reads.get(name, ()), refreshes.get(name, "")
        relations.append(
            RelationStatus(
                *(name, kind, rows, size, len(segments), read, how, held.bytes_of(name)),
                *_kept(catalog, name, measured, counts),
            )
        )
    enforced = (each for each in catalog.constraints.values() if each.enforced)
    return relations + [
        RelationStatus(each.name, "constraint", None, 0, 0, catalog.reads(each.name), each.text)
        for each in enforced
    ]


def _kept(
    catalog: Catalog, name: str, measured: Sequence[Entry], counts: Rows
) -> tuple[str, tuple[str, ...], str]:
    """The policy of a view, the states that it and they are maintained by, and the advice."""
    if name not in catalog.views or name in catalog.beyond_reach:
        return "", (), ""
    decision, view = catalog.views[name].decision or Decision(), catalog.compiled(name)
    found = states_for(view, catalog.maintenance.states)
    return policy_line(decision), tuple(sorted(found)), advice(view, measured, counts)


def refresh(catalog: Catalog, view: str) -> str:
    """How a view is kept fresh: incrementally, or what of it is recomputed and why."""
    if (problem := catalog.beyond_reach.get(view)) is not None:
        return f"not by this engine: {problem.problem}"
    loops = (node for node in walk(catalog.compiled(view).plan) if isinstance(node, Fixpoint))
    rerun = (
        f"the loop of {node.result} is run again from scratch"
        for node in loops
        if not is_lifted(node)
    )
    reasons = dict.fromkeys([*(part.reason for part in catalog.views[view].parts), *rerun])
    return f"recompute: {'; '.join(reasons)}" if reasons else "incremental"
