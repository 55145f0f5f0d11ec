"""What queries are written with: relations, FROM clauses, SELECT lists and conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from everview.fuzz.scalars import FAMILIES, Atom, Family, Palette, Scalar, family_of
from everview.plan.types import Type

WORD = "<join>"
"""The place of the word between two items, until it is chosen."""
ASKING = ("LEFT SEMI JOIN ", "LEFT ANTI JOIN ")
"""Joins that show no column of their right side."""
JOINS = (
    *("JOIN ", "JOIN ", "INNER JOIN ", "INNER JOIN ", "LEFT JOIN ", "RIGHT JOIN ", "FULL JOIN "),
    *ASKING,
)
MOST_ROWS = 3000
"""A join expected to have more rows than this is not drawn."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a relation, with what is known of its values."""

    name: str
    type: Type
    wild: bool = False
    exact: bool = True
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """Something that FROM can name, and about how many rows it has."""

    name: str
    fields: tuple[Field, ...]
    size: float


@dataclass(frozen=True, slots=True)
class Query:
    """A query with its columns and about how many rows it has."""

    sql: str
    fields: tuple[Field, ...]
    size: float


@dataclass(frozen=True, slots=True)
class From:
    """A FROM clause, its condition if it is written in WHERE, and the columns it makes visible.

    ON sees the columns that are `near`: those after the last comma.
    """

    sql: str
    atoms: tuple[Atom, ...]
    names: tuple[str, ...]
    size: float
    near: tuple[Atom, ...]
    where: str | None = None


def identifier(name: str) -> str:
    """A name as it is written in a query."""
    return name if name.isascii() and name.isidentifier() and len(name) <= 3 else f"`{name}`"


class Writer:
    """Draws queries over the relations known so far."""

    def __init__(
        self,
        rng: Random,
        relations: Sequence[Relation],
        productions: Sequence[Callable[[Writer, int], Query]],
    ) -> None:
        """The first of the productions is the one that ends the nesting."""
        self.rng = rng
        self._productions = productions
        self.relations = list(relations)
        self._aliases = 0

    def query(self, depth: int) -> Query:
        """Any query."""
        if depth <= 1:
            return self._productions[0](self, depth)
        return self.rng.choice(self._productions)(self, depth)

    def alias(self) -> str:
        """An alias that is used nowhere else in the query."""
        self._aliases += 1
        return f"q{self._aliases}"

    def chance(self, probability: float) -> bool:
        """True so often."""
        return self.rng.random() < probability

    # FROM

    def item(self, depth: int) -> tuple[str, Relation]:
        """A table, view, common table expression or subquery, with its alias."""
        alias = self.alias()
        if depth > 1 and self.chance(0.35):
            inner = self.query(depth - 1)
            if self.chance(0.2):
                renamed = [f"r{n}" for n in range(1, len(inner.fields) + 1)]
                fields = tuple(
                    replace(field, name=name)
                    for field, name in zip(inner.fields, renamed, strict=True)
                )
                text = f"({inner.sql}) AS {alias}({', '.join(renamed)})"
                return text, Relation(alias, fields, inner.size)
            return f"({inner.sql}) AS {alias}", Relation(alias, inner.fields, inner.size)
        found = self.rng.choice(self.relations)
        return f"{identifier(found.name)} AS {alias}", replace(found, name=alias)

    def source(self, depth: int) -> From:
        """One item, or several joined."""
        text, first = self.item(depth)
        own = atoms_of(first)
        found = From(text, own, names_of(first), first.size, own)
        for _ in range(self.rng.choice((0, 0, 0, 1, 1, 1, 2, 3))):
            found = self._joined(found, depth)
        return found

    def _joined(self, left: From, depth: int) -> From:
        """One more item, unless the rows would be too many."""
        text, right = self.item(depth)
        own = atoms_of(right)
        product = left.size * right.size
        comma = self.chance(0.25)
        equality = self._equality(left.atoms if comma else left.near, own)
        if product > MOST_ROWS * (1 if equality is None else 4):
            return left
        made = From(
            f"{left.sql}{',' * comma} {WORD}{text}",
            left.atoms + own,
            left.names + names_of(right),
            max(1.0, product / 4),
            own if comma else left.near + own,
            left.where,
        )
        if equality is None or (product <= MOST_ROWS and self.chance(0.3)):
            return self._free(replace(made, size=product), comma=comma)
        if self.chance(0.25):
            equality += f" AND {self.condition(made.atoms if comma else made.near, 1)}"
        if comma:
            where = f"{left.where} AND {equality}" if left.where else equality
            return replace(made, sql=made.sql.replace(WORD, ""), where=where)
        word = self.rng.choice(JOINS)
        joined = f"{made.sql.replace(WORD, word)} ON {equality}"
        if word in ASKING:
            return replace(left, sql=joined)
        return replace(made, sql=joined)

    def _free(self, made: From, *, comma: bool) -> From:
        """A join without an equality: every pair, or those that satisfy a condition."""
        if comma:
            return replace(made, sql=made.sql.replace(WORD, ""))
        if self.chance(0.3):
            return replace(made, sql=made.sql.replace(WORD, "CROSS JOIN "))
        condition = self.condition(made.near, 1)
        joined = made.sql.replace(WORD, "JOIN ")
        return replace(made, sql=f"{joined} ON {condition}", size=made.size / 2)

    def _equality(self, left: Sequence[Atom], right: Sequence[Atom]) -> str | None:
        pairs = [
            (a, b)
            for a in left
            for b in right
            if _meet(a.type, b.type) and not (a.loose or b.loose)
        ]
        if not pairs:
            return None
        chosen = self.rng.sample(pairs, min(len(pairs), self.rng.choice((1, 1, 1, 2))))
        shown = [
            f"{a.text} = {b.text}" if self.chance(0.9) else f"{b.text} <=> {a.text}"
            for a, b in chosen
        ]
        return " AND ".join(shown)

    def condition(self, atoms: Sequence[Atom], depth: int) -> str:
        """A boolean expression."""
        palette = Palette(self.rng, atoms)
        return palette.rendered(palette.condition(depth))

    # SELECT lists

    def outputs(self, atoms: Sequence[Atom], *, strict: bool) -> list[tuple[str, Field]]:
        """One to five columns; a `strict` list has no approximate ones, whose rows are compared."""
        palette = Palette(self.rng, atoms)
        found: list[tuple[str, Field]] = []
        for number in range(1, self.rng.choice((2, 2, 3, 3, 4, 5, 6))):
            loose = [atom for atom in atoms if atom.loose]
            if loose and not strict and self.chance(0.3):
                atom = self.rng.choice(loose)
                found.append((atom.text, Field(f"x{number}", atom.type, loose=True)))
                continue
            scalar = palette.draw(self.family(atoms), self.rng.choice((0, 0, 1, 2)))
            found.append((scalar.text, field_of(f"x{number}", scalar)))
        return found

    def family(self, atoms: Sequence[Atom]) -> Family:
        """A family that mostly has a column."""
        calm = [atom for atom in atoms if not atom.loose]
        if calm and self.chance(0.9):
            return family_of(self.rng.choice(calm).type)
        return self.rng.choice(FAMILIES)

    def where(self, found: From) -> str:
        """The WHERE clause: what joins the items, and now and then a condition."""
        parts = [f"({found.where})"] if found.where else []
        if self.chance(0.4):
            parts.append(self.condition(found.atoms, self.rng.choice((0, 1, 1, 2))))
        return f" WHERE {' AND '.join(parts)}" if parts else ""


def atoms_of(relation: Relation) -> tuple[Atom, ...]:
    """The columns of a FROM item, as expressions name them."""
    return tuple(
        Atom(f"{relation.name}.{identifier(f.name)}", f.type, f.wild, f.exact, f.loose)
        for f in relation.fields
    )


def names_of(relation: Relation) -> tuple[str, ...]:
    """The names of its columns."""
    return tuple(field.name for field in relation.fields)


def _meet(a: Type, b: Type) -> bool:
    """Whether columns of the types are worth joining; integers and decimals meet."""
    if a == b:
        return a != "boolean"
    both = {family_of(a), family_of(b)}
    return both <= {"whole"} or both <= {"whole", "decimal"}


def field_of(name: str, scalar: Scalar) -> Field:
    """An expression as a column of a result."""
    return Field(name, scalar.type, scalar.wild, scalar.exact)


def listed(outputs: Sequence[tuple[str, Field]]) -> str:
    """A SELECT list."""
    return ", ".join(f"{text} AS {field.name}" for text, field in outputs)
