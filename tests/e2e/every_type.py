"""One column of every type, and a row with an awkward value in each."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

TYPES = {
    "b": "boolean",
    "t": "tinyint",
    "s": "smallint",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "m": "decimal(5,2)",
    "x": "string",
    "y": "binary",
    "dt": "date",
    "ts": "timestamp",
    "tn": "timestamp_ntz",
}
COLUMNS = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
NAMES = ", ".join(TYPES)
ROW = (
    True,
    -128,
    32767,
    2**31 - 1,
    -(2**63),
    1.5,
    -2.25,
    Decimal("123.45"),
    "ünï",
    b"\x00\xff",
    date(2024, 2, 29),
    datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    datetime(1999, 12, 31, 23, 59),
)
NULLS = (None,) * len(ROW)
