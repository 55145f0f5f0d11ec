"""Rows named by their primary keys: what removes them, what they become, which must be there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from everview import arguments
from everview.database import rows as given
from everview.database.catalog.definitions import TableDefinition
from everview.database.computed_columns import completed, must_not_be_generated
from everview.database.referential_actions import Seen, must_keep_keys
from everview.errors import UserError
from everview.expr.types import WEIGHT, Column, names
from everview.plan.build import restrict_to_keys
from everview.plan.nodes import Ref
from everview.runtime.arrow_types import arrow_schema, keys_of, with_one_zero
from everview.runtime.protocol import Engine, Part, Snapshot, Staged, TooLarge, in_memory, row_count

_OURS, _THEIRS = "__ours", "__theirs"
JoinType: TypeAlias = Literal["left semi", "left anti", "inner"]


def removal(
    engine: Engine, table: TableDefinition, by: Any, snapshot: Snapshot, pending: Sequence[Part]
) -> Part:
    """Minus the rows with the keys of `by`, stored or pending."""
    like = by.rows if isinstance(by, Staged) else by
    before = in_memory(pending)
    if isinstance(like, pa.Table) and before is not None:
        with suppress(TooLarge):
            return _removal_here(engine, table, like, snapshot, before)
    return engine.frames.removal(table.name, table.key, by, snapshot, pending)


def _removal_here(
    engine: Engine,
    table: TableDefinition,
    like: pa.Table,
    snapshot: Snapshot,
    before: Sequence[pa.Table],
) -> pa.Table:
    """The same for keys in memory, over the rows that are looked up for them."""
    key_columns = tuple(c for c in table.columns if c.name in like.column_names)
    plan = restrict_to_keys(Ref("current", table.columns), Ref("keys", key_columns), table.key)
    stored = engine.lookup(table.name, table.key, like, snapshot)
    current = pa.concat_tables([stored, *before])
    old = engine.local.evaluate(plan, {"current": current, "keys": like})
    place, negative = old.schema.get_field_index(WEIGHT), pc.negate(old.column(WEIGHT))
    return old.set_column(place, WEIGHT, negative)


def with_keys(rows: pa.Table, keys: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows with some keys (a semi-join)."""
    return rows.take(_joined(rows, keys, key, "left semi").column(_OURS))


def without_keys(rows: pa.Table, keys: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows with none of some keys (an anti-join)."""
    return rows.take(_joined(rows, keys, key, "left anti").column(_OURS))


def places_among(values: pa.Table, rows: pa.Table, key: Sequence[str]) -> pa.Array:
    """For each row, where among `values`, of which each key has one, those with its key are."""
    return _joined(rows, values, key, "inner").column(_THEIRS).combine_chunks()


def _joined(ours: pa.Table, theirs: pa.Table, key: Sequence[str], how: JoinType) -> pa.Table:
    """The numbers of rows with equal keys, in the order of the first; NULL equals NULL.

    Arrow joins no arrays and takes no NULL for equal, so numbers stand for the values of keys.
    """
    codes = [_codes(ours[name], theirs[name]) for name in key]
    names_ = [str(at) for at in range(len(key))]
    tables = [
        pa.table([*each, pa.array(range(len(rows)), pa.int64())], [*names_, number])
        for each, rows, number in zip(
            zip(*codes, strict=True), (ours, theirs), (_OURS, _THEIRS), strict=True
        )
    ]
    return tables[0].join(tables[1], names_, join_type=how).sort_by(_OURS)


def _codes(ours: pa.ChunkedArray, theirs: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """A number for each value of two columns."""
    both = pa.chunked_array([*ours.chunks, *theirs.chunks], ours.type).combine_chunks()
    both = with_one_zero(both)
    codes = both.dictionary_encode(null_encoding="encode").indices
    return codes[: len(ours)], codes[len(ours) :]


def last_of_each_key(rows: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """Of several rows with one key, the last given."""
    numbered = keys_of(rows, key).append_column("__n", pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(list(key)).aggregate([("__n", "max")]).column("__n_max")
    return rows.take(last.sort())


def must_have_each_key_once(fresh: Staged, table: TableDefinition) -> None:
    """Refuse a frame with two rows of one key; of one that is only in files the commit does so."""
    if fresh.rows is None:
        return
    by_key = keys_of(fresh.rows, table.key).group_by(list(table.key))
    counted = by_key.aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted.column("count_all"), 1))
    if twice.num_rows:
        key = twice.select(list(table.key)).slice(0, 1).to_pylist()[0]
        raise UserError(
            "T010",
            f"the DataFrame has {twice.num_rows} keys of {table.name} more than once, "
            f"for instance {key}",
            remedy="keep one row per key: a DataFrame has no order, so none of them is the last",
        )


def must_all_be_there(keys: pa.Table, removed: Part, table: TableDefinition) -> None:
    """Refuse keys that no row has; as many rows as keys means that each was found."""
    if row_count(removed) == keys.num_rows:
        return
    columns, rows = list(table.key), in_memory([removed])
    if rows is None:
        raise UserError(
            "T011",
            f"{table.name} has no rows for {keys.num_rows - row_count(removed)} "
            f"of the {keys.num_rows} keys to be deleted",
            remedy="read the table to see its keys",
        )
    missing = without_keys(keys, rows[0], columns)
    if missing.num_rows:
        shown = missing.select(columns).slice(0, 3).to_pylist()
        more = f" and {missing.num_rows - 3} more" if missing.num_rows > 3 else ""
        raise UserError(
            "T011",
            f"{table.name} has no rows with these keys: {', '.join(map(str, shown))}{more}",
            remedy="read the table to see its keys",
        )


@dataclass(frozen=True, slots=True)
class KeyedUpdate:
    """Keys of rows of a table, beside the columns that these get."""

    table: TableDefinition
    values: pa.Table

    @staticmethod
    def read(table: TableDefinition, rows: Any, keys: Any, set_: Any) -> KeyedUpdate:
        """What a user asks for: `rows` say both, or all rows with `keys` get the same values."""
        return KeyedUpdate(table, _values(table.declared, rows, keys, set_))

    @property
    def is_of_collections(self) -> bool:
        """Whether a collection gets a value."""
        return any(each.column in self.values.column_names for each in self.table.dictionaries)

    @property
    def keys(self) -> pa.Table:
        """The keys alone, each once."""
        return self.values.select([*self.table.key, WEIGHT])

    def replaced(self, removed: Part, tx: Seen) -> Part:
        """The rows that leave as they come back: with the new values, and what follows of them."""
        table, old = self.table, _rows_of(removed, self.table, tx.snapshot)
        places = places_among(self.values, old, table.key)
        one = pa.repeat(pa.scalar(1, pa.int64()), len(old))
        fresh = old.set_column(old.schema.get_field_index(WEIGHT), WEIGHT, one)
        for name in self.values.column_names:
            if name != WEIGHT and name not in table.key:
                fresh = _with_column(fresh, name, self.values[name].take(places))
        for name, _ in table.generated:
            nothing = pa.nulls(len(fresh), fresh.schema.field(name).type)
            fresh = _with_column(fresh, name, nothing)
        whole = completed(fresh, table, tx.engine, tx.snapshot) if table.generated else fresh
        must_keep_keys(self.values.column_names, table, [removed, whole], tx)
        return whole


def _with_column(rows: pa.Table, name: str, values: Any) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), values)


def _values(table: TableDefinition, rows: Any, keys: Any, set_: Any) -> pa.Table:
    if (keys is None) != (set_ is None) or (rows is None) == (keys is None):
        raise UserError(
            "T013",
            "update takes keys and what to set, or rows with both",
            remedy="write keys=[1, 2], set={'column': value}, or give rows as dicts "
            "of the key and of the columns to be changed",
        )
    if not table.key:
        raise UserError(
            "T004",
            f"{table.name} has no primary key, so no row can be named by one",
            remedy="declare a PRIMARY KEY, or UPDATE … WHERE in SQL",
        )
    if given.is_frame(rows) or given.is_frame(keys):
        raise UserError(
            "T001",
            f"{table.name}: update takes no Spark DataFrame",
            remedy="write MERGE INTO … USING … WHEN MATCHED THEN UPDATE in SQL",
        )
    key = tuple(column for column in table.columns if column.name in table.key)
    if keys is not None:
        columns = _assigned(table, arguments.mapping("set", set_))
        wanted = given.keys(keys, table.name, key)
        one = given.weighted([set_], table.name, columns, 1)
        for column in columns:
            value = pa.repeat(one.column(column.name)[0], wanted.num_rows)
            wanted = wanted.append_column(one.schema.field(column.name), value)
        return given.limited(wanted, table.name, _lengths(table, columns))
    rows = _spelled_out(rows, table)
    held, named = given.named_columns(rows, table.name, table.columns)
    if not named:
        return given.weighted([], table.name, key, 1)
    absent = [name for name in table.key if name not in named]
    if absent:
        raise UserError(
            "T001",
            f"{table.name}: the rows have no {', '.join(absent)}, which is in the primary key",
            remedy="give the whole key of each row",
        )
    columns = _assigned(table, [name for name in named if name not in table.key])
    read = given.weighted(held, table.name, (*key, *columns), 1)
    _must_be_once(read, table)
    return given.limited(read, table.name, _lengths(table, columns))


def _rows_of(part: Part, table: TableDefinition, snapshot: Snapshot) -> pa.Table:
    """The rows of a part in memory: of those that are named by keys there are few."""
    if not isinstance(part, Staged):
        return part
    if part.rows is not None:
        return part.rows
    return snapshot.store.rows_of(part.segment, arrow_schema(table.columns))


def _spelled_out(rows: Any, table: TableDefinition) -> Any:
    """Rows given as a dict, by their keys, as dicts that hold the keys."""
    if not isinstance(rows, Mapping):
        return rows
    found = []
    for key, values in rows.items():
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) != len(table.key):
            raise UserError(
                "T001",
                f"{table.name}: the key {arguments.shown(key)} has {len(parts)} values",
                remedy=f"give {', '.join(table.key)}",
            )
        named = arguments.mapping(f"what the row {arguments.shown(key)} gets", values)
        found.append({**dict(zip(table.key, parts, strict=True)), **named})
    return found


def _assigned(table: TableDefinition, named: Any) -> tuple[Column, ...]:
    """The columns that get values, if they may."""
    wanted = {name.lower() for name in named}
    known = {name.lower(): name for name in names(table.columns)}
    for name in named:
        if name.lower() not in known:
            near = arguments.did_you_mean(name, known.values())
            raise UserError(
                "T001",
                f"{table.name}: set names an unknown column: {arguments.named(name)}",
                remedy=f"{near}the columns are {', '.join(known.values())}",
            )
    columns = tuple(each for each in table.columns if each.name.lower() in wanted)
    if not columns:
        raise UserError(
            "T013", "update has nothing to set", remedy="name the columns to be changed"
        )
    if inner := [each.name for each in columns if each.name in table.key]:
        raise UserError(
            "T013",
            f"{', '.join(inner)} is the key of {table.name}, by which its rows are named",
            remedy="UPDATE … SET … WHERE in SQL, or delete the row and insert it again",
        )
    must_not_be_generated([each.name for each in columns], table)
    return columns


def _must_be_once(rows: pa.Table, table: TableDefinition) -> None:
    """Refuse two rows with one key: neither is the last."""
    by_key = keys_of(rows, table.key).group_by(list(table.key))
    counted = by_key.aggregate([([], "count_all")])
    twice = [row for row in counted.to_pylist() if row.pop("count_all") > 1]
    if twice:
        raise UserError(
            "T010",
            f"{table.name}: a key is given more than once: {twice[0]}",
            remedy="give each key once",
        )


def _lengths(table: TableDefinition, columns: tuple[Column, ...]) -> list[tuple[str, int]]:
    return [each for each in table.lengths if each[0] in names(columns)]
