"""What a manifest notes about its epoch, without whatever is not of the shape that we write.

Notes only tell and estimate: what cannot be used is left out, and nothing is wrong without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from everview.store.manifest import Manifest

_MOST = 1 << 62

Shape = Callable[[Any], bool]


def note_of(manifest: Manifest) -> dict[str, Any]:
    """The note of an epoch."""
    return {
        key: value for key, value in manifest.note.items() if key in _SHAPES and _SHAPES[key](value)
    }


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _number(value: Any) -> bool:
    return _count(value) or (type(value) is float and isfinite(value))


def _way(value: Any) -> bool:
    return value in ("incremental", "recompute")


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _sample(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_number, value))


def _of(shape: Shape) -> Shape:
    """A mapping from names to values of a shape."""
    return lambda value: isinstance(value, dict) and all(map(shape, value.values()))


def _with(**shapes: Shape) -> Shape:
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
    "published": _of(_count),
    "built": _of(_count),
    "written": _of(_count),
    "views": _of(_with(**{"in": _count, "fetches": _texts})),
    "ways": _of(_text),
    "fetched": _of(_count),
    "iterations": _of(_count),
    "phases": _of(_number),
    "expected": _of(_number),
    "milliseconds": _number,
    "for_views": _number,
    "samples": _with(builds=_of(_sample), changes=_of(_sample)),
}
