"""Generalized multiset relations, closed under + and natural join (ring-of-databases §3.1)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeAlias, TypeVar

from everview.algebra.monoid_ring import FormalSum, Monoid
from everview.algebra.ring import Semiring

A = TypeVar("A")

Record: TypeAlias = frozenset[tuple[str, Hashable]]
"""A tuple that carries its own schema: a partial function from column names to values."""


RECORDS: Monoid[Record]
"""Records under natural join, without the zero: two records that disagree have no product."""


class Relation(FormalSum[Record, A]):
    """A finite map from records to non-zero values of `ring` (Def. 3.1): A[G] of the records.

    Records of different schemas may meet in one relation. That is what makes + (union) and ∗
    (natural join) total, and the relations over a ring a ring themselves (Prop. 3.3).

    >>> from everview.algebra.ring import INTEGERS
    >>> orders = Relation(INTEGERS, [(record(id=1, customer=7), 1), (record(id=2, customer=8), 1)])
    >>> prices = Relation(INTEGERS, [(record(id=1), 10), (record(id=2), 5)])
    >>> (orders * prices)[record(id=1, customer=7)]
    10
    """

    __slots__ = ()

    def __init__(self, ring: Semiring[A], entries: Iterable[tuple[Record, A]] = ()) -> None:
        super().__init__(ring, RECORDS, entries)

    @classmethod
    def scalar(cls, ring: Semiring[A], value: A) -> Relation[A]:
        """`value` at the record without columns; of 1 it is the identity of ∗."""
        return cls(ring, [(record(), value)])

    def shown(self, element: Record) -> str:
        """A record with its columns in order."""
        return str(dict(sorted(element)))

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
        return self.like(
            (frozenset((new, v) for old, v in row if (new := name(old)) is not None), value)
            for row, value in self
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


RECORDS = Monoid(record(), natural_join)
