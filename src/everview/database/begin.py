"""Begins and ends transactions: of Python, of BEGIN and COMMIT, and of one change alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import pyarrow as pa

from everview.database.commit import commit_transaction
from everview.database.handle import Handle
from everview.database.preview import preview
from everview.database.transaction import Commit, Preview, RunSql, Transaction, no_sql
from everview.errors import Span, UserError
from everview.runtime.protocol import Part
from everview.runtime.results import Result
from everview.store.transaction_ids import TransactionId


def begin(db: Handle, id_: TransactionId | None = None, run_sql: RunSql = no_sql) -> Transaction:
    """Begin a transaction, which holds up other writers until it ends."""
    return db.begin(*_outcomes(db), run_sql, id_)


def change_alone(db: Handle, change: Callable[[Transaction], None]) -> int:
    """One change as a transaction of its own; the epoch after it."""
    db.must_write()

    def work() -> int:
        tx = db.begin_alone(*_outcomes(db))
        change(tx)
        return tx.commit()

    return db.exclusively(work)


def in_transaction(db: Handle, change: Callable[[Transaction], int]) -> int:
    """A change in the transaction that this thread has begun, else in one of its own.

    How many rows it changed: none where the transaction is a repeated one.
    """
    tx, changed = db.thread.transaction, 0

    def work(tx: Transaction) -> None:
        nonlocal changed
        changed = change(tx)

    if tx is not None:
        tx.gather(lambda: work(tx))
    else:
        change_alone(db, work)
    return changed


def begin_or_end(db: Handle, action: str, span: Span, id_: TransactionId | None) -> Result | None:
    """BEGIN, COMMIT or ROLLBACK, for the statements of this thread.

    COMMIT of a transaction with an id gives the epoch, and whether the transaction is repeated.
    """
    if db.thread.inside:
        raise UserError(
            "T008",
            f"{action.upper()} does not stand inside tx.sql",
            span=span,
            remedy="end the transaction with tx.commit() or tx.rollback(), or with its block",
        )
    if action == "begin":
        if db.thread.transaction is not None:
            raise UserError(
                "T008",
                "a transaction is open already in this thread, and transactions do not nest",
                span=span,
                remedy="write COMMIT to keep its changes or ROLLBACK to discard them, then BEGIN",
            )
        db.thread.transaction = begin(db, id_)
        return None
    db.must_be_open()
    if db.thread.transaction is None:
        raise UserError(
            "T008",
            f"there is nothing to {action.upper()}: no transaction is open in this thread",
            span=span,
            remedy="write BEGIN before the statements that belong together; "
            "a statement alone is committed when it is done",
        )
    open_, db.thread.transaction = db.thread.transaction, None
    if action == "rollback":
        open_.rollback()
        return None
    committed = {"epoch": [open_.commit()], "repeated": [open_.repeated]}
    return None if open_.id is None else Result(lambda: pa.table(committed))


def open_transaction(db: Handle, span: Span) -> Transaction:
    """The transaction that this thread has begun with BEGIN."""
    if db.thread.transaction is None:
        raise UserError(
            "T008",
            "no transaction is open whose changes could be shown",
            span=span,
            remedy="BEGIN one first; db.changes and everview changes show what was committed",
        )
    return db.thread.transaction


def _outcomes(db: Handle) -> tuple[Commit, Preview]:
    """What a transaction can come to: to be committed, and to show what that would change."""

    def shown(tx: Transaction, views: Collection[str]) -> Mapping[str, list[Part]]:
        return preview(db.maintainer, tx.pending, tx.removes, tx.snapshot, views)

    return lambda tx: commit_transaction(db, tx), shown
