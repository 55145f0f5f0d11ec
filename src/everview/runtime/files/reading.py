"""Rows of files, batch by batch, in this process."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from everview.arguments import named, shown
from everview.errors import UserError
from everview.expr.types import Schema, names
from everview.runtime.files.formats import (
    ARROW,
    CSV,
    JSON,
    PARQUET,
    FileOptions,
    is_compressed,
    must_be_writable,
)
from everview.runtime.files.text_values import from_text

BATCH_ROWS = 32_768
_BLOCK_BYTES = 4 << 20
_LINES_CHARS = 4096

OnProgress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FileRows:
    """Files of one format as rows of a table; `columns` are those that they give, in order."""

    paths: Sequence[str]
    options: FileOptions
    columns: Schema
    on_progress: OnProgress = lambda _: None

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """The rows, at most a batch in memory, each batch with the file that it is of."""
        format_ = self.options.of(self.paths)
        must_be_writable(self.columns, format_)
        read = {CSV: self._csv, JSON: self._json, PARQUET: _parquet, ARROW: _arrow}[format_]
        total = 0
        for path in self.paths:
            with _readable(path):
                for table in read(path):
                    must_be_columns(path, table.column_names, self.columns)
                    total += table.num_rows
                    self.on_progress(f"reading {path}: {total} rows so far")
                    yield path, table

    def _csv(self, path: str) -> Iterator[pa.Table]:
        header = self.header(path)
        if header is None:
            return
        text = dict.fromkeys(header, pa.string())
        reader = arrow_csv.open_csv(
            pa.input_stream(path),
            arrow_csv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK_BYTES,
                column_names=None if self.options.header else header,
            ),
            arrow_csv.ParseOptions(delimiter=self.options.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=text,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        if reader.schema.names != header:  # a column of another name would not be read as text
            raise UserError(
                "F005",
                f"the names of the columns of {path} are not clear",
                remedy="write them in the first line, in quotes where they hold quotes",
            )
        last: str | None = None

        def batches() -> Iterator[pa.Table]:
            nonlocal last
            for batch in reader:
                last = batch.column(batch.num_columns - 1)[-1].as_py() if batch.num_rows else last
                yield pa.Table.from_batches([batch])

        yield from self._typed(path, batches())
        if last is not None and _ends_in_quotes(path, last):
            raise UserError(
                "F005",
                f"{path} ends inside quotes, in the value that begins with {shown(last[:20])}",
                remedy="close the quotes; the file may be cut off",
            )

    def header(self, path: str) -> list[str] | None:
        """The names of the columns of a CSV file, None if nothing stands below them.

        Empty lines say nothing.
        """
        if not self.options.header:
            return list(names(self.columns))
        stream = partial(io.TextIOWrapper, encoding="utf-8-sig", newline="")
        with _readable(path), stream(pa.input_stream(path)) as file:
            records = csv.reader(file, delimiter=self.options.delimiter)
            found = next((record for record in records if record), None)
            below = iter(partial(file.read, _LINES_CHARS), "")
            is_empty = not any(part.strip("\r\n") for part in below)
        if found is not None:
            must_be_columns(path, found, self.columns)
        return None if is_empty else found

    def _json(self, path: str) -> Iterator[pa.Table]:
        known = {name.lower(): name for name in names(self.columns)}

        def texts() -> Iterator[pa.Table]:
            with io.TextIOWrapper(pa.input_stream(path), encoding="utf-8-sig") as file:
                lines = ((n, line) for n, line in enumerate(file, 1) if line.strip())
                while some := list(islice(lines, BATCH_ROWS)):
                    rows = [_object(path, n, line, known, self.columns) for n, line in some]
                    columns = {
                        name: pa.array([row.get(name) for row in rows], pa.string())
                        for name in known.values()
                    }
                    yield pa.table(columns)

        yield from self._typed(path, texts())

    def _typed(self, path: str, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Columns of texts as columns of the table's types."""
        done = 0
        types = {column.name.lower(): column for column in self.columns}
        for table in tables:
            columns: dict[str, pa.Array] = {}
            for name in table.column_names:
                column, given = types[name.lower()], table.column(name).combine_chunks()
                values, bad = from_text(given, column.type)
                if values is None:
                    raise UserError(
                        "F005",
                        f"{path}: row {done + bad + 1} has {shown(given[bad].as_py())} in "
                        f"{column.name}, which is not a {column.type.upper()}",
                        remedy="correct the file, or declare the column with another type",
                    )
                columns[column.name] = values
            done += table.num_rows
            yield pa.table(columns)


def _parquet(path: str) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(BATCH_ROWS):
            yield pa.Table.from_batches([batch])


def _arrow(path: str) -> Iterator[pa.Table]:
    """An Arrow file, also Feather's, or an Arrow stream."""
    with pa.memory_map(path) as source:
        try:
            file = pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            yield from (pa.Table.from_batches([batch]) for batch in pa.ipc.open_stream(source))
            return
        for n in range(file.num_record_batches):
            yield pa.Table.from_batches([file.get_batch(n)])


class _Number(str):
    """A number as it is written."""


def _object(
    path: str, row: int, line: str, known: dict[str, str], columns: Schema
) -> dict[str, Any]:
    """One line of JSON as texts by column."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        given = {key.lower(): value for key, value in found}
        if len(given) < len(found):
            raise ValueError("a name occurs twice")
        return given

    try:
        read = json.loads(
            line,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_Number,
            object_pairs_hook=pairs,
        )
        if not isinstance(read, dict):
            raise ValueError("it is no object")
    except (ValueError, RecursionError) as problem:
        raise UserError(
            "F005",
            f"{path}: line {row} is no JSON object: {problem}",
            remedy="write one object per line",
        ) from None
    must_be_columns(path, list(read), columns)
    return {known[key]: _text(path, row, key, value) for key, value in read.items()}


def _text(path: str, row: int, name: str, value: Any) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case _:
            raise UserError(
                "F005",
                f"{path}: line {row} has a list or an object in {name}",
                remedy="use Parquet for values that are nested",
            )


def must_be_columns(path: str, found: Sequence[str], columns: Schema) -> None:
    """Refuse a file that names other columns, or one twice."""
    known = {name.lower() for name in names(columns)}
    unknown = next((name for name in found if name.lower() not in known), None)
    twice = len({name.lower() for name in found}) < len(found)
    if unknown is not None or twice:
        what = "a column twice" if unknown is None else f"an unknown column: {named(unknown)}"
        raise UserError(
            "F005",
            f"{path} has {what}",
            remedy=f"the columns are {', '.join(names(columns))}; HEADER false if it names none",
        )


def _ends_in_quotes(path: str, last: str) -> bool:
    """Whether the quotes of the last value of a CSV file are open, which Arrow does not tell."""
    quoted = b'"' + last.replace('"', '""').encode()
    end = _end_of(path, len(quoted) + 8)
    return end.endswith(quoted) and not end.rstrip(b"\r\n").endswith(quoted + b'"')


def _end_of(path: str, size: int) -> bytes:
    """The last bytes of a file, unpacked."""
    end = b""
    with pa.input_stream(path) if is_compressed(path) else pa.OSFile(path) as file:
        if not is_compressed(path):
            file.seek(max(0, file.size() - size))
        while block := file.read(_BLOCK_BYTES):
            end = (end + block)[-size:]
    return end


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Name the file where it is not what it should be."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError, csv.Error, EOFError) as problem:
        reason = str(problem).partition("\n")[0]
        if "straddl" in reason:  # what Arrow says of a row that is longer than a block
            reason = f"a row is longer than {_BLOCK_BYTES >> 20} MB"
        raise UserError(
            "F005", f"{path} cannot be read: {reason}", remedy="check the file, and its FORMAT"
        ) from problem
