"""Totals of a join as products of totals: the factors, what joins them, and the maps of a part.

A product Σₖ(T₁ ⋈ … ⋈ Tₙ) multiplies totals Tᵢ of the relations joined instead of their rows. The
product over some of the factors, by what joins them with the others, is a product again: a map
that can be stored (ring-of-databases §1.1, Ex. 1.3; nested-collections §4.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations

from everview.expr.types import Type, decimal_parts, type_in
from everview.plan.build import columns_of, join
from everview.plan.nodes import Join, Measure, Plan, Totals
from everview.plan.traverse import CACHE_SIZE, schema_of

Edge = tuple[str, str]
Members = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """A join graph of totals: each edge is two columns of different factors that are equal.

    What follows from two edges is an edge too, so columns that are equal are all joined.
    """

    factors: tuple[Totals, ...]
    edges: tuple[Edge, ...]
    keys: tuple[str, ...]
    measures: tuple[Measure, ...]
    places: Mapping[str, int] = field(compare=False)
    """The factor that each column is of."""

    @property
    def members(self) -> Members:
        """All factors, by their places."""
        return tuple(range(len(self.factors)))

    def place(self, column: str) -> int:
        """The factor that a column is of."""
        return self.places[column]

    def joined(self, left: Iterable[int], right: Iterable[int]) -> tuple[Edge, ...]:
        """The edges between two sets of factors, as pairs of a left and a right column."""
        ours, theirs = set(left), set(right)
        found: dict[Edge, None] = {}
        for one, other in self.edges:
            for a, b in ((one, other), (other, one)):
                if self.place(a) in ours and self.place(b) in theirs:
                    found[a, b] = None
        return tuple(found)

    def components(self, members: Members, known: Iterable[int] = ()) -> list[Members]:
        """Some factors as sets that nothing joins with each other but what is `known`.

        Columns that are equal to one of a known factor do not hold others together.
        """
        given = {b for _, b in self.joined(known, members)}
        left, found = list(members), []
        while left:
            part = [left.pop(0)]
            for one in part:
                near = [
                    other
                    for other in left
                    if any(b not in given for _, b in self.joined((one,), (other,)))
                ]
                part += near
                left = [other for other in left if other not in near]
            found.append(tuple(sorted(part)))
        return found

    def keys_of(self, members: Members) -> tuple[str, ...]:
        """The columns of some factors that the others are joined by, and the keys of the groups."""
        others = [i for i in self.members if i not in members]
        outside = {a for a, _ in self.joined(members, others)}
        # Of columns that are equal, those of the first factor stand for all.
        pairs = [each for i in members for each in self.joined((i,), range(i))]
        again = {column for column, other in pairs if self.place(other) in members}
        wanted = (outside - again) | {*self.keys}
        return tuple(key for i in members for key in self.factors[i].keys if key in wanted)

    def measures_of(self, members: Members) -> tuple[Measure, ...]:
        """What some factors contribute to the products, each once."""
        wanted = (self._restricted(m.factors, members) for m in self.measures)
        return tuple(self.measure(names, names) for names in dict.fromkeys(wanted))

    def _restricted(self, names: Sequence[str], members: Members) -> tuple[str, ...]:
        return tuple(name for name in names if self.place(name) in members)

    def part_name(self, measure: Measure, members: Members) -> str:
        """The column that holds what some factors contribute to a measure, in a map of them."""
        return product_name(self._restricted(measure.factors, members))

    def measure(self, names: tuple[str, ...], factors: tuple[str, ...]) -> Measure:
        """The product of some totals, from columns that hold parts of it."""
        types = [type_in(schema_of(self.factors[self.place(name)]), name) for name in names]
        return Measure(product_name(names), product_type(types), "product", None, factors)

    def map_of(self, members: Members) -> Totals:
        """The totals of some factors by what joins them with the others: a factor is one itself."""
        if len(members) == 1:
            return self.factors[members[0]]
        return product_plan(
            [self.factors[i] for i in members],
            self.joined_within(members),
            self.keys_of(members),
            self.measures_of(members),
        )

    def joined_within(self, members: Members) -> tuple[Edge, ...]:
        """The edges between some factors."""
        return tuple(
            (a, b) for a, b in self.edges if self.place(a) in members and self.place(b) in members
        )


def product_name(names: Sequence[str]) -> str:
    """The name of a product of totals."""
    return " * ".join(names)


def product_type(types: Sequence[Type]) -> Type:
    """The type of a product of totals: counts stay counts, else 38 digits with all places."""
    parts = [decimal_parts(each) for each in types]
    if not any(parts):
        return "bigint"
    return f"decimal(38,{sum(each[1] for each in parts if each)})"


def product_plan(
    factors: Sequence[Totals],
    edges: Sequence[Edge],
    keys: tuple[str, ...],
    measures: tuple[Measure, ...],
) -> Totals:
    """Σₖ(T₁ ⋈ … ⋈ Tₙ): the factors in the order of their columns, each after one it joins.

    Equal products are equal plans, however they are reached.
    """
    left = sorted(factors, key=columns_of)
    edges = sorted({(min(each), max(each)) for each in edges})
    plan: Plan = left.pop(0)
    while left:
        after = [part for part in left if joined_by(plan, part, edges)]
        part = (after or left)[0]
        left.remove(part)
        plan = join(plan, part, joined_by(plan, part, edges))
    return Totals(plan, keys, measures)


def joined_by(plan: Plan, part: Plan, edges: Sequence[Edge]) -> tuple[Edge, ...]:
    """The edges between two plans, as pairs of a column of each."""
    ours, theirs = set(columns_of(plan)), set(columns_of(part))
    turned = ((a, b) if a in ours else (b, a) for a, b in edges)
    return tuple((a, b) for a, b in turned if a in ours and b in theirs)


@lru_cache(maxsize=CACHE_SIZE)
def product_of(plan: Plan) -> Product | None:
    """The product that a plan is, None for any other plan."""
    if not isinstance(plan, Totals) or any(m.function != "product" for m in plan.measures):
        return None
    factors: list[Totals] = []
    edges: list[Edge] = []
    if not plan.measures or not _flatten(plan.child, factors, edges) or len(factors) < 2:
        return None
    ordered = tuple(sorted(factors, key=columns_of))
    places = {column: at for at, each in enumerate(ordered) for column in columns_of(each)}
    return Product(ordered, _closed(edges, places), plan.keys, plan.measures, places)


def _closed(edges: Iterable[Edge], places: Mapping[str, int]) -> tuple[Edge, ...]:
    """The edges, and those that follow from them: all pairs of columns that are equal."""
    equal: list[set[str]] = []
    for edge in edges:
        met = [each for each in equal if each & {*edge}]
        equal = [each for each in equal if each not in met]
        equal.append({*edge}.union(*met))
    pairs = (pair for each in equal for pair in combinations(sorted(each), 2))
    return tuple((a, b) for a, b in pairs if places[a] != places[b])


def _flatten(plan: Plan, factors: list[Totals], edges: list[Edge]) -> bool:
    match plan:
        case Join(left, right, on, None, False):
            edges += on
            return _flatten(left, factors, edges) and _flatten(right, factors, edges)
        case Totals():
            factors.append(plan)
            return True
        case _:
            return False
