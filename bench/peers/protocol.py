"""What every peer is given and what it hands back: files in one folder.

Every environment imports this, so it needs nothing but pyarrow. All numbers are integers, as not
every peer has decimals: money in cents, discounts in percent, dates as 19950315. The last line of
the load and of each batch is a marker: an order of its own, alone in its group of every view, so
that a peer that handles lines in turn has finished when its marker is in the answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

T = TypeVar("T")
COLUMNS = {
    "customer": {"c_custkey": "BIGINT", "c_mktsegment": "STRING"},
    "orders": {
        "o_orderkey": "BIGINT",
        "o_custkey": "BIGINT",
        "o_orderdate": "INT",
        "o_shippriority": "INT",
    },
    "lineitem": {
        "l_orderkey": "BIGINT",
        "l_linenumber": "INT",
        "l_quantity": "BIGINT",
        "l_extendedprice": "BIGINT",
        "l_discount": "BIGINT",
        "l_returnflag": "STRING",
        "l_linestatus": "STRING",
        "l_shipdate": "INT",
    },
}
KEYS = {
    "customer": ("c_custkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
_REVENUE = "SUM(l_extendedprice * (100 - l_discount)) AS revenue, COUNT(*) AS n"
QUERIES = {
    "line_totals": f"""
        SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS quantity,
            SUM(l_extendedprice) AS price, {_REVENUE}
        FROM lineitem WHERE l_shipdate <= 19980902 GROUP BY l_returnflag, l_linestatus""",
    "by_customer": f"""
        SELECT o_custkey, {_REVENUE}
        FROM orders JOIN lineitem ON o_orderkey = l_orderkey GROUP BY o_custkey""",
    "shipping_priority": f"""
        SELECT l_orderkey, o_orderdate, o_shippriority, {_REVENUE}
        FROM customer JOIN orders ON c_custkey = o_custkey
            JOIN lineitem ON l_orderkey = o_orderkey
        WHERE c_mktsegment = 'BUILDING' AND o_orderdate < 19950315 AND l_shipdate > 19950315
        GROUP BY l_orderkey, o_orderdate, o_shippriority""",
}
GROUPS = {"line_totals": 2, "by_customer": 1, "shipping_priority": 3}
"""How many of a view's columns, the first ones, are its group."""


def marker(number: int) -> dict[str, tuple[Any, ...]]:
    """The rows by which a batch is known; the load is number 0."""
    key = -1 - number
    return {
        "customer": (key, "BUILDING"),
        "orders": (key, key, 19950101, 0),
        "lineitem": (key, 1, 100, 100, 0, f"#{number}", "#", 19960101),
    }


def marks(number: int) -> dict[str, tuple[Any, ...]]:
    """The group that is new in each view when a batch is through."""
    key = -1 - number
    return {
        "line_totals": (f"#{number}", "#"),
        "by_customer": (key,),
        "shipping_priority": (key, 19950101, 0),
    }


@dataclass(frozen=True)
class Batch:
    """Some changed lines, in the order in which they are to be applied."""

    number: int
    rows: int
    file: Path

    def lines(self, weight: int) -> pa.Table:
        """The lines that come, of weight 1, or go, of weight −1."""
        lines = pq.read_table(self.file)
        return lines.filter(pa.compute.equal(lines["w"], weight)).drop_columns(["w"])


@dataclass(frozen=True)
class Task:
    """The folder with tables and batches."""

    folder: Path

    def table(self, name: str) -> Path:
        """The file of a table, as it is loaded."""
        return self.folder / f"{name}.parquet"

    @property
    def batches(self) -> list[Batch]:
        """What is applied after the load."""
        found = json.loads((self.folder / "batches.json").read_text(encoding="utf-8"))
        return [
            Batch(number, rows, self.folder / f"batch-{number}.parquet")
            for number, rows in enumerate(found, 1)
        ]

    def answer(self, peer: str) -> Path:
        """Where a peer leaves what it measured and answered."""
        return self.folder / f"answer-{peer}.json"

    def run(
        self,
        peer: str,
        load: Callable[[], None],
        prepare: Callable[[Batch], T],
        apply: Callable[[T], None],
        answers: Callable[[], dict[str, Iterable[Sequence[Any]]]],
    ) -> None:
        """Load, apply every batch once it is in memory, and write times and answers."""
        began = perf_counter()
        load()
        loaded = perf_counter() - began
        times = []
        for batch in self.batches:
            prepared = prepare(batch)
            began = perf_counter()
            apply(prepared)
            times.append(1000 * (perf_counter() - began))
        rows = {name: [list(row) for row in found] for name, found in answers().items()}
        made = {"load_ms": 1000 * loaded, "ms": times, "answers": rows}
        self.answer(peer).write_text(json.dumps(made), encoding="utf-8")
