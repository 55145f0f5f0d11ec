"""The casts that are computed on columns: those that keep the value, or are an Arrow error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from everview.expr.types import INTEGERS, Type, decimal_parts
from everview.runtime.arrow_types import arrow_type
from everview.runtime.vector.errors import Unsupported

Convert: TypeAlias = Callable[[Any], Any]

_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


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
        whole = pa.decimal128(_WHOLE[source], 0)
        return lambda values: pc.cast(pc.cast(values, whole), to)
    ours, theirs = decimal_parts(source), decimal_parts(target)
    if ours and theirs:
        return lambda values: pc.cast(values, to)
    if ours and ours[1] == 0 and target in INTEGERS:
        return lambda values: pc.cast(values, to)
    raise Unsupported(f"CAST({source} AS {target})")
