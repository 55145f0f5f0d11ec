"""The change feed of a relation as rows with their weights and epochs."""

from __future__ import annotations

import pyarrow as pa

from everview.engine.arrow import arrow_schema
from everview.engine.results import Result
from everview.plan.types import EPOCH, Schema
from everview.store.store import Store


def feed(store: Store, name: str, columns: Schema, after: int) -> Result:
    """What was added to a relation after an epoch, oldest first, read when it is asked for."""
    schema = arrow_schema(columns)
    wanted = schema.append(pa.field(EPOCH, pa.int64()))

    def arrow() -> pa.Table:
        parts = []
        for segment in store.feed(name, after):
            rows = store.read_files(segment.files, schema=schema)
            stamp = pa.array([segment.epoch] * rows.num_rows, pa.int64())
            parts.append(rows.append_column(wanted.field(EPOCH), stamp))
        return pa.concat_tables([wanted.empty_table(), *parts])

    return Result(arrow)
