"""A program run in process: changes and slices in memory, arithmetic by the calculator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from threading import RLock
from typing import Any
from weakref import WeakSet

import pyarrow as pa

from everview.engines.duckdb.calculator import Calculator
from everview.plan.nodes import Plan
from everview.program.steps import (
    Add,
    Check,
    Compute,
    Fetch,
    KeySet,
    Loop,
    Program,
    Publish,
    Step,
    change_name,
)
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.cache.relation_cache import RelationCache
from everview.runtime.consolidate import summed
from everview.runtime.constraints.narrow import Doubts
from everview.runtime.epoch_writer import Writer
from everview.runtime.memory_budget import EMBEDDED, part
from everview.runtime.protocol import Changes, Gear, Snapshot, Stored, Violation
from everview.runtime.recursion.incremental import run_loop
from everview.runtime.report import UNASKED, Outcome
from everview.runtime.retry import in_step
from everview.store.manifest import Manifest
from everview.store.store import Store


class InProcess:
    """What both engines leave to the calculator."""

    def __init__(self, calculator: Calculator, held: float = EMBEDDED) -> None:
        self._calculator = calculator
        self._hot = RelationCache(calculator, part(held))
        self._busy = RLock()
        """Held while the calculator, or what is in memory, is used; readers do not wait for it."""
        self._idle: list[Calculator] = []
        self._lent: WeakSet[Calculator] = WeakSet()

    def interrupt(self) -> None:
        """End the statements that are running, from another thread."""
        for calculator in (self._calculator, *self._lent):
            calculator.interrupt()

    def forget(self) -> None:
        """Drop all that is kept in memory, after an exception at any moment."""
        with self._busy:
            self._idle = []
            calculator = self._calculator.anew()
            self._hot = RelationCache(calculator, self._hot.max_bytes)
            self._calculator = calculator

    @contextmanager
    def _reading(self) -> Iterator[Calculator]:
        """A calculator for one reader; it is not used again after an exception."""
        try:
            calculator = self._idle.pop()
        except IndexError:
            calculator = self._calculator.beside()
            self._lent.add(calculator)
        try:
            yield calculator
            calculator.forget()
        except BaseException:
            with suppress(Exception):
                calculator.leave()
            raise
        if calculator.is_beside(self._calculator):
            self._idle.append(calculator)

    def confine(self, store: Store) -> None:
        """Let DuckDB open the files of a store, and no others."""
        self._calculator.confine(store.absolute(""))

    @property
    def loading(self) -> float:
        """Milliseconds that it took so far to bring relations into memory."""
        return self._hot.load_ms

    def fetch(self, steps: Sequence[Fetch], snapshot: Snapshot, outcome: Outcome) -> None:
        """Bring the slices of one round."""
        raise NotImplementedError

    def lookup(self, name: str, by: str, keys: pa.ChunkedArray, snapshot: Snapshot) -> pa.Table:
        """The weighted rows of a relation whose column `by` is among `keys`."""
        schema = snapshot.stored[name].schema
        wanted = Fetch("found", name, schema, by, (KeySet("wanted", by),))
        with self._busy:
            try:
                self._calculator.give("wanted", pa.table({by: keys}))
                self.fetch((wanted,), snapshot, Outcome())
                return self._calculator.result("found", schema)
            finally:
                self._calculator.forget()

    def keys(self, step: Fetch) -> pa.ChunkedArray:
        """The values that a fetch is looked up by, each once."""
        return pa.chunked_array([self.values(step).unique()])

    def values(self, step: Fetch) -> pa.ChunkedArray:
        """The values that a fetch is looked up by, as values of the column that it looks at.

        One outside the column's range turns into another: that brings rows too many, never too few.
        """
        assert step.by is not None
        type_ = arrow_schema(step.schema).field(step.by).type
        asked = self._calculator.asked(step.keys)
        found = [self._calculator.values(key.relation, key.column) for key in asked]
        same = [each if each.type == type_ else each.cast(type_, safe=False) for each in found]
        if len(same) == 1:
            return same[0]
        return pa.chunked_array([chunk for each in same for chunk in each.chunks], type_)

    def agreeing(self, step: Fetch) -> pa.Table | None:
        """Rows with one of which a row must agree to be wanted, None if one column tells enough.

        Where several relations ask, all of them have to ask by the same columns.
        """
        asked = self._calculator.asked(step.keys)
        stored = {tuple(name for name, _ in key.also) for key in asked}
        if step.by is None or len(stored) != 1 or stored == {()}:
            return None
        names = (step.by, *stored.pop())
        theirs = [(key.column, *(name for _, name in key.also)) for key in asked]
        parts = list(map(self._calculator.columns, (key.relation for key in asked), theirs))
        known = [pa.table(part, names=names) for part in parts if part is not None]
        same = len(known) == len(parts) and all(each.schema == known[0].schema for each in known)
        return pa.concat_tables(known) if same else None

    def calculate(self, plan: Plan, relations: Mapping[str, pa.Table]) -> pa.Table:
        """A plan over relations in memory."""
        with self._busy:
            return self._calculator.calculate(plan, relations)

    def add_up(self, rows: pa.Table, stored: Stored) -> pa.Table:
        """The sum of weighted rows in memory."""
        with self._busy:
            return summed(rows, stored, self._calculator)

    def moved(self, before: Snapshot, after: Manifest) -> None:
        """Relations have other segments now, with the same sum."""
        with self._busy:
            self._hot.on_compacted(before, after)
            self._calculator.forget()


def run_small(
    gear: Gear,
    calculator: Calculator,
    program: Program,
    changes: Changes,
    snapshot: Snapshot,
    epoch: int,
    violation: Violation,
) -> Outcome:
    """Run a transaction's program; write segments. What was computed stays known."""
    outcome = Outcome()
    with Writer(snapshot, epoch, outcome) as writer:
        for table, parts in changes.items():
            with outcome.clock.phase("compute"):
                change = summed(pa.concat_tables(parts), snapshot.stored[table], calculator)
                calculator.give(change_name(table), change)
            with outcome.clock.phase("write"):
                writer.write(table, change)
        _run_steps(gear, calculator, program, snapshot, violation, writer)
    return outcome


def _run_steps(
    gear: Gear,
    calculator: Calculator,
    program: Program,
    snapshot: Snapshot,
    violation: Violation,
    writer: Writer,
) -> None:
    outcome = writer.outcome
    for kind, group in groupby(program.steps, type):
        steps: Sequence[Any] = tuple(group)
        with outcome.clock.phase(_PHASES[kind]):
            if kind is Fetch:
                before = gear.loading
                gear.fetch(steps, snapshot, outcome)
                outcome.clock.apart("load", gear.loading - before, "fetch")
                continue
            if kind is Check:
                _check(calculator, steps, violation)
                continue
            for step in steps:
                match step:
                    case Compute(result):
                        with outcome.step(result), in_step(result):
                            gear.compute(step, outcome)
                    case Loop(name):
                        with outcome.step(name), in_step(name):
                            run_loop(step, gear, calculator, snapshot, outcome)
                    case Add(name, change) | Publish(name, change):
                        with outcome.step(name), in_step(change):
                            rows = calculator.result(change, snapshot.stored[name].schema)
                            writer.write(name, rows)
                        if isinstance(step, Publish):
                            outcome.published[name] = rows.num_rows


_PHASES: dict[type[Step], str] = {
    Fetch: "fetch",
    Compute: "compute",
    Loop: "compute",
    Check: "compute",
    Add: "write",
    Publish: "write",
}


def _check(calculator: Calculator, steps: Sequence[Check], violation: Violation) -> None:
    """All checks are asked together, about what is not settled; one that finds rows tells them."""
    doubts = Doubts(calculator)
    asked = [(step, plan) for step in steps if (plan := doubts.left(step)) is not None]
    found = calculator.any_rows([plan for _, plan in asked])
    for (step, _), any_ in zip(asked, found, strict=True):
        if any_:
            raise violation(step, calculator.evaluate(step.plan))


def is_idle(step: Fetch, calculator: Calculator, outcome: Outcome) -> bool:
    """Whether nothing asks for what a fetch would bring; then it brings nothing."""
    idle = bool(step.keys) and not calculator.asked(step.keys)
    if idle:
        calculator.give_nothing(step.result, step.schema)
        if step.by is not None:
            outcome.took(step, UNASKED, 0)
    return idle
