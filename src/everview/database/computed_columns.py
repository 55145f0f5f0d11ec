"""Values of columns that a row does not give: DEFAULT, and GENERATED ALWAYS AS."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlglot import exp

from everview.database.catalog.definitions import TableDefinition
from everview.database.queries import select
from everview.database.rows import Absent
from everview.errors import Span, UserError
from everview.expr.quoting import spark_name, spark_type
from everview.expr.types import names
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.violating_query import NOW
from everview.runtime.protocol import SIGN, Engine, Part, Snapshot, Stored

_GIVEN = "given rows"
_DEFAULT = "DEFAULT"


def default_value(table: TableDefinition, column: str) -> str:
    """The expression of a column's default at this moment; NULL where it has none."""
    defaults = dict(table.defaults)
    return f"({at_this_moment(defaults[column])})" if column in defaults else "NULL"


def at_this_moment(default: str) -> str:
    """A default in which the moment is written out, in UTC."""
    tree, moment = parse_query(default), datetime.now(UTC)
    for node in list(tree.find_all(*NOW)):
        is_date = isinstance(node, exp.CurrentDate)
        value = moment.date().isoformat() if is_date else f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"
        written = parse_query(f"CAST('{value}' AS {'DATE' if is_date else 'TIMESTAMP'})")
        if node is tree:
            tree = written
        else:
            node.replace(written)
    return str(tree.sql(dialect=QUERIES))


def not_generated(table: TableDefinition) -> tuple[str, ...]:
    """The columns that rows are given by."""
    return tuple(c.name for c in table.columns if c.name not in dict(table.generated))


def must_not_be_generated(
    named: Collection[str], table: TableDefinition, span: Span | None = None
) -> None:
    """Refuse to assign a generated column."""
    for name in named:
        if name in dict(table.generated):
            raise UserError(
                "T015",
                f"{name} of {table.name} is generated: it follows from other columns",
                span=span,
                remedy="leave it out, or write DEFAULT for it in SQL",
            )


def without_generated(
    query: str, table: TableDefinition, named: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    """VALUES and their columns without those that are generated, where DEFAULT stands for each."""
    generated = {name.lower() for name, _ in table.generated}
    columns = named or names(table.columns)
    places = [at for at, name in enumerate(columns) if name.lower() in generated]
    if not places or _DEFAULT not in query.upper():
        return query, named
    tree = parse_query(query)
    rows = tree.expressions if isinstance(tree, exp.Values) else []
    for row in rows:
        values = row.expressions if isinstance(row, exp.Tuple) else []
        if len(values) != len(columns) or not all(_is_default(values[at]) for at in places):
            return query, named
    for row in rows:
        kept = [each for at, each in enumerate(row.expressions) if at not in places]
        row.set("expressions", kept)
    left = tuple(name for at, name in enumerate(columns) if at not in places)
    return (str(tree.sql(dialect=QUERIES)), left) if rows and left else (query, named)


def with_default_words(query: str, table: TableDefinition, columns: Sequence[str]) -> str:
    """VALUES with each word DEFAULT replaced by the default of its column."""
    if _DEFAULT not in query.upper():
        return query
    tree = parse_query(query)
    if not isinstance(tree, exp.Values):
        return query
    defaults = [default_value(table, column) for column in columns]
    for row in tree.expressions:
        values = row.expressions if isinstance(row, exp.Tuple) else [row]
        for default, value in zip(defaults, values, strict=False):
            if _is_default(value):
                value.replace(parse_query(default))
    return str(tree.sql(dialect=QUERIES))


def assigned_value(value: str, table: TableDefinition, column: str) -> str:
    """A value of SET, which may be the word DEFAULT."""
    return default_value(table, column) if is_default_word(value) else value


def is_default_word(value: str) -> bool:
    """Whether a value is the word DEFAULT."""
    return value.upper() == _DEFAULT


def _is_default(value: exp.Expr) -> bool:
    named = isinstance(value, exp.Column | exp.Identifier | exp.Var)
    return named and value.sql(dialect=QUERIES).upper() == _DEFAULT


def with_generated(table: TableDefinition, rows: str) -> str:
    """A query for weighted rows, with the generated columns of those that come computed."""
    if not table.generated:
        return rows
    sign = spark_name(SIGN)
    computed = {name: f"IF({sign} > 0, {value}, {spark_name(name)})" for name, value in _of(table)}
    return f"SELECT {_listed(table, computed)}, {sign} FROM ({rows}) AS {spark_name(table.name)}"


def _of(table: TableDefinition) -> list[tuple[str, str]]:
    """Each generated column with its expression, in the type of the column."""
    types = {column.name: column.type for column in table.columns}
    return [
        (name, f"CAST({value} AS {spark_type(types[name])})") for name, value in table.generated
    ]


def _listed(table: TableDefinition, computed: Mapping[str, str]) -> str:
    names = [spark_name(column.name) for column in table.columns]
    values = (computed.get(c.name, spark_name(c.name)) for c in table.columns)
    return ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))


def given_if_absent(table: TableDefinition, engine: Engine, snapshot: Snapshot) -> Absent:
    """What rows of a user's have in columns that they leave out.

    A default depends on no column, so one value serves all rows of a call. Generated columns are
    computed later.
    """
    return Absent(default_values(table, engine, snapshot), frozenset(dict(table.generated)))


def default_values(table: TableDefinition, engine: Engine, snapshot: Snapshot) -> dict[str, Any]:
    """What the columns that have a default get from it at this moment."""
    if not table.defaults:
        return {}
    types = {column.name: column.type for column in table.columns}
    texts = (
        f"CAST({default_value(table, n)} AS {spark_type(types[n])}) AS {spark_name(n)}"
        for n, _ in table.defaults
    )
    rows = select(engine, f"SELECT {', '.join(texts)}", (), snapshot, {}).to_arrow()
    found: dict[str, Any] = rows.to_pylist()[0]
    return found


def completed(
    part: Part,
    table: TableDefinition,
    engine: Engine,
    snapshot: Snapshot,
    absent: Collection[str] = (),
) -> Part:
    """Rows that come, with what they leave out computed: `absent` columns have their defaults.

    A generated column that is given keeps its value, which the check of the column then verifies.
    """
    types = {column.name: column.type for column in table.columns}
    computed = {n: f"CAST({default_value(table, n)} AS {spark_type(types[n])})" for n in absent}
    inner = f"SELECT {_listed(table, computed)} FROM {spark_name(_GIVEN)}"
    filled = {name: f"COALESCE({spark_name(name)}, {value})" for name, value in _of(table)}
    text = (
        f"SELECT {_listed(table, filled)}, CAST(1 AS BIGINT) AS {spark_name(SIGN)} "
        f"FROM ({inner}) AS {spark_name(table.name)}"
    )
    stored = {**snapshot.stored, _GIVEN: Stored(table.columns, ())}
    rows = select(engine, text, (_GIVEN,), replace(snapshot, stored=stored), {_GIVEN: [part]})
    return engine.frames.change(rows, table.name, snapshot)
