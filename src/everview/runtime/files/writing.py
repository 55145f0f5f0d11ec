"""Rows to one file, batch by batch: under another name until all of them are written."""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from decimal import Decimal
from shutil import rmtree
from typing import Any, Protocol
from uuid import uuid4

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from everview.arguments import shown
from everview.errors import UserError
from everview.runtime.files.formats import (
    ARROW,
    CSV,
    JSON,
    PARQUET,
    TEXTS,
    FileOptions,
    is_compressed,
)
from everview.runtime.files.paths import local
from everview.runtime.results import Result


class _Writer(Protocol):
    def write_batch(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


def write_file(
    result: Result, path: str, options: FileOptions, on_progress: Callable[[str], None]
) -> int:
    """Write rows to a file that is not there yet; how many. A failure leaves no file."""
    format_ = options.of([path])
    reader = pa.RecordBatchReader.from_stream(result)
    _must_hold(reader.schema, format_)
    count = 0
    with fresh_name(path) as temporary:
        compression = "gzip" if format_ in TEXTS and is_compressed(path) else None
        writer = _writer(temporary, reader.schema, format_, options, compression)
        try:
            for batch in reader:
                if format_ == CSV and batch.num_columns == 1 and batch.column(0).null_count:
                    raise UserError(
                        "F002",
                        "a NULL alone in its row is an empty line, which CSV does not hold",
                        remedy="write another column too, or use JSON or Parquet",
                    )
                writer.write_batch(batch)
                count += batch.num_rows
                on_progress(f"writing {path}: {count} rows so far")
        finally:
            writer.close()
    return count


@contextmanager
def fresh_name(path: str) -> Iterator[str]:
    """A name beside `path` to write to, which takes its place when the block is done."""
    folder, name = os.path.split(os.path.abspath(local(path)))
    folder = os.path.realpath(folder)
    target, temporary = (os.path.join(folder, n) for n in (name, f".{name}.{uuid4().hex}"))
    must_be_free(path)
    try:
        yield temporary
        if os.path.isdir(temporary):
            os.rename(temporary, target)
        else:
            os.link(temporary, target)  # unlike a rename, it replaces nothing
    except FileExistsError:
        raise taken(path) from None
    except OSError as problem:
        raise UserError(
            "F004",
            f"{shown(path)} cannot be written: {_reason(problem)}",
            remedy="check that the folder is there and can be written",
        ) from problem
    finally:
        with suppress(OSError):
            os.unlink(temporary)
        rmtree(temporary, ignore_errors=True)


def _reason(problem: OSError) -> str:
    """What the system says; Arrow's words name the file under the name that it is written to."""
    return str(problem) if problem.errno is None else os.strerror(problem.errno)


def must_be_free(path: str) -> None:
    """Refuse to replace a file."""
    if os.path.lexists(local(path)):
        raise taken(path)


def taken(path: str) -> UserError:
    """The error for a file that is there already."""
    remedy = "remove it first, or choose another name"
    return UserError("F004", f"there is something at {shown(path)} already", remedy=remedy)


def _must_hold(schema: pa.Schema, format_: str) -> None:
    for field in schema:
        if format_ in TEXTS and (field.type.num_fields or pa.types.is_binary(field.type)):
            raise UserError(
                "F002",
                f"the column {field.name} is {field.type}, which {format_.upper()} does not hold",
                remedy="use Parquet or Arrow, or leave the column out",
            )
    if format_ == JSON and len({each.lower() for each in schema.names}) < len(schema.names):
        raise UserError("F002", "two columns have one name", remedy="rename one of them with AS")


def _writer(
    path: str, schema: pa.Schema, format_: str, options: FileOptions, compression: str | None
) -> _Writer:
    writer: _Writer
    if format_ == PARQUET:
        writer = pq.ParquetWriter(path, schema)
        return writer
    if format_ == ARROW:
        file = pa.OSFile(path, "wb")
        return _FileWriter(file, pa.ipc.new_file(file, schema))
    if format_ == CSV:
        written = arrow_csv.WriteOptions(include_header=options.header, delimiter=options.delimiter)
        file = pa.output_stream(path, compression)
        return _FileWriter(file, arrow_csv.CSVWriter(file, schema, write_options=written))
    return _JsonWriter(path, compression)


class _FileWriter:
    """Arrow's writer of a format, with the file that it writes to."""

    def __init__(self, file: pa.NativeFile, writer: _Writer) -> None:
        self._file, self._writer = file, writer

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Write the end of the file."""
        self._writer.close()
        self._file.close()


class _JsonWriter:
    """One object per line; a decimal is a number with all of its digits."""

    def __init__(self, path: str, compression: str | None) -> None:
        self._file = io.TextIOWrapper(pa.output_stream(path, compression), encoding="utf-8")

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        columns = [[_json(value) for value in column.to_pylist()] for column in batch.columns]
        keys = [json.dumps(name, ensure_ascii=False) for name in batch.schema.names]
        for row in zip(*columns, strict=True):
            pairs = ", ".join(f"{key}: {value}" for key, value in zip(keys, row, strict=True))
            self._file.write(f"{{{pairs}}}\n")

    def close(self) -> None:
        """Write what is left."""
        self._file.close()


def _json(value: Any) -> str:
    match value:
        case Decimal():
            return f"{value:f}"
        case float() if not math.isfinite(value):
            return json.dumps(
                "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            )
        case date():  # and a datetime, which is one
            return json.dumps(value.isoformat())
        case _:
            return json.dumps(value, ensure_ascii=False)
