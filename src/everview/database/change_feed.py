"""The change feed of a relation as rows with their weights and epochs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from everview.database.catalog.catalog import Catalog
from everview.errors import UserError
from everview.expr.types import EPOCH
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.results import Result
from everview.store.manifest import Segment
from everview.store.store import Store


def change_feed(store: Store, catalog: Catalog, name: str, after: int) -> Result:
    """What was added to a relation after an epoch, oldest first; read when asked for.

    Rows from before an ALTER of a table come with the columns of now.
    """
    table, schema = catalog.tables.get(name), arrow_schema(catalog.schema(name))
    formerly = (table or catalog.views[name]).formerly
    wanted = schema if table is None else table.stored.arrow()
    with_epoch = schema.append(pa.field(EPOCH, pa.int64()))

    def arrow() -> pa.Table:
        try:
            segments = map(rows_of, fed())
            return pa.concat_tables([with_epoch.empty_table(), *segments])
        except UserError:
            fed()  # raises the clearer error for epochs that retention removed meanwhile
            raise

    def fed() -> tuple[Segment, ...]:
        return store.feed(name, after, formerly=formerly)

    def rows_of(segment: Segment) -> pa.Table:
        layout = None if table is None else table.evolution.layout_at(segment.epoch)
        files = [replace(file, layout=layout) for file in segment.files]
        rows = store.read_files(files, schema=wanted)
        stamp = pa.array([segment.epoch] * rows.num_rows, pa.int64())
        return rows.append_column(with_epoch.field(EPOCH), stamp)

    def stream(size: int) -> Iterator[pa.RecordBatch]:
        for segment in fed():
            yield from (each for each in rows_of(segment).to_batches(size) if each.num_rows)

    return Result(arrow, stream=stream)
