"""What this process should not hold is computed by executors, or refused; no transaction fails."""

from __future__ import annotations

from collections import Counter

import pytest

from e2e.test_gears import opened
from everview.engines.spark import actions, fetch, slices
from everview.runtime import memory_budget
from everview.runtime.protocol import TooLarge
from everview.store import segments

pytestmark = pytest.mark.spark

SKEWED = [(1, n, n % 5) for n in range(40)] + [(2, 0, 0)]
"""Most rows have one value in the first column, by which slices are looked up."""


@pytest.fixture
def db(request, spark, tmp_path, own_files, monkeypatch):
    for module in (fetch, slices):
        monkeypatch.setattr(module, "SLICE_ROWS", 10)
    with opened(tmp_path, spark, memory=0, **getattr(request, "param", {})) as db:
        yield db


@pytest.mark.parametrize(
    "db", [{}, {"driver_bytes": -1}], ids=["by the driver", "by a job"], indirect=True
)
def test_rows_named_by_keys_of_which_many_begin_alike_are_replaced_and_removed(db):
    db.sql("CREATE TABLE t (a INT, b INT, v INT, PRIMARY KEY (a, b))")
    db.sql("CREATE VIEW s AS SELECT v, COUNT(*) AS n FROM t GROUP BY v")
    db.insert("t", SKEWED)
    db.upsert("t", [(1, 3, 9), (1, 100, 9)])
    db.delete("t", keys=[(1, 4), (2, 0)])
    expected = {(a, b): v for a, b, v in SKEWED} | {(1, 3): 9, (1, 100): 9}
    del expected[1, 4], expected[2, 0]
    assert Counter(db.read("t").rows()) == Counter((*k, v) for k, v in expected.items())
    assert Counter(db.read("s").rows()) == Counter(Counter(expected.values()).items())


def test_a_change_that_may_say_too_much_has_its_effect(db):
    db.sql("CREATE TABLE t (a INT, b INT, v INT)")
    db.insert("t", SKEWED)
    with db.transaction() as tx:
        tx.apply("t", deleted=[(1, 3, 3), (1, 3, 7)], inserted=[(1, 5, 0), (1, 6, 0)], minimal=True)
    expected = Counter(SKEWED)
    del expected[1, 3, 3]
    assert Counter(db.read("t").rows()) == expected + Counter([(1, 6, 0)])


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL"])
def test_what_refers_to_a_row_that_goes_follows_it(db, action):
    db.sql(
        "CREATE TABLE p (k INT PRIMARY KEY);"
        f"CREATE TABLE t (a INT REFERENCES p (k) ON DELETE {action}, b INT, v INT)"
    )
    db.insert("p", [(1,), (2,)])
    db.insert("t", SKEWED)
    db.delete("p", [(1,)])
    gone = [] if action == "CASCADE" else [(None, b, v) for a, b, v in SKEWED if a == 1]
    assert Counter(db.read("t").rows()) == Counter([(2, 0, 0), *gone])


def test_a_set_stays_one_when_its_rows_lose_what_they_refer_to(db):
    db.sql("""
        CREATE TABLE p (k INT PRIMARY KEY);
        CREATE TABLE t (a INT REFERENCES p (k) ON DELETE SET NULL, b INT) WITH (kind = 'set')""")
    db.insert("p", [(1,), (2,)])
    db.insert("t", [(None, 3), (2, 3), *((1, b % 8) for _, b, _ in SKEWED)])
    db.delete("p", [(1,)])
    expected = [(2, 3), *((None, b) for b in {3, *(b % 8 for _, b, _ in SKEWED)})]
    assert Counter(db.read("t").rows()) == Counter(expected)


def test_a_row_goes_with_a_large_collection(db):
    db.sql("CREATE TABLE m (name STRING PRIMARY KEY, seats BAG<INT>)")
    db.insert("m", [("Drive", list(range(40))), ("Rex", [1])])
    with db.transaction() as tx:
        tx.update_inner("m", "Drive", "seats", insert=[7], delete=[8])
    seats = dict(db.read("m").rows())["Drive"]
    assert Counter(seats) == Counter([*range(8), 7, *range(9, 40)])
    db.delete("m", keys=["Drive"])
    assert db.read("m").rows() == [("Rex", [1])]


def test_a_table_of_few_wide_rows_is_read(spark, tmp_path):
    with opened(tmp_path, spark, large_rows=3) as db:
        db.sql("CREATE TABLE t (k INT, s STRING)")
        rows = [(k, "".join(chr(97 + (k * i * i) % 26) for i in range(5_000))) for k in range(3)]
        db.insert("t", rows)
        assert Counter(db.read("t").rows()) == Counter(rows)


@pytest.mark.parametrize("most", [2_000, 10**9], ids=["little", "everything"])
def test_a_round_of_slices_brings_no_more_than_the_budget_allows(
    spark, tmp_path, own_files, monkeypatch, most
):
    """Most rows have the key that is looked up; then executors run the program."""
    for name in ("FETCHED_MIN_BYTES", "FETCHED_MAX_BYTES"):
        monkeypatch.setattr(memory_budget, name, most)
    monkeypatch.setattr(segments, "KEYED_ROW_GROUP_ROWS", 50)
    with opened(tmp_path, spark, memory=0, driver_bytes=-1) as db:
        db.sql("CREATE TABLE t (k INT, v INT); CREATE TABLE u (k INT, w INT)")
        db.sql("CREATE VIEW s AS SELECT u.w, COUNT(*) AS n FROM t JOIN u ON t.k = u.k GROUP BY w")
        db.insert("t", [(1 if n % 10 else n, n) for n in range(1_000)])
        db.insert("u", [(1, 7), (20, 8)])
        assert Counter(db.read("s").rows()) == Counter([(7, 900), (8, 1)])
        history = db.sql("SELECT epoch, gear FROM everview.history").rows()
    assert max(history)[1] == ("large" if most == 2_000 else "small")


def test_a_job_ends_when_its_tasks_have_brought_too_much(spark):
    def read(batches):
        import time

        import pyarrow as arrow

        for _ in batches:
            time.sleep(0.2)
            cells = [arrow.array([0], arrow.int32()), arrow.array([bytes(1_000)], arrow.binary())]
            yield arrow.record_batch(cells, names=["slice", "rows"])

    assert actions.fetch_slices(spark, 4, read, 10_000).num_rows == 4
    with pytest.raises(TooLarge):
        actions.fetch_slices(spark, 30, read, 3_000)
