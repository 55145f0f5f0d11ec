"""The change of a loop: the derivative of its body, lifted over all iterations (dbsp §5–6)."""

from __future__ import annotations

from collections.abc import Callable

from everview.differentiate.context import Derive, LoopChange, RelationChange, before, now
from everview.differentiate.lifting import Lifted, label, lifted, summed, trace_of, unlifted
from everview.plan.build import add, negate
from everview.plan.nodes import Change, Distinct, Empty, Fixpoint, Plan, Source
from everview.plan.traverse import schema_of, transform

Leaf = Callable[[Plan], Plan]


def loop_sum(node: Fixpoint) -> Plan:
    """The sum over all iterations that a relation of a loop depends on, as a state keeps it."""
    each = lifted(summed(node.body(node.result)))
    return transform(each.plan, _old(each, node))


def difference(node: Fixpoint, d: Derive) -> Plan:
    """fix B(R + ΔR) − fix B(R): what the loop reaches after the change minus what it reached."""

    def after(leaf: Plan) -> Plan:
        return add(leaf, d(leaf)) if isinstance(leaf, Source) else leaf

    return add(transform(node, after), negate(node))


def summed_changes(node: Fixpoint, d: Derive) -> Plan:
    """Σₙ ΔXₙ: the change of the rows of every iteration, without the iterations."""
    return unlifted(d(trace_of(node, node.result)))


def traced_change(node: Fixpoint, d: Derive) -> Plan:
    """ΔX = ↑B(R + ΔR, X + ΔX) − ↑B(R, X), split by what causes it: ΔR, or ΔX of one iteration."""
    bodies = {name: lifted(summed(body)) for name, body in node.equations}
    outside = {plan: d(plan) for each in bodies.values() for plan in each.outside.values()}
    relations = (
        _relation_change(name, each, node, outside, d, f"loop {label(node)}")
        for name, each in bodies.items()
    )
    return d.loop(LoopChange(node, tuple(relations)))


def _relation_change(
    name: str,
    each: Lifted,
    node: Fixpoint,
    outside: dict[Plan, Plan],
    d: Derive,
    loop: str,
) -> RelationChange:
    moving = [n for n, plan in each.outside.items() if not isinstance(outside[plan], Empty)]
    start = d.partial(each.plan, moving)
    later = d.partial(each.plan, each.inside)
    body = node.body(name)
    return RelationChange(
        name,
        schema_of(body),
        transform(each.plan, _old(each, node)),
        transform(start, _caused_outside(each, node, outside)),
        transform(later, _caused_inside(each, node, outside, loop)),
        isinstance(body, Distinct),
        loop,
    )


def _old(each: Lifted, node: Fixpoint) -> Leaf:
    """Whatever is read, as it was before the transaction."""

    def leaf(plan: Plan) -> Plan:
        if not isinstance(plan, Source):
            return plan
        return each.outside.get(plan.name) or trace_of(node, each.inside[plan.name])

    return leaf


def _caused_outside(each: Lifted, node: Fixpoint, outside: dict[Plan, Plan]) -> Leaf:
    """What is outside changes; what the loop has reached does not yet."""
    old = _old(each, node)

    def leaf(plan: Plan) -> Plan:
        return outside[each.outside[plan.name]] if isinstance(plan, Change) else old(plan)

    return leaf


def _caused_inside(each: Lifted, node: Fixpoint, outside: dict[Plan, Plan], loop: str) -> Leaf:
    """What is outside has changed; what the loop has reached changes by one iteration more."""
    old = _old(each, node)

    def leaf(plan: Plan) -> Plan:
        match plan:
            case Source(name, schema, _) if name in each.outside:
                return add(old(plan), outside[each.outside[name]])
            case Source(name, schema, _):
                return add(old(plan), before(loop, each.inside[name], schema))
            case Change(name, schema):
                return now(loop, each.inside[name], schema)
            case _:
                return plan

    return leaf
