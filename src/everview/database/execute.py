"""Executes SQL statements: declarations by group, changes and queries one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from everview.database.begin import begin_or_end, in_transaction, open_transaction
from everview.database.collections import statements as changes
from everview.database.collections.explode import with_collections_read
from everview.database.commit import install
from everview.database.copy_files import copy_into, copy_to
from everview.database.ddl import Declaration, apply_declarations, group_statements
from everview.database.error_context import (
    name_expressions,
    rows_with_span,
    with_span,
)
from everview.database.handle import Handle
from everview.database.introspect.declared import show
from everview.database.introspect.explain import explain_query, explain_view
from everview.database.introspect.fetch_costs import measured_costs
from everview.database.select_rows import select_rows
from everview.lang.sql.bind.inline_functions import inline_calls
from everview.lang.sql.parse.statements import (
    CopyInto,
    CopyTo,
    Delete,
    Explain,
    ExplainChanges,
    Insert,
    Merge,
    Query,
    Show,
    Statement,
    Truncate,
    Update,
)
from everview.lang.sql.parse.statements import TransactionBracket as Bracket
from everview.runtime.results import Result, rows_changed


def execute_all(db: Handle, statements: Iterable[Statement]) -> Iterator[Result | None]:
    """Run statements in order, with errors placed in their text; the rows of each group."""
    for group in group_statements(statements):
        result = None
        if isinstance(group[0], Declaration):
            _declare(db, [each for each in group if isinstance(each, Declaration)])
        else:
            with with_span(group[0].span), name_expressions(group[0].span):
                inlined = inline_calls(group[0], db.catalog.functions)
                result = _execute(db, with_collections_read(inlined, db.catalog.tables))
        yield result if result is None else rows_with_span(result, group[0].span)


def _execute(db: Handle, statement: Statement) -> Result | None:
    match statement:
        case Query(text, reads, _):
            return select_rows(db, text, reads)
        case ExplainChanges(name, span):
            return open_transaction(db, span).weighted_preview(name)
        case Explain(what, _):
            lines = _explain(db, what).splitlines()
            return Result(lambda: pa.table({"plan": lines}))
        case Show():
            rows = show(statement, db.at()[1])
            return Result(lambda: rows)
        case Bracket(action, span, id_):
            return begin_or_end(db, action, span, id_)
        case Insert() | Delete() | Update() | Merge() | Truncate():
            return rows_changed(_change(db, statement))
        case CopyInto():
            return rows_changed(
                in_transaction(db, lambda tx: copy_into(tx, statement, db.on_progress))
            )
        case CopyTo(text, reads):
            rows, location = select_rows(db, text, reads), db.store.folder.shown
            return rows_changed(copy_to(rows, statement, db.engine, location, db.on_progress))
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


def _change(db: Handle, statement: Insert | Delete | Update | Merge | Truncate) -> int:
    """Change rows in the open transaction, or in one of their own; how many."""
    return in_transaction(db, lambda tx: changes.apply(tx, statement))
