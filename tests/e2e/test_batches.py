"""Rows in batches: the same rows as read at once, with one batch in memory."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pyarrow as pa
import pytest

import everview as ev
from e2e.every_type import COLUMNS, NAMES, NULLS, ROW
from everview.runtime import memory_budget


def bag(batches) -> Counter:
    return Counter(row for each in batches for row in zip(*each.to_pydict().values(), strict=True))


@pytest.fixture
def db(open_db, tmp_path):
    """A table and a view: rows that came twice, went, and came in several segments."""
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE t (k INT, v INT); CREATE VIEW s AS SELECT k, v FROM t WHERE v > 3")
        db.sql("CREATE VIEW n AS SELECT k, COUNT(*) AS n FROM t GROUP BY k; CREATE TABLE e (x INT)")
        db.insert("t", [(k % 7, v) for k in range(40) for v in range(5)] + [(None, 9)] * 3)
        yield db


@pytest.mark.parametrize("compacted", [False, True], ids=["with changes", "a base alone"])
def test_batches_are_the_rows_of_a_relation(db, compacted):
    with db.transaction() as tx:
        tx.delete("t", [(1, 4), (1, 4), (None, 9)])
        tx.insert("t", [(1, 77), (None, None)])
    if compacted:
        db.compact()
    for name in ("t", "s", "n"):
        for rows in (1, 2, 50, 100_000, 10**30):
            batches = list(db.read(name).batches(rows))
            assert max(each.num_rows for each in batches) <= rows
            assert min(each.num_rows for each in batches) > 0
            assert bag(batches) == Counter(db.read(name).rows())
            assert {str(each.schema) for each in batches} == {str(db.read(name).to_arrow().schema)}
    assert list(db.read("e").batches()) == []


def test_batches_of_a_query_keep_its_order(db):
    query = "SELECT k, v, v * 2 AS d FROM t WHERE v > 1 ORDER BY v DESC, k NULLS LAST LIMIT 90"
    rows = [
        row
        for batch in db.sql(query).batches(7)
        for row in zip(*batch.to_pydict().values(), strict=True)
    ]
    assert rows == db.sql(query).rows()
    assert len(rows) == 90


def test_batches_of_a_feed_are_its_rows(db):
    feed = db.changes("n")
    assert bag(feed.batches(3)) == Counter(feed.rows())


def test_every_type_comes_in_batches(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql(f"CREATE TABLE t (id INT PRIMARY KEY, {COLUMNS})")
        db.insert("t", [(1, *ROW), (2, *ROW), (3, *NULLS)])
        for result in (db.read("t"), db.sql(f"SELECT id, {NAMES} FROM t ORDER BY id")):
            table = pa.Table.from_batches(list(result.batches(2)))
            whole = result.to_arrow()
            assert table.sort_by("id").cast(whole.schema).equals(whole.sort_by("id"))


def test_reading_may_end_early_and_others_go_on(db):
    batches = db.read("t").batches(1)
    assert len(list(islice(batches, 3))) == 3
    db.insert("t", [(5, 5)])
    del batches
    assert len(db.read("t").rows()) == 204
    assert db.audit().ok


def test_batches_are_of_the_epoch_at_which_they_were_asked_for(db):
    batches = db.read("t").batches(10)
    first = next(batches)
    db.sql("DELETE FROM t WHERE k = 1")
    assert first.num_rows + sum(each.num_rows for each in batches) == 203


def test_an_error_of_a_query_is_the_one_that_rows_raise(db):
    text = "SELECT 10 / (v - 4) AS q FROM t"
    with pytest.raises(ev.UserError) as whole:
        db.sql(text).rows()
    with pytest.raises(ev.UserError) as batched:
        list(db.sql(text).batches())
    assert batched.value.code == whole.value.code
    with pytest.raises(ev.UserError) as caught:
        db.read("t").batches(0)
    assert caught.value.code == "X002"


def test_a_closed_database_gives_no_batches(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE t (k INT)")
        db.insert("t", [(1,)])
        result = db.read("t")
    with pytest.raises(ev.UserError) as caught:
        list(result.batches())
    assert caught.value.code == "T013" or "closed" in caught.value.problem


@pytest.mark.parametrize("memory", [0, "1MB", None])
def test_what_is_beyond_a_given_budget_is_read_in_batches(open_db, tmp_path, monkeypatch, memory):
    monkeypatch.setattr(memory_budget, "READABLE_MIN_BYTES", 10_000)
    with open_db(tmp_path / "store", memory=memory) as db:
        db.sql("CREATE TABLE t (k BIGINT, v BIGINT)")
        db.insert("t", pa.table({"k": range(2_000), "v": range(2_000)}))
        assert sum(each.num_rows for each in db.read("t").batches(100)) == 2_000
        if memory == 0:
            for read in ("rows", "to_arrow", "to_pandas", "show"):
                with pytest.raises(ev.UserError) as caught:
                    getattr(db.read("t"), read)()
                assert caught.value.code == "E018"
                assert "batches()" in caught.value.remedy
                assert ("to_spark()" in caught.value.remedy) is (db.engine.name == "spark")
        else:
            assert len(db.read("t").rows()) == 2_000
        db.sql("DELETE FROM t WHERE k >= 100")
        db.compact()
        assert len(db.read("t").rows()) == 100


@pytest.mark.spark
def test_a_base_is_read_by_spark_without_a_shuffle(spark, tmp_path):
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        db.sql("CREATE TABLE t (k INT, v INT); CREATE TABLE u (k INT, v INT)")
        rows = [(k, v) for k in range(3) for v in range(5)]
        db.insert("t", rows)
        db.insert("u", rows + rows[:4])
        db.delete("u", rows[:2])
        assert "Exchange" in words(db.read("u").to_spark())
        db.compact()
        once, often = db.read("t").to_spark(), db.read("u").to_spark()
        assert words(once) == set()
        assert words(often) == {"Generate"}
        assert sorted(map(tuple, once.collect())) == sorted(rows)
        assert Counter(map(tuple, often.collect())) == Counter(rows + rows[:4]) - Counter(rows[:2])
        db.insert("t", [(9, 9)])
        assert len(db.read("t").to_spark().collect()) == 16
        db.compact()
        db.sql("BEGIN; DELETE FROM t WHERE k = 9")
        assert db.sql("SELECT COUNT(*) AS n FROM t").rows() == [(15,)]
        db.sql("ROLLBACK")
        assert db.sql("SELECT COUNT(*) AS n FROM t").rows() == [(16,)]


def words(frame) -> set[str]:
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return {each for each in ("Exchange", "Generate", "Aggregate") if each in plan}


def texts(path: str, count: int) -> pa.Table:
    """Rows of few different and long texts: Parquet makes them a hundred times as small."""
    return pa.table({"k": range(count), "s": [f"{n % 3}" * 200 for n in range(count)]})


@pytest.mark.parametrize("way", ["a read", "a query", "a feed", "a pair of changes"])
def test_bytes_that_are_read_are_counted_as_they_come(open_db, tmp_path, monkeypatch, way):
    monkeypatch.setattr(memory_budget, "READABLE_MIN_BYTES", 100_000)
    with open_db(tmp_path / "store", memory=0) as db:
        db.sql("CREATE TABLE t (k BIGINT, s STRING); CREATE TABLE few (k BIGINT)")
        db.insert("t", texts("t", 2_000))
        db.insert("few", [(1,), (2,)])
        asked = {
            "a read": db.read,
            "a query": lambda name: db.sql(f"SELECT * FROM {name} WHERE k >= 0"),
            "a feed": db.changes,
            "a pair of changes": lambda name: db.changes(name, pair=True)[1],
        }[way]
        assert asked("few").to_arrow().num_rows == 2
        assert not db.sql("SELECT * FROM few WHERE k > 7").to_arrow().num_rows
        with pytest.raises(ev.UserError, match="E018") as caught:
            asked("t").to_arrow()
        assert "batches()" in caught.value.remedy
        if way != "a pair of changes":
            assert sum(each.num_rows for each in asked("t").batches(100)) == 2_000
        with pytest.raises(ev.UserError, match="zero"):
            db.sql("SELECT 1 / (k - 1) AS q FROM few").rows()


@pytest.mark.parametrize("segments", [1, 3], ids=["a base", "with changes"])
def test_few_batches_of_a_relation_are_held_at_a_time(tmp_path, segments):
    with ev.open(str(tmp_path / "store"), engine="duckdb", memory=0) as db:
        db.sql("CREATE TABLE t (k BIGINT, s STRING)")
        for number in range(segments):
            db.insert("t", texts("t", 60_000).slice(number))
        if segments == 1:
            db.compact()
        db.handle.wait()
        for result in (db.read("t"), db.changes("t")):
            before, most, size = pa.total_allocated_bytes(), 0, 0
            for batch in result.batches(1_000):
                most = max(most, pa.total_allocated_bytes() - before)
                size = max(size, batch.nbytes)
                del batch
            assert most < 40 * size < segments * 60_000 * 200
