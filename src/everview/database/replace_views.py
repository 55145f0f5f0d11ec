"""CREATE OR REPLACE VIEW: which relations of a replaced view hold the wrong rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from everview.compiler import compile_program
from everview.database.audit import audit_view
from everview.database.catalog.catalog import Catalog
from everview.database.ddl import CatalogChange
from everview.lang.sql.parse.statements import CreateView
from everview.program.dependencies import shares
from everview.program.steps import Fetch, Loop, fetch_mark
from everview.runtime.protocol import Engine, Snapshot


@dataclass(frozen=True, slots=True)
class Faulty:
    """Views and states to build again, and those of them whose files cannot be read."""

    relations: frozenset[str] = frozenset()
    unreadable: frozenset[str] = frozenset()


def find_faulty(
    change: CatalogChange, before: Catalog, engine: Engine, snapshot: Snapshot
) -> Faulty:
    """The replaced views that are wrong, each with the states it is maintained by.

    A view whose query stays the same is audited against it. Where it differs, or a file is damaged,
    the view and its states are built from what the view reads.
    """
    wrong: set[str] = set()
    unreadable: set[str] = set()
    for name in _replaced(change, before):
        own = {name, *states_of(name, before)}
        broken = {each for each in own if _is_damaged(each, snapshot)}
        same = before.compiled(name) == change.catalog.compiled(name)
        if broken or (
            same and not audit_view(name, before, engine, snapshot, from_tables=False).ok
        ):
            wrong |= own
            unreadable |= broken
    return Faulty(frozenset(wrong), frozenset(unreadable))


def states_of(view: str, catalog: Catalog) -> frozenset[str]:
    """The states that a view is maintained by, and those that these are maintained by."""
    maintenance = catalog.maintenance
    touched = dict.fromkeys((*catalog.tables, *catalog.parts), True)
    program = compile_program(maintenance, touched)
    read: dict[str, str] = {}
    for step in program.steps:
        fetches = (step,) if isinstance(step, Fetch) else ()
        for each in step.fetches if isinstance(step, Loop) else fetches:
            read[fetch_mark(each.relation, each.reads_by)] = each.relation
    by_relation, needed = shares(program), [view]
    for name in needed:
        marks = by_relation[name].fetches if name in by_relation else ()
        more = {read[mark] for mark in marks} & maintenance.states.stored.keys()
        needed += sorted(more - {*needed})
    return frozenset(needed[1:])


def _replaced(change: CatalogChange, before: Catalog) -> Iterable[str]:
    """The views that a statement replaces and that are there before and after it."""
    for statement, _ in change.steps:
        if isinstance(statement, CreateView) and statement.replaces:
            found = before.find(statement.name)
            if found in before.views and found in change.catalog.views:
                yield found


def _is_damaged(name: str, snapshot: Snapshot) -> bool:
    files = snapshot.relation(name).files
    return any(snapshot.store.damage(file) is not None for file in files)
