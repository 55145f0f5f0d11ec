"""Transactions: a table of productions, each some changes of one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal, TypeAlias

from everview.expr.types import is_nested
from everview_fuzz.case import Change, Contents, Row, Statement, Transaction
from everview_fuzz.generate.schemas import DrawnTable

MAX_ROWS = 60
"""A table is not filled beyond this, one big change aside."""


class ChangeGenerator:
    """Draws changes that the contents allow, and keeps the contents up to date."""

    def __init__(self, rng: Random, tables: Sequence[DrawnTable]) -> None:
        self.rng = rng
        self.tables: dict[str, DrawnTable] = {}
        self.contents = Contents()
        self.gone: dict[str, list[Row]] = {}
        for each in tables:
            self.create(each)

    def create(self, drawn: DrawnTable) -> None:
        """One more table."""
        self.tables[drawn.table.name] = drawn
        self.contents.create(drawn.table)
        self.gone[drawn.table.name] = []

    def transaction(self) -> Transaction:
        """Changes of one or more tables; now and then one that must be refused."""
        if self.rng.random() < 0.08:
            broken = self._forbidden()
            if broken is not None:
                return broken
        changes: list[Change | Statement] = []
        while not changes:
            changes = self._changes()
        return Transaction(tuple(changes))

    def _changes(self) -> list[Change | Statement]:
        changes: list[Change | Statement] = []
        chosen = self.rng.sample(list(self.tables), self.rng.randint(1, len(self.tables)))
        for name in chosen:
            for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
                changes += self.rng.choice(PRODUCTIONS)(self, self.tables[name])
        return changes

    def filling(self, drawn: DrawnTable) -> Transaction:
        """The first rows of a table."""
        return Transaction(tuple(self.insert(drawn, self.rng.randint(1, 25))))

    def present(self, drawn: DrawnTable) -> list[Row]:
        """The rows that are there, each as often as it is."""
        return list(self.contents.rows[drawn.table.name].elements())

    def make(self, kind: str, drawn: DrawnTable, rows: Sequence[Row]) -> list[Change]:
        """A change of these rows, done; nothing for no rows."""
        if not rows:
            return []
        assert kind in ("insert", "delete", "upsert")
        change = Change(kind, drawn.table.name, tuple(rows))  # type: ignore[arg-type]
        self.contents.apply(change)
        if kind == "delete":
            self.gone[drawn.table.name] += rows
        return [change]

    def fresh(self, drawn: DrawnTable, count: int) -> list[Row]:
        """New rows, with keys that are not taken."""
        table = drawn.table
        taken = {table.key_of(row) for row in self.contents.rows[table.name]}
        rows: list[Row] = []
        for _ in range(count):
            row = drawn.row(self.rng)
            if table.key:
                if table.key_of(row) in taken:
                    continue
                taken.add(table.key_of(row))
            rows.append(row)
        return rows

    def insert(self, drawn: DrawnTable, count: int) -> list[Change]:
        """Insert about so many new rows."""
        return self.make("insert", drawn, self.fresh(drawn, count))

    def _forbidden(self) -> Transaction | None:
        """A transaction that breaks a constraint, beside changes that break none."""
        drawn = self.rng.choice(list(self.tables.values()))
        broken = self.rng.choice(VIOLATIONS)(self, drawn)
        if broken is None:
            return None
        kept, gone = self.contents.copy(), {name: list(rows) for name, rows in self.gone.items()}
        before = self.insert(drawn, 3)
        self.contents.apply(broken)
        refused = self.contents.problem() is not None
        self.contents, self.gone = kept, gone
        return Transaction((*before, broken), forbidden=True) if refused else None


Production: TypeAlias = Callable[[ChangeGenerator, DrawnTable], Sequence[Change | Statement]]


def _insert(c: ChangeGenerator, drawn: DrawnTable) -> list[Change]:
    room = len(c.present(drawn)) < MAX_ROWS
    return c.insert(drawn, c.rng.choice((1, 1, 2, 5, 12))) if room else []


def _delete(c: ChangeGenerator, drawn: DrawnTable) -> list[Change]:
    rows = c.present(drawn)
    return c.make("delete", drawn, c.rng.sample(rows, min(len(rows), c.rng.choice((1, 1, 2, 6)))))


def _update(c: ChangeGenerator, drawn: DrawnTable) -> list[Change]:
    """Rows replaced by others that differ in one column, as UPDATE does."""
    rows = c.present(drawn)
    old = c.rng.sample(rows, min(len(rows), c.rng.choice((1, 2, 5))))
    at = c.rng.randrange(len(drawn.domains))
    if drawn.table.columns[at].name in drawn.table.key:
        return []
    new = [(*row[:at], drawn.domains[at].draw(c.rng), *row[at + 1 :]) for row in old]
    return c.make("delete", drawn, old) + c.make("insert", drawn, new)


def _upsert(c: ChangeGenerator, drawn: DrawnTable) -> list[Change]:
    """Rows by key: some that are there, some that are not, some twice."""
    table, rows = drawn.table, c.present(drawn)
    if not table.key:
        return _insert(c, drawn)
    width = len(table.key)
    known = [table.key_of(row) for row in c.rng.sample(rows, min(len(rows), 3))]
    fresh = c.fresh(drawn, c.rng.choice((0, 1, 3)))
    replaced = [(*key, *drawn.row(c.rng)[width:]) for key in known]
    twice = [(*table.key_of(row), *drawn.row(c.rng)[width:]) for row in fresh[:1]]
    return c.make("upsert", drawn, [*fresh, *replaced, *(twice if c.rng.random() < 0.3 else ())])


def _duplicate(c: ChangeGenerator, drawn: DrawnTable) -> list[Change]:
    rows = c.present(drawn)
    if drawn.table.key or not rows or len(rows) > MAX_ROWS:
        return _insert(c, drawn)
    return c.make("insert", drawn, [c.rng.choice(rows)] * c.rng.choice((1, 2, 3)))


def _empty(c: ChangeGenerator, drawn: DrawnTable) -> list[Change]:
    return c.make("delete", drawn, c.present(drawn)) if c.rng.random() < 0.4 else []


def _vanish(c: ChangeGenerator, drawn: DrawnTable) -> list[Change]:
    """All rows that share one value of one column go."""
    rows = c.present(drawn)
    if not rows:
        return []
    at = c.rng.randrange(len(drawn.domains))
    value = c.rng.choice(rows)[at]
    return c.make("delete", drawn, [row for row in rows if row[at] is value or row[at] == value])


def _return(c: ChangeGenerator, drawn: DrawnTable) -> list[Change]:
    """Rows that were deleted come back."""
    table = drawn.table
    taken = {table.key_of(row) for row in c.contents.rows[table.name]}
    rows: list[Row] = []
    for row in c.gone[table.name][-12:]:
        if not table.key or table.key_of(row) not in taken:
            taken.add(table.key_of(row))
            rows.append(row)
    return c.make("insert", drawn, rows) if len(c.present(drawn)) < MAX_ROWS else []


def _cancel(c: ChangeGenerator, drawn: DrawnTable) -> list[Change]:
    """Changes that undo each other: rows come and go, or go and come."""
    new, rows = c.fresh(drawn, 3), c.present(drawn)
    old = c.rng.sample(rows, min(len(rows), 3))
    come = c.make("insert", drawn, new) + c.make("delete", drawn, new)
    return come + c.make("delete", drawn, old) + c.make("insert", drawn, old)


def _big(c: ChangeGenerator, drawn: DrawnTable) -> list[Change]:
    room = c.rng.random() < 0.3 and len(c.present(drawn)) < MAX_ROWS
    return c.insert(drawn, 50) if room else []


KINDS: tuple[Literal["delete", "update", "merge", "copy"], ...]
KINDS = ("delete", "update", "merge", "copy")


def _statement(c: ChangeGenerator, drawn: DrawnTable) -> list[Change | Statement]:
    """What a subquery decides, if the constraints bear it."""
    pairs = [
        (own.name, other.table.name, read.name)
        for other in c.tables.values()
        for own in drawn.table.columns
        for read in other.table.columns
        if own.type == read.type and own.type not in ("float", "double", "boolean")
        if not is_nested(own.type)
    ]
    free = [each.name for each in drawn.table.columns if each.name not in drawn.table.key]
    if not pairs or not free or len(c.present(drawn)) > MAX_ROWS:
        return []
    column, other, read = c.rng.choice(pairs)
    kind = c.rng.choice(KINDS)
    target, row = c.rng.choice(free), drawn.row(c.rng)
    made = Statement(kind, drawn.table.name, column, other, read, row, target)
    kept = c.contents.copy()
    c.contents.apply(made)
    if c.contents.problem() is None and c.contents.rows != kept.rows:
        return [made]
    c.contents = kept
    return []


PRODUCTIONS: tuple[Production, ...] = (
    *(_insert, _insert, _insert, _delete, _delete, _update, _update, _upsert, _upsert),
    *(_duplicate, _empty, _vanish, _return, _return, _cancel, _big, _statement, _statement),
)
"""What a transaction may do to a table."""


def _absent(c: ChangeGenerator, drawn: DrawnTable) -> Change | None:
    row = drawn.row(c.rng)
    gone = c.contents.rows[drawn.table.name][row] == 0
    return Change("delete", drawn.table.name, (row,)) if gone else None


def _taken_key(c: ChangeGenerator, drawn: DrawnTable) -> Change | None:
    rows = c.present(drawn)
    if not drawn.table.key or not rows:
        return None
    return Change("insert", drawn.table.name, (c.rng.choice(rows),))


def _null(c: ChangeGenerator, drawn: DrawnTable) -> Change | None:
    required = [i for i, x in enumerate(drawn.table.columns) if x.name in drawn.table.not_null]
    if not required:
        return None
    at, row = c.rng.choice(required), drawn.row(c.rng)
    return Change("insert", drawn.table.name, ((*row[:at], None, *row[at + 1 :]),))


VIOLATIONS: tuple[Callable[[ChangeGenerator, DrawnTable], Change | None], ...] = (
    _absent,
    _taken_key,
    _null,
)
"""What a transaction may not do to a table."""
