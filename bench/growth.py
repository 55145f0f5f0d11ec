"""The same change over growing data: what one view of each operator class costs.

python -m bench.growth [--engine duckdb|spark] [--base S] [--factors 1,2,4,8,16] [--quick]
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pyarrow as pa

import everview as ev
from bench.rows import RESULTS, tell
from bench.tpch import COLUMNS, DATA, KEYS, Change, Trade, tables
from everview.database.database import Database

LIMIT = 2.0
"""How many times as long a change of recent keys may take where the data is 16 times as large."""
LIMITED = ("filter", "join", "group", "distinct", "semi join", "anti join")
CLASSES = {
    "no view": "",
    "filter": "SELECT l_orderkey, l_linenumber, l_extendedprice FROM lineitem "
    "WHERE l_quantity > 25",
    "join": "SELECT o_orderkey, o_custkey, l_linenumber, l_extendedprice "
    "FROM orders JOIN lineitem ON o_orderkey = l_orderkey",
    "group": "SELECT l_orderkey, SUM(l_extendedprice) AS price, COUNT(*) AS n "
    "FROM lineitem GROUP BY l_orderkey",
    "distinct": "SELECT DISTINCT l_orderkey, l_shipmode FROM lineitem",
    "min/max": "SELECT l_orderkey, MIN(l_shipdate) AS first, MAX(l_extendedprice) AS most "
    "FROM lineitem GROUP BY l_orderkey",
    "window": "SELECT l_orderkey, l_linenumber, ROW_NUMBER() OVER (PARTITION BY l_orderkey "
    "ORDER BY l_shipdate, l_linenumber) AS place FROM lineitem",
    "semi join": "SELECT o_orderkey, o_totalprice FROM orders WHERE EXISTS "
    "(SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_quantity > 45)",
    "anti join": "SELECT o_orderkey, o_totalprice FROM orders WHERE NOT EXISTS "
    "(SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_quantity > 45)",
    "outer join": "SELECT o_orderkey, o_totalprice, l_linenumber, l_quantity FROM orders "
    "LEFT JOIN lineitem ON o_orderkey = l_orderkey AND l_quantity > 45",
    "top-k": "SELECT l_orderkey, l_linenumber, l_extendedprice FROM lineitem "
    "ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber LIMIT 100",
}


@dataclass(frozen=True)
class Cell:
    """One class of view over data of one size: the median transaction."""

    engine: str
    view: str
    keys: str
    factor: int
    ms: float
    best_ms: float
    rows_fetched: int | None
    """None where Spark read them, and so did not count."""

    @property
    def row(self) -> dict[str, Any]:
        """As it is written to the results."""
        found = asdict(self)
        return {"engine": found.pop("engine"), "class": found.pop("view"), **found}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; 1 when a view differs from its query."""
    options = _options(arguments)
    different: list[str] = []
    with TemporaryDirectory(prefix="everview-growth-") as scratch, ExitStack() as stack:
        opened = opening(options.engine, Path(scratch), stack)
        cells = list(_measured(options, Path(scratch), opened, different))
    tell(
        options.results / f"growth-{options.engine}",
        (cell.row for cell in cells),
        markdown(cells, options),
    )
    for each in different:
        print(f"{each}: the view differs from its query", file=sys.stderr)
    return 1 if different else 0


KINDS = ("recent", "random")
Opened = Callable[[Path], Database]


def opening(engine: str, scratch: Path, stack: ExitStack) -> Opened:
    """How stores are opened; on Spark, all in one session that stays until the end."""
    if engine == "duckdb":
        return lambda folder: ev.open(str(folder), engine="duckdb")
    keeper: Any = stack.enter_context(ev.open(str(scratch / "keeper")))
    session = keeper.engine.session
    return lambda folder: ev.open(str(folder), spark=session)


def _measured(
    options: argparse.Namespace, scratch: Path, opened: Opened, different: list[str]
) -> Iterator[Cell]:
    """Every class at every size, each in a store of its own with the same files."""
    lines: dict[int, pa.Table] = {}
    for factor in options.factors:
        rows = tables(options.base * factor, options.data)
        with opened(scratch / f"loaded-{factor}") as db:
            _load(db, rows)
        lines[factor] = rows["lineitem"]
        print(f"{factor}× loaded", file=sys.stderr)
    for view in options.classes:
        stores = {factor: scratch / f"store-{factor}" for factor in lines}
        for factor, store in stores.items():
            shutil.copytree(scratch / f"loaded-{factor}", store, copy_function=os.link)
        with ExitStack() as stack:
            dbs = {factor: stack.enter_context(opened(store)) for factor, store in stores.items()}
            for cell in _transactions(dbs, view, lines, options):
                told = f"{cell.ms:.1f} ms, rows fetched: {_told(cell.rows_fetched)}"
                print(f"{cell.factor}× {view}, {cell.keys} keys: {told}", file=sys.stderr)
                yield cell
            for factor, db in dbs.items() if CLASSES[view] else ():
                if not db.audit("kept").ok:
                    different.append(f"{view}, {factor}×")
        for store in stores.values():
            shutil.rmtree(store)


def _load(db: Database, rows: dict[str, pa.Table]) -> None:
    for name, columns in COLUMNS.items():
        listed = ", ".join(f"{column} {type_}" for column, type_ in columns.items())
        db.sql(f"CREATE TABLE {name} ({listed}, PRIMARY KEY ({', '.join(KEYS[name])}))")
        db.insert(name, rows[name])


def _transactions(
    dbs: dict[int, Database], view: str, lines: dict[int, pa.Table], options: argparse.Namespace
) -> Iterator[Cell]:
    """Changes of recent keys, then of random ones, over one view; the sizes take turns."""
    for db in dbs.values() if CLASSES[view] else ():
        db.sql(f"CREATE MATERIALIZED VIEW kept AS {CLASSES[view]}")
    trades = {factor: _trades(lines[factor], options) for factor in dbs}
    for keys in KINDS:
        taken: dict[int, list[float]] = {factor: [] for factor in dbs}
        fetched: dict[int, list[int | None]] = {factor: [] for factor in dbs}
        for _ in range(options.warm_up + options.transactions):
            for factor, db in dbs.items():
                if taken[factor] and taken[factor][-1] > options.patience:
                    continue
                change = trades[factor][keys].change(options.rows)
                gc.collect()
                began = perf_counter()
                epoch = _apply(db, change)
                taken[factor].append(perf_counter() - began)
                fetched[factor].append(_fetched(db, epoch))
        for factor, every in taken.items():
            measured = every[options.warm_up :] or every[-1:]
            times = _ms(median(measured)), _ms(min(measured))
            rows = _middle(fetched[factor][-len(measured) :])
            yield Cell(options.engine, view, keys, factor, *times, rows)


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 2)


def _trades(lines: pa.Table, options: argparse.Namespace) -> dict[str, Trade]:
    """Trade in the newest orders, and in all that are older; as many recent lines at each size."""
    recent = 2 * options.rows * (options.warm_up + options.transactions)
    split = lines.num_rows - recent
    return {
        KINDS[0]: Trade(lines.slice(split), options.seed),
        KINDS[1]: Trade(lines.slice(0, split), options.seed),
    }


def _apply(db: Database, change: Change) -> int:
    tx = db.transaction()
    tx.delete("lineitem", change.deleted)
    tx.insert("lineitem", change.inserted)
    return tx.commit()


def _fetched(db: Database, epoch: int) -> int | None:
    """How many stored rows a transaction read, if that is known of each of its fetches."""
    note: Any = db.store.read(epoch).note
    return None if set(note["ways"]) - set(note["fetched"]) else sum(note["fetched"].values())


def _middle(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return int(median(known)) if len(known) == len(counts) else None


def _told(count: int | None) -> str:
    return "not counted" if count is None else f"{count:,}"


def markdown(cells: Sequence[Cell], options: argparse.Namespace) -> str:
    """A line a class and kind of keys; the slope is the last time over the first."""
    factors = options.factors
    lines = [
        f"One transaction of {options.rows:,} changed lines in milliseconds, engine "
        f"{options.engine}, median of {options.transactions}; 1× is TPC-H scale {options.base:g}.",
        "",
        "| class | keys | " + " | ".join(f"{f}×" for f in factors) + " | slope | rows fetched |",
        "|---|---" + "|---:" * (len(factors) + 2) + "|",
    ]
    kinds = dict.fromkeys((cell.view, cell.keys) for cell in cells)
    for view, keys in sorted(kinds, key=lambda kind: kind[1], reverse=True):
        found = [c for c in cells if (c.view, c.keys) == (view, keys)]
        times = " | ".join(f"{cell.ms:.0f}" for cell in found)
        slope = found[-1].ms / found[0].ms
        over = " (!)" if keys == "recent" and view in LIMITED and slope > LIMIT else ""
        rows = f"{_told(found[0].rows_fetched)} to {_told(found[-1].rows_fetched)}"
        lines.append(f"| {view} | {keys} | {times} | {slope:.2f}{over} | {rows} |")
    return "\n".join(lines)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.growth", description=__doc__)
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--base", type=float, default=0.0625, help="the TPC-H scale of 1×")
    parser.add_argument("--factors", type=_numbers, default=(1, 2, 4, 8, 16))
    parser.add_argument("--rows", type=int, default=1000, help="changed lines a transaction")
    parser.add_argument("--transactions", type=int, default=5, help="how many are measured")
    parser.add_argument(
        "--patience", type=float, default=20, help="seconds after which one transaction is enough"
    )
    parser.add_argument("--classes", type=_classes, default=tuple(CLASSES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, default=DATA, help="where tables are kept")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where figures go")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works")
    options = parser.parse_args(arguments)
    options.warm_up = 2
    if options.quick:
        options.base, options.factors, options.rows = 0.01, (1, 2), 100
        options.warm_up, options.transactions = 1, 2
    return options


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(","))


def _classes(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    for each in chosen:
        if each not in CLASSES:
            raise argparse.ArgumentTypeError(f"{each} is none of {', '.join(CLASSES)}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
