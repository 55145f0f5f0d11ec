"""INSERT, DELETE, UPDATE, MERGE and TRUNCATE of tables with collections, and of one collection."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from everview.database import dml
from everview.database.catalog.definitions import TableDefinition
from everview.database.catalog.dictionaries import Dictionary
from everview.database.collections.arrays import array_of, column
from everview.database.collections.changes import Inner, must_have_collections
from everview.database.rows_by_key import without_keys
from everview.database.transaction import Transaction
from everview.errors import Span, UserError
from everview.expr.dialect import DIALECT
from everview.expr.quoting import spark_name, spark_type
from everview.expr.types import WEIGHT, Column, names
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.statements import (
    Delete,
    Insert,
    Merge,
    OnConflict,
    Truncate,
    Update,
)

Change = Insert | Delete | Update | Merge | Truncate

_Id = tuple[int, ...]
"""The digest of an element, and the labels of the collections inside it."""
_PLACE, _NEW, _LABEL = "place", "new ", "label of "


def apply(tx: Transaction, statement: Change) -> int:
    """Add the change that a statement makes to a transaction; how many rows or elements change."""
    if isinstance(statement, Insert | Delete | Update) and statement.of:
        return _inner(tx, statement)
    if isinstance(statement, Truncate):
        return sum(_emptied(tx, name, statement) for name in _emptied_tables(tx, statement))
    table = tx.catalog.table(statement.table)
    if not table.collections:
        return dml.apply(tx, statement)
    match statement:
        case Insert():
            return _insert(tx, table, statement)
        case Delete():
            return _delete(tx, table, statement.alias, statement.where)
        case Update():
            values = _assigned_to_row(table, statement, statement.assignments)
            if not {each.column for each in table.dictionaries} & {*values}:
                return dml.update(tx, statement)
            alias = spark_name(statement.alias)
            rows = f"{spark_name(table.name)} AS {alias}"
            return _replace(tx, table, rows, alias, values, statement.where, statement.span)
        case Merge():
            raise UserError(
                "C009",
                f"{table.name} has collections, and MERGE does not change those",
                span=statement.span,
                remedy="use INSERT … ON CONFLICT, upsert, or DELETE and INSERT in one transaction",
            )


def _insert(tx: Transaction, table: TableDefinition, statement: Insert) -> int:
    rows = dml.select_seen(tx, dml.cast_rows(table.declared, statement)).to_arrow()
    if statement.conflict is not None:
        return _insert_or_update(tx, table, rows, statement, statement.conflict)
    tx.add_deep(tx.deep.inserted(table, rows))
    return int(rows.num_rows)


def _insert_or_update(
    tx: Transaction,
    table: TableDefinition,
    rows: pa.Table,
    statement: Insert,
    conflict: OnConflict,
) -> int:
    """Rows whose keys are not there, and new values for those that are; how many of both."""
    dml.must_be_in_conflict_by_key(table.declared, statement, conflict)
    rows = tx.deep.given_once(table, tx.deep.taken(table, rows))
    there, key = tx.deep.there(table, rows), list(table.key)
    come = without_keys(rows, there, key)
    changed = 0
    if conflict.assignments and there.num_rows:
        ours, theirs = spark_name(table.name), spark_name(dml.EXCLUDED)
        same = (f"{ours}.{n} = {theirs}.{n}" for n in map(spark_name, key))
        source = f"{ours} JOIN {theirs} ON {' AND '.join(same)}"
        values = _assigned_to_row(table, statement, conflict.assignments)
        given = {dml.EXCLUDED: (table.declared.columns, there)}
        changed = _replace(tx, table, source, ours, values, conflict.where, statement.span, given)
    tx.add_deep(tx.deep.inserted(table, come.drop_columns([WEIGHT])))
    return int(come.num_rows) + changed


def _replace(
    tx: Transaction,
    table: TableDefinition,
    source: str,
    alias: str,
    values: Mapping[str, str],
    where: str | None,
    span: Span,
    given: Mapping[str, dml.Given] = dml.NOTHING_GIVEN,
) -> int:
    """New values for the rows of an item of FROM that satisfy a condition; how many there are."""
    types = {each.name: spark_type(each.type) for each in table.declared.columns}
    keys = [f"{alias}.{spark_name(name)} AS {spark_name(name)}" for name in table.key]
    fresh = [f"CAST({v} AS {types[name]}) AS {spark_name(name)}" for name, v in values.items()]
    condition = f" WHERE {where}" if where else ""
    query = f"SELECT {', '.join([*keys, *fresh])} FROM {source}{condition}"
    rows = dml.select_seen(tx, query, given).to_arrow()
    if rows.num_rows:
        tx.add_deep(tx.deep.replaced(table, rows, tx, span))
    return int(rows.num_rows)


def _delete(tx: Transaction, table: TableDefinition, alias: str, where: str | None) -> int:
    keys = ", ".join(f"{spark_name(alias)}.{spark_name(name)}" for name in table.key)
    condition = f" WHERE {where}" if where else ""
    query = f"SELECT {keys} FROM {spark_name(table.name)} AS {spark_name(alias)}{condition}"
    rows = dml.select_seen(tx, query).to_arrow()
    if rows.num_rows:
        tx.add_deep(tx.deep.deleted_keys(table, rows))
    return int(rows.num_rows)


def _emptied_tables(tx: Transaction, statement: Truncate) -> list[str]:
    """The tables that TRUNCATE names, and with CASCADE those whose foreign keys lead there."""
    there = [n for n in statement.tables if not statement.if_exists or tx.catalog.find(n)]
    named = [tx.catalog.table(name).name for name in there]
    others = tx.catalog.tables_that_refer(named) if statement.cascade else frozenset()
    return [*named, *sorted(others - {*named})]


def _emptied(tx: Transaction, name: str, statement: Truncate) -> int:
    table = tx.catalog.table(name)
    if table.collections:
        return _delete(tx, table, table.name, None)
    return dml.apply(tx, replace(statement, tables=(name,)))


def _assigned_to_row(
    table: TableDefinition, statement: Insert | Update, pairs: tuple[tuple[str, str], ...]
) -> dict[str, str]:
    """The columns and collections of a row that are set, with their new values."""
    for name, _ in pairs:
        if name.lower() in map(str.lower, table.key):
            raise UserError(
                "C009",
                f"{name} is the key of {table.name}, by which its collections are known",
                span=statement.span,
                remedy="delete the row and insert it under the other key",
            )
    return dml.assigned(table.declared, pairs, statement)


def _inner(tx: Transaction, statement: Insert | Delete | Update) -> int:
    """A change of the collection in the row, and below the elements, that OF names."""
    table, path = _target(tx, statement.table, statement.span)
    key, *elements = (_value(tx, text) for text in statement.of)
    if len(elements) != len(path) - 1:
        raise UserError(
            "Q009",
            f"{statement.table} is {len(path)} levels down, and OF has {len(elements) + 1} values",
            span=statement.span,
            remedy="give the key of the row, and an element for each level between",
        )
    steps: list[Any] = [path[0]]
    for element, name in zip(elements, path[1:], strict=True):
        steps += [element, name]
    inner = tx.deep.inner(table, key, steps)
    if isinstance(statement, Update):
        return _update_where(tx, inner, statement)
    if isinstance(statement, Delete) and not statement.elements:
        return _delete_where(tx, inner, statement)
    rows = _elements(tx, inner, statement)
    adds = isinstance(statement, Insert)
    change = tx.deep.elements_added if adds else tx.deep.elements_removed
    tx.add_deep(change(inner, rows))
    return int(rows.num_rows)


def _target(tx: Transaction, name: str, span: Span) -> tuple[TableDefinition, list[str]]:
    """The table that a collection is in, and the names on the way to it."""
    found = tx.catalog.find(name)
    owner = tx.catalog.tables[found].inside if found in tx.catalog.tables else ""
    if found is None or not owner:
        whole = tx.catalog.find(name.rpartition(".")[0])
        if found is not None or whole is None or whole not in tx.catalog.tables:
            raise tx.catalog.unknown(name) if found is None else _no_collection(found, span)
        must_have_collections(tx.catalog.tables[whole])
        raise _no_collection(name, span)
    table, path = tx.catalog.tables[owner], list[str]()
    below = table.dictionaries
    while below:
        each = next((d for d in below if found == d.relation), None) or next(
            d for d in below if found.startswith(f"{d.relation}.")
        )
        path.append(each.column)
        if each.relation == found:
            break
        below = each.inner
    return table, path


def _no_collection(name: str, span: Span) -> UserError:
    remedy = "name it as table.collection, and leave OF out for whole rows"
    return UserError("N008", f"{name} is no collection", span=span, remedy=remedy)


def _value(tx: Transaction, text: str) -> Any:
    """A value after OF: of a list in parentheses a tuple."""
    tree = parse_query(f"SELECT {text}").expressions[0]
    is_list = isinstance(tree, exp.Tuple)
    parts = tree.expressions if is_list else [tree.this if isinstance(tree, exp.Paren) else tree]
    typed = (exp.cast(e, "string") if isinstance(e, exp.Null) else e for e in parts)
    listed = ", ".join(f"{e.sql(dialect=DIALECT)} AS _{i}" for i, e in enumerate(typed))
    (row,) = dml.select_seen(tx, f"SELECT {listed}").to_arrow().to_pylist()
    return tuple(row.values()) if is_list else row["_0"]


def _elements(tx: Transaction, inner: Inner, statement: Insert | Delete) -> pa.Table:
    """The elements that a statement gives, with the types of their parts."""
    into = inner.dictionary
    empty = tuple((each.column, "ARRAY()") for each in into.inner)
    table = TableDefinition(into.relation, into.fields, (), ())
    if isinstance(statement, Insert):
        given = statement
        table = replace(table, defaults=empty)
    else:
        given = Insert(statement.table, (), statement.elements, statement.span)
        if _is_plain(given.query, len(into.plain)) and into.inner:
            given = replace(given, columns=names(into.plain))
    rows: pa.Table = dml.select_seen(tx, dml.cast_rows(table, given)).to_arrow()
    return rows


def _is_plain(query: str, width: int) -> bool:
    tree = parse_query(query)
    rows = tree.expressions if isinstance(tree, exp.Values) else []
    return all(len(getattr(row, "expressions", ()) or (row,)) == width for row in rows)


def _delete_where(tx: Transaction, inner: Inner, statement: Delete) -> int:
    """The elements that satisfy a condition: all of the collection is read."""
    rows, chosen = _chosen(tx, inner, statement, "")
    gone = rows.filter(_among(rows, inner.dictionary, chosen))
    tx.add_deep(tx.deep.rows_removed(inner, gone))
    return sum(gone[WEIGHT].to_pylist())


def _update_where(tx: Transaction, inner: Inner, statement: Update) -> int:
    """New values for parts of the elements that satisfy a condition; what is inside them stays."""
    into = inner.dictionary
    values = _assigned(inner, statement)
    alias = spark_name(_alias(statement))
    listed = [
        f"CAST({values.get(c.name, f'{alias}.{spark_name(c.name)}')} AS {spark_type(c.type)}) "
        f"AS {spark_name(f'{_NEW}{at}')}"
        for at, c in enumerate(into.plain)
    ]
    rows, chosen = _chosen(tx, inner, statement, "".join(f", {each}" for each in listed))
    old = rows.filter(_among(rows, into, chosen))
    tx.add_deep(tx.deep.rows_changed(inner, old, [chosen[each] for each in _ids(old, into)]))
    return sum(old[WEIGHT].to_pylist())


def _assigned(inner: Inner, statement: Update) -> dict[str, str]:
    """The parts of an element that are set, with their new values."""
    into, found = inner.dictionary, dict[str, str]()
    plain = {name.lower(): name for name in names(into.plain)}
    within = {each.column.lower(): each for each in into.inner}
    for name, value in statement.assignments:
        if (below := within.get(name.lower())) is not None:
            raise UserError(
                "C009",
                f"{name} of {into.relation} is a collection, which UPDATE does not replace",
                span=statement.span,
                remedy=f"INSERT INTO {below.relation} OF key, element VALUES …, and DELETE FROM it",
            )
        if name.lower() not in plain:
            raise UserError(
                "Q007",
                f"an element of {into.relation} has no part {name}",
                span=statement.span,
                remedy=f"its parts are {', '.join(plain.values()) or 'collections alone'}",
            )
        if plain[name.lower()] in found:
            raise UserError(
                "Q008",
                f"{name} is set twice",
                span=statement.span,
                remedy="set each part once",
            )
        found[plain[name.lower()]] = value
    return found


def _among(rows: pa.Table, into: Dictionary, chosen: Collection[_Id]) -> pa.Array:
    return pa.array([each in chosen for each in _ids(rows, into)], pa.bool_())


def _alias(statement: Delete | Update) -> str:
    alias = statement.alias.rpartition(".")[2] if statement.alias == statement.table else ""
    return alias or statement.alias


def _chosen(
    tx: Transaction, inner: Inner, statement: Delete | Update, more: str
) -> tuple[pa.Table, dict[_Id, list[Any]]]:
    """The rows of a collection, and by id what those are given that satisfy a condition."""
    into, rows = inner.dictionary, tx.deep.elements_of(inner)
    labels = {each.column: f"{_LABEL}{each.column}" for each in into.inner}
    place = _unused(_PLACE, tx.snapshot.stored)
    columns = tuple(Column(labels.get(c.name, c.name), c.type) for c in into.columns)
    alias = spark_name(_alias(statement))
    ids = ", ".join(f"{alias}.{spark_name(name)}" for name in (into.digest, *labels.values()))
    where = f" WHERE {statement.where}" if statement.where else ""
    named = _named_in(f"SELECT 1{more} FROM {alias}{where}")
    arrays = [
        exp.alias_(array_of(each, [column(place, labels[each.column])]), each.column, quoted=True)
        for each in into.inner
        if each.column.lower() in named
    ]
    source = exp.select(exp.Star(), *arrays).from_(spark_name(place), dialect=QUERIES)
    query = f"SELECT {ids}{more} FROM ({source.sql(dialect=QUERIES)}) AS {alias}{where}"
    given = rows.rename_columns([*names(columns), WEIGHT])
    found = dml.select_seen(tx, query, {place: (columns, given)}).to_arrow().to_pylist()
    values = [[*row.values()] for row in found]
    width = 1 + len(labels)
    return rows, {tuple(each[:width]): each[width:] for each in values}


def _ids(rows: pa.Table, dictionary: Dictionary) -> list[_Id]:
    """What tells the rows of a dictionary apart: elements with one id are equal."""
    known = [dictionary.digest, *(each.column for each in dictionary.inner)]
    return [tuple(each.values()) for each in rows.select(known).to_pylist()]


def _named_in(query: str) -> set[str]:
    """All names of columns in a query, and of parts of columns."""
    columns = parse_query(query).find_all(exp.Column)
    return {part.name.lower() for each in columns for part in each.parts}


def _unused(name: str, taken: Iterable[str]) -> str:
    known = {each.lower() for each in taken}
    while name in known:
        name += "_"
    return name
