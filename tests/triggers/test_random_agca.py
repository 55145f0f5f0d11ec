"""Random AGCA under triggers: after every change it is what the calculus says."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa

import everview as ev
from cases import THOROUGH
from everview.errors import UserError
from everview.lang.agca.evaluate import rows_of, value_of
from everview.lang.agca.normal_form import monomials_of
from everview.lang.agca.syntax import Definition, Sum
from everview.lang.agca.views import checked_definitions

SEEDS = 3000 if THOROUGH else 100
WIDTHS = {"R": 2, "S": 2, "T": 1, "U": 3}
_SIGNS = ("=", "<>", "<", "<=", ">", ">=")


class Text:
    """A random definition over one to three relations, the same one perhaps more than once."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.number = 0

    def definition(self) -> str:
        """The text of a view; not every one binds what it uses."""
        terms, shared = [], set[str]()
        for at in range(self.random.choice([1, 1, 1, 2])):
            factors, bound = self._product(1, ())
            terms.append(" * ".join(factors))
            shared = bound if not at else shared & bound
        keys = [name for name in sorted(shared) if self._maybe(0.4)]
        sign = self.random.choice([" + ", " - "])
        return f"q[{', '.join(keys)}] := {sign.join(terms)}"

    def _product(self, depth: int, outside: tuple[str, ...]) -> tuple[list[str], set[str]]:
        atoms = [self._atom() for _ in range(self.random.choice([1, 2, 2, 3]))]
        factors = [text for text, _ in atoms]
        own = set[str]().union(*(names for _, names in atoms))
        bound = {*own, *outside}
        for _ in range(self.random.choice([0, 1, 1, 2, 3])):
            match self.random.choice(["compare", "compare", "number", "assign", "sum", "add"]):
                case "compare":
                    sides = self._term(bound), self._term(bound)
                    factors.append(f"({sides[0]} {self.random.choice(_SIGNS)} {sides[1]})")
                case "assign":
                    name = self.random.choice("xyzuv")
                    factors.append(f"({name} := {self._term(bound)})")
                    bound.add(name)
                    own.add(name)
                case "sum" if depth:
                    inner, _ = self._product(depth - 1, tuple(bound))
                    factors.append(f"Sum({' * '.join(inner)})")
                case "add" if depth:
                    inner, _ = self._product(depth - 1, tuple(bound))
                    factors.append(f"({self._term(bound)} - Sum({' * '.join(inner)}))")
                case _:
                    factors.append(f"({self._term(bound)})")
        return factors, own

    def _atom(self) -> tuple[str, set[str]]:
        relation = self.random.choice([*WIDTHS])
        arguments, bound = [], set()
        for _ in range(WIDTHS[relation]):
            name = self.random.choice(["x", "x", "y", "y", "z", "w", "_", "?"])
            if name == "?":
                self.number += self._maybe(0.7)  # else one that is bound elsewhere, too
                name = f"n{self.number}"
                arguments.append(f"{name}?")
            else:
                arguments.append(name)
            if name != "_":
                bound.add(name)
        return f"{relation}({', '.join(arguments)})", bound

    def _term(self, bound: set[str]) -> str:
        one = self.random.choice([*sorted(bound), *sorted(bound), "1", "-2", "0.5"])
        if self._maybe(0.6):
            return one
        return f"{one} {self.random.choice('+-*')} {self.random.choice([*sorted(bound), '3'])}"

    def _maybe(self, chance: float) -> bool:
        return self.random.random() < chance


def expected(definition: Definition, tables: dict[str, Counter[Any]]) -> dict[Any, Fraction]:
    """The groups, and by definition the value of each."""
    database = {name: list(rows.items()) for name, rows in tables.items()}
    groups = rows_of(definition, monomials_of(definition), database)
    for key, value in groups.items():
        if None not in key:
            bound = dict(zip(definition.key_names, key, strict=True))
            assert value_of(Sum(definition.body), database, **bound) == value
    return groups


def change(running: Any, random: Random, tables: dict[str, Counter[Any]]) -> None:
    """Rows come, or some or all of those that are there go, in one of the ways that there are."""
    read = [name for name in WIDTHS if f"on +{name}(" in running.text]
    if not read:
        return
    relation = random.choice(read)
    held = list(tables[relation].elements())
    sign = -1 if held and random.random() < 0.45 else 1
    if sign < 0:
        rows = random.sample(held, random.choice([1, len(held)]))
    else:
        values = [0, 1, 1, 2, -1, None, Decimal("0.50"), Decimal("-1.5")]
        rows = [
            tuple(random.choice(values) for _ in range(WIDTHS[relation]))
            for _ in range(random.choice([1, 2, 4]))
        ]
    by_sign = running.insert if sign > 0 else running.delete
    match random.choice(["rows", "weights", "arrow"]):
        case "rows":
            by_sign(relation, rows)
        case "weights":
            running.apply([(relation, row, sign) for row in rows])
        case _:
            columns = [pa.array(c, pa.decimal128(9, 2)) for c in zip(*rows, strict=True)]
            by_sign(relation, pa.table(columns, [f"c{at}" for at in range(len(columns))]))
    for row in rows:
        tables[relation][row] += sign
        if not tables[relation][row]:
            del tables[relation][row]


def follow(seed: int) -> bool:
    """Whether a random text is a view; then it is right after every change."""
    random = Random(seed)
    text = Text(random).definition()
    try:
        [definition] = checked_definitions(text)
    except UserError as refused:
        if refused.code != "G003":
            raise
        return False
    running = ev.triggers(text)
    tables: dict[str, Counter[Any]] = {name: Counter() for name in WIDTHS}
    for _ in range(6):
        change(running, random, tables)
        if random.random() < 0.3:
            taken = running.snapshot()
            running = ev.triggers(text)
            running.restore(taken)
        rows = running.result()
        found = {row[:-1]: Fraction(row[-1]) for row in rows}
        assert len(found) == len(rows), text
        assert found == expected(definition, tables), (text, tables)
    return True


def test_random_views_are_what_the_calculus_says():
    kept = sum(map(follow, range(SEEDS)))
    assert kept > SEEDS // 2
