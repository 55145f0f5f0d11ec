"""The policies of what is stored for a view, and the choice among them when it is declared."""

from __future__ import annotations

from dataclasses import dataclass

from everview.differentiate.product_change import drive, lookup
from everview.lang.sql.parse.statements import CIRCUIT as CIRCUIT
from everview.lang.sql.parse.statements import FIRST_ORDER as FIRST_ORDER
from everview.lang.sql.parse.statements import HIGHER_ORDER as HIGHER_ORDER
from everview.lang.sql.parse.statements import POLICIES as POLICIES
from everview.plan.nodes import Filter, Plan, Totals
from everview.plan.products import Members, Product, product_of
from everview.plan.traverse import walk
from everview.rewrite.factorize import factorize

FAN_OUT = 10
"""How many rows a lookup by columns that are no unique key is taken to bring, before any data."""
SELECTED = 4
"""A filter is taken to keep one row of so many, before any data."""
CLEARLY = 2
"""How many times fewer rows another policy must read to be chosen."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A policy, whether it was declared or chosen, and the reason for a choice, in words."""

    policy: str = CIRCUIT
    declared: bool = False
    reason: str = ""


def under(policy: str, plan: Plan, *, overflow: bool = False) -> Plan:
    """The plan that a policy maintains: the same relation."""
    return factorize(plan, overflow=overflow) if policy == HIGHER_ORDER else plan


def choose(plan: Plan) -> Decision:
    """The policy for a rewritten plan: circuit, unless another clearly reads fewer rows.

    A changed row of each relation is weighed alike: what it looks up, and a row for each map that
    it changes. Where no change forms pairs of looked-up rows, more maps than relations are not
    chosen: q09 of TPC-H has 13 over 6 relations, and keeping them takes longer than what they save.
    """
    products = products_in(factorize(plan))
    if not products:
        if products_in(factorize(plan, overflow=True)):
            return Decision(CIRCUIT, reason="a product of integers may overflow its type")
        return Decision(CIRCUIT, reason="no grouped join that can be split into factors")
    circuit = sum(circuit_rows(each, place) for each in products for place in each.members)
    kept = [maps(each) for each in products]
    read = sum(
        map_rows(each, place) + sum(place in members for members in own)
        for each, own in zip(products, kept, strict=True)
        for place in each.members
    )
    estimate = f"a changed row of each relation reads about {circuit} rows under circuit"
    estimate = f"{estimate}, {read} with {sum(map(len, kept))} maps kept"
    if any(
        len(own) > len(each.factors) and not _pairs(each)
        for each, own in zip(products, kept, strict=True)
    ):
        return Decision(CIRCUIT, reason=f"{estimate}, which are too many to keep")
    if circuit >= CLEARLY * read:
        return Decision(HIGHER_ORDER, reason=estimate)
    return Decision(CIRCUIT, reason=estimate)


def products_in(plan: Plan) -> list[Product]:
    """The products of totals that a plan has, the outermost ones."""
    found, inside = list[Product](), set[Plan]()
    for node in walk(plan):
        product = product_of(node) if isinstance(node, Totals) and node not in inside else None
        if product is not None:
            found.append(product)
            inside |= set(walk(node))
    return found


def maps(product: Product) -> set[Members]:
    """The factors of each map that is kept for a product: those looked up by no unique key."""
    found = set[Members]()

    def keep(members: Members) -> None:
        for place in members:
            for step in drive(product, members, place):
                if not step.by_key and step.members not in found:
                    found.add(step.members)
                    keep(step.members)

    keep(product.members)
    return found


def circuit_rows(product: Product, place: int) -> int:
    """How many rows a changed row of a relation looks up, join by join, without maps."""
    return sum(many for many, _ in _lookups(product, place))


def _pairs(product: Product) -> bool:
    """Whether some change looks up many rows of two components, and so forms all their pairs."""
    many = (
        sum(not step.by_key for step in drive(product, product.members, place))
        for place in product.members
    )
    return any(count > 1 for count in many)


def map_rows(product: Product, place: int) -> int:
    """How many rows a changed row looks up of maps: one of each, but for further group keys.

    A map holds only what its filters keep, where a table is looked up with all of its rows.
    """
    read = 0
    for step in drive(product, product.members, place):
        more = {*step.map.keys} - {theirs for _, theirs in step.on}
        many = FAN_OUT // SELECTED if _filtered(step.map) else FAN_OUT
        read += many if more and not step.by_key else 1
    return read


def _filtered(plan: Plan) -> bool:
    return any(isinstance(node, Filter) for node in walk(plan))


def _lookups(product: Product, place: int) -> list[tuple[int, int]]:
    """Per relation looked up: rows brought in all, and rows brought per row that asks."""
    joined, left = [place], [i for i in product.members if i != place]
    rows, found = 1, list[tuple[int, int]]()
    while left:
        near = [i for i in left if product.joined(joined, (i,))] or left
        steps = [(lookup(product, joined, (i,)).by_key, i) for i in near]
        unique, other = max(steps, key=lambda each: (each[0], -each[1]))
        own = 1 if unique else FAN_OUT
        rows *= own
        found.append((rows, own))
        joined.append(other)
        left.remove(other)
    return found
