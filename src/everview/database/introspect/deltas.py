"""The deltas of a view: degree, the chain of derivatives, and the maps that each of them reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from everview.analysis.degree import degree
from everview.analysis.keys import keys
from everview.compiler import View
from everview.differentiate.product_change import Step, drive
from everview.plan.nodes import Distinct, Fixpoint, Join, Partition, Plan, Totals, Window
from everview.plan.products import Members, Product, product_of
from everview.plan.text import INDENT
from everview.plan.traverse import sources, walk
from everview.program.arrangements import Arrangements
from everview.program.maps import products_in
from everview.program.policy import HIGHER_ORDER, Decision


def policy_line(decision: Decision) -> str:
    """A policy, and why it is the one."""
    why = "declared" if decision.declared else decision.reason or "the default"
    return f"{decision.policy} ({why})"


def explain_deltas(view: View, decision: Decision, states: Arrangements) -> str:
    """What each change of a view reads, delta by delta, down to degree 0."""
    lines = [f"policy {policy_line(decision)}"]
    products = products_in(view.plan)
    for product in products:
        lines += _product(product, product.members, states, set())
    inside = {node for each in products for f in each.factors for node in walk(f)}
    split = {n for node in walk(view.plan) if _is_product(node) for n in walk(node)} - inside
    for node in walk(view.plan):
        if isinstance(node, Totals) and node not in split | inside:
            read = ", ".join(source.name for source in sources(node))
            constant = "" if _examined(node, frozenset()) else "  -- constant work"
            lines.append(f"totals over {read}: degree {_shown(node)}{constant}")
    if len(lines) == 1:
        lines.append(f"degree {_shown(view.plan)}")
    if decision.policy == HIGHER_ORDER and not products:
        lines.append("no grouped join can be split into factors: maintained as under circuit")
    again = _examined(view.plan, split)
    return "\n".join([*lines, *(["examined again:"] if again else ()), *again])


def _is_product(plan: Plan) -> bool:
    return isinstance(plan, Totals) and product_of(plan) is not None


def _examined(plan: Plan, split: Collection[Plan]) -> list[str]:
    """By which keys old rows are examined again, operator by operator, but for what is split."""
    found: list[str] = []
    for node in walk(plan):
        match node:
            case Join(left, right, on) if node not in split:
                found.append(_joined(left, right, [theirs for _, theirs in on]))
                found.append(_joined(right, left, [ours for ours, _ in on]))
            case Distinct(child):
                found.append(f"{INDENT}Δ{_read(child)}: equal rows")
            case Partition(child, by) | Window(child, by):
                groups = f"groups by {', '.join(by)}" if by else "the one group of all rows"
                found.append(f"{INDENT}Δ{_read(child)}: {groups}")
            case Fixpoint(result):
                found.append(f"{INDENT}{result}: what its changed rows join, round by round")
    return list(dict.fromkeys(found))


def _joined(changed: Plan, other: Plan, on: list[str]) -> str:
    by = f"by {', '.join(on)}" if on else "all rows"
    unique = ", a unique key" if on and any(key <= {*on} for key in keys(other)) else ""
    return f"{INDENT}Δ{_read(changed)}: {_read(other)} {by}{unique}"


def _read(plan: Plan) -> str:
    return " ⋈ ".join(dict.fromkeys(source.name for source in sources(plan))) or "constants"


def _shown(plan: Plan) -> str:
    found = degree(plan)
    return str(int(found)) if found != float("inf") else "infinite"


def _product(
    product: Product, members: Members, states: Arrangements, known: set[Members], depth: int = 0
) -> Iterator[str]:
    """A product of totals, the delta for each of its factors, and then the maps these read."""
    known.add(members)
    whole = product.map_of(members)
    margin, by = INDENT * depth, ", ".join(product.keys_of(members)) or "nothing"
    kept = _state(whole, states) if members != product.members else ""
    yield f"{margin}Σ over {_names(product, members)} by {by}: degree {_shown(whole)}{kept}"
    maps: list[Members] = []
    for place in members:
        steps = drive(product, members, place, lambda part: product.map_of(part) in states.maps)
        read = "; ".join(f"{_names(product, s.members)} by {_by(s)}" for s in steps) or "nothing"
        more = sorted({each for step in steps for each in _more(step)})
        note = f"  -- examines every {', '.join(more)}" if more else "  -- constant work"
        yield f"{margin}{INDENT}Δ{_names(product, (place,))}: reads {read}{note}"
        maps += (step.members for step in steps if len(step.members) > 1)
    for each in dict.fromkeys(maps):
        if each not in known:
            yield from _product(product, each, states, known, depth + 1)


def _names(product: Product, members: Members) -> str:
    found = (source.name for i in members for source in sources(product.factors[i]))
    return " ⋈ ".join(found)


def _by(step: Step) -> str:
    own = ", ".join(theirs for _, theirs in step.on) or "nothing"
    return f"{own}, a unique key" if step.by_key else own


def _more(step: Step) -> set[str]:
    """The keys of a map that a lookup does not give: it brings a row for each of their values."""
    return set() if step.by_key else {*step.map.keys} - {theirs for _, theirs in step.on}


def _state(plan: Plan, states: Arrangements) -> str:
    found = (state.name for state in states.stored.values() if state.plan == plan)
    return "".join(f", stored as {name}" for name in found)
