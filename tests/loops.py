"""Random loops over small graphs: linear, non-linear and mutual, sets and bags."""

from __future__ import annotations

from collections import Counter

from hypothesis import strategies as st

from everview.expr import scalar
from everview.expr.types import Column
from everview.plan.build import add, distinct, filter_, group_by, join, map_, negate, project
from everview.plan.nodes import Aggregate, Fixpoint, Output, Plan, Recursive, Source
from strategies import Bag, World

PAIR = (Column("x", "int"), Column("y", "int"))
E = Source("e", PAIR)
F = Source("f", PAIR)
TABLES = {"e": E, "f": F}
NODES = 5


def pair(plan: Plan, x: str, y: str) -> Plan:
    """Two columns of a plan as a pair."""
    return map_(plan, (Output("x", "int", scalar.column(x)), Output("y", "int", scalar.column(y))))


def path(left: Plan, right: Plan) -> Plan:
    """Pairs (x, y) with (x, z) on the left and (z, y) on the right."""
    first = map_(left, (Output("l.x", "int", "`x`"), Output("l.z", "int", "`y`")))
    second = map_(right, (Output("r.z", "int", "`x`"), Output("r.y", "int", "`y`")))
    return pair(join(first, second, (("l.z", "r.z"),)), "l.x", "r.y")


def without(plan: Plan, blocked: Plan) -> Plan:
    """The pairs whose end does not begin a pair of `blocked`."""
    ends = distinct(map_(blocked, (Output("end", "int", "`x`"),)))
    return add(plan, negate(project(join(plan, ends, (("y", "end"),)), ("x", "y"))))


def popular(plan: Plan) -> Plan:
    """The ends of pairs that more than one pair has, as loops: an aggregate below a recursion."""
    counted = group_by(plan, ("y",), (Aggregate("n", "bigint", "count"),))
    return pair(filter_(counted, "`n` > 1"), "y", "y")


def recursive(name: str) -> Plan:
    """A relation of a loop."""
    return Recursive(name, PAIR)


TABLES_BELOW = st.sampled_from([E, F, without(E, F), popular(F), pair(F, "y", "x")])


@st.composite
def terms(draw: st.DrawFn, names: tuple[str, ...], nested: bool = True) -> Plan:
    """One rule with relations of the loop in it."""
    one, other = (recursive(draw(st.sampled_from(names))) for _ in range(2))
    below = draw(TABLES_BELOW)
    kind = draw(st.sampled_from(["left", "right", "both", "turned", "blocked", "some", "inner"]))
    match kind:
        case "left":
            return path(one, below)
        case "right":
            return path(below, one)
        case "both":
            return path(one, other)
        case "turned":
            return pair(one, "y", "x")
        case "blocked":
            return without(path(one, below), F)
        case "some":
            return filter_(path(one, other), "`x` < `y`")
        case _:
            inner = path(one, below)
            return path(distinct(inner) if nested else inner, below)


@st.composite
def sets(draw: st.DrawFn, nested: bool = True) -> Fixpoint:
    """One to three relations that are sets, defined by each other."""
    names = draw(st.sampled_from([("p",), ("p",), ("p", "q"), ("p", "q", "r")]))
    equations = []
    for name in names:
        base = draw(TABLES_BELOW) if name == "p" or draw(st.booleans()) else None
        steps = draw(st.lists(terms(names, nested), min_size=1, max_size=2))
        equations.append((name, distinct(add(*([base] if base is not None else []), *steps))))
    return Fixpoint(draw(st.sampled_from(names)), tuple(equations))


@st.composite
def bags(draw: st.DrawFn) -> Fixpoint:
    """A relation that counts the ways, along edges that go up."""
    upward = filter_(draw(st.sampled_from([E, F, add(E, F)])), "`x` < `y`")
    step = draw(
        st.sampled_from([path(recursive("p"), upward), without(path(recursive("p"), upward), F)])
    )
    return Fixpoint("p", (("p", add(upward, step)),))


loops = st.one_of(sets(), sets(), sets(), bags())


@st.composite
def graphs(draw: st.DrawFn, edges: int = 8) -> dict[str, Bag]:
    """Random edges among a few nodes."""
    node = st.integers(0, NODES - 1)
    pairs = st.tuples(st.one_of(node, node, node, st.none()), node)
    return {name: Counter(draw(st.lists(pairs, max_size=edges))) for name in TABLES}


@st.composite
def moves(draw: st.DrawFn, world: World) -> dict[str, Bag]:
    """A few edges inserted and deleted."""
    found = {}
    fresh = draw(graphs(2))
    for name in TABLES:
        present = sorted(world[name], key=repr)
        gone = draw(st.lists(st.sampled_from(present), max_size=2)) if present else []
        change = Counter(fresh[name])
        for row in dict.fromkeys(gone):
            change[row] -= 1
        found[name] = Counter({row: weight for row, weight in change.items() if weight})
    return found
