"""`python -m conformance.sqllogic FILE…`: each query of a sqllogictest file as a maintained view.

Every second query becomes a view before the rows arrive, the others where they stand in the file.
Rows of one INSERT arrive in two transactions; before an answer is looked at, rows of every table
are removed, and then brought back. A view has no order: a query with ORDER BY is made a view
without it, and its answer is compared as a bag. Only for a hash of an ordered answer are the rows
put in order again, by the columns of the answer that ORDER BY names.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import everview as ev
from conformance.refusals import construct
from conformance.sqllogic_file import Hashed, Query, Record, Statement, digest, is_cell, read
from conformance.sqllogic_sql import (
    View,
    as_view,
    halves,
    made_table,
    needed_tables,
    put_in_order,
    says_nothing,
)
from conformance.values import difference, rows_of
from everview.database.database import Database

EARLY = 40
"""How many views may wait for their rows at a time."""
TOGETHER = 20
"""How many queries are looked at after one disturbance."""


@dataclass(slots=True)
class Result:
    """What became of the records of a file, by line."""

    right: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    wrong: list[tuple[int, str]] = field(default_factory=list)


def run(records: Sequence[Record], db: Database, dialect: str = "sqlite") -> Result:
    """Run the records of a file against a database that is empty."""
    return _Run(list(records), db, dialect).run()


class _Run:
    """One file on one database."""

    def __init__(self, records: list[Record], db: Database, dialect: str) -> None:
        self.records = records
        self.db = db
        self.dialect = dialect
        self.result = Result()
        self.tables: list[str] = []
        self.early: dict[int, str] = {}
        queries = [record for record in records if isinstance(record, Query)]
        self.waiting = queries[::2]

    def run(self) -> Result:
        pending: list[Query] = []
        for record in self.records:
            if isinstance(record, Query):
                pending.append(record)
                if len(pending) < TOGETHER:
                    continue
            self._queries(pending)
            pending = []
            if isinstance(record, Statement):
                self._guarded(record.line, partial(self._statement, record))
        self._queries(pending)
        return self.result

    def _guarded(self, line: int, act: Callable[[], None]) -> bool:
        """Act; a refusal is noted, and anything else that goes wrong is our fault."""
        try:
            act()
        except ev.UserError as problem:
            self.result.refused.append((line, construct(problem)))
            return False
        except Exception:
            self.result.wrong.append((line, f"crashed\n{traceback.format_exc()}"))
            return False
        return True

    # Statements

    def _statement(self, record: Statement) -> None:
        if record.ok:
            self._perform(record.sql)
            return
        try:
            self._perform(record.sql)
        except ev.UserError:
            self.result.right += 1
        else:
            self.result.wrong.append((record.line, "a statement that must fail was carried out"))

    def _perform(self, sql: str) -> None:
        if says_nothing(sql, self.dialect):
            return
        table = made_table(sql, self.dialect)
        if table is not None:
            self.db.sql(table.sql)
            self.tables.append(table.name)
            self._create_early()
            return
        for part in halves(sql, self.dialect):
            result = self.db.sql(part, dialect=self.dialect)
            if result is not None:
                result.to_arrow()

    def _create_early(self) -> None:
        """Make views of the queries whose tables are all there now."""
        there = {name.lower() for name in self.tables}
        for query in [q for q in self.waiting if needed_tables(q.sql, self.dialect) <= there]:
            if len(self.early) >= EARLY:
                return
            self.waiting.remove(query)
            view = as_view(query, self.dialect)
            try:
                self.db.sql(view.sql, dialect=self.dialect)
            except ev.UserError:
                continue
            self.early[query.line] = view.name

    # Queries

    def _queries(self, queries: Sequence[Query]) -> None:
        ready = [q for q in queries if self._guarded(q.line, partial(self._prepare, q))]
        if not ready:
            return
        if not self._guarded(ready[0].line, self._disturb):
            return
        for query in ready:
            self._guarded(query.line, partial(self._compare, query))

    def _prepare(self, query: Query) -> None:
        if query in self.waiting:
            self.waiting.remove(query)
        if query.line not in self.early:
            self.db.sql(as_view(query, self.dialect).sql, dialect=self.dialect)

    def _disturb(self) -> None:
        """Remove every third row of every table, then bring them back, table by table."""
        for table in self.tables:
            rows = self.db.read(table).rows()[::3]
            if rows:
                self.db.delete(table, rows)
                self.db.insert(table, rows)

    def _compare(self, query: Query) -> None:
        view = as_view(query, self.dialect)
        audit = self.db.audit(view.name)
        found = rows_of(self.db.read(view.name).to_arrow())
        self.early.pop(query.line, None)
        self.db.sql(f"DROP VIEW {view.name}")
        fault = None if audit.ok else f"the view differs from its query: {audit.views}"
        fault = fault or _fault(query, view, found)
        if fault is None:
            self.result.right += 1
        else:
            self.result.wrong.append((query.line, fault))


def _fault(query: Query, view: View, found: list[tuple[Any, ...]]) -> str | None:
    """What is wrong with an answer; None when nothing is."""
    if any(len(row) != len(query.types) for row in found):
        return f"the answer has {len(found[0])} columns, not {len(query.types)}"
    if isinstance(query.expected, Hashed):
        ordered = put_in_order(view, found) if query.sort == "nosort" else found
        made = digest(ordered, query)
        return None if made == query.expected else f"expected {query.expected}, found {made}"
    if query.sort == "valuesort":
        return _unequal(query, [(v,) for row in query.expected for v in row], _singles(found))
    return _unequal(query, query.expected, found)


def _singles(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(value,) for row in rows for value in row]


def _unequal(query: Query, expected: Sequence[Any], found: Sequence[Any]) -> str | None:
    types = set(query.types) if query.sort == "valuesort" else None

    def numbered(rows: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Each cell with its place, so that it can be compared by its column's type."""
        return [tuple(enumerate(row)) for row in rows]

    def same(wanted: tuple[int, str], value: tuple[int, Any]) -> bool:
        kinds = types or {query.types[wanted[0]]}
        return any(is_cell(wanted[1], value[1], kind) for kind in kinds)

    missing, surplus = difference(numbered(expected), numbered(found), same)
    if not missing and not surplus:
        return None
    shown = [[tuple(v for _, v in row) for row in rows[:3]] for rows in (missing, surplus)]
    return f"missing {shown[0]}, surplus {shown[1]}"


def _files(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m conformance.sqllogic", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--engine", default="duckdb", choices=("duckdb", "spark"))
    parser.add_argument("--dialect", default="sqlite", help="the dialect of the files")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run files, each on a database of its own; 1 when an answer is wrong."""
    asked = _files(arguments)
    failed = False
    for path in asked.files:
        with TemporaryDirectory(prefix="everview-") as folder:
            store = str(Path(folder) / "store")
            with closing(ev.open(store, engine=asked.engine)) as db:
                result = run(read(path), db, asked.dialect)
        for line in _told(path, result):
            print(line)
        failed = failed or bool(result.wrong)
    return 1 if failed else 0


def _told(path: Path, result: Result) -> Iterator[str]:
    for line, fault in result.wrong:
        yield f"{path}:{line}: WRONG: {fault}"
    for line, reason in result.refused:
        yield f"{path}:{line}: refused: {reason}"
    refused, wrong = len(result.refused), len(result.wrong)
    yield f"{path}: {result.right} right, {refused} refused, {wrong} wrong"


if __name__ == "__main__":
    sys.exit(main())
