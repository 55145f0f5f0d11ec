"""What is declared, as rows: SHOW, DESCRIBE and the tables of `information_schema`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from everview.database.catalog.catalog import Catalog
from everview.database.catalog.constraints import ConstraintDefinition
from everview.database.catalog.definitions import TableDefinition, ViewDefinition
from everview.database.declare_constraints import generated_checks
from everview.database.introspect.declared_constraints import constraint_rows
from everview.database.introspect.system_tables import SystemTable
from everview.errors import UserError
from everview.expr.dialect import DIALECT
from everview.expr.quoting import spark_name
from everview.expr.types import Column, Schema, names
from everview.lang.front_end import NESTED, SQL
from everview.lang.nested.definition import declared_query
from everview.lang.nested.from_sql import has_collections
from everview.lang.sql.parse.statements import AUTO, STRICT, Show
from everview.runtime.arrow_types import arrow_schema

NAMESPACE = "information_schema"
_TABLES = ("table_name", "table_type", "comment")
_COLUMNS = (
    *("table_name", "column_name", "ordinal_position", "data_type"),
    *("is_nullable", "is_key", "comment"),
)
_VIEWS = ("table_name", "view_definition", "language", "refresh", "comment")

Rows = list[tuple[Any, ...]]


def information_schema(catalog: Catalog) -> dict[str, SystemTable]:
    """The system tables that say what is declared."""
    return {
        "tables": _system_table(_TABLES, lambda: _relations(catalog)),
        "columns": _system_table(
            _COLUMNS, lambda: [row for name in _every(catalog) for row in _columns(catalog, name)]
        ),
        "views": _system_table(_VIEWS, lambda: _views(catalog)),
        **{n: _system_table(*each) for n, each in constraint_rows(catalog).items()},
    }


def show(asked: Show, catalog: Catalog) -> pa.Table:
    """What a SHOW or a DESCRIBE answers."""
    if asked.name is None:
        found = catalog.tables if asked.what == "tables" else catalog.views
        rows: Rows = [(name, each.comments.relation) for name, each in found.items()]
        return _table(("name", "comment"), rows)
    name = catalog.relation(asked.name)
    if asked.what == "create":
        return _table(("statement",), [(create_statement(catalog, name),)])
    columns = [
        (column, type_, null, said)
        for _, column, _, type_, null, _, said in _columns(catalog, name)
    ]
    return _table(("name", "type", "nullable", "comment"), columns)


def create_statement(catalog: Catalog, name: str) -> str:
    """The statement that declares a table or a view as it is now."""
    if name in catalog.tables:
        return _create_table(catalog.tables[name], catalog.constraints.values())
    view = catalog.views[name]
    query, nested = _query(view)
    if not query:
        remedy = "declare it as it was declared before"
        raise UserError("C005", f"{name} is not declared in SQL", remedy=remedy)
    columns = f" ({', '.join(map(spark_name, view.columns))})" if view.columns else ""
    given = {} if view.refresh == STRICT else {"refresh": view.refresh}
    given |= {"nested": nested} if nested != AUTO else {}
    listed = ", ".join(f"{option} = {_text(value)}" for option, value in given.items())
    options = f" WITH ({listed})" if given else ""
    said = _comment(view.comments.relation)
    return f"CREATE MATERIALIZED VIEW {spark_name(name)}{columns}{said}{options} AS {query}"


def _query(view: ViewDefinition) -> tuple[str, str]:
    """The query of a view as SQL, and how its collections are kept; empty if it is not in SQL."""
    if view.language == SQL:
        return view.query, "inline" if has_collections(view.query) else AUTO
    return declared_query(view.query) if view.language == NESTED else ("", AUTO)


def _create_table(table: TableDefinition, constraints: Iterable[ConstraintDefinition]) -> str:
    lengths = dict(table.lengths)
    values = {name: f" DEFAULT ({value})" for name, value in table.defaults}
    values |= {name: f" GENERATED ALWAYS AS ({value})" for name, value in table.generated}
    made = {each.name for each in generated_checks(table)}
    parts = []
    if table.inside:
        remedy = f"SHOW CREATE TABLE {table.inside}"
        problem = f"{table.name} is a collection inside {table.inside}"
        raise UserError("C005", problem, remedy=remedy)
    declared = table.collections
    for column in table.columns if declared is None else declared.columns:
        type_ = (
            f"VARCHAR({lengths[column.name]})" if column.name in lengths else column.type.upper()
        )
        type_ = declared.type_text(column) if declared and column.name in declared.paths else type_
        required = " NOT NULL" if column.name in table.not_null else ""
        said = _comment(table.comments.of(column.name))
        value = values.get(column.name, "")
        parts.append(f"{spark_name(column.name)} {type_}{required}{value}{said}")
    if table.key:
        parts.append(f"PRIMARY KEY ({', '.join(map(spark_name, table.key))})")
    own = (each for each in constraints if each.table == table.name and each.name not in made)
    parts += (f"CONSTRAINT {spark_name(each.name)} {each.text}" for each in own)
    said = _comment(table.comments.relation)
    kind = " WITH (kind = 'set')" if table.is_set else ""
    return f"CREATE TABLE {spark_name(table.name)} ({', '.join(parts)}){said}{kind}"


def _comment(text: str) -> str:
    return f" COMMENT {_text(text)}" if text else ""


def _text(text: str) -> str:
    return exp.Literal.string(text).sql(dialect=DIALECT)


def _every(catalog: Catalog) -> tuple[str, ...]:
    return (*catalog.tables, *catalog.views)


def _relations(catalog: Catalog) -> Rows:
    tables = [(name, "BASE TABLE", each.comments.relation) for name, each in catalog.tables.items()]
    views = ((n, "MATERIALIZED VIEW", v.comments.relation) for n, v in catalog.views.items())
    return [*tables, *views]


def _columns(catalog: Catalog, name: str) -> Rows:
    table = catalog.tables.get(name)
    required, key = (table.not_null, table.key) if table else ((), catalog.source(name).key)
    comments = _definition(catalog, name).comments
    return [
        (name, each.name, place, each.type, each.name not in required, each.name in key, said)
        for place, each in enumerate(catalog.schema(name), start=1)
        for said in (comments.of(each.name),)
    ]


def _definition(catalog: Catalog, name: str) -> TableDefinition | ViewDefinition:
    return catalog.tables[name] if name in catalog.tables else catalog.views[name]


def _views(catalog: Catalog) -> Rows:
    return [
        (name, view.query, view.language, view.refresh, view.comments.relation)
        for name, view in catalog.views.items()
    ]


_TYPES = {
    **dict.fromkeys(("ordinal_position", "position_in_unique_constraint"), "int"),
    **dict.fromkeys(("is_nullable", "is_key", "enforced"), "boolean"),
}


def _schema(columns: Sequence[str]) -> Schema:
    types = {**_TYPES, "nullable": "boolean"}
    return tuple(Column(name, types.get(name, "string")) for name in columns)


def _system_table(columns: Sequence[str], rows: Any) -> SystemTable:
    schema = _schema(columns)
    return SystemTable(schema, lambda: _weighted(schema, rows()))


def _weighted(schema: Schema, rows: Rows) -> pa.Table:
    """Rows as those of a stored relation, each once."""
    every = [[row[at] for row in rows] for at in range(len(schema))]
    return pa.table([*every, [1] * len(rows)], arrow_schema(schema))


def _table(columns: Sequence[str], rows: Rows) -> pa.Table:
    schema = _schema(columns)
    return _weighted(schema, rows).select(names(schema))
