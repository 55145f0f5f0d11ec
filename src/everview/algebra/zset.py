"""Z-sets: tables, changes and differences of tables as one kind of value (dbsp §4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K")


class ZSet(Generic[T]):
    """A finite map from rows to non-zero weights.

    No row ever has weight zero: the constructor drops it, so no operator has to.

    >>> ZSet([("a", 1), ("b", 2), ("a", -1)])
    ZSet({'b': 2})
    """

    __slots__ = ("_weights",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, entries: Iterable[tuple[T, int]] = ()) -> None:
        weights: dict[T, int] = {}
        for row, weight in entries:
            weights[row] = weights.get(row, 0) + weight
        self._weights = {row: weight for row, weight in weights.items() if weight}

    @classmethod
    def bag(cls, rows: Iterable[T]) -> ZSet[T]:
        """Every row as often as it is listed.

        >>> ZSet.bag("abba")
        ZSet({'a': 2, 'b': 2})
        """
        return cls((row, 1) for row in rows)

    def __iter__(self) -> Iterator[tuple[T, int]]:
        return iter(self._weights.items())

    def __len__(self) -> int:
        """How many different rows there are, whatever their weights."""
        return len(self._weights)

    def __contains__(self, row: object) -> bool:
        return row in self._weights

    def __getitem__(self, row: T) -> int:
        """The weight of `row`, which is 0 for a row that is not there."""
        return self._weights.get(row, 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZSet) and self._weights == other._weights

    def __repr__(self) -> str:
        return f"ZSet({self._weights or ''})"

    def __add__(self, other: ZSet[T]) -> ZSet[T]:
        """Weights added row by row: the only write there is.

        >>> ZSet.bag("ab") + ZSet([("b", -1), ("c", 1)])
        ZSet({'a': 1, 'c': 1})
        """
        return ZSet(entry for side in (self, other) for entry in side)

    def __neg__(self) -> ZSet[T]:
        return self.scale(-1)

    def __sub__(self, other: ZSet[T]) -> ZSet[T]:
        return self + -other

    def scale(self, factor: int) -> ZSet[T]:
        """Every weight times `factor`: n · R."""
        return ZSet((row, factor * weight) for row, weight in self)

    def flat_map(self, f: Callable[[T], Iterable[tuple[U, int]]]) -> ZSet[U]:
        """Replace every row by weighted rows; every linear operator is one of these.

        >>> ZSet([("ab", 2)]).flat_map(lambda word: [(letter, 1) for letter in word])
        ZSet({'a': 2, 'b': 2})
        """
        return ZSet((out, w * v) for row, w in self for out, v in f(row))

    def map(self, f: Callable[[T], U]) -> ZSet[U]:
        """Replace every row by one row, adding the weights of those that meet: π(R).

        >>> ZSet([((1, "x"), 1), ((1, "y"), 1)]).map(lambda row: row[0])
        ZSet({1: 2})
        """
        return ZSet((f(row), weight) for row, weight in self)

    def filter(self, predicate: Callable[[T], bool]) -> ZSet[T]:
        """The rows that satisfy `predicate`, with their weights: σₚ(R)."""
        return ZSet((row, weight) for row, weight in self if predicate(row))

    def product(self, other: ZSet[U]) -> ZSet[tuple[T, U]]:
        """All pairs of rows, weights multiplied: L × R."""
        return ZSet(((a, b), v * w) for a, v in self for b, w in other)

    def join(
        self, other: ZSet[U], left_key: Callable[[T], K], right_key: Callable[[U], K]
    ) -> ZSet[tuple[T, U]]:
        """The pairs of rows that have equal keys, weights multiplied: L ⋈ R.

        >>> people, visits = ZSet.bag([("ann", 1), ("bob", 2)]), ZSet([((1, "home"), 3)])
        >>> people.join(visits, lambda person: person[1], lambda visit: visit[0])
        ZSet({(('ann', 1), (1, 'home')): 3})
        """
        by_key: dict[K, list[tuple[U, int]]] = {}
        for row, weight in other:
            by_key.setdefault(right_key(row), []).append((row, weight))
        return ZSet(((a, b), v * w) for a, v in self for b, w in by_key.get(left_key(a), ()))

    def distinct(self) -> ZSet[T]:
        """The rows of positive weight, once each: δ(R) (dbsp Def. 4.3)."""
        return ZSet((row, 1) for row, weight in self if weight > 0)

    def is_set(self) -> bool:
        """Whether every row occurs exactly once (dbsp Def. 4.1)."""
        return all(weight == 1 for _, weight in self)

    def is_positive(self) -> bool:
        """Whether this is a bag: no row has a negative weight (dbsp Def. 4.2)."""
        return all(weight > 0 for _, weight in self)


def distinct_change(old: ZSet[T], change: ZSet[T]) -> ZSet[T]:
    """δ(R + ΔR) − δ(R), reading `old` only at the rows of `change`: H of dbsp Prop. 4.7.

    >>> distinct_change(ZSet([("a", 2), ("b", 1)]), ZSet([("a", -1), ("b", -1), ("c", 4)]))
    ZSet({'b': -1, 'c': 1})
    """
    return ZSet((row, (old[row] + w > 0) - (old[row] > 0)) for row, w in change)
