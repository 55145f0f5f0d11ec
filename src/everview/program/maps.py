"""Which maps of a product are kept: those that save more rows than their own changes read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from everview.analysis.keys import keys
from everview.differentiate.product_change import Step, drive, lookups
from everview.expr import scalar
from everview.plan.nodes import Filter, Map, Plan, Source, Totals
from everview.plan.products import Members, Product, product_of
from everview.plan.traverse import CACHE_SIZE, walk

Rows = tuple[tuple[str, int], ...]
"""How many rows relations have, by their names, as far as that is known."""

FAN_OUT = 10
"""How many rows a lookup by columns that are no unique key is taken to bring, if nothing tells."""
SELECTED = 4
"""A filter is taken to keep one row of so many."""
UPKEEP = 10
"""How many rows of reading a map must save each relation that it is of, to be kept for it."""


def products_in(plan: Plan) -> list[Product]:
    """The products of totals that a plan has, the outermost ones."""
    found, inside = list[Product](), set[Plan]()
    for node in walk(plan):
        product = product_of(node) if isinstance(node, Totals) and node not in inside else None
        if product is not None:
            found.append(product)
            inside |= set(walk(node))
    return found


def maps_in(plan: Plan, rows: Rows | None) -> frozenset[Plan]:
    """The maps kept for a plan: those that pay with so many `rows`, or each that could be read."""
    return frozenset(
        each.map_of(part)
        for each in products_in(plan)
        for part in (every_map(each) if rows is None else paying_maps(each, rows))
    )


def every_map(product: Product) -> frozenset[Members]:
    """The factors of each map that a change of a product, or of another map, could look up."""
    found, waiting = set[Members](), [product.members]
    while waiting:
        members = waiting.pop()
        for place in members:
            steps = drive(product, members, place, lambda _: True)
            fresh = {step.members for step in steps if len(step.members) > 1} - found
            found |= fresh
            waiting += sorted(fresh)
    return frozenset(found)


@lru_cache(maxsize=CACHE_SIZE)
def paying_maps(product: Product, rows: Rows) -> frozenset[Members]:
    """The maps that are taken to pay: one by one, that first which saves most, until none does."""
    kept = frozenset[Members]()
    cost = _cost(product, kept, rows)
    while True:
        more = {part for place in product.members for part in _entered(product, place, kept)}
        options = ((_cost(product, kept | {part}, rows), part) for part in more)
        least, part = min(options, default=(cost, ()))
        if least >= cost:
            return kept
        kept, cost = kept | {part}, least


def _cost(product: Product, kept: frozenset[Members], rows: Rows) -> float:
    """The rows that a changed row of each relation reads, all added up, and what maps must save."""
    read = sum(map_rows(product, place, kept, rows) for place in product.members)
    return read + UPKEEP * sum(map(len, kept))


def _entered(product: Product, place: int, kept: frozenset[Members]) -> set[Members]:
    """The components that a change of a relation comes to, and finds no map of."""
    found = set[Members]()

    def keeps(part: Members) -> bool:
        if part not in kept:
            found.add(part)
        return part in kept

    for members in _changed(product, place, kept):
        drive(product, members, place, keeps)
    return found


def _changed(product: Product, place: int, kept: Collection[Members]) -> Iterator[Members]:
    """The product and the maps kept that a change of a relation changes."""
    yield product.members
    yield from (members for members in sorted(kept) if place in members)


def circuit_rows(product: Product, place: int, rows: Rows) -> float:
    """About how many rows a changed row of a relation reads without totals and maps."""
    estimate = _Estimate(product, dict(rows), totals=False)
    estimate.follow(product.members, place, ())
    return estimate.read


def map_rows(product: Product, place: int, kept: Collection[Members], rows: Rows) -> float:
    """About how many rows a changed row of a relation reads, and changes in the maps kept.

    What several maps look up is read once.
    """
    estimate = _Estimate(product, dict(rows))
    changed = (estimate.follow(each, place, kept) for each in _changed(product, place, kept))
    next(changed)
    return sum(changed) + estimate.read


@dataclass(slots=True)
class _Estimate:
    """What a changed row looks up: of which factors, by which columns, and how many rows."""

    product: Product
    rows: Mapping[str, int]
    totals: bool = True
    """Whether totals are looked up, of which there is one for all of their keys."""
    lookups: dict[tuple[Members, frozenset[str]], float] = field(default_factory=dict)

    @property
    def read(self) -> float:
        """How many rows are read in all."""
        return sum(self.lookups.values())

    def follow(self, members: Members, place: int, kept: Collection[Members]) -> float:
        """Look up what a changed row joins of some factors; how many rows of it there are then."""
        many = {place: _share(self.product.factors[place])}
        for step in drive(self.product, members, place, lambda part: part in kept):
            asking = self._asking(step, many)
            by = frozenset(theirs for _, theirs in step.on)
            found = self._found(step, many)
            read = asking * self._fan_out(step) if self._is_table(step) else found
            self.lookups[step.members, by] = max(read, self.lookups.get((step.members, by), 0))
            many = _joined(many, step.members, asking, found)
        return max(many.values())

    def _asking(self, step: Step, many: Mapping[int, float]) -> float:
        return max((many[self.product.place(ours)] for ours, _ in step.on), default=1)

    def _found(self, step: Step, many: Mapping[int, float]) -> float:
        """How many rows a lookup finds of one relation, or of a map."""
        asking = self._asking(step, many)
        more = {*step.map.keys} - {theirs for _, theirs in step.on}
        if len(step.members) > 1:
            return self._found_in_map(step, many, more) if more else asking
        rows = 1 if step.by_key or (self.totals and not more) else self._fan_out(step)
        return asking * rows * _share(step.map)

    def _fan_out(self, step: Step) -> float:
        """How many rows of a relation have the same values of the columns looked up by.

        Where one of these is equal to the unique key of another relation, it has a value for each
        row of that: foreign keys are taken to be spread evenly. Two columns together are taken to
        tell rows apart. By no column at all, all rows are read.
        """
        own = self._size(step.map)
        by = {theirs for _, theirs in step.on}
        edges = (pair for a, b in self.product.edges for pair in ((a, b), (b, a)))
        others = (other for column, other in edges if column in by)
        values = max((self._values(each) for each in others), default=0)
        if own and (values or not by):
            return own / (values or 1)
        return FAN_OUT if len(by) < 2 else 1

    def _values(self, column: str) -> int:
        """How many rows a relation has that a column is the unique key of; 0 if it is of none."""
        factor = self.product.factors[self.product.place(column)]
        return self._size(factor) if frozenset({column}) in keys(factor.child) else 0

    def _size(self, factor: Totals) -> int:
        """How many rows the relation has that a factor totals; 0 where that is not known."""
        plan = factor.child
        while isinstance(plan, Filter | Map):
            plan = plan.child
        return self.rows.get(plan.name, 0) if isinstance(plan, Source) else 0

    def _found_in_map(self, step: Step, many: Mapping[int, float], more: set[str]) -> float:
        """Rows of a map that differ in keys not given.

        Where these complete a unique key of a relation, all of its rows that would have been found;
        else they are taken to have few values.
        """
        inside, most = dict(many), self._asking(step, many) * FAN_OUT
        rows = 0.0
        for each in lookups(self.product, [*many], step.members, lambda _: False):
            found = self._found(each, inside)
            inside = _joined(inside, each.members, self._asking(each, inside), found)
            if more & {*each.map.keys}:
                known = more | {theirs for _, theirs in each.on}
                unique = any(key <= known and key & more for key in keys(each.map.child))
                rows = max(rows, found if unique else min(found, most))
        return rows

    def _is_table(self, step: Step) -> bool:
        """Whether many rows of a table itself are looked up, those that a filter drops as well."""
        by = {theirs for _, theirs in step.on}
        many = not self.totals and not step.by_key
        return many and any(_is_first(step.map.child, column) for column in by)


def _joined(
    many: Mapping[int, float], members: Members, asking: float, found: float
) -> dict[int, float]:
    """How many rows of each factor are left once others are joined: of those that find one."""
    left = min(1, found / asking)
    return {**{place: rows * left for place, rows in many.items()}, **dict.fromkeys(members, found)}


@lru_cache(maxsize=CACHE_SIZE)
def _share(plan: Plan) -> float:
    """The part of the rows that the filters of a plan are taken to keep."""
    predicates = (node.predicate for node in walk(plan) if isinstance(node, Filter))
    parts = (part for each in predicates for part in scalar.conjuncts(each))
    return 1 / SELECTED if any(scalar.never_null_operand(part) is None for part in parts) else 1


def _is_first(plan: Plan, column: str) -> bool:
    """Whether a column is the first of a table's key: then rows are looked up in the table itself.

    Those that a filter above it drops are read too.
    """
    match plan:
        case Source(_, _, key):
            return key[:1] == (column,)
        case Filter(child, _):
            return _is_first(child, column)
        case Map(child, outputs):
            inner = next(scalar.as_column(o.scalar) for o in outputs if o.name == column)
            return inner is not None and _is_first(child, inner)
        case _:
            return False
