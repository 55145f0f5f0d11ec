"""Materialized views that are never stale and never recomputed, on Apache Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from everview.errors import Span, UserError

if TYPE_CHECKING:
    from everview.database.database import Database
    from everview.database.repair import Repair
    from everview.database.verify import Verification

__version__ = "0.1.0"
__all__ = ["Span", "UserError", "__version__", "open", "repair", "verify"]


def open(  # noqa: A001  (ev.open, as in io.open and gzip.open)
    location: str,
    *,
    engine: str = "spark",
    spark: Any = None,
    read_only: bool = False,
    create: bool = True,
    epoch: int | None = None,
    allow: Sequence[str] = (),
    functions: Mapping[str, tuple[Callable[..., Any], str]] | None = None,
) -> Database:
    """Open the store at `location`, and make it when there is none.

    `spark` is a SparkSession to use; without one, the active session or a local Spark is used.
    With an `epoch` the store is opened read-only, as it was then, even if newer ones are damaged.

    On Spark, statements reach the tables and views of the store, and functions that are pure. What
    they need beyond that is named in `allow`: `table:NAME` for a table of Spark's catalogs,
    `files:PREFIX` for files under a path, `function:NAME`. It is not stored; no view may use it.

    `functions` in Python may be called by statements and views, on Spark: each with the SQL type
    that it gives, such as `{"length": (len, "int")}`. Give only those whose answer depends on
    their arguments alone. They are not stored: a view that calls one which is not given is read
    as it is, and what would change it is refused.
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
    )


def verify(location: str) -> Verification:
    """Check every file that the store at `location` needs, as it lies on disk; needs no engine."""
    from everview.database.open import verified

    return verified(location)


def repair(location: str, *, engine: str = "spark", spark: Any = None) -> Repair:
    """Build what is damaged of views and states again from the tables, and say what is lost."""
    from everview.database.open import repaired

    return repaired(location, engine=engine, spark=spark)
