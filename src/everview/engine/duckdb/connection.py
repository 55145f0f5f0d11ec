"""How DuckDB is opened, what it may open, and how it is asked again where it fails to plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import gettempdir
from typing import TypeVar
from uuid import uuid4

import duckdb

from everview.engine.memory import CALCULATING, part

T = TypeVar("T")

_UNPLANNED = "did not return a BoundFunctionExpression"
"""How DuckDB 2.0 fails on `x <> x` when its statistics say that x is null in every row."""


def connect(memory: str | None) -> duckdb.DuckDBPyConnection:
    """A database in memory; what does not fit goes to files that are gone when it is closed."""
    spill = Path(gettempdir()) / f"everview-{uuid4().hex}"
    connection = duckdb.connect(
        config={
            "temp_directory": str(spill),
            "memory_limit": memory or f"{part(CALCULATING)}B",
            # A name that is not known is no variable of Python's.
            "python_enable_replacements": False,
        }
    )
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def confine(connection: duckdb.DuckDBPyConnection, folder: str | None) -> None:
    """Let DuckDB open files of one folder alone, or none; it refuses to be let out again."""
    allowed = [] if folder is None else [folder]
    connection.execute("SET allowed_directories = ?", [allowed])
    connection.execute("SET enable_external_access = false")


def planned(connection: duckdb.DuckDBPyConnection, ask: Callable[[], T]) -> T:
    """What is asked, planned without statistics if DuckDB fails to plan it with them."""
    try:
        return ask()
    except duckdb.InvalidInputException as problem:
        if _UNPLANNED not in str(problem):
            raise
    connection.execute("SET disabled_optimizers = 'statistics_propagation'")
    try:
        return ask()
    finally:
        connection.execute("RESET disabled_optimizers")
