"""Rows on their way to the user, in the form asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from everview import arguments
from everview.errors import UserError
from everview.runtime.calendar import must_be_in_calendar

BATCH_ROWS, BATCH_MAX_ROWS = 65_536, 1 << 31
"""How many rows a batch has at most: unless another number is asked for, and whatever is."""


@dataclass(frozen=True, slots=True)
class Result:
    """The rows of a relation or query at one epoch, read when one of these methods is called.

    `stream` gives them in batches of at most so many rows; without it, all are read first.
    """

    arrow: Callable[[], pa.Table]
    frame: Callable[[], Any] | None = None
    stream: Callable[[int], Iterator[pa.RecordBatch]] | None = None

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table; `polars.from_arrow` makes a Polars frame of it.

        A table without rows has an empty chunk in every column: pyspark takes no nested column
        without one.
        """
        table = self.arrow()
        return table if table.num_rows else table.schema.empty_table()

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as tuples, in no order unless the query has one.

        Arrays are lists, structs and maps are dicts.
        """
        table = self.arrow()
        must_be_in_calendar(table, "a value of the column {}")
        columns = (column.to_pylist(maps_as_pydicts="strict") for column in table.columns)
        return list(zip(*columns, strict=True))

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow record batches of at most `rows` rows, of which one is in memory.

        A relation that does not fit in memory is read like this. No rows are no batches.

            for batch in db.read("orders").batches(10_000):
                print(batch.num_rows)
        """
        size = min(arguments.count("rows", rows, least=1), BATCH_MAX_ROWS)
        if self.stream is not None:
            return self.stream(size)
        return (each for each in self.arrow().to_batches(size) if each.num_rows)

    def within(self, context: Callable[[], AbstractContextManager[None]]) -> Result:
        """The same rows, read inside a context that explains errors."""
        inner_frame, inner_stream = self.frame, self.stream

        def arrow() -> pa.Table:
            with context():
                return self.arrow()

        def frame() -> Any:
            assert inner_frame is not None
            with context():
                return inner_frame()

        def stream(rows: int) -> Iterator[pa.RecordBatch]:
            assert inner_stream is not None
            with context():
                yield from inner_stream(rows)

        return Result(arrow, inner_frame and frame, inner_stream and stream)

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame."""
        return self.arrow().to_pandas()

    def to_spark(self) -> Any:
        """The rows as a Spark DataFrame, not collected."""
        if self.frame is None:
            raise UserError(
                "E012",
                "this result is no Spark DataFrame",
                remedy="use to_arrow() or to_pandas(), or open the store with engine='spark'",
            )
        return self.frame()

    def show(self, limit: int | None = 20) -> None:
        """Print the first `limit` rows as a table, or all of them with `limit=None`."""
        from everview.runtime.text_table import print_table

        if limit is not None:
            limit = arguments.count("limit", limit)
        table = self.arrow()
        must_be_in_calendar(table, "a value of the column {}")
        print_table(table, limit if limit is None else min(limit, table.num_rows))
