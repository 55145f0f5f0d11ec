"""Streams of values of a group, by definition and without regard to cost (dbsp §2, 3 and 5).

Every operator here is causal: what comes out at time t depends on nothing after t. So a stream may
compute its values in the order of time and keep them, and a loop may read its own past.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Generic, Protocol, Self, TypeVar, overload

from everview.errors import UserError


class Group(Protocol):
    """An abelian group: values that can be added, and taken back."""

    def __add__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...
    def __neg__(self) -> Self: ...


A = TypeVar("A", bound=Group)
B = TypeVar("B", bound=Group)
C = TypeVar("C", bound=Group)


class Stream(Generic[A]):
    """A value for each time 0, 1, 2, …, in a group whose neutral element is `zero` (Def. 2.1).

    >>> Stream(lambda t: t * t, 0).prefix(5)
    [0, 1, 4, 9, 16]
    """

    __slots__ = ("_at", "_busy", "_past", "zero")

    def __init__(self, at: Callable[[int], A], zero: A) -> None:
        self.zero = zero
        self._at = at
        self._past: list[A] = []
        self._busy = False

    @classmethod
    def of(cls, values: Iterable[A], zero: A) -> Stream[A]:
        """These values, and zero ever after.

        >>> Stream.of([3, 1], 0).prefix(4)
        [3, 1, 0, 0]
        """
        kept = tuple(values)
        return cls(lambda t: kept[t] if t < len(kept) else zero, zero)

    def __getitem__(self, t: int) -> A:
        """s[t]. Values come in the order of time, so that no recursion is deeper than a circuit."""
        while len(self._past) <= t:
            self._past.append(self._next())
        return self._past[t]

    def _next(self) -> A:
        if self._busy:
            raise UserError(
                "A001",
                f"a stream reads its own value at time {len(self._past)} to compute it",
                remedy="put a delay on the feedback edge",
            )
        self._busy = True
        try:
            return self._at(len(self._past))
        finally:
            self._busy = False

    def prefix(self, length: int) -> list[A]:
        """The first `length` values, by which streams are compared."""
        return [self[t] for t in range(length)]

    def __add__(self, other: Stream[A]) -> Stream[A]:
        return Stream(lambda t: self[t] + other[t], self.zero)

    def __sub__(self, other: Stream[A]) -> Stream[A]:
        return Stream(lambda t: self[t] - other[t], self.zero)

    def __neg__(self) -> Stream[A]:
        return Stream(lambda t: -self[t], self.zero)


@overload
def lift(f: Callable[[A], B]) -> Callable[[Stream[A]], Stream[B]]: ...
@overload
def lift(f: Callable[[A, B], C]) -> Callable[[Stream[A], Stream[B]], Stream[C]]: ...
def lift(f: Callable[..., C]) -> Callable[..., Stream[C]]:
    """↑f: apply f at each time by itself (Def. 2.3).

    >>> lift(abs)(Stream.of([-2, 3], 0)).prefix(3)
    [2, 3, 0]
    """

    def lifted(*inputs: Stream[A]) -> Stream[C]:
        somewhere = f(*(stream.zero for stream in inputs))
        # f need not take zero to zero, but in any group x − x does.
        zero = somewhere - somewhere
        return Stream(lambda t: f(*(stream[t] for stream in inputs)), zero)

    return lifted


def delay(stream: Stream[A]) -> Stream[A]:
    """z⁻¹: what was there one step ago, and zero at first (Def. 2.5).

    >>> delay(Stream(lambda t: t + 1, 0)).prefix(4)
    [0, 1, 2, 3]
    """
    return Stream(lambda t: stream[t - 1] if t else stream.zero, stream.zero)


def fix(body: Callable[[Stream[A]], Stream[A]], zero: A) -> Stream[A]:
    """fix α. body(α): the one stream that is its own image, for a strict `body` (Prop. 2.9).

    >>> fix(lambda past: delay(past) + delay(delay(past)) + delta0(1), 0).prefix(7)
    [1, 1, 2, 3, 5, 8, 13]
    """
    loop: Stream[A] = Stream(lambda t: image[t], zero)
    image = body(loop)
    return loop


def fix_inner(
    body: Callable[[Stream[Stream[A]]], Stream[Stream[A]]], zero: Stream[A]
) -> Stream[Stream[A]]:
    """fix α. body(α) for a `body` strict in the inner time only, such as ↑z⁻¹ (Prop. 6.1)."""
    loop: Stream[Stream[A]] = Stream(lambda i: Stream(lambda j: image[i][j], zero.zero), zero)
    image = body(loop)
    return loop


def integrate(stream: Stream[A]) -> Stream[A]:
    """I: the sum of all changes so far, I(s)[t] = Σᵢ≤ₜ s[i] (Def. 2.17).

    >>> integrate(Stream(lambda t: t, 0)).prefix(5)
    [0, 1, 3, 6, 10]
    """
    return fix(lambda past: stream + delay(past), stream.zero)


def differentiate(stream: Stream[A]) -> Stream[A]:
    """D: the change since the step before, D(s) = s − z⁻¹(s) (Def. 2.15).

    >>> differentiate(Stream(lambda t: t * t, 0)).prefix(5)
    [0, 1, 3, 5, 7]
    """
    return stream - delay(stream)


@overload
def incremental(query: Callable[[Stream[A]], Stream[B]]) -> Callable[[Stream[A]], Stream[B]]: ...
@overload
def incremental(
    query: Callable[[Stream[A], Stream[B]], Stream[C]],
) -> Callable[[Stream[A], Stream[B]], Stream[C]]: ...
def incremental(query: Callable[..., Stream[C]]) -> Callable[..., Stream[C]]:
    """Qᐞ = D ∘ Q ∘ I: the same query, from changes to changes (Def. 3.1).

    >>> square = lift(lambda x: x * x)
    >>> incremental(square)(Stream.of([3, 1, -4], 0)).prefix(4)
    [9, 7, -16, 0]
    """

    def changes(*inputs: Stream[A]) -> Stream[C]:
        return differentiate(query(*map(integrate, inputs)))

    return changes


def delta0(value: A) -> Stream[A]:
    """δ₀: the stream that is `value` at time 0 and zero ever after (§5).

    >>> delta0(5).prefix(3)
    [5, 0, 0]
    """
    return Stream.of([value], value - value)


def integral(stream: Stream[A]) -> A:
    """∫: the sum of all values up to the first zero, which ends an iteration (§5).

    It is the whole sum only for streams that stay zero once they are zero, as the changes of a
    monotone loop do; it does not return for a stream that never becomes zero.

    >>> integral(Stream.of([1, 2, 3], 0))
    6
    """
    total = stream.zero
    for t in count():
        if stream[t] == stream.zero:
            break
        total = total + stream[t]
    return total
