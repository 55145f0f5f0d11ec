"""All 22 queries of TPC-H as views, equal to recomputation after every refresh."""

from __future__ import annotations

import pytest

import everview as ev
from tpc.sides import Kept, queries
from tpc.tpch import KEYS, Refreshes, tables

TEXTS = queries("tpch")


def test_all_queries_are_there():
    assert list(TEXTS) == [f"q{number:02}" for number in range(1, 23)]


def test_every_query_stays_equal_to_recomputation(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        refreshed(db, tmp_path, scale=0.001, transactions=3, orders=10)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_query_stays_equal_to_recomputation_at_scale(open_db, engine, tmp_path):
    with open_db(tmp_path / "store") as db:
        if engine == "spark":
            refreshed(db, tmp_path, scale=0.01, transactions=30, orders=15)
        else:
            refreshed(db, tmp_path, scale=0.1, transactions=30, orders=150)


def refreshed(db, folder, *, scale: float, transactions: int, orders: int) -> None:
    kept = Kept(db, tables(scale, folder / "data"), KEYS, TEXTS)
    assert kept.differences() == {}
    refreshes = Refreshes(kept.plain, 1, orders)
    for number in range(transactions):
        kept.apply(refreshes.change())
        assert kept.differences() == {}, number
