"""The step that follows a change through the iterations of a loop."""

from __future__ import annotations

from everview.differentiate.context import LoopChange, RelationChange
from everview.differentiate.lifting import label, trace_of
from everview.expr import scalar
from everview.plan.build import columns_of
from everview.plan.nodes import Empty, Map, Plan, Recursive
from everview.plan.traverse import children, walk
from everview.program.lowering import Lowering
from everview.program.schedule import schedule
from everview.program.steps import Compute, Fetch, Loop, Looped, Step, refs


def lower_loop(lowering: Lowering, loop: LoopChange) -> dict[Plan, Plan]:
    """Take a step that runs the loop; how its relations change, and the sums they depend on."""
    inner = lowering.inside()
    relations = tuple(_looped(lowering, inner, loop, each) for each in loop.relations)
    body = _varying(lowering, inner.steps, relations)
    lowering.steps.append(Loop(label(loop.node), relations, body, loop.node.limit))
    sums: dict[Plan, Plan] = {each.sum: each.sums for each in loop.relations}
    return sums | {trace_of(loop.node, each.name): each.changes for each in loop.relations}


def _looped(lowering: Lowering, inner: Lowering, loop: LoopChange, each: RelationChange) -> Looped:
    """One relation: what starts its change is computed before, the rest at every iteration."""
    start, later = lowering.lower(each.start), inner.lower(each.later)
    return Looped(
        each.name,
        each.schema,
        "" if isinstance(start, Empty) else lowering.compute(start).name,
        "" if isinstance(later, Empty) else inner.compute(later).name,
        each.now.name,
        each.before.name,
        each.touched.name,
        each.sums.name,
        each.changes.name,
        _history(lowering, loop.node.body(each.name), each) if each.is_set else None,
    )


def _history(lowering: Lowering, body: Plan, each: RelationChange) -> Fetch:
    """The old sums of rows, looked up by a column that differs from iteration to iteration."""
    carried = _carried(body)
    by = tuple(sorted(columns_of(body), key=lambda column: column in carried))
    return lowering.slice(each.sum, by, each.touched)


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
    lowering: Lowering, steps: list[Step], relations: tuple[Looped, ...]
) -> tuple[Fetch | Compute, ...]:
    """The steps whose result differs between iterations; loop-invariant ones are taken before."""
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
