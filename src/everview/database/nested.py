"""Declares nested views: of each its flat relation, and a dictionary for each collection inside."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from types import ModuleType

from everview import arguments
from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import ViewDefinition
from everview.database.commit import install
from everview.database.ddl import CatalogChange
from everview.database.error_context import with_span
from everview.database.handle import Handle
from everview.errors import Span, UserError
from everview.lang.front_end import NESTED, comprehension, nested_known
from everview.lang.nested.comprehension import compile_function, parameters
from everview.lang.nested.module import read_module
from everview.lang.nested.parse import parse_expr
from everview.lang.nested.python_source import source_of
from everview.lang.nested.syntax import Expr, Rel, relations, with_relations
from everview.lang.nested.view import definitions


def declare(
    db: Handle,
    query: object,
    name: str | None,
    tables: Mapping[str, str],
    *,
    replaces: bool,
    mode: str,
) -> None:
    """Declare a view by a function or by a text in NRC, which has a name of its own."""
    if isinstance(query, str):
        named = arguments.text("name", name)
        view = _by_text(named, query, mode)
    else:
        named = source_of(query).tree.name if name is None else arguments.text("name", name)
        view = _by_function(named, query, tables, mode)
    if not (replaces and db.catalog.is_nested(db.catalog.find(named) or "")):
        db.catalog.must_be_free(named)  # what is wrong with it has no place in the text
    db.exclusively(lambda: _declare(db, (view,)))


def load(db: Handle, module: object) -> tuple[str, ...]:
    """Declare the marked functions of a module, all or none, in one epoch; their names.

    A view that is there already is replaced.
    """
    text, file = _module_text(module)
    functions = read_module(text, file)
    views = tuple(_by_function(each.tree.name, each, {}, "auto") for each in functions)
    db.exclusively(lambda: _declare(db, views))
    return tuple(each.name for each in views)


def _module_text(module: object) -> tuple[str, str]:
    """The text of a module that is imported, or of a file, and the path of it."""
    if isinstance(module, ModuleType):
        path = inspect.getsourcefile(module) if getattr(module, "__file__", None) else None
        if path is None:
            problem = f"the module {module.__name__} has no file to be read"
            raise UserError("N010", problem, remedy="write it in a file, and give its path")
    elif isinstance(module, str | PathLike):
        path = arguments.text("module", fspath(module))
    else:
        problem = f"{arguments.shown(module)} is no module and no path of one"
        raise UserError("X002", problem, remedy="give an imported module, or the path of a file")
    try:
        return Path(path).read_text(encoding="utf-8"), path
    except (OSError, ValueError) as problem:
        told = f"{path} cannot be read: {problem}"
        raise UserError("N010", told, remedy="give the path of a Python file") from None


@dataclass(frozen=True, slots=True)
class _View:
    """A view to declare: the relations that it reads, and how it joins a catalog.

    `placed` gives an error about the whole of it a place in its text.
    """

    name: str
    reads: tuple[str, ...]
    join: Callable[[Catalog], Catalog]
    placed: Callable[[UserError], UserError] = lambda problem: problem

    def must_wait(self, others: Sequence[_View]) -> bool:
        """Whether it reads one of the others, or a collection inside one."""
        return any(_is_inside(read, each.name) for read in self.reads for each in others)


def _is_inside(relation: str, view: str) -> bool:
    return f"{relation}.".lower().startswith(f"{view}.".lower())


def _by_text(name: str, text: str, mode: str) -> _View:
    whole = Span(text, 0, len(text))

    def join(catalog: Catalog) -> Catalog:
        with with_span(whole):
            spelled = {each: found for each in relations(expr) if (found := catalog.find(each))}
            tables = {each: _query(catalog, relation) for each, relation in spelled.items()}
            return _with_view(catalog, name, with_relations(expr, tables), mode)

    with with_span(whole):
        expr = parse_expr(text)
    return _View(name, relations(expr), join)


def _by_function(name: str, function: object, given: Mapping[str, str], mode: str) -> _View:
    """A view by a function, which is read and not run.

    `given` names the relations that parameters stand for; others are called as they are.
    """
    source = source_of(function)
    reads = {each: given.get(each, each) for each in parameters(function)}

    def join(catalog: Catalog) -> Catalog:
        try:
            found = {each: catalog.relation(relation) for each, relation in reads.items()}
            known = nested_known(catalog.known_relations())
            tables = {each: _query(catalog, relation) for each, relation in found.items()}
            read = {each for query in tables.values() for each in relations(query)}
            rows = {each: known.element(each) for each in sorted(read)}
            return _with_view(catalog, name, compile_function(function, tables, rows), mode)
        except RecursionError:
            raise placed(_too_deep(name)) from None
        except UserError as problem:
            if problem.span is not None:
                raise
            raise placed(problem) from None

    def placed(problem: UserError) -> UserError:
        return source.refusal(source.tree, problem.problem, problem.remedy, problem.code)

    return _View(name, tuple(reads.values()), join, placed)


def _again(before: Catalog, name: str, replaced: Sequence[str]) -> _View:
    """A view as it is declared, which reads what is replaced."""
    reads = before.reads(name)
    view = before.views[name]
    found = comprehension(view.query, view.language)
    if found is None:
        changed = next((each for each in replaced if name in before.readers(each)), replaced[0])
        parts = (name, *before.dictionaries(name))

        def as_it_is(catalog: Catalog) -> Catalog:
            for each in parts:
                catalog = before.with_reader(catalog, each, changed)
            return catalog

        return _View(name, reads, as_it_is)

    def join(catalog: Catalog) -> Catalog:
        try:
            return _with_view(catalog, name, found.expr, found.mode)
        except UserError as problem:
            told = f"{name}, which reads {replaced[0]}, would not be valid: {problem.problem}"
            raise UserError("C008", told, remedy=f"drop {name} first") from None

    return _View(name, reads, join)


def _query(catalog: Catalog, relation: str) -> Expr:
    """What a relation stands for: a table with collections is a query over its relations."""
    return catalog.tables[relation].query if relation in catalog.tables else Rel(relation)


def _with_view(catalog: Catalog, name: str, expr: Expr, mode: str) -> Catalog:
    """The catalog with all relations of a view."""
    catalog.must_be_free(name)
    known = nested_known(catalog.known_relations())
    for each in definitions(name, expr, known, mode):
        catalog = catalog.with_view(ViewDefinition(each.relation, each.text, language=NESTED))
    return catalog


def _declare(db: Handle, views: Sequence[_View]) -> None:
    """Declare views, all or none, in one epoch; what says the same as before makes none."""
    before = db.catalog
    catalog = _with_all(before, views)
    if _texts(catalog) != _texts(before):
        try:
            install(db, CatalogChange(catalog))
        except RecursionError:
            raise views[0].placed(_too_deep(", ".join(each.name for each in views))) from None


def _too_deep(name: str) -> UserError:
    return UserError(
        "N010",
        f"{name} is nested too deep, or has too many conditions or constants",
        remedy="make a part of it a view of its own, and long lists of constants tables",
    )


def _texts(catalog: Catalog) -> dict[str, str]:
    return {name: view.query for name, view in catalog.views.items()}


def _with_all(before: Catalog, views: Sequence[_View]) -> Catalog:
    """The catalog with views, each after what it reads; nested ones that are there are replaced.

    The views that read what is replaced are declared again.
    """
    replaced: list[str] = []
    for each in views:
        found = before.find(each.name)
        if found is not None and before.is_nested(found):
            replaced.append(found)
            continue
        try:
            before.must_be_free(each.name)
        except UserError as problem:
            raise each.placed(problem) from None
    grown, readers = before.without_readers_of(replaced)
    again = [each for each in readers if before.whole_view(each) == each]
    waiting = [*views, *(_again(before, each, replaced) for each in again)]
    while waiting:
        ready = next((each for each in waiting if not each.must_wait(waiting)), None)
        if ready is None:
            told = ", ".join(each.name for each in waiting)
            remedy = "use db.datalog for recursion"
            message = f"each of {told} reads itself or another of them"
            raise waiting[0].placed(UserError("C007", message, remedy=remedy))
        waiting.remove(ready)
        grown = ready.join(grown)
    return grown
