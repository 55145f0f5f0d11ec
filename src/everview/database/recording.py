"""Commits an epoch with the time that it took in its note."""

from __future__ import annotations

from typing import Any

from everview.database.cost.measurements import SAMPLES
from everview.database.introspect.epoch_notes import read_note, time_note
from everview.runtime.report import Clock
from everview.store.manifest import Manifest
from everview.store.store import Store


def record(store: Store, manifest: Manifest, clock: Clock) -> None:
    """Commit an epoch, its note with the time it took: all but writing the note itself."""
    assert manifest.parent is not None
    began = clock.total
    measured = read_note(store.read(manifest.parent), SAMPLES).get("samples", {})

    def note() -> dict[str, Any]:
        clock.add("commit", clock.total - began)
        return {"samples": measured, **manifest.note, **time_note(clock)}

    store.commit(manifest, note)
