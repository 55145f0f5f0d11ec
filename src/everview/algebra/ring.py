"""What the weights of a relation may be: values of a commutative ring."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Generic, TypeVar

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Ring(Generic[A]):
    """A commutative ring with identity, given by its operations: (A, +, ·, −, 0, 1).

    Its laws are what makes a change of any size, sign and order come out right: sums may be
    regrouped, products distribute over them, and every value has an opposite.
    """

    zero: A
    one: A
    add: Callable[[A, A], A]
    multiply: Callable[[A, A], A]
    negate: Callable[[A], A]

    def sum(self, values: Iterable[A]) -> A:
        """Σ, which is 0 for no values.

        >>> INTEGERS.sum([3, -1])
        2
        """
        return reduce(self.add, values, self.zero)


INTEGERS: Ring[int] = Ring(0, 1, operator.add, operator.mul, operator.neg)
"""ℤ: the ring of counts."""

RATIONALS: Ring[Fraction] = Ring(Fraction(0), Fraction(1), operator.add, operator.mul, operator.neg)
"""ℚ: the ring of exact sums."""


def product(*rings: Ring[A]) -> Ring[tuple[A, ...]]:
    """A₁ × … × Aₙ: every operation acts on each component by itself.

    An accumulator is a value of such a ring, for example a sum and a count.

    >>> pair = product(INTEGERS, INTEGERS)
    >>> pair.add((10, 1), (5, 1))
    (15, 2)
    """

    def add(left: tuple[A, ...], right: tuple[A, ...]) -> tuple[A, ...]:
        return tuple(ring.add(a, b) for ring, a, b in zip(rings, left, right, strict=True))

    def multiply(left: tuple[A, ...], right: tuple[A, ...]) -> tuple[A, ...]:
        return tuple(ring.multiply(a, b) for ring, a, b in zip(rings, left, right, strict=True))

    def negate(value: tuple[A, ...]) -> tuple[A, ...]:
        return tuple(ring.negate(a) for ring, a in zip(rings, value, strict=True))

    zero = tuple(ring.zero for ring in rings)
    one = tuple(ring.one for ring in rings)
    return Ring(zero, one, add, multiply, negate)
