"""The cases of souffle: programs with facts and the relations that others recorded for them.

Facts come in batches, then some of them go and come back. After every transaction each view must
equal its rules evaluated from scratch; whenever all facts are there, the recorded relations.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import everview as ev
from conformance.maintained import REFUSED, RIGHT, WRONG, DifferenceError, Outcome
from conformance.refusals import construct
from everview.database.database import Database
from everview.database.verdict import TOLERANCE
from everview.errors import UserError
from everview.lang.datalog.facts import row_of
from everview.lang.datalog.program import Declarations, Row, declarations
from everview_fuzz.temporary_folder import temporary_folder

BATCHES = 3
Facts = dict[str, list[Row]]


@dataclass(frozen=True, slots=True)
class Program:
    """One case: a program, the facts it is given, and the relations it must come to."""

    id: str
    text: str
    facts: Mapping[str, list[list[str]]]
    expected: Mapping[str, list[list[str]]]


def load(folder: Path) -> list[Program]:
    """Every case of the suite, in the order of its file."""
    lines = (folder / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    raw = map(json.loads, lines)
    return [Program(c["id"], c["program"], c["facts"], c["expected"]) for c in raw]


def run(case: Program, engine: str, spark: Any = None) -> Outcome:
    """Run a case on an engine: all facts at once, then in batches that come and go."""
    given = {} if spark is None else {"spark": spark}
    try:
        program = declarations(case.text)
        for steps in (_at_once, _in_batches):
            with temporary_folder() as folder:
                store = str(folder / "store")
                with closing(ev.open(store, engine=engine, **given)) as db:
                    steps(case, program, db)
    except UserError as problem:
        return Outcome(case.id, REFUSED, construct(problem))
    except DifferenceError as problem:
        return Outcome(case.id, WRONG, str(problem))
    except Exception:
        return Outcome(case.id, WRONG, f"crashed\n{traceback.format_exc()}")
    return Outcome(case.id, RIGHT)


def _at_once(case: Program, program: Declarations, db: Database) -> None:
    db.datalog(case.text, _facts(case, program))
    _check_recorded(case, db, "all facts at once")
    _check_law(db, "all facts at once")


def _in_batches(case: Program, program: Declarations, db: Database) -> None:
    """Facts arrive in batches; then each batch goes while the one before it comes back."""
    facts = _facts(case, program)
    db.datalog(case.text)
    stated = {each.name: list(each.facts) for each in program.given if each.facts}
    tables = {each.relation: each.name for each in program.given}
    named = {tables[name]: rows for name, rows in facts.items()}
    arriving = [_part(named, at) for at in range(BATCHES)]
    for at, batch in enumerate(arriving):
        _move(db, {}, batch)
        _check_law(db, f"batch {at + 1}")
    _check_recorded(case, db, "all batches")
    whole = {name: [*named.get(name, ()), *stated.get(name, ())] for name in {**named, **stated}}
    leaving = [_part(whole, at) for at in range(BATCHES)]
    gone: Facts = {}
    for at, batch in enumerate(leaving):
        _move(db, batch, gone)
        gone = batch
        _check_law(db, f"batch {at + 1} away")
    _move(db, {}, gone)
    _check_recorded(case, db, "all batches back")
    _check_law(db, "all batches back")


def _facts(case: Program, program: Declarations) -> Facts:
    columns = {each.relation: each for each in program.given}
    return {
        name: list(dict.fromkeys(row_of(cells, columns[name].columns, name) for cells in rows))
        for name, rows in case.facts.items()
        if name in columns and not columns[name].facts
    }


def _part(facts: Facts, at: int) -> Facts:
    parts = {name: rows[at::BATCHES] for name, rows in facts.items()}
    return {name: rows for name, rows in parts.items() if rows}


def _move(db: Database, away: Facts, come: Facts) -> None:
    with db.transaction() as tx:
        for name, rows in away.items():
            tx.delete(name, rows)
        for name, rows in come.items():
            tx.insert(name, rows)


def _check_law(db: Database, when: str) -> None:
    for view in db.audit():
        if not view.ok:
            raise DifferenceError(
                f"{view.view} after {when}: missing {view.missing[:3]}, surplus {view.surplus[:3]}"
            )


def _check_recorded(case: Program, db: Database, when: str) -> None:
    for name, recorded in case.expected.items():
        columns = db.catalog.schema(name)
        found = set(db.read(name).rows())
        wanted = {row_of(cells, columns, name) for cells in recorded}
        if found != wanted and not _close(found, wanted):
            missing, surplus = sorted(wanted - found)[:3], sorted(found - wanted)[:3]
            raise DifferenceError(f"{name} after {when}: missing {missing}, surplus {surplus}")


def _close(found: Iterable[Row], wanted: Iterable[Row]) -> bool:
    """Whether the rows differ in the last digits of doubles alone."""
    ours, theirs = sorted(found), sorted(wanted)
    return len(ours) == len(theirs) and all(
        len(a) == len(b) and all(map(_same, a, b)) for a, b in zip(ours, theirs, strict=True)
    )


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= TOLERANCE * max(abs(a), abs(b))
    return bool(a == b)
