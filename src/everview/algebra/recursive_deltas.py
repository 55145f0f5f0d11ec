"""Recursive memoization of deltas: a function followed by additions alone.

From ring-of-databases §1.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Generic, TypeVar

from everview.algebra.stream import Group

X = TypeVar("X", bound=Group)
Y = TypeVar("Y", bound=Group)


class MemoizedDeltas(Generic[X, Y]):
    """f(x) and its deltas Δʲf(x, u₁, …, uⱼ) for j < k and all updates uᵢ, kept while x changes.

    It is right for an f whose k-th deltas do not depend on x. After the start, f is not called.

    >>> square = MemoizedDeltas(lambda x: x * x, 3, (+1, -1), order=2)
    >>> square.update(+1)
    >>> square[()], square[(+1,)], square[(-1,)], square[(+1, -1)]
    (16, 9, -7, -2)
    """

    __slots__ = ("_memo", "order", "updates")

    def __init__(self, f: Callable[[X], Y], x: X, updates: Iterable[X], order: int) -> None:
        self.updates = tuple(updates)
        self.order = order
        self._memo = {
            taken: delta(f, taken)(x)
            for j in range(order + 1)
            for taken in product(self.updates, repeat=j)
        }

    def __getitem__(self, taken: tuple[X, ...]) -> Y:
        """Δʲf(x, u₁, …, uⱼ) at the current x; f(x) itself for no updates."""
        return self._memo[taken]

    def update(self, u: X) -> None:
        """x := x + u. In order of increasing j, Δʲf += Δʲ⁺¹f(·, u), so each reads an old value."""
        for taken in self._memo:
            if len(taken) < self.order:
                self._memo[taken] = self._memo[taken] + self._memo[(*taken, u)]


def delta(f: Callable[[X], Y], updates: tuple[X, ...]) -> Callable[[X], Y]:
    """Δʲf(·, u₁, …, uⱼ), with Δʲ⁺¹f(x, θ, u) = Δʲf(x + u, θ) − Δʲf(x, θ).

    >>> delta(lambda x: x * x, (+1,))(3), delta(lambda x: x * x, (+1, -1))(3)
    (7, -2)
    """
    if not updates:
        return f
    before, u = delta(f, updates[:-1]), updates[-1]
    return lambda x: before(x + u) - before(x)
