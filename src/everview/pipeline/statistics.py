"""What transactions cost and what relations hold, as kept in manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from everview.engine.protocol import Outcome
from everview.pipeline.catalog import Catalog
from everview.program.operators import Known, Measured
from everview.store.manifest import Manifest, Segment
from everview.store.store import Store

REMEMBERED = 20
"""How many epochs back the rows of a fetch are looked for."""


@dataclass(frozen=True, slots=True)
class RelationStatus:
    """One stored relation: what it is and how large.

    `refresh` says of a view whether it is kept fresh incrementally, or which of it is recomputed.
    """

    name: str
    kind: str
    rows: int
    bytes: int
    segments: int
    reads: tuple[str, ...]
    refresh: str = ""


def note(outcome: Outcome, seconds: float) -> dict[str, Any]:
    """A transaction's statistics, for its manifest."""
    return {
        "kind": "transaction",
        "gear": outcome.gear,
        "milliseconds": round(seconds * 1000, 1),
        "fetched": outcome.fetched,
        "published": outcome.published,
        "written": {name: segment.rows for name, segment in outcome.segments.items()},
    }


def built(bases: Mapping[str, Segment]) -> dict[str, Any]:
    """A declaration's statistics, for its manifest."""
    return {"kind": "declaration", "built": {name: s.rows for name, s in bases.items()}}


def known(store: Store, catalog: Catalog) -> Known:
    """What each fetch brought in the newest transaction that made it, and how large things are."""
    measured: dict[str, Measured] = {}
    for epoch in reversed(store.epochs()[-REMEMBERED:]):
        note: Any = store.read(epoch).note
        written = note.get("written", {})
        changed = sum(rows for name, rows in written.items() if name in catalog.tables)
        for mark, rows in note.get("fetched", {}).items():
            measured.setdefault(mark, Measured(rows, changed))
    sizes = {name: relation.rows for name, relation in store.latest().relations.items()}
    return Known(measured, sizes)


def status(catalog: Catalog, manifest: Manifest) -> list[RelationStatus]:
    """Tables, then views, then what is recomputed of them, then states."""
    kinds = dict.fromkeys(catalog.tables, "table") | dict.fromkeys(catalog.views, "view")
    kinds |= dict.fromkeys(catalog.parts, "part")
    kinds |= dict.fromkeys(catalog.maintenance.states.stored, "state")
    reads = {name: catalog.reads(name) for name in catalog.views}
    reads |= {name: part.reads for name, part in catalog.parts.items()}
    refreshes = {name: refresh(catalog, name) for name in catalog.views}
    found = []
    for name, kind in kinds.items():
        relation = manifest.relations.get(name)
        segments = relation.segments if relation else ()
        size = sum(file.bytes for segment in segments for file in segment.files)
        rows = relation.rows if relation else 0
        read, how = reads.get(name, ()), refreshes.get(name, "")
        found.append(RelationStatus(name, kind, rows, size, len(segments), read, how))
    return found


def refresh(catalog: Catalog, view: str) -> str:
    """How a view is kept fresh: incrementally, or what of it is recomputed and why."""
    reasons = dict.fromkeys(part.reason for part in catalog.views[view].parts)
    return f"recompute: {'; '.join(reasons)}" if reasons else "incremental"
