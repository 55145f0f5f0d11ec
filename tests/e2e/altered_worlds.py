"""A table that is altered at random, beside a plain model of what it and its views hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from everview.database.database import Database

WIDER = {"int": "bigint", "bigint": "decimal(20,0)", "decimal(20,0)": "decimal(24,2)"}
Action = tuple[str, int, int]


@dataclass
class Held:
    """A column of the model: what it is called now, and its type."""

    name: str
    type: str


@dataclass
class AlteredWorld:
    """A store, and the same in Python: rows are lists of values, one per column that is there.

    `k` and `v` are read by views, whatever they are called; the others by nobody.
    """

    path: str
    opened: Callable[[str], Database]
    columns: list[Held] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    table: str = "t"
    view: str = "grouped"
    fresh: int = 0
    past: dict[int, tuple[str, Counter[tuple[Any, ...]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.db = self.opened(self.path)
        self.k, self.v = Held("k", "int"), Held("v", "int")
        self.columns = [Held("id", "int"), self.k, self.v]
        self.db.sql(
            "CREATE TABLE t (id INT PRIMARY KEY, k INT, v INT);"
            "CREATE TABLE names (k INT, name STRING);"
            "CREATE VIEW grouped AS SELECT k, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY k;"
            "CREATE VIEW starred AS SELECT * FROM t;"
            "CREATE VIEW outer_joined AS SELECT t.id, x.name FROM names x RIGHT JOIN t USING (k);"
            "CREATE VIEW over AS SELECT SUM(n) AS n FROM grouped"
        )
        self.db.insert("names", [(0, "zero"), (1, "one"), (1, "uno"), (None, "none")])
        self.mark()

    def mark(self) -> None:
        """Remember what this epoch holds."""
        self.past[self.db.epoch] = self.table, Counter(map(tuple, self.rows))

    def apply(self, action: Action) -> None:
        """One random action, on both sides."""
        kind, first, second = action
        getattr(self, f"do_{kind}")(first, second)
        self.mark()

    def extra(self, at: int) -> int | None:
        """The place of a column that no view reads."""
        return 3 + at % (len(self.columns) - 3) if len(self.columns) > 3 else None

    def do_insert(self, first: int, second: int) -> None:
        self.fresh += 1
        row = [self.fresh, None if first == 3 else first % 3, second]
        row += [
            None if (first + at) % 3 == 0 else second + at for at in range(len(self.columns) - 3)
        ]
        self.db.insert(self.table, [tuple(row)])
        self.rows.append([self.value(v, c) for v, c in zip(row, self.columns, strict=True)])

    def value(self, value: Any, column: Held) -> Any:
        """A value as one of a column's type."""
        if value is None or not column.type.startswith("decimal"):
            return value
        return Decimal(value).quantize(Decimal("0.01") if "2)" in column.type else Decimal(1))

    def do_delete(self, first: int, _: int) -> None:
        if self.rows:
            gone = self.rows.pop(first % len(self.rows))
            self.db.sql(f"DELETE FROM {self.table} WHERE {self.columns[0].name} = {gone[0]}")

    def do_update(self, first: int, second: int) -> None:
        place = self.extra(second) if first % 2 else 2
        if self.rows and place is not None:
            row = self.rows[first % len(self.rows)]
            name, key = self.columns[place].name, self.columns[0].name
            self.db.sql(f"UPDATE {self.table} SET {name} = {second} WHERE {key} = {row[0]}")
            row[place] = self.value(second, self.columns[place])

    def do_add(self, first: int, second: int) -> None:
        if len(self.columns) > 6:
            return
        name = next(n for n in ("a", "b", "c", "d", "e") if n not in self.names())
        default = "" if first % 2 else f" DEFAULT {second}"
        self.db.sql(f"ALTER TABLE {self.table} ADD COLUMN {name} INT{default}")
        self.columns.append(Held(name, "int"))
        for row in self.rows:
            row.append(None if first % 2 else second)

    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def do_drop(self, first: int, _: int) -> None:
        place = self.extra(first)
        if place is not None:
            self.db.sql(f"ALTER TABLE {self.table} DROP COLUMN {self.columns[place].name}")
            del self.columns[place]
            for row in self.rows:
                del row[place]

    def do_rename(self, first: int, second: int) -> None:
        column = self.columns[first % len(self.columns)]
        to = next(
            n
            for n in ("a", "b", "k", "x", "v", "id", "y", "z")[second % 3 :]
            if n not in self.names()
        )
        self.db.sql(f"ALTER TABLE {self.table} RENAME COLUMN {column.name} TO {to}")
        column.name = to

    def do_widen(self, first: int, _: int) -> None:
        place = self.extra(first)
        if place is not None and self.columns[place].type in WIDER:
            column = self.columns[place]
            column.type = WIDER[column.type]
            self.db.sql(f"ALTER TABLE {self.table} ALTER COLUMN {column.name} TYPE {column.type}")
            for row in self.rows:
                row[place] = self.value(row[place], column)

    def do_retable(self, first: int, _: int) -> None:
        self.table, old = f"t{first}" if self.table == "t" else "t", self.table
        self.db.sql(f"ALTER TABLE {old} RENAME TO {self.table}")

    def do_review(self, _: int, __: int) -> None:
        self.view, old = ("grouped" if self.view != "grouped" else "summed"), self.view
        self.db.sql(f"ALTER VIEW {old} RENAME TO {self.view}")

    def do_truncate(self, _: int, __: int) -> None:
        self.db.sql(f"TRUNCATE TABLE {self.table}")
        self.rows.clear()

    def do_compact(self, _: int, __: int) -> None:
        self.db.compact()

    def do_reopen(self, _: int, __: int) -> None:
        self.db.close()
        self.db = self.opened(self.path)

    def check(self) -> None:
        """The table and its views hold what the model says, and so did every epoch."""
        assert [c.name for c in self.db.catalog.schema(self.table)] == self.names()
        read = {name: Counter(self.db.read(name).rows()) for name in (self.table, *self.views())}
        assert read == {self.table: Counter(map(tuple, self.rows)), **self.views()}
        assert self.db.audit().ok
        fed: Counter[tuple[Any, ...]] = Counter()
        for *row, weight, _ in self.db.changes(self.table).rows():
            fed[tuple(row)] += weight
        assert {row: n for row, n in fed.items() if n} == read[self.table]

    def check_past(self) -> None:
        """Every epoch holds what it held."""
        for epoch, (table, rows) in self.past.items():
            assert Counter(self.db.read(table, epoch=epoch).rows()) == rows, epoch

    def views(self) -> dict[str, Counter[tuple[Any, ...]]]:
        """What each view holds, by the meaning of its query."""
        groups: dict[Any, list[Any]] = {}
        for row in self.rows:
            groups.setdefault(row[1], []).append(row[2])
        named = {0: ["zero"], 1: ["one", "uno"]}
        return {
            self.view: Counter((k, len(v), sum(v)) for k, v in groups.items()),
            "starred": Counter(tuple(row[:3]) for row in self.rows),
            "outer_joined": Counter((r[0], n) for r in self.rows for n in named.get(r[1], [None])),
            "over": Counter([(len(self.rows) or None,)]),
        }
