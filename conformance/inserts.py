"""INSERT and DELETE statements as queries for the rows they add or remove."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from conformance.cases import Table


def insert_query(insert: str, table: Table) -> str:
    """The rows that an INSERT adds to a table, as a query with the table's columns and types.

    The values keep the words of the statement: nothing is lost in translation.
    """
    tree = sqlglot.parse_one(insert, dialect="spark")
    assert isinstance(tree, exp.Insert)
    named = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    given = [column.name for column in named] or [name for name, _ in table.columns]
    known = {name.lower() for name in given}
    columns = ", ".join(
        f"CAST({f'`{name}`' if name.lower() in known else 'NULL'} AS {type_}) AS `{name}`"
        for name, type_ in table.columns
    )
    aliases = ", ".join(f"`{name}`" for name in given)
    return f"SELECT {columns} FROM {_source(insert, tree)} AS given({aliases})"


def _source(insert: str, tree: exp.Insert) -> str:
    if not isinstance(tree.expression, exp.Values):
        return f"({tree.expression.sql(dialect='spark')})"
    tokens = sqlglot.tokenize(insert, read="spark")
    values = next(token for token in tokens if token.token_type is TokenType.VALUES)
    return insert[values.start :].rstrip("; \n")


def delete_query(delete: str, table: Table) -> str:
    """The rows that a DELETE removes from a table, as a query."""
    tree = sqlglot.parse_one(delete, dialect="spark")
    assert isinstance(tree, exp.Delete)
    where = tree.args.get("where")
    condition = f" {where.sql(dialect='spark')}" if where else ""
    return f"SELECT * FROM `{table.name}`{condition}"
