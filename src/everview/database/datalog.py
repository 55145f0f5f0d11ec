"""Declares a Datalog program: its facts as tables, each derived relation as a view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import TableDefinition, ViewDefinition
from everview.database.commit import commit_transaction, install
from everview.database.concurrency import was_interrupted
from everview.database.ddl import CatalogChange
from everview.database.error_context import with_span
from everview.database.handle import Handle
from everview.errors import Span, UserError
from everview.expr.types import names
from everview.lang.datalog.program import Declarations, GivenRelation, declarations
from everview.lang.front_end import DATALOG


def declare(db: Handle, text: str, facts: Mapping[str, Any]) -> Declarations:
    """Declare a program with its own facts and more; all of it, or nothing.

    The facts are inserted first, so that every view is built from them once. The caller writes
    exclusively.
    """
    with with_span(Span(text, 0, len(text))):
        program, before = declarations(text), db.catalog
        given = {each.relation: each for each in program.given}
        for name in facts:
            if name not in given:
                raise _no_facts(name, given)
        tables = _with_tables(before, program)
        views = _with_views(tables, program)
        try:
            install(db, CatalogChange(tables))
            _insert(db, program, facts)
            install(db, CatalogChange(views))
        except BaseException as problem:
            if was_interrupted(problem):
                db.recover()
            if db.catalog.to_json() != before.to_json():
                install(db, CatalogChange(before))
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


def _insert(db: Handle, program: Declarations, facts: Mapping[str, Any]) -> None:
    with db.begin_alone(lambda tx: commit_transaction(db, tx)) as tx:
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
