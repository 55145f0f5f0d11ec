"""The functions that DuckDB lacks and the parity table asks for: over arrays, never row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.func import ARROW

from everview.engines.duckdb import fdlibm
from everview.engines.duckdb.fdlibm import Doubles
from everview.sqlgen.parity.arithmetic import STRICT

Column: TypeAlias = pa.ChunkedArray

_ONE: dict[str, Callable[[Doubles], Doubles]] = {
    "ln": fdlibm.log,
    "log2": fdlibm.log2,
    "log10": fdlibm.log10,
    "log1p": fdlibm.log1p,
    "exp": fdlibm.exp,
    "expm1": fdlibm.expm1,
}
_TWO: dict[str, Callable[[Doubles, Doubles], Doubles]] = {
    "log": fdlibm.logarithm,
    "power": fdlibm.power,
}


def define(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the functions known to a connection, which has to be closed before the process ends."""
    for name, one in _ONE.items():
        _named(connection, name, _of_one(one), arity=1)
    for name, two in _TWO.items():
        _named(connection, name, _of_two(two), arity=2)


def _named(
    connection: duckdb.DuckDBPyConnection, name: str, function: Callable[..., pa.Array], arity: int
) -> None:
    connection.create_function(STRICT + name, function, ["DOUBLE"] * arity, "DOUBLE", type=ARROW)


def _of_one(function: Callable[[Doubles], Doubles]) -> Callable[[Column], pa.Array]:
    """The function over an Arrow column; DuckDB answers NULL itself and does not ask for it."""

    def applied(column: Column) -> pa.Array:
        with np.errstate(all="ignore"):
            return pa.array(function(column.to_numpy()))

    return applied


def _of_two(function: Callable[[Doubles, Doubles], Doubles]) -> Callable[..., pa.Array]:
    """The function over two Arrow columns, whose arguments DuckDB counts."""

    def applied(left: Column, right: Column) -> pa.Array:
        with np.errstate(all="ignore"):
            return pa.array(function(left.to_numpy(), right.to_numpy()))

    return applied
