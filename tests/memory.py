"""Programs run by definition: the smallest engine there can be."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation import Columns, Relations, Rows, bag_of, rows_of
from everview.compiler import Maintenance
from everview.emit.sql import ring_columns
from everview.plan.build import columns_of
from everview.plan.nodes import Plan, Source
from everview.plan.types import names
from everview.program.steps import Add, Check, Compute, Fetch, Program, Publish, change_name
from strategies import Row, World


class Memory:
    """Tables, views and states in memory, moved by programs.

    `fetched` tells of every fetch the relation, the column and how many rows it brought.
    """

    def __init__(self, maintenance: Maintenance, tables: Mapping[str, Source], world: World):
        self._columns = {name: names(source.schema) for name, source in tables.items()}
        self._rings: dict[str, Columns] = dict.fromkeys(tables, ())
        self._rows = {name: list(world[name].items()) for name in tables}
        self.fetched: list[tuple[str, str | None, int]] = []
        stored = {view.source.name: view.plan for view in maintenance.views}
        stored |= {state.name: state.plan for state in maintenance.states.stored.values()}
        for name, plan in stored.items():
            value = self.meaning(plan)
            self._columns[name], self._rings[name] = columns_of(plan), ring_columns(plan)
            self._rows[name] = _rows(value, self._rings[name])

    def value(self, name: str) -> Mapping[Row, Row]:
        """A relation as a finite map: what identifies a row, and its ring value."""
        return _added_up(self._columns[name], self._rows[name], self._rings[name])

    def meaning(self, plan: Plan) -> Mapping[Row, Row]:
        """The value of a plan over what is stored."""
        known = {name: (self._columns[name], rows) for name, rows in self._rows.items()}
        return _added_up(columns_of(plan), rows_of(plan, known), ring_columns(plan))

    def run(self, program: Program, change: World) -> None:
        """One transaction: all reads see the old values, all writes happen at the end."""
        pending = {table: list(change[table].items()) for table in program.inputs}
        known = {change_name(t): (self._columns[t], rows) for t, rows in pending.items()}
        for step in program.steps:
            match step:
                case Fetch():
                    known[step.result] = self._slice(step, known)
                case Compute(result, plan, consolidated):
                    known[result] = _computed(plan, consolidated, known)
                case Check(_, _, _, plan):
                    assert not bag_of(rows_of(plan, known))
                case Add(name, made) | Publish(name, made):
                    assert known[made][0] == self._columns[name]
                    pending[name] = known[made][1]
                    _must_be_consolidated(*known[made], self._rings[name])
        for name, rows in pending.items():
            both = _added_up(self._columns[name], self._rows[name] + rows, self._rings[name])
            self._rows[name] = _rows(both, self._rings[name])

    def _slice(self, step: Fetch, known: Relations) -> tuple[Columns, Rows]:
        """The rows whose key has the same bits as one of the keys, as files are searched."""
        columns, rows = self._columns[step.relation], self._rows[step.relation]
        wanted = names(step.schema)
        if step.drivers and not any(known[name][1] for name in step.drivers):
            rows = []
        if step.by is not None:
            keys = {
                repr(row[known[key.relation][0].index(key.column)])
                for key in step.keys
                for row, _ in known[key.relation][1]
            }
            place = columns.index(step.by)
            rows = [(row, weight) for row, weight in rows if repr(row[place]) in keys]
        self.fetched.append((step.relation, step.by, len(rows)))
        places = [columns.index(name) for name in wanted]
        return wanted, [(tuple(row[i] for i in places), weight) for row, weight in rows]


def _computed(plan: Plan, consolidated: bool, known: Relations) -> tuple[Columns, Rows]:
    columns, rows = columns_of(plan), rows_of(plan, known)
    if consolidated:
        rings = ring_columns(plan)
        rows = _rows(_added_up(columns, rows, rings), rings)
    return columns, rows


def _added_up(columns: Columns, rows: Rows, rings: Columns) -> dict[Row, Row]:
    """The map from the other columns to the sum of the ring columns and the weight."""
    at = [columns.index(name) for name in rings]
    found: dict[Row, Row] = {}
    for row, weight in rows:
        key = tuple(v for i, v in enumerate(row) if i not in at)
        ring = (*(row[i] for i in at), weight)
        known = found.get(key)
        found[key] = ring if known is None else tuple(map(sum, zip(known, ring, strict=True)))
    return {key: ring for key, ring in found.items() if any(ring)}


def _rows(value: Mapping[Row, Row], rings: Columns) -> Rows:
    """The ring columns of totals are their last ones."""
    return [((*key, *ring[: len(rings)]), int(str(ring[-1]))) for key, ring in value.items()]


def _must_be_consolidated(columns: Columns, rows: Rows, rings: Columns) -> None:
    assert len(_added_up(columns, rows, rings)) == len(rows)
