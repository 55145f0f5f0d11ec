"""What CREATE and DROP make of the declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TypeAlias, get_args

from everview.arguments import shown
from everview.database.backfill import Around, written
from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import TableDefinition, ViewDefinition
from everview.database.error_context import placed_in, sound
from everview.errors import Span, UserError
from everview.expr.types import Column, Schema, storable_type, unusable_name
from everview.lang.sql.bind.inline_functions import written_out
from everview.lang.sql.parse.statements import (
    CreateFunction,
    CreateTable,
    CreateView,
    Drop,
    Query,
    Statement,
)
from everview.runtime.protocol import SIGN, Engine, Snapshot
from everview.store.manifest import Segment

Declaration: TypeAlias = CreateTable | CreateView | CreateFunction | Drop


@dataclass(frozen=True, slots=True)
class Declared:
    """New declarations, and the rows that new tables begin with.

    `asked` are the statements that made them, each with the declarations after it.
    """

    catalog: Catalog
    filled: Mapping[str, Segment] = field(default_factory=dict)
    asked: tuple[tuple[Declaration, Catalog], ...] = ()

    def building(self, tell: Callable[[str], None]) -> Around:
        """Tell of each relation that is built, and of what goes wrong where it was asked for."""

        @contextmanager
        def around(name: str, which: str) -> Iterator[None]:
            tell(f"building {which}: {name}")
            try:
                with self.placed(name):
                    yield
            finally:
                tell("")

        return around

    @contextmanager
    def placed(self, relation: str) -> Iterator[None]:
        """Show what goes wrong with a relation at the statement that it was made for."""
        try:
            yield
        except (UserError, RecursionError):
            if not self.asked:
                raise
            with placed_in(self._span(relation)):
                raise

    def _span(self, relation: str) -> Span:
        """The statement that names a relation, else the first one after which it is needed."""
        named = [s.span for s, _ in self.asked if _names(s, relation)]
        needed = (s.span for s, catalog in self.asked if relation in catalog.stored())
        return named[-1] if named else next(needed, self.asked[-1][0].span)


def in_steps(statements: Iterable[Statement]) -> Iterator[tuple[Statement, ...]]:
    """Statements as they take effect: neighbours that only declare or drop together, others alone.

    What begins with rows needs those of the relations before it, and a name that is dropped may
    be declared anew. States that serve some of what is dropped are not built for the rest of it.
    """
    for kind, run in groupby(_read(statements), _kind):
        step = tuple(run)
        yield from (step,) if kind != "alone" else ((each,) for each in step)


def _read(statements: Iterable[Statement]) -> Iterator[Statement]:
    """The statements, each of which was read from a text."""
    try:
        given = iter(statements)
    except TypeError:
        raise _no_statement(statements) from None
    for each in given:
        if not isinstance(each, get_args(Statement)):
            raise _no_statement(each)
        yield each


def _no_statement(given: object) -> UserError:
    problem = f"{shown(given)} is no statement that was read"
    return UserError("X002", problem, remedy="give texts to db.sql")


def _names(statement: Declaration, relation: str) -> bool:
    if isinstance(statement, CreateTable | CreateView):
        return statement.name.lower() == relation.lower()
    return False


def _kind(statement: Statement) -> str:
    if isinstance(statement, CreateTable) and statement.query is not None:
        return "alone"
    if isinstance(statement, CreateTable | CreateView | CreateFunction):
        return "declares"
    return "drops" if isinstance(statement, Drop) else "alone"


def declared(
    statements: Sequence[Declaration], catalog: Catalog, engine: Engine, now: Snapshot
) -> Declared | None:
    """What statements make of the catalog, one after the other; None when all is so already."""
    made: Declared | None = None
    for statement in statements:
        with placed_in(statement.span):
            asked = written_out(statement, catalog.functions)
            more = _declared(asked, catalog, engine, now)
        if more is not None:
            before = made.asked if made else ()
            made, catalog = replace(more, asked=(*before, (statement, more.catalog))), more.catalog
    return made


def _declared(
    statement: Statement, catalog: Catalog, engine: Engine, now: Snapshot
) -> Declared | None:
    """What a statement makes of the catalog; None when it asks for what is already so."""
    match statement:
        case Drop(kind="function"):
            return _without_function(statement, catalog)
        case Drop():
            return _dropped(statement, catalog)
        case CreateFunction(function, lenient, replaces):
            if lenient and function.name.lower() in catalog.functions:
                return None
            return Declared(catalog.with_function(function, replaces=replaces))
        case CreateTable(name) | CreateView(name) if statement.if_not_exists and catalog.find(name):
            return None
        case CreateTable(name, columns, key, not_null):
            if statement.query is not None:
                return _filled(name, statement.query, catalog, engine, now)
            table = TableDefinition(name, columns, key, not_null, statement.lengths)
            return Declared(catalog.with_table(table))
        case CreateView(name, query, given):
            view = ViewDefinition(name, query, given, statement.refresh, calls=statement.calls)
            return Declared(_with_view(view, catalog, replaces=statement.replaces))
        case _:
            raise AssertionError(statement)


def _with_view(view: ViewDefinition, catalog: Catalog, *, replaces: bool) -> Catalog:
    found = catalog.find(view.name)
    if not replaces or found is None:
        return catalog.with_view(view)
    if found in catalog.tables:
        remedy = "choose another name, or DROP TABLE first"
        raise UserError("C005", f"{found} is a table", remedy=remedy)
    return catalog.replacing(view)


def _dropped(statement: Drop, catalog: Catalog) -> Declared | None:
    found = catalog.find(statement.name)
    if found is None and statement.if_exists:
        return None
    if found is None:
        raise catalog.unknown(statement.name)
    if (found in catalog.tables) != (statement.kind == "table"):
        other = "VIEW" if statement.kind == "table" else "TABLE"
        raise UserError(
            "C005", f"{found} is a {other.lower()}", span=statement.span, remedy=f"DROP {other}"
        )
    return Declared(catalog.without(found))


def _without_function(statement: Drop, catalog: Catalog) -> Declared | None:
    if statement.name.lower() in catalog.functions:
        return Declared(catalog.without_function(statement.name))
    if statement.if_exists:
        return None
    known = ", ".join(each.name for each in catalog.functions.values())
    raise UserError(
        "C002",
        f"there is no function {statement.name}",
        span=statement.span,
        remedy=f"there are: {known}" if known else "there are none",
    )


def _filled(name: str, query: Query, catalog: Catalog, engine: Engine, now: Snapshot) -> Declared:
    """A table with the columns and rows of a query."""
    reads = [found for each in query.reads if (found := catalog.find(each)) is not None]
    known = {name: catalog.schema(name) for name in reads}
    columns = _storable(engine.describe(query.text, known, once=True), query)
    grown = catalog.with_table(TableDefinition(name, columns, (), ()))
    after = Snapshot(now.store, now.manifest, grown.compile().stored())
    with sound(now):
        asked = f"SELECT *, CAST(1 AS BIGINT) AS `{SIGN}` FROM ({query.text}) AS q"
        rows = engine.change_of(engine.query(asked, reads, now, {}), columns)
        segment = written(name, rows, engine, after, now.manifest.epoch + 1)
    return Declared(grown, {name: replace(segment, kind="base")})


def _storable(found: Schema, query: Query) -> Schema:
    """The columns of a table made from those of a query, if each has a name and a type."""
    columns: list[Column] = []
    for column in found:
        type_, code = storable_type(column.type), "Q011"
        problem = unusable_name(column.name)
        if column.name.lower() in {each.name.lower() for each in columns}:
            problem = f"two columns are called {column.name}"
        if type_ is None:
            problem, code = f"{column.name} has a type that cannot be stored: {column.type}", "Q014"
        if problem or type_ is None:
            remedy = "give every column a plain name with AS, and CAST it to a plain type"
            raise UserError(code, str(problem), span=query.span, remedy=remedy)
        columns.append(Column(column.name, type_))
    return tuple(columns)
