"""The domains of a view: which nodes have parameters, where their values come from, how many."""

from __future__ import annotations

from collections.abc import Iterator

from everview.database.catalog.catalog import Catalog
from everview.database.introspect.fetch_costs import FetchCosts
from everview.database.introspect.operators import states_for
from everview.expr import scalar
from everview.lang.correlation import CorrelatedNode
from everview.lang.front_end import correlated_nodes
from everview.plan.build import columns_of
from everview.plan.nodes import Distinct, Map, Plan, Source, Unnest
from everview.plan.text import INDENT
from everview.plan.traverse import children
from everview.rewrite.passes import rewrite


def explain_domains(catalog: Catalog, name: str, known: FetchCosts) -> str:
    """Each subquery that reads the query around it: inputs, outputs and entries in the store."""
    nodes = correlated_nodes(*catalog.text_over(name), catalog.analyze)
    if not nodes:
        return "no subquery reads the query around it"
    states = catalog.maintenance.states
    kept = {
        state: states.stored[state].plan for state in states_for(catalog.compiled(name), states)
    }
    return "\n".join(line for node in nodes for line in _node(node, kept, known))


def _node(node: CorrelatedNode, kept: dict[str, Plan], known: FetchCosts) -> Iterator[str]:
    yield " ".join(node.text.split())
    columns = columns_of(node.domain)
    for name, column in zip(node.inputs, columns, strict=True):
        found = ", ".join(dict.fromkeys(origins(node.domain, column))) or "constants"
        yield f"{INDENT}input {name}, from {found}"
    yield f"{INDENT}output {', '.join(node.outputs)}"
    stored = _stored(node, kept)
    if stored is None:
        yield f"{INDENT}its entries are computed for a change, and not stored"
        return
    entries = known.entries(stored, columns)
    yield f"{INDENT}{'unknown' if entries is None else entries} entries in {stored}"


def _stored(node: CorrelatedNode, kept: dict[str, Plan]) -> str | None:
    """The state that has a row for each entry: that of the domain itself, else of the node."""
    domain, columns = rewrite(node.domain), {*columns_of(node.domain)}
    domain = domain.child if isinstance(domain, Distinct) else domain
    found = (name for name, plan in kept.items() if plan == domain)
    near = (name for name, plan in kept.items() if columns < {*columns_of(plan)})
    return min(found, default=None) or min(near, default=None)


def origins(plan: Plan, column: str) -> Iterator[str]:
    """The columns of tables and views that a column has its values from."""
    match plan:
        case Source(name):
            yield f"{name}.{column}"
        case Map(child, outputs):
            text = next(each.scalar for each in outputs if each.name == column)
            for read in sorted(scalar.columns(text)):
                yield from origins(child, read)
        case Unnest(child, array, element, position, _) if column in (element.name, position):
            for read in sorted(scalar.columns(array)):
                yield from origins(child, read)
        case _:
            for child in children(plan):
                if column in columns_of(child):
                    yield from origins(child, column)
