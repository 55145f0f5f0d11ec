"""How a nested view is shredded, as text: its query, and the plan of each of its relations."""

from __future__ import annotations

from math import isinf

from everview.analysis.degree import degree
from everview.database.catalog.catalog import Catalog
from everview.errors import UserError
from everview.lang.front_end import flat_queries
from everview.plan.text import print_plan


def explain_shredded(catalog: Catalog, name: str) -> str:
    """The flat relation of a nested view and its dictionaries, each with its plan and degree.

    The degree says how often a plan can be differentiated before it reads no table.
    """
    if not catalog.is_nested(name):
        remedy = "choose another stage, or name a view with collections that are kept apart"
        raise UserError("X001", f"{name} is no nested view", remedy=remedy)
    query = catalog.views[name].query
    known = {each.lower(): catalog.source(each) for each in catalog.reads(name)}
    texts = flat_queries(query, known)
    blocks = [query]
    for each in (name, *catalog.dictionaries(name)):
        plan = catalog.compiled(each).plan
        found = degree(plan)
        shown = "not finite: maintained by thresholds or groups" if isinf(found) else f"{found:g}"
        kind = "flat" if each == name else "dictionary"
        query = f"{texts[each]}\n" if each in texts else ""
        blocks.append(f"{each} ({kind}, degree {shown})\n{query}{print_plan(plan)}")
    return "\n\n".join(blocks)
