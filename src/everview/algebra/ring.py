"""What the weights of a relation may be: values of a semiring or of a ring."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Generic, TypeVar, overload

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Semiring(Generic[A]):
    """A semiring, given by its operations: (A, +, ·, 0, 1) (ring-of-databases Def. 2.1).

    Sums may be regrouped and products distribute over them. That is enough to evaluate a query.
    A deletion, and so a delta, needs opposites too: a `Ring`.
    """

    zero: A
    one: A
    add: Callable[[A, A], A]
    multiply: Callable[[A, A], A]

    def sum(self, values: Iterable[A]) -> A:
        """Σ, which is 0 for no values.

        >>> INTEGERS.sum([3, -1])
        2
        """
        return reduce(self.add, values, self.zero)


@dataclass(frozen=True, slots=True)
class Ring(Semiring[A]):
    """A ring with identity: a semiring in which every value has an opposite.

    Its laws are what makes a change of any size, sign and order come out right.
    """

    negate: Callable[[A], A]


NATURALS: Semiring[int] = Semiring(0, 1, operator.add, operator.mul)
"""ℕ: the semiring of multiplicities; 1 + x = 0 has no solution."""

BOOLEANS: Semiring[bool] = Semiring(False, True, operator.or_, operator.and_)
"""𝔹: the semiring of sets, with ∨ for + and ∧ for ·."""

INTEGERS: Ring[int] = Ring(0, 1, operator.add, operator.mul, operator.neg)
"""ℤ: the ring of counts."""

RATIONALS: Ring[Fraction] = Ring(Fraction(0), Fraction(1), operator.add, operator.mul, operator.neg)
"""ℚ: the ring of exact sums."""


@overload
def product(*rings: Ring[A]) -> Ring[tuple[A, ...]]: ...
@overload
def product(*rings: Semiring[A]) -> Semiring[tuple[A, ...]]: ...
def product(*rings: Semiring[A]) -> Semiring[tuple[A, ...]]:
    """A₁ × … × Aₙ: every operation acts on each component by itself; a ring if all of them are.

    An accumulator is a value of such a ring, for example a sum and a count.

    >>> pair = product(INTEGERS, INTEGERS)
    >>> pair.add((10, 1), (5, 1))
    (15, 2)
    """

    def add(left: tuple[A, ...], right: tuple[A, ...]) -> tuple[A, ...]:
        return tuple(ring.add(a, b) for ring, a, b in zip(rings, left, right, strict=True))

    def multiply(left: tuple[A, ...], right: tuple[A, ...]) -> tuple[A, ...]:
        return tuple(ring.multiply(a, b) for ring, a, b in zip(rings, left, right, strict=True))

    zero = tuple(ring.zero for ring in rings)
    one = tuple(ring.one for ring in rings)
    with_opposites = [ring for ring in rings if isinstance(ring, Ring)]
    if len(with_opposites) < len(rings):
        return Semiring(zero, one, add, multiply)

    def negate(value: tuple[A, ...]) -> tuple[A, ...]:
        return tuple(ring.negate(a) for ring, a in zip(with_opposites, value, strict=True))

    return Ring(zero, one, add, multiply, negate)
