"""Views of SQL as trigger programs in this process: kept by triggers, and read.

What is below the grouping becomes a program; what is above it, such as AVG or ORDER BY with LIMIT,
is computed from the totals of the groups when a result is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from everview.database.trigger_script import Script, read_script
from everview.engines.duckdb.evaluator import duckdb_workspace
from everview.errors import UserError
from everview.expr.types import WEIGHT, Column, names
from everview.lang.agca.from_plan import TOTALS, Grouped, definitions_of, rows_name
from everview.lang.agca.syntax import Definition
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.workspace import Workspace
from everview.trigger_programs.columns import Columns, arrow_type
from everview.trigger_programs.compile import compile_totals
from everview.trigger_programs.running import Row, Triggers


def sql_triggers(text: str) -> SqlTriggers:
    """The triggers of a script of CREATE TABLE and CREATE VIEW statements."""
    return SqlTriggers(read_script(text))


class SqlTriggers(Triggers):
    """Views of SQL that are kept by triggers, in memory."""

    def __init__(self, script: Script) -> None:
        self._views = script.grouped()
        not_null = script.not_null()
        plans = {n: p for n, p in script.plans.items() if n in self._views} or script.plans
        if not plans:
            raise UserError("G010", "there is no view", remedy="add CREATE VIEW … GROUP BY …")
        totals = {name: _definitions(name, plan, not_null) for name, plan in plans.items()}
        schemas = {each.name: each.columns for each in script.tables.values()}
        unique = {
            each.name: tuple(names(each.columns).index(column) for column in each.key)
            for each in script.tables.values()
            if each.key
        }
        program = compile_totals(totals, unique)
        self._maps_of = {each.name: each for each in program.views}
        lengths = {each.name: dict(each.lengths) for each in script.tables.values()}
        super().__init__(program, Columns(schemas, not_null, lengths))
        for relation, places in self._read.items():
            for at in places:
                _must_be_readable(relation, schemas[relation][at])

    def result(self, view: str | None = None) -> list[Row]:
        """The rows of a view, of the only one if it is not named, in no order."""
        table = self.to_arrow(view)
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def to_arrow(self, view: str | None = None) -> pa.Table:
        """The rows of a view as an Arrow table, with the columns and types of its query."""
        name = self._named(view, self._views)
        found = self._views[name]
        with self._workspace() as workspace:
            rows = workspace.evaluate_over(found.around, {TOTALS: self._totals(name, found)})
        weights = rows.column(WEIGHT).to_numpy()
        rows = rows.drop_columns([WEIGHT])
        if (weights == 1).all():
            return rows
        return rows.take(pa.array(np.repeat(np.arange(len(weights)), weights)))

    def _totals(self, name: str, view: Grouped) -> pa.Table:
        """The totals of the groups that have rows."""
        totals = view.totals
        maps = [self._maps[self._maps_of[f"{name} {m.name}"].values] for m in totals.measures]
        counts = self._maps[self._maps_of[rows_name(name)].values]
        groups = [key for key, number in counts.items() if number > 0] if totals.keys else [()]
        schema = arrow_schema(schema_of(totals))
        parts = [key if len(totals.keys) != 1 else (key,) for key in groups]
        columns: list[list[Any]] = [[part[at] for part in parts] for at in range(len(totals.keys))]
        columns += [[entries.get(key, 0) for key in groups] for entries in maps]
        columns.append([1] * len(groups))
        try:
            arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
        except (pa.ArrowInvalid, OverflowError):
            raise UserError(
                "G008",
                f"a total of {name} does not fit its type",
                remedy="CAST what is summed to a type with fewer digits",
            ) from None
        return pa.table(arrays, schema=schema)

    @contextmanager
    def _workspace(self) -> Iterator[Workspace]:
        workspace = duckdb_workspace()
        try:
            yield workspace
        finally:
            workspace.sql.close()


def _definitions(
    name: str, plan: Plan, not_null: Mapping[str, frozenset[str]]
) -> tuple[Definition, ...]:
    """The totals of a view; an error names the view."""
    try:
        return definitions_of(name, plan, not_null)
    except UserError as problem:
        raise UserError(
            problem.code,
            f"{name} has no triggers: {problem.problem}",
            remedy=f"{problem.remedy}, or keep it in a store, with db.sql",
        ) from problem


def _must_be_readable(relation: str, column: Column) -> None:
    if arrow_type(column.type) is None:
        raise UserError(
            "G009",
            f"this is no sum of products: {column.name} of {relation} is {column.type}",
            remedy="use whole numbers, decimals, strings, booleans and dates",
        )
