"""Changes of a relation as rows: with weights and epochs, or as the pair of what goes and comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from everview.database.catalog.catalog import Catalog
from everview.errors import UserError
from everview.expr.types import EPOCH, WEIGHT, names
from everview.plan.build import negate
from everview.plan.nodes import Plan, Source
from everview.plan.ordered_query import OrderedQuery
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.consolidate import repeated
from everview.runtime.protocol import Engine, Part, Snapshot, Staged, TooLarge
from everview.runtime.results import Result
from everview.store.manifest import Relation, Segment
from everview.store.store import Store


def change_feed(store: Store, catalog: Catalog, name: str, after: int) -> Result:
    """What was added to a relation after an epoch, oldest first; read when asked for.

    Rows from before an ALTER of a table come with the columns of now.
    """
    table = catalog.tables.get(name)
    schema = arrow_schema(catalog.schema(name) if table is None else table.shown)
    wanted = schema if table is None else table.stored.arrow(table.shown)
    with_epoch = schema.append(pa.field(EPOCH, pa.int64()))

    def arrow() -> pa.Table:
        try:
            segments = map(rows_of, fed())
            return pa.concat_tables([with_epoch.empty_table(), *segments])
        except UserError:
            fed()  # raises the clearer error for epochs that retention removed meanwhile
            raise

    def fed() -> tuple[Segment, ...]:
        return _segments(store, catalog, name, after)

    def rows_of(segment: Segment) -> pa.Table:
        return stamped(store.read_files(segment.files, schema=wanted), segment)

    def stamped(rows: pa.Table, segment: Segment) -> pa.Table:
        stamp = pa.array([segment.epoch] * rows.num_rows, pa.int64())
        return rows.append_column(with_epoch.field(EPOCH), stamp)

    def stream(size: int) -> Iterator[pa.RecordBatch]:
        for segment in fed():
            for file in segment.files:
                for rows in store.batches(file, wanted, size):
                    yield from (e for e in stamped(rows, segment).to_batches(size) if e.num_rows)

    return Result(arrow, stream=stream)


def _segments(
    store: Store, catalog: Catalog, name: str, after: int, upto: int | None = None
) -> tuple[Segment, ...]:
    """The segments of a feed; files from before an ALTER are read with the columns of now."""
    table = catalog.tables.get(name)
    fed = store.feed(name, after, upto, formerly=(table or catalog.views[name]).formerly)
    if table is None:
        return fed
    return tuple(
        replace(segment, files=tuple(replace(file, layout=layout) for file in segment.files))
        for segment in fed
        for layout in [table.evolution.layout_at(segment.epoch)]
    )


class ChangePair(NamedTuple):
    """The rows that leave a relation and those that come: V′ = (V − deleted) + inserted.

    It is minimal: what is deleted was there, and no row is in both. Where equal rows may be there
    more than once, a row is listed as often as it leaves or comes.
    """

    deleted: Result
    inserted: Result


def pair_of_parts(
    engine: Engine, name: str, parts: Sequence[Part], snapshot: Snapshot
) -> ChangePair:
    """The pair of a change that is not committed."""
    return _pair(engine, name, _with_segments(snapshot, name, ()), parts)


def pair_of_feed(
    engine: Engine, catalog: Catalog, name: str, after: int, snapshot: Snapshot
) -> ChangePair:
    """The pair of what was added to a relation after an epoch, up to the one of the snapshot."""
    segments = _segments(snapshot.store, catalog, name, after, snapshot.manifest.epoch)
    return _pair(engine, name, _with_segments(snapshot, name, segments), ())


def weighted_rows(engine: Engine, name: str, parts: Sequence[Part], snapshot: Snapshot) -> Result:
    """A change as rows with `_w`; equal rows are added up, and those that cancel left out."""
    return Result(_rows(engine, name, _with_segments(snapshot, name, ()), parts))


def _with_segments(snapshot: Snapshot, name: str, segments: Sequence[Segment]) -> Snapshot:
    """A snapshot in which some segments are all that a relation has."""
    only = {name: Relation(name, tuple(segments))}
    return replace(snapshot, manifest=replace(snapshot.manifest, relations=only))


def _pair(engine: Engine, name: str, snapshot: Snapshot, parts: Sequence[Part]) -> ChangePair:
    rows = _rows(engine, name, snapshot, parts)
    source = Source(name, snapshot.stored[name].schema)

    def shown(plan: Plan, sign: int) -> Result:
        def arrow() -> pa.Table:
            found = rows()
            place, weights = found.schema.get_field_index(WEIGHT), found.column(WEIGHT)
            signed = found.set_column(place, WEIGHT, pc.multiply(weights, sign))
            return repeated(signed.filter(pc.greater(signed.column(WEIGHT), 0)))

        def frame() -> object:
            query = OrderedQuery(plan, names(source.schema))
            return engine.select(query, snapshot, {name: parts}).to_spark()

        return Result(arrow, None if engine.text is None else frame)

    return ChangePair(shown(negate(source), -1), shown(source, 1))


def _rows(
    engine: Engine, name: str, snapshot: Snapshot, parts: Sequence[Part]
) -> Callable[[], pa.Table]:
    """The consolidated weighted rows of segments and parts, read when called."""
    stored = snapshot.stored[name]
    schema, wanted = arrow_schema(stored.schema), stored.arrow()

    def of(segment: Segment) -> pa.Table:
        return snapshot.store.rows_of(segment, wanted)

    def read(part: Part) -> pa.Table:
        if isinstance(part, Staged):
            return of(part.segment) if part.rows is None else part.rows
        return part

    def rows() -> pa.Table:
        found, size = [], 0
        for part in chain(map(of, snapshot.relation(name).segments), map(read, parts)):
            found.append(part)
            size += part.nbytes
            if size > engine.local.budget.readable:
                raise TooLarge("the parts of a change")
        together = pa.concat_tables(
            [schema.empty_table(), *(each.select(schema.names) for each in found)]
        )
        return engine.local.consolidate(together, stored)

    return rows
