"""Runs a text: read in its dialect, executed, and with errors shown in what the user wrote."""

from __future__ import annotations

from everview import arguments
from everview.database.catalog.catalog import Catalog
from everview.database.error_context import in_original_text, rows_in_original_text
from everview.database.execute import execute_all
from everview.database.handle import Handle
from everview.database.transaction import RunSql, Transaction
from everview.lang.sql.dialects.translate import parse_dialect
from everview.lang.sql.parse.statements import Parameters
from everview.runtime.results import Result


def run_text(
    db: Handle, catalog: Catalog, text: str, params: Parameters | None, dialect: str | None
) -> Result | None:
    """Run the statements of a text; the rows of the last one, if it has any."""
    arguments.text("text", text)
    if dialect is not None:
        arguments.text("dialect", dialect)
    read_as = dialect or (None if params is None else "spark")
    with in_original_text(text, read_as):
        statements = parse_dialect(text, dialect, catalog.schemas, params)
        *_, last = (None, *execute_all(db, statements))
    return last if last is None else rows_in_original_text(last, text, read_as)


def run_inside(db: Handle) -> RunSql:
    """What runs statements of a text inside a transaction that is open."""

    def run(
        tx: Transaction, text: str, params: Parameters | None, dialect: str | None
    ) -> Result | None:
        before, was_inside = db.thread.transaction, db.thread.inside
        db.thread.transaction, db.thread.inside = tx, True
        try:
            return run_text(db, tx.catalog, text, params, dialect)
        finally:
            db.thread.transaction, db.thread.inside = before, was_inside

    return run
