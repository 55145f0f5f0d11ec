"""Executes SQL statements: declarations by group, changes and queries one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from everview.database import dml, queries
from everview.database.commit import commit_transaction, install
from everview.database.ddl import Declaration, apply_declarations, group_statements
from everview.database.error_context import name_expressions, rows_with_span, with_span
from everview.database.handle import Handle
from everview.database.introspect.explain import explain_query, explain_view
from everview.database.introspect.fetch_costs import measured_costs
from everview.database.introspect.system_tables import BoundQuery, bind_system_tables
from everview.database.introspect.tables import system_tables
from everview.database.transaction import Transaction
from everview.errors import Span, UserError
from everview.lang.sql.bind.inline_functions import inline_calls
from everview.lang.sql.parse.statements import (
    Delete,
    Explain,
    Insert,
    Merge,
    Query,
    Statement,
    Update,
)
from everview.lang.sql.parse.statements import TransactionBracket as Bracket
from everview.runtime.results import Result


def execute_all(db: Handle, statements: Iterable[Statement]) -> Iterator[Result | None]:
    """Run statements in order, with errors placed in their text; the rows of each group."""
    for group in group_statements(statements):
        result = None
        if isinstance(group[0], Declaration):
            _declare(db, [each for each in group if isinstance(each, Declaration)])
        else:
            with with_span(group[0].span), name_expressions(group[0].span):
                result = _execute(db, inline_calls(group[0], db.catalog.functions))
        yield result if result is None else rows_with_span(result, group[0].span)


def _execute(db: Handle, statement: Statement) -> Result | None:
    match statement:
        case Query(text, reads, _):
            return _select(db, text, reads)
        case Explain(what, _):
            lines = _explain(db, what).splitlines()
            return Result(lambda: pa.table({"plan": lines}))
        case Bracket(action, span):
            _begin_or_end(db, action, span)
        case Insert() | Delete() | Update() | Merge():
            _change(db, statement)
    return None


def _declare(db: Handle, statements: Sequence[Declaration]) -> None:
    """Make declarations, all or none, in one epoch."""
    db.must_declare(statements[0].span)

    def work() -> None:
        snapshot, catalog = db.at()
        change = apply_declarations(statements, catalog, db.engine, snapshot)
        if change is not None:
            install(db, change)

    db.exclusively(work)


def _select(db: Handle, text: str, reads: tuple[str, ...]) -> Result:
    tx = db.thread.transaction
    snapshot, catalog = (tx.snapshot, tx.catalog) if tx else db.at()
    pending = tx.pending if tx else {}
    found = tuple(name for each in reads if (name := catalog.find(each)) is not None)
    tables = system_tables(catalog, db.engine, snapshot)
    asked = bind_system_tables(BoundQuery(text, found, snapshot, pending), tables)
    with db.reading(snapshot):
        result = queries.select(db.engine, asked.text, asked.reads, asked.snapshot, asked.pending)
    return db.lazy(result, snapshot)


def _explain(db: Handle, what: str) -> str:
    """EXPLAIN of a view or constraint, or of a query as if it were a view."""
    first, _, name = what.partition(" ")
    if first.upper() == "ASSERTION" and name:
        return explain(db, db.catalog.constraint(name.strip().strip("`")).name)
    if db.catalog.find(what) is not None or what.isidentifier():
        return explain(db, what)
    return explain_query(db.catalog, what)


def explain(db: Handle, view: str, stage: str = "operators") -> str:
    """One stage of how a view or constraint is maintained, with what its fetches cost before."""
    catalog, costs = db.catalog, measured_costs(db.store, db.catalog)
    return explain_view(catalog, view, stage, costs)


def _begin_or_end(db: Handle, action: str, span: Span) -> None:
    """BEGIN, COMMIT or ROLLBACK, for the statements of this thread."""
    if action == "begin":
        if db.thread.transaction is not None:
            raise UserError(
                "T008", "a transaction is open already", span=span, remedy="COMMIT it first"
            )
        db.thread.transaction = begin(db)
        return
    db.must_be_open()
    if db.thread.transaction is None:
        raise UserError("T008", "no transaction is open", span=span, remedy="BEGIN one first")
    open_, db.thread.transaction = db.thread.transaction, None
    if action == "commit":
        open_.commit()
    else:
        open_.rollback()


def _change(db: Handle, statement: Insert | Delete | Update | Merge) -> None:
    tx = db.thread.transaction
    if tx is not None:
        tx.run(lambda: dml.apply(tx, statement))
    else:
        change_alone(db, lambda alone: dml.apply(alone, statement))


def begin(db: Handle) -> Transaction:
    """Begin a transaction, which holds up other writers until it ends."""
    return db.begin(lambda tx: commit_transaction(db, tx))


def change_alone(db: Handle, change: Callable[[Transaction], None]) -> int:
    """One change as a transaction of its own; the epoch after it."""
    db.must_write()

    def work() -> int:
        tx = db.begin_alone(lambda tx: commit_transaction(db, tx))
        change(tx)
        return tx.commit()

    return db.exclusively(work)
