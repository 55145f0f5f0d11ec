"""A view as AGCA, and as the triggers that would keep it, as text."""

from __future__ import annotations

from everview.database.catalog.catalog import Catalog
from everview.lang.agca.from_plan import definitions_of
from everview.lang.agca.printer import print_definition
from everview.lang.agca.syntax import Definition
from everview.lang.agca.views import checked_definitions
from everview.lang.front_end import AGCA
from everview.trigger_programs.compile import compile_triggers
from everview.trigger_programs.program import print_program


def explain_agca(catalog: Catalog, name: str) -> str:
    """The definitions of a view: as it is written, or one for each total of a GROUP BY."""
    return "\n".join(f"{print_definition(each)};" for each in _definitions(catalog, name))


def explain_triggers(catalog: Catalog, name: str) -> str:
    """What one row of each relation would add to each map."""
    return print_program(compile_triggers(_definitions(catalog, name))).rstrip("\n")


def _definitions(catalog: Catalog, name: str) -> tuple[Definition, ...]:
    view = catalog.views[name]
    if view.language == AGCA:
        return checked_definitions(view.query)
    not_null = {each.name: each.not_null for each in catalog.tables.values()}
    compiled = catalog.compiled(name)
    return definitions_of(name, compiled.query or compiled.plan, not_null)
