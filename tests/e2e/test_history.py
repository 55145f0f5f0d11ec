"""What transactions cost is told: by `history`, and as rows of a table."""

from __future__ import annotations

import pytest

import everview as ev
from e2e.test_gears import opened
from e2e.test_jobs import counted_jobs

SHOP = """
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT);
CREATE TABLE lines (order_id BIGINT, line INT, amount DECIMAL(10,2), PRIMARY KEY (order_id, line));
CREATE TABLE notes (text STRING);
CREATE MATERIALIZED VIEW revenue AS
  SELECT o.customer, SUM(l.amount) AS total FROM orders o JOIN lines l ON l.order_id = o.id
  GROUP BY o.customer;
CREATE MATERIALIZED VIEW big AS SELECT customer FROM revenue WHERE total > 10;
CREATE MATERIALIZED VIEW said AS SELECT DISTINCT text FROM notes
"""


def fill(db) -> None:
    with db.transaction() as tx:
        tx.insert("orders", [(1, 7), (2, 8), (3, 8)])
        tx.insert("lines", [(1, 1, "5.00"), (2, 1, "6.00"), (3, 1, "7.00")])
    with db.transaction() as tx:
        tx.insert("lines", [(1, 2, "20.00"), (2, 2, "1.00")])
        tx.insert("notes", [("hello",), ("hello",)])


def test_history_tells_rows_in_out_and_read_of_each_view(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql(SHOP)
        fill(db)
        newest = [entry for entry in db.history() if entry.epoch == db.epoch]
        assert [entry.view for entry in newest] == [None, "revenue", "big", "said"]
        whole, revenue, big, said = newest
        assert (whole.kind, whole.gear, whole.jobs) == ("transaction", "small", 0)
        assert (whole.rows_in, whole.rows_out) == (3, 4 + 1 + 1)
        assert (revenue.rows_in, revenue.rows_out) == (2, 4)
        assert (big.rows_in, big.rows_out) == (2, 1)
        # Two equal rows are one row of weight two, and only the first text is new.
        assert (said.rows_in, said.rows_out, said.rows_read) == (1, 1, 0)
        assert revenue.rows_read == 2 + 2
        assert revenue.rows_read <= whole.rows_read
        assert revenue.state_bytes > said.state_bytes > 0
        assert whole.state_bytes >= revenue.state_bytes + said.state_bytes
        assert "by id: 2 rows" in revenue.fetches


def test_milliseconds_by_phase_add_up_to_no_more_than_the_whole(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql(SHOP)
        fill(db)
        whole = next(e for e in db.history() if e.epoch == db.epoch and e.view is None)
        spent = (whole.fetch_ms, whole.compute_ms, whole.write_ms, whole.commit_ms)
        assert all(each > 0 for each in spent)
        assert sum(spent) + whole.compile_ms <= whole.total_ms + 1


def test_history_is_a_table_that_queries_read(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql(SHOP)
        fill(db)
        db.compact()
        asked = (
            "SELECT epoch, view, rows_in, rows_out FROM everview.history"
            " WHERE kind = 'transaction' AND view IS NOT NULL"
        )
        expected = {
            (e.epoch, e.view, e.rows_in, e.rows_out)
            for e in db.history()
            if e.kind == "transaction" and e.view
        }
        assert {*db.sql(asked).rows()} == expected
        counted = "SELECT h.kind, COUNT(*) AS n FROM everview.history AS h GROUP BY h.kind"
        assert dict(db.sql(counted).rows()) == {
            "declaration": 1 + 3,
            "transaction": 1 + 2 + 4,
            "compaction": 1,
        }
        beside = (
            "SELECT COUNT(*) FROM EVERVIEW.`history` JOIN notes ON notes.text = 'hello'"
            " WHERE history.view = 'said'"
        )
        assert db.sql(beside).rows() == [(4,)]


def test_a_table_of_ones_own_may_have_any_name_beside_history(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE history (a INT); CREATE TABLE everview_history (b INT)")
        db.sql("INSERT INTO history VALUES (1); INSERT INTO everview_history VALUES (2)")
        asked = "SELECT a, b, MAX(epoch) FROM history, everview_history, everview.history AS h"
        assert db.sql(f"{asked} GROUP BY a, b").rows() == [(1, 2, 3)]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("SELECT * FROM everview.nothing", "C002"),
        ("CREATE VIEW v AS SELECT * FROM everview.history", "Q006"),
        ("DELETE FROM everview.history", "Q006"),
    ],
)
def test_the_table_of_history_is_only_read(tmp_path, statement, code):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        with pytest.raises(ev.UserError) as caught:
            db.sql(statement)
        assert caught.value.code == code
        assert caught.value.span is not None


def test_history_ends_where_retention_ends(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(SHOP)
        fill(db)
        sizes = [len(str(db.store.read(epoch).note)) for epoch in db.store.epochs()]
        db.retain(2, grace=0)
        assert {entry.epoch for entry in db.history()} == {db.epoch - 1, db.epoch}
        assert {entry.epoch for entry in db.history(1)} == {db.epoch}
        assert max(sizes) < 4000


def test_what_changed_nothing_leaves_no_history(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(SHOP)
        before = db.history()
        with db.transaction() as tx:
            tx.insert("notes", [("a",)])
            tx.delete("notes", [("a",)])
        assert db.history() == before


def test_explain_tells_how_a_fetch_was_taken(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(SHOP)
        fill(db)
        assert "rows per changed row, last time, from memory" in db.explain("revenue")
        assert "2 rows last time, from memory" in db.explain("revenue", "program")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("settings", "way"),
    [
        ({}, "from memory"),
        ({"memory": 0}, "in the driver"),
        ({"driver_bytes": -1, "memory": 0}, "by a Spark job"),
        ({"large_rows": -1}, "by Spark SQL"),
    ],
)
def test_each_way_of_a_fetch_is_told(spark, tmp_path, own_files, settings, way):
    with opened(tmp_path, spark, **settings) as db:
        db.sql(SHOP)
        fill(db)
        revenue = next(e for e in db.history() if e.epoch == db.epoch and e.view == "revenue")
        assert way in revenue.fetches
        assert f"last time, {way}" in db.explain("revenue", "program")
        assert way in db.explain("revenue")
        large = "large_rows" in settings
        assert revenue.gear in (["large"] if large else ["small", "generated"])
        assert (revenue.rows_read is None) == large


@pytest.mark.spark
@pytest.mark.parametrize("settings", [{"driver_bytes": -1, "memory": 0}, {"large_rows": -1}])
def test_jobs_are_those_that_spark_counts(spark, tmp_path, own_files, settings):
    with opened(tmp_path, spark, **settings) as db:
        db.sql(SHOP)
        fill(db)
        with counted_jobs(spark) as jobs, db.transaction() as tx:
            tx.insert("lines", [(3, 2, "2.00")])
            tx.delete("lines", [(1, 1, "5.00")])
        found = db.history()[-1].jobs
        assert found
        # Of many jobs, Spark may tell of the last a moment after it is done.
        assert 0 <= jobs[0] - found <= ("large_rows" in settings)
