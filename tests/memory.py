"""Programs run by definition: the smallest engine there can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from evaluation import Columns, Relations, Rows, bag_of, rows_of
from everview.compiler import Maintenance
from everview.expr.types import ITERATION, names
from everview.plan.build import columns_of
from everview.plan.nodes import Plan, Source
from everview.program.steps import (
    Add,
    Check,
    Compute,
    Fetch,
    Loop,
    Looped,
    Program,
    Publish,
    change_name,
)
from everview.sqlgen.sql import ring_columns
from strategies import Bag, Row, World


class Memory:
    """Tables, views and states in memory, moved by programs.

    `fetched` tells of every fetch the relation, the column and how many rows it brought;
    `published` has what the last program added to each view.
    """

    def __init__(self, maintenance: Maintenance, tables: Mapping[str, Source], world: World):
        self._columns = {name: names(source.schema) for name, source in tables.items()}
        self._rings: dict[str, Columns] = dict.fromkeys(tables, ())
        self._rows = {name: list(world[name].items()) for name in tables}
        self.fetched: list[tuple[str, str | None, int]] = []
        self.published: dict[str, Mapping[Row, Row]] = {}
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

    def derived(self, view: str, derivative: Plan, change: World) -> Mapping[Row, Row]:
        """What a derivative over changes and stored relations says of a change of a view."""
        known = {name: (self._columns[name], rows) for name, rows in self._rows.items()}
        changed = {change_name(t): (self._columns[t], list(b.items())) for t, b in change.items()}
        rows = rows_of(derivative, {**known, **changed})
        return _added_up(self._columns[view], rows, self._rings[view])

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
                case Loop():
                    self._loop(step, known)
                case Check(_, _, _, plan):
                    assert not bag_of(rows_of(plan, known))
                case Add(name, made) | Publish(name, made):
                    assert known[made][0] == self._columns[name]
                    pending[name] = known[made][1]
                    _must_be_consolidated(*known[made], self._rings[name])
        self.published = {
            step.view: _added_up(*known[step.change], self._rings[step.view])
            for step in program.steps
            if isinstance(step, Publish)
        }
        for name, rows in pending.items():
            both = _added_up(self._columns[name], self._rows[name] + rows, self._rings[name])
            self._rows[name] = _rows(both, self._rings[name])

    def _slice(self, step: Fetch, known: Relations) -> tuple[Columns, Rows]:
        """The rows whose key has the same bits as one of the keys, as files are searched."""
        columns, rows = self._columns[step.relation], self._rows[step.relation]
        wanted = names(step.schema)
        if step.by is None and step.keys:
            rows = rows if any(known[key.relation][1] for key in step.keys) else []
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

    def _loop(self, loop: Loop, known: dict[str, tuple[Columns, Rows]]) -> None:
        """Iterations in order, each by the definition of what a row's history makes of it."""
        sums: dict[str, Rows] = {r.name: [] for r in loop.relations}
        changes: dict[str, Rows] = {r.name: [] for r in loop.relations}
        columns = {r.name: (*names(r.schema), ITERATION) for r in loop.relations}
        for r in loop.relations:
            sums[r.name] += known[r.start][1] if r.start else []
        last = 0
        while due := [
            i for r in loop.relations for i in self._agenda(r, sums[r.name], last, known)
        ]:
            last = min(due)
            for r in loop.relations:
                known[r.before] = columns[r.name], changes[r.name]
                now = self._changed(r, sums[r.name], last, known)
                known[r.now] = columns[r.name], now
            for r in loop.relations:
                changes[r.name] = changes[r.name] + known[r.now][1]
            for step in loop.body:
                match step:
                    case Fetch():
                        known[step.result] = self._slice(step, known)
                    case Compute(result, plan, consolidated):
                        known[result] = _computed(plan, consolidated, known)
            for r in loop.relations:
                later = known[r.later][1] if r.later else []
                assert all(row[-1] > last for row, _ in later)
                sums[r.name] = sums[r.name] + later
        for r in loop.relations:
            both = ((r.sums, sums[r.name]), (r.changes, changes[r.name]))
            for name, rows in both:
                known[name] = columns[r.name], list(bag_of(rows).items())

    def _agenda(self, r: Looped, sums: Rows, last: int, known: Relations) -> list[int]:
        """The iterations still to come at which a row changes, or a row that changed came."""
        found = [row[-1] for row, _ in sums + self._old(r, sums, known)]
        return [i for i in found if i > last]

    def _old(self, r: Looped, sums: Rows, known: Relations) -> Rows:
        """The old history of every row whose sum changes."""
        if r.history is None:
            return []
        touched = {row[:-1] for row, _ in sums}
        rows = [(row, 1) for row in touched]
        found = self._slice(r.history, {**known, r.touched: (names(r.schema), rows)})
        places = [found[0].index(name) for name in (*names(r.schema), ITERATION)]
        picked = [(tuple(row[i] for i in places), weight) for row, weight in found[1]]
        return [(row, weight) for row, weight in picked if row[:-1] in touched]

    def _changed(self, r: Looped, sums: Rows, now: int, known: Relations) -> Rows:
        """What iteration `now` adds to a relation, minus what it added before the transaction."""
        if r.history is None:
            return [(row, w) for row, w in bag_of(sums).items() if row[-1] == now]
        old = self._old(r, sums, known)

        def there(rows: Rows, upto: int) -> Bag:
            total = bag_of([(row[:-1], w) for row, w in rows if row[-1] <= upto])
            return Counter({row: 1 for row, w in total.items() if w > 0})

        parts = [(1, sums + old, now), (-1, sums + old, now - 1), (-1, old, now), (1, old, now - 1)]
        every = [
            ((*row, now), sign * w) for sign, rows, i in parts for row, w in there(rows, i).items()
        ]
        return list(bag_of(every).items())


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
