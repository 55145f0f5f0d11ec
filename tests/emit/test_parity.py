"""Every entry of the parity table gives Spark's values, types and errors, over a grid of values."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from emit import grid
from emit.examples import EXAMPLES

from everview.emit.casts import CASTS
from everview.emit.kinds import is_kind
from everview.emit.parity import TABLE, entry_for
from everview.emit.scalar import spark_type_to_duckdb, to_duckdb, to_spark
from everview.plan.scalar import parse, text
from everview.plan.typing import Typed, annotate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = grid.schema()
TEXTS = tuple(dict.fromkeys(text(parse(example)) for example in EXAMPLES))
BATCH = 60
ERROR = "error"
CHECKED_ERRORS = 2


@dataclass
class Answers:
    """What an engine says of one expression: its type, and by row a value or ERROR."""

    type: str
    values: list[Any] = field(default_factory=list)


@pytest.fixture(scope="module")
def on_duckdb() -> dict[str, Answers]:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("grid", grid.table())
    return {each: _duckdb_answers(connection, each) for each in TEXTS}


def _duckdb_answers(connection: duckdb.DuckDBPyConnection, each: str) -> Answers:
    sql = to_duckdb(each, SCHEMA)
    type_ = str(connection.execute(f"DESCRIBE SELECT {sql} AS v FROM grid").fetchall()[0][1])
    guarded = f"SELECT TRY({{'v': {sql}}}) AS r FROM grid ORDER BY rid"
    try:
        found = connection.sql(guarded).to_arrow_table().column("r").combine_chunks()
    except duckdb.Error:  # a common part was computed before TRY
        return Answers(type_, [_row(connection, sql, row) for row in range(grid.SIDE**2)])
    values = _cells(found.field("v"))
    raised = found.is_null().to_pylist()
    return Answers(type_, [ERROR if r else v for r, v in zip(raised, values, strict=True)])


def _row(connection: duckdb.DuckDBPyConnection, sql: str, row: int) -> Any:
    asked = f"SELECT {sql} AS v FROM (FROM grid WHERE rid = {row})"
    try:
        return _cells(connection.sql(asked).to_arrow_table().column("v"))[0]
    except duckdb.Error:
        return ERROR


@pytest.fixture(scope="module")
def on_spark(spark: SparkSession, on_duckdb: dict[str, Answers]) -> dict[str, Answers]:
    """Spark's answers on the rows where DuckDB gives a value, and ERROR where both raise.

    Spark stops at the first error, so each expression is asked only for the rows that DuckDB
    answers; of the rows where DuckDB raises, a few are asked one by one.
    """
    rows = grid.table()
    for number, each in enumerate(TEXTS):
        asked = [value != ERROR for value in on_duckdb[each].values]
        rows = rows.append_column(f"ok{number}", pa.array(asked))
    spark.createDataFrame(rows).coalesce(1).cache().createOrReplaceTempView("parity_grid")
    answers: dict[str, Answers] = {}
    for start in range(0, len(TEXTS), BATCH):
        answers |= _spark_answers(spark, range(start, min(start + BATCH, len(TEXTS))))
    for number, each in enumerate(TEXTS):
        _ask_errors(spark, number, answers[each], on_duckdb[each])
    return answers


def _spark_answers(spark: SparkSession, numbers: range) -> dict[str, Answers]:
    items = ", ".join(f"CASE WHEN ok{n} THEN {to_spark(TEXTS[n])} END AS c{n}" for n in numbers)
    frame = spark.sql(f"SELECT {items} FROM parity_grid ORDER BY rid")
    try:
        found = frame.toArrow()
    except Exception as problem:
        if len(numbers) == 1:
            return {TEXTS[numbers[0]]: Answers(f"Spark raises: {str(problem)[:300]}")}
        middle = (numbers.start + numbers.stop) // 2
        halves = range(numbers.start, middle), range(middle, numbers.stop)
        return _spark_answers(spark, halves[0]) | _spark_answers(spark, halves[1])
    types = [column.dataType.simpleString() for column in frame.schema.fields]
    return {
        TEXTS[n]: Answers(type_, _cells(found.column(f"c{n}")))
        for n, type_ in zip(numbers, types, strict=True)
    }


def _ask_errors(spark: SparkSession, number: int, ours: Answers, theirs: Answers) -> None:
    """Mark the rows where DuckDB raises with what Spark does there, for a few of them."""
    if not ours.values:
        return
    failed = [row for row, value in enumerate(theirs.values) if value == ERROR]
    asked = {failed[0], failed[-1]} if failed else set()
    for row in failed:
        ours.values[row] = _asked(spark, number, row) if row in asked else ERROR


def _asked(spark: SparkSession, number: int, row: int) -> Any:
    sql = f"SELECT {to_spark(TEXTS[number])} AS v FROM parity_grid WHERE rid = {row}"
    try:
        return _cells(spark.sql(sql).toArrow().column("v"))[0]
    except Exception:
        return ERROR


def _cells(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values in a form whose equality is equality to the bit; all NaN are one."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return [_bits(value) for value in column.to_pylist()]


def _bits(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack(">d", value)
    return value


@pytest.mark.spark
@pytest.mark.parametrize("each", TEXTS)
def test_both_engines_agree(
    each: str, on_spark: dict[str, Answers], on_duckdb: dict[str, Answers]
) -> None:
    ours, theirs = on_spark[each], on_duckdb[each]
    assert annotate(each, SCHEMA).type == ours.type
    assert spark_type_to_duckdb(ours.type) == theirs.type
    rows = grid.table().to_pylist()
    used = [c.this.name for c in parse(each).find_all(*_COLUMNS)]
    different = [
        ({name: rows[row][name] for name in used}, spark_says, duckdb_says)
        for row, (spark_says, duckdb_says) in enumerate(
            zip(ours.values, theirs.values, strict=True)
        )
        if spark_says != duckdb_says
    ]
    assert not different, f"{len(different)} rows differ, first: {different[:4]}"


def test_every_entry_has_an_example() -> None:
    used = {id(entry) for each in TEXTS for entry in _entries(annotate(each, SCHEMA))}
    missing = [f"{e.name}({e.operands})" for e in TABLE if id(e) not in used]
    assert not missing


def test_every_cast_has_an_example() -> None:
    pairs = {pair for each in TEXTS for pair in _casts(annotate(each, SCHEMA))}
    missing = [
        f"{c.source} to {c.target}"
        for c in CASTS
        if not any(is_kind(a, c.source) and is_kind(b, c.target) for a, b in pairs)
    ]
    assert not missing


def _nodes(node: Typed) -> list[Typed]:
    return [node, *(inner for arg in node.args for inner in _nodes(arg))]


def _entries(node: Typed) -> list[Any]:
    plain = ("column", "literal", "cast", "try_cast")
    return [entry_for(n.name, n.operands) for n in _nodes(node) if n.name not in plain]


def _casts(node: Typed) -> list[tuple[str, str]]:
    explicit = [(n.args[0].type or "", n.type or "") for n in _nodes(node) if "cast" in n.name]
    return explicit + [
        (arg.type or "", to) for n in _nodes(node) for arg, to in zip(n.args, n.operands)  # noqa: B905
    ]


_COLUMNS = (type(parse("`a`")),)
