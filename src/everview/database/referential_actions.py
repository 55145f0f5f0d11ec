"""ON DELETE CASCADE and SET NULL: the further changes that follow from rows that go."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import TableDefinition
from everview.database.computed_columns import completed, with_generated
from everview.database.queries import select
from everview.errors import Span, UserError
from everview.expr.quoting import spark_name
from everview.expr.types import FLOATS, WEIGHT, names
from everview.lang.sql.parse.constraints import CASCADE, SET_NULL, Constraint
from everview.plan.build import restrict_to_keys
from everview.plan.nodes import Ref
from everview.runtime.protocol import SIGN, Changes, Engine, Part, Snapshot, in_memory, row_count

_BEFORE = "rows before"


def with_referential_actions(
    catalog: Catalog,
    engine: Engine,
    changes: Changes,
    removes: Collection[str],
    snapshot: Snapshot,
) -> tuple[dict[str, list[Part]], frozenset[str]]:
    """The changes of tables with those that foreign keys add, and the tables that lose rows.

    A key goes if it was there before the transaction and is not after it. Rows that refer to it
    when all changes are made go too, or lose the reference; what that removes is followed further,
    until nothing refers to a key that went.
    """
    grown = {name: list(parts) for name, parts in changes.items()}
    losing = {*removes}
    found = True
    while found:
        found = False
        for key in _with_actions(catalog):
            assert key.references is not None
            if key.references.table not in losing:
                continue
            parts = _following(key, catalog, engine, grown, snapshot)
            if parts:
                grown.setdefault(key.table, []).extend(parts)
                losing.add(key.table)
                found = True
    return grown, frozenset(losing)


def must_keep_keys(
    changed: Collection[str], table: TableDefinition, catalog: Catalog, span: Span | None = None
) -> None:
    """Refuse an UPDATE of a key whose rows would take others with them, as if they were deleted."""
    for key in _with_actions(catalog):
        to = key.references
        assert to is not None
        named = {name.lower() for name in changed}
        if to.table == table.name and named & {name.lower() for name in to.columns}:
            raise UserError(
                "T016",
                f"{', '.join(to.columns)} of {table.name} is not updated: {key.name} of {key.table}"
                f" refers to it with ON DELETE {to.on_delete}",
                span=span,
                remedy="in one transaction insert the new key, move what refers to the old one, "
                "and delete it",
            )


def _with_actions(catalog: Catalog) -> Iterator[Constraint]:
    for each in catalog.constraints.values():
        if each.references is not None and each.references.on_delete in (CASCADE, SET_NULL):
            yield each


def _following(
    key: Constraint, catalog: Catalog, engine: Engine, changes: Changes, snapshot: Snapshot
) -> list[Part]:
    """What becomes of the rows that refer to keys that went; nothing if there are none."""
    assert key.references is not None
    table = catalog.tables[key.table]
    parent = in_memory(changes[key.references.table])
    own = in_memory(changes.get(key.table, ()))
    types = {column.name: column.type for column in table.columns}
    searchable = [name for name in key.columns if types[name] not in FLOATS]
    if parent is None or own is None or not searchable:
        return _by_query(key, table, engine, changes, snapshot)
    gone = _keys_gone(key, parent)
    if not gone.num_rows:
        return []
    stored = engine.lookup(table.name, searchable[0], gone.column(searchable[0]), snapshot)
    columns = tuple(column for column in table.columns if column.name in key.columns)
    plan = restrict_to_keys(Ref("current", table.columns), Ref("keys", columns), key.columns)
    current = pa.concat_tables([stored, *(each.select(stored.column_names) for each in own)])
    rows = engine.local.evaluate(plan, {"current": current, "keys": gone})
    if not rows.num_rows:
        return []
    removed = rows.set_column(
        rows.schema.get_field_index(WEIGHT), WEIGHT, pc.negate(rows.column(WEIGHT))
    )
    if key.references.on_delete == CASCADE:
        return [removed]
    kept: Part = _nulled(rows, (*key.columns, *dict(table.generated)))
    if table.generated:
        kept = completed(kept, table, engine, snapshot)
    return [removed, kept]


def _keys_gone(key: Constraint, parts: Sequence[pa.Table]) -> pa.Table:
    """The keys whose weights in a change add up to less than none, as the columns that refer."""
    assert key.references is not None
    theirs = list(key.references.columns)
    changed = pa.concat_tables([part.select([*theirs, WEIGHT]) for part in parts])
    totals = changed.group_by(theirs).aggregate([(WEIGHT, "sum")])
    less = totals.filter(pc.less(totals.column(f"{WEIGHT}_sum"), 0)).select(theirs).drop_null()
    renamed = less.rename_columns(list(key.columns))
    return renamed.append_column(WEIGHT, pa.repeat(pa.scalar(1, pa.int64()), renamed.num_rows))


def _nulled(rows: pa.Table, columns: Collection[str]) -> pa.Table:
    """The rows without values in some columns."""
    for name in columns:
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        rows = rows.set_column(place, field.name, pa.nulls(rows.num_rows, field.type))
    return rows


def _by_query(
    key: Constraint,
    table: TableDefinition,
    engine: Engine,
    changes: Changes,
    snapshot: Snapshot,
) -> list[Part]:
    """The same by one query, computed where the rows are: for changes that are in files."""
    to = key.references
    assert to is not None
    own, other = spark_name(table.name), spark_name(to.table)
    pairs = list(zip(map(spark_name, key.columns), map(spark_name, to.columns), strict=True))
    went = " AND ".join(f"t.{ours} = b.{theirs}" for ours, theirs in pairs)
    there = " AND ".join(f"t.{ours} = r.{theirs}" for ours, theirs in pairs)
    source = (
        f"FROM {own} AS t LEFT SEMI JOIN {spark_name(_BEFORE)} AS b ON {went} "
        f"LEFT ANTI JOIN {other} AS r ON {there}"
    )
    listed = ", ".join(
        f"t.{spark_name(name)} AS {spark_name(name)}" for name in names(table.columns)
    )
    text = f"SELECT {listed}, CAST(-1 AS BIGINT) AS {spark_name(SIGN)} {source}"
    if to.on_delete == SET_NULL:
        nulled = ", ".join(
            f"CAST(NULL AS {c.type}) AS {spark_name(c.name)}"
            if c.name in key.columns
            else f"t.{spark_name(c.name)} AS {spark_name(c.name)}"
            for c in table.columns
        )
        fresh = f"SELECT {nulled}, CAST(1 AS BIGINT) AS {spark_name(SIGN)} {source}"
        text = with_generated(table, f"{text} UNION ALL {fresh}")
    before = snapshot.relation(to.table)
    manifest = snapshot.manifest
    relations = {**manifest.relations, _BEFORE: replace(before, name=_BEFORE)}
    stored = {**snapshot.stored, _BEFORE: snapshot.stored[to.table]}
    both = replace(snapshot, manifest=replace(manifest, relations=relations), stored=stored)
    reads = tuple(dict.fromkeys((table.name, to.table, _BEFORE)))
    change = engine.frames.change(select(engine, text, reads, both, changes), table.name, snapshot)
    return [change] if row_count(change) else []
