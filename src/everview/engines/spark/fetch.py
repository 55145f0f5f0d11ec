"""Slices of stored relations, by key: a round of fetches is one Spark job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from everview.expr.types import Schema
from everview.runtime.arrow_types import arrow_schema

DRIVER_BYTES = 32 << 20
"""A slice whose files add up to less is read by the driver: a job costs more than that."""
SLICE_ROWS = 2_000_000
"""A slice of more rows is not brought to the driver; the program runs in the large gear."""


class TooLarge(Exception):  # noqa: N818  (a signal between gears, not an error)
    """A slice has more rows than the driver should hold."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One slice: which files, which columns, and which values of which column.

    `small` are rows of the slice that are in none of the files.
    """

    result: str
    paths: tuple[str, ...]
    schema: Schema
    by: str | None
    keys: pa.ChunkedArray | None
    small: pa.Table | None = None


Read = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def fetch_by_job(
    wanted: Sequence[Wanted], run_job: Callable[[pa.Table, Read], pa.Table]
) -> dict[str, pa.Table]:
    """The slices of one round, not added up, by one Spark job together."""
    answers = run_job(_tasks(wanted), slice_reader(wanted, SLICE_ROWS))
    return _collect(wanted, answers)


ANSWER_TYPE = "slice int, rows binary"


def _tasks(wanted: Sequence[Wanted]) -> pa.Table:
    pairs = [(number, path) for number, slice_ in enumerate(wanted) for path in slice_.paths]
    numbers = pa.array([number for number, _ in pairs], pa.int32())
    return pa.table({"slice": numbers, "path": pa.array([path for _, path in pairs], pa.string())})


def _collect(wanted: Sequence[Wanted], answers: pa.Table) -> dict[str, pa.Table]:
    parts = [[arrow_schema(slice_.schema).empty_table()] for slice_ in wanted]
    for slice_, known in zip(wanted, parts, strict=True):
        known += [] if slice_.small is None else [slice_.small]
    for number, rows in zip(*(column.to_pylist() for column in answers.columns), strict=True):
        if rows is None:
            raise TooLarge(wanted[number].result)
        table = pa.ipc.open_stream(rows).read_all()
        parts[number].append(table.cast(arrow_schema(wanted[number].schema)))
    return {s.result: pa.concat_tables(p) for s, p in zip(wanted, parts, strict=True)}


def slice_reader(wanted: Sequence[Wanted], limit: int) -> Read:
    """A function over (slice, path) batches that reads the wanted rows of each file.

    It is sent to executors by value, so it may use nothing but what it imports itself.
    """
    columns = [list(arrow_schema(slice_.schema).names) for slice_ in wanted]
    filters = [_filter(slice_) for slice_ in wanted]

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as arrow
        import pyarrow.compute as compute
        import pyarrow.dataset as dataset

        reading = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
        verified = dataset.ParquetFileFormat(default_fragment_scan_options=reading)
        answer = arrow.schema([("slice", arrow.int32()), ("rows", arrow.binary())])

        def condition(by: str, low: Any, high: Any, values: bytes, null: bool) -> Any:
            column = compute.field(by)
            known = arrow.ipc.open_stream(values).read_all().column(0).combine_chunks()
            among = column.isin(known)
            if low is not None:
                among = (column >= low) & (column <= high) & among
            return (among | column.is_null()) if null else among

        for batch in batches:
            for number, path in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                filtered = filters[number] and condition(*filters[number])
                files = dataset.dataset(path, format=verified)
                rows = files.to_table(columns=columns[number], filter=filtered)
                packed = None
                if rows.num_rows <= limit:
                    sink = arrow.BufferOutputStream()
                    with arrow.ipc.new_stream(sink, rows.schema) as writer:
                        writer.write_table(rows)
                    packed = sink.getvalue().to_pybytes()
                yield arrow.record_batch(
                    [arrow.array([number], arrow.int32()), arrow.array([packed], arrow.binary())],
                    schema=answer,
                )

    return read


def _filter(slice_: Wanted) -> tuple[str, Any, Any, bytes, bool] | None:
    """What identifies the wanted rows, as it can be sent: nulls apart, bounds for pruning."""
    if slice_.by is None or slice_.keys is None:
        return None
    type_ = arrow_schema(slice_.schema).field(slice_.by).type
    keys = slice_.keys
    present = keys.drop_null()
    sink = pa.BufferOutputStream()
    table = pa.table({"k": present})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    low = high = None
    if len(present) and not pa.types.is_floating(type_):
        bounds = pa.compute.min_max(present)
        low, high = bounds["min"], bounds["max"]
    return slice_.by, low, high, sink.getvalue().to_pybytes(), len(present) < len(keys)
