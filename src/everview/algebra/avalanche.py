"""The avalanche ring: functions from a monoid to its monoid ring, which hand bindings on.

In a product f ∗ g, what f gives is bound when g is evaluated. So bindings go from left to right,
and ∗ is not commutative, even where A and G are (ring-of-databases §2.3).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from everview.algebra.monoid_ring import FormalSum

A = TypeVar("A")
G = TypeVar("G", bound=Hashable)
M = TypeVar("M", bound="FormalSum")  # type: ignore[type-arg]


class Avalanche(Generic[G, M]):
    """A function from G to A[G] (Def. 2.5), with f(b)(x) = 0 where b · x was taken out of G.

    `zero` is the 0 of the A[G] that it maps to.

    >>> from everview.algebra.monoid_ring import Monoid
    >>> from everview.algebra.ring import INTEGERS
    >>> words = Monoid("", lambda v, w: v + w)
    >>> zero = FormalSum(INTEGERS, words)
    >>> letter = Avalanche.constant(zero.like([("a", 2)]))
    >>> length = Avalanche(zero, lambda b: zero.like([("", len(b))]))
    >>> (letter * length)("xy"), (length * letter)("xy")
    (FormalSum('a' ↦ 6), FormalSum('a' ↦ 4))
    """

    __slots__ = ("_at", "zero")

    def __init__(self, zero: M, at: Callable[[G], M]) -> None:
        self.zero = zero
        self._at = at

    @classmethod
    def constant(cls, value: M) -> Avalanche[G, M]:
        """The function that ignores its input, but for what is inconsistent with it.

        These are a subring that is isomorphic to A[G] (Prop. 2.8).
        """
        compose = value.monoid.multiply
        return cls(
            value.like(()),
            lambda b: value.like((x, v) for x, v in value if compose(b, x) is not None),
        )

    @classmethod
    def one(cls, zero: M) -> Avalanche[G, M]:
        """1, which is the 1 of A[G] at every binding."""
        return cls.constant(zero.like([(zero.monoid.one, zero.ring.one)]))

    def __call__(self, b: G) -> M:
        """The value at a binding."""
        return self._at(b)

    def __add__(self, other: Avalanche[G, M]) -> Avalanche[G, M]:
        """f + g : b ↦ f(b) + g(b)."""
        return Avalanche(self.zero, lambda b: self(b) + other(b))

    def __neg__(self) -> Avalanche[G, M]:
        return Avalanche(self.zero, lambda b: -self(b))

    def __sub__(self, other: Avalanche[G, M]) -> Avalanche[G, M]:
        return self + -other

    def __mul__(self, other: Avalanche[G, M]) -> Avalanche[G, M]:
        """f ∗ g : b ↦ x ↦ Σ_{x = y·z} f(b)(y) · g(b·y)(z), over y with b·y in G."""
        times, compose = self.zero.ring.multiply, self.zero.monoid.multiply

        def at(b: G) -> M:
            return self.zero.like(
                (x, times(v, w))
                for y, v in self(b)
                if (bound := compose(b, y)) is not None
                for z, w in other(bound)
                if (x := compose(y, z)) is not None
            )

        return Avalanche(self.zero, at)
