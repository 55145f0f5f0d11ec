"""One store on one engine, to which the steps of a case are applied."""

from __future__ import annotations

import re
from pathlib import Path

import everview
from everview.errors import UserError
from everview.fuzz.case import Change, Contents, Function, Statement, Table, Transaction, View
from everview.fuzz.compare import same_bag
from everview.fuzz.script import create_function, create_table, create_view, statement_text
from everview.lang.sql.parse import parse_statements
from everview.lang.sql.statements import Delete, Insert, Merge, Update
from everview.pipeline import dml
from everview.pipeline.audit import ViewAudit
from everview.pipeline.database import Database
from everview.pipeline.transaction import Transaction as Pending


class Side:
    """A store, the engine that has it open, and the views that this engine refused."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.refused: dict[str, str] = {}
        self._tables: dict[str, Table] = {}
        self.database = self._open()

    def _open(self) -> Database:
        return everview.open(str(self.folder), engine=self.engine)

    def reopen(self, engine: str) -> None:
        """Open the store again, which was closed."""
        self.engine = engine
        self.database = self._open()

    def create(self, table: Table) -> None:
        """Create a table."""
        self._tables[table.name] = table
        self.database.sql(create_table(table))

    def declare(self, function: Function) -> None:
        """Create a function; views that call one that is refused are left out."""
        try:
            self.database.sql(create_function(function))
        except UserError as problem:
            self.refused[function.name] = reason(problem)

    def define(self, view: View) -> str | None:
        """Create or replace a view; why it is refused, nothing where it reads a refused one.

        A view that is refused is left out, one that keeps its query stays.
        """
        known = view.name in self.database.catalog.views
        problem = self._problem(view)
        if problem is None:
            self.refused.pop(view.name, None)
        elif not known:
            self.refused[view.name] = problem
        return problem

    def _problem(self, view: View) -> str | None:
        if any(re.search(rf"\b{name}\b", view.query) for name in self.refused):
            return ""
        try:
            self.database.sql(create_view(view))
        except UserError as problem:
            return reason(problem)
        return None

    def commit(self, transaction: Transaction) -> UserError | None:
        """Run a transaction; the error it was refused with."""
        try:
            with self.database.transaction() as tx:
                for change in transaction.changes:
                    self._change(tx, change)
        except UserError as problem:
            return problem
        return None

    def _change(self, tx: Pending, change: Change | Statement) -> None:
        if isinstance(change, Change):
            getattr(tx, change.kind)(change.table, change.rows)
            return
        [statement] = parse_statements(statement_text(change, self._tables[change.table]))
        assert isinstance(statement, Insert | Delete | Update | Merge)
        dml.apply(tx, statement)

    def wrong_view(self, view: str | None = None) -> ViewAudit | None:
        """A view that differs from its query."""
        return next((each for each in self.database.audit(view) if not each.ok), None)

    def wrong_table(self, contents: Contents) -> str | None:
        """A table that does not hold what it should."""
        for name, expected in contents.rows.items():
            if not same_bag(self.database.read(name).to_arrow(), expected):
                return name
        return None


def reason(problem: UserError) -> str:
    """Why something was refused, without what is particular to one query."""
    return f"{problem.code} {re.sub(r'[0-9]+', 'n', problem.problem.splitlines()[0])[:90]}"
