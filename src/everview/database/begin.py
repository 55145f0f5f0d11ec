"""Begins and ends transactions: of Python, of BEGIN and COMMIT, and of one change alone."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from everview.database.commit import commit_transaction
from everview.database.handle import Handle
from everview.database.transaction import Transaction
from everview.errors import Span, UserError
from everview.runtime.results import Result
from everview.store.transaction_ids import TransactionId


def begin(db: Handle, id_: TransactionId | None = None) -> Transaction:
    """Begin a transaction, which holds up other writers until it ends."""
    return db.begin(lambda tx: commit_transaction(db, tx), id_)


def change_alone(db: Handle, change: Callable[[Transaction], None]) -> int:
    """One change as a transaction of its own; the epoch after it."""
    db.must_write()

    def work() -> int:
        tx = db.begin_alone(lambda tx: commit_transaction(db, tx))
        change(tx)
        return tx.commit()

    return db.exclusively(work)


def begin_or_end(db: Handle, action: str, span: Span, id_: TransactionId | None) -> Result | None:
    """BEGIN, COMMIT or ROLLBACK, for the statements of this thread.

    COMMIT of a transaction with an id gives the epoch, and whether the transaction is repeated.
    """
    if action == "begin":
        if db.thread.transaction is not None:
            raise UserError(
                "T008", "a transaction is open already", span=span, remedy="COMMIT it first"
            )
        db.thread.transaction = begin(db, id_)
        return None
    db.must_be_open()
    if db.thread.transaction is None:
        raise UserError("T008", "no transaction is open", span=span, remedy="BEGIN one first")
    open_, db.thread.transaction = db.thread.transaction, None
    if action == "rollback":
        open_.rollback()
        return None
    committed = {"epoch": [open_.commit()], "repeated": [open_.repeated]}
    return None if open_.id is None else Result(lambda: pa.table(committed))
