"""How a view is kept fresh, stage by stage, as text."""

from __future__ import annotations

from everview.arguments import did_you_mean, named
from everview.compiler import compile_program
from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import ViewDefinition
from everview.database.introspect.constraints import explain_constraint
from everview.database.introspect.fetch_costs import FetchCosts
from everview.database.introspect.operators import Stratum, explain_operators, strata
from everview.database.introspect.theories import THEORIES
from everview.differentiate.definitions import print_derivative
from everview.errors import UserError
from everview.plan.text import print_plan
from everview.program.explain import explain
from everview.program.steps import Compute, Program, change_name
from everview.sqlgen.sql import SPARK, emit_step

STAGES = ("operators", "plan", "derivative", "program", "sql", *THEORIES)


def explain_view(catalog: Catalog, name: str, stage: str, known: FetchCosts) -> str:
    """One stage of the way of a view or constraint; `known` is what its fetches brought before."""
    if catalog.find(name) is None and name.lower() in map(str.lower, catalog.constraints):
        return explain_constraint(catalog, name, stage, known)
    name = catalog.relation(name)
    if name not in catalog.views:
        raise UserError("C006", f"{name} is a table", remedy="explain a view")
    if stage not in STAGES:
        raise UserError(
            "X001",
            f"there is no stage {named(stage)}",
            remedy=f"{did_you_mean(stage, STAGES)}choose among {', '.join(STAGES)}",
        )
    if (problem := catalog.beyond_reach.get(name)) is not None:
        told = f"{name} is not kept fresh here: {problem.problem}"
        raise UserError("E015", told, remedy=problem.remedy)
    if stage in THEORIES:
        return THEORIES[stage](catalog, name, known)
    plan = catalog.compiled(name).plan
    if stage == "operators":
        told = explain_operators(catalog.compiled(name), catalog.maintenance.states, known)
        return "\n".join([*_recomputed(catalog, name), told])
    if stage == "plan":
        return print_plan(plan)
    if stage == "derivative":
        return print_derivative(plan, maps=catalog.maintenance.states.maps)
    program = _program(catalog, name)
    if stage == "program":
        return "\n".join([*_recomputed(catalog, name), explain(program, known.of_fetches())])
    return "\n\n".join(
        f"-- {step.result}\n{emit_step(step, SPARK)}"
        for step in program.steps
        if isinstance(step, Compute)
    )


def explain_query(catalog: Catalog, text: str) -> str:
    """How a query would be kept fresh if it were a view."""
    grown = catalog.with_view(ViewDefinition("query", text)).compile()
    return explain_view(grown, "query", "operators", FetchCosts())


def strata_of(catalog: Catalog, name: str, known: FetchCosts) -> tuple[Stratum, ...]:
    """The recursions of a view, with what is kept of each iteration."""
    return strata(catalog.compiled(name), catalog.maintenance.states, known)


def _recomputed(catalog: Catalog, name: str) -> list[str]:
    """What of a view, and of the views it reads, is recomputed, and why."""
    return [
        f"{change_name(part.name)} := recompute when {', '.join(part.reads)} changes"
        f"  -- {part.reason}\n  {' '.join(part.query.split())}"
        for view in _views_under(catalog, name)
        for part in catalog.views[view].parts
    ]


def _views_under(catalog: Catalog, name: str) -> list[str]:
    """The view and the views it reads, in order of declaration."""
    needed = [name]
    for each in needed:
        needed += (read for read in catalog.reads(each) if read in catalog.views)
    return [view for view in catalog.views if view in needed]


def _program(catalog: Catalog, name: str) -> Program:
    """What a change of any table under the view does to this view."""
    views = _views_under(catalog, name)
    tables = [read for view in views for read in catalog.reads(view) if read in catalog.tables]
    parts = [part.name for view in views for part in catalog.views[view].parts]
    touched = dict.fromkeys((*tables, *parts), True)
    return compile_program(catalog.maintenance, touched, views)
