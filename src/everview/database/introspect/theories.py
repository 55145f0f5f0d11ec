"""The stages of `explain` that show a view in the terms of one theory of change."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from everview.database.catalog.catalog import Catalog
from everview.database.introspect.calculus import explain_agca, explain_triggers
from everview.database.introspect.deltas import explain_deltas
from everview.database.introspect.domains import explain_domains
from everview.database.introspect.fetch_costs import FetchCosts
from everview.database.introspect.nabla import explain_nabla, explain_pre
from everview.database.introspect.shredded import explain_shredded
from everview.program.policy import Decision


def _deltas(catalog: Catalog, name: str) -> str:
    decision = catalog.views[name].decision or Decision()
    return explain_deltas(catalog.compiled(name), decision, catalog.maintenance.states)


THEORIES: Mapping[str, Callable[[Catalog, str, FetchCosts], str]] = {
    "deltas": lambda catalog, name, _: _deltas(catalog, name),
    "domains": explain_domains,
    "nabla": lambda catalog, name, _: explain_nabla(catalog.views[name]),
    "pre": lambda catalog, name, _: explain_pre(catalog.views[name]),
    "agca": lambda catalog, name, _: explain_agca(catalog, name),
    "triggers": lambda catalog, name, _: explain_triggers(catalog, name),
    "shredded": lambda catalog, name, known: explain_shredded(catalog, name, known.sizes),
}
"""What shows each such stage of a view, where relations have so many rows."""
