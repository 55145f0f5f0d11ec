"""Scalar expressions: a table of productions for each family of types.

An expression is drawn over placeholder columns `c0`, `c1`, … and rendered with what they stand
for: a column, a group key or an aggregate. Its type comes from the rules of the language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

from everview.fuzz.literals import literal
from everview.plan.types import FLOATS, INTEGERS, Column, Type, decimal_parts
from everview.plan.typing import type_of

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
_LISTED: tuple[Family, ...] = ("whole", "text", "date", "decimal")
_RANGED: tuple[Family, ...] = ("whole", "decimal", "date", "text", "fraction")
WIDEST = 30
"""Decimals with more digits are cast down, so that layers of arithmetic stay within 38."""


def family_of(type_: Type) -> Family:
    """The family a type belongs to."""
    return "decimal" if decimal_parts(type_) else _NAMES[type_]


@dataclass(frozen=True, slots=True)
class Atom:
    """What may stand in an expression.

    `wild` values are so extreme that arithmetic on them fails. A double is `exact` when sums of it
    do not depend on the order of addition, and `loose` when it is such a sum of inexact doubles:
    then nothing but its approximate value may be looked at.
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


class Palette:
    """Draws expressions over atoms."""

    def __init__(self, rng: Random, atoms: Sequence[Atom]) -> None:
        self.rng = rng
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
        if parts and parts[0] > WIDEST and "(" in text and not self._wild(text):
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
        inexact = re.search(r"[/*]|AS (DOUBLE|FLOAT)|round|sqrt|degrees|radians", text)
        return not inexact and all(atom.exact for atom in self._used(text))

    def scalar(self, family: Family, depth: int) -> str:
        """An expression over placeholders."""
        if depth <= 0 or self.rng.random() < 0.25:
            return self.leaf(family)
        return self.rng.choice(PRODUCTIONS[family])(self, depth - 1)

    def column(self, family: Family, *, calm: bool = False) -> str | None:
        """A column of the family, None when there is none; `calm` leaves out wild ones."""
        fitting = [
            i
            for i, atom in enumerate(self.atoms)
            if family_of(atom.type) == family and not atom.loose and not (calm and atom.wild)
        ]
        return f"`c{self.rng.choice(fitting)}`" if fitting else None

    def family(self, among: Sequence[Family] = FAMILIES) -> Family:
        """A family, mostly one that has a column."""
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
        choices = PRODUCTIONS["truth"] if depth > 0 else SIMPLE_CONDITIONS
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


def _case(family: Family) -> Production:
    def drawn(p: Palette, depth: int) -> str:
        test, a, b = p.condition(depth), p.scalar(family, depth), p.scalar(family, depth)
        forms = (
            f"CASE WHEN {test} THEN {a} ELSE {b} END",
            f"CASE WHEN {test} THEN {a} END",
            f"IF({test}, {a}, {b})",
            f"CASE {a} WHEN {b} THEN {a} ELSE {b} END",
        )
        return p.rng.choice(forms)

    return drawn


def _choice(family: Family) -> Production:
    def drawn(p: Palette, depth: int) -> str:
        a, b = p.scalar(family, depth), p.scalar(family, depth)
        names = ["COALESCE", "NULLIF"]
        if family not in ("truth", "bytes", "fraction"):
            names += ["GREATEST", "LEAST"]
        return f"{p.rng.choice(names)}({a}, {b})"

    return drawn


def _sum(family: Family) -> Production:
    return lambda p, depth: (
        f"({p.calm(family, depth)} {p.rng.choice('+-')} {p.calm(family, depth)})"
    )


def _product(p: Palette, depth: int) -> str:
    return f"(CAST({p.calm('whole', depth)} AS BIGINT) * {p.rng.choice((p.calm('whole', 0), '3'))})"


def _small_product(family: Family) -> Production:
    return lambda p, depth: f"({p.calm(family, depth)} * {p.calm(family, 0)})"


def _remainder(p: Palette, depth: int) -> str:
    symbol = p.rng.choice(("%", "DIV"))
    return f"({p.calm('whole', depth)} {symbol} {p.rng.choice((2, 3, 5, -2))})"


def _guarded(p: Palette, depth: int) -> str:
    return f"({p.calm('whole', depth)} DIV NULLIF({p.calm('whole', 0)}, 0))"


def _bits(p: Palette, depth: int) -> str:
    return f"({p.scalar('whole', depth)} {p.rng.choice('&|^')} {p.scalar('whole', depth)})"


def _signed(family: Family) -> Production:
    return lambda p, depth: f"{p.rng.choice(('ABS', '-'))}({p.calm(family, depth)})"


def _of(family: Family, *forms: str) -> Production:
    """One of the forms, over an expression of another family."""
    return lambda p, depth: p.rng.choice(forms).format(p.scalar(family, depth))


def _calm_of(family: Family, *forms: str) -> Production:
    """The same over operands that are not extreme."""
    return lambda p, depth: p.rng.choice(forms).format(p.calm(family, depth))


def _difference(p: Palette, depth: int) -> str:
    return f"DATEDIFF({p.scalar('date', depth)}, {p.scalar('date', depth)})"


def _comparison(p: Palette, depth: int) -> str:
    family = p.family()
    other = p.rng.choice(ARITHMETIC[:2]) if family in ARITHMETIC[:2] else family
    symbol = p.rng.choice(("=", "<>", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM"))
    return f"({p.scalar(family, depth)} {symbol} {p.scalar(other, depth)})"


def _null_test(p: Palette, depth: int) -> str:
    return f"({p.scalar(p.family(), depth)} IS {p.rng.choice(('', 'NOT '))}NULL)"


def _connective(p: Palette, depth: int) -> str:
    return f"({p.condition(depth)} {p.rng.choice(('AND', 'OR'))} {p.condition(depth)})"


def _negation(p: Palette, depth: int) -> str:
    return f"(NOT {p.condition(depth)})"


def _membership(p: Palette, depth: int) -> str:
    family = p.family(_LISTED)
    listed = ", ".join(literal(p.rng, family) for _ in range(p.rng.randint(1, 4)))
    return f"({p.scalar(family, depth)} {p.rng.choice(('', 'NOT '))}IN ({listed}))"


def _range(p: Palette, depth: int) -> str:
    family = p.family(_RANGED)
    low, high = literal(p.rng, family), p.leaf(family)
    return f"({p.scalar(family, depth)} {p.rng.choice(('', 'NOT '))}BETWEEN {low} AND {high})"


def _pattern(p: Palette, depth: int) -> str:
    wanted = p.rng.choice(("'a%'", "'%b'", "'_'", "'%a%'", "'%'", "''"))
    return f"({p.scalar('text', depth)} {p.rng.choice(('', 'NOT '))}LIKE {wanted})"


def _text_test(p: Palette, depth: int) -> str:
    name = p.rng.choice(("STARTSWITH", "ENDSWITH", "CONTAINS"))
    return f"{name}({p.scalar('text', depth)}, {p.leaf('text')})"


def _truth_test(p: Palette, depth: int) -> str:
    wanted = p.rng.choice(("TRUE", "FALSE", "NOT TRUE", "NULL"))
    return f"({p.condition(depth)} IS {wanted})"


def _concatenation(p: Palette, depth: int) -> str:
    a, b = p.scalar("text", depth), p.leaf("text")
    return p.rng.choice((f"CONCAT({a}, {b})", f"({a} || {b})", f"CONCAT_WS('-', {a}, {b})"))


def _parsed(p: Palette, _: int) -> str:
    return f"TRY_CAST({p.leaf('text')} AS INT)"


def _moved(family: Family, units: tuple[str, ...]) -> Production:
    def drawn(p: Palette, depth: int) -> str:
        count = p.rng.randint(1, 40)
        unit = p.rng.choice(units)
        return f"({p.calm(family, depth)} {p.rng.choice('+-')} INTERVAL '{count}' {unit})"

    return drawn


def _dated(p: Palette, depth: int) -> str:
    day, count = p.calm("date", depth), p.rng.randint(-40, 40)
    forms = ("DATE_ADD({0}, {1})", "DATE_SUB({0}, {1})", "ADD_MONTHS({0}, {1})", "({0} + {1})")
    return p.rng.choice(forms).format(day, count)


_DATE_PARTS = tuple(f"{name}({{}})" for name in ("YEAR", "MONTH", "DAY", "DAYOFWEEK", "WEEKDAY"))
_TIME_PARTS = tuple(f"{name}({{}})" for name in ("HOUR", "MINUTE", "SECOND"))
_TEXT_FORMS = (
    *("SUBSTRING({}, 1, 1)", "SUBSTRING({}, -2, 2)", "LEFT({}, 2)", "RIGHT({}, 1)", "TRIM({})"),
    *("REPLACE({}, 'a', 'xy')", "LPAD({}, 3, '*')", "RPAD({}, 2, '-')", "REVERSE({})", "MD5({})"),
    *("LTRIM({})", "RTRIM({})", "TRANSLATE({}, 'ab', 'ba')"),
)

PRODUCTIONS: dict[Family, tuple[Production, ...]] = {
    "whole": (
        *(_case("whole"), _choice("whole"), _sum("whole"), _sum("whole"), _product, _remainder),
        *(_guarded, _bits, _signed("whole"), _difference, _of("text", "LENGTH({})", "ASCII({})")),
        *(_of("date", *_DATE_PARTS), _of("stamp", *_TIME_PARTS), _of("truth", "CAST({} AS INT)")),
        _of("whole", "CAST({} AS BIGINT)"),
        *(_of("text", "LOCATE('b', {})"), _parsed, _calm_of("decimal", "CAST({} AS BIGINT)")),
    ),
    "decimal": (
        *(_case("decimal"), _choice("decimal"), _sum("decimal"), _small_product("decimal")),
        *(_signed("decimal"), _calm_of("whole", "CAST({} AS DECIMAL(12,2))", "({} * 0.5)")),
        _calm_of("decimal", "ROUND({}, 1)", "CAST({} AS DECIMAL(20,4))", "({} % 1.3)", "FLOOR({})"),
        _calm_of("decimal", "ROUND({})", "CEIL({})", "({} + 1)", "(2 - {})"),
    ),
    "fraction": (
        *(_case("fraction"), _choice("fraction"), _sum("fraction"), _small_product("fraction")),
        *(_signed("fraction"), _of("whole", "CAST({} AS DOUBLE)", "({} / 4)", "({} / 3)")),
        _of("decimal", "CAST({} AS DOUBLE)"),
        _of("fraction", "({} / 2)", "NANVL(CAST({} AS DOUBLE), CAST(0 AS DOUBLE))"),
        _of("fraction", "CAST({} AS DOUBLE)", "SQRT(ABS({}))", "CAST({} AS FLOAT)"),
    ),
    "text": (
        *(_case("text"), _choice("text"), _concatenation, _of("text", *_TEXT_FORMS)),
        *(_of("text", *_TEXT_FORMS), _of("whole", "CAST({} AS STRING)")),
        *(_of("date", "CAST({} AS STRING)"), _of("truth", "CAST({} AS STRING)")),
        *(_of("decimal", "CAST({} AS STRING)"), _of("local", "CAST({} AS STRING)")),
    ),
    "truth": (
        *(_comparison, _comparison, _comparison, _comparison, _null_test, _connective, _negation),
        *(_connective, _membership, _range, _pattern, _text_test, _truth_test, _case("truth")),
        *(_choice("truth"), _of("truth", "{}"), _of("fraction", "ISNAN({})")),
    ),
    "date": (
        *(_case("date"), _choice("date"), _moved("date", ("DAY", "MONTH", "YEAR")), _dated),
        *(_calm_of("stamp", "CAST({} AS DATE)"), _calm_of("local", "CAST({} AS DATE)")),
        _calm_of("date", "LAST_DAY({})", "TRUNC({}, 'MONTH')", "TRUNC({}, 'YEAR')"),
    ),
    "stamp": (
        *(_case("stamp"), _choice("stamp"), _moved("stamp", ("HOUR", "DAY", "MINUTE", "MONTH"))),
        _calm_of("stamp", "DATE_TRUNC('HOUR', {})", "DATE_TRUNC('DAY', {})"),
        _of("date", "CAST({} AS TIMESTAMP)"),
    ),
    "local": (
        *(_case("local"), _choice("local"), _moved("local", ("HOUR", "DAY", "SECOND"))),
        _of("date", "CAST({} AS TIMESTAMP_NTZ)"),
        _calm_of("stamp", "CAST({} AS TIMESTAMP_NTZ)"),
    ),
    "bytes": (_case("bytes"), _choice("bytes"), _of("text", "CAST({} AS BINARY)")),
}
"""What an expression of each family may be; a further function is one more entry."""

SIMPLE_CONDITIONS: tuple[Production, ...] = (_comparison, _comparison, _null_test, _membership)
"""Conditions that are not nested."""
