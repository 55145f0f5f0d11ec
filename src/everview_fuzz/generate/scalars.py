"""Scalar expressions over columns: how they are drawn, rendered and typed.

An expression is drawn over placeholder columns `c0`, `c1`, … and rendered with what they stand
for: a column, a group key or an aggregate. Its type comes from the rules of the language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

from everview.expr.type_inference import type_of
from everview.expr.types import FLOATS, INTEGERS, Column, Type, decimal_parts
from everview_fuzz.generate.values import literal

Family: TypeAlias = Literal[
    "whole", "decimal", "fraction", "text", "truth", "date", "stamp", "local", "bytes"
]
FAMILIES: tuple[Family, ...] = (
    *("whole", "whole", "whole", "decimal", "decimal", "fraction", "text", "text", "truth"),
    *("date", "stamp", "local", "bytes"),
)
ARITHMETIC: tuple[Family, ...] = ("whole", "decimal", "fraction")
_NAMES: dict[Type, Family] = {
    **dict.fromkeys(INTEGERS, "whole"),
    **dict.fromkeys(FLOATS, "fraction"),
    "string": "text",
    "boolean": "truth",
    "date": "date",
    "timestamp": "stamp",
    "timestamp_ntz": "local",
    "binary": "bytes",
}
DECIMAL_MAX_DIGITS = 30
"""Decimals with more digits are cast down, so that layers of arithmetic stay within 38."""


def family_of(type_: Type) -> Family:
    """The family a type belongs to."""
    return "decimal" if decimal_parts(type_) else _NAMES[type_]


@dataclass(frozen=True, slots=True)
class Atom:
    """What may stand in an expression.

    `wild` values are so extreme that arithmetic on them fails. A double is `exact` when sums of it
    do not depend on the order of addition, and `loose` when it is such a sum of inexact doubles:
    then nothing but its approximate value may be looked at. Arrays are loose too.
    """

    text: str
    type: Type
    wild: bool = False
    exact: bool = True
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Scalar:
    """A rendered expression with what is known of its values."""

    text: str
    type: Type
    wild: bool
    exact: bool
    constant: bool


@dataclass(frozen=True, slots=True)
class Kit:
    """What expressions are made of: families of types, and productions for each of them."""

    families: tuple[Family, ...]
    productions: Mapping[Family, tuple[Production, ...]]
    simple: tuple[Production, ...]
    portable: bool = False

    @property
    def numbers(self) -> tuple[Family, ...]:
        """The families that have sums."""
        return tuple(family for family in ARITHMETIC if family in self.families)

    def among(self, families: Sequence[Family]) -> tuple[Family, ...]:
        """Those of the families that it has."""
        return tuple(family for family in families if family in self.families)


_INEXACT = r"[/*]|AS (DOUBLE|FLOAT)|ROUND|SQRT|DIVIDE|MONTHS_BETWEEN|\b(LN|LOG10|POWER|EXP)\("


class Palette:
    """Draws expressions over atoms."""

    def __init__(self, rng: Random, atoms: Sequence[Atom], kit: Kit) -> None:
        self.rng = rng
        self.kit = kit
        self.atoms = tuple(atoms)
        self._schema = tuple(Column(f"c{i}", atom.type) for i, atom in enumerate(atoms))

    def draw(self, family: Family, depth: int) -> Scalar:
        """An expression of a family, rendered."""
        text = self._over_columns(lambda: self.scalar(family, depth))
        found = type_of(text, self._schema)
        if found is None or found == "void":
            text = self.leaf(family)
            found = type_of(text, self._schema)
        parts = decimal_parts(found or "")
        if parts and parts[0] > DECIMAL_MAX_DIGITS and "(" in text and not self._wild(text):
            text, found = f"CAST({text} AS DECIMAL(24,4))", "decimal(24,4)"
        assert found is not None, text
        constant = not self._used(text)
        return Scalar(self.rendered(text), found, self._wild(text), self._exact(text), constant)

    def rendered(self, text: str) -> str:
        """The text with atoms in the place of placeholders."""
        return re.sub(r"`c(\d+)`", lambda match: self.atoms[int(match[1])].text, text)

    def _used(self, text: str) -> list[Atom]:
        return [self.atoms[int(number)] for number in re.findall(r"`c(\d+)`", text)]

    def _wild(self, text: str) -> bool:
        return any(atom.wild for atom in self._used(text))

    def _exact(self, text: str) -> bool:
        """Whether a double is certainly a small multiple of a power of two."""
        inexact = re.search(_INEXACT, text)
        return not inexact and all(atom.exact for atom in self._used(text))

    def scalar(self, family: Family, depth: int) -> str:
        """An expression over placeholders."""
        if depth <= 0 or self.rng.random() < 0.25:
            return self.leaf(family)
        return self.rng.choice(self.kit.productions[family])(self, depth - 1)

    def column(self, family: Family, *, calm: bool = False) -> str | None:
        """A column of the family, None when there is none; `calm` leaves out wild ones."""
        fitting = [
            i
            for i, atom in enumerate(self.atoms)
            if not atom.loose and family_of(atom.type) == family and not (calm and atom.wild)
        ]
        return f"`c{self.rng.choice(fitting)}`" if fitting else None

    def family(self, among: Sequence[Family] = FAMILIES) -> Family:
        """A family, mostly one that has a column."""
        among = self.kit.among(among)
        there = [f for a in self.atoms if not a.loose and (f := family_of(a.type)) in among]
        return self.rng.choice(there if there and self.rng.random() < 0.85 else among)

    def leaf(self, family: Family) -> str:
        """A column where there is one, else a literal."""
        if self.rng.random() < 0.85:
            found = self.column(family)
            if found is not None:
                return found
        return literal(self.rng, family)

    def calm(self, family: Family, depth: int) -> str:
        """An operand of arithmetic: nothing extreme, or it would nearly always fail."""
        for _ in range(4):
            text = self.scalar(family, depth)
            if not self._wild(text):
                return text
        return self.column(family, calm=True) or literal(self.rng, family)

    def condition(self, depth: int) -> str:
        """A boolean expression over placeholders that is rarely a plain column."""
        choices = self.kit.productions["truth"] if depth > 0 else self.kit.simple
        return self._over_columns(lambda: self.rng.choice(choices)(self, max(0, depth - 1)))

    def _over_columns(self, draw: Callable[[], str]) -> str:
        """What is drawn, mostly something that depends on a column."""
        text = draw()
        for _ in range(3):
            if self._used(text) or not self.atoms:
                break
            text = draw()
        return text


Production: TypeAlias = Callable[[Palette, int], str]
