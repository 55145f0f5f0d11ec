"""Opens the database at a location, with an engine chosen by name; verifies and repairs one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from everview import arguments
from everview.database.commit import install
from everview.database.database import Database
from everview.database.ddl import CatalogChange
from everview.database.handle import Handle
from everview.database.python_functions import checked_functions
from everview.database.repair import Repair, repair
from everview.database.verify import Progress, Verification, no_progress, verify
from everview.errors import UserError
from everview.lang.sql.allowlist.allow import Allow, allowed
from everview.runtime.protocol import Engine
from everview.store.errors import no_store
from everview.store.store import Store

ENGINES = ("spark", "duckdb")
_MAX_SHOWN = 200
"""How many characters of a location, and of what is wrong with it, an error shows."""


def open_database(
    location: str,
    *,
    engine: str,
    spark: Any,
    read_only: bool,
    create: bool,
    epoch: int | None = None,
    allow: Iterable[str] = (),
    functions: object = None,
    memory: int | str | None = None,
) -> Database:
    """The database at `location`; everything that can be refused is refused before Spark starts.

    At an `epoch` it is read as it was then, even where newer ones are damaged.
    """
    location = arguments.location(location)
    arguments.flag("read_only", read_only)
    arguments.flag("create", create)
    if epoch is not None:
        epoch = arguments.count("epoch", epoch)
    held = None if memory is None else arguments.size("memory", memory)
    if arguments.text("engine", engine) not in ENGINES:
        near = arguments.did_you_mean(engine, ENGINES)
        raise UserError(
            "E002",
            f"there is no engine {arguments.shown(engine)}",
            remedy=f"{near}use 'spark' or 'duckdb'",
        )
    if engine == "duckdb" and spark is not None:
        raise UserError(
            "E002", "the embedded engine uses no Spark session", remedy="leave out spark, or engine"
        )
    reachable = allowed(allow)
    python_functions = [] if functions is None else checked_functions(functions)
    if engine == "duckdb" and reachable != Allow(files=reachable.files):
        raise UserError(
            "E002",
            "the embedded engine reaches nothing beside the store but files",
            remedy="allow files: alone, or open the store with engine='spark'",
        )
    read_only = read_only or epoch is not None
    store = _store(location, create=create and not read_only, epoch=epoch)
    store.latest()
    lock = None if read_only else store.writer_lock()
    try:
        computes = _engine(engine, spark, reachable, held)
        for name, function, gives in python_functions:
            computes.register_function(name, function, gives)
        handle = Handle(store, computes, lock, read_only=read_only)
        if not read_only:
            _build_missing(handle)
        return Database(handle)
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def verified(location: str, on_progress: Progress = no_progress) -> Verification:
    """What of the store at `location` is damaged."""
    return verify(_store(arguments.location(location), create=False, epoch=None), on_progress)


def repaired(
    location: str,
    *,
    engine: str,
    spark: Any = None,
    on_progress: Progress = no_progress,
    memory: int | str | None = None,
) -> Repair:
    """Build again what is damaged of the store at `location` and follows from its tables.

    Without the newest manifest it is not known what the store held: then nothing is done.
    """
    found = verified(location, on_progress)
    if not all(each.relations for each in found.of_epoch(found.newest)):
        return Repair(found)
    with open_database(
        location, engine=engine, spark=spark, read_only=False, create=False, memory=memory
    ) as db:
        return repair(db.handle, found)


def _store(location: str, *, create: bool, epoch: int | None) -> Store:
    """The store at `location`; a refusal of the file system is an error that says so."""
    try:
        if create:
            return Store.create_or_open(location)
        return Store.open_existing(location, epoch=epoch)
    except (OSError, ValueError) as problem:  # Arrow's errors are either
        reason = str(problem).splitlines()[0]
        raise no_store(location[:_MAX_SHOWN], reason[:_MAX_SHOWN]) from problem


def _build_missing(db: Handle) -> None:
    """Build the states that the store does not hold: an older version may have stored others."""
    catalog, held = db.catalog, db.store.latest().relations.keys()
    needed = catalog.stored().keys() | catalog.states_beyond_reach().keys()
    described = catalog.known.sources.keys() >= catalog.views.keys()
    if not described or catalog.stored().keys() - held or held - needed:
        db.exclusively(lambda: install(db, CatalogChange(catalog)))


def _engine(name: str, session: Any, allow: Allow, memory: int | None) -> Engine:
    if name == "duckdb":
        from everview.engines.duckdb.engine import DuckDBEngine

        return DuckDBEngine(memory, allow=allow)
    from everview.engines.spark.engine import SparkEngine

    return SparkEngine(session, memory=memory, allow=allow)
