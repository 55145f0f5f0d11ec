"""The tables of `information_schema` about constraints, as the standard has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from everview.database.catalog.catalog import Catalog
from everview.database.catalog.constraints import ConstraintDefinition
from everview.lang.sql.parse.constraints import ASSERTION, CHECK, FOREIGN_KEY

Rows = list[tuple[Any, ...]]

_PRIMARY_KEY = "PRIMARY KEY"


def constraint_rows(catalog: Catalog) -> dict[str, tuple[tuple[str, ...], Callable[[], Rows]]]:
    """By the name of each table its columns, and what gives its rows."""
    return {
        "table_constraints": (
            ("constraint_name", "table_name", "constraint_type", "enforced"),
            lambda: _table_constraints(catalog),
        ),
        "key_column_usage": (
            (
                *("constraint_name", "table_name", "column_name", "ordinal_position"),
                *("position_in_unique_constraint",),
            ),
            lambda: [row for each in _keys(catalog) for row in _columns(*each)],
        ),
        "referential_constraints": (
            ("constraint_name", "table_name", "referenced_table_name", "delete_rule"),
            lambda: _references(catalog),
        ),
        "check_constraints": (
            ("constraint_name", "check_clause"),
            lambda: [
                (each.name, each.condition)
                for each in catalog.constraints.values()
                if each.kind in (CHECK, ASSERTION)
            ],
        ),
    }


def primary_key_name(table: str) -> str:
    """What a primary key is called where every constraint has a name.

    >>> primary_key_name("orders")
    'orders_pkey'
    """
    return f"{table}_pkey"


def _table_constraints(catalog: Catalog) -> Rows:
    keys = [
        (primary_key_name(name), name, _PRIMARY_KEY, True)
        for name, table in catalog.tables.items()
        if table.key
    ]
    others = (
        (each.name, each.table, each.kind.upper(), each.enforced)
        for each in catalog.constraints.values()
        if each.table
    )
    return [*keys, *others]


def _keys(catalog: Catalog) -> Iterator[tuple[str, str, tuple[str, ...], bool]]:
    """Each key with its table and columns, and whether it refers to another one."""
    for name, table in catalog.tables.items():
        if table.key:
            yield primary_key_name(name), name, table.key, False
    for each in catalog.constraints.values():
        if each.table and each.kind not in (CHECK, ASSERTION):
            yield each.name, each.table, each.columns, each.kind == FOREIGN_KEY


def _columns(name: str, table: str, columns: tuple[str, ...], refers: bool) -> Rows:
    """A foreign key names the columns that it refers to in the order of its own."""
    return [
        (name, table, column, place, place if refers else None)
        for place, column in enumerate(columns, start=1)
    ]


def _references(catalog: Catalog) -> Rows:
    def row(each: ConstraintDefinition) -> tuple[Any, ...]:
        assert each.references is not None
        return each.name, each.table, each.references.table, each.references.on_delete

    return [row(each) for each in catalog.constraints.values() if each.kind == FOREIGN_KEY]
