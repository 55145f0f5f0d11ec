"""Rows named by their primary keys: the change that removes them, and which must be there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.database.catalog.definitions import TableDefinition
from everview.errors import UserError
from everview.expr.types import WEIGHT
from everview.plan.build import restrict_to_keys
from everview.plan.nodes import Ref
from everview.runtime.protocol import Engine, Part, Snapshot, Staged, TooLarge, in_memory, row_count


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
    stored = engine.lookup(table.name, table.key[0], like.column(table.key[0]), snapshot)
    current = pa.concat_tables([stored, *before])
    old = engine.local.evaluate(plan, {"current": current, "keys": like})
    place, negative = old.schema.get_field_index(WEIGHT), pc.negate(old.column(WEIGHT))
    return old.set_column(place, WEIGHT, negative)


def last_of_each_key(rows: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """Of several rows with one key, the last given."""
    numbered = rows.append_column("__n", pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(list(key)).aggregate([("__n", "max")]).column("__n_max")
    return rows.take(last.sort())


def must_have_each_key_once(fresh: Staged, table: TableDefinition) -> None:
    """Refuse a frame with two rows of one key; of one that is only in files the commit does so."""
    if fresh.rows is None:
        return
    counted = fresh.rows.group_by(list(table.key)).aggregate([([], "count_all")])
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
    missing = keys.join(rows[0].select(columns), columns, join_type="left anti")
    if missing.num_rows:
        shown = missing.select(columns).slice(0, 3).to_pylist()
        more = f" and {missing.num_rows - 3} more" if missing.num_rows > 3 else ""
        raise UserError(
            "T011",
            f"{table.name} has no rows with these keys: {', '.join(map(str, shown))}{more}",
            remedy="read the table to see its keys",
        )
