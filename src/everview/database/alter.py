"""ALTER TABLE and ALTER VIEW: from the catalog to the next one, and what becomes of the files.

No file is rewritten. Those that are there keep their layout, and are read as the columns of now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never

from everview.arguments import did_you_mean
from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import TableDefinition, unusable_relation
from everview.database.catalog.follow import AlteredSource, with_table
from everview.database.declare_constraints import constant, must_compute, must_have_no_collections
from everview.database.follow_altered import (
    AlteredRelation,
    Constraints,
    followed,
    generated_now,
)
from everview.errors import Span, UserError
from everview.expr.types import PLAIN_NAME, Column, names
from everview.expr.widening import is_wider
from everview.lang.sql.parse.alterations import (
    Action,
    AddColumn,
    DropColumn,
    RenameColumn,
    RenameTo,
    SetComment,
    SetDefault,
    SetType,
)
from everview.lang.sql.parse.statements import Alter
from everview.runtime.arrow_types import arrow_type
from everview.runtime.protocol import Engine, Snapshot
from everview.store.altered import AlteredFiles, Relaid
from everview.store.bounds import tag_of

Evaluate = Callable[[str, Column], bytes | None]
"""The value of a constant as one of a column, packed; None for NULL."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """A new catalog, and what an ALTER does to stored relations.

    The rows of the views in `same` need not be looked at.
    """

    catalog: Catalog
    files: AlteredFiles = field(default_factory=AlteredFiles)
    same: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Draft:
    """A table as some actions have altered it; `numbers` say which column is which."""

    table: TableDefinition
    numbers: tuple[int, ...]
    unused: int
    fills: Mapping[int, bytes] = field(default_factory=dict)

    def place(self, name: str) -> int | None:
        """Where a column is, None where there is none of that name."""
        found = [each.lower() for each in names(self.table.columns)]
        return found.index(name.lower()) if name.lower() in found else None

    def must_have(self, name: str, span: Span) -> int:
        """Where a column is, or a clear error."""
        place = self.place(name)
        if place is None:
            every = names(self.table.columns)
            remedy = f"{did_you_mean(name, every)}there are: {', '.join(every)}"
            problem = f"{self.table.name} has no column {name}"
            raise UserError("Q006", problem, span=span, remedy=remedy)
        return place


def alter(statement: Alter, catalog: Catalog, engine: Engine, now: Snapshot) -> Alteration | None:
    """What a statement does in the epoch after `now`; None where it changes nothing."""
    epoch, held = now.manifest.epoch + 1, frozenset(now.manifest.relations)
    found = catalog.find(statement.name)
    if found is None:
        if statement.if_exists:
            return None
        raise catalog.unknown(statement.name)
    must_have_no_collections(found, catalog)
    if (found in catalog.tables) != (statement.kind == "table"):
        other = "VIEW" if statement.kind == "table" else "TABLE"
        problem, remedy = f"{found} is a {other.lower()}", f"write ALTER {other}"
        raise UserError("C005", problem, span=statement.span, remedy=remedy)
    if isinstance(statement.actions[0], RenameTo):
        return _rename(found, statement.actions[0], statement, catalog, epoch, held)
    made = _alter_columns(found, statement, catalog, epoch, held, partial(constant, engine, now))
    if made is not None:
        must_compute(made.catalog.tables[found], engine, statement.span)
    return made


def _rename(
    name: str, to: RenameTo, statement: Alter, catalog: Catalog, epoch: int, held: frozenset[str]
) -> Alteration:
    """RENAME TO: the relation, its files and its feed go on under another name."""
    if catalog.is_nested(name) or catalog.whole_view(name) != name:
        told = f"{name} is a nested view, whose collections are called after it"
        raise UserError("C009", told, span=to.span, remedy="declare it under the other name")
    constraints = {each.lower(): each for each in catalog.constraints}
    taken = catalog.find(to.name) or constraints.get(to.name.lower())
    problem = unusable_relation(to.name)
    if problem is not None:
        raise UserError("Q011", problem, span=to.span, remedy=PLAIN_NAME)
    if (taken is not None and taken != name) or to.name == name:
        kind = "constraint" if catalog.find(to.name) is None else "table or view"
        problem = f"there is a {kind} {taken} already"
        raise UserError("C001", problem, span=to.span, remedy="choose another name")
    former = (epoch, name)
    source = catalog.source(name)
    same_names = {each: each for each in names(source.schema)}
    lost = frozenset({name.lower()})
    altered = AlteredSource(source, replace(source, name=to.name), same_names, lost)

    old = catalog.tables.get(name)
    fresh = old and replace(
        old,
        name=to.name,
        formerly=(*old.formerly, former),
        generated=generated_now(old, to.name, same_names),
    )

    def renamed(before: Catalog, constraints: Constraints) -> Catalog:
        if fresh is not None:
            tables = with_table(before, name, fresh)
            return before.with_definitions(tables, before.views, constraints)
        view = before.views[name]
        view = replace(view, name=to.name, formerly=(*view.formerly, former))
        views = {
            (to.name if n == name else n): (view if n == name else v)
            for n, v in before.views.items()
        }
        return before.redefined(before.tables, views, to.name)

    relation = AlteredRelation(name, to.name, old, fresh, same_names)
    made = followed(statement, catalog, relation, renamed, altered, held)
    same = made.same | {to.name}
    return Alteration(made.catalog, AlteredFiles(moved={name: to.name, **made.moved}), same)


def _alter_columns(
    name: str,
    statement: Alter,
    catalog: Catalog,
    epoch: int,
    held: frozenset[str],
    evaluate: Evaluate,
) -> Alteration | None:
    table = catalog.tables[name]
    numbered = table.evolution.numbered(table.columns)
    draft = _Draft(table, tuple(numbered.values()), table.evolution.next_number(table.columns))
    for action in statement.actions:
        draft = _applied(action, draft, evaluate)
    if draft.table == table:
        return None
    now = dict(zip(draft.numbers, draft.table.columns, strict=True))
    became = {old: now.get(number) for old, number in numbered.items()}
    types = {column.name: column.type for column in table.columns}
    kept = {o: c.name for o, c in became.items() if c is not None and c.type == types[o]}
    if draft.table.columns == table.columns and draft.numbers == tuple(numbered.values()):
        return Alteration(
            catalog.with_definitions(with_table(catalog, name, draft.table), catalog.views)
        )
    layouts = table.evolution.followed_by(table.columns, draft.numbers, draft.fills, epoch)
    fresh = replace(draft.table, evolution=layouts)

    def retabled(before: Catalog, constraints: Constraints) -> Catalog:
        tables = with_table(before, name, fresh)
        return before.with_definitions(tables, before.views, constraints)

    names_now = {old: None if column is None else column.name for old, column in became.items()}
    relation = AlteredRelation(name, name, table, fresh, names_now)
    lost = frozenset(old.lower() for old, new in names_now.items() if old != new)
    altered = AlteredSource(table.source, fresh.source, kept, lost)
    made = followed(statement, catalog, relation, retabled, altered, held)
    relaid = Relaid(
        len(layouts.layouts) - 1,
        names_now,
        frozenset(
            column.name
            for old, column in became.items()
            if column is not None and _order(types[old]) != _order(column.type)
        ),
    )
    files = AlteredFiles({name: relaid}, made.moved)
    return Alteration(made.catalog, files, made.same)


def _order(type_: str) -> str | None:
    """By what the bounds of a file compare values of a type."""
    stored = arrow_type(type_)
    return None if stored is None else tag_of(stored)


def _applied(action: Action, draft: _Draft, evaluate: Evaluate) -> _Draft:
    match action:
        case AddColumn():
            return _add_column(action, draft, evaluate)
        case DropColumn():
            return _drop_column(action, draft)
        case RenameColumn():
            return _rename_column(action, draft)
        case SetType():
            return _set_type(action, draft)
        case SetComment():
            return _set_comment(action, draft)
        case SetDefault():
            return _set_default(action, draft, evaluate)
        case RenameTo():
            raise AssertionError("RENAME TO stands alone")
        case _:
            assert_never(action)


def _add_column(action: AddColumn, draft: _Draft, evaluate: Evaluate) -> _Draft:
    """A column at the end, with a number that no column has had."""
    table, column = draft.table, action.column
    if draft.place(column.name) is not None:
        if action.if_not_exists:
            return draft
        problem = f"{table.name} has a column {column.name} already"
        raise UserError("Q004", problem, span=action.span, remedy="choose another name")
    fill = None if action.default is None else evaluate(action.default, column)
    if action.required and fill is None:
        problem = f"the rows of {table.name} would have no {column.name}"
        remedy = "give a DEFAULT that is not NULL, or leave NOT NULL out"
        raise UserError("Q004", problem, span=action.span, remedy=remedy)
    lengths = () if action.length is None else ((column.name, action.length),)
    default = () if action.default is None else ((column.name, action.default),)
    grown = replace(
        table,
        columns=(*table.columns, column),
        not_null=(*table.not_null, *((column.name,) if action.required else ())),
        lengths=(*table.lengths, *lengths),
        comments=table.comments.with_column(column.name, action.comment),
        defaults=(*table.defaults, *default),
    )
    fills = {**draft.fills, **({} if fill is None else {draft.unused: fill})}
    return _Draft(grown, (*draft.numbers, draft.unused), draft.unused + 1, fills)


def _drop_column(action: DropColumn, draft: _Draft) -> _Draft:
    """The table without a column; its values stay in old files, where nobody reads them."""
    if action.if_exists and draft.place(action.name) is None:
        return draft
    place, table = draft.must_have(action.name, action.span), draft.table
    name = table.columns[place].name
    if name in table.key:
        problem = f"{name} is in the primary key of {table.name}"
        raise UserError("C008", problem, span=action.span, remedy="drop other columns only")
    if table.is_set and not table.key:
        problem = f"{table.name} is a set, and without {name} rows of it might be equal"
        remedy = "create another table, and INSERT INTO it what the rows become"
        raise UserError("C008", problem, span=action.span, remedy=remedy)
    if len(table.columns) == 1:
        problem = f"{name} is the only column of {table.name}"
        raise UserError("Q004", problem, span=action.span, remedy="DROP TABLE instead")
    kept = replace(
        table,
        columns=(*table.columns[:place], *table.columns[place + 1 :]),
        not_null=tuple(each for each in table.not_null if each != name),
        lengths=tuple(each for each in table.lengths if each[0] != name),
        comments=table.comments.with_column(name, ""),
        defaults=tuple(each for each in table.defaults if each[0] != name),
        generated=tuple(each for each in table.generated if each[0] != name),
    )
    return replace(draft, table=kept, numbers=(*draft.numbers[:place], *draft.numbers[place + 1 :]))


def _rename_column(action: RenameColumn, draft: _Draft) -> _Draft:
    """The same column under another name, wherever the table speaks of it."""
    place, table = draft.must_have(action.name, action.span), draft.table
    old, taken = table.columns[place], draft.place(action.to)
    if taken is not None and taken != place:
        problem = f"{table.name} has a column {action.to} already"
        raise UserError("Q004", problem, span=action.span, remedy="choose another name")

    def now(name: str) -> str:
        return action.to if name == old.name else name

    column = Column(action.to, old.type)
    comments = tuple((now(name), text) for name, text in table.comments.columns)
    renamed = replace(
        table,
        columns=(*table.columns[:place], column, *table.columns[place + 1 :]),
        key=tuple(map(now, table.key)),
        not_null=tuple(map(now, table.not_null)),
        lengths=tuple((now(name), length) for name, length in table.lengths),
        comments=replace(table.comments, columns=comments),
        defaults=tuple((now(name), value) for name, value in table.defaults),
        generated=tuple(
            (now(name), value)
            for name, value in generated_now(
                table, table.name, {each: now(each) for each in names(table.columns)}
            )
        ),
    )
    return replace(draft, table=renamed)


def _set_type(action: SetType, draft: _Draft) -> _Draft:
    """A wider type, which holds every value that there is as it is."""
    place, table = draft.must_have(action.column.name, action.span), draft.table
    old, wide = table.columns[place], action.column.type
    if not is_wider(wide, old.type):
        raise UserError(
            "Q005",
            f"{old.name} is {old.type.upper()}, and {wide.upper()} does not hold all its values",
            span=action.span,
            remedy="choose a wider type, such as BIGINT for INT, DOUBLE for FLOAT, or a DECIMAL "
            "with more digits; or add a column and UPDATE it",
        )
    columns = (*table.columns[:place], Column(old.name, wide), *table.columns[place + 1 :])
    lengths = tuple(each for each in table.lengths if each[0] != old.name)
    return replace(draft, table=replace(table, columns=columns, lengths=lengths))


def _set_comment(action: SetComment, draft: _Draft) -> _Draft:
    """A comment on a column; nothing else changes."""
    place, table = draft.must_have(action.name, action.span), draft.table
    comments = table.comments.with_column(table.columns[place].name, action.text)
    return replace(draft, table=replace(table, comments=comments))


def _set_default(action: SetDefault, draft: _Draft, evaluate: Evaluate) -> _Draft:
    """Another default, or none; the rows that are there keep what they have."""
    place, table = draft.must_have(action.name, action.span), draft.table
    column = table.columns[place]
    if column.name in dict(table.generated):
        problem = f"{column.name} of {table.name} is generated, and has no default"
        remedy = "leave it: it follows from other columns"
        raise UserError("C009", problem, span=action.span, remedy=remedy)
    kept = tuple(each for each in table.defaults if each[0] != column.name)
    if action.default is not None:
        evaluate(action.default, column)
        kept = (*kept, (column.name, action.default))
    return replace(draft, table=replace(table, defaults=kept))
