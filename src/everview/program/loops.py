"""How a change is followed through the iterations of a loop: the derivative of the lifted body."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from everview.differentiate.derive import derive
from everview.differentiate.lifting import Lifted, label, lifted, summed, trace_of
from everview.expr import scalar
from everview.plan.build import add, columns_of
from everview.plan.nodes import Change, Distinct, Empty, Fixpoint, Map, Plan, Recursive, Ref, Source
from everview.plan.traverse import children, schema_of, transform, walk
from everview.program.schedule import schedule
from everview.program.steps import Compute, Fetch, Loop, Looped, Step, refs

if TYPE_CHECKING:
    from everview.program.materialize import Materializer

Leaf = Callable[[Plan], Plan]


def follow(
    lowering: Materializer, node: Fixpoint, changed: frozenset[str] | None
) -> dict[Plan, Plan]:
    """Take a step that runs the loop; how its relations change, and the sums they depend on."""
    bodies = {name: lifted(summed(body)) for name, body in node.equations}
    outside = {
        plan: _computed(lowering, lowering.change(plan, changed))
        for each in bodies.values()
        for plan in each.outside.values()
    }
    mark, inner = f"loop {len(lowering.steps)}", lowering.inside()
    relations = []
    found: dict[Plan, Plan] = {}
    for name, each in bodies.items():
        total = transform(each.plan, _old(each, node))
        moved = derive(each.plan, _moving(each, outside))
        start = lowering.lower(transform(moved, _outer(each, node, outside)))
        caused = derive(each.plan, frozenset(each.inside))
        later = inner.lower(transform(caused, _inner(each, node, outside, mark)))
        schema = schema_of(total)
        looped = Looped(
            name,
            schema_of(node.body(name)),
            "" if isinstance(start, Empty) else lowering.compute(start).name,
            "" if isinstance(later, Empty) else inner.compute(later).name,
            f"{mark} now {name}",
            f"{mark} before {name}",
            f"{mark} touched {name}",
            f"{mark} sums {name}",
            f"{mark} changes {name}",
            _history(lowering, node, name, total, f"{mark} touched {name}"),
        )
        relations.append(looped)
        found[total] = Ref(looped.sums, schema)
        found[trace_of(node, name)] = Ref(looped.changes, schema)
    body = _varying(lowering, inner.steps, relations)
    lowering.steps.append(Loop(label(node), tuple(relations), body, node.limit))
    return found


def _computed(lowering: Materializer, plan: Plan) -> Plan:
    return plan if isinstance(plan, Empty) else lowering.compute(plan)


def _moving(each: Lifted, outside: dict[Plan, Plan]) -> frozenset[str]:
    moved = (n for n, plan in each.outside.items() if not isinstance(outside[plan], Empty))
    return frozenset(moved)


def _old(each: Lifted, node: Fixpoint) -> Leaf:
    """What is read, as it was before the transaction."""

    def leaf(plan: Plan) -> Plan:
        if not isinstance(plan, Source):
            return plan
        return each.outside.get(plan.name) or trace_of(node, each.inside[plan.name])

    return leaf


def _outer(each: Lifted, node: Fixpoint, outside: dict[Plan, Plan]) -> Leaf:
    """What is outside changes, what the loop reached does not yet."""
    old = _old(each, node)

    def leaf(plan: Plan) -> Plan:
        return outside[each.outside[plan.name]] if isinstance(plan, Change) else old(plan)

    return leaf


def _inner(each: Lifted, node: Fixpoint, outside: dict[Plan, Plan], mark: str) -> Leaf:
    """What is outside has changed, and what the loop reached has up to this iteration."""
    old = _old(each, node)

    def leaf(plan: Plan) -> Plan:
        match plan:
            case Source(name, schema, _) if name in each.outside:
                return add(old(plan), outside[each.outside[name]])
            case Source(name, schema, _):
                return add(old(plan), Ref(f"{mark} before {each.inside[name]}", schema))
            case Change(name, schema):
                return Ref(f"{mark} now {each.inside[name]}", schema)
            case _:
                return plan

    return leaf


def _history(
    lowering: Materializer, node: Fixpoint, name: str, total: Plan, touched: str
) -> Fetch | None:
    """The old sums of rows, looked up by a column that differs from iteration to iteration."""
    body = node.body(name)
    if not isinstance(body, Distinct):
        return None
    carried = _carried(body)
    by = tuple(sorted(columns_of(body), key=lambda column: column in carried))
    return lowering.slice(total, by, Ref(touched, schema_of(body)))


def _carried(body: Plan) -> frozenset[str]:
    """The columns that some step of a body takes from a relation of the loop as they are."""
    maps = (node for node in walk(body) if isinstance(node, Map))
    return frozenset(o.name for m in maps for o in m.outputs if _origin(m.child, o.scalar))


def _origin(plan: Plan, text: str) -> bool:
    """Whether a scalar over a plan is a column of a relation of the loop, on some way there."""
    name = scalar.as_column(text)
    if name is None or name not in columns_of(plan):
        return False
    match plan:
        case Recursive():
            return True
        case Map(child, outputs):
            return any(_origin(child, o.scalar) for o in outputs if o.name == name)
        case _:
            return any(_origin(part, text) for part in children(plan))


def _varying(
    lowering: Materializer, steps: list[Step], relations: list[Looped]
) -> tuple[Fetch | Compute, ...]:
    """The steps that another iteration may give another result; the others are taken before."""
    names = {name for each in relations for name in (each.now, each.before)}
    kept: list[Fetch | Compute] = []
    for step in steps:
        assert isinstance(step, Fetch | Compute)
        read = refs(step.plan) if isinstance(step, Compute) else [k.relation for k in step.keys]
        if names.isdisjoint(read):
            lowering.steps.append(step)
        else:
            names.add(step.result)
            kept.append(step)
    made = schedule(kept, (each.later for each in relations))
    return tuple(step for step in made if isinstance(step, Fetch | Compute))
