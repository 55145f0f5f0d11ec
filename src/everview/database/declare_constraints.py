"""CREATE TABLE with constraints, ALTER TABLE of them, DROP ASSERTION: to the next catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import Comments, TableDefinition
from everview.database.collections.declare import must_keep_collections, with_collections
from everview.database.computed_columns import at_this_moment, default_values
from everview.database.queries import describe, select
from everview.errors import Span, UserError
from everview.expr.quoting import spark_name, spark_type
from everview.expr.types import Column
from everview.lang.sql.parse.alterations import AddColumn
from everview.lang.sql.parse.constraints import ASSERTION, CHECK, SET_NULL, Constraint
from everview.lang.sql.parse.statements import Alter, AlterConstraints, CreateTable, Drop
from everview.lang.sql.violating_query import problem_in_expression
from everview.runtime.arrow_types import arrow_type
from everview.runtime.protocol import Engine, Snapshot
from everview.store.layouts import packed_value


def declare_table(
    statement: CreateTable, catalog: Catalog, engine: Engine, now: Snapshot
) -> Catalog:
    """The catalog with one more table, and its constraints."""
    table = TableDefinition(
        *(statement.name, statement.columns, statement.key, statement.not_null, statement.lengths),
        comments=Comments(statement.comment, statement.column_comments),
        is_set=statement.is_set,
        defaults=statement.defaults,
        generated=statement.generated,
    )
    must_compute(table, engine, statement.span)
    default_values(table, engine, now)
    grown = catalog
    for each in with_collections(table, statement.collections, statement.span):
        grown = grown.with_table(each)
    for constraint in (*statement.constraints, *generated_checks(table)):
        must_keep_collections(grown.tables[table.name], constraint.references)
        grown = grown.with_constraint(replace(constraint, table=table.name))
    return grown


def generated_checks(table: TableDefinition) -> Sequence[Constraint]:
    """A generated column has the value of its expression, however its row came."""
    types = {column.name: column.type for column in table.columns}
    return [
        Constraint(
            CHECK,
            f"{table.name}_{name}_generated",
            table.name,
            condition=f"{spark_name(name)} <=> CAST({value} AS {spark_type(types[name])})",
        )
        for name, value in table.generated
    ]


def must_compute(table: TableDefinition, engine: Engine, span: Span) -> None:
    """Refuse a DEFAULT that is no constant, and a generated column that follows from others."""
    computed = {name for name, _ in table.generated}
    plain = tuple(column for column in table.columns if column.name not in computed)
    for name, value in (*table.defaults, *table.generated):
        known = plain if name in computed else None
        if problem := problem_in_expression(value, known):
            kind = "GENERATED ALWAYS AS" if name in computed else "DEFAULT"
            raise UserError(
                "C009",
                f"{kind} ({value}) of {name} cannot be declared: {problem}",
                span=span,
                remedy="write an expression over other columns that are not generated"
                if name in computed
                else "write an expression without columns",
            )
    if table.generated and (not plain or computed & {*table.key}):
        problem = "a row needs columns that are not generated, its key among them"
        remedy = "declare the column without GENERATED ALWAYS AS"
        raise UserError("Q004", problem, span=span, remedy=remedy)
    types = {column.name: column.type for column in table.columns}
    for name, value in (*table.defaults, *table.generated):
        of = spark_name(table.name)
        cast = f"CAST({at_this_moment(value)} AS {spark_type(types[name])})"
        probe = f"SELECT {cast} AS {spark_name(name)} FROM {of}"
        describe(engine, probe, {table.name: plain})


def must_have_no_collections(name: str, catalog: Catalog) -> None:
    """Refuse to ALTER a table with collections, or a collection."""
    table = catalog.tables.get(name)
    if table is not None and (table.collections or table.inside):
        told = "has collections" if table.collections else f"is a collection in {table.inside}"
        problem = f"{name} {told}, and cannot be altered"
        remedy = "create another table and copy the rows: db.insert(new, db.read(old).to_arrow())"
        raise UserError("C009", problem, remedy=remedy)


def alter_constraints(statement: AlterConstraints, catalog: Catalog) -> Catalog:
    """The catalog after ALTER TABLE; the same one where there is nothing to do."""
    if statement.if_exists and catalog.find(statement.table) is None:
        return catalog
    table = catalog.table(statement.table)
    for name, not_null in statement.not_null:
        column = next((c.name for c in table.columns if c.name.lower() == name.lower()), None)
        if column is None:
            known = ", ".join(each.name for each in table.columns)
            problem = f"{table.name} has no column {name}"
            raise UserError("Q007", problem, span=statement.span, remedy=f"there are: {known}")
        if (column in table.not_null) == not_null:
            continue
        if column in table.key:
            remedy = "a primary key is never NULL"
            raise UserError(
                "C009", f"{column} is part of the primary key", span=statement.span, remedy=remedy
            )
        if not_null:
            _must_not_become_null(column, table, statement, catalog)
        others = tuple(each for each in table.not_null if each != column)
        table = replace(table, not_null=(*others, column) if not_null else others)
        catalog = catalog.with_definitions({**catalog.tables, table.name: table}, catalog.views)
    for name, lenient in statement.dropped:
        found = [each for each in catalog.constraints if each.lower() == name.lower()]
        if not found and lenient:
            continue
        constraint = catalog.constraint(name)
        if constraint.table != table.name:
            of = f"constraint of {constraint.table}" if constraint.table else ASSERTION
            problem = f"{constraint.name} is a {of}".replace("a assertion", "an assertion")
            remedy = "DROP ASSERTION" if not constraint.table else f"ALTER TABLE {constraint.table}"
            raise UserError("C005", problem, span=statement.span, remedy=remedy)
        if constraint.name in {each.name for each in generated_checks(table)}:
            problem = f"{constraint.name} is what makes its column generated"
            remedy = "leave it: it always holds"
            raise UserError("C009", problem, span=statement.span, remedy=remedy)
        catalog = catalog.without_constraint(constraint.name)
    for added in statement.added:
        must_keep_collections(table, added.references)
        catalog = catalog.with_constraint(replace(added, table=table.name))
    return catalog


def _must_not_become_null(
    column: str, table: TableDefinition, statement: AlterConstraints, catalog: Catalog
) -> None:
    """Refuse NOT NULL of a column that a foreign key sets to NULL, unless that is dropped too."""
    dropped = {name.lower() for name, _ in statement.dropped}
    for each in catalog.constraints.values():
        nulls = each.references is not None and each.references.on_delete == SET_NULL
        mine = each.table == table.name and column in each.columns
        if nulls and mine and each.name.lower() not in dropped:
            problem = f"{each.name} makes {column} NULL where a row goes that it refers to"
            remedy = f"DROP CONSTRAINT {each.name} first, or declare it ON DELETE CASCADE"
            raise UserError("C009", problem, span=statement.span, remedy=remedy)


def with_added_constraints(statement: Alter, before: Catalog, after: Catalog) -> Catalog:
    """The catalog after ALTER TABLE, with the constraints of the columns that it adds."""
    found = before.find(statement.name)
    there = {c.name.lower() for c in before.tables[found].columns} if found in before.tables else ()
    added = tuple(
        constraint
        for action in statement.actions
        if isinstance(action, AddColumn) and action.column.name.lower() not in there
        for constraint in action.constraints
    )
    if not added:
        return after
    return alter_constraints(
        AlterConstraints(statement.name, added, (), (), False, statement.span), after.compile()
    )


def drop_assertion(statement: Drop, catalog: Catalog) -> Catalog:
    """The catalog without an assertion; the same one where there is none and none is needed."""
    known = {name.lower() for name in catalog.constraints}
    if statement.if_exists and statement.name.lower() not in known:
        return catalog
    constraint = catalog.constraint(statement.name)
    if constraint.kind != ASSERTION:
        raise UserError(
            "C005",
            f"{constraint.name} is a constraint of {constraint.table}",
            span=statement.span,
            remedy=f"ALTER TABLE {constraint.table} DROP CONSTRAINT {constraint.name}",
        )
    return catalog.without_constraint(constraint.name)


def must_be_no_constraint(view: str, catalog: Catalog) -> None:
    """Refuse to drop or replace the view of a constraint that is not enforced."""
    constraint = catalog.constraints.get(view)
    if constraint is None:
        return
    remedy = f"DROP ASSERTION {view}"
    if constraint.table:
        remedy = f"ALTER TABLE {constraint.table} DROP CONSTRAINT {view}"
    raise UserError("C005", f"{view} is the view of a constraint", remedy=remedy)


def constant(engine: Engine, now: Snapshot, text: str, column: Column) -> bytes | None:
    """The value of a constant as one of a column, packed; None for NULL."""
    asked = f"SELECT CAST({at_this_moment(text)} AS {spark_type(column.type)}) AS value"
    rows = select(engine, asked, (), now, {}).to_arrow()
    value = rows["value"].cast(arrow_type(column.type))[0]
    return packed_value(value) if value.is_valid else None
