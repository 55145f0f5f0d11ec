"""Queries of TPC-DS as views, equal to recomputation after every transaction."""

from __future__ import annotations

import pytest

import everview as ev
from tpc.sides import Kept, queries
from tpc.tpcds import KEYS, Trade, tables

TEXTS = queries("tpcds")
QUICK = ("q01", "q10", "q51", "q87")
"""A correlated average, EXISTS OR EXISTS, windows over a full join, EXCEPT."""

NEEDS_SPARK = {"q58": "decimal(38,17) * decimal(3,0)", "q61": "decimal(35,20) * decimal(3,0)"}
"""Products that Spark rounds, which are not shown equal on DuckDB."""


def test_there_are_more_than_forty():
    assert len(TEXTS) > 40


def test_some_queries_stay_equal_to_recomputation(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        traded(Kept(db, tables(7), KEYS, {name: TEXTS[name] for name in QUICK}), 2)


def test_what_only_spark_can_answer_is_refused_by_name(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        for name, product in NEEDS_SPARK.items():
            with pytest.raises(ev.UserError) as caught:
                Kept(db, {} if db.catalog.tables else tables(7), KEYS, {name: TEXTS[name]})
            assert caught.value.code == "E011"
            assert product in caught.value.problem


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(0, len(TEXTS), 12))
def test_every_query_stays_equal_to_recomputation(open_db, engine, tmp_path, first):
    able = [name for name in TEXTS if engine == "spark" or name not in NEEDS_SPARK]
    with open_db(tmp_path / "store") as db:
        texts = {name: TEXTS[name] for name in able[first : first + 12]}
        traded(Kept(db, tables(7), KEYS, texts), 5)


def traded(kept: Kept, transactions: int) -> None:
    assert kept.differences() == {}
    trade = Trade(kept.plain, 1)
    for number in range(transactions):
        kept.apply(trade.change())
        assert kept.differences() == {}, number
