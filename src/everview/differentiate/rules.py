"""The derivative of every operator, one law per row: law, citation, function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from everview.differentiate.context import Derive
from everview.differentiate.lifting import is_lifted
from everview.differentiate.mergeable import (
    is_extremes,
    is_mergeable,
    merged,
    merged_extremes,
)
from everview.differentiate.product_change import product_change
from everview.differentiate.range_frame import range_frame, range_frame_change
from everview.differentiate.recursion import difference, summed_changes, traced_change
from everview.differentiate.top_k import top_k, top_k_change
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
from everview.plan.products import product_of


@dataclass(frozen=True, slots=True)
class Rule:
    """How one kind of operator changes when what it reads changes."""

    operator: type[Plan]
    law: str
    cites: str
    apply: Callable[[Any, Derive], Plan]
    where: str = ""
    """The condition of a special rule, in words; an operator's own rule has none."""
    applies: Callable[[Plan], bool] = lambda _: True
    """The condition of a special rule, as a predicate on the shape of a plan."""

    @property
    def kind(self) -> str:
        """The class of the operator: linear, bilinear, threshold, …, or by definition."""
        return self.cites.partition(",")[0]


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
    after = partition(add(node.child, d_child), node.keys, node.aggregates)
    return _difference(after, node, d_child, node.keys)


def _extremes(node: Partition, d: Derive) -> Plan:
    d_child = d(node.child)
    return _difference(merged_extremes(node, d_child), node, d_child, node.keys)


def _mergeable(node: Partition, d: Derive) -> Plan:
    d_child = d(node.child)
    return _difference(merged(node, d_child), node, d_child, node.keys)


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


def _top_k(node: Filter, d: Derive) -> Plan:
    shape = top_k(node)
    assert shape is not None
    if shape.rest is not None:
        return filter_(d(shape.plan), shape.rest)
    return top_k_change(shape, d(shape.window.child))


def _range_frame(node: Window, d: Derive) -> Plan:
    shape = range_frame(node)
    assert shape is not None
    return range_frame_change(shape, d(node.child))


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
            "bilinear, dbsp Thm 3.4; ring-of-databases §6",
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
            "linear, dbsp §7.2–7.4; ring-of-databases §6",
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
            "Δ(Φₖ Q) = Φₖ(Q + ΔQ) ⋉ ΔQ − ΦₖQ ⋉ ΔQ",
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
            "Δ(fix B) = fix B(R + ΔR) − fix B(R)",
            "recursive, by definition",
            difference,
        ),
    )
}

TOP_K = Rule(
    Filter,
    "Δ(A) = σₙΩₖ(A ⋉ ΔQ − A ⋉ K + Q ⋉ K + ΔQ) − A ⋉ ΔQ, where A = σₙΩₖ Q and in the groups K fewer "
    "than n rows of A + ΔQ come up to the last one of A",
    "partition, dbsp §7.3–7.4",
    _top_k,
    "the first n rows of each group",
    lambda plan: top_k(plan) is not None,
)
RANGE_FRAME = Rule(
    Window,
    "Δ(Ωₖ Q) = Ωₖ(Q ⋉ N′ + ΔQ) ⋉ N − Ωₖ(Q ⋉ N′) ⋉ N, where N are the cells next to those of ΔQ, N′ "
    "those next to N, and no frame reaches beyond the next cell",
    "partition, dbsp §7.3–7.4",
    _range_frame,
    "bounded RANGE frames, exact values",
    lambda plan: range_frame(plan) is not None,
)
EXTREMES = Rule(
    Partition,
    "Δ(Φₖ Q) = Φₖ(Q ⋉ K + ΔQ + L − L ⋉ K + ΦₖQ ⋉ ΔQ − ΦₖQ ⋉ K) − ΦₖQ ⋉ ΔQ, where L = (−ΔQ)⁺ and "
    "K are the rows of L that have a least or greatest value of their group",
    "partition, dbsp §7.3–7.4",
    _extremes,
    "least and greatest values of bags",
    is_extremes,
)
MERGEABLE = Rule(
    Partition,
    "Δ(Φₖ Q) = Φ′ₖ(Q ⋉ K + ΔQ + ΦₖQ ⋉ ΔQ − ΦₖQ ⋉ K) − ΦₖQ ⋉ ΔQ, where K = (−ΔQ)⁺ and "
    "Φ(A + B) = Φ′(ΦA + B)",
    "partition, dbsp §7.3–7.4",
    _mergeable,
    "mergeable aggregates of bags, by keys",
    is_mergeable,
)
PRODUCT = Rule(
    Totals,
    "Δ(Σₖ(T₁ ⋈ … ⋈ Tₙ)) = Σᵢ Σₖ(ΔTᵢ ⋈ M₁ ⋈ … ⋈ Mₘ), where the maps M are the totals of what is "
    "left without Tᵢ, each by the columns that join it, new before i and old after it",
    "bilinear, ring-of-databases §1.1, Ex. 1.3 and Thm 6.4; nested-collections §4.1",
    product_change,
    "products of totals of the relations joined",
    lambda plan: product_of(plan) is not None,
)
TRACED = Rule(
    Fixpoint,
    "Δ(↑fix B) = ΔX, where ΔXₙ₊₁ = ↑B(R + ΔR, X + ΔX)ₙ₊₁ − ↑B(R, X)ₙ₊₁ and ↑B is B over the "
    "differences Xₙ − Xₙ₋₁ of all iterations",
    "recursive, dbsp §5–6, eq. 6.1 and Prop 6.2",
    traced_change,
    "rows with the iteration at which they come",
    lambda plan: isinstance(plan, Fixpoint) and plan.traced,
)
LIFTED = Rule(
    Fixpoint,
    "Δ(fix B) = Σₙ ΔXₙ, where ΔX = Δ(↑fix B) is the change of the rows of every iteration",
    "recursive, dbsp §5–6",
    summed_changes,
    "bodies of linear operators and joins, with a distinct at the top or none",
    lambda plan: isinstance(plan, Fixpoint) and not plan.traced and is_lifted(plan),
)
SPECIAL = (TOP_K, RANGE_FRAME, EXTREMES, MERGEABLE, PRODUCT, TRACED, LIFTED)
"""Rules for shapes, which read less than those of their operators; the first that applies."""


def rule_of(plan: Plan) -> Rule:
    """The rule that a plan is differentiated by."""
    for rule in SPECIAL:
        if rule.operator is type(plan) and rule.applies(plan):
            return rule
    return RULES[type(plan)]


UNDIFFERENTIATED: frozenset[type[Plan]] = frozenset({Change, Ref, Restrict})
"""Operators that occur only in derivatives and programs."""
