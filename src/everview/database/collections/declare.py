"""CREATE TABLE with collections: the flat relation and the dictionaries, or why there are none."""

from __future__ import annotations

from dataclasses import replace

from everview.database.catalog.definitions import TableDefinition
from everview.database.catalog.dictionaries import Collections
from everview.errors import Span, UserError
from everview.expr.types import FLOATS, PLAIN_NAME, is_nested, names, unusable_name
from everview.lang.sql.parse.constraints import CASCADE, Reference


def with_collections(
    table: TableDefinition, paths: tuple[str, ...], span: Span
) -> tuple[TableDefinition, ...]:
    """The tables that a declaration makes: itself, without collections."""
    if not paths:
        return (table,)
    if problem := _refused(table, paths):
        told, remedy = problem
        raise UserError("Q004", f"{table.name} has collections: {told}", span=span, remedy=remedy)
    flat = replace(
        table,
        columns=tuple(column for column in table.columns if column.name not in paths),
        not_null=tuple(name for name in table.not_null if name not in paths),
        collections=Collections(table.columns, paths),
    )
    found = [flat]
    for each in (inner for top in flat.dictionaries for inner in top.walk()):
        for name in names(each.columns):
            if problem_of_name := unusable_name(name):
                raise UserError("Q011", problem_of_name, span=span, remedy=PLAIN_NAME)
        required = (*names(each.labels), each.digest)
        found.append(TableDefinition(each.relation, each.columns, (), required, inside=table.name))
    return tuple(found)


def _refused(table: TableDefinition, paths: tuple[str, ...]) -> tuple[str, str] | None:
    """Why a table cannot have collections, and what to do."""
    types = {column.name: column.type for column in table.columns}
    if not table.key:
        return "their labels are the rows' keys, and it has none", "declare a PRIMARY KEY"
    if any(types[name] in FLOATS or is_nested(types[name]) for name in table.key):
        return "a FLOAT or DOUBLE is no label", "declare a PRIMARY KEY of another type"
    if table.is_set:
        return "it cannot be a set", "leave kind = 'set' out: a primary key makes rows unique"
    if table.defaults or table.generated:
        remedy = "leave DEFAULT and GENERATED ALWAYS AS out"
        return "it cannot have columns that rows do not give", remedy
    return None


def must_keep_collections(table: TableDefinition, reference: Reference | None) -> None:
    """Refuse a foreign key that would remove rows of a table and leave what is inside them."""
    if table.collections and reference is not None and reference.on_delete == CASCADE:
        raise UserError(
            "C009",
            f"{table.name} has collections, which ON DELETE CASCADE would leave behind",
            remedy="leave the action out, and delete the rows in the same transaction",
        )
