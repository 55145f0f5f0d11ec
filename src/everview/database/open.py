"""From a location and an engine's name to a database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from everview import arguments
from everview.database.database import Database
from everview.database.ddl import Declared
from everview.database.python_functions import checked_functions
from everview.database.repair import Repair, repair
from everview.database.verify import Tell, Verification, silent, verify
from everview.errors import UserError
from everview.lang.sql.allowlist.allow import NOTHING, Allow, allowed
from everview.runtime.protocol import Engine
from everview.store.errors import no_store
from everview.store.store import Store

ENGINES = ("spark", "duckdb")
_SHOWN = 200
"""So many characters of a location, and of what is wrong with it, are shown."""


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
) -> Database:
    """The database at `location`; everything that can be refused is refused before Spark starts.

    At an `epoch` it is read as it was then, even where newer ones are damaged.
    """
    location = arguments.location(location)
    arguments.flag("read_only", read_only)
    arguments.flag("create", create)
    if epoch is not None:
        epoch = arguments.count("epoch", epoch)
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
    reached = allowed(allow)
    called = [] if functions is None else checked_functions(functions)
    if engine == "duckdb" and reached != NOTHING:
        raise UserError(
            "E002",
            "the embedded engine reaches nothing beside the store",
            remedy="leave out allow, or open the store with engine='spark'",
        )
    read_only = read_only or epoch is not None
    store = _store(location, create=create and not read_only, epoch=epoch)
    store.latest()
    lock = None if read_only else store.writer_lock()
    try:
        computes = _engine(engine, spark, reached)
        for name, function, gives in called:
            computes.register_function(name, function, gives)
        db = Database(store, computes, lock, read_only=read_only)
        if not read_only:
            _make_whole(db)
        return db
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def verified(location: str, tell: Tell = silent) -> Verification:
    """What of the store at `location` is damaged."""
    return verify(_store(arguments.location(location), create=False, epoch=None), tell)


def repaired(location: str, *, engine: str, spark: Any = None, tell: Tell = silent) -> Repair:
    """Build again what is damaged of the store at `location`, as far as its tables tell it.

    Without its newest manifest nobody knows what it held: then nothing is done.
    """
    found = verified(location, tell)
    if not all(each.relations for each in found.of_epoch(found.newest)):
        return Repair(found)
    with open_database(location, engine=engine, spark=spark, read_only=False, create=False) as db:
        return repair(db, found)


def _store(location: str, *, create: bool, epoch: int | None) -> Store:
    """The store at `location`, if there can be one; what a file system says of it is told."""
    try:
        if create:
            return Store.create_or_open(location)
        return Store.open_existing(location, epoch=epoch)
    except (OSError, ValueError) as problem:  # Arrow's errors are either
        reason = str(problem).splitlines()[0]
        raise no_store(location[:_SHOWN], reason[:_SHOWN]) from problem


def _make_whole(db: Database) -> None:
    """Build what views need and the store does not hold: a version before may have kept other."""
    catalog, held = db.catalog, db.store.latest().relations.keys()
    needed = catalog.stored().keys() | catalog.states_beyond_reach().keys()
    told = catalog.known.sources.keys() >= catalog.views.keys()
    if not told or catalog.stored().keys() - held or held - needed:
        db.install(Declared(catalog))


def _engine(name: str, session: Any, allow: Allow) -> Engine:
    if name == "duckdb":
        from everview.engines.duckdb.engine import DuckDBEngine

        return DuckDBEngine()
    from everview.engines.spark.engine import SparkEngine

    return SparkEngine(session, allow=allow)
