"""Pathway: three tables, one connector that feeds the lines, three subscriptions.

python -m bench.peers.pathway FOLDER
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from queue import Queue
from typing import Any

import pathway as pw
import pyarrow.parquet as pq

from bench.peers.protocol import GROUPS, Batch, Task, marks


class Line(pw.Schema):
    """A line."""

    l_orderkey: int = pw.column_definition(primary_key=True)
    l_linenumber: int = pw.column_definition(primary_key=True)
    l_quantity: int
    l_extendedprice: int
    l_discount: int
    l_returnflag: str
    l_linestatus: str
    l_shipdate: int


class Feed(pw.io.python.ConnectorSubject):
    """Sends one list of changes after the other, each as one commit."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: Queue[list[tuple[int, dict[str, Any]]] | None] = Queue()

    def run(self) -> None:
        """Until there is nothing more to send."""
        while (changes := self.waiting.get()) is not None:
            for weight, line in changes:
                if weight > 0:
                    self.next(**line)
                else:
                    self.delete(**line)
            self.commit()


class Kept:
    """The rows of a view, and the batches that it is through with."""

    def __init__(self, name: str, table: Any) -> None:
        self._name, self.rows = name, dict[Any, tuple[Any, ...]]()
        self._groups: set[tuple[Any, ...]] = set()
        self._through = threading.Condition()
        pw.io.subscribe(table, on_change=self._changed, on_time_end=self._ended)
        self._fresh: list[tuple[Any, ...]] = []

    def wait(self, number: int) -> None:
        """Until a batch is through."""
        with self._through:
            self._through.wait_for(lambda: marks(number)[self._name] in self._groups)

    def _changed(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        values = tuple(row.values())
        group = values[: GROUPS[self._name]]
        if is_addition:
            self.rows[group] = values
            self._fresh.append(group)
        elif self.rows.get(group) == values:
            del self.rows[group]

    def _ended(self, time: int) -> None:
        with self._through:
            self._groups.update(self._fresh)
            self._fresh.clear()
            self._through.notify_all()


def main(folder: str) -> None:
    """Build the three views, run them in a thread of their own, and feed them."""
    task = Task(Path(folder))
    feed = Feed()
    kept = {name: Kept(name, table) for name, table in _views(task, feed).items()}

    def give(changes: list[tuple[int, dict[str, Any]]], number: int) -> None:
        feed.waiting.put(changes)
        for each in kept.values():
            each.wait(number)

    def load() -> None:
        quiet = pw.MonitoringLevel.NONE
        threading.Thread(target=lambda: pw.run(monitoring_level=quiet), daemon=True).start()
        give([(1, line) for line in pq.read_table(task.table("lineitem")).to_pylist()], 0)

    def prepare(batch: Batch) -> tuple[list[tuple[int, dict[str, Any]]], int]:
        lines = pq.read_table(batch.file).to_pylist()
        return [(line.pop("w"), line) for line in lines], batch.number

    def answers() -> dict[str, Any]:
        return {name: list(view.rows.values()) for name, view in kept.items()}

    task.run("pathway", load, prepare, lambda prepared: give(*prepared), answers)
    feed.waiting.put(None)


def _views(task: Task, feed: Feed) -> dict[str, Any]:
    lines = pw.io.python.read(feed, schema=Line, autocommit_duration_ms=None)
    orders, customer = (
        pw.debug.table_from_pandas(pq.read_table(task.table(name)).to_pandas(), id_from=[key])
        for name, key in (("orders", "o_orderkey"), ("customer", "c_custkey"))
    )
    revenue = pw.this.l_extendedprice * (100 - pw.this.l_discount)
    lines = lines.with_columns(revenue=revenue)
    sums = {"revenue": pw.reducers.sum(pw.this.revenue), "n": pw.reducers.count()}
    totals = (
        lines.filter(pw.this.l_shipdate <= 19980902)
        .groupby(pw.this.l_returnflag, pw.this.l_linestatus)
        .reduce(
            pw.this.l_returnflag,
            pw.this.l_linestatus,
            quantity=pw.reducers.sum(pw.this.l_quantity),
            price=pw.reducers.sum(pw.this.l_extendedprice),
            **sums,
        )
    )
    joined = orders.join(lines, orders.o_orderkey == lines.l_orderkey).select(
        orders.o_custkey, lines.revenue
    )
    by_customer = joined.groupby(pw.this.o_custkey).reduce(pw.this.o_custkey, **sums)
    chosen = customer.filter(pw.this.c_mktsegment == "BUILDING")
    early = orders.filter(pw.this.o_orderdate < 19950315)
    late = lines.filter(pw.this.l_shipdate > 19950315)
    building = early.join(chosen, early.o_custkey == chosen.c_custkey).select(
        early.o_orderkey, early.o_orderdate, early.o_shippriority
    )
    shipped = building.join(late, building.o_orderkey == late.l_orderkey).select(
        late.l_orderkey, building.o_orderdate, building.o_shippriority, late.revenue
    )
    group = (pw.this.l_orderkey, pw.this.o_orderdate, pw.this.o_shippriority)
    priority = shipped.groupby(*group).reduce(*group, **sums)
    return {"line_totals": totals, "by_customer": by_customer, "shipping_priority": priority}


if __name__ == "__main__":
    main(*sys.argv[1:])
