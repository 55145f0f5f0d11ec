"""Slices of stored relations by a Spark job: one for all slices of a round.

The driver says which row groups each task reads. Tasks are balanced by bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import Any

import pyarrow as pa

from everview.runtime.file_slices import FileSlice
from everview.runtime.protocol import TooLarge
from everview.store import group_reader

SLICE_ROWS = 2_000_000
"""A slice of more rows is not brought to the driver; the program runs in the large gear."""
TASK_BYTES = 16 << 20
"""About how much of Parquet files a task reads."""
MAX_TASKS = 10_000
ANSWER_TYPE = "slice int, rows binary"


Read = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Task = list[tuple[int, str, int | None, list[int]]]
"""What one task reads: of which slice, in which file, of which layout, which row groups."""


def fetch_by_job(
    slices: Sequence[FileSlice], run_job: Callable[[int, Read, int], pa.Table], most_bytes: int
) -> list[pa.Table]:
    """The slices of one round, not added up, by one Spark job together.

    `run_job` is given a number of tasks, what a task does with its own number, and how many bytes
    it may bring. More rows or bytes than the driver should hold raise `TooLarge`.
    """
    planned = tasks(slices)
    read = slice_reader(slices, planned, SLICE_ROWS, most_bytes)
    answers = run_job(len(planned), read, most_bytes)
    if answers.nbytes > most_bytes:
        raise TooLarge("a round of slices")
    parts = [[each.schema.empty_table(), each.small_rows()] for each in slices]
    counts = [0] * len(slices)
    for number, rows in zip(*(column.to_pylist() for column in answers.columns), strict=True):
        if rows is not None:
            parts[number].append(pa.ipc.open_stream(rows).read_all())
            counts[number] += parts[number][-1].num_rows
        if rows is None or counts[number] > SLICE_ROWS:
            raise TooLarge(slices[number].step.result)
    return [pa.concat_tables(part) for part in parts]


def tasks(slices: Sequence[FileSlice]) -> list[Task]:
    """The row groups of some slices, shared out among tasks by bytes, in the order of files."""
    parts = [
        (number, chunk)
        for number, each in enumerate(slices)
        for found in each.parquet
        for chunk in found.chunks
    ]
    total = sum(chunk.bytes + 1 for _, chunk in parts)
    count = max(1, min(ceil(total / TASK_BYTES), len(parts), MAX_TASKS))
    shared: list[Task] = [[] for _ in range(count)]
    before = 0
    for number, chunk in parts:
        path = slices[number].store.absolute(chunk.file.path)
        part = number, path, chunk.file.layout, list(chunk.groups)
        shared[before * count // total].append(part)
        before += chunk.bytes + 1
    return [task for task in shared if task]


def slice_reader(
    slices: Sequence[FileSlice], planned: Sequence[Task], most: int, most_bytes: int
) -> Read:
    """What a task does, whose number is the one value that it is given.

    It is sent to executors by value, and so is the module `group_reader`.
    """
    keys = [None if each.keys is None else group_reader.packed(each.keys) for each in slices]
    schemas = [each.schema.serialize().to_pybytes() for each in slices]
    reader, shared = group_reader.SliceReader, list(planned)

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as arrow

        answer = arrow.schema([("slice", arrow.int32()), ("rows", arrow.binary())])
        reading = None
        for batch in batches:
            for task in batch.column(0).to_pylist():
                reading = reading or reader(keys, schemas, most, most_bytes)
                for number, rows in reading.read(shared[task]):
                    cells = [[number], [rows]]
                    yield arrow.record_batch(
                        [arrow.array(*each) for each in zip(cells, answer.types, strict=True)],
                        schema=answer,
                    )

    return read
