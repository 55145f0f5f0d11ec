"""How a nested view is shredded, as text: its query, the plan and the cost of each relation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isinf

from everview.analysis.degree import degree
from everview.database.catalog.catalog import Catalog
from everview.errors import UserError
from everview.lang.front_end import estimated_costs, flat_queries, shared_dictionaries
from everview.lang.nested.estimate import NOTHING, Estimate
from everview.plan.text import print_plan


def explain_shredded(catalog: Catalog, name: str, rows: Mapping[str, int]) -> str:
    """The flat relation of a nested view and its dictionaries, each with plan, degree and cost.

    The degree says how often a plan can be differentiated before it reads no table. Costs are those
    of the cost transformation, for relations of so many rows.
    """
    if not catalog.is_nested(name):
        remedy = "choose another stage, or name a view with collections that are kept apart"
        raise UserError("X001", f"{name} is no nested view", remedy=remedy)
    query, known = catalog.views[name].query, catalog.known_relations()
    texts, costs = flat_queries(query, known), estimated_costs(query, known, rows)
    blocks = ["\n".join((query, *_whole(costs.values())))]
    stored = (name, *catalog.dictionaries(name))
    for each in stored:
        plan = catalog.compiled(each).plan
        found = degree(plan)
        shown = "not finite: maintained by thresholds or groups" if isinf(found) else f"{found:g}"
        kind = "flat" if each == name else "dictionary"
        notes = list(_notes(costs[each], is_dictionary=each != name)) if each in costs else []
        notes += [texts[each]] if each in texts else []
        head = f"{each} ({kind}, degree {shown})"
        blocks.append("\n".join((head, *notes, print_plan(plan))))
    blocks += [f"{each} (array)" for each in costs if each not in stored]
    blocks += [
        f"{each} (dictionary, shared)" for each in shared_dictionaries(query, known).values()
    ]
    return "\n\n".join(blocks)


def _whole(costs: Iterable[Estimate]) -> Iterator[str]:
    """What the view costs, and a change of one row; a warning where that is no less (Thm 4)."""
    every = list(costs)
    if not every:
        return
    time = sum(each.time for each in every)
    yield f"-- cost: {time}"
    for table in dict.fromkeys(name for each in every for name in each.changes):
        changes = [each.changes.get(table, NOTHING) for each in every]
        if None in changes:
            yield (
                f"-- warning: a change of {table} has no delta in IncNRC⁺ (Theorem 4): "
                "an aggregate depends on it, and is maintained by groups"
            )
            continue
        change = sum(each.time for each in changes if each is not None)
        yield f"-- cost of a change of one row of {table}: {change}"
        if change >= time:
            yield (
                f"-- warning: this is no less than the view (Theorem 4): {table} has no more rows "
                "than the change"
            )


def _notes(found: Estimate, *, is_dictionary: bool) -> Iterator[str]:
    if is_dictionary:
        yield "-- input-dependent: shredded" if found.depends else "-- constant"
    labels = f"{found.outer} labels × " if is_dictionary else ""
    yield f"-- cost: {labels}{found.cost} = {found.time}"
