"""Materialized views on Apache Spark that are always fresh, maintained from the change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from everview.errors import Span, UserError

if TYPE_CHECKING:
    from everview.database.database import Database
    from everview.database.repair import Repair
    from everview.database.verify import Verification
    from everview.trigger_programs.running import Triggers

__version__ = "0.1.0"
__all__ = [
    "Span",
    "UserError",
    "__version__",
    "nested",
    "open",
    "repair",
    "triggers",
    "verify",
]
_Function = TypeVar("_Function", bound=Callable[..., Any])


def open(  # noqa: A001  (ev.open, as in io.open and gzip.open)
    location: str,
    *,
    engine: str = "spark",
    spark: Any = None,
    memory: int | str | None = None,
    read_only: bool = False,
    create: bool = True,
    epoch: int | None = None,
    allow: Sequence[str] = (),
    functions: Mapping[str, tuple[Callable[..., Any], str]] | None = None,
) -> Database:
    """Open the store in the folder `location`; it is made if there is none and `create` is true.

        shop = ev.open("shop", engine="duckdb")
        shop.close()

    - `engine`: `"spark"`, or `"duckdb"` for the embedded engine, which needs no Java.
    - `spark`: the SparkSession to use; without one, the active session or a local Spark.
    - `memory`: how much may be held in memory between transactions, such as `"2GB"` or a number of
      bytes; without it, a share of the machine. With 0 nothing is held: every transaction reads
      what it needs from files, or by Spark jobs. `db.memory` shows the budget and what is held.
    - `read_only`: do not write. One process may write to a store at a time, any number may read.
    - `epoch`: open the store read-only as it was then, even if newer epochs are damaged.
    - `allow`: what statements on Spark may reach beside the store and pure functions:
      `"table:NAME"` for a table of Spark's catalogs, `"files:PREFIX"` for files under a path,
      `"function:NAME"`. It is not stored, and no view may use it.
    - `functions`: Python functions that statements and views on Spark may call, each with the SQL
      type of its answer, such as `{"length": (len, "int")}`. The answer must depend on the
      arguments alone. They are not stored: a view that calls a function which is not given here
      is read as it is, and transactions that would change it are refused.
    """
    from everview.database.open import open_database

    return open_database(
        location,
        engine=engine,
        spark=spark,
        read_only=read_only,
        create=create,
        epoch=epoch,
        allow=allow,
        functions=functions,
        memory=memory,
    )


def verify(location: str) -> Verification:
    """Check every file that the store at `location` needs, as it lies on disk; needs no engine.

    For example:

        ev.verify("store").last_good
    """
    from everview.database.open import verified

    return verified(location)


def repair(
    location: str,
    *,
    engine: str = "spark",
    spark: Any = None,
    memory: int | str | None = None,
) -> Repair:
    """Build damaged views and states again from the tables, in a new epoch.

    What is damaged in tables cannot be built again: the result names it.
    """
    from everview.database.open import repaired

    return repaired(location, engine=engine, spark=spark, memory=memory)


def nested(function: _Function) -> _Function:
    """Mark a function of a module as a nested view, for `db.load_module`; it is returned as it is.

    For example:

        @ev.nested
        def dear_orders(orders):
            return [(o.id, o.amount) for o in orders if o.amount > 5]
    """
    return function


def triggers(text: str) -> Triggers:
    """Compile views to triggers that run in this process, without a store.

    The text is a script of CREATE TABLE and CREATE VIEW statements, or AGCA. An event is one row.
    It changes each view by additions and lookups alone, from maps that are kept for the purpose;
    tables are not kept. For example:

        spent = ev.triggers("spent[c] := Sum(orders(_, c, amount) * amount)")
        spent.insert("orders", [(1, 7, 10), (2, 7, 5)])
        spent.delete("orders", [(1, 7, 10)])
        spent.result()
    """
    from everview import arguments
    from everview.database.sql_triggers import sql_triggers
    from everview.database.trigger_script import is_sql
    from everview.lang.agca.views import checked_definitions
    from everview.trigger_programs.compile import compile_triggers
    from everview.trigger_programs.running import Triggers

    arguments.text("text", text)
    if is_sql(text):
        return sql_triggers(text)
    return Triggers(compile_triggers(checked_definitions(text)))
