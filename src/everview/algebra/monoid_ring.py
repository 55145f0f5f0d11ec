"""The monoid ring A[G]: finite sums of elements of a monoid, with values of a semiring."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from everview.algebra.ring import Ring, Semiring
from everview.errors import UserError

A = TypeVar("A")
G = TypeVar("G", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Monoid(Generic[G]):
    """A monoid, given by its identity and its operation.

    Where the operation gives None, the product is an element that was taken out of the monoid,
    such as its zero. What is left must be downward-closed: if g · h is there, so are g and h
    (Lemma 2.9). Then A[G] of what is left is a semiring again.
    """

    one: G
    multiply: Callable[[G, G], G | None]


class FormalSum(Generic[G, A]):
    """An element of A[G]: a finite map from a monoid to non-zero values of a semiring (Def. 2.3).

    The product is the convolution α ∗ β : x ↦ Σ_{x = y·z} α(y) · β(z). With it A[G] is a semiring,
    a ring if A is one, and commutative if both A and G are (Prop. 2.4).

    >>> from everview.algebra.ring import INTEGERS
    >>> powers = Monoid(0, lambda i, j: i + j)
    >>> x_plus_1 = FormalSum(INTEGERS, powers, [(1, 1), (0, 1)])
    >>> x_plus_1 * x_plus_1
    FormalSum(2 ↦ 1, 1 ↦ 2, 0 ↦ 1)
    """

    __slots__ = ("_values", "monoid", "ring")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, ring: Semiring[A], monoid: Monoid[G], entries: Iterable[tuple[G, A]] = ()
    ) -> None:
        values: dict[G, A] = {}
        for element, value in entries:
            values[element] = ring.add(values.get(element, ring.zero), value)
        self.ring = ring
        self.monoid = monoid
        self._values = {each: value for each, value in values.items() if value != ring.zero}

    def like(self, entries: Iterable[tuple[G, A]]) -> Self:
        """Another element of the same A[G]."""
        made = object.__new__(type(self))
        FormalSum.__init__(made, self.ring, self.monoid, entries)
        return made

    def __iter__(self) -> Iterator[tuple[G, A]]:
        return iter(self._values.items())

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, element: G) -> A:
        """The value of an element, which is 0 for one that is not there."""
        return self._values.get(element, self.ring.zero)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FormalSum) and self._values == other._values

    def __repr__(self) -> str:
        shown = ", ".join(f"{self.shown(each)} ↦ {value}" for each, value in self)
        return f"{type(self).__name__}({shown})"

    def shown(self, element: G) -> str:
        """An element of the monoid, as it is printed."""
        return repr(element)

    def __add__(self, other: Self) -> Self:
        """α + β: the values of equal elements added."""
        return self.like(entry for side in (self, other) for entry in side)

    def __neg__(self) -> Self:
        if not isinstance(self.ring, Ring):
            raise UserError(
                "A002",
                "the values of a semiring have no opposites",
                remedy="use a ring, such as the integers",
            )
        negate = self.ring.negate
        return self.like((each, negate(value)) for each, value in self)

    def __sub__(self, other: Self) -> Self:
        return self + -other

    def __mul__(self, other: Self) -> Self:
        """α ∗ β: the convolution product, the only one that distributes over + (Prop. 2.16)."""
        times, compose = self.ring.multiply, self.monoid.multiply
        return self.like(
            (element, times(v, w))
            for y, v in self
            for z, w in other
            if (element := compose(y, z)) is not None
        )

    def scale(self, factor: A) -> Self:
        """aα: every value times `factor`, from the left; the action of A as scalars (Def. 2.13)."""
        return self.like((each, self.ring.multiply(factor, value)) for each, value in self)
