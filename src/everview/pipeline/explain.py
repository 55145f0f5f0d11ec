"""How a view is kept fresh, stage by stage, as text."""

from __future__ import annotations

from everview.differentiate.derive import derive
from everview.emit.sql import SPARK, emit_step
from everview.errors import UserError
from everview.pipeline.catalog import Catalog
from everview.plan.text import print_plan
from everview.program.explain import explain
from everview.program.operators import Known, explain_operators
from everview.program.steps import Compute, Program

STAGES = ("operators", "plan", "derivative", "program", "sql")


def explain_view(catalog: Catalog, name: str, stage: str, known: Known) -> str:
    """One stage of the way of a view; `known` is what its fetches brought before."""
    if name not in catalog.views:
        raise UserError("C006", f"{name} is a table", remedy="explain a view")
    if stage not in STAGES:
        raise UserError(
            "X001", f"there is no stage {stage}", remedy=f"choose among {', '.join(STAGES)}"
        )
    plan = catalog.compiled(name).plan
    if stage == "operators":
        return explain_operators(name, plan, catalog.maintenance.states, known)
    if stage == "plan":
        return print_plan(plan)
    if stage == "derivative":
        return print_plan(derive(plan))
    program = _program(catalog, name)
    if stage == "program":
        return explain(program, {mark: m.rows for mark, m in known.measured.items()})
    return "\n\n".join(
        f"-- {step.result}\n{emit_step(step, SPARK)}"
        for step in program.steps
        if isinstance(step, Compute)
    )


def _program(catalog: Catalog, name: str) -> Program:
    """What a change of any table under the view does to this view."""
    views, tables = [name], list[str]()
    for each in views:
        for read in catalog.reads(each):
            (tables if read in catalog.tables else views).append(read)
    touched = dict.fromkeys(dict.fromkeys(tables), True)
    return catalog.maintenance.program(touched, frozenset(views))
