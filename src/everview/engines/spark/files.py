"""Files that executors read and write: texts become values by the same rules as in process."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession, functions

from everview.engines.spark import actions
from everview.engines.spark.errors import (
    explained,
    in_words,
    in_words_of_java,
    is_unreadable,
)
from everview.engines.spark.relations import ddl
from everview.errors import UserError
from everview.expr.quoting import spark_name
from everview.expr.types import FLOATS, names
from everview.expr.types import Column as TableColumn
from everview.runtime.files.formats import (
    ARROW,
    CSV,
    JSON,
    TEXTS,
    FileOptions,
    is_compressed,
    must_be_writable,
)
from everview.runtime.files.paths import is_remote
from everview.runtime.files.reading import FileRows, must_be_columns
from everview.runtime.files.text_values import INFINITE, ZONED, text_form, whole
from everview.runtime.files.writing import fresh_name, write_file
from everview.runtime.results import Result
from everview.runtime.retry import CalculationError

_NO_TEXT = "\x01everview: no text\x01"
"""What a cell without quotes and text is read as: one with quotes is a text of no characters."""
_GLOB = re.compile(r"([\[\]{}*?\\,^])")
_QUOTING = {
    "quote": '"',
    "escape": '"',
    "multiLine": "true",
    "encoding": "UTF-8",
    # Spark leaves out blanks at the ends of texts as it writes, unless it is told not to.
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
}
_MOMENT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"


@dataclass(frozen=True, slots=True)
class SparkFiles:
    """Executors read and write files; Spark has no reader of Arrow files, so this process does."""

    session: Callable[[], SparkSession]

    def read(self, rows: FileRows) -> Any:
        """The rows as a DataFrame; of Arrow files, batch by batch."""
        format_ = rows.options.of(rows.paths)
        must_be_writable(rows.columns, format_)
        if format_ == ARROW:
            return (table for _, table in rows.tables())
        paths = [_for_spark(path) for path in rows.paths]
        if format_ == CSV:
            return self._csv(rows, paths)
        if format_ == JSON:
            return self._json(rows, paths)
        frame = self.session().read.option("mergeSchema", "true").parquet(*paths)
        must_be_columns(rows.paths[0], frame.columns, rows.columns)
        return frame

    @contextmanager
    def explained(self, rows: FileRows) -> Iterator[None]:
        """Say which files cannot be read where Spark gives up on one."""
        try:
            yield
        except (PySparkException, CalculationError, Py4JJavaError) as problem:
            if isinstance(problem, CalculationError):
                told = problem.problem
            elif isinstance(problem, PySparkException):
                told = in_words(problem)
            elif is_unreadable(problem):
                told = in_words_of_java(problem)
            else:
                raise
            named = "" if "file:" in told else f"{', '.join(rows.paths[:3])}: "
            raise UserError(
                "F005",
                f"{named}{told}".replace("file://", ""),
                remedy="correct the file, or declare the column with another type",
            ) from problem

    def write(self, result: Result, path: str, options: FileOptions) -> int:
        """Write a folder of files; one of this machine's appears when it is whole."""
        format_ = options.of([path])
        if format_ == ARROW:
            return write_file(result, path, options, lambda _: None)
        frame = result.to_spark()
        types = [(each.name, each.dataType.simpleString()) for each in frame.schema.fields]
        must_be_writable(tuple(TableColumn(*each) for each in types), format_)
        written: dict[str, str] = {}
        if format_ == CSV:
            frame = _no_null_alone(_moments_as_text(frame))
            header = str(options.header).lower()
            written = {**_QUOTING, "header": header, "sep": options.delimiter}
        elif format_ == JSON:
            frame, written = _moments_as_text(frame), {"ignoreNullFields": "false"}
        if format_ in TEXTS and is_compressed(path):
            written["compression"] = "gzip"
        with explained():
            if is_remote(path):
                return actions.write_files(frame, path, format_, written)
            with fresh_name(path) as temporary:
                return actions.write_files(frame, f"file:{temporary}", format_, written)

    def _csv(self, rows: FileRows, paths: list[str]) -> DataFrame:
        """The rows of CSV files; the columns of each are found by the names in its first line."""
        reader = self.session().read.options(**_QUOTING, sep=rows.options.delimiter)
        reader = reader.options(header=rows.options.header, nullValue=_NO_TEXT, mode="FAILFAST")
        if not rows.options.header:
            return _of_texts(reader, names(rows.columns), paths, rows)
        if is_remote(rows.paths[0]):
            found = reader.csv(paths).columns
            must_be_columns(rows.paths[0], found, rows.columns)
            return _of_texts(reader.option("enforceSchema", "false"), found, paths, rows)
        by_header: dict[tuple[str, ...], list[str]] = {}
        for own, path in zip(rows.paths, paths, strict=True):
            if (header := rows.header(own)) is not None:
                by_header.setdefault(tuple(header), []).append(path)
                _must_have_one_set(by_header, own)
        if not by_header:
            return self.session().createDataFrame([], ddl(rows.columns))
        frames = (_of_texts(reader, *each, rows) for each in by_header.items())
        return reduce(DataFrame.unionByName, frames)

    def _json(self, rows: FileRows, paths: list[str]) -> DataFrame:
        """One object per line, read as a map of texts: no name of it is overlooked."""
        lines = self.session().read.text(paths).where("trim(value) <> ''")
        read = functions.from_json("value", "map<string,string>", {"mode": "FAILFAST"})
        by_name = functions.transform_keys(read, lambda key, _: functions.lower(key))
        known = [functions.lit(name.lower()) for name in names(rows.columns)]
        unknown = functions.array_except(functions.map_keys(by_name), functions.array(*known))
        name = functions.element_at(unknown, 1)
        problem = _raised(" has an unknown column: ", name)
        checked = functions.when(functions.size(unknown) > 0, problem).otherwise(by_name)
        no_object = _raised(" has a line that is no JSON object: ", functions.col("value"))
        object_ = functions.when(by_name.isNull(), no_object).otherwise(checked)
        frame = lines.select(object_.alias("m"))
        return frame.select(*(_typed(functions.col("m")[c.name.lower()], c) for c in rows.columns))


def _of_texts(
    reader: DataFrameReader, found: Sequence[str], paths: list[str], rows: FileRows
) -> DataFrame:
    """CSV files with the same columns, read as texts and then as values."""
    text = ", ".join(f"{spark_name(name)} STRING" for name in found)
    known = {column.name.lower(): column for column in rows.columns}
    typed = [_typed(functions.col(spark_name(n)), known[n.lower()]) for n in found]
    return reader.schema(text).csv(paths).select(*typed)


def _must_have_one_set(headers: Iterable[tuple[str, ...]], path: str) -> None:
    """Refuse files of which one has columns that another has not: those would have no default."""
    if len({frozenset(map(str.lower, each)) for each in headers}) > 1:
        raise UserError(
            "F005",
            f"{path} has other columns than the files before it",
            remedy="on Spark, copy files with other columns in a statement of their own",
        )


def _typed(text: Column, column: TableColumn) -> Column:
    """A column of texts as values of a type, or an error that names the file and the text."""
    pattern = text_form(column.type)
    if pattern is None:
        return text.alias(column.name)
    moment = text
    if column.type == "timestamp":
        zone = functions.when(text.rlike(ZONED), "").otherwise("Z")
        moment = functions.concat(text, zone)
    value = moment.try_cast(column.type)
    fits = text.rlike(whole(pattern)) & value.isNotNull()
    if column.type in FLOATS:
        infinite = value.isin(float("inf"), float("-inf"))
        fits &= ~infinite | text.rlike(whole(INFINITE))
    problem = _raised(f" has in {column.name} what is not a {column.type.upper()}: ", text)
    return functions.when(text.isNull() | fits, value).otherwise(problem).alias(column.name)


def _raised(what: str, value: Column) -> Column:
    parts = (
        functions.input_file_name(),
        functions.lit(what),
        functions.substr(value, functions.lit(1), functions.lit(60)),
    )
    return functions.raise_error(functions.concat(*parts))


def _moments_as_text(frame: DataFrame) -> DataFrame:
    """Moments with all of their digits, and with a zone if they have one."""
    columns = []
    for field in frame.schema.fields:
        value = functions.col(spark_name(field.name))
        match field.dataType.simpleString():
            case "timestamp":
                value = functions.date_format(value, _MOMENT)
            case "timestamp_ntz":
                value = value.cast("string")
        columns.append(value.alias(field.name))
    return frame.select(*columns)


def _no_null_alone(frame: DataFrame) -> DataFrame:
    """A row of one NULL would be an empty line, and lost."""
    if len(frame.columns) != 1:
        return frame
    [name] = frame.columns
    value = functions.col(spark_name(name))
    problem = "a NULL alone in its row is an empty line, which CSV does not hold"
    raised = functions.raise_error(functions.lit(problem))
    return frame.select(functions.when(value.isNull(), raised).otherwise(value).alias(name))


def _for_spark(path: str) -> str:
    """A path as Spark takes it: of this machine's file system, with no pattern in it."""
    return path if is_remote(path) else "file:" + _GLOB.sub(r"\\\1", path)
