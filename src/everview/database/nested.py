"""Declares a nested view: its flat relation, and a dictionary for each collection inside it."""

from __future__ import annotations

from collections.abc import Mapping

from everview import arguments
from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import ViewDefinition
from everview.database.commit import install
from everview.database.ddl import CatalogChange
from everview.database.error_context import with_span
from everview.database.handle import Handle
from everview.errors import Span
from everview.lang.front_end import NESTED
from everview.lang.nested.check import row_type
from everview.lang.nested.comprehension import compile_function, parameters
from everview.lang.nested.parse import parse_expr
from everview.lang.nested.python_source import source_of
from everview.lang.nested.syntax import Expr, Rel, relations, with_relations
from everview.lang.nested.view import definitions, query_of


def declare(
    db: Handle,
    query: object,
    name: str | None,
    tables: Mapping[str, str],
    *,
    mode: str = "auto",
) -> None:
    """Declare a view by a function or by a text in NRC, which has a name of its own."""
    if isinstance(query, str):
        named = arguments.text("name", name)
        db.catalog.must_be_free(named)  # what is wrong with it has no place in the text
        db.exclusively(lambda: _declare_text(db, named, query, mode))
        return
    if name is not None:
        arguments.text("name", name)
    written = source_of(query)
    called = name or written.tree.name
    db.exclusively(lambda: _declare_function(db, called, query, tables, mode))


def _declare_text(db: Handle, name: str, text: str, mode: str) -> None:
    with with_span(Span(text, 0, len(text))):
        expr = parse_expr(text)
        spelled = {each: found for each in relations(expr) if (found := db.catalog.find(each))}
        _declare(db, name, with_relations(expr, _queries(db.catalog, spelled)), mode)


def _declare_function(
    db: Handle, name: str, function: object, given: Mapping[str, str], mode: str
) -> None:
    """Declare a view by a function, which is read and not run.

    `given` names the relations that parameters stand for; others are called as they are.
    """
    catalog, source = db.catalog, source_of(function)
    tables: dict[str, str] = {}
    for parameter in parameters(function):
        relation = given.get(parameter, parameter)
        if catalog.find(relation) is None:
            problem = catalog.unknown(relation)
            raise source.refusal(source.tree, problem.problem, problem.remedy, problem.code)
        tables[parameter] = catalog.relation(relation)
    queries = _queries(catalog, tables)
    read = {each for query in queries.values() for each in relations(query)}
    rows = {each: row_type(catalog.schema(each)) for each in sorted(read)}
    with with_span(source.span(source.tree)):
        _declare(db, name, compile_function(function, queries, rows), mode)


def _queries(catalog: Catalog, names: Mapping[str, str]) -> dict[str, Expr]:
    """What names stand for: relations, and nested views as they are written."""
    return {
        each: query_of(catalog.views[relation].query)
        if catalog.is_nested(relation)
        else Rel(relation)
        for each, relation in names.items()
    }


def _declare(db: Handle, name: str, expr: Expr, mode: str) -> None:
    """Declare all relations of a view, or none."""
    catalog = db.catalog
    known = {each.lower(): catalog.source(each) for each in (*catalog.tables, *catalog.views)}
    for each in definitions(name, expr, known, mode):
        catalog = catalog.with_view(ViewDefinition(each.relation, each.text, language=NESTED))
    install(db, CatalogChange(catalog))
