"""Which tables a case has: plain types, keys, NOT NULL, and the values of every column."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from everview.expr.types import Column, Type
from everview_fuzz.case import Row, Table
from everview_fuzz.generate.values import Domain, domain

COMMON: tuple[Type, ...] = ("int", "bigint", "string", "decimal(10,2)", "date", "double", "boolean")
RARE: tuple[Type, ...] = (
    "tinyint",
    "smallint",
    "float",
    "decimal(5,0)",
    "decimal(18,4)",
    "decimal(38,10)",
    "binary",
    "timestamp",
    "timestamp_ntz",
    *("array<int>", "array<string>"),
)
KEYS: tuple[Type, ...] = ("bigint", "int", "bigint", "string", "date", "smallint", "decimal(10,2)")
PORTABLE: tuple[Type, ...] = ("int", "bigint", "int", "string", "date", "boolean")
"""Types whose operators mean the same on Spark and in DuckDB's own SQL."""
NAMES = ("a", "b", "c", "d", "e", "f", "g", "h")
ODD_NAMES = ("order", "two words", "Größe", "a.b", "Group")


@dataclass(frozen=True, slots=True)
class DrawnTable:
    """A table, and from what its rows are drawn."""

    table: Table
    domains: tuple[Domain, ...]

    def row(self, rng: Random) -> Row:
        """A row that may be stored, as far as it alone can tell."""
        return tuple(each.draw(rng) for each in self.domains)


def schema(rng: Random, *, portable: bool) -> tuple[DrawnTable, ...]:
    """Two to four tables, among them at least one with an integer to join on."""
    count = rng.randint(2, 4)
    return tuple(_table(rng, f"t{n}", portable) for n in range(1, count + 1))


def copy(rng: Random, drawn: DrawnTable, name: str) -> DrawnTable:
    """A table made from some columns of another one."""
    places = sorted(rng.sample(range(len(drawn.domains)), rng.randint(1, len(drawn.domains))))
    columns = tuple(drawn.table.columns[at] for at in places)
    table = Table(name, columns, copied=drawn.table.name)
    return DrawnTable(table, tuple(drawn.domains[at] for at in places))


def _table(rng: Random, name: str, portable: bool) -> DrawnTable:
    keyed = rng.random() < 0.5
    types = [rng.choice(("int", "bigint"))]
    common, rare = (PORTABLE, PORTABLE) if portable else (COMMON, RARE)
    types += [rng.choice(common if rng.random() < 0.65 else rare) for _ in range(rng.randint(1, 5))]
    key_width = 1 + (keyed and rng.random() < 0.25)
    if keyed:
        keys = [type_ for type_ in KEYS if type_ in PORTABLE or not portable]
        types[:0] = [rng.choice(keys) for _ in range(key_width)]
    columns = tuple(
        Column(_name(rng, index), type_) for index, type_ in enumerate(types[: len(NAMES)])
    )
    key = tuple(column.name for column in columns[:key_width]) if keyed else ()
    required = tuple(c.name for c in columns if c.name in key or rng.random() < 0.15)
    domains = tuple(
        domain(
            rng,
            column.type,
            nullable=column.name not in required,
            wild=rng.random() < 0.12,
            many=column.name in key and key_width == 1,
        )
        for column in columns
    )
    return DrawnTable(Table(name, columns, key, required), domains)


def _name(rng: Random, index: int) -> str:
    if rng.random() < 0.03 and index < len(ODD_NAMES):
        return ODD_NAMES[index]
    return NAMES[index]
