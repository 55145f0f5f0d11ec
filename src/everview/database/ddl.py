"""CREATE and DROP: from the catalog and statements to the next catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TypeAlias, get_args

from everview.arguments import shown
from everview.database.alter import Alteration, alter
from everview.database.backfill import AroundBuild
from everview.database.catalog.catalog import Catalog
from everview.database.collections.explode import with_collections_read
from everview.database.comment import with_comment
from everview.database.create_table_as import create_table_as
from everview.database.create_view import create_view
from everview.database.declare_constraints import (
    alter_constraints,
    declare_table,
    drop_assertion,
    must_be_no_constraint,
    with_added_constraints,
)
from everview.database.error_context import with_span
from everview.errors import Span, UserError
from everview.lang.sql.bind.inline_functions import inline_calls
from everview.lang.sql.parse.statements import (
    Alter,
    AlterConstraints,
    Comment,
    CreateAssertion,
    CreateFunction,
    CreateTable,
    CreateView,
    Drop,
    Statement,
)
from everview.runtime.protocol import Engine, Snapshot
from everview.store.manifest import Manifest, Segment

Declaration: TypeAlias = (
    CreateTable
    | CreateView
    | CreateFunction
    | CreateAssertion
    | AlterConstraints
    | Drop
    | Alter
    | Comment
)


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """A new catalog, with the rows that its new tables begin with.

    `steps` are the statements that made it, each with the catalog after it.
    """

    catalog: Catalog
    initial_rows: Mapping[str, Segment] = field(default_factory=dict)
    alteration: Alteration | None = None
    steps: tuple[tuple[Declaration, Catalog], ...] = ()

    def relations_of(self, manifest: Manifest) -> Manifest:
        """An epoch with its relations as an ALTER leaves them: no file is written for it."""
        return manifest if self.alteration is None else self.alteration.files.follow(manifest)

    def around_build(self, on_progress: Callable[[str], None]) -> AroundBuild:
        """Report each relation that is built, and show errors at the statement that needs it."""

        @contextmanager
        def around(name: str, position: str) -> Iterator[None]:
            on_progress(f"building {position}: {name}")
            try:
                with self.at_statement(name):
                    yield
            finally:
                on_progress("")

        return around

    @contextmanager
    def at_statement(self, relation: str) -> Iterator[None]:
        """Show errors at the statement that declares a relation or constraint, or needs it."""
        try:
            yield
        except (UserError, RecursionError):
            if not self.steps:
                raise
            with with_span(self._span(relation)):
                raise

    def _span(self, relation: str) -> Span:
        """The statement that names a relation, else the first one after which it is needed."""
        named = [s.span for s, _ in self.steps if _names(s, relation)]
        needed = (s.span for s, catalog in self.steps if relation in catalog.compile().stored())
        return named[-1] if named else next(needed, self.steps[-1][0].span)


def group_statements(statements: Iterable[Statement]) -> Iterator[tuple[Statement, ...]]:
    """Statements that take effect in one epoch: neighbouring CREATEs, neighbouring DROPs, or one.

    CREATE TABLE AS stands alone, since its query reads what was declared before it. CREATE and DROP
    are apart, since a dropped name may be declared again. DROPs go together, so that no state is
    built for a view that the next statement drops.
    """
    for kind, run in groupby(_checked(statements), _kind):
        group = tuple(run)
        yield from (group,) if kind != "alone" else ((each,) for each in group)


def _checked(statements: Iterable[Statement]) -> Iterator[Statement]:
    """The statements, if each is one that the parser made."""
    try:
        parsed = iter(statements)
    except TypeError:
        raise _no_statement(statements) from None
    for each in parsed:
        if not isinstance(each, get_args(Statement)):
            raise _no_statement(each)
        yield each


def _no_statement(given: object) -> UserError:
    problem = f"{shown(given)} is no statement that was read"
    return UserError("X002", problem, remedy="give texts to db.sql")


def _names(statement: Declaration, relation: str) -> bool:
    if isinstance(statement, CreateTable | CreateView):
        return statement.name.lower() == relation.lower()
    if isinstance(statement, AlterConstraints):
        added = (each.name for each in statement.added)
        return relation.lower() in map(str.lower, (statement.table, *added))
    if isinstance(statement, CreateAssertion):
        return statement.constraint.name.lower() == relation.lower()
    return False


def _kind(statement: Statement) -> str:
    if isinstance(statement, CreateTable) and statement.query is not None:
        return "alone"
    if isinstance(statement, CreateTable | CreateView | CreateFunction | CreateAssertion):
        return "declares"
    return "drops" if isinstance(statement, Drop) else "alone"


def apply_declarations(
    statements: Sequence[Declaration], catalog: Catalog, engine: Engine, now: Snapshot
) -> CatalogChange | None:
    """The catalog after statements, one after the other; None when none changes anything."""
    change: CatalogChange | None = None
    for statement in statements:
        with with_span(statement.span):
            inlined = with_collections_read(
                inline_calls(statement, catalog.functions), catalog.tables
            )
            step = _apply(inlined, catalog, engine, now)
        if step is not None:
            steps = (*(change.steps if change else ()), (statement, step.catalog))
            change, catalog = replace(step, steps=steps), step.catalog
    return change


def _apply(
    statement: Statement, catalog: Catalog, engine: Engine, now: Snapshot
) -> CatalogChange | None:
    """The catalog after a statement; None when it changes nothing (IF [NOT] EXISTS)."""
    match statement:
        case Drop(kind="function"):
            return _drop_function(statement, catalog)
        case Drop(kind="assertion"):
            left = drop_assertion(statement, catalog)
            return None if left is catalog else CatalogChange(left)
        case Drop():
            return _drop_relation(statement, catalog)
        case Comment():
            return CatalogChange(with_comment(statement, catalog))
        case Alter():
            changed = alter(statement, catalog, engine, now)
            if changed is None:
                return None
            left = with_added_constraints(statement, catalog, changed.catalog)
            return CatalogChange(left, alteration=changed)
        case CreateFunction(function, lenient, replaces):
            if lenient and function.name.lower() in catalog.functions:
                return None
            return CatalogChange(catalog.with_function(function, replaces=replaces))
        case CreateTable(name) | CreateView(name) if statement.if_not_exists and catalog.find(name):
            return None
        case CreateTable(name):
            if statement.query is not None:
                made = create_table_as(name, statement.query, catalog, engine, now)
                return CatalogChange(*made)
            return CatalogChange(declare_table(statement, catalog, engine, now))
        case CreateAssertion(constraint):
            return CatalogChange(catalog.with_constraint(constraint))
        case AlterConstraints():
            left = alter_constraints(statement, catalog)
            return None if left is catalog else CatalogChange(left)
        case CreateView():
            return CatalogChange(create_view(statement, catalog))
        case _:
            raise AssertionError(statement)


def _drop_relation(statement: Drop, catalog: Catalog) -> CatalogChange | None:
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
    must_be_no_constraint(found, catalog)
    if statement.cascade:
        inside = catalog.dictionaries(found) if found in catalog.tables else ()
        own = (found, *inside)
        others = [name for name in catalog.resting_on([*own]) if name not in own]
        catalog = catalog.without_all(others)
    return CatalogChange(catalog.without(found))


def _drop_function(statement: Drop, catalog: Catalog) -> CatalogChange | None:
    if statement.name.lower() in catalog.functions:
        return CatalogChange(catalog.without_function(statement.name))
    if statement.if_exists:
        return None
    known = ", ".join(each.name for each in catalog.functions.values())
    raise UserError(
        "C002",
        f"there is no function {statement.name}",
        span=statement.span,
        remedy=f"there are: {known}" if known else "there are none",
    )
