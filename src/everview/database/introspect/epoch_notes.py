"""The note of an epoch in its manifest: how it is written, and how it is read back.

A note is only shown and estimated from. What is not of the shape that we write is left out when it
is read, and no answer depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from everview.database.backfill import EpochWrites
from everview.database.catalog.catalog import Catalog
from everview.database.cost.choose import Choice
from everview.database.cost.measurements import SAMPLES, Measurements
from everview.program.dependencies import Share
from everview.runtime.report import Clock, RunReport
from everview.store.manifest import Manifest


def transaction_note(outcome: RunReport, views: Mapping[str, Share]) -> dict[str, Any]:
    """What a transaction read and wrote; `views` are the shares of its views."""
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
        "views": {view: _view(share, outcome, written) for view, share in views.items()},
    }


def _view(share: Share, outcome: RunReport, written: Mapping[str, int]) -> dict[str, Any]:
    return {
        "in": sum(written[name] for name in share.inputs),
        "fetches": sorted(mark for mark in share.fetches if mark in outcome.ways),
    }


def choice_note(choice: Choice, views_ms: float) -> dict[str, Any]:
    """The way that was taken, what either was expected to take, and what it took."""
    expected = {"incremental": choice.incremental, "recompute": choice.recompute}
    weighed = {way: round(spent, 2) for way, spent in expected.items() if spent is not None}
    return {"way": choice.way, "expected": weighed, "for_views": round(views_ms, 2)}


def declaration_note(writes: EpochWrites, before: Manifest, catalog: Catalog) -> dict[str, Any]:
    """What new declarations built."""
    measured = Measurements.of(read_note(before, SAMPLES)).after_builds(writes.build_times)
    return {
        "kind": "declaration",
        "built": {name: each.rows for name, each in (writes.bases | writes.changes).items()},
        "samples": measured.to_note(catalog.stored()),
    }


def time_note(clock: Clock) -> dict[str, Any]:
    """The milliseconds of an epoch, by phase and in all."""
    phases = {name: round(spent, 2) for name, spent in clock.phases.items()}
    return {"milliseconds": round(clock.total, 1), "phases": phases}


def timestamp() -> str:
    """When an epoch is made, for its manifest."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def read_note(manifest: Manifest, only: Collection[str] | None = None) -> dict[str, Any]:
    """The note of an epoch, without the entries that are not of the shape that we write.

    Of the entries only some are wanted, or all of them.
    """
    wanted = _SHAPES if only is None else only
    return {
        key: value for key, value in manifest.note.items() if key in wanted and _SHAPES[key](value)
    }


_COUNT_MAX = 1 << 62

Shape = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _COUNT_MAX


def _number(value: Any) -> bool:
    return _count(value) or (type(value) is float and isfinite(value))


def _way(value: Any) -> bool:
    return value in ("incremental", "recompute")


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _measurement(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_number, value))


def _mapping_to(shape: Shape) -> Shape:
    """A mapping from names to values of a shape."""
    return lambda value: isinstance(value, dict) and all(map(shape, value.values()))


def _record(**shapes: Shape) -> Shape:
    """A mapping with such values under these names, as far as it has them."""

    def fits(value: Any) -> bool:
        return isinstance(value, Mapping) and all(
            shape(value[key]) for key, shape in shapes.items() if key in value
        )

    return fits


_SHAPES: dict[str, Shape] = {
    "kind": _text,
    "gear": _text,
    "way": _way,
    "jobs": _count,
    "compacted": _texts,
    "published": _mapping_to(_count),
    "built": _mapping_to(_count),
    "written": _mapping_to(_count),
    "views": _mapping_to(_record(**{"in": _count, "fetches": _texts})),
    "ways": _mapping_to(_text),
    "fetched": _mapping_to(_count),
    "iterations": _mapping_to(_count),
    "phases": _mapping_to(_number),
    "expected": _mapping_to(_number),
    "milliseconds": _number,
    "for_views": _number,
    "samples": _record(builds=_mapping_to(_measurement), changes=_mapping_to(_measurement)),
}
