"""The derivative of every operator, one row each: law, citation, function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from everview.differentiate.mergeable import merged
from everview.differentiate.range_frame import changed_near, near
from everview.differentiate.top_k import changed_top, top
from everview.plan.build import (
    add,
    columns_of,
    distinct,
    filter_,
    groups,
    join,
    map_,
    negate,
    partition,
    positive,
    restrict_to_keys,
    totals,
    unnest,
    window,
)
from everview.plan.nodes import (
    Add,
    Change,
    Distinct,
    Empty,
    Filter,
    Fixpoint,
    Groups,
    Join,
    Map,
    Negate,
    Partition,
    Plan,
    Positive,
    Recursive,
    Ref,
    Restrict,
    Source,
    Totals,
    Unnest,
    Values,
    Window,
)
from everview.plan.traverse import transform

Derive: TypeAlias = Callable[[Plan], Plan]


@dataclass(frozen=True, slots=True)
class Rule:
    """How one kind of operator changes when what it reads changes."""

    operator: type[Plan]
    law: str
    cites: str
    apply: Callable[[Any, Derive], Plan]
    where: str = ""
    """The shape that a better rule than the operator's own is for."""

    @property
    def kind(self) -> str:
        """The class of the operator: linear, bilinear, threshold, …, or by definition."""
        return self.cites.partition(",")[0]


def _first_rows(node: Filter, d: Derive) -> Plan:
    found = top(node)
    assert found is not None
    if found.rest is not None:
        return filter_(d(found.plan), found.rest)
    return changed_top(found, d(found.window.child))


def _near(node: Window, d: Derive) -> Plan:
    found = near(node)
    assert found is not None
    return changed_near(found, d(node.child))


def _join(node: Join, d: Derive) -> Plan:
    d_left, d_right = d(node.left), d(node.right)
    return add(
        join(d_left, add(node.right, d_right), node.on, node.residual, node.nulls),
        join(node.left, d_right, node.on, node.residual, node.nulls),
    )


def _distinct(node: Distinct, d: Derive) -> Plan:
    d_child = d(node.child)
    after = distinct(add(node.child, d_child))
    return _difference(after, node, d_child, columns_of(node.child))


def _positive(node: Positive, d: Derive) -> Plan:
    d_child = d(node.child)
    after = positive(add(node.child, d_child))
    return _difference(after, node, d_child, columns_of(node.child))


def _groups(node: Groups, d: Derive) -> Plan:
    d_child = d(node.child)
    return _difference(groups(add(node.child, d_child), node.keys), node, d_child, node.keys)


def _partition(node: Partition, d: Derive) -> Plan:
    d_child = d(node.child)
    after = merged(node, d_child) or partition(add(node.child, d_child), node.keys, node.aggregates)
    return _difference(after, node, d_child, node.keys)


def _window(node: Window, d: Derive) -> Plan:
    d_child = d(node.child)
    after = window(add(node.child, d_child), node.keys, node.columns)
    return _difference(after, node, d_child, node.keys)


def _difference(after: Plan, before: Plan, touched: Plan, keys: tuple[str, ...]) -> Plan:
    """F(new) ⋉ K − F(old) ⋉ K: nothing outside the touched keys can have changed."""
    return add(
        restrict_to_keys(after, touched, keys),
        negate(restrict_to_keys(before, touched, keys)),
    )


def _fixpoint(node: Fixpoint, d: Derive) -> Plan:
    """What the loop reaches after the change minus what it reached before, by definition."""

    def after(leaf: Plan) -> Plan:
        return add(leaf, d(leaf)) if isinstance(leaf, Source) else leaf

    return add(transform(node, after), negate(node))


RULES: dict[type[Plan], Rule] = {
    rule.operator: rule
    for rule in (
        Rule(Empty, "Δ0 = 0", "definition", lambda n, _d: n),
        Rule(Values, "Δ{r, …} = 0", "definition", lambda n, _d: Empty(n.schema)),
        Rule(Source, "Δ(R) = ΔR", "definition", lambda n, _d: Change(n.name, n.schema)),
        Rule(
            Filter,
            "Δ(σₚ Q) = σₚ ΔQ",
            "linear, dbsp Thm 3.3 and Table 1",
            lambda n, d: filter_(d(n.child), n.predicate),
        ),
        Rule(
            Map,
            "Δ(π Q) = π ΔQ",
            "linear, dbsp Thm 3.3 and Table 1",
            lambda n, d: map_(d(n.child), n.outputs),
        ),
        Rule(
            Unnest,
            "Δ(μ Q) = μ ΔQ",
            "linear, dbsp Thm 3.3 and §7.4 (flatmap)",
            lambda n, d: unnest(d(n.child), n.array, n.element, n.position, outer=n.outer),
        ),
        Rule(
            Add,
            "Δ(L + R) = ΔL + ΔR",
            "linear, dbsp Prop 3.2",
            lambda n, d: add(d(n.left), d(n.right)),
        ),
        Rule(Negate, "Δ(−Q) = −ΔQ", "linear, dbsp Prop 3.2", lambda n, d: negate(d(n.child))),
        Rule(
            Join,
            "Δ(L ⋈ R) = ΔL ⋈ (R + ΔR) + L ⋈ ΔR",
            "bilinear, dbsp Thm 3.4; ring-of-databases §3.1",
            _join,
        ),
        Rule(
            Distinct,
            "Δ(δ Q) = δ(Q + ΔQ) ⋉ ΔQ − δQ ⋉ ΔQ",
            "threshold, dbsp Prop 4.7",
            _distinct,
        ),
        Rule(
            Positive,
            "Δ(Q⁺) = (Q + ΔQ)⁺ ⋉ ΔQ − Q⁺ ⋉ ΔQ",
            "threshold, as dbsp Prop 4.7; bag difference",
            _positive,
        ),
        Rule(
            Totals,
            "Δ(Σₖ Q) = Σₖ ΔQ",
            "linear, dbsp §7.2–7.4; ring-of-databases §3.1",
            lambda n, d: totals(d(n.child), n.keys, n.measures),
        ),
        Rule(
            Groups,
            "Δ(γ T) = γ(T + ΔT) ⋉ ΔT − γT ⋉ ΔT",
            "threshold, dbsp §7.2 (makeset) and §7.4",
            _groups,
        ),
        Rule(
            Partition,
            "Δ(Φₖ Q) = Φₖ(Q + ΔQ) ⋉ ΔQ − ΦₖQ ⋉ ΔQ; where Φ(A + B) = Φ′(ΦA + B), with K = (−ΔQ)⁺: "
            "Φ′ₖ(Q ⋉ K + ΔQ + ΦₖQ ⋉ ΔQ − ΦₖQ ⋉ K) − ΦₖQ ⋉ ΔQ; of least and greatest values "
            "K = L ⋉ ΦₖQ, of rows L = (−ΔQ)⁺ that have one, and ΔQ + L − L ⋉ K for ΔQ",
            "partition, dbsp §7.3–7.4",
            _partition,
        ),
        Rule(
            Window,
            "Δ(Ωₖ Q) = Ωₖ(Q + ΔQ) ⋉ ΔQ − ΩₖQ ⋉ ΔQ",
            "partition, dbsp §7.3–7.4",
            _window,
        ),
        Rule(Recursive, "Δ(X) = ΔX", "definition", lambda n, _d: Change(n.name, n.schema)),
        Rule(
            Fixpoint,
            "Δ(fix B) = Σₙ ΔXₙ, where ΔXₙ₊₁ = ↑B(R + ΔR, X + ΔX)ₙ₊₁ − ↑B(R, X)ₙ₊₁ and ↑B is B over "
            "the differences Xₙ − Xₙ₋₁ of all iterations",
            "recursive, dbsp §5–6, eq. 6.1 and Prop 6.2",
            _fixpoint,
        ),
    )
}

FIRST_ROWS = Rule(
    Filter,
    "Δ(A) = σₙΩₖ(A ⋉ ΔQ − A ⋉ K + Q ⋉ K + ΔQ) − A ⋉ ΔQ, where A = σₙΩₖ Q and in the groups K fewer "
    "than n rows of A + ΔQ come up to the last one of A",
    "partition, dbsp §7.3–7.4",
    _first_rows,
    "the first n rows of each group",
)
NEAR = Rule(
    Window,
    "Δ(Ωₖ Q) = Ωₖ(Q ⋉ N′ + ΔQ) ⋉ N − Ωₖ(Q ⋉ N′) ⋉ N, where N are the cells next to those of ΔQ, N′ "
    "those next to N, and no frame reaches beyond the next cell",
    "partition, dbsp §7.3–7.4",
    _near,
    "frames that reach only so far",
)
BETTER = (FIRST_ROWS, NEAR)
"""Rules for shapes, which read less than those of the operators they are made of."""


def rule_of(plan: Plan) -> Rule:
    """The rule that a plan is differentiated by."""
    if top(plan) is not None:
        return FIRST_ROWS
    return NEAR if near(plan) is not None else RULES[type(plan)]


UNDIFFERENTIATED: frozenset[type[Plan]] = frozenset({Change, Ref, Restrict})
"""Operators that occur only in derivatives and programs."""
