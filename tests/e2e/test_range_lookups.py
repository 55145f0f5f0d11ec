"""Joins by ranges: what is read follows the range, and answers equal recomputation."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random

import pytest

import everview as ev
from everview.database.database import Database
from everview.store.segments import KEYED_ROW_GROUP_ROWS

TABLES = """
    CREATE TABLE e (id INT PRIMARY KEY, k INT, x INT, d DATE, t TIMESTAMP, p DECIMAL(10, 2));
    CREATE TABLE w (id INT PRIMARY KEY, k INT, y BIGINT, z SMALLINT, d DATE, t TIMESTAMP,
                    q DECIMAL(12, 2))
"""
VIEWS = {
    "window": "SELECT w.id, count(*) AS n, sum(e.x) AS s FROM w JOIN e"
    " ON e.x BETWEEN w.y AND w.z GROUP BY w.id",
    "band": "SELECT w.id, e.id AS other FROM w JOIN e ON e.x > w.y - 4 AND e.x + 1 <= w.y + 2",
    "flipped": "SELECT w.id, e.id AS other FROM e JOIN w ON w.y - 1 < e.x AND w.z >= e.x",
    "days": "SELECT w.id, e.id AS other FROM w JOIN e"
    " ON e.d >= w.d AND e.d < w.d + INTERVAL '3' DAY",
    "hours": "SELECT w.id, e.id AS other FROM w JOIN e"
    " ON e.t > w.t - INTERVAL '90' MINUTE AND e.t < w.t + INTERVAL '2' DAY",
    "price": "SELECT w.id, count(e.id) AS n FROM w LEFT JOIN e"
    " ON e.p > w.q AND e.p <= w.q + 1 GROUP BY w.id",
    "below": "SELECT e.id FROM e WHERE EXISTS (SELECT 1 FROM w WHERE w.q < e.p AND w.q >= e.p)"
    " OR NOT EXISTS (SELECT 1 FROM w WHERE w.y > e.x)",
    "self": "SELECT a.id, count(*) AS n FROM e a JOIN e b ON b.x > a.x AND b.x < a.x + 3"
    " GROUP BY a.id",
    "either": "SELECT w.id, e.id AS other FROM w JOIN e ON e.x < w.y AND e.x > w.z OR e.x = w.y",
    "groups": "SELECT w.id, g.n FROM w JOIN"
    " (SELECT k, count(*) AS n, max(x) AS x FROM e GROUP BY k) g ON g.x BETWEEN w.z AND w.y",
    "distinct_values": "SELECT w.id, g.x FROM w JOIN (SELECT DISTINCT x FROM e) g"
    " ON g.x BETWEEN w.z AND w.y",
}


def _row(rng: Random, key: int, table: str) -> tuple[object, ...]:
    """A row whose values are near those of others, on either side of them, or NULL."""

    def some(value: object) -> object:
        return None if rng.random() < 0.1 else value

    x, day = rng.randrange(-6, 20), date(2024, 3, 28) + timedelta(days=rng.randrange(8))
    moment = datetime(2024, 3, 30, 22) + timedelta(minutes=rng.randrange(0, 5_000, 7))
    price = Decimal(rng.randrange(-150, 300)) / 100
    rest = (some(day), some(moment), some(price))
    if table == "e":
        return (key, some(rng.randrange(3)), some(x), *rest)
    return (key, some(rng.randrange(3)), some(x), some(x + rng.randrange(-2, 5)), *rest)


def _change(db: Database, rng: Random, keys: dict[str, list[int]], rows: int) -> None:
    with db.transaction() as tx:
        for table, there in keys.items():
            gone = [there.pop(rng.randrange(len(there))) for _ in range(min(rows // 2, len(there)))]
            if gone:
                tx.delete(table, keys=gone)
            fresh = range(next_key := max([0, *there, *gone]) + 1, next_key + rng.randrange(rows))
            there += fresh
            tx.insert(table, [_row(rng, key, table) for key in fresh])


@pytest.mark.parametrize(
    ("policy", "memory"),
    [("circuit", None), ("circuit", 0), ("higher-order", None), ("first-order", None)],
)
def test_joins_by_ranges_equal_recomputation(tmp_path, policy, memory):
    rng, keys = Random(11), {"e": list[int](), "w": list[int]()}
    with ev.open(str(tmp_path / "s"), engine="duckdb", memory=memory) as db:
        db.sql(TABLES)
        for name, query in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} WITH (policy = '{policy}') AS {query}")
        for rows in (40, 3, 1, 8):
            _change(db, rng, keys, rows)
            assert db.audit().ok, rows
        db.sql("DELETE FROM w")
        assert db.audit().ok
        _change(db, rng, keys | {"w": []}, 9)
        assert db.audit().ok
        assert "ranges of" in db.explain("window") or policy == "first-order"


@pytest.mark.parametrize("memory", [None, 0], ids=["held", "from files"])
def test_what_is_read_follows_the_range_and_not_the_relation(tmp_path, memory):
    read = []
    for count in (20_000, 160_000):
        with ev.open(str(tmp_path / f"s{count}"), engine="duckdb", memory=memory) as db:
            db.sql(
                "CREATE TABLE e (id INT PRIMARY KEY, x INT); CREATE TABLE w (id INT PRIMARY KEY)"
            )
            db.sql(
                "CREATE MATERIALIZED VIEW v AS SELECT w.id, e.id AS other FROM w JOIN e"
                " ON e.x > w.id - 5 AND e.x < w.id + 5"
            )
            db.insert("e", [(number, number * 7 % count) for number in range(count)])
            for rows in ([(70,)], [(50,), (9_000,), (9_002,)]):
                db.insert("w", rows)
                db.engine.local.wait()
            assert len(db.read("v").rows()) == 9 * 4
            read.append(next(e.rows_read for e in reversed(db.history()) if e.view == "v"))
    if memory is None:
        assert read == [9 + 11, 9 + 11]
    else:  # of each of two ranges a row group
        assert max(read) <= 2 * KEYED_ROW_GROUP_ROWS
