"""The demo's shop, small: the same seed trades the same, and views stay equal to their queries."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from demo.catalog import VIEWS
from demo.recompute import recomputation
from demo.screen import Report, show_report, steps_table
from demo.trade import Changes, Shop
from rich.console import Console

import everview as ev
from demo import shop
from everview.database.database import Database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINES, TRANSACTIONS, ROWS = 3_000, 3, 200
PLAIN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""With few rows and many plans, cleverness about each plan takes longer than running it."""


def test_the_same_seed_trades_the_same() -> None:
    one, other = (_days(Shop(LINES, seed=5), 5) for _ in range(2))
    assert one == other
    assert one != _days(Shop(LINES, seed=6), 5)


def _days(trading: Shop, days: int) -> tuple[object, list[Changes]]:
    return trading.tables(), [trading.trade(ROWS) for _ in range(days)]


def test_a_day_changes_about_as_many_rows_as_asked() -> None:
    trading = Shop(50_000, seed=5)
    assert len(trading.rows["lines"]["order_id"]) == 50_000
    for _ in range(8):
        assert trading.trade(1_000).rows == pytest.approx(1_000, rel=0.2)


def test_the_shop_changes_only_what_is_there() -> None:
    trading = Shop(LINES, seed=5)
    keys = _keys(trading)
    for _ in range(8):
        changes = trading.trade(ROWS)
        gone = _line_keys(changes.deleted["lines"])
        assert gone <= keys
        assert _line_keys(changes.updated["lines"]) <= keys - gone
        keys = keys - gone | _line_keys(changes.inserted["lines"])
        assert keys == _keys(trading)


def _keys(trading: Shop) -> set[tuple[int, int]]:
    return _line_keys(trading.tables()["lines"])


def _line_keys(lines: object) -> set[tuple[int, int]]:
    return {(row["order_id"], row["line_no"]) for row in lines.to_pylist()}  # type: ignore[attr-defined]


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path) -> Iterator[Database]:
    with ev.open(str(tmp_path / "store"), spark=spark) as opened:
        for setting, value in PLAIN.items():
            opened.engine.session.conf.set(setting, value)  # type: ignore[attr-defined]
        yield opened


@pytest.mark.spark
def test_every_view_equals_its_query_after_every_transaction(db: Database, tmp_path: Path) -> None:
    console = Console(quiet=True)
    trading = Shop(LINES, seed=5)
    shop.load(console, db, trading)
    shop.declare(console, db)
    steps = []
    for number in range(1, TRANSACTIONS + 1):
        steps.append(shop.apply(db, trading.trade(ROWS), number))
        for name, rows in trading.tables().items():
            assert sorted(db.read(name).rows()) == sorted(
                zip(*rows.to_pydict().values(), strict=True)
            )
        audit = db.audit()
        assert audit.ok, audit
    again = recomputation(db, ["orders"], {"days": VIEWS["daily_orders"]}, tmp_path / "plain")
    _assert_shown(Report(steps, (again, again), audit, LINES, None))


def _assert_shown(report: Report) -> None:
    console = Console(width=120, record=True, file=StringIO())
    console.print(steps_table(console, tuple(VIEWS), report.steps, report.recomputed[0]))
    show_report(console, report)
    text = console.export_text()
    assert "all 8 views equal their queries" in text
    assert str(report.steps[0].rows) in text
