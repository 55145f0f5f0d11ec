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
    """One stored relation: what it is and how large."""

    name: str
    kind: str
    rows: int
    bytes: int
    segments: int
    reads: tuple[str, ...]


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
    """Tables, then views, then states."""
    kinds = dict.fromkeys(catalog.tables, "table") | dict.fromkeys(catalog.views, "view")
    reads = {name: catalog.reads(name) for name in catalog.views}
    states = catalog.maintenance.states.stored
    kinds |= dict.fromkeys(states, "state")
    found = []
    for name, kind in kinds.items():
        relation = manifest.relations.get(name)
        segments = relation.segments if relation else ()
        size = sum(file.bytes for segment in segments for file in segment.files)
        rows = relation.rows if relation else 0
        found.append(RelationStatus(name, kind, rows, size, len(segments), reads.get(name, ())))
    return found
