"""Boundary values of every type, arranged so that a few columns meet in all combinations.

Row r of the grid is the pair (r // SIDE, r % SIDE). A column `x` runs through its values by the
first number, `x2` by the second, `x3` by a mixture, so `x` beside `y2` is a cross product.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

from everview.expr.types import Column, Schema

SIDE = 17
UTC = dt.timezone.utc  # noqa: UP017


def _decimals(*texts: str | None) -> list[Decimal | None]:
    return [None if each is None else Decimal(each) for each in texts]


_DATES = [
    None,
    *(
        dt.date.fromisoformat(each)
        for each in [
            "1970-01-01",
            "1969-12-31",
            "2000-02-29",
            "2024-02-29",
            "2023-02-28",
            "2023-12-31",
            "2024-01-01",
            "2024-01-31",
            "2021-01-03",
            "2020-12-28",
            "1900-03-01",
            "1582-10-04",
            "1582-10-15",
            "0001-01-01",
            "9999-12-31",
            "2024-03-31",
        ]
    ),
]
_STAMPS = [
    None,
    *(
        dt.datetime.fromisoformat(each)
        for each in [
            "1970-01-01T00:00:00",
            "1969-12-31T23:59:59.999999",
            "2024-02-29T12:34:56.789012",
            "2000-02-29T00:00:00",
            "2023-12-31T23:59:59",
            "2024-01-01T00:00:00.000001",
            "2021-01-03T03:04:05",
            "2024-03-31T02:30:00",
            "1900-01-01T00:00:00",
            "1582-10-15T00:00:00",
            "0001-01-01T00:00:00",
            "9999-12-31T23:59:59.999999",
            "1969-07-20T20:17:40.5",
            "2024-01-31T23:00:00",
            "2024-11-03T01:30:00.123",
        ]
    ),
]

_NAN, _INF = float("nan"), float("inf")

VALUES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "ti": ("tinyint", pa.int8(), [None, 0, 1, -1, 2, -2, 7, 100, 127, -128]),
    "sh": ("smallint", pa.int16(), [None, 0, 1, -1, 2, -3, 1000, 32767, -32768]),
    "i": (
        "int",
        pa.int32(),
        [None, 0, 1, -1, 2, 3, -7, 10, 15, -15, 46341, 10**6, 2**31 - 1, -(2**31), 65, 320],
    ),
    "k": ("int", pa.int32(), [None, 0, 1, -1, 2, 3, 4, 5, -2, -5, 7, 12, -13, 100, -100]),
    "l": (
        "bigint",
        pa.int64(),
        [None, 0, 1, -1, 2, 3, -7, 10**12, 2**53 + 1, 2**63 - 1, -(2**63), 2**31, -(2**31) - 1],
    ),
    "f": (
        "float",
        pa.float32(),
        [None, 0.0, -0.0, 1.0, -1.0, 0.1, 2.5, -2.5, 3.7, 1e30, 3.4e38, _NAN, _INF, -_INF, 1e-45],
    ),
    "d": (
        "double",
        pa.float64(),
        [
            None,
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.1,
            2.5,
            -2.5,
            3.7,
            -0.5,
            0.3,
            1e17,
            1e308,
            _NAN,
            _INF,
            -_INF,
            5e-324,
        ],
    ),
    "n": (
        "decimal(10,2)",
        pa.decimal128(10, 2),
        _decimals(None, "0", "1", "-1", "0.01", "-0.01", "1.15", "2.5", "-2.5", "3", "12.34", "0.5")
        + _decimals("-0.5", "7", "99999999.99", "-99999999.99", "-1.45"),
    ),
    "p": (
        "decimal(18,6)",
        pa.decimal128(18, 6),
        _decimals(None, "0", "1", "-1", "0.000001", "-0.000001", "1.5", "-2.5", "3", "0.125")
        + _decimals("999999999999.999999", "-999999999999.999999", "7.654321", "0.05"),
    ),
    "q": (
        "decimal(22,2)",
        pa.decimal128(22, 2),
        _decimals(None, "0", "1", "-1", "0.01", "-0.05", "2.5", "10", "99999999999999999999.99")
        + _decimals("-99999999999999999999.99", "12345678901234.56"),
    ),
    "m": (
        "decimal(38,10)",
        pa.decimal128(38, 10),
        _decimals(None, "0", "1", "-1", "0.0000000001", "2.5", "-2.5", "1234567890123456789.01")
        + _decimals("9999999999999999999999999999.9999999999"),
    ),
    "w": (
        "decimal(38,0)",
        pa.decimal128(38, 0),
        _decimals(None, "0", "1", "-1", "7", "9223372036854775807", "-9223372036854775809")
        + _decimals("85070591730234615847396907784232501249", "-12345678901234567890123456789"),
    ),
    "b": ("boolean", pa.bool_(), [None, True, False]),
    "s": (
        "string",
        pa.string(),
        [
            None,
            "",
            "a",
            "abc",
            "ABC",
            " a b ",
            "é",
            "😀x",
            "a,b,c",
            "50%",
            "o_o",
            "x\ny",
            "a\\%",
            "it's",
            "aaa",
            "\ta\n",
            "é😀é",
        ],
    ),
    "sn": (
        "string",
        pa.string(),
        [
            None,
            "",
            "1",
            "-1",
            "+5",
            " 42 ",
            "12.5",
            "1e3",
            "abc",
            "1_000",
            "9999999999",
            "NaN",
            "-inf",
            ".5",
            "1d",
            "\t7\n",
            "0.00",
        ],
    ),
    "sd": (
        "string",
        pa.string(),
        [
            None,
            "",
            "2024-02-29",
            "2023-02-29",
            "2024-2-3",
            "2024",
            "2024-05",
            " 2024-01-01 ",
            "2024-01-01 10:00:00",
            "2024-01-01T",
            "epoch",
            "20240101",
            "abc",
            "1-1-1",
            "2024-13-01",
            "0001-01-01",
            "9999-12-31",
        ],
    ),
    "sc": (
        "string",
        pa.string(),
        [
            None,
            "",
            "hello World",
            "ÀÉÎ straße",
            "İstanbul ıI",
            "ёЖик  в",
            "ñandú ÿ",
            "ŁÓDŹ-łódź",
            "日本 ab",
            "µ ſ",
        ],
    ),
    "st": (
        "string",
        pa.string(),
        [
            None,
            "2024-02-29 12:34:56",
            "2024-02-29T12:34:56.789",
            "2024-1-2 3:4:5",
            "2024-01-01 10:00",
            "2024-01-01 10",
            "2024-01-01 24:00:00",
            "2024-01-01 12:60:00",
            "2024-01-01 12:34:56Z",
            "2024-01-01 12:34:56+05:30",
            "2024-01-01T12:34:56.1234567-8",
            " 2024-01-01 12:34:56 ",
            "2024-01-01 12:34:56 UTC",
            "2023-02-29 00:00:00",
            "2024-01-01 12:34:56.",
            "24-01-01 00:00:00",
            "2024-01-01 12:34:56 +1",
        ],
    ),
    "su": (
        "string",
        pa.string(),
        [
            None,
            "not a date",
            "15/01/2024",
            "2024/01/15",
            "2024-01/15",
            "2024-01-15x",
            "2024-",
            "2024-01-15 12:34:60",
            "2024-013-1",
            "2024-01-001",
            "24-01-01 1:2:3",
            "20240115",
            "2024-01-15 25:00",
            "2024-01-15T23:61:00.5",
            "2024 10:00",
            "Jan 5 2024",
            "2024-13-45 1:1:1",
        ],
    ),
    "sj": (
        "string",
        pa.string(),
        [
            None,
            "",
            "abc",
            '{"a": 1, "b": {"c": "x", "d": [1, null, "y"]}}',
            '{"a": "é\\u00e9\\n\\"q\\/", "b": {"c": true, "d": []}}',
            ' {"a": 50.00, "b": {"c": {"e": 1, "f": "z"}, "d": [[1, 2], {"a": 3}]}} ',
            '{"a": null, "b": null}',
            '{"b": {"c": -0, "d": [false]}, "a": 18446744073709551615}',
            '[1, 2, {"a": 7}]',
            "[]",
            '[ [1], "]", null ]',
            '{"A": 1',
            "[1, 2",
            '{"z": {"a": -1.5e3}, "b": [1]}',
            '{"a": "", "d": 0.001, "b": {"c": 9007199254740993}}',
            '{"a": "NaN, ]", "b": "1"}',
            "12",
        ],
    ),
    "sb": ("string", pa.string(), [None, "t", "TRUE", "yes", " n ", "0", "1", "on", "", "falsE"]),
    "dt": ("date", pa.date32(), _DATES),
    "ts": (
        "timestamp",
        pa.timestamp("us", tz="UTC"),
        [None if each is None else each.replace(tzinfo=UTC) for each in _STAMPS],
    ),
    "tn": ("timestamp_ntz", pa.timestamp("us"), _STAMPS),
    "ai": (
        "array<int>",
        pa.list_(pa.int32()),
        [
            None,
            [],
            [1],
            [1, 2, 3],
            [None],
            [3, None, 1, 3],
            [2, 2],
            [-5, 0, 7, 10**6],
            [None, None],
        ],
    ),
    "ad": (
        "array<double>",
        pa.list_(pa.float64()),
        [None, [], [0.5], [0.0, -0.0], [_NAN, 1.0, None, _NAN], [-1.5, _INF], [-0.0]],
    ),
    "sa": (
        "array<string>",
        pa.list_(pa.string()),
        [None, [], ["a"], ["b", "a", "b"], [None, ""], ["é", "z", "abc", None], [None]],
    ),
    "aa": (
        "array<array<int>>",
        pa.list_(pa.list_(pa.int32())),
        [None, [], [[1], [2, None]], [[], None], [[None], [1], [], [0, 5]], [[2], [1, 9], [1]]],
    ),
    "r": (
        "struct<x:int,y:string>",
        pa.struct({"x": pa.int32(), "y": pa.string()}),
        [None, *({"x": x, "y": y} for x, y in ((1, "a"), (None, "b"), (2, None), (None, None)))],
    ),
    "ar": (
        "array<struct<x:int,y:string>>",
        pa.list_(pa.struct({"x": pa.int32(), "y": pa.string()})),
        [
            None,
            [],
            [{"x": 2, "y": "b"}, {"x": None, "y": "a"}, {"x": 1, "y": None}],
            [None, {"x": 1, "y": "z"}, {"x": 1, "y": None}, {"x": 1, "y": "a"}],
            [{"x": None, "y": None}],
        ],
    ),
    "mp": (
        "map<string,int>",
        pa.map_(pa.string(), pa.int32()),
        [None, [], [("a", 1)], [("a", None), ("b", 2)], [("", 0), ("abc", 3), ("é", -1)]],
    ),
}

SUFFIXES = ("", "2", "3")


def schema() -> Schema:
    """Every column of the grid with its type."""
    return tuple(
        Column(name + suffix, type_)
        for name, (type_, _, _) in VALUES.items()
        for suffix in SUFFIXES
    )


def table() -> pa.Table:
    """The grid, with the number of the row in `rid`."""
    rows = [(row // SIDE, row % SIDE) for row in range(SIDE * SIDE)]
    columns: dict[str, pa.Array] = {"rid": pa.array(range(len(rows)), pa.int32())}
    for name, (_, arrow, values) in VALUES.items():
        positions = ([a for a, _ in rows], [b for _, b in rows], [a * 5 + b * 3 for a, b in rows])
        for suffix, position in zip(SUFFIXES, positions, strict=True):
            cells = [values[at % len(values)] for at in position]
            columns[name + suffix] = pa.array(cells, arrow)
    return pa.table(columns)
