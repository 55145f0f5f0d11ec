"""Converts the rows that a user may give to a weighted Arrow table of exactly the table's types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import InvalidOperation
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from everview.arguments import did_you_mean, named, shown
from everview.database.values import convert
from everview.errors import UserError
from everview.expr.types import WEIGHT, Column, Schema, names
from everview.runtime.arrow_types import (
    arrow_schema,
    arrow_type,
    keys_of,
    must_have_sound_maps,
)
from everview.runtime.calendar import must_be_in_calendar
from everview.runtime.files.formats import FileOptions
from everview.runtime.files.paths import files_at
from everview.runtime.files.reading import FileRows
from everview.runtime.files.spool import spooled

_ARROW_ERRORS = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""What Arrow raises for values that do not fit a column."""


def is_frame(rows: Any) -> bool:
    """Whether the rows are a Spark DataFrame, which stays on Spark."""
    return type(rows).__module__.startswith("pyspark.") and hasattr(rows, "toArrow")


def is_files(rows: Any) -> bool:
    """Whether the rows are those of files."""
    return isinstance(rows, FileRows)


def files(path: Path, schema: Schema) -> FileRows:
    """The files at a path as rows: the caller's own, so nothing has to allow them."""
    return FileRows(files_at(str(path), None), FileOptions(), schema)


@dataclass(frozen=True, slots=True)
class Absent:
    """What stands in columns that rows leave out: a default, else NULL.

    Tuples may leave out the columns that are `generated`, all of them.
    """

    defaults: Mapping[str, Any] = field(default_factory=dict)
    generated: frozenset[str] = frozenset()


NOTHING = Absent()


def weighted(
    rows: Any, table: str, schema: Schema, weight: int, absent: Absent = NOTHING
) -> pa.Table:
    """The rows, each with `weight`: dicts, tuples, pandas, Polars, Arrow or files."""
    plain = _table(rows, table, schema, absent)
    must_have_sound_maps(plain, schema, table)
    weights = pa.repeat(pa.scalar(weight, pa.int64()), plain.num_rows)
    return plain.append_column(WEIGHT, weights)


def keys(given: Any, table: str, key: Schema) -> pa.Table:
    """Values of the key columns, each once, with weight 1; of one column they may be bare."""
    if len(key) == 1 and isinstance(given, Sequence) and not isinstance(given, str | bytes):
        bare = (row if isinstance(row, Sequence | Mapping) else (row,) for row in given)
        given = [(row,) if isinstance(row, str | bytes) else row for row in bare]
    columns = list(names(key))
    rows = weighted(given, table, key, 1)
    rows = keys_of(rows, columns).append_column(WEIGHT, rows.column(WEIGHT))
    return rows.group_by(columns).aggregate([(WEIGHT, "max")]).rename_columns([*columns, WEIGHT])


def named_columns(rows: Any, table: str, schema: Schema) -> tuple[Any, tuple[str, ...]]:
    """Rows that give some columns by name, and which: all rows the same."""
    arrow = _as_arrow(rows, table)
    if arrow is None:
        if isinstance(rows, str | bytes | Set):
            raise _no_rows(table, rows)
        try:
            rows = list(rows)
        except Exception:
            raise _no_rows(table, rows) from None
        for number, row in enumerate(rows, 1):
            if not isinstance(row, Mapping):
                problem = f"row {number} is {shown(row)}, and does not name its columns"
                raise _wrong(table, problem, "write each row as a dict")
    given: list[set[Any]] = [set(arrow.column_names)] if arrow is not None else [*map(set, rows)]
    known = {name.lower(): name for name in names(schema)}
    for number, row in enumerate(given, 1):
        for name in row:
            if not isinstance(name, str) or name.lower() not in known:
                subject = "the rows have" if arrow is not None else f"row {number} names"
                raise _unknown_column(table, subject, name, schema)
        if {name.lower() for name in row} != {name.lower() for name in given[0]}:
            problem = f"row {number} names other columns than the first"
            raise _wrong(table, problem, "name the same columns in each row")
    first = {name.lower() for name in given[0]} if given else set[str]()
    named = tuple(name for name in names(schema) if name.lower() in first)
    return rows if arrow is None else arrow, named


def storable(rows: pa.Table, table: str, lengths: Sequence[tuple[str, int]]) -> pa.Table:
    """Rows whose dates are in the calendar, and whose texts fit."""
    must_be_in_calendar(rows, "a value of the column {}")
    return limited(rows, table, lengths)


def limited(rows: pa.Table, table: str, lengths: Sequence[tuple[str, int]]) -> pa.Table:
    """Rows whose texts fit VARCHAR lengths; blanks at the end are cut off, as in Spark."""
    for name, length in lengths:
        place, column = rows.schema.get_field_index(name), rows.column(name)
        long = pc.greater(pc.utf8_length(column), length)
        if not pc.any(long).as_py():
            continue
        bare = pc.utf8_rtrim(column, " ")
        beyond = column.filter(pc.greater(pc.utf8_length(bare), length))
        if len(beyond):
            raise _wrong(
                table,
                f"{beyond[0].as_py()!r} in {name} is longer than VARCHAR({length}) may be",
                "shorten the text, or declare the column as STRING",
            )
        kept = pc.if_else(long, pc.utf8_rpad(bare, length), column)
        rows = rows.set_column(place, rows.schema.field(place), kept)
    return rows


def _table(rows: Any, table: str, schema: Schema, absent: Absent) -> pa.Table:
    if isinstance(rows, Path):
        rows = files(rows, schema)
    if isinstance(rows, FileRows):
        return _from_files(rows, table, schema, absent)
    if isinstance(rows, pa.RecordBatchReader):
        rows = iter(rows)
    arrow = _as_arrow(rows, table)
    if arrow is not None:
        return _cast(arrow, table, schema, absent)
    if isinstance(rows, str | bytes | Mapping | Set):
        raise _no_rows(table, rows)
    try:
        given = iter(rows)
    except Exception:
        raise _no_rows(table, rows) from None
    first = list(islice(given, 1))
    if first and isinstance(first[0], pa.RecordBatch | pa.Table):
        batches = (_batch(each, table, schema, absent) for each in chain(first, given))
        return spooled(batches, _unweighted(schema))
    return _from_python([*first, *given], table, schema, absent)


def _from_files(rows: FileRows, table: str, schema: Schema, absent: Absent) -> pa.Table:
    """The rows of files, of exactly the table's types; an error names the file."""

    def batches() -> Iterator[pa.Table]:
        for path, each in rows.tables():
            try:
                yield _batch(each, table, schema, absent)
            except UserError as problem:
                raise UserError(
                    problem.code, f"{path}: {problem.problem}", remedy=problem.remedy
                ) from problem

    return spooled(batches(), _unweighted(schema))


def _batch(rows: Any, table: str, schema: Schema, absent: Absent) -> pa.Table:
    """Some of many rows."""
    arrow = _as_arrow(rows, table)
    if arrow is None:
        problem = f"after batches of rows comes {shown(rows)}"
        raise _wrong(table, problem, "give Arrow record batches alone")
    return _cast(arrow, table, schema, absent)


def _as_arrow(rows: Any, table: str) -> pa.Table | None:
    """Rows in columns as an Arrow table whose buffers are what they say; None for other rows."""
    try:
        if type(rows).__module__.startswith("polars.") and hasattr(rows, "collect"):
            rows = rows.collect(engine="streaming")
        if isinstance(rows, pa.RecordBatch):
            rows = pa.Table.from_batches([rows])
        elif type(rows).__module__.startswith("pandas."):
            rows = pa.Table.from_pandas(rows, preserve_index=False)
        elif hasattr(type(rows), "__arrow_c_stream__") and not isinstance(rows, pa.Table):
            rows = pa.table(rows)
        if isinstance(rows, pa.Table):
            rows.validate(full=True)
            return rows
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as problem:
        column = re.search(r"for column (\S+) with", str(problem))
        what = f"the column {column[1]} has values" if column else f"{shown(rows)} holds columns"
        remedy = "convert the values first, or give a list of rows"
        raise _wrong(table, f"{what} that cannot be read", remedy) from problem
    return None


def _from_python(rows: list[Any], table: str, schema: Schema, absent: Absent) -> pa.Table:
    tuples = [_values(row, number, table, schema, absent) for number, row in enumerate(rows, 1)]
    arrays = []
    for index, column in enumerate(schema):
        converted = [
            _convert(row[index], column, number, table) for number, row in enumerate(tuples, 1)
        ]
        try:
            arrays.append(pa.array(converted, arrow_type(column.type)))
        except _ARROW_ERRORS as problem:
            bad = _first_bad(converted, column)
            raise _mismatch(table, column, *bad) from problem
    return pa.table(arrays, names=list(names(schema)))


def _values(row: Any, number: int, table: str, schema: Schema, absent: Absent) -> Sequence[Any]:
    if isinstance(row, Mapping):
        known = {name.lower(): name for name in names(schema)}
        given: dict[str, Any] = {}
        for key, value in row.items():
            name = key.lower() if isinstance(key, str) else ""
            if name not in known:
                raise _unknown_column(table, f"row {number} names", key, schema)
            if name in given:
                remedy = "name each column once"
                raise _wrong(table, f"row {number} names {known[name]} twice", remedy)
            given[name] = value
        return [given.get(n.lower(), absent.defaults.get(n)) for n in names(schema)]
    if isinstance(row, str | bytes) or not isinstance(row, Sequence):
        raise _wrong(table, f"row {number} is {shown(row)}", "write each row as a tuple or a dict")
    if absent.generated and len(row) == len(schema) - len(absent.generated):
        values = iter(row)
        return [None if n in absent.generated else next(values) for n in names(schema)]
    if len(row) != len(schema):
        raise _wrong(
            table,
            f"row {number} has {len(row)} values, the table {len(schema)} columns",
            f"give {', '.join(names(schema))}",
        )
    return row


def _convert(value: Any, column: Column, number: int, table: str) -> Any:
    """A Python value as one that Arrow takes for the column, without loss."""
    try:
        return convert(value, column.type)
    except (TypeError, ValueError, InvalidOperation, OverflowError):
        raise _mismatch(table, column, number, value) from None


def _cast(rows: pa.Table, table: str, schema: Schema, absent: Absent) -> pa.Table:
    """An Arrow table with the columns of `schema`, by name, cast without loss."""
    wanted = _unweighted(schema)
    if rows.schema.equals(wanted):
        return rows
    if rows.schema.names == wanted.names and rows.schema.types == wanted.types:
        return pa.table(rows.columns, wanted)
    by_name: dict[str, str] = {}
    for name in rows.column_names:
        if name.lower() not in {each.lower() for each in names(schema)}:
            raise _unknown_column(table, "the rows have", name, schema)
        if name.lower() in by_name:
            raise _wrong(table, f"the rows have {name} twice", "give each column once")
        by_name[name.lower()] = name
    arrays = []
    for column, kind in zip(schema, wanted.types, strict=True):
        given = by_name.get(column.name.lower())
        if given is None:
            value = pa.scalar(absent.defaults.get(column.name), kind)
            arrays.append(pa.repeat(value, rows.num_rows))
            continue
        try:
            if isinstance(rows.column(given).type, pa.BaseExtensionType):
                lost = f"the column {column.name} has a meaning that {column.type.upper()} loses"
                raise _wrong(table, lost, "convert the values first")
            arrays.append(_exactly(rows.column(given), kind))
        except (pa.ArrowException, ValueError) as problem:
            raise _wrong(
                table,
                f"the column {column.name} is {rows.column(given).type} and does not fit "
                f"{column.type.upper()}: {_line(problem)}",
                "convert the values first",
            ) from problem
    return pa.table(arrays, wanted)


def _exactly(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """A column cast to a type, ArrowInvalid where a value is not the same after it.

    Arrow itself looks at whole numbers and decimals; it rounds floats to decimals, takes every
    number for true, drops the time of a day, and lets a double that is too large become infinite.
    """
    cast = column.cast(wanted)
    if _may_round(column.type, wanted) and not cast.cast(column.type, safe=False).equals(column):
        raise pa.ArrowInvalid("a value would be rounded")
    if pa.types.is_float64(column.type) and pa.types.is_float32(wanted):
        lost = pc.and_(pc.is_finite(column), pc.is_inf(cast))
        if pc.any(lost).as_py():
            raise pa.ArrowInvalid("a value is too large")
    return cast


def _may_round(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Arrow changes values of one type on the way to the other, and says nothing."""
    if given.num_fields and given.num_fields == wanted.num_fields:
        fields = ((given.field(i), wanted.field(i)) for i in range(given.num_fields))
        return any(_may_round(ours.type, theirs.type) for ours, theirs in fields)
    if pa.types.is_floating(given):
        return bool(pa.types.is_decimal(wanted) or pa.types.is_boolean(wanted))
    if pa.types.is_timestamp(given):
        return bool(pa.types.is_date(wanted))
    return bool(pa.types.is_boolean(wanted) and not pa.types.is_boolean(given))


@lru_cache(maxsize=256)
def _unweighted(schema: Schema) -> pa.Schema:
    return arrow_schema(schema).remove(len(schema))


def _first_bad(values: list[Any], column: Column) -> tuple[int, Any]:
    for number, value in enumerate(values, 1):
        try:
            pa.array([value], arrow_type(column.type))
        except _ARROW_ERRORS:
            return number, value
    return 0, values


def _mismatch(table: str, column: Column, number: int, value: Any) -> UserError:
    return _wrong(
        table,
        f"row {number} has {shown(value)} in {column.name}, which is not a {column.type.upper()}",
        "convert the value, or declare the column with another type",
    )


def _unknown_column(table: str, subject: str, name: object, schema: Schema) -> UserError:
    shown_name = named(name) if isinstance(name, str) else shown(name)
    near = did_you_mean(str(shown_name), names(schema))
    remedy = f"{near}the columns are {', '.join(names(schema))}"
    return _wrong(table, f"{subject} an unknown column: {shown_name}", remedy)


def _no_rows(table: str, rows: object) -> UserError:
    return _wrong(table, f"rows cannot be {shown(rows)}", "give a list of rows")


def _line(problem: Exception) -> str:
    return str(problem).partition("\n")[0]


def _wrong(table: str, problem: str, remedy: str) -> UserError:
    return UserError("T001", f"{table}: {problem}", remedy=remedy)
