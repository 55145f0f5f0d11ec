"""Estimates how much memory stored rows take as Arrow columns, from what the manifest says."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from everview.expr.types import Schema
from everview.runtime.arrow_types import arrow_schema
from everview.store.manifest import Segment, parquet_and_pieces

UNPACKED = 6
"""How many bytes of memory a byte of texts in a Parquet file becomes, more or less."""
PACKED_MAX_WIDTH = 8
"""A packed value takes no more bytes than this, whatever its type."""
_KNOWN_SCHEMAS = 4096


def footprint(segments: Iterable[Segment], schema: Schema, *, packed: bool = False) -> int:
    """About how many bytes the rows of some segments take; exact where all have a fixed width.

    `packed` is whether they are row-major, each value in the narrowest integer.
    """
    parquet, pieces = parquet_and_pieces(file for each in segments for file in each.files)
    plain, narrow, has_texts = _widths(schema)
    size = sum(file.rows for file in parquet) * (narrow if packed else plain)
    if has_texts:
        size += UNPACKED * sum(file.bytes for file in parquet)
    return size + sum(file.bytes for file in pieces)  # those lie there as Arrow columns


@lru_cache(maxsize=_KNOWN_SCHEMAS)
def _widths(schema: Schema) -> tuple[int, int, bool]:
    """The bytes of a row in columns of fixed width, as they are and packed; if there are others."""
    plain = narrow = 0
    has_texts = False
    for column in arrow_schema(schema):
        try:
            width = max(1, column.type.bit_width // 8)
        except ValueError:
            has_texts = True
            width = 4  # an offset, or the number of a text
        plain += width
        narrow += min(width, PACKED_MAX_WIDTH)
    return plain, narrow, has_texts
