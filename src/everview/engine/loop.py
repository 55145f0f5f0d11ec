"""A change followed through the iterations of a loop, in process.

The history of a row is what every iteration adds to its sum. A row is there from the iteration on
at which its sum becomes positive. Iterations are taken in order: at each, the rows that changed
there are looked at, and those that changed before and whose old history has an entry there (dbsp
§6: a change at one iteration moves the answer at every later one where the row came again).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from everview.engine.arrow import arrow_schema
from everview.engine.duckdb.calculator import Calculator
from everview.engine.fixpoint import endless
from everview.engine.identity import Key, identities
from everview.engine.outcome import Outcome
from everview.engine.protocol import Gear, Snapshot
from everview.plan.types import ITERATION, WEIGHT, Column, Schema, names
from everview.program.steps import Compute, Fetch, Loop, Looped, refs

Place = tuple[int, int]


@dataclass(slots=True)
class _Sums:
    """The sum of a row up to the iteration last looked at, old and new, and its old history."""

    old: int
    new: int
    history: dict[int, int]

    def advance(self, iteration: int, change: int) -> int:
        """What the iteration adds to whether the row is there, minus what it added before."""
        came = self.history.get(iteration, 0)
        was, is_ = self.old > 0, self.new > 0
        self.old += came
        self.new += came + change
        return ((self.new > 0) - is_) - ((self.old > 0) - was)


@dataclass(slots=True)
class _Relation:
    """One relation of a running loop."""

    step: Looped
    tables: list[pa.Table] = field(default_factory=list)
    places: dict[Key, Place] = field(default_factory=dict)
    pending: dict[int, dict[Key, int]] = field(default_factory=lambda: defaultdict(dict))
    again: dict[int, set[Key]] = field(default_factory=lambda: defaultdict(set))
    histories: dict[Key, dict[int, int]] = field(default_factory=dict)
    known: set[Any] = field(default_factory=set)
    sums: dict[Key, _Sums] = field(default_factory=dict)
    changes: list[pa.Table] = field(default_factory=list)

    @property
    def lifted(self) -> Schema:
        """Its columns, and the iteration."""
        return (*self.step.schema, Column(ITERATION, "int"))

    def keys(self, table: pa.Table) -> list[Key]:
        """What tells the rows of a table from each other."""
        columns = [table.column(name) for name in names(self.step.schema)]
        return identities(columns, table.num_rows)

    def receive(self, table: pa.Table) -> None:
        """Put changes of the sum on the agenda."""
        if not table.num_rows:
            return
        number = len(self.tables)
        self.tables.append(table)
        when, weights = table.column(ITERATION).to_pylist(), table.column(WEIGHT).to_pylist()
        for row, key in enumerate(self.keys(table)):
            self.places.setdefault(key, (number, row))
            due = self.pending[when[row]]
            due[key] = due.get(key, 0) + weights[row]

    def unknown(self, keys: list[Key]) -> list[Key]:
        """Of rows looked at for the first time, those whose old histories were not brought yet."""
        step = self.step.history
        if step is None or step.by is None:
            found, self.known = ([] if self.known else keys), {None}
            return found
        place = names(self.step.schema).index(step.by)
        found = [key for key in keys if key[place] not in self.known]
        self.known |= {key[place] for key in found}
        return found

    def learn(self, table: pa.Table) -> None:
        """Take in old histories, also of rows that nobody has asked for yet."""
        when, weights = table.column(ITERATION).to_pylist(), table.column(WEIGHT).to_pylist()
        for row, key in enumerate(self.keys(table)):
            history = self.histories.setdefault(key, {})
            history[when[row]] = history.get(when[row], 0) + weights[row]

    def begin(self, keys: list[Key], iteration: int) -> None:
        """Look at rows for the first time."""
        for key in keys:
            history = self.histories.get(key, {})
            before = sum(weight for at, weight in history.items() if at < iteration)
            self.sums[key] = _Sums(before, before, history)
            for at, weight in history.items():
                if at > iteration and weight:
                    self.again[at].add(key)

    def rows(self, keys: list[Key]) -> pa.Table:
        """The rows with these keys, without iteration and weight."""
        wanted: dict[int, list[int]] = {}
        for key in keys:
            number, row = self.places[key]
            wanted.setdefault(number, []).append(row)
        columns = list(names(self.step.schema))
        found = [self.tables[n].select(columns).take(pa.array(r)) for n, r in wanted.items()]
        return pa.concat_tables(found)

    def in_order(self, keys: list[Key]) -> list[Key]:
        """Keys in the order in which `rows` has their rows."""
        tables = dict.fromkeys(self.places[key][0] for key in keys)
        order = {number: at for at, number in enumerate(tables)}
        return sorted(keys, key=lambda key: order[self.places[key][0]])

    @property
    def agenda(self) -> set[int]:
        """The iterations at which something has to be looked at."""
        return {*self.pending, *self.again}


class _Run:
    """One run of a loop."""

    def __init__(
        self, loop: Loop, gear: Gear, calculator: Calculator, snapshot: Snapshot, outcome: Outcome
    ) -> None:
        self._loop, self._gear, self._calculator = loop, gear, calculator
        self._snapshot, self._outcome = snapshot, outcome
        self._relations = [_Relation(step) for step in loop.relations]
        plans = (step.plan for step in loop.body if isinstance(step, Compute))
        self._read = frozenset(name for plan in plans for name in refs(plan))

    def run(self) -> None:
        """From the first iteration that is touched until nothing is on the agenda."""
        for each in self._relations:
            self._calculator.give_nothing(each.step.before, each.lifted)
            if each.step.start:
                each.receive(self._calculator.result(each.step.start, each.lifted))
        count = 0
        while due := set[int]().union(*(each.agenda for each in self._relations)):
            count += 1
            self._iterate(min(due))
        for each in self._relations:
            self._finish(each)
        self._outcome.iterations[self._loop.name] = count

    def _iterate(self, iteration: int) -> None:
        moved = False
        for each in self._relations:
            change = self._change(each, iteration)
            moved = moved or change is not None
            if change is None:
                self._calculator.give_nothing(each.step.now, each.lifted)
            else:
                self._calculator.give(each.step.now, change)
                each.changes.append(change)
        if not moved:
            return
        for step in self._loop.body:
            if isinstance(step, Fetch):
                self._gear.fetch((step,), self._snapshot, self._outcome)
            else:
                self._gear.compute(step, self._outcome)
        for each in self._relations:
            if each.step.later:
                each.receive(self._calculator.result(each.step.later, each.lifted))
            if each.changes and each.step.before in self._read:
                self._calculator.give(each.step.before, pa.concat_tables(each.changes))

    def _change(self, each: _Relation, iteration: int) -> pa.Table | None:
        """What the iteration adds to a relation, minus what it added before the transaction."""
        due = each.pending.pop(iteration, {})
        again = each.again.pop(iteration, set())
        if each.step.history is None:
            weights = {key: weight for key, weight in due.items() if weight}
        else:
            fresh = [key for key, weight in due.items() if weight and key not in each.sums]
            self._learn(each, each.unknown(fresh))
            each.begin(fresh, iteration)
            touched = dict.fromkeys((*due, *again))
            moved = (
                (key, each.sums[key].advance(iteration, due.get(key, 0)))
                for key in touched
                if key in each.sums
            )
            weights = {key: weight for key, weight in moved if weight}
        if not weights:
            return None
        if iteration > self._loop.most and any(weight > 0 for weight in weights.values()):
            raise endless(each.step.name, self._loop.limit)
        keys = each.in_order(list(weights))
        rows = each.rows(keys)
        rows = rows.append_column(ITERATION, pa.array([iteration] * len(keys), pa.int32()))
        return rows.append_column(WEIGHT, pa.array([weights[key] for key in keys], pa.int64()))

    def _learn(self, each: _Relation, keys: list[Key]) -> None:
        """Fetch the old histories of rows, once for each."""
        step = each.step.history
        if not keys or step is None:
            return
        rows = each.rows(keys)
        weights = pa.array([1] * rows.num_rows, pa.int64())
        self._calculator.give(each.step.touched, rows.append_column(WEIGHT, weights))
        self._gear.fetch((step,), self._snapshot, self._outcome)
        each.learn(self._calculator.result(step.result, step.schema))

    def _finish(self, each: _Relation) -> None:
        """Name how the relation has changed, and the sum it depends on."""
        empty = arrow_schema(each.lifted).empty_table()
        changes = pa.concat_tables([empty, *each.changes])
        self._calculator.give(each.step.changes, changes)
        if each.step.history is None:
            self._calculator.give(each.step.sums, changes)
        else:
            sums = pa.concat_tables([empty, *each.tables])
            if len(each.tables) > 1:
                sums = self._calculator.add_up(sums, each.lifted, ())
            self._calculator.give(each.step.sums, sums)


def run_loop(
    loop: Loop, gear: Gear, calculator: Calculator, snapshot: Snapshot, outcome: Outcome
) -> None:
    """Follow a change through the iterations of a loop."""
    _Run(loop, gear, calculator, snapshot, outcome).run()
