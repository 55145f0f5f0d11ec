"""The casts on Arrow columns: those that keep the value, and raise an Arrow error otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from everview.expr.coercion import as_decimal
from everview.expr.types import INTEGERS, Type, decimal_parts
from everview.runtime.arrow_types import arrow_type
from everview.runtime.vector.errors import Unsupported

Convert: TypeAlias = Callable[[Any], Any]


def cast(source: Type, target: Type) -> Convert:
    """What turns values of one type into those of another; Unsupported where nothing here does."""
    to = arrow_type(target)
    if source == "void":
        return lambda _: pa.scalar(None, to)
    if source in INTEGERS and target in INTEGERS:
        return lambda values: pc.cast(values, to)
    if source in INTEGERS and target == "double":
        return lambda values: pc.cast(values, to, safe=False)
    if source == "float" and target == "double":
        return lambda values: pc.cast(values, to)
    if source in INTEGERS and decimal_parts(target):
        digits = as_decimal(source)
        assert digits is not None, source
        wide = pa.decimal128(*digits)
        return lambda values: pc.cast(pc.cast(values, wide), to)
    ours, theirs = decimal_parts(source), decimal_parts(target)
    if ours and theirs:
        return lambda values: pc.cast(values, to)
    if ours and ours[1] == 0 and target in INTEGERS:
        return lambda values: pc.cast(values, to)
    raise Unsupported(f"CAST({source} AS {target})")
