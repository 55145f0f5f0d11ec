"""What transactions cost and what relations hold, as kept in manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from everview.database.backfill import Built
from everview.database.catalog.catalog import Catalog
from everview.database.cost.choose import Choice
from everview.database.cost.measurements import Samples
from everview.database.introspect.epoch_notes import note_of
from everview.database.introspect.fetch_costs import Known, Measured
from everview.database.introspect.iterations import rows_at
from everview.differentiate.lifting import is_lifted
from everview.plan.nodes import Fixpoint
from everview.plan.traverse import walk
from everview.program.dependencies import Share
from everview.runtime.report import Clock, RunReport
from everview.store.manifest import Manifest
from everview.store.store import Store

REMEMBERED = 20
"""How many epochs back the rows of a fetch are looked for."""


@dataclass(frozen=True, slots=True)
class RelationStatus:
    """One stored relation: what it is and how large.

    `rows` are those it has when all that is stored of it is added up; None if nobody knows.
    `refresh` says of a view whether it is kept fresh incrementally, or which of it is recomputed.
    """

    name: str
    kind: str
    rows: int | None
    bytes: int
    segments: int
    reads: tuple[str, ...]
    refresh: str = ""


def note(outcome: RunReport, parts: Mapping[str, Share]) -> dict[str, Any]:
    """A transaction's statistics, for its manifest; `parts` are the shares of its views."""
    written = {name: segment.rows for name, segment in outcome.segments.items()}
    return {
        "kind": "transaction",
        "gear": outcome.gear,
        "jobs": outcome.jobs,
        "fetched": outcome.fetched,
        "ways": outcome.ways,
        "published": outcome.published,
        "iterations": outcome.iterations,
        "written": written,
        "views": {view: _view(share, outcome, written) for view, share in parts.items()},
    }


def _view(share: Share, outcome: RunReport, written: Mapping[str, int]) -> dict[str, Any]:
    return {
        "in": sum(written[name] for name in share.inputs),
        "fetches": sorted(mark for mark in share.fetches if mark in outcome.ways),
    }


def chosen(choice: Choice, for_views: float) -> dict[str, Any]:
    """The way that was taken, what either was expected to take, and what it took."""
    expected = {"incremental": choice.incremental, "recompute": choice.recompute}
    weighed = {way: round(spent, 2) for way, spent in expected.items() if spent is not None}
    return {"way": choice.way, "expected": weighed, "for_views": round(for_views, 2)}


def times(clock: Clock) -> dict[str, Any]:
    """What a clock shows, for a manifest."""
    phases = {name: round(spent, 2) for name, spent in clock.phases.items()}
    return {"milliseconds": round(clock.total, 1), "phases": phases}


def now() -> str:
    """When an epoch is made, for its manifest."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def built(made: Built, before: Manifest, catalog: Catalog) -> dict[str, Any]:
    """A declaration's statistics, for its manifest."""
    written = made.bases | made.changes
    samples = Samples.of(note_of(before)).after_building(made.spent)
    return {
        "kind": "declaration",
        "built": {name: segment.rows for name, segment in written.items()},
        "samples": samples.kept(catalog.stored()),
    }


def known(store: Store, catalog: Catalog) -> Known:
    """What each fetch brought in the newest transaction that made it, and how large things are."""
    measured: dict[str, Measured] = {}
    iterations: dict[str, int] = {}
    for epoch in reversed(store.epochs()[-REMEMBERED:]):
        note = note_of(store.read(epoch))
        written, fetched = note.get("written", {}), note.get("fetched", {})
        changed = sum(rows for name, rows in written.items() if name in catalog.tables)
        for mark, way in (dict.fromkeys(fetched, "") | note.get("ways", {})).items():
            measured.setdefault(mark, Measured(fetched.get(mark), changed, way))
        iterations = note.get("iterations", {}) | iterations
    sizes = {name: relation.rows for name, relation in store.latest().relations.items()}
    return Known(measured, sizes, iterations, lambda state: rows_at(store, state))


def status(catalog: Catalog, manifest: Manifest) -> list[RelationStatus]:
    """Tables, then views, then what is recomputed of them, then states."""
    kinds = dict.fromkeys(catalog.tables, "table") | dict.fromkeys(catalog.views, "view")
    kinds |= dict.fromkeys(catalog.parts, "part")
    kinds |= dict.fromkeys(catalog.maintenance.states.stored, "state")
    reads = {name: catalog.reads(name) for name in catalog.views}
    reads |= {name: part.reads for name, part in catalog.parts.items()}
    refreshes = {name: refresh(catalog, name) for name in catalog.views}
    totals = {name for name, each in catalog.stored().items() if each.rings}
    found = []
    for name, kind in kinds.items():
        relation = manifest.relations.get(name)
        segments = relation.segments if relation else ()
        size = sum(file.bytes for segment in segments for file in segment.files)
        rows = relation.weight if relation else 0
        if name in totals:
            rows = None
        read, how = reads.get(name, ()), refreshes.get(name, "")
        found.append(RelationStatus(name, kind, rows, size, len(segments), read, how))
    return found


def refresh(catalog: Catalog, view: str) -> str:
    """How a view is kept fresh: incrementally, or what of it is recomputed and why."""
    if (problem := catalog.beyond_reach.get(view)) is not None:
        return f"not by this engine: {problem.problem}"
    loops = (node for node in walk(catalog.compiled(view).plan) if isinstance(node, Fixpoint))
    anew = (f"the loop of {node.result} is run anew" for node in loops if not is_lifted(node))
    reasons = dict.fromkeys([*(part.reason for part in catalog.views[view].parts), *anew])
    return f"recompute: {'; '.join(reasons)}" if reasons else "incremental"
