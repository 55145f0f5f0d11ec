"""Random views of sums and counts, and random streams of rows for the tables that they read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

TABLES = {
    "r": "k INT, a INT, d DECIMAL(6,2), s STRING",
    "s": "k INT, b BIGINT NOT NULL, e DECIMAL(5,1), day DATE",
    "t": "k INT NOT NULL, c INT, f DECIMAL(4,3), s STRING NOT NULL",
}
_KINDS = {
    "r": {"number": ["k", "a", "d"], "whole": ["k", "a"], "text": ["s"], "date": []},
    "s": {"number": ["k", "b", "e"], "whole": ["k", "b"], "text": [], "date": ["day"]},
    "t": {"number": ["k", "c", "f"], "whole": ["k", "c"], "text": ["s"], "date": []},
}
_SIGNS = ("=", "<>", "<", "<=", ">", ">=")
DAYS = [date(2023, 12, 31), date(2024, 1, 1), date(2024, 2, 29)]
TEXTS = ["x", "xy", "it's"]


def declarations() -> str:
    """The tables, without keys: a row may be there many times."""
    return "".join(f"CREATE TABLE {name} ({columns});\n" for name, columns in TABLES.items())


class Query:
    """One random query over one to three relations, the same one perhaps more than once."""

    def __init__(self, random: Random) -> None:
        self.random = random
        number = random.choice([1, 1, 2, 2, 3])
        self.sides = {f"q{at}": random.choice("rst") for at in range(number)}

    def text(self) -> str:
        """The query."""
        keys = {f"g{at}": self._key() for at in range(self.random.choice([0, 1, 1, 2]))}
        totals = [f"{self._total()} AS v{at}" for at in range(self.random.randint(1, 3))]
        shown = ", ".join([*(f"{text} AS {name}" for name, text in keys.items()), *totals])
        text = f"SELECT {shown} FROM {self._joins()}"
        if self._maybe(0.7):
            text += f" WHERE {self._condition(2)}"
        if keys:
            text += f" GROUP BY {', '.join(keys.values())}"
        if keys and self._maybe(0.15):
            text += " HAVING COUNT(*) > 1"
        return text

    def _joins(self) -> str:
        (first, table), *others = self.sides.items()
        text, before = f"{table} {first}", [first]
        for name, table in others:
            known = self._maybe(0.8) and f"{self.random.choice(before)}.k = {name}.k"
            on = known or self._comparison([*before, name])
            if self._maybe(0.2):
                on += f" AND {self._comparison([*before, name])}"
            text += f" JOIN {table} {name} ON {on}"
            before.append(name)
        return text

    # Values

    def _column(self, kind: str, sides: list[str] | None = None) -> str | None:
        found = [
            f"{side}.{column}"
            for side in sides or self.sides
            for column in _KINDS[self.sides[side]][kind]
        ]
        return self.random.choice(found) if found else None

    def _key(self) -> str:
        kind = self.random.choice(["number", "number", "text", "date"])
        column = self._column(kind) or self._column("whole")
        assert column is not None
        if column.endswith(".day") and self._maybe(0.4):
            return f"EXTRACT(YEAR FROM {column})"
        return column

    def _number(self, depth: int, sides: list[str] | None = None) -> str:
        kind = self.random.choice(["column", "column", "constant", "sum", "product", "minus"])
        if not depth or kind == "column":
            return str(self._column("number", sides))
        match kind:
            case "constant":
                return self.random.choice(["1", "2", "0", "-1", "0.5", "-1.25"])
            case "minus":
                return f"-({self._number(depth - 1, sides)})"
            case "product":
                return f"{self._inner(depth, sides)} * {self._inner(depth, sides)}"
            case _:
                sign = self.random.choice("+-")
                return f"{self._inner(depth, sides)} {sign} {self._inner(depth, sides)}"

    def _inner(self, depth: int, sides: list[str] | None) -> str:
        return f"({self._number(depth - 1, sides)})"

    def _total(self) -> str:
        match self.random.choice(["sum", "sum", "case", "count", "rows", "avg", "count case"]):
            case "sum":
                return f"SUM({self._number(2)})"
            case "case":
                return f"SUM({self._case()})"
            case "count case":
                return f"COUNT({self._case()})"
            case "count":
                return f"COUNT({self._column(self.random.choice(['number', 'whole']))})"
            case "avg":
                return f"AVG({self._column('whole')})"
            case _:
                return "COUNT(*)"

    def _case(self) -> str:
        text = f"CASE WHEN {self._condition(1)} THEN {self._whole()}"
        if self._maybe(0.4):
            text += f" WHEN {self._condition(1)} THEN {self._whole()}"
        if self._maybe(0.5):
            text += f" ELSE {self._whole()}"
        return text + " END"

    def _whole(self) -> str:
        constant = self.random.choice(["1", "0", "2", "-1"])
        return constant if self._maybe(0.4) else str(self._column("whole"))

    # Conditions

    def _condition(self, depth: int, sides: list[str] | None = None) -> str:
        if not depth or self._maybe(0.4):
            return self._comparison(sides)
        match self.random.choice(["and", "or", "not"]):
            case "not":
                return f"NOT ({self._condition(depth - 1, sides)})"
            case word:
                left, right = (self._condition(depth - 1, sides) for _ in range(2))
                return f"({left}) {word.upper()} ({right})"

    def _comparison(self, sides: list[str] | None = None) -> str:
        sign = self.random.choice(_SIGNS)
        match self.random.choice(["number", "number", "same", "text", "date", "null", "in"]):
            case "same":
                column = self._column("number", sides)
                return f"{column} {sign} {column}"
            case "text" if column := self._column("text", sides):
                other = self.random.choice([column, "'x'", "'it''s'"])
                pattern = f"{column} LIKE 'x%'"
                return pattern if self._maybe(0.2) else f"{column} {sign} {other}"
            case "date" if column := self._column("date", sides):
                return f"{column} {sign} DATE '2024-01-01'"
            case "null":
                column = self._column(self.random.choice(["number", "whole"]), sides)
                return f"{column} IS {'NOT ' if self._maybe(0.5) else ''}NULL"
            case "in":
                return f"{self._column('whole', sides)} {self._not()}IN (0, 1)"
            case _:
                return f"{self._number(1, sides)} {sign} {self._number(1, sides)}"

    def _not(self) -> str:
        return "NOT " if self._maybe(0.3) else ""

    def _maybe(self, chance: float) -> bool:
        return self.random.random() < chance


class Stream:
    """Random changes, and the rows that are there after them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.rows: dict[str, Counter[tuple[Any, ...]]] = {name: Counter() for name in TABLES}

    def changes(self) -> Iterator[tuple[str, int, list[tuple[Any, ...]]]]:
        """Rows of one table that come, or that go; now and then all that are there go."""
        for _ in range(self.random.randint(1, 3)):
            table = self.random.choice([*TABLES])
            held = list(self.rows[table].elements())
            gone = self.random.random() < 0.4 and bool(held)
            if gone:
                number = self.random.choice([1, 2, len(held)])
                rows = self.random.sample(held, min(number, len(held)))
            else:
                rows = [self.row(table) for _ in range(self.random.choice([1, 1, 3, 6]))]
            for row in rows:
                self.rows[table][row] += -1 if gone else 1
            yield table, -1 if gone else 1, rows

    def row(self, table: str) -> tuple[Any, ...]:
        """A row, whose columns that may be NULL often are."""
        return tuple(self._value(each) for each in TABLES[table].split(", "))

    def _value(self, column: str) -> Any:
        random = self.random
        if "NOT NULL" not in column and random.random() < 0.25:
            return None
        kind = column.split(" ")[1]
        if kind.startswith("DECIMAL"):
            scale = int(kind[-2])
            return Decimal(random.choice([0, 5, -5, 10**scale, -25, 3])).scaleb(-scale)
        if kind == "STRING":
            return random.choice(TEXTS)
        return random.choice(DAYS) if kind == "DATE" else random.randint(-1, 2)
