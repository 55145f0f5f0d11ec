"""The change of a product of totals: one factor at a time, the others as maps of what they join.

For a change of the factor Tᵢ the other factors fall apart into components that only Tᵢ joins. Each
is a map by the columns that join it, whose own change is that of a product of fewer factors: so the
states end where nothing is left to read (ring-of-databases §1.1 and Thm 6.4). A component whose map
is not kept is entered: one of its factors is looked up, and what is left falls apart again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from everview.analysis.keys import keys
from everview.differentiate.context import Derive
from everview.plan.build import add, join, totals
from everview.plan.nodes import Empty, Measure, Plan, Totals
from everview.plan.products import Members, Product, product_of
from everview.plan.traverse import schema_of


def product_change(node: Totals, d: Derive) -> Plan:
    """Σᵢ Σₖ(ΔTᵢ ⋈ M₁ ⋈ … ⋈ Mₘ): the maps Mⱼ new where they come before i, old after it."""
    product = product_of(node)
    assert product is not None
    return _change(product, product.members, node, len(product.factors), d)


def _change(product: Product, members: Members, whole: Totals, upto: int, d: Derive) -> Plan:
    """The change of the map of some factors when those before `upto` change."""
    terms = [
        _term(product, members, whole, place, change, d)
        for place in members
        if place < upto and not isinstance(change := d(product.factors[place]), Empty)
    ]
    if len(terms) < 2:
        return terms[0] if terms else Empty(schema_of(whole))
    again = tuple(Measure(m.name, m.type, "product", None, (m.name,)) for m in whole.measures)
    return totals(add(*terms), whole.keys, again)


def _term(
    product: Product, members: Members, whole: Totals, place: int, change: Plan, d: Derive
) -> Plan:
    """What the change of one factor does to the map of some."""
    plan = change
    parts: list[Members] = [(place,)]
    for step in drive(product, members, place, lambda part: d.keeps(product.map_of(part))):
        if len(step.members) == 1:
            (other,) = step.members
            d_map = d(product.factors[other]) if other < place else _nothing(step.map)
        else:
            d_map = _change(product, step.members, step.map, place, d)
        plan = join(plan, add(step.map, d_map), step.on)
        parts.append(step.members)
    measures = tuple(
        Measure(m.name, m.type, "product", None, tuple(product.part_name(n, p) for p in parts))
        for m, n in zip(whole.measures, _of(product, members, whole), strict=True)
    )
    return totals(plan, whole.keys, measures)


def _nothing(plan: Plan) -> Plan:
    return Empty(schema_of(plan))


def _of(product: Product, members: Members, whole: Totals) -> tuple[Measure, ...]:
    """The measures of a map as products of totals of its factors."""
    return whole.measures if members == product.members else product.measures_of(members)


@dataclass(frozen=True, slots=True)
class Step:
    """One lookup of a change: the map of some factors, by the columns that join it."""

    members: Members
    map: Totals
    on: tuple[tuple[str, str], ...]

    @property
    def by_key(self) -> bool:
        """Whether the columns that join it are a unique key of the one relation it is of."""
        unique = keys(self.map.child) if len(self.members) == 1 else frozenset()
        return any(key <= {b for _, b in self.on} for key in unique)


def lookup(product: Product, joined: Sequence[int], members: Members) -> Step:
    """The lookup of the map of some factors by what is joined already.

    Of factors whose columns are equal, the one that was joined first is enough.
    """
    looked_up = product.map_of(members)
    held, first = {*looked_up.keys}, dict[str, int]()
    pairs = product.joined(joined, members)
    for ours, theirs in sorted(pairs, key=lambda pair: joined.index(product.place(pair[0]))):
        first.setdefault(theirs, product.place(ours))
    on = tuple(
        (ours, theirs)
        for ours, theirs in pairs
        if theirs in held and first[theirs] == product.place(ours)
    )
    return Step(members, looked_up, on)


def drive(
    product: Product, members: Members, place: int, keeps: Callable[[Members], bool]
) -> list[Step]:
    """What a change of one factor looks up of the others of some."""
    return lookups(product, [place], [i for i in members if i != place], keeps)


def lookups(
    product: Product, joined: Sequence[int], left: Sequence[int], keeps: Callable[[Members], bool]
) -> list[Step]:
    """What looks up the factors that are left of a product, once others are joined.

    A factor that is joined by a unique key is looked up itself, one row of it at most; what is left
    then is looked up as the maps of its components. Columns whose value is known join nothing.
    """
    steps = list[Step]()
    while left:
        step = _by_key(product, joined, left) or _component(product, joined, left, keeps)
        steps.append(step)
        joined = [*joined, *step.members]
        left = [i for i in left if i not in step.members]
    return steps


def _by_key(product: Product, joined: Sequence[int], left: Sequence[int]) -> Step | None:
    """The lookup of one factor by a unique key of it."""
    found = (lookup(product, joined, (other,)) for other in left)
    return next((step for step in found if step.by_key), None)


def _component(
    product: Product, joined: Sequence[int], left: Sequence[int], keeps: Callable[[Members], bool]
) -> Step:
    """The lookup of the map of a component, or of one of its factors where no map is kept."""
    parts = product.components(tuple(left), joined)
    for part in parts:
        if len(part) == 1 or keeps(part):
            return lookup(product, joined, part)
    near = [(i,) for i in parts[0] if product.joined(joined, (i,))] or [(i,) for i in parts[0]]
    most = min(near, key=lambda own: _unreached(product, [*joined, *own], parts[0], keeps))
    return lookup(product, joined, most)


def _unreached(
    product: Product, joined: list[int], part: Members, keeps: Callable[[Members], bool]
) -> int:
    """How many factors are left when all is looked up that is joined by a key or in a map kept."""
    left = [i for i in part if i not in joined]
    while (step := _by_key(product, joined, left)) is not None:
        joined = [*joined, *step.members]
        left = [i for i in left if i not in step.members]
    rest = product.components(tuple(left), joined)
    return sum(len(each) for each in rest if len(each) > 1 and not keeps(each))
