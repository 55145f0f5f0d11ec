"""The subject of a case: one store on one engine, to which the steps are applied."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TypeAlias

import everview
from everview.database import dml
from everview.database.audit import audit_view
from everview.database.database import Database
from everview.database.transaction import Transaction as Pending
from everview.database.verdict import ViewAudit
from everview.errors import UserError
from everview.lang.sql.parse.functions import Function
from everview.lang.sql.parse.parser import parse_statements
from everview.lang.sql.parse.statements import Delete, Insert, Merge, Update
from everview.runtime.protocol import Snapshot
from everview_fuzz.case import Change, Contents, Row, Statement, Table, Transaction, View
from everview_fuzz.check.compare import same_bag
from everview_fuzz.script import create_function, create_table, create_view, statement_text

Stamp: TypeAlias = tuple[str, tuple[tuple[str, tuple[str, ...]], ...]]
"""A query, and the segments of every relation that it names."""


class Subject:
    """A store, the engine that has it open, and the views that this engine refused."""

    def __init__(self, engine: str, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self.refused: dict[str, str] = {}
        self._tables: dict[str, Table] = {}
        self._checked_views: dict[str, Stamp] = {}
        self._checked_tables: dict[str, tuple[tuple[str, ...], Counter[Row]]] = {}
        self.database = self._open()

    def _open(self) -> Database:
        return everview.open(str(self.folder), engine=self.engine)

    def reopen(self, engine: str) -> None:
        """Open the closed store again; what was checked before is checked again."""
        self.engine = engine
        self._checked_views.clear()
        self._checked_tables.clear()
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

    def wrong_view(self) -> ViewAudit | None:
        """A view that differs from its query over what it reads, of those that may by now."""
        database = self.database
        latest = database.store.latest()
        snapshot = Snapshot(database.store, latest, database.catalog.stored())
        for name in database.catalog.views:
            stamp = self.stamp(name)
            if self._checked_views.get(name) == stamp:
                continue
            found = audit_view(name, database.catalog, database.engine, snapshot, from_tables=False)
            if not found.ok:
                return found
            self._checked_views[name] = stamp
        return None

    def wrong_from_tables(self, view: str) -> ViewAudit | None:
        """The view, if it differs from its query over the tables alone.

        Where it does not, it equals its query over the views it reads as well: those are right.
        """
        wrong = next((each for each in self.database.audit(view) if not each.ok), None)
        if wrong is None:
            self._checked_views[view] = self.stamp(view)
        return wrong

    def wrong_table(self, contents: Contents) -> str | None:
        """A table that does not hold what it should, of those that may not by now."""
        for name, expected in contents.rows.items():
            stamp = (self._segments(name), expected)
            if self._checked_tables.get(name) == stamp:
                continue
            if not same_bag(self.database.read(name).to_arrow(), expected):
                return name
            self._checked_tables[name] = stamp
        return None

    def stamp(self, view: str) -> Stamp:
        """What the verdict on a view depends on: its query, and what is stored of all it names."""
        query = self.database.catalog.views[view].query
        known = (*self.database.catalog.tables, *self.database.catalog.views)
        named = [name for name in known if name == view or re.search(rf"\b{name}\b", query)]
        return query, tuple((name, self._segments(name)) for name in named)

    def _segments(self, relation: str) -> tuple[str, ...]:
        found = self.database.store.latest().relations.get(relation)
        return tuple(segment.id for segment in found.segments) if found is not None else ()


def reason(problem: UserError) -> str:
    """Why something was refused, without what is particular to one query."""
    return f"{problem.code} {re.sub(r'[0-9]+', 'n', problem.problem.splitlines()[0])[:90]}"
