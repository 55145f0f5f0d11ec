"""One store on one engine, to which the steps of a case are applied."""

from __future__ import annotations

import re
from pathlib import Path

import everview
from everview.errors import UserError
from everview.fuzz.case import Contents, Table, Transaction, View
from everview.fuzz.compare import same_bag
from everview.fuzz.script import create_table, create_view
from everview.pipeline.audit import ViewAudit
from everview.pipeline.database import Database


class Side:
    """A store, the engine that has it open, and the views that this engine refused."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.refused: dict[str, str] = {}
        self.database = self._open()

    def _open(self) -> Database:
        return everview.open(str(self.folder), engine=self.engine)

    def reopen(self, engine: str) -> None:
        """Open the store again, which was closed."""
        self.engine = engine
        self.database = self._open()

    def create(self, table: Table) -> None:
        """Create a table."""
        self.database.sql(create_table(table))

    def define(self, view: View) -> None:
        """Create a view; one that is refused, or reads a refused one, is left out."""
        lost = [name for name in self.refused if re.search(rf"\b{name}\b", view.query)]
        if lost:
            self.refused[view.name] = ""
            return
        try:
            self.database.sql(create_view(view))
        except UserError as problem:
            self.refused[view.name] = reason(problem)

    def commit(self, transaction: Transaction) -> UserError | None:
        """Run a transaction; the error it was refused with."""
        try:
            with self.database.transaction() as tx:
                for change in transaction.changes:
                    getattr(tx, change.kind)(change.table, change.rows)
        except UserError as problem:
            return problem
        return None

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
