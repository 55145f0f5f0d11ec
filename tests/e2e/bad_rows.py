"""Bad rows: values that no column of a type can hold, and tables that are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

TYPES = {
    "boolean": True,
    "tinyint": 1,
    "smallint": 1,
    "int": 1,
    "bigint": 1,
    "float": 1.5,
    "double": 1.5,
    "decimal(5,2)": Decimal("1.25"),
    "string": "a",
    "binary": b"a",
    "date": date(2024, 1, 1),
    "timestamp": datetime(2024, 1, 1),
    "timestamp_ntz": datetime(2024, 1, 1),
    "array<int>": [1],
    "map<string,int>": {"a": 1},
    "struct<a:int,b:string>": {"a": 1, "b": "x"},
}
"""The types of columns, each with a good value."""

SETUP = ";".join(f"CREATE TABLE r{at} (c {type_})" for at, type_ in enumerate(TYPES))


class Odd:
    """A value of no type that is known."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


_SELF: list[Any] = []
_SELF.append(_SELF)

EVERYWHERE: tuple[Any, ...] = (
    *(object(), Odd(), int, len, Ellipsis, 1j, {1, 2}, frozenset([1]), range(3), NotImplemented),
    *(time(1, 2), timedelta(days=1), [[1]], [None, "x", 1], _SELF, {"a": {"a": 1}}, [("a",)]),
    *("\ud800", "x\udfff", bytearray(b"\xff"), memoryview(b"a"), Decimal("1E+5000")),
    *(Decimal("-1E+999999"), Decimal("1E-5000"), Decimal("sNaN"), Decimal("NaN"), 10**5000),
    *(
        -(10**40),
        2**64,
        "",
        "abc",
        "1e5000",
        "9" * 5000,
        float("nan"),
        float("inf"),
        -1e308,
        1e-320,
    ),
    *(b"", b"\xff\xfe", "2024-13-01", "0000-00-00", "24:61", date.max, datetime.max, datetime.min),
    *(
        pa.scalar(1),
        pa.array([1]),
        pa.chunked_array([[1], [2]]),
        np.array([1]),
        np.datetime64("NaT"),
    ),
    *(np.float32("nan"), np.int64(2**62), pd.NaT, pd.NA, pd.Timestamp.max, {"a": 1, "A": 2}),
    *(
        {"a": 1, "zz": 2},
        {None: 1},
        [("a", 1), ("a", 2)],
        [(None, 1)],
        {"": 1},
        (1, 2, 3),
        [1, [2]],
    ),
)
"""Tried in a column of every type; some of it is right in some."""


def values() -> Iterator[tuple[str, str, Any]]:
    """A label, a table and a row of one value."""
    for at, type_ in enumerate(TYPES):
        for number, value in enumerate(EVERYWHERE):
            yield f"{type_} #{number}", f"r{at}", [(value,)]


def _unsound() -> pa.Table:
    """A column of text that is no UTF-8."""
    offsets, data = pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe")
    return pa.table({"s": pa.StringArray.from_buffers(1, offsets, data)})


def _twice(name: str, other: str) -> pa.Table:
    return pa.Table.from_arrays([pa.array([1]), pa.array([2])], [name, other])


def _frame(columns: list[Any], values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame([values], columns=columns)


_NESTED = pa.array([{"k": 1}])

STRUCTURES: dict[str, Callable[[], Any]] = {
    "a column twice": lambda: _twice("k", "k"),
    "a column twice but for case": lambda: _twice("k", "K"),
    "a column twice in a batch": lambda: pa.RecordBatch.from_arrays(
        [pa.array([1])] * 2, ["k", "k"]
    ),
    "an unknown column twice": lambda: _twice("z", "z"),
    "an unknown column": lambda: pa.table({"vv": [1]}),
    "a column without a name": lambda: pa.table({"": [1]}),
    "the weight": lambda: pa.table({"k": [1], "_w": [5]}),
    "no UTF-8": _unsound,
    "a chunked array": lambda: pa.chunked_array([[1], [2]]),
    "an array": lambda: pa.array([1, 2]),
    "a scalar": lambda: pa.scalar(1),
    "a schema": lambda: pa.schema([("k", pa.int32())]),
    "a struct in a number": lambda: pa.table({"k": _NESTED}),
    "a list in a number": lambda: pa.table({"k": [[1]]}),
    "text in a number": lambda: pa.table({"k": ["x"]}),
    "a fraction in a number": lambda: pa.table({"k": [1.5]}),
    "too large a number": lambda: pa.table({"k": [2**40]}),
    "a dictionary of text in a number": lambda: pa.table(
        {"k": pa.array(["x"]).dictionary_encode()}
    ),
    "a duration": lambda: pa.table({"k": pa.array([timedelta(1)])}),
    "a month interval": lambda: pa.table(
        {"k": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}
    ),
    "a union": lambda: pa.table(
        {"k": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array(["x"])])}
    ),
    "an opaque binary": lambda: pa.table({"k": [b"\xff"]}),
    "a pandas column twice": lambda: _frame(["k", "k"], [1, 2]),
    "a pandas column twice but for case": lambda: _frame(["k", "K"], [1, 2]),
    "a pandas column that is a number": lambda: _frame([1], [1]),
    "a pandas column of levels": lambda: pd.DataFrame(
        [[1]], columns=pd.MultiIndex.from_tuples([("k", "x")])
    ),
    "a pandas column of all kinds": lambda: pd.DataFrame({"k": [1, "x", None, b"y"]}),
    "a pandas column of objects": lambda: pd.DataFrame({"k": [object()]}),
    "a pandas column of complex numbers": lambda: pd.DataFrame({"k": [1j]}),
    "a pandas column of periods": lambda: pd.DataFrame({"k": pd.period_range("2024", periods=1)}),
    "a pandas series": lambda: pd.Series([1, 2], name="k"),
    "a pandas index": lambda: pd.Index([1, 2]),
    "a pandas type": lambda: pd.DataFrame,
    "a numpy array of one dimension": lambda: np.array([1, 2]),
    "a numpy array of no dimension": lambda: np.array(1),
    "a numpy record": lambda: np.array([(1, 2)], dtype=[("k", "i4"), ("z", "i4")]),
    "an iterator of numbers": lambda: iter([1, 2]),
    "rows of unlike lengths": lambda: [(1, 2, "a"), (1,)],
    "rows of unlike kinds": lambda: [(1, 2, "a"), {"k": 1}, "abc"],
    "a row that names a column twice": lambda: [{"k": 1, "K": 2}],
    "a row that names an unknown column": lambda: [{"kk": 1}],
    "a row that names no text": lambda: [{1: 1}],
    "a set of rows": lambda: {(1, 2, "a")},
    "a dict of columns": lambda: {"k": [1], "v": [2]},
    "the rows of no table": lambda: [[]],
    "a class": lambda: list,
    "a module": lambda: np,
}
"""What is handed over as rows of t (k INT, v INT, s STRING) and holds none."""
