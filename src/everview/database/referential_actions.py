"""ON DELETE CASCADE and SET NULL: the further changes that follow from rows that go."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from everview.database.catalog.catalog import Catalog
from everview.database.catalog.definitions import TableDefinition
from everview.database.computed_columns import completed, with_generated
from everview.database.minimal import minimized
from everview.database.pending_rows import PendingRows
from everview.database.queries import select
from everview.errors import Span, UserError
from everview.expr.quoting import spark_name, spark_type
from everview.expr.types import FLOATS, WEIGHT, names
from everview.lang.sql.parse.constraints import CASCADE, SET_NULL, Constraint
from everview.plan.build import restrict_to_keys
from everview.plan.nodes import Ref
from everview.runtime.arrow_types import keys_of
from everview.runtime.protocol import (
    SIGN,
    Changes,
    Engine,
    Part,
    Snapshot,
    TooLarge,
    in_memory,
    row_count,
)

_BEFORE = "rows before"


class Seen(Protocol):
    """What an open transaction sees: a snapshot, and what it has changed."""

    catalog: Catalog
    engine: Engine
    snapshot: Snapshot

    @property
    def pending(self) -> Changes:
        """For each table, the changes so far."""


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
    until nothing refers to a key that went. Each step costs in proportion to the rows it touches.
    """
    cascade = _Cascade(catalog, engine, snapshot, changes)
    losing = {*removes}
    fresh: Mapping[str, list[Part]] = {name: list(changes.get(name, ())) for name in removes}
    while fresh:
        fresh = cascade.after(fresh)
        losing |= {*fresh}
    return cascade.changes, frozenset(losing)


def must_keep_keys(
    named: Collection[str],
    table: TableDefinition,
    parts: Sequence[Part],
    tx: Seen,
    span: Span | None = None,
) -> None:
    """Refuse an UPDATE of keys whose rows would take others with them, as if they were deleted.

    `parts` is what it changes of the table, and `named` are the columns that it assigns.
    """
    assigned = {name.lower() for name in named}
    for key in _with_actions(tx.catalog):
        to = key.references
        assert to is not None
        if to.table != table.name or not assigned & {name.lower() for name in to.columns}:
            continue
        before = {name: list(each) for name, each in tx.pending.items()}
        changes = {**before, table.name: [*before.get(table.name, ()), *parts]}
        cascade = _Cascade(tx.catalog, tx.engine, tx.snapshot, changes)
        if cascade.follows(key, parts):
            raise UserError(
                "T016",
                f"{', '.join(to.columns)} of {table.name} is not updated: rows of {key.table} "
                f"refer to what it was, by {key.name} with ON DELETE {to.on_delete}",
                span=span,
                remedy="in one transaction insert the new key, move what refers to the old one, "
                "and delete it",
            )


def _with_actions(catalog: Catalog) -> Iterator[Constraint]:
    for each in catalog.constraints.values():
        if each.references is not None and each.references.on_delete in (CASCADE, SET_NULL):
            yield each


class _Cascade:
    """Referential actions by a worklist: each step looks at the rows that the last one changed."""

    def __init__(
        self, catalog: Catalog, engine: Engine, snapshot: Snapshot, changes: Changes
    ) -> None:
        self.catalog, self.engine, self.snapshot = catalog, engine, snapshot
        self.changes = {name: list(parts) for name, parts in changes.items()}
        self._rows: dict[str, PendingRows | None] = {}
        """The changes of tables in memory; None for those that are in files alone."""
        self._has_followed = False

    def after(self, fresh: Mapping[str, list[Part]]) -> dict[str, list[Part]]:
        """What follows from some changes, which are among all of them: it is added to these."""
        found: dict[str, list[Part]] = {}
        for key in _with_actions(self.catalog):
            assert key.references is not None
            if key.references.table in fresh:
                for part in self._following(key, fresh[key.references.table]):
                    effect = self._minimal(key.table, part)
                    if row_count(effect):
                        self._add(key.table, effect)
                        found.setdefault(key.table, []).append(effect)
        self._has_followed = True
        return found

    def follows(self, key: Constraint, parts: Sequence[Part]) -> bool:
        """Whether rows refer to keys that some changes, which are among all of them, take away."""
        self._has_followed = True
        return bool(self._following(key, parts))

    def _minimal(self, name: str, part: Part) -> Part:
        """The same, or of a set what has an effect: rows may become equal without their keys."""
        table = self.catalog.tables[name]
        if not table.is_set:
            return part
        return minimized(self.engine, table, part, self.snapshot, self.changes.get(name, ()))

    def _add(self, table: str, part: Part) -> None:
        self.changes.setdefault(table, []).append(part)
        known, rows = self._pending(table), in_memory([part])
        if known is not None and rows is not None:
            known.add(rows[0])
        else:
            self._rows[table] = None

    def _pending(self, table: str) -> PendingRows | None:
        if table not in self._rows:
            rows = in_memory(self.changes.get(table, ()))
            self._rows[table] = None if rows is None else PendingRows(rows)
        return self._rows[table]

    def _following(self, key: Constraint, fresh: Sequence[Part]) -> list[Part]:
        """What becomes of the rows that refer to keys that went; nothing if there are none."""
        assert key.references is not None
        table = self.catalog.tables[key.table]
        parent, own = self._pending(key.references.table), self._pending(key.table)
        searchable = _searchable(key, table)
        if parent is None or own is None or not searchable:
            return _by_query(key, table, self.engine, self.changes, self.snapshot)
        gone = self._gone(key, parent.parts, in_memory(fresh) or [], searchable)
        if not gone.num_rows:
            return []
        try:
            stored = self.engine.lookup(table.name, searchable, gone, self.snapshot)
        except TooLarge:
            return _by_query(key, table, self.engine, self.changes, self.snapshot)
        mine = own.with_keys(searchable, gone)
        rows = self._restricted(table, key.columns, [stored, *mine], gone)
        if not rows.num_rows:
            return []
        place = rows.schema.get_field_index(WEIGHT)
        removed = rows.set_column(place, WEIGHT, pc.negate(rows.column(WEIGHT)))
        if key.references.on_delete == CASCADE:
            return [removed]
        kept: Part = _nulled(rows, (*key.columns, *dict(table.generated)))
        if table.generated:
            kept = completed(kept, table, self.engine, self.snapshot)
        return [removed, kept]

    def _gone(
        self,
        key: Constraint,
        parts: Sequence[pa.Table],
        fresh: Sequence[pa.Table],
        searchable: Sequence[str],
    ) -> pa.Table:
        """The keys that went since the last step: they were there before the transaction.

        Rows that follow have their values as they had them, unless these are generated: then all
        keys that went are looked for again.
        """
        table = self.catalog.tables[key.table]
        if not self._has_followed or {*key.columns} & {*dict(table.generated)}:
            return _keys_gone(key, parts)
        assert key.references is not None
        gone, parent = _keys_gone(key, fresh), self.catalog.tables[key.references.table]
        if not gone.num_rows:
            return gone
        theirs = dict(zip(key.columns, key.references.columns, strict=True))
        named = gone.rename_columns([*key.references.columns, WEIGHT])
        by = [theirs[name] for name in searchable]
        try:
            before = self.engine.lookup(parent.name, by, named, self.snapshot)
        except TooLarge:
            return _keys_gone(key, parts)
        there = self._restricted(parent, key.references.columns, [before], named)
        return _as_keys(key, there.select(list(key.references.columns)))

    def _restricted(
        self,
        table: TableDefinition,
        columns: Sequence[str],
        parts: Sequence[pa.Table],
        keys: pa.Table,
    ) -> pa.Table:
        """The rows of a table, in parts, that have one of the keys in some columns."""
        named = tuple(column for column in table.columns if column.name in columns)
        plan = restrict_to_keys(Ref("current", table.columns), Ref("keys", named), tuple(columns))
        current = pa.concat_tables([each.select(parts[0].column_names) for each in parts])
        return self.engine.local.evaluate(plan, {"current": current, "keys": keys})


def _searchable(key: Constraint, table: TableDefinition) -> list[str]:
    """The columns of a foreign key that rows can be looked up by."""
    types = {column.name: column.type for column in table.columns}
    return [name for name in key.columns if types[name] not in FLOATS]


def _keys_gone(key: Constraint, parts: Sequence[pa.Table]) -> pa.Table:
    """The keys whose weights in a change add up to less than none, as the columns that refer."""
    assert key.references is not None
    theirs = list(key.references.columns)
    together = pa.concat_tables([part.select([*theirs, WEIGHT]) for part in parts])
    changed = keys_of(together, theirs).append_column(WEIGHT, together.column(WEIGHT))
    totals = changed.group_by(theirs).aggregate([(WEIGHT, "sum")])
    less = totals.filter(pc.less(totals.column(f"{WEIGHT}_sum"), 0)).select(theirs).drop_null()
    return _as_keys(key, less)


def _as_keys(key: Constraint, theirs: pa.Table) -> pa.Table:
    """Keys of the table that is referred to, as the columns that refer, with weight 1."""
    renamed = theirs.rename_columns(list(key.columns))
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
            f"CAST(NULL AS {spark_type(c.type)}) AS {spark_name(c.name)}"
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
