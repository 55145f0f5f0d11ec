"""The context in which queries are drawn: relations, columns, names, chance, and a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from everview.expr.types import Type
from everview.lang.sql.parse.functions import Function
from everview_fuzz.generate.scalars import Atom, Family, Kit, Palette, Scalar, family_of

COST_BUDGET = 7
"""What a query may spend on operators that read their input more than once."""
SUBQUERY_COST = 3
"""What a subquery in an expression costs."""
MAX_NESTING = 2
"""How deep subqueries in expressions may nest."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a relation; `wild`, `exact` and `loose` as for an `Atom`."""

    name: str
    type: Type
    wild: bool = False
    exact: bool = True
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """Something that FROM can name, about how many rows it has, and the column that is its key.

    Its `cost` is about how often its query reads a table.
    """

    name: str
    fields: tuple[Field, ...]
    size: float
    key: str | None = None
    cost: float = 1.0


@dataclass(frozen=True, slots=True)
class Query:
    """A query with its columns, about how many rows it has, and how often it reads a table."""

    sql: str
    fields: tuple[Field, ...]
    size: float
    cost: float = 1.0


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


class QueryContext:
    """Draws queries over the relations known so far."""

    def __init__(
        self,
        rng: Random,
        relations: Sequence[Relation],
        productions: Sequence[Callable[[QueryContext, int], Query]],
        kit: Kit,
        functions: Sequence[Function] = (),
    ) -> None:
        """The first of the productions is the one that ends the nesting."""
        self.rng = rng
        self.kit = kit
        self.functions = tuple(functions)
        self._productions = productions
        self.relations = list(relations)
        self._aliases = 0
        self._nested = 0
        self._budget = COST_BUDGET
        self._read = 0.0

    def query(self, depth: int) -> Query:
        """Any query."""
        if depth <= 1:
            return self._productions[0](self, depth)
        return self.rng.choice(self._productions)(self, depth)

    def relation(self) -> Relation:
        """A relation to read."""
        found = self.rng.choice(self.relations)
        self._read += found.cost
        return found

    @property
    def cost(self) -> float:
        """About how often a table is read by what is drawn so far."""
        return (1 + COST_BUDGET - self._budget) * max(1.0, self._read)

    def alias(self) -> str:
        """An alias that is used nowhere else in the query."""
        self._aliases += 1
        return f"q{self._aliases}"

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.rng.random() < probability

    def pay(self, cost: int) -> bool:
        """Pay for an operator; False when the budget is too small."""
        if cost > self._budget:
            return False
        self._budget -= cost
        return True

    @property
    def may_nest(self) -> bool:
        """Whether there is room for one more subquery in an expression."""
        return self._nested < MAX_NESTING and self._budget >= SUBQUERY_COST

    @contextmanager
    def nested(self) -> Iterator[None]:
        """While a subquery in an expression is drawn."""
        self._nested += 1
        self._budget -= SUBQUERY_COST
        try:
            yield
        finally:
            self._nested -= 1

    def palette(self, atoms: Sequence[Atom]) -> Palette:
        """Expressions over these columns."""
        return Palette(self.rng, atoms, self.kit)

    def condition(self, atoms: Sequence[Atom], depth: int) -> str:
        """A boolean expression."""
        palette = self.palette(atoms)
        return palette.rendered(palette.condition(depth))

    def family(self, atoms: Sequence[Atom]) -> Family:
        """A family that mostly has a column."""
        calm = [atom for atom in atoms if not atom.loose]
        if calm and self.chance(0.9):
            return family_of(self.rng.choice(calm).type)
        return self.rng.choice(self.kit.families)

    def families(self, most: int) -> list[Family]:
        """Some families of types that any query can have columns of."""
        common = self.kit.families[:10]
        return [self.rng.choice(common) for _ in range(self.rng.randint(1, most))]

    def comparable_pairs(
        self, left: Sequence[Atom], right: Sequence[Atom]
    ) -> list[tuple[Atom, Atom]]:
        """The pairs of columns that are worth comparing."""
        return [
            (a, b)
            for a in left
            for b in right
            if not (a.loose or b.loose) and comparable(a.type, b.type)
        ]


def atoms_of(relation: Relation) -> tuple[Atom, ...]:
    """The columns of a FROM item, as expressions name them."""
    return tuple(
        Atom(f"{relation.name}.{identifier(f.name)}", f.type, f.wild, f.exact, f.loose)
        for f in relation.fields
    )


def names_of(relation: Relation) -> tuple[str, ...]:
    """The names of its columns."""
    return tuple(field.name for field in relation.fields)


def comparable(a: Type, b: Type) -> bool:
    """Whether columns of the types are worth joining; integers go with decimals."""
    if a == b:
        return a != "boolean"
    both = {family_of(a), family_of(b)}
    return both <= {"whole"} or both <= {"whole", "decimal"}


def field_of(name: str, scalar: Scalar) -> Field:
    """An expression as a column of a result."""
    return Field(name, scalar.type, scalar.wild, scalar.exact)


def field_like(name: str, atom: Atom) -> Field:
    """A column as a column of a result."""
    return Field(name, atom.type, atom.wild, atom.exact, atom.loose)


def listed(outputs: Sequence[tuple[str, Field]]) -> str:
    """A SELECT list."""
    return ", ".join(f"{text} AS {field.name}" for text, field in outputs)
