"""What differs between the engines when a plan is written as SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from everview.expr.quoting import duckdb_name, spark_name
from everview.expr.types import WEIGHT, Schema, Type, element_of, entry_of, fields_of, is_nested
from everview.sqlgen.nested_order import sort_key, sorted_list
from everview.sqlgen.scalar import to_duckdb, to_spark
from everview.sqlgen.types import spark_type_to_duckdb


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between the engines when a plan is written as SQL."""

    name: str
    quote: Callable[[str], str]
    scalar: Callable[[str, Schema], str]
    type_: Callable[[Type], str]
    null_safe_equal: str
    """The operator by which NULL equals NULL."""
    semi_join: str
    """The keywords of a semi join."""
    wide_integer: str
    """The type in which a weight times an integer does not overflow."""
    times_weight: Callable[[str, tuple[int, int]], str]
    """A decimal, of a precision and a scale, times its weight."""
    repeat_rows: Callable[[str, str], str]
    """Weighted rows, each as often as its weight says; the columns end with a comma."""
    unnest: Callable[[str, str, str, str, str, bool], str]
    """Rows, columns, array, names of the element and its place, and whether rows without stay."""
    collect: Callable[[str, Type, bool], str]
    """The values of a column of weighted rows, sorted; each once, or as often as weighted."""
    comparable: Callable[[str, Type], str]
    """A value in a form that can be compared for equality."""
    sort_key: Callable[[str, Type], str]
    """A value in a form that the engine orders as Spark orders the value, nulls apart."""


_ITEMS = "_/items"
"""A column of ours; no user's name has a slash."""


def _unnest_spark(
    rows: str, columns: str, array: str, element: str, position: str, outer: bool
) -> str:
    names = f"`_/place`, {element}"
    place = f"`_/place` AS {position}, " if position else ""
    return (
        f"SELECT {columns}{place}{element}, {WEIGHT} FROM ({rows}) AS q "
        f"LATERAL VIEW {'OUTER ' if outer else ''}posexplode({array}) AS {names}"
    )


def _unnest_duckdb(
    rows: str, columns: str, array: str, element: str, position: str, outer: bool
) -> str:
    """Lists of one length are unnested side by side."""
    items, places = f'"{_ITEMS}"', f'range(len("{_ITEMS}"))'
    if outer:
        items, places = (
            f'CASE WHEN len("{_ITEMS}") > 0 THEN {each} ELSE [NULL] END' for each in (items, places)
        )
    place = f"CAST(unnest({places}) AS INTEGER) AS {position}, " if position else ""
    return (
        f"SELECT {columns}{place}unnest({items}) AS {element}, {WEIGHT} "
        f'FROM (SELECT *, {array} AS "{_ITEMS}" FROM ({rows}) AS q) AS q'
    )


def _collect_spark(column: str, _type: Type, once: bool) -> str:
    if once:
        return f"sort_array(collect_set({column}))"
    copies = f"array_repeat({column}, CAST({WEIGHT} AS INT))"
    present = f"CASE WHEN {column} IS NOT NULL THEN {copies} END"
    return f"sort_array(flatten(collect_list({present})))"


def _collect_duckdb(column: str, type_: Type, once: bool) -> str:
    present = f"FILTER (WHERE {column} IS NOT NULL)"
    copies = f"list_transform(range({WEIGHT}), lambda _i: {column})"
    found = f"list(DISTINCT {column}) {present}" if once else f"flatten(list({copies}) {present})"
    every = f"COALESCE({found}, CAST([] AS {spark_type_to_duckdb(type_)}[]))"
    return sorted_list(every, type_, descending=False, nulls_first=True)


def _sort_key_duckdb(sql: str, type_: Type) -> str:
    return (
        f"CASE WHEN {sql} IS NOT NULL THEN {sort_key(sql, type_)} END" if is_nested(type_) else sql
    )


def _comparable_spark(sql: str, type_: Type) -> str:
    """Spark compares no maps; their entries, in order, say whether they are the same."""
    if "map<" not in type_:
        return sql
    if element := element_of(type_):
        return f"transform({sql}, e -> {_comparable_spark('e', element)})"
    if entry := entry_of(type_):
        pair = f"named_struct('k', e.key, 'v', {_comparable_spark('e.value', entry[1])})"
        return f"transform(map_entries({sql}), e -> {pair})"
    fields = ", ".join(
        f"'{name}', {_comparable_spark(f'{sql}.{spark_name(name)}', inner)}"
        for name, inner in fields_of(type_)
    )
    return f"CASE WHEN {sql} IS NULL THEN NULL ELSE named_struct({fields}) END"


def _times_weight_spark(sql: str, parts: tuple[int, int]) -> str:
    """Spark gives up digits after the point of a product of more than 38, but for six.

    A weight of fewer digits leaves room for them; where it has more, Spark raises.
    """
    digits, scale = parts
    if scale <= 6 or digits + 20 <= 38:
        return f"{sql} * CAST({WEIGHT} AS DECIMAL(19, 0))"
    if digits > 36:
        error = f"raise_error('a decimal of {digits} digits in a row that occurs more than once')"
        many = f"CAST({error} AS DECIMAL({digits}, {scale}))"
        return f"CASE {WEIGHT} WHEN 1 THEN {sql} WHEN -1 THEN -{sql} ELSE {many} END"
    return f"{sql} * CAST({WEIGHT} AS DECIMAL({37 - digits}, 0))"


SPARK = Dialect(
    name="spark",
    quote=spark_name,
    scalar=lambda text, _schema: to_spark(text),
    type_=lambda type_: type_,
    null_safe_equal="<=>",
    semi_join="LEFT SEMI JOIN",
    wide_integer="DECIMAL(38, 0)",
    times_weight=_times_weight_spark,
    repeat_rows=lambda rows, columns: (
        f"SELECT {columns}1 AS _one FROM ({rows}) AS r "
        f"LATERAL VIEW explode(array_repeat(0, CAST({WEIGHT} AS INT))) AS _copy"
    ),
    unnest=_unnest_spark,
    collect=_collect_spark,
    comparable=_comparable_spark,
    sort_key=_comparable_spark,
)
DUCKDB = Dialect(
    name="duckdb",
    quote=duckdb_name,
    scalar=to_duckdb,
    type_=spark_type_to_duckdb,
    null_safe_equal="IS NOT DISTINCT FROM",
    semi_join="SEMI JOIN",
    wide_integer="HUGEINT",
    times_weight=lambda sql, _parts: f"{sql} * CAST({WEIGHT} AS DECIMAL(19, 0))",
    repeat_rows=lambda rows, columns: (
        f"SELECT {columns}unnest(range({WEIGHT})) AS _one FROM ({rows}) AS r WHERE {WEIGHT} > 0"
    ),
    unnest=_unnest_duckdb,
    collect=_collect_duckdb,
    comparable=lambda sql, _type: sql,
    sort_key=_sort_key_duckdb,
)
