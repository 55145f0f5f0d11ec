"""TPC-H orders and their lines, and random transactions that change lines."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench import tables as every
from bench.tables import DATA, generated

MONEY = "DECIMAL(15,2)"
COLUMNS = {
    "orders": {
        "o_orderkey": "BIGINT",
        "o_custkey": "BIGINT",
        "o_orderstatus": "STRING",
        "o_totalprice": MONEY,
        "o_orderdate": "DATE",
        "o_orderpriority": "STRING",
    },
    "lineitem": {
        "l_orderkey": "BIGINT",
        "l_linenumber": "INT",
        "l_partkey": "BIGINT",
        "l_suppkey": "BIGINT",
        "l_quantity": MONEY,
        "l_extendedprice": MONEY,
        "l_discount": MONEY,
        "l_tax": MONEY,
        "l_returnflag": "STRING",
        "l_linestatus": "STRING",
        "l_shipdate": "DATE",
        "l_shipmode": "STRING",
    },
}
KEYS = {name: every.KEYS[name] for name in COLUMNS}
MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")


def tables(scale: float, folder: Path = DATA) -> dict[str, pa.Table]:
    """Both tables at a scale; what was generated once is kept."""
    kept = generated(scale, folder, COLUMNS)
    return {name: read(kept / f"{name}.parquet", list(COLUMNS[name])) for name in COLUMNS}


def read(path: Path, columns: list[str]) -> pa.Table:
    """Some columns of a generated table."""
    rows = pq.read_table(path, columns=columns).select(columns)
    plain = [
        pa.field(f.name, pa.string() if pa.types.is_string_view(f.type) else f.type)
        for f in rows.schema
    ]
    return rows.cast(pa.schema(plain))


@dataclass(frozen=True)
class Change:
    """Lines that go and lines that come; an updated line does both."""

    deleted: pa.Table
    inserted: pa.Table


class Trade:
    """Random transactions over the lines there are, each line touched at most once."""

    def __init__(self, lines: pa.Table, seed: int, most: int = 200_000) -> None:
        self._lines = lines
        self._chance = Random(seed)
        self._untouched = self._chance.sample(range(lines.num_rows), min(lines.num_rows, most))
        self._new = 0
        self._kinds = 0

    def change(self, rows: int) -> Change:
        """A change of so many rows: inserts, deletes and updates in turn."""
        gone: list[dict[str, Any]] = []
        come: list[dict[str, Any]] = []
        picked = pa.array([self._untouched.pop() for _ in range(rows)], pa.int64())
        for line in self._lines.take(picked).to_pylist():
            kind, self._kinds = self._kinds % 3, self._kinds + 1
            if kind == 0:
                come.append(self._inserted(line))
            else:
                gone.append(line)
            if kind == 2:
                come.append(self._updated(line))
        schema = self._lines.schema
        return Change(pa.Table.from_pylist(gone, schema), pa.Table.from_pylist(come, schema))

    def _inserted(self, line: dict[str, Any]) -> dict[str, Any]:
        """A new line of the same order, with a number that no line has."""
        self._new += 1
        return self._updated(line) | {"l_linenumber": 1000 + self._new}

    def _updated(self, line: dict[str, Any]) -> dict[str, Any]:
        """The same line with another quantity, discount and way of shipping."""
        quantity = Decimal(self._chance.randint(1, 50))
        each = (line["l_extendedprice"] / line["l_quantity"]).quantize(Decimal("0.01"))
        shipped = date(1992, 1, 1) + timedelta(days=self._chance.randrange(2500))
        return line | {
            "l_quantity": quantity.quantize(Decimal("0.01")),
            "l_extendedprice": each * quantity,
            "l_discount": Decimal(self._chance.randint(0, 10)) / 100,
            "l_shipdate": shipped,
            "l_shipmode": self._chance.choice(MODES),
        }
