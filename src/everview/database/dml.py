"""INSERT, DELETE, UPDATE and MERGE as queries for weighted rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from everview.database.catalog.definitions import TableDefinition
from everview.database.collections.explode import read as with_collections
from everview.database.computed_columns import (
    assigned_value,
    default_value,
    is_default_word,
    must_not_be_generated,
    not_generated,
    with_default_words,
    with_generated,
    without_generated,
)
from everview.database.introspect.system_tables import BoundQuery
from everview.database.queries import select
from everview.database.referential_actions import must_keep_keys
from everview.database.time_travel import bind_versions
from everview.database.transaction import Transaction
from everview.errors import UserError
from everview.expr.quoting import spark_name, spark_type
from everview.expr.types import Schema
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.statements import (
    Delete,
    Insert,
    Merge,
    MergeClause,
    OnConflict,
    Truncate,
    Update,
)
from everview.runtime.protocol import SIGN, Part, Stored, row_count
from everview.runtime.results import Result


def apply(tx: Transaction, statement: Insert | Delete | Update | Merge | Truncate) -> int:
    """Add the change that a statement makes to a transaction; how many rows that changes."""
    match statement:
        case Insert():
            return insert(tx, statement)
        case Delete():
            return delete(tx, statement)
        case Update():
            return update(tx, statement)
        case Merge():
            return merge(tx, statement)
        case Truncate():
            return truncate(tx, statement)


def insert(tx: Transaction, statement: Insert) -> int:
    """INSERT: the rows of VALUES or of a query, cast to the table's types."""
    table = tx.catalog.table(statement.table)
    if statement.conflict is not None:
        given = cast_rows(table, statement)
        return _insert_or_update(tx, table, given, statement, statement.conflict)
    rows = cast_rows(table, statement, f", CAST(1 AS BIGINT) AS `{SIGN}`")
    return _apply(tx, table, rows, removes=False)


def cast_rows(table: TableDefinition, statement: Insert, weight: str = "") -> str:
    """A query for the rows of an INSERT, with the columns and types of its table."""
    given, named = without_generated(statement.query, table, statement.columns)
    columns = _columns(table, named, statement)
    width = _width(given)
    if width is not None:
        _must_fit(width, columns, table, statement)
    aliases = ", ".join(map(spark_name, columns))
    query = with_default_words(given, table, columns)
    return f"SELECT {_cast(table, columns)}{weight} FROM ({query}) AS t({aliases})"


def _insert_or_update(
    tx: Transaction, table: TableDefinition, given: str, statement: Insert, conflict: OnConflict
) -> int:
    """INSERT … ON CONFLICT as the MERGE that it is; the rows given are called `excluded`."""
    must_be_in_conflict_by_key(table, statement, conflict)
    source = f"(SELECT DISTINCT * FROM ({given}) AS g) AS {EXCLUDED}"
    _must_be_given_once(tx, table, source, statement)
    own = conflict.alias
    on = " AND ".join(f"{_of(own, name)} = {_of(EXCLUDED, name)}" for name in table.key)
    clauses = [MergeClause(False, None, "insert", (), ())]
    if conflict.assignments:
        columns, values = zip(*conflict.assignments, strict=True)
        clauses.append(MergeClause(True, conflict.where, "update", columns, values))
    merged = Merge(table.name, own, source, on, tuple(clauses), statement.span)
    return merge(tx, merged)


def must_be_in_conflict_by_key(
    table: TableDefinition, statement: Insert, conflict: OnConflict
) -> None:
    """Refuse ON CONFLICT of a table without a key, and of other columns than its key."""
    key = _columns(table, conflict.columns, statement) if conflict.columns else table.key
    if not table.key or {*key} != {*table.key}:
        which = f"key ({', '.join(key)})" if conflict.columns else "primary key"
        raise UserError(
            "T004",
            f"{table.name} has no {which} that a row could be in conflict with",
            span=statement.span,
            remedy="name the columns of its PRIMARY KEY, or of a set leave ON CONFLICT out",
        )


Given = tuple[Schema, pa.Table]
"""A relation that is no stored one: its columns, and its rows with their weights."""

NOTHING_GIVEN: Mapping[str, Given] = {}

EXCLUDED = "excluded"
"""What the rows of an INSERT are called in its ON CONFLICT."""


def _must_be_given_once(
    tx: Transaction, table: TableDefinition, source: str, statement: Insert
) -> None:
    """Refuse different rows with one key: none of them is the first."""
    keys = ", ".join(_of(EXCLUDED, name) for name in table.key)
    twice = select_seen(
        tx, f"SELECT {keys} FROM {source} GROUP BY {keys} HAVING COUNT(*) > 1 LIMIT 3"
    ).to_arrow()
    if twice.num_rows:
        raise UserError(
            "T006",
            f"INSERT … ON CONFLICT gives different rows of {table.name} with one key, "
            f"for instance {twice.slice(0, 1).to_pylist()[0]}",
            span=statement.span,
            remedy="give each key once: the rows of a statement have no order",
        )


def delete(tx: Transaction, statement: Delete) -> int:
    """DELETE: minus the rows that satisfy the condition."""
    table = tx.catalog.table(statement.table)
    return _apply(tx, table, _old(table, statement.alias, statement.where), removes=True)


def truncate(tx: Transaction, statement: Truncate) -> int:
    """TRUNCATE: minus all rows of some tables, a change like any other."""
    tables = [tx.catalog.table(name) for name in statement.tables]
    return sum(_apply(tx, each, _old(each, each.name, None), removes=True) for each in tables)


def update(tx: Transaction, statement: Update) -> int:
    """UPDATE: minus the old rows, plus the new ones."""
    table = tx.catalog.table(statement.table)
    changed = assigned(table, statement.assignments, statement)
    where = f" WHERE {statement.where}" if statement.where else ""
    fresh = (
        f"SELECT {_replaced(table, statement.alias, changed)}, CAST(1 AS BIGINT) AS `{SIGN}` "
        f"FROM {spark_name(table.name)} AS {spark_name(statement.alias)}{where}"
    )
    old = _old(table, statement.alias, statement.where)
    change = _change(tx, table, f"{old} UNION ALL {fresh}")
    must_keep_keys(changed, table, [change], tx, statement.span)
    tx.add_weighted(table.name, change, removes=True)
    return row_count(change) // 2


def merge(tx: Transaction, statement: Merge) -> int:
    """MERGE: each row of the target or source by the first clause it satisfies.

    Rows that are updated leave and come, so they are computed apart: each pair counts once.
    """
    table = tx.catalog.table(statement.table)
    _must_match_once(tx, table, statement)
    assigned: set[str] = set()
    updated: list[str] = []
    others: list[str] = []
    for index, clause in enumerate(statement.clauses):
        if clause.action == "update":
            assigned |= {*(clause.columns or not_generated(table))}
        earlier = [c for c in statement.clauses[:index] if c.matched == clause.matched]
        rows = _merge_rows(table, statement, clause, _guard(clause, earlier))
        (updated if clause.action == "update" else others).extend(rows)
    removes = any(clause.matched for clause in statement.clauses)
    parts = [_change(tx, table, " UNION ALL ".join(each)) for each in (updated, others) if each]
    if updated:
        must_keep_keys(assigned, table, parts[:1], tx, statement.span)
    tx.add_weighted(table.name, *parts, removes=removes)
    pairs = row_count(parts[0]) // 2 if updated else 0
    return sum(map(row_count, parts)) - pairs


def _merge_rows(
    table: TableDefinition, statement: Merge, clause: MergeClause, guard: str
) -> list[str]:
    target = f"{spark_name(table.name)} AS {spark_name(statement.alias)}"
    if not clause.matched:
        given = _inserted(table, clause, statement)
        fresh = ", ".join(
            f"CAST({given.get(c.name) or default_value(table, c.name)} AS {spark_type(c.type)}) "
            f"AS {spark_name(c.name)}"
            for c in table.columns
        )
        anti = f"FROM {statement.source} LEFT ANTI JOIN {target} ON {statement.on}"
        return [f"SELECT {fresh}, CAST(1 AS BIGINT) AS `{SIGN}` {anti} WHERE {guard}"]
    joined = f"FROM {target} JOIN {statement.source} ON {statement.on} WHERE {guard}"
    own = _own(table, statement.alias)
    parts = [f"SELECT {own}, CAST(-1 AS BIGINT) AS `{SIGN}` {joined}"]
    if clause.action == "update":
        if not clause.columns:
            source = _source_alias(statement)
            changed = {name: _of(source, name) for name in not_generated(table)}
        else:
            pairs = tuple(zip(clause.columns, clause.values, strict=True))
            changed = assigned(table, pairs, statement)
        fresh = _replaced(table, statement.alias, changed)
        parts.append(f"SELECT {fresh}, CAST(1 AS BIGINT) AS `{SIGN}` {joined}")
    return parts


def _inserted(table: TableDefinition, clause: MergeClause, statement: Merge) -> dict[str, str]:
    """The values of an INSERT of a MERGE by column; DEFAULT stands for itself."""
    generated = {name.lower() for name, _ in table.generated}
    pairs = zip(clause.columns, clause.values, strict=False)
    left = {n for n, value in pairs if n.lower() in generated and is_default_word(value)}
    kept = [at for at, name in enumerate(clause.columns) if name not in left]
    named = tuple(clause.columns[at] for at in kept)
    columns = _columns(table, named, statement)
    values = clause.values or tuple(map(spark_name, columns))
    if left and len(values) == len(clause.columns):
        values = tuple(values[at] for at in kept)
    _must_fit(len(values), columns, table, statement)
    pairs = zip(columns, values, strict=True)
    return {name: assigned_value(value, table, name) for name, value in pairs}


def _replaced(table: TableDefinition, alias: str, changed: Mapping[str, str]) -> str:
    """The columns of a row after assignments, cast to the table's types."""
    values = ((c, changed.get(c.name, _of(alias, c.name))) for c in table.columns)
    return ", ".join(
        f"CAST({value} AS {spark_type(c.type)}) AS {spark_name(c.name)}" for c, value in values
    )


def _must_match_once(tx: Transaction, table: TableDefinition, statement: Merge) -> None:
    """A target row matched by two source rows would have two new values."""
    if not any(clause.matched for clause in statement.clauses) or not table.key:
        return
    keys = ", ".join(_of(statement.alias, name) for name in table.key)
    twice = (
        f"SELECT {keys} FROM {spark_name(table.name)} AS {spark_name(statement.alias)} "
        f"JOIN {statement.source} ON {statement.on} GROUP BY {keys} HAVING COUNT(*) > 1"
    )
    found = select_seen(tx, twice).to_arrow()
    if found.num_rows:
        raise UserError(
            "T006",
            f"MERGE: {found.num_rows} rows of {table.name} are matched more than once, "
            f"for instance {found.slice(0, 1).to_pylist()[0]}",
            span=statement.span,
            remedy="make the source unique on the columns of ON",
        )


def _source_alias(statement: Merge) -> str:
    tree = parse_query(f"SELECT * FROM {statement.source}")
    name = str(tree.args["from_"].this.alias_or_name)
    if not name:
        raise UserError(
            "Q006",
            "what MERGE uses has no name",
            span=statement.span,
            remedy="give it one with AS",
        )
    return name


def _guard(clause: MergeClause, earlier: Sequence[MergeClause]) -> str:
    """The clause's own condition, and none of the earlier ones of its kind."""
    before = [f"NOT COALESCE({each.condition or 'TRUE'}, FALSE)" for each in earlier]
    return " AND ".join((*before, f"({clause.condition})" if clause.condition else "TRUE"))


def _old(table: TableDefinition, alias: str, where: str | None) -> str:
    condition = f" WHERE {where}" if where else ""
    return (
        f"SELECT {_own(table, alias)}, CAST(-1 AS BIGINT) AS `{SIGN}` "
        f"FROM {spark_name(table.name)} AS {spark_name(alias)}{condition}"
    )


def _own(table: TableDefinition, alias: str) -> str:
    """The columns of a row as they are."""
    return ", ".join(f"{_of(alias, c.name)} AS {spark_name(c.name)}" for c in table.columns)


def _of(alias: str, column: str) -> str:
    return f"{spark_name(alias)}.{spark_name(column)}"


def _apply(tx: Transaction, table: TableDefinition, sql: str, *, removes: bool) -> int:
    """Add the weighted rows of a query to the transaction; how many of them have an effect."""
    return tx.add_weighted(table.name, _change(tx, table, sql), removes=removes)


def _change(tx: Transaction, table: TableDefinition, sql: str) -> Part:
    rows = select_seen(tx, with_generated(table, sql))
    return tx.engine.frames.change(rows, table.name, tx.snapshot)


def select_seen(tx: Transaction, sql: str, given: Mapping[str, Given] = NOTHING_GIVEN) -> Result:
    """The rows of a query over views as they will be, and tables as they were changed so far.

    What foreign keys will remove is still there: a later change may bring the key back. Relations
    that are `given` are seen too, and hide those that are called as they are.
    """
    written = with_collections(sql, tx.catalog.tables)
    reads = _reads(tx, written)
    pending = dict(tx.pending_of(name for name in reads if name in tx.catalog.views))
    pending |= {name: [rows] for name, (_, rows) in given.items()}
    own = {name: Stored(schema, ()) for name, (schema, _) in given.items()}
    snapshot = replace(tx.snapshot, stored={**tx.snapshot.stored, **own})
    query = BoundQuery(written, (*reads, *given), snapshot, pending)
    asked, _ = bind_versions(query, tx.engine)
    return select(tx.engine, asked.text, asked.reads, asked.snapshot, asked.pending)


def _reads(tx: Transaction, sql: str) -> tuple[str, ...]:
    """The tables and views that a statement names."""
    named = (node.name for node in parse_query(sql).find_all(exp.Table))
    return tuple(dict.fromkeys(name for n in named if (name := tx.catalog.find(n)) is not None))


def _columns(
    table: TableDefinition, named: tuple[str, ...], statement: Insert | Merge
) -> tuple[str, ...]:
    known = {column.name.lower(): column.name for column in table.columns}
    for name in named:
        if name.lower() not in known:
            raise _unknown(table, name, statement)
    _must_be_once(named, statement)
    columns = tuple(known[name.lower()] for name in named)
    must_not_be_generated(columns, table, statement.span)
    return columns or not_generated(table)


def assigned(
    table: TableDefinition, pairs: tuple[tuple[str, str], ...], statement: Insert | Update | Merge
) -> dict[str, str]:
    """The columns that are set, as the table spells them, with their new values."""
    known = {column.name.lower(): column.name for column in table.columns}
    changed: dict[str, str] = {}
    _must_be_once([name for name, _ in pairs], statement)
    for name, value in pairs:
        if name.lower() not in known:
            raise _unknown(table, name, statement)
        column = known[name.lower()]
        if column in dict(table.generated) and is_default_word(value):
            continue
        changed[column] = assigned_value(value, table, column)
    must_not_be_generated(changed, table, statement.span)
    return changed


def _must_fit(
    width: int, columns: Sequence[str], table: TableDefinition, statement: Insert | Merge
) -> None:
    """Refuse more or fewer values than there are columns for."""
    if width != len(columns):
        raise UserError(
            "T002",
            f"INSERT gives {width} values for {len(columns)} columns of {table.name}",
            span=statement.span,
            remedy=f"give {', '.join(columns)}",
        )


def _must_be_once(named: Sequence[str], statement: Insert | Update | Merge) -> None:
    """Refuse a column that is given two values."""
    if len({name.lower() for name in named}) < len(named):
        raise UserError(
            "Q008",
            "a column is named twice",
            span=statement.span,
            remedy="give every column one value",
        )


def _unknown(table: TableDefinition, name: str, statement: Insert | Update | Merge) -> UserError:
    return UserError(
        "Q007",
        f"{table.name} has no column {name}",
        span=statement.span,
        remedy=f"the columns are {', '.join(column.name for column in table.columns)}",
    )


def _cast(table: TableDefinition, columns: tuple[str, ...]) -> str:
    return ", ".join(
        f"CAST({spark_name(c.name) if c.name in columns else default_value(table, c.name)} "
        f"AS {spark_type(c.type)}) AS {spark_name(c.name)}"
        for c in table.columns
    )


def _width(query: str) -> int | None:
    """How many columns a query has, where the text tells."""
    tree = parse_query(query)
    if isinstance(tree, exp.Values):
        widths = {len(getattr(row, "expressions", ()) or (row,)) for row in tree.expressions}
        return widths.pop() if len(widths) == 1 else None
    if isinstance(tree, exp.Select) and not any(s.is_star for s in tree.expressions):
        return len(tree.expressions)
    return None
