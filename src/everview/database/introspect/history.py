"""The history of a store: what each epoch cost, from the notes in its manifests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from everview.database.catalog.catalog import Catalog
from everview.database.introspect.epoch_notes import read_note
from everview.database.introspect.fetch_costs import WAYS
from everview.database.introspect.operators import states_for
from everview.expr.types import Column, Schema
from everview.runtime.arrow_types import arrow_schema
from everview.store.manifest import Manifest
from everview.store.store import Store

MAX_EPOCHS = 1000
"""How many of the newest epochs the table `everview.history` holds."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What an epoch cost as a whole, where `view` is None, or what it did to one view.

    One program serves all views of a transaction, so jobs and milliseconds in the entry of a view
    are those of the transaction; a fetch that several views share counts for each of them. A value
    that is not known is None. `load_ms` is the time to bring relations into memory, which later
    transactions save. `way` says whether views were maintained or rebuilt, `views_ms` how long
    that took for all views and states, and the two `expected` times what the choice was based on,
    where there was one.
    """

    epoch: int
    created: datetime | None
    kind: str
    view: str | None
    gear: str | None
    way: str | None
    rows_in: int | None
    rows_out: int | None
    rows_read: int | None
    jobs: int | None
    compile_ms: float | None
    load_ms: float | None
    fetch_ms: float | None
    compute_ms: float | None
    write_ms: float | None
    commit_ms: float | None
    total_ms: float | None
    views_ms: float | None
    expected_incremental_ms: float | None
    expected_recompute_ms: float | None
    state_bytes: int
    fetches: str


_TYPES = {
    **dict.fromkeys(("kind", "view", "gear", "way", "fetches"), "string"),
    **dict.fromkeys(("epoch", "rows_in", "rows_out", "rows_read", "jobs", "state_bytes"), "bigint"),
    "created": "timestamp",
}
COLUMNS: Schema = tuple(Column(name, _TYPES.get(name, "double")) for name in Entry.__slots__)
"""The columns of the table `everview.history`."""


def history(store: Store, catalog: Catalog, newest: int = MAX_EPOCHS) -> list[Entry]:
    """The entries of the newest epochs, oldest first: each epoch, then the views it changed."""
    states = catalog.maintenance.states
    needed = {name: states_for(catalog.compiled(name), states) for name in catalog.views}
    epochs = store.epochs()[-newest:]
    return [
        entry for epoch in epochs for entry in _entries(store.read(epoch), needed, states.stored)
    ]


def history_rows(entries: Iterable[Entry]) -> pa.Table:
    """The entries as weighted rows of the table `everview.history`."""
    schema = arrow_schema(COLUMNS)
    rows = [(*astuple(entry), 1) for entry in entries]
    return pa.table([list(c) for c in zip(*rows, strict=True)] or [[] for _ in schema], schema)


def _entries(
    manifest: Manifest, needed: Mapping[str, Iterable[str]], states: Iterable[str]
) -> list[Entry]:
    note = read_note(manifest)
    kind = note.get("kind") or ("compaction" if "compacted" in note else None)
    if kind is None:
        return []
    published = note.get("published", note.get("built", {}))
    views = note.get("views", {name: {} for name in published if name in needed})
    tables = [name for name in note.get("written", ()) if name in _tables(manifest)]
    whole = _entry(
        manifest,
        kind,
        None,
        {"in": sum(note["written"][name] for name in tables) if tables else None},
        sum(published.get(name, 0) for name in views) if published else None,
        states,
    )
    return [
        whole,
        *(
            _entry(manifest, kind, view, each, published.get(view), needed.get(view, ()))
            for view, each in views.items()
        ),
    ]


def _tables(manifest: Manifest) -> set[str]:
    raw: Any = manifest.catalog
    return {each["name"] for each in raw.get("tables", ())}


def _entry(
    manifest: Manifest,
    kind: str,
    view: str | None,
    share: Mapping[str, Any],
    out: int | None,
    states: Iterable[str],
) -> Entry:
    note = read_note(manifest)
    ways, fetched = note.get("ways", {}), note.get("fetched", {})
    marks = [mark for mark in share.get("fetches", ways) if mark in ways]
    unknown = set(marks) - set(fetched)
    spent, expected = note.get("phases", {}), note.get("expected", {})
    return Entry(
        epoch=manifest.epoch,
        created=_created(manifest.created),
        kind=kind,
        view=view,
        gear=note.get("gear"),
        way=note.get("way"),
        rows_in=share.get("in"),
        rows_out=out,
        rows_read=sum(fetched[m] for m in marks) if "ways" in note and not unknown else None,
        jobs=note.get("jobs"),
        compile_ms=spent.get("compile"),
        load_ms=spent.get("load"),
        fetch_ms=spent.get("fetch"),
        compute_ms=spent.get("compute"),
        write_ms=spent.get("write"),
        commit_ms=spent.get("commit"),
        total_ms=note.get("milliseconds"),
        views_ms=note.get("for_views"),
        expected_incremental_ms=expected.get("incremental"),
        expected_recompute_ms=expected.get("recompute"),
        state_bytes=sum(_bytes(manifest, name) for name in states),
        fetches="; ".join(
            f"{mark}: {_fetch_text(fetched.get(mark), ways[mark])}" for mark in marks
        ),
    )


def _created(text: str) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    return None


def _fetch_text(rows: int | None, way: str) -> str:
    how = WAYS.get(way, way)
    return how if rows is None else f"{rows} rows {how}"


def _bytes(manifest: Manifest, name: str) -> int:
    relation = manifest.relations.get(name)
    return sum(file.bytes for file in relation.files) if relation else 0
