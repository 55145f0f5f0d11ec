"""What a Datalog program makes of a database: tables of facts, and a view for each relation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import TableDefinition, ViewDefinition
from everview.database.concurrency import was_interrupted
from everview.database.ddl import Declared
from everview.database.error_context import placed_in
from everview.database.transaction import Transaction
from everview.errors import Span, UserError
from everview.expr.types import names
from everview.lang.datalog.program import Declarations, GivenRelation, declarations
from everview.lang.front_end import DATALOG


@dataclass(frozen=True, slots=True)
class Writer:
    """What a program is declared with: a database for one who writes to it alone."""

    catalog: Callable[[], Catalog]
    begin: Callable[[], Transaction]
    install: Callable[[Declared], None]
    recover: Callable[[], None]


def declare(db: Writer, text: str, facts: Mapping[str, Any]) -> Declarations:
    """Declare what a program says, with its facts and more; all of it, or nothing.

    The facts come first, so that every view is built from them once.
    """
    with placed_in(Span(text, 0, len(text))):
        program, before = declarations(text), db.catalog()
        given = {each.relation: each for each in program.given}
        for name in facts:
            if name not in given:
                raise _no_facts(name, given)
        tables = _with_tables(before, program)
        views = _with_views(tables, program)
        try:
            db.install(Declared(tables))
            _insert(db, program, facts)
            db.install(Declared(views))
        except BaseException as problem:
            if was_interrupted(problem):
                db.recover()
            if db.catalog().to_json() != before.to_json():
                db.install(Declared(before))
            raise
        return program


def _with_tables(catalog: Catalog, program: Declarations) -> Catalog:
    """The catalog with tables for what is given; one that is there already is read."""
    for each in program.given:
        if each.read is None or each.facts or catalog.find(each.name) is None:
            columns = names(each.columns)
            catalog = catalog.with_table(TableDefinition(each.name, each.columns, columns, columns))
    return catalog


def _with_views(catalog: Catalog, program: Declarations) -> Catalog:
    for each in program.derived:
        catalog = catalog.with_view(ViewDefinition(each.name, each.text, language=DATALOG))
    return catalog


def _insert(db: Writer, program: Declarations, facts: Mapping[str, Any]) -> None:
    with db.begin() as tx:
        for each in program.given:
            if each.facts:
                tx.upsert(each.name, list(each.facts))
            if each.relation in facts:
                tx.upsert(each.name, facts[each.relation])


def _no_facts(name: str, given: Mapping[str, GivenRelation]) -> UserError:
    return UserError(
        "D003",
        f"there are facts for {name}, which is no relation with facts",
        remedy=f"declare .input {name}; there are: {', '.join(given) or 'none'}",
    )
