"""Trigger programs on TPC-H: events a second in batches, one row at a time, and as data grow.

python -m bench.triggers [--scale S] [--views 01,03,…] [--quick]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import everview as ev
from bench.policies import table
from bench.rows import RESULTS, tell
from bench.tables import KEYS, declaration, generated, queries
from bench.triggers_by_hand import BY_HAND

VIEWS = ("01", "03", "05", "06", "10", "12", "14")
TARGET = 150_000
"""Events a second, on one core."""
BATCH = 1_000
_DIMENSIONS = ("region", "nation", "part", "supplier", "partsupp", "customer")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(prog="bench.triggers", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--views", default=",".join(VIEWS))
    parser.add_argument("--singles", type=int, default=20_000)
    parser.add_argument("--quick", action="store_true", help="a small scale, once")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    scale = 0.001 if options.quick else options.scale
    names = [f"q{view}" for view in options.views.split(",")]
    data = read(scale)
    found = [batches(name, data) for name in names]
    tell(options.results / "triggers-batches", found, table(found))
    alone = [singles(name, data, 500 if options.quick else options.singles) for name in BY_HAND]
    tell(options.results / "triggers-rows", alone, table(alone))
    steps = (1, 2) if options.quick else (1, 4, 16)
    grown = [growth(name, data, step / steps[-1]) for name in names for step in steps]
    tell(options.results / "triggers-growth", grown, table(grown))
    return 0


def read(scale: float) -> dict[str, pa.Table]:
    """The eight tables, with plain strings."""
    folder = generated(scale)
    found = {}
    for name in KEYS:
        rows = pq.read_table(folder / f"{name}.parquet")
        plain = [
            pa.field(f.name, pa.string() if pa.types.is_string_view(f.type) else f.type)
            for f in rows.schema
        ]
        found[name] = rows.cast(pa.schema(plain))
    return found


def program(name: str) -> Any:
    """The triggers of one query; all columns are NOT NULL, as TPC-H says."""
    folder = generated(0.001)
    tables = (_declared(each, folder / f"{each}.parquet") for each in KEYS)
    return ev.triggers(f"{'; '.join(tables)}; CREATE VIEW {name} AS {queries()[name]}")


def _declared(name: str, file: Path) -> str:
    """The table in a file as a statement that declares it, with every column NOT NULL."""
    columns, key = declaration(name, file).split("PRIMARY KEY")
    return f"{columns.replace(', ', ' NOT NULL, ')}PRIMARY KEY{key}"


def events(data: dict[str, pa.Table], seed: int = 1) -> list[tuple[str, int, list[Any]]]:
    """Batches of orders and of their lines in random order; then a tenth of them goes again."""
    random = Random(seed)
    orders, lines = (_rows(data[name]) for name in ("orders", "lineitem"))
    random.shuffle(orders)
    place = {row[0]: at for at, row in enumerate(orders)}
    lines.sort(key=lambda row: place[row[0]])
    found = []
    for sign, share in ((1, 1.0), (-1, 0.1)):
        bound = int(len(orders) * share)
        of_lines = [row for row in lines if place[row[0]] < bound]
        for relation, rows in (("orders", orders[:bound]), ("lineitem", of_lines)):
            for start in range(0, len(rows), BATCH):
                found.append((relation, sign, rows[start : start + BATCH]))
    return found


def _rows(rows: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def filled(name: str, data: dict[str, pa.Table]) -> Any:
    """The triggers of a query over the tables that do not change."""
    running = program(name)
    for each in _DIMENSIONS:
        running.insert(each, data[each])
    return running


def batches(name: str, data: dict[str, pa.Table]) -> dict[str, Any]:
    """Events a second in batches of tuples, and of Arrow."""
    stream = events(data)
    arrow = [
        (relation, sign, _arrow(rows, data[relation].schema)) for relation, sign, rows in stream
    ]
    number = sum(len(rows) for _, _, rows in stream)
    row: dict[str, Any] = {"view": name, "events": number}
    for kind, handed in (("tuples", stream), ("Arrow", arrow)):
        running = filled(name, data)
        seconds = _timed(lambda r=running, h=handed: _run(r, h))
        row[f"{kind} a second"] = round(number / seconds)
    row["target"] = TARGET
    return row


def by_order(data: dict[str, pa.Table]) -> list[tuple[str, tuple[Any, ...]]]:
    """Each order, and then its lines."""
    lines: dict[int, list[tuple[str, tuple[Any, ...]]]] = {}
    for row in _rows(data["lineitem"]):
        lines.setdefault(row[0], []).append(("lineitem", row))
    orders = _rows(data["orders"])
    Random(1).shuffle(orders)
    return [each for row in orders for each in (("orders", row), *lines.get(row[0], ()))]


def _arrow(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def _run(running: Any, stream: Sequence[tuple[str, int, Any]]) -> None:
    for relation, sign, rows in stream:
        (running.insert if sign > 0 else running.delete)(relation, rows)


def _timed(run: Callable[[], None]) -> float:
    """Processor time, which other processes do not take part in."""
    began = process_time()
    run()
    return process_time() - began


def singles(name: str, data: dict[str, pa.Table], number: int) -> dict[str, Any]:
    """One row at a time: ours and a program of dicts written by hand, in turn."""
    stream = by_order(data)
    start = Random(2).randrange(max(1, len(stream) - number))
    before, part = stream[:start], stream[start : start + number]
    ours, hand = filled(name, data), BY_HAND[name]()
    for each in _DIMENSIONS:
        for row in _rows(data[each]):
            hand.change(each, row, 1)
    for relation, row in before:
        ours.insert(relation, [row])
        hand.change(relation, row, 1)
    times: dict[str, list[float]] = {"ours": [], "hand": []}

    def by_ours() -> None:
        insert, delete = ours.insert, ours.delete
        for relation, row in part:
            insert(relation, [row])
        for relation, row in reversed(part):
            delete(relation, [row])

    def by_hand() -> None:
        change = hand.change
        for relation, row in part:
            change(relation, row, 1)
        for relation, row in reversed(part):
            change(relation, row, -1)

    for _ in range(5):
        times["ours"].append(_timed(by_ours))
        times["hand"].append(_timed(by_hand))
    assert hand.result() == {row[: hand.keys]: row[hand.shown] for row in ours.result()}, name
    microseconds = {k: min(v) / (2 * len(part)) * 1e6 for k, v in times.items()}
    return {
        "view": name,
        "events": 2 * len(part),
        "microseconds by hand": round(microseconds["hand"], 2),
        "microseconds": round(microseconds["ours"], 2),
        "ratio": round(median(o / h for o, h in zip(*times.values(), strict=True)), 2),
    }


def growth(name: str, data: dict[str, pa.Table], share: float) -> dict[str, Any]:
    """Time per event and state per event over a part of the orders."""
    orders = data["orders"].slice(0, max(1, int(data["orders"].num_rows * share)))
    kept = pa.compute.is_in(data["lineitem"].column("l_orderkey"), orders.column("o_orderkey"))
    part = {**data, "orders": orders, "lineitem": data["lineitem"].filter(kept)}
    stream = [each for each in events(part) if each[1] > 0]
    running = filled(name, part)
    size = _state(running)
    seconds = _timed(lambda: _run(running, stream))
    number = sum(len(rows) for _, _, rows in stream)
    last = stream[-20:]
    back = [(relation, -sign, rows) for relation, sign, rows in last]
    later = _timed(lambda: (_run(running, back), _run(running, last)))
    return {
        "view": name,
        "events": number,
        "microseconds per event": round(seconds / number * 1e6, 2),
        "per event at the end": round(later / sum(2 * len(r) for _, _, r in last) * 1e6, 2),
        "entries per event": round((_state(running) - size) / number, 3),
    }


def _state(running: Any) -> int:
    return sum(len(entries) for entries in json.loads(running.snapshot())["maps"].values())


if __name__ == "__main__":
    sys.exit(main())
