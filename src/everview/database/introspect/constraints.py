"""The tables `everview.constraints` and `everview.violations`, and how a check reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from everview.compiler import compile_assertion
from everview.database.catalog.catalog import Catalog
from everview.database.introspect.fetch_costs import FetchCosts
from everview.database.introspect.operators import explain_operators
from everview.database.introspect.system_tables import PendingOf, SystemTable
from everview.database.queries import select
from everview.database.violations import shown_row
from everview.errors import UserError
from everview.expr.quoting import spark_name
from everview.expr.types import Column, Schema
from everview.program.explain import explain
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.protocol import Engine, Snapshot

MAX_VIOLATIONS = 1000
"""How many violating rows of one constraint are shown; its view has all of them."""

_CONSTRAINTS: Schema = (
    *(Column(name, "string") for name in ("name", "kind", "table", "rule")),
    Column("enforced", "boolean"),
)
_VIOLATIONS: Schema = tuple(Column(n, "string") for n in ("constraint", "table", "rule", "row"))


def constraint_tables(
    catalog: Catalog, engine: Engine, snapshot: Snapshot, pending: PendingOf
) -> dict[str, SystemTable]:
    """The system tables about constraints, by name."""

    def violations() -> pa.Table:
        return _violations(catalog, engine, snapshot, pending)

    return {
        "constraints": SystemTable(_CONSTRAINTS, lambda: _constraints(catalog)),
        "violations": SystemTable(_VIOLATIONS, violations),
    }


def _constraints(catalog: Catalog) -> pa.Table:
    """Primary keys and NOT NULL are shown with the columns of a table, not here."""
    rows = [(c.name, c.kind, c.table, c.text, c.enforced) for c in catalog.constraints.values()]
    return _weighted(rows, _CONSTRAINTS)


def _violations(
    catalog: Catalog, engine: Engine, snapshot: Snapshot, pending: PendingOf
) -> pa.Table:
    """The rows that violate constraints which are not enforced, after pending changes."""
    collected = [each for each in catalog.constraints.values() if not each.enforced]
    changes = pending([each.name for each in collected])

    def rows() -> Iterator[tuple[str, ...]]:
        for each in collected:
            some = f"SELECT * FROM {spark_name(each.name)} LIMIT {MAX_VIOLATIONS}"
            found = select(engine, some, (each.name,), snapshot, changes).to_arrow()
            for row in found.to_pylist():
                yield each.name, each.table, each.text, shown_row(row)

    return _weighted(list(rows()), _VIOLATIONS)


def _weighted(rows: Sequence[tuple[object, ...]], columns: Schema) -> pa.Table:
    schema = arrow_schema(columns)
    weighted = [(*row, 1) for row in rows]
    return pa.table([list(c) for c in zip(*weighted, strict=True)] or [[] for _ in schema], schema)


def explain_constraint(catalog: Catalog, name: str, stage: str, known: FetchCosts) -> str:
    """What the check of a constraint reads: by operator, or as the steps of a program."""
    constraint = catalog.constraint(name)
    if (problem := catalog.beyond_reach.get(constraint.name)) is not None:
        told = f"{constraint.name} is not verified here: {problem.problem}"
        raise UserError("E015", told, remedy=problem.remedy)
    assertion = catalog.assertion(constraint.name)
    head = f"-- {constraint.name}: {constraint.text}\n-- must stay empty: {assertion.query}"
    if stage == "operators":
        states = catalog.maintenance.states
        return f"{head}\n{explain_operators(assertion.view, states, known)}"
    if stage != "program":
        raise UserError(
            "X001",
            f"a constraint has no stage {stage}",
            remedy="choose among operators, program",
        )
    touched = dict.fromkeys(catalog.tables_under(constraint.name), True)
    program = compile_assertion(catalog.maintenance, assertion, touched)
    return f"{head}\n{explain(program, known.of_fetches())}"
