"""TPC-H: its tables at a scale, and its refresh functions as random transactions."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from bench.tables import KEYS, generate

from tpc.sides import Change, Plain

CENT = Decimal("0.01")


def tables(scale: float, folder: Path) -> dict[str, pa.Table]:
    """All tables, generated into a folder."""
    generate(scale, folder)
    read = {name: _plain(pq.read_table(folder / f"{name}.parquet")) for name in KEYS}
    return {name: _first_of_each(rows, KEYS[name]) for name, rows in read.items()}


def _plain(rows: pa.Table) -> pa.Table:
    views = {f.name for f in rows.schema if pa.types.is_string_view(f.type)}
    types = ((f.name, pa.string() if f.name in views else f.type) for f in rows.schema)
    return rows.cast(pa.schema(types))


def _first_of_each(rows: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """At the smallest scales the generator makes some keys twice."""
    numbered = rows.append_column("n", pa.array(range(rows.num_rows)))
    first = numbered.group_by(list(key)).aggregate([("n", "min")]).column("n_min")
    return rows.take(first.sort())


class Refreshes:
    """Orders come and go with their lines; prices and customers change."""

    def __init__(self, plain: Plain, seed: int, orders: int) -> None:
        self._plain = plain
        self._chance = Random(seed)
        self._orders = orders
        self._next = 10**9

    def change(self) -> Change:
        """The next transaction, a random one over what there is now."""
        change = Change()
        old, lines = self._some_orders()
        change.gone |= {"orders": old, "lineitem": lines}
        new, more = self._some_orders()
        change.come |= self._as_new(new, more)
        for table, update in (
            ("part", self._price("p_retailprice")),
            ("partsupp", self._price("ps_supplycost")),
            ("customer", self._moved),
            ("supplier", self._price("s_acctbal")),
        ):
            rows = self._some(table, max(1, self._orders // 5))
            change.gone[table] = rows
            change.come[table] = pa.Table.from_pylist(
                [update(row) for row in rows.to_pylist()], rows.schema
            )
        return change

    def _some(self, table: str, count: int) -> pa.Table:
        """Random rows of a table, the same for the same seed."""
        rows = self._plain.arrow(f"FROM {table} ORDER BY {', '.join(KEYS[table])}")
        return rows.take(self._chance.sample(range(rows.num_rows), min(count, rows.num_rows)))

    def _some_orders(self) -> tuple[pa.Table, pa.Table]:
        orders = self._some("orders", self._orders)
        keys = ", ".join(map(str, orders.column("o_orderkey").to_pylist()))
        lines = f"FROM lineitem WHERE l_orderkey IN ({keys}) ORDER BY l_orderkey, l_linenumber"
        return orders, self._plain.arrow(lines)

    def _as_new(self, orders: pa.Table, lines: pa.Table) -> dict[str, pa.Table]:
        """Orders like these, with keys of their own, other customers, dates and quantities."""
        keys: dict[int, int] = {}
        shift = timedelta(days=self._chance.randint(-400, 400))
        customers = self._some("customer", 10).column("c_custkey").to_pylist()
        made = []
        for order in orders.to_pylist():
            keys[order["o_orderkey"]] = self._next
            order |= {"o_orderkey": self._next, "o_custkey": self._chance.choice(customers)}
            made.append(order | {"o_orderdate": order["o_orderdate"] + shift})
            self._next += 1
        there = [self._line(line, keys[line["l_orderkey"]], shift) for line in lines.to_pylist()]
        return {
            "orders": pa.Table.from_pylist(made, orders.schema),
            "lineitem": pa.Table.from_pylist(there, lines.schema),
        }

    def _line(self, line: dict[str, Any], order: int, shift: timedelta) -> dict[str, Any]:
        quantity = Decimal(self._chance.randint(1, 50)).quantize(CENT)
        each = (line["l_extendedprice"] / line["l_quantity"]).quantize(CENT)
        dates = ("l_shipdate", "l_commitdate", "l_receiptdate")
        moved = {name: line[name] + shift for name in dates}
        changed = {"l_orderkey": order, "l_quantity": quantity, "l_extendedprice": each * quantity}
        return line | moved | changed | {"l_discount": Decimal(self._chance.randint(0, 10)) / 100}

    def _price(self, column: str) -> Any:
        def update(row: dict[str, Any]) -> dict[str, Any]:
            factor = Decimal(self._chance.randint(80, 120)) / 100
            return row | {column: (row[column] * factor).quantize(CENT)}

        return update

    def _moved(self, row: dict[str, Any]) -> dict[str, Any]:
        """A customer in another country, with another telephone, balance and trade."""
        nation = self._chance.randrange(25)
        trades = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
        return row | {
            "c_nationkey": nation,
            "c_phone": f"{10 + nation}{row['c_phone'][2:]}",
            "c_acctbal": row["c_acctbal"] + self._chance.randint(-500, 500),
            "c_mktsegment": self._chance.choice(trades),
        }
