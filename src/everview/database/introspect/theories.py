"""The stages of `explain` that show a view in the terms of one theory of change."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from everview.database.catalog.catalog import Catalog
from everview.database.introspect.calculus import explain_agca, explain_triggers
from everview.database.introspect.deltas import explain_deltas
from everview.database.introspect.nabla import explain_nabla
from everview.database.introspect.shredded import explain_shredded
from everview.program.policy import Decision


def _deltas(catalog: Catalog, name: str) -> str:
    decision = catalog.views[name].decision or Decision()
    return explain_deltas(catalog.compiled(name), decision, catalog.maintenance.states)


THEORIES: Mapping[str, Callable[[Catalog, str], str]] = {
    "deltas": _deltas,
    "nabla": lambda catalog, name: explain_nabla(catalog.views[name]),
    "agca": explain_agca,
    "triggers": explain_triggers,
    "shredded": explain_shredded,
}
"""What shows each such stage of a view."""
