"""A Spark DataFrame is a change like any other: written once, counted, then small or large."""

from __future__ import annotations

from collections import Counter

import pytest
from py4j.clientserver import ClientServerConnection

from e2e.test_gears import opened
from e2e.test_jobs import counted_jobs
from everview.engines.spark import frames
from everview.errors import UserError
from everview.runtime.protocol import row_count

pytestmark = pytest.mark.spark

TABLES = """
CREATE TABLE p (id BIGINT PRIMARY KEY, k INT, v DECIMAL(10,2), s VARCHAR(5));
CREATE TABLE b (k INT, v INT);
CREATE VIEW sums AS SELECT k, SUM(v) AS total, COUNT(*) AS n FROM p GROUP BY k;
CREATE VIEW pairs AS SELECT p.id, b.v FROM p JOIN b ON p.k = b.k;
CREATE VIEW best AS SELECT k, MAX(v) AS best FROM p GROUP BY k
"""
SIZES = {"small": {}, "large": {"large_rows": -1}, "in between": {"large_rows": 3}}


@pytest.fixture(
    params=[
        "in between",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("small", "large")),
    ]
)
def db(spark, tmp_path, request, monkeypatch):
    """A store whose changes run in process, on executors, or some of each."""
    if request.param != "small":
        monkeypatch.setattr(frames, "COLLECTED_MAX_ROWS", 1)
    with opened(tmp_path, spark, **SIZES[request.param]) as db:
        db.sql(TABLES)
        yield db


def people(spark, rows):
    return spark.createDataFrame(rows, "id bigint, k int, v decimal(10,2), s string")


def numbered(spark, first, last, factor="1.00"):
    return spark.range(first, last).selectExpr(
        "id", "CAST(id % 3 AS INT) AS k", f"CAST(id * {factor} AS DECIMAL(10,2)) AS v", "'a' AS s"
    )


def test_frames_are_inserted_deleted_and_replaced(db, spark):
    db.insert("p", numbered(spark, 0, 6))
    assert db.audit().ok
    with db.transaction() as tx:
        tx.insert("b", spark.createDataFrame([(0, 1), (0, 1), (None, 2)], "k int, v int"))
        tx.delete("p", numbered(spark, 0, 3))
        tx.insert("p", numbered(spark, 10, 13))
    assert db.audit().ok
    db.upsert("p", numbered(spark, 4, 12, "2.00"))
    assert db.audit().ok
    assert {row[0] for row in db.read("p").rows()} == {3, *range(4, 13)}
    db.delete("p", keys=spark.range(4, 8).select("id"))
    assert {row[0] for row in db.read("p").rows()} == {3, *range(8, 13)}
    assert db.audit().ok
    db.delete("b", spark.createDataFrame([(0, 1), (None, 2)], "k int, v int"))
    assert Counter(db.read("b").rows()) == Counter([(0, 1)])
    db.delete("p", db.read("p").to_spark())
    assert db.read("sums").rows() == []
    assert db.audit().ok


def test_statements_write_what_is_large_on_executors(db):
    db.sql("INSERT INTO b SELECT id % 4, id FROM RANGE(9)")
    db.sql("INSERT INTO p SELECT id, id % 4, id, 'x' FROM RANGE(9)")
    db.sql(
        "MERGE INTO p USING b ON p.id = b.v AND b.k > 0 WHEN MATCHED AND b.v < 3 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = p.v + b.v"
    )
    db.sql("UPDATE p SET k = NULL WHERE id > 6; DELETE FROM b WHERE v > 4")
    assert db.audit().ok
    assert db.read("p").to_arrow().num_rows == 7


def test_a_transaction_sees_its_own_frames_and_ends_with_what_it_saw(db, spark):
    """A frame that gives other rows whenever it is computed is computed once."""
    random = spark.range(50).selectExpr(
        "id", "CAST(rand() * 5 AS INT) AS k", "1.0 AS v", "'r' AS s"
    )
    db.sql("BEGIN")
    db.handle.thread.transaction.insert("p", random)
    seen = db.sql("SELECT id, k FROM p ORDER BY id").rows()
    db.handle.thread.transaction.upsert("p", people(spark, [(0, 9, None, None)]))
    db.sql("COMMIT")
    assert sorted(row[:2] for row in db.read("p").rows()) == [(0, 9), *seen[1:]]
    assert db.audit().ok


def test_frames_of_a_table_are_written_by_one_job(db, spark):
    db.insert("p", numbered(spark, 0, 6))
    tx = db.transaction()
    with counted_jobs(spark) as jobs:
        tx.delete("p", numbered(spark, 0, 3))
        tx.insert("p", numbered(spark, 10, 13))
        tx.insert("p", numbered(spark, 20, 21))
    assert jobs[0] == 0
    with counted_jobs(spark) as jobs:
        (part,) = tx.pending["p"]
    assert (jobs[0], row_count(part)) == (1, 7)
    tx.insert("p", [(30, 0, None, "c")])
    tx.insert("p", numbered(spark, 40, 41))
    tx.commit()
    assert {row[0] for row in db.read("p").rows()} == {3, 4, 5, 10, 11, 12, 20, 30, 40}
    assert db.audit().ok


def test_a_value_that_is_refused_later_is_refused_until_the_end(db, spark):
    db.insert("p", numbered(spark, 0, 6))
    before = Counter(db.read("p").rows()), db.epoch
    tx = db.transaction()
    tx.insert("p", people(spark, [(9, 1, None, "too long")]))
    for use in (lambda: tx.read("sums"), lambda: tx.insert("p", [(8, 1, None, "")]), tx.commit):
        with pytest.raises(UserError, match="longer than VARCHAR"):
            use()
    tx.rollback()
    assert (Counter(db.read("p").rows()), db.epoch) == before
    db.insert("p", numbered(spark, 9, 10))
    assert db.audit().ok


def test_rows_that_cancel_leave_nothing_behind(db, spark):
    db.insert("p", numbered(spark, 0, 6))
    epoch = db.epoch
    with db.transaction() as tx:
        tx.delete("p", numbered(spark, 0, 6))
        tx.insert("p", numbered(spark, 0, 6))
    assert db.epoch == epoch
    with db.transaction() as tx:
        tx.delete("p", numbered(spark, 0, 6))
        tx.insert("p", numbered(spark, 3, 9))
    assert len(db.changes("p", after=epoch).rows()) == 6
    assert db.audit().ok


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda db, spark: db.insert("p", numbered(spark, 5, 8)), "T010"),
        (lambda db, spark: db.delete("p", numbered(spark, 5, 8)), "T011"),
        (lambda db, spark: db.delete("p", keys=spark.range(5, 8)), "T011"),
        (lambda db, spark: db.delete("p", keys=[99]), "T011"),
        (lambda db, spark: db.insert("p", people(spark, [(9, 1, None, "too long")])), "E010"),
        (
            lambda db, spark: db.upsert("p", people(spark, [(7, 1, None, ""), (7, 2, None, "")])),
            "T010",
        ),
        (lambda db, spark: db.insert("p", people(spark, [(None, 1, None, "")])), "T012"),
        (lambda db, spark: db.delete("p"), "T013"),
        (lambda db, spark: db.delete("b", keys=[1]), "T004"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_has_changed(db, spark, change, code):
    db.insert("p", numbered(spark, 0, 6))
    epoch = db.epoch
    with pytest.raises(UserError) as caught:
        change(db, spark)
    assert caught.value.code == code
    assert db.epoch == epoch
    assert db.audit().ok


def test_keys_may_be_bare_or_rows(db):
    db.insert("p", [(i, 1, None, None) for i in range(6)])
    db.delete("p", keys=[1, 2])
    db.delete("p", keys=[(3,), {"id": 4}, (3,)])
    assert sorted(row[0] for row in db.read("p").rows()) == [0, 5]
    assert db.audit().ok


def test_keys_that_no_row_has_are_refused_beside_a_frame_in_files(db, spark):
    """The frame is pending in files alone, so executors look up what the keys remove."""
    db.insert("p", [(i, 1, None, None) for i in range(6)])
    with db.transaction() as tx:
        tx.insert("p", numbered(spark, 10, 20))
        with pytest.raises(UserError) as caught:
            tx.delete("p", keys=[0, 1, 2, 3, 4, 11, 12, 99])
        assert caught.value.code == "T011"
        tx.delete("p", keys=[0, 1, 2, 3, 4, 11, 12])
    assert sorted(row[0] for row in db.read("p").rows()) == [5, 10, *range(13, 20)]
    assert db.audit().ok


def test_a_frame_starts_at_most_three_jobs_more_than_the_same_rows(spark, tmp_path):
    with opened(tmp_path, spark) as db:
        db.sql(TABLES)
        db.insert("p", numbered(spark, 0, 50_000).toArrow())
        frame = numbered(spark, 50_000, 140_000)
        with counted_jobs(spark) as plain:
            rows = frame.toArrow()
            db.insert("p", rows)
        db.delete("p", rows)
        with counted_jobs(spark) as framed:
            db.insert("p", frame)
        assert framed[0] <= plain[0] + 3
        assert {entry.gear for entry in db.history() if entry.gear} <= {"small", "generated"}
        assert db.audit().ok


def test_a_frame_of_many_columns_is_taken_with_few_calls(spark, tmp_path, monkeypatch):
    """Each call to Spark takes a part of a millisecond, which adds up where tables are wide."""
    calls, send = [], ClientServerConnection.send_command

    def counted(connection, command):
        calls.append(command)
        return send(connection, command)

    with opened(tmp_path, spark) as db:
        days = [f"d{n}" for n in range(5)]
        columns = ", ".join([*(f"{n} DATE" for n in days), *(f"c{n} BIGINT" for n in range(15))])
        db.sql(f"CREATE TABLE t (k BIGINT, {columns})")
        made = [f"CAST('2026-01-02' AS DATE) AS {n}" for n in days]
        made += [f"CAST(id AS INT) AS c{n}" for n in range(15)]
        frame = spark.range(3).selectExpr("id AS k", *made)
        monkeypatch.setattr(ClientServerConnection, "send_command", counted)
        db.insert("t", frame)
        assert len(calls) < 400
        assert len(db.read("t").rows()) == 3
