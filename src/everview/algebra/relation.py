"""Generalized multiset relations, closed under + and natural join (ring-of-databases §3.1)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeAlias, TypeVar

from everview.algebra.ring import Ring

A = TypeVar("A")

Record: TypeAlias = frozenset[tuple[str, Hashable]]
"""A tuple that carries its own schema: a partial function from column names to values."""


class Relation(Generic[A]):
    """A finite map from records to non-zero values of `ring` (Def. 3.1).

    Records of different schemas may meet in one relation. That is what makes + and ∗ total, and
    the relations over a ring a commutative ring themselves (Prop. 3.3).

    >>> from everview.algebra.ring import INTEGERS
    >>> orders = Relation(INTEGERS, [(record(id=1, customer=7), 1), (record(id=2, customer=8), 1)])
    >>> prices = Relation(INTEGERS, [(record(id=1), 10), (record(id=2), 5)])
    >>> (orders * prices)[record(id=1, customer=7)]
    10
    """

    __slots__ = ("_values", "ring")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, ring: Ring[A], entries: Iterable[tuple[Record, A]] = ()) -> None:
        values: dict[Record, A] = {}
        for row, value in entries:
            values[row] = ring.add(values.get(row, ring.zero), value)
        self.ring = ring
        self._values = {row: value for row, value in values.items() if value != ring.zero}

    @classmethod
    def scalar(cls, ring: Ring[A], value: A) -> Relation[A]:
        """`value` at the record without columns; of 1 it is the identity of ∗."""
        return cls(ring, [(record(), value)])

    def __iter__(self) -> Iterator[tuple[Record, A]]:
        return iter(self._values.items())

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, row: Record) -> A:
        """The value of `row`, which is 0 for a record that is not there."""
        return self._values.get(row, self.ring.zero)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Relation) and self._values == other._values

    def __repr__(self) -> str:
        shown = ", ".join(f"{dict(sorted(row))} ↦ {value}" for row, value in self)
        return f"Relation({shown})"

    def __add__(self, other: Relation[A]) -> Relation[A]:
        """R + S: union, with the values of equal records added."""
        return Relation(self.ring, (entry for side in (self, other) for entry in side))

    def __neg__(self) -> Relation[A]:
        return Relation(self.ring, ((row, self.ring.negate(value)) for row, value in self))

    def __sub__(self, other: Relation[A]) -> Relation[A]:
        return self + -other

    def __mul__(self, other: Relation[A]) -> Relation[A]:
        """R ∗ S: natural join, with the values multiplied."""
        return Relation(
            self.ring,
            (
                (joined, self.ring.multiply(v, w))
                for a, v in self
                for b, w in other
                if (joined := natural_join(a, b)) is not None
            ),
        )

    def project(self, columns: Iterable[str]) -> Relation[A]:
        """Sum over every other column: GROUP BY `columns`, with the values as what is summed.

        >>> from everview.algebra.ring import INTEGERS
        >>> sales = Relation(INTEGERS, [(record(day=1, item=1), 4), (record(day=1, item=2), 6)])
        >>> sales.project(["day"])
        Relation({'day': 1} ↦ 10)
        """
        kept = frozenset(columns)
        return self.rename(lambda column: column if column in kept else None)

    def rename(self, name: Callable[[str], str | None]) -> Relation[A]:
        """Give every column the name `name` gives it, leaving out those for which that is None."""
        return Relation(
            self.ring,
            (
                (frozenset((new, v) for old, v in row if (new := name(old)) is not None), value)
                for row, value in self
            ),
        )


def record(**columns: Hashable) -> Record:
    """The record with these columns; without any, the empty record ⟨⟩."""
    return frozenset(columns.items())


def natural_join(left: Record, right: Record) -> Record | None:
    """The record that extends both, or None when they disagree on a column.

    >>> sorted(natural_join(record(a=1, b=2), record(b=2, c=3)))
    [('a', 1), ('b', 2), ('c', 3)]
    >>> natural_join(record(b=2), record(b=3)) is None
    True
    """
    joined = left | right
    return joined if len(joined) == len({column for column, _ in joined}) else None
