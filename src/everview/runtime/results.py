"""Rows on their way to the user, in the form asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa

from everview import arguments
from everview.errors import UserError
from everview.runtime.calendar import must_be_in_calendar

BATCH_ROWS, BATCH_MAX_ROWS = 65_536, 1 << 31
"""How many rows a batch has at most: unless another number is asked for, and whatever is."""
SHOWN_ROWS = 20
"""How many rows are shown unless another number is asked for."""


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """The rows of a relation or query at one epoch, read when one of these methods is called.

    `stream` gives them in batches of at most so many rows; without it, all are read first.
    `named` and `counted` give the names of the columns and the number of rows without reading them,
    the second if it can. `at_most` gives all rows, or raises `TooLarge` before it holds more bytes
    of them than that. `changed` is how many rows a statement changed, None for a query.

        for customer, total in db.sql("SELECT customer, total FROM revenue"):
            print(customer, total)
    """

    arrow: Callable[[], pa.Table]
    frame: Callable[[], Any] | None = None
    stream: Callable[[int], Iterator[pa.RecordBatch]] | None = None
    named: Callable[[], tuple[str, ...]] | None = None
    counted: Callable[[], int | None] | None = None
    changed: int | None = None
    at_most: Callable[[float], pa.Table] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        if self.named is not None:
            return self.named()
        return tuple(self.arrow().column_names)

    def __len__(self) -> int:
        """How many rows there are; where nobody knows, they are read for it, a batch at a time."""
        known = None if self.counted is None else self.counted()
        return sum(batch.num_rows for batch in self.batches()) if known is None else known

    def __bool__(self) -> bool:
        """True, also without rows: to ask `if result:` reads nothing."""
        return True

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as tuples, of which a batch is in memory; `rows()` gives all at once."""
        for batch in self.batches():
            yield from _tuples(pa.Table.from_batches([batch]))

    def __repr__(self) -> str:
        """The first rows as a text table, or how many rows a statement changed."""
        from everview.runtime.text_table import table_text

        if self.changed is not None:
            return f"<Result: {self.changed} rows changed>"
        try:
            columns, rows, more = self._first(SHOWN_ROWS)
        except UserError as problem:  # a debugger asks for it too, at any moment
            return f"<Result: its rows cannot be read: {problem.problem}>"
        return table_text(columns, rows, more=more)

    def _repr_html_(self) -> str:
        """The first rows as a table for a notebook; what they hold is shown, never interpreted."""
        from everview.runtime.html_table import html_table

        columns, rows, more = self._first(SHOWN_ROWS)
        return html_table(columns, rows, more=more)

    def _first(self, limit: int) -> tuple[tuple[str, ...], list[tuple[Any, ...]], bool]:
        """The names of the columns, at most `limit` rows, and whether there are more."""
        batches = self.batches(limit + 1)
        found: list[pa.RecordBatch] = []
        for batch in batches:
            found.append(batch)
            if sum(each.num_rows for each in found) > limit:
                break
        if not found:
            return self.columns, [], False
        table = pa.Table.from_batches(found)
        return tuple(table.column_names), _tuples(table.slice(0, limit)), table.num_rows > limit

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows for any library that takes Arrow's C stream, a batch at a time.

        For example:

            polars.DataFrame(db.read("orders"))
        """
        batches = self.batches()
        first = next(batches, None)
        schema = self.to_arrow().schema if first is None else first.schema
        given = chain(() if first is None else (first,), batches)
        reader = pa.RecordBatchReader.from_batches(schema, given)
        return reader.__arrow_c_stream__(requested_schema)

    def to_polars(self) -> Any:
        """All rows as a Polars DataFrame; needs `pip install everview[polars]`."""
        try:
            import polars
        except ImportError:
            raise UserError(
                "E012",
                "Polars is not installed",
                remedy="pip install 'everview[polars]', or use to_arrow()",
            ) from None
        return polars.from_arrow(self.to_arrow())

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
        return _tuples(self.arrow())

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
        inner_frame, inner_stream, inner_count = self.frame, self.stream, self.counted
        inner_at_most = self.at_most

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

        def counted() -> int | None:
            assert inner_count is not None
            with context():
                return inner_count()

        def at_most(size: float) -> pa.Table:
            assert inner_at_most is not None
            with context():
                return inner_at_most(size)

        return replace(
            self,
            arrow=arrow,
            frame=inner_frame and frame,
            stream=inner_stream and stream,
            counted=inner_count and counted,
            at_most=inner_at_most and at_most,
        )

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

    def show(self, limit: int | None = SHOWN_ROWS) -> None:
        """Print the first `limit` rows as a table, or all of them with `limit=None`."""
        from everview.runtime.text_table import print_table

        if limit is not None:
            limit = arguments.count("limit", limit)
        table = self.arrow()
        must_be_in_calendar(table, "a value of the column {}")
        print_table(table, limit if limit is None else min(limit, table.num_rows))


def rows_changed(count: int) -> Result:
    """The result of a statement that changed so many rows, by the name that Delta Lake gives it."""
    table = pa.table({"num_affected_rows": pa.array([count], pa.int64())})
    return Result(lambda: table, changed=count)


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as tuples: arrays are lists, structs and maps are dicts."""
    must_be_in_calendar(table, "a value of the column {}")
    columns = (column.to_pylist(maps_as_pydicts="strict") for column in table.columns)
    return list(zip(*columns, strict=True))
