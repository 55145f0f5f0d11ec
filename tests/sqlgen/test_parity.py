"""Every entry of the parity table gives Spark's values, types and errors, over a grid of values."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from cases import check_each
from everview.engines.duckdb import functions
from everview.expr.scalar import parse, text
from everview.expr.signatures import TRY_OPERATORS
from everview.expr.type_inference import Typed, annotate
from everview.expr.types import Column
from everview.sqlgen.parity.casts import CASTS
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.parity.table import TABLE, entry_for
from everview.sqlgen.parity.type_classes import is_in_class
from everview.sqlgen.scalar import to_duckdb, to_spark
from everview.sqlgen.types import spark_type_to_duckdb
from sqlgen import grid
from sqlgen.examples import EXAMPLES
from sqlgen.nulled import nulled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = grid.schema()
NULLED = nulled(EXAMPLES)


def _is_answered(each: str) -> bool:
    """Whether there is an answer on DuckDB, of a type that Arrow can hold."""
    try:
        to_duckdb(each, SCHEMA)
    except NotAtParity:
        return False
    found = annotate(each, SCHEMA).type or ""
    return found == "void" or "void" not in found


TEXTS = tuple(
    dict.fromkeys(
        [text(parse(example)) for example in EXAMPLES] + [*filter(_is_answered, NULLED)],
    )
)
BATCH = 60
ERROR = "error"
ROWS = grid.table().to_pylist()


@dataclass
class Answers:
    """What an engine says of one expression: its type, and by row a value or ERROR."""

    type: str
    values: list[Any] = field(default_factory=list)


@pytest.fixture(scope="module")
def on_duckdb() -> dict[str, Answers]:
    with duckdb.connect() as connection:
        functions.define(connection)
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("grid", grid.table())
        return {each: _duckdb_answers(connection, each) for each in TEXTS}


def _duckdb_answers(connection: duckdb.DuckDBPyConnection, each: str) -> Answers:
    sql = to_duckdb(each, SCHEMA)
    type_ = str(connection.sql(f"SELECT {sql} AS v FROM grid").types[0])
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
def on_spark(generating: SparkSession, on_duckdb: dict[str, Answers]) -> dict[str, Answers]:
    """Spark's answers on the rows where DuckDB gives a value, and ERROR where both raise.

    Spark stops at the first error, so each expression is asked only for the rows that DuckDB
    answers; of the rows where DuckDB raises, one is asked by itself.
    """
    return _all_spark_answers(generating, on_duckdb)


def _all_spark_answers(spark: SparkSession, on_duckdb: dict[str, Answers]) -> dict[str, Answers]:
    asked = [[value != ERROR for value in on_duckdb[each].values] for each in TEXTS]
    flags = pa.array([list(row) for row in zip(*asked, strict=True)], pa.list_(pa.bool_()))
    rows = grid.table().append_column("ok", flags)
    columns = ", ".join(f"{column.name} {column.type}" for column in SCHEMA)
    frame = spark.createDataFrame(rows, schema=f"rid int, {columns}, ok array<boolean>")
    frame.createOrReplaceTempView("parity_rows")
    frame.coalesce(1).cache().createOrReplaceTempView("parity_grid")
    answers: dict[str, Answers] = {}
    for start in range(0, len(TEXTS), BATCH):
        answers |= _spark_answers(spark, range(start, min(start + BATCH, len(TEXTS))))
    _ask_errors(spark, answers, on_duckdb)
    return answers


def _spark_answers(spark: SparkSession, numbers: range) -> dict[str, Answers]:
    items = ", ".join(f"CASE WHEN ok[{n}] THEN {to_spark(TEXTS[n])} END AS c{n}" for n in numbers)
    try:
        frame = spark.sql(f"SELECT {items} FROM parity_grid ORDER BY rid")
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


def _ask_errors(
    spark: SparkSession, answers: dict[str, Answers], on_duckdb: dict[str, Answers]
) -> None:
    """Fill in the rows where DuckDB raises: ERROR, after asking Spark once for each construct."""
    constructs: set[tuple[str, str | None, tuple[str, ...]]] = set()
    for number, each in enumerate(TEXTS):
        failed = [row for row, value in enumerate(on_duckdb[each].values) if value == ERROR]
        if not failed or not answers[each].values:
            continue
        for row in failed:
            answers[each].values[row] = ERROR
        node = annotate(each, SCHEMA)
        construct = (node.name, node.type, node.operands)
        if construct not in constructs:
            row = failed[number % len(failed)]
            answers[each].values[row] = _asked(spark, number, row)
        constructs.add(construct)


def _asked(spark: SparkSession, number: int, row: int) -> str:
    """Whether Spark raises for one row; of local rows, Spark knows without starting a job."""
    sql = f"SELECT {to_spark(TEXTS[number])} IS NULL FROM parity_rows WHERE rid = {row}"
    try:
        return f"an answer: {spark.sql(sql).collect()}"
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
    match value:
        case float():
            return "NaN" if value != value else struct.pack(">d", value)
        case list() | tuple():
            return [_bits(each) for each in value]
        case dict():
            return {name: _bits(each) for name, each in value.items()}
        case _:
            return value


def by_construct(texts: Iterable[str]) -> dict[str, list[str]]:
    """The texts of each construct, by what is outermost in them."""
    found: dict[str, list[str]] = {}
    for each in texts:
        found.setdefault(annotate(each, SCHEMA).name, []).append(each)
    return found


CONSTRUCTS = by_construct(TEXTS)


@pytest.mark.spark
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_both_engines_agree(
    construct: str, on_spark: dict[str, Answers], on_duckdb: dict[str, Answers]
) -> None:
    def agree(each: str) -> None:
        ours, theirs = on_spark[each], on_duckdb[each]
        assert annotate(each, SCHEMA).type == ours.type
        assert spark_type_to_duckdb(ours.type).replace('"', "") == theirs.type.replace('"', "")
        different = [
            (row, spark_says, duckdb_says)
            for row, (spark_says, duckdb_says) in enumerate(
                zip(ours.values, theirs.values, strict=True)
            )
            if spark_says != duckdb_says
        ]
        used = [c.this.name for c in parse(each).find_all(*_COLUMNS)] if different else []
        shown = [({n: ROWS[row][n] for n in used}, *values) for row, *values in different[:4]]
        assert not different, f"{len(different)} rows differ, first: {shown}"

    check_each(CONSTRUCTS[construct], agree)


def test_a_null_argument_is_answered_or_refused() -> None:
    """Neither is a NULL read as the text of a literal, nor is anything else raised."""
    refused = [each for each in NULLED if not _is_answered(each)]
    assert len(NULLED) > 1000
    assert len(refused) < len(NULLED) / 2
    assert to_duckdb("split(s, NULL)", SCHEMA) == "CAST(NULL AS VARCHAR[])"


def test_every_entry_has_an_example() -> None:
    used = {id(entry) for each in TEXTS for entry in _entries(annotate(each, SCHEMA))}
    missing = [f"{e.name}({e.operands})" for e in TABLE if id(e) not in used]
    assert not missing


def test_every_cast_has_an_example() -> None:
    pairs = {pair for each in TEXTS for pair in _casts(annotate(each, SCHEMA))}
    missing = [
        f"{c.source} to {c.target}"
        for c in CASTS
        if not any(is_in_class(a, c.source) and is_in_class(b, c.target) for a, b in pairs)
    ]
    assert not missing


def _nodes(node: Typed) -> list[Typed]:
    return [node, *(inner for arg in node.args for inner in _nodes(arg))]


def _entries(node: Typed) -> list[Any]:
    plain = ("column", "literal", "cast", "try_cast", "lambda", "variable", "index")
    used = [node for node in _nodes(node) if node.name not in plain]
    return [entry_for(TRY_OPERATORS.get(n.name, n.name), n.operands) for n in used]


def _casts(node: Typed) -> list[tuple[str, str]]:
    explicit = [(n.args[0].type or "", n.type or "") for n in _nodes(node) if "cast" in n.name]
    return explicit + [
        (arg.type or "", to)
        for n in _nodes(node)
        for arg, to in zip(n.args, n.operands)  # noqa: B905
    ]


_COLUMNS = (type(parse("`a`")),)


@pytest.mark.spark
@pytest.mark.parametrize(("precision", "scale"), [(5, 0), (10, 2), (18, 6), (20, 0), (20, 12)])
def test_the_average_of_a_total_is_sparks_average(
    spark: SparkSession, precision: int, scale: int
) -> None:
    chance = random.Random(precision * 100 + scale)
    values = [chance.randrange(-(10**precision) + 1, 10**precision) for _ in range(600)]
    rows = pa.table(
        {
            "g": pa.array([int(chance.random() ** 3 * 60) for _ in values], pa.int32()),
            "x": pa.array(
                [Decimal(value).scaleb(-scale) for value in values], pa.decimal128(precision, scale)
            ),
        }
    )
    average = f"ev_avg_decimal(total, n, {precision}, {scale})"
    spark.createDataFrame(rows).createOrReplaceTempView("averaged")
    groups = spark.sql(
        f"SELECT *, {to_spark(average)} AS ours FROM (SELECT g, avg(x) AS theirs, "
        f"CAST(sum(x) AS DECIMAL(38,{scale})) AS total, count(x) AS n FROM averaged GROUP BY g)"
    ).toArrow()
    schema = (Column("total", f"decimal(38,{scale})"), Column("n", "bigint"))
    connection = duckdb.connect()
    connection.register("groups", groups)
    on_duckdb = connection.sql(f"SELECT {to_duckdb(average, schema)} AS v FROM groups")
    assert groups.column("ours").to_pylist() == groups.column("theirs").to_pylist()
    assert on_duckdb.to_arrow_table().column("v").to_pylist() == groups.column("ours").to_pylist()
    assert groups.schema.field("ours").type == groups.schema.field("theirs").type


@pytest.mark.spark
def test_the_canonical_text_means_what_was_written(spark: SparkSession) -> None:
    """Spark plans both texts alike; what sqlglot changes on the way changes nothing."""
    columns = ", ".join(f"CAST(NULL AS {column.type}) AS `{column.name}`" for column in SCHEMA)
    spark.sql(f"SELECT * FROM (SELECT {columns}) WHERE rand() > 2").createOrReplaceTempView("none")
    pairs = [(each, text(parse(each))) for each in EXAMPLES if "ev_" not in each]
    assert _planned_apart(spark, pairs) == []


def _planned_apart(spark: SparkSession, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    plans = [
        spark.sql("SELECT " + ", ".join(side) + " FROM none")._jdf.queryExecution().optimizedPlan()
        for side in zip(*pairs, strict=True)
    ]
    if plans[0].sameResult(plans[1]):
        return []
    if len(pairs) == 1:
        return pairs
    middle = len(pairs) // 2
    return _planned_apart(spark, pairs[:middle]) + _planned_apart(spark, pairs[middle:])


@pytest.mark.parametrize(
    ("each", "construct"),
    [
        ("sin(d)", "sin(double)"),
        ("i + cbrt(d)", "cbrt(double)"),
        ("dt - dt2", "-(date, date)"),
        ("coalesce(soundex(s), 'x')", "soundex()"),
        ("CAST(f AS STRING)", "CAST(float AS string)"),
        ("TRY_CAST(d AS STRING)", "TRY_CAST(double AS string)"),
        ("try_to_date(s, \"yyyy-MM-dd'T'HH\")", "try_to_date with the pattern \"yyyy-MM-dd'T'HH\""),
        ("split(s, ',', k)", "split with the limit of a column"),
        ("split(s, '^a', 2)", "split with the limit 2 and the pattern '^a'"),
        ("to_number(s, '9.9')", "to_number(string, string)"),
        ("get_json_object(s, '$.a[*]')", "get_json_object with the path '$.a[*]'"),
        ("get_json_object(s, s2)", "get_json_object with the path 'of a column'"),
        ("to_json(mp)", "to_json(map<string,int>)"),
        ("try_add(i + 1, 2)", "try_add of an expression"),
        ("try_add(CAST(l AS INT), 2)", "try_add of an expression"),
        ("s RLIKE s2", "rlike with the pattern 'of a column'"),
        ("s RLIKE '\\\\bfoo'", "rlike with the pattern '\\\\bfoo'"),
        ("s RLIKE '(?i)a'", "rlike with the pattern '(?i)a'"),
        ("s RLIKE 'a++'", "rlike with the pattern 'a++'"),
        ("s RLIKE '(?=a)b'", "rlike with the pattern '(?=a)b'"),
        ("s RLIKE '[[:alpha:]]'", "rlike with the pattern '[[:alpha:]]'"),
        ("s RLIKE '[\\\\d-x]'", "rlike with the pattern '[\\\\d-x]'"),
        ("regexp_extract(s, '(a|b)+c', 1)", "regexp_extract with the pattern '(a|b)+c'"),
        ("regexp_replace(s, 'a*', 'x')", "regexp_replace with the pattern 'a*'"),
        ("regexp_replace(s, '(a)', '$2')", "regexp_replace with the replacement '$2'"),
        ("regexp_extract(s, 'a', 1)", "regexp_extract of the group 1"),
        ("date_format(ts, 'yyyy-ww')", "date_format with the pattern ww"),
        ("to_date(s, 'yyyy')", "to_date with the pattern 'yyyy'"),
        ("date_trunc('CENTURY', ts)", "date_trunc to CENTURY"),
        ("nobody + 1", "the column nobody"),
    ],
)
def test_what_is_not_shown_equal_is_refused_by_name(each: str, construct: str) -> None:
    with pytest.raises(NotAtParity) as refusal:
        to_duckdb(each, SCHEMA)
    assert refusal.value.construct == construct
    assert str(refusal.value).startswith(f"{construct} is not shown equal on DuckDB")


@pytest.mark.parametrize(
    "text",
    [
        *("{'a': 1}", '{"a": NaN}', '{"a": 1,}', '{"a": 1} x', '{"a": null, "a": 2}'),
        *('{"b": 1, "b": 2}', '{"a": {"x": 1.5}}', '{"a": ["\\n"]}', '{"a": 1e300}', '{"a": "\t"}'),
    ],
)
def test_json_that_the_engines_may_read_apart_raises(text: str) -> None:
    found = to_duckdb("get_json_object(s, '$.a')", SCHEMA)
    with duckdb.connect() as connection:
        connection.register("texts", pa.table({"s": [text]}))
        with pytest.raises(duckdb.ConversionException):
            connection.sql(f"SELECT {found} FROM texts").fetchall()
