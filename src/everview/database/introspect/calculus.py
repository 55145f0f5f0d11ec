"""A view as AGCA, and as the triggers that would keep it, as text."""

from __future__ import annotations

from everview.database.catalog.catalog import Catalog
from everview.expr.types import names
from everview.lang.agca.factorize import Keys
from everview.lang.agca.from_plan import definitions_of
from everview.lang.agca.printer import print_definition
from everview.lang.agca.syntax import Definition
from everview.lang.agca.views import checked_definitions
from everview.lang.front_end import AGCA
from everview.trigger_programs.compile import compile_totals, compile_triggers
from everview.trigger_programs.program import print_program


def explain_agca(catalog: Catalog, name: str) -> str:
    """The definitions of a view: as it is written, or one for each total of a GROUP BY."""
    return "\n".join(f"{print_definition(each)};" for each in _definitions(catalog, name))


def explain_triggers(catalog: Catalog, name: str) -> str:
    """What one row of each relation would add to each map."""
    definitions = _definitions(catalog, name)
    if catalog.views[name].language == AGCA:
        program = compile_triggers(definitions)
    else:
        program = compile_totals({name: definitions}, unique_keys(catalog))
    return print_program(program).rstrip("\n")


def unique_keys(catalog: Catalog) -> Keys:
    """The positions of the primary key of each table."""
    return {
        each.name: tuple(names(each.columns).index(column) for column in each.key)
        for each in catalog.tables.values()
        if each.key
    }


def _definitions(catalog: Catalog, name: str) -> tuple[Definition, ...]:
    view = catalog.views[name]
    if view.language == AGCA:
        return checked_definitions(view.query)
    not_null = {each.name: each.not_null for each in catalog.tables.values()}
    compiled = catalog.compiled(name)
    return definitions_of(name, compiled.query or compiled.plan, not_null)
