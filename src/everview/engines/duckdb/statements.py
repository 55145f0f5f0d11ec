"""How plans and steps are put to DuckDB, remembered: programs ask for the same ones again."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from everview.analysis.sign import Sign, sign
from everview.plan.nodes import Empty, Plan, Ref
from everview.plan.traverse import schema_of, transform
from everview.program.steps import Compute
from everview.rewrite.normalize import normalize
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.sql import DUCKDB, emit, emit_consolidated, emit_step


@lru_cache(maxsize=4096)
def without(plan: Plan, empty: frozenset[str]) -> Plan:
    """The plan when relations have no rows; what is left of it has the same columns."""

    def known(node: Plan) -> Plan:
        gone = isinstance(node, Ref) and node.name in empty
        return Empty(schema_of(node)) if gone else node

    plain = transform(plan, known)
    left = normalize(plain)
    kept = schema_of(left) == schema_of(plan) and (_is_said(left) or not _is_said(plain))
    return left if kept else plain


def _is_said(plan: Plan) -> bool:
    """Whether DuckDB can be asked for a plan; scalars put into each other may be beyond it."""
    try:
        emit(plan, DUCKDB)
    except NotAtParity:
        return False
    return True


@lru_cache(maxsize=4096)
def step_sql(step: Compute, left: Plan, careful: bool) -> str:
    """The SQL of a step whose plan is left as `left`."""
    return emit_step(replace(step, plan=left), DUCKDB, careful=careful)


@lru_cache(maxsize=4096)
def plan_sql(plan: Plan) -> str:
    """The SQL of the rows of a plan, added up."""
    return emit_consolidated(plan, DUCKDB)


@lru_cache(maxsize=4096)
def any_sql(plan: Plan) -> str:
    """Rows if and only if the plan has any: only what can cancel has to be added up."""
    return plan_sql(plan) if sign(plan) is Sign.ANY else emit(plan, DUCKDB)
