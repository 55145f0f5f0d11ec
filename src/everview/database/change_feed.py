"""The change feed of a relation as rows with their weights and epochs."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from everview.errors import UserError
from everview.expr.types import EPOCH, Schema
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.results import Result
from everview.store.manifest import Segment
from everview.store.store import Store


def change_feed(store: Store, name: str, columns: Schema, after: int) -> Result:
    """What was added to a relation after an epoch, oldest first; read when asked for."""
    schema = arrow_schema(columns)
    with_epoch = schema.append(pa.field(EPOCH, pa.int64()))

    def arrow() -> pa.Table:
        try:
            segments = map(rows_of, store.feed(name, after))
            return pa.concat_tables([with_epoch.empty_table(), *segments])
        except UserError:
            store.feed(
                name, after
            )  # raises the clearer error for epochs that retention removed meanwhile
            raise

    def rows_of(segment: Segment) -> pa.Table:
        rows = store.read_files(segment.files, schema=schema)
        stamp = pa.array([segment.epoch] * rows.num_rows, pa.int64())
        return rows.append_column(with_epoch.field(EPOCH), stamp)

    def stream(size: int) -> Iterator[pa.RecordBatch]:
        for segment in store.feed(name, after):
            yield from (each for each in rows_of(segment).to_batches(size) if each.num_rows)

    return Result(arrow, stream=stream)
