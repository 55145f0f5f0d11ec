"""All 22 queries of TPC-H as views, equal to recomputation after every refresh."""

from __future__ import annotations

import re

import pytest

import everview as ev
from tpc.sides import Kept, queries
from tpc.tpch import KEYS, Refreshes, tables

TEXTS = queries("tpch")


def test_all_queries_are_there():
    assert list(TEXTS) == [f"q{number:02}" for number in range(1, 23)]


@pytest.fixture(scope="module")
def little(tmp_path_factory):
    return tables(0.001, tmp_path_factory.mktemp("tpch"))


@pytest.mark.parametrize("first", range(0, 22, 6))
def test_some_queries_stay_equal_to_recomputation(little, tmp_path, first):
    """Fewer views a store are declared faster."""
    texts = dict(list(TEXTS.items())[first : first + 6])
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        refreshed(Kept(db, little, KEYS, texts), transactions=3, orders=10)
        assert [name for name in texts if reads_a_large_table_whole(db.explain(name))] == []


def reads_a_large_table_whole(shown: str) -> bool:
    return re.search(r"reads (lineitem|orders) .*whole", shown) is not None


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_query_stays_equal_to_recomputation_at_scale(open_db, engine, tmp_path):
    scale, orders = (0.01, 15) if engine == "spark" else (0.1, 150)
    with open_db(tmp_path / "store") as db:
        kept = Kept(db, tables(scale, tmp_path / "data"), KEYS, TEXTS)
        refreshed(kept, transactions=30, orders=orders)


def refreshed(kept: Kept, *, transactions: int, orders: int) -> None:
    assert kept.differences() == {}
    refreshes = Refreshes(kept.plain, 1, orders)
    for number in range(transactions):
        kept.apply(refreshes.change())
        assert kept.differences() == {}, number
