"""How a connection to DuckDB is opened and confined."""

from __future__ import annotations

import atexit
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from ctypes import py_object, pythonapi
from pathlib import Path
from tempfile import gettempdir
from typing import TypeAlias, TypeVar
from uuid import uuid4
from weakref import WeakValueDictionary

import duckdb

from everview.engines.duckdb import functions
from everview.runtime.memory_budget import CALCULATING, part

T = TypeVar("T")

_UNPLANNED = "did not return a BoundFunctionExpression"
"""How DuckDB 2.0 fails on `x <> x` when its statistics say that x is null in every row."""


# A relation would be planned twice, which costs more than the copy that is warned of.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result", module=r"everview\.")

Database: TypeAlias = duckdb.DuckDBPyConnection
"""A DuckDB in memory that knows our functions; connections to it are its cursors."""
_DATABASES: WeakValueDictionary[int, Database] = WeakValueDictionary()


def connect(memory: int | None) -> Database:
    """A database in memory; what does not fit goes to files that are gone when it is closed.

    With a limit in bytes, it keeps nothing of the files that it reads.
    """
    spill = Path(gettempdir()) / f"everview-{uuid4().hex}"
    connection = duckdb.connect(
        config={
            "temp_directory": str(spill),
            "memory_limit": f"{part(CALCULATING) if memory is None else memory}B",
            "enable_external_file_cache": memory is None,
            # A name that is not known is no variable of Python's.
            "python_enable_replacements": False,
        }
    )
    functions.define(connection)
    _DATABASES[id(connection)] = connection
    return connection


def _close_all() -> None:
    """Close every database: one that knows functions in Python must not outlive Python."""
    for each in tuple(_DATABASES.values()):
        with suppress(duckdb.ResourceInUseException):  # a thread that Python does not wait for
            each.close()


def _leave_to_parent() -> None:
    """Keep what a child has of its parent's databases: they cannot be closed without their threads.

    To close one would also delete the files that the parent has put on disk.
    """
    for each in tuple(_DATABASES.values()):
        pythonapi.Py_IncRef(py_object(each))
    _DATABASES.clear()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def confine(connection: duckdb.DuckDBPyConnection, folder: str | None) -> None:
    """Let DuckDB open files of one folder alone, or none; it refuses to be let out again."""
    allowed = [] if folder is None else [folder]
    connection.execute("SET allowed_directories = ?", [allowed])
    connection.execute("SET enable_external_access = false")


def planned(connection: duckdb.DuckDBPyConnection, ask: Callable[[], T]) -> T:
    """What `ask` gives, planned without statistics if DuckDB fails to plan it with them."""
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
