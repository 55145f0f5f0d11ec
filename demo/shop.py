"""The demo: a shop with a million order lines, its views, and transactions that keep them fresh.

python -m demo.shop [--lines N] [--transactions N] [--seed N] [--store DIR]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.live import Live

import everview as ev
from demo.catalog import TABLES, VIEWS
from demo.recompute import recomputation
from demo.screen import WIDTH, Report, Step, relations_table, show_report, steps_table
from demo.trade import Changes, Shop
from everview.database.database import Database

CHANGED_ROWS = 1_000
"""What one transaction changes, about."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 1 when a view is not equal to its query."""
    options = _options(arguments)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=WIDTH, highlight=False)
    with TemporaryDirectory(prefix="everview-shop-") as temporary:
        store = options.store or str(Path(temporary) / "store")
        with console.status("Starting Spark"):
            db = ev.open(store)
        with db:
            report = run(console, db, options, Path(temporary))
        show_report(console, report)
    return 0 if report.audit.ok else 1


def run(console: Console, db: Database, options: argparse.Namespace, scratch: Path) -> Report:
    """Load, declare, trade, audit."""
    began = perf_counter()
    with _progress(console, f"Making {options.lines:,} order lines"):
        shop = Shop(options.lines, options.seed)
    load(console, db, shop)
    declare(console, db)
    console.print(relations_table(db.status()))
    first = _recompute(console, db, scratch)
    steps = trade(console, db, shop, options.transactions, first)
    last = _recompute(console, db, scratch)
    with _progress(console, f"Auditing {len(VIEWS)} views"):
        audit = db.audit()
    console.print(f"All of this took {perf_counter() - began:.0f} s.")
    lines = len(shop.rows["lines"]["order_id"])
    return Report(steps, (first, last), audit, lines, options.store)


def load(console: Console, db: Database, shop: Shop) -> None:
    """Create the tables and insert the rows the shop starts with."""
    for name, rows in shop.tables().items():
        with _progress(console, f"Loading {rows.num_rows:,} {name}"):
            db.sql(f"CREATE TABLE {name} ({TABLES[name]})")
            db.insert(name, rows)


def declare(console: Console, db: Database) -> None:
    """Create the views over the tables as they are."""
    for name, query in VIEWS.items():
        with _progress(console, f"Creating view {name}"):
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")


def trade(
    console: Console, db: Database, shop: Shop, transactions: int, recomputed: float
) -> list[Step]:
    """Apply transactions one after another, and show each as it is done."""
    steps: list[Step] = []
    with Live(console=console, vertical_overflow="visible", auto_refresh=False) as live:
        for number in range(1, transactions + 1):
            steps.append(apply(db, shop.trade(CHANGED_ROWS), number))
            live.update(steps_table(console, tuple(VIEWS), steps, recomputed), refresh=True)
    if not console.is_terminal:
        console.line()
    return steps


def apply(db: Database, changes: Changes, number: int) -> Step:
    """One transaction, measured from its beginning to its commit."""
    began = perf_counter()
    tx = db.transaction()
    for table, rows in changes.deleted.items():
        tx.delete(table, rows)
    for table, rows in changes.updated.items():
        tx.upsert(table, rows)
    for table, rows in changes.inserted.items():
        tx.insert(table, rows)
    epoch = tx.commit()
    seconds = perf_counter() - began
    published: Any = db.store.read(epoch).note["published"]
    return Step(number, changes.rows, dict(published), seconds)


def _recompute(console: Console, db: Database, scratch: Path) -> float:
    with _progress(console, f"Computing all {len(VIEWS)} views again with Spark SQL"):
        return recomputation(db, tuple(TABLES), VIEWS, scratch / "plain")


@contextmanager
def _progress(console: Console, doing: str) -> Iterator[None]:
    """Say what is being done, then how long it took."""
    began = perf_counter()
    with console.status(doing):
        yield
    console.print(f"{doing:60} {perf_counter() - began:6.2f} s")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m demo.shop", description=__doc__.split("\n")[0])
    parser.add_argument("--lines", type=int, default=1_000_000, help="order lines at the start")
    parser.add_argument("--transactions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--store", help="a new folder to keep the store in")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
