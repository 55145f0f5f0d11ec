"""The policies of what is stored for a view, and the choice among them when it is declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from everview.lang.sql.parse.statements import CIRCUIT as CIRCUIT
from everview.lang.sql.parse.statements import FIRST_ORDER as FIRST_ORDER
from everview.lang.sql.parse.statements import HIGHER_ORDER as HIGHER_ORDER
from everview.lang.sql.parse.statements import POLICIES as POLICIES
from everview.plan.nodes import Plan
from everview.plan.traverse import sources
from everview.program.maps import (
    Rows,
    circuit_rows,
    map_rows,
    maps_in,
    paying_maps,
    products_in,
)
from everview.rewrite.factorize import factorize

CLEARLY = 2
"""How many times fewer rows another policy must read to be chosen."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A policy, whether it was declared or chosen, and the reason for a choice, in words.

    `rows` is how many rows the relations had when it was chosen: the maps kept follow from it.
    """

    policy: str = CIRCUIT
    declared: bool = False
    reason: str = ""
    rows: Rows = ()


def under(policy: str, plan: Plan, *, overflow: bool = False) -> Plan:
    """The plan that a policy maintains: the same relation."""
    return factorize(plan, overflow=overflow) if policy == HIGHER_ORDER else plan


def kept_maps(plan: Plan, decision: Decision) -> frozenset[Plan]:
    """The maps that a policy keeps for a plan: all where it is declared, those that pay if not."""
    return maps_in(plan, None if decision.declared else decision.rows)


def choose(plan: Plan, counts: Mapping[str, int]) -> Decision:
    """The policy for a rewritten plan: circuit, unless another clearly reads fewer rows.

    A changed row of each relation is weighed alike: what it looks up, and what it changes in maps.
    `counts` says how many rows relations have, as far as that is known.
    """
    products = products_in(factorize(plan))
    if not products:
        if products_in(factorize(plan, overflow=True)):
            return Decision(CIRCUIT, reason="a product of integers may overflow its type")
        return Decision(CIRCUIT, reason="no grouped join that can be split into factors")
    rows = tuple(sorted((s.name, counts[s.name]) for s in sources(plan) if counts.get(s.name)))
    circuit = sum(circuit_rows(each, place, rows) for each in products for place in each.members)
    kept = [paying_maps(each, rows) for each in products]
    read = sum(
        map_rows(each, place, own, rows)
        for each, own in zip(products, kept, strict=True)
        for place in each.members
    )
    estimate = f"a changed row of each relation reads about {circuit:.0f} rows under circuit"
    estimate = f"{estimate}, {read:.0f} with {sum(map(len, kept))} maps kept"
    if circuit >= CLEARLY * read:
        return Decision(HIGHER_ORDER, reason=estimate, rows=rows)
    return Decision(CIRCUIT, reason=estimate)
