"""What a user does with a database: SQL, transactions, reads at epochs, feeds, upkeep."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest

import everview as ev
from e2e.every_type import COLUMNS, NAMES, NULLS, ROW

SHOP = (
    "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount DECIMAL(12,2));"
    "CREATE MATERIALIZED VIEW revenue AS SELECT customer, SUM(amount) AS total, "
    "COUNT(*) AS n FROM orders GROUP BY customer"
)


@pytest.fixture
def db(open_db, tmp_path):
    with open_db(tmp_path / "store") as opened:
        opened.sql(SHOP)
        yield opened


def rows(db, name, **options) -> Counter:
    return Counter(db.read(name, **options).rows())


def test_the_example_of_the_design_runs_as_written(open_db, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    db = open_db("shop")
    db.sql("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount DECIMAL(12,2))")
    db.sql(
        "CREATE MATERIALIZED VIEW revenue AS SELECT customer, SUM(amount) AS total, "
        "COUNT(*) AS n FROM orders GROUP BY customer"
    )
    with db.transaction() as tx:
        tx.insert("orders", [(1, 7, "10.00"), (2, 7, "5.50")])
        tx.delete("orders", [(1, 7, "10.00")])
    assert db.read("revenue").rows() == [(7, Decimal("5.50"), 1)]
    assert db.read("revenue").to_arrow().num_rows == 1
    assert list(db.read("revenue").to_pandas().columns) == ["customer", "total", "n"]
    db.read("revenue").show()
    assert "5.50" in capsys.readouterr().out
    assert db.changes("revenue", after=0).rows() == [(7, Decimal("5.50"), 1, 1, 3)]
    assert "fetch" in db.explain("revenue", "program")
    assert db.audit("revenue").ok
    assert db.epoch == 3
    db.close()


def test_rows_come_as_dicts_tuples_arrow_and_pandas(db):
    import pandas

    db.insert("orders", [{"id": 1, "customer": 7}, {"ID": 2, "Amount": Decimal("2.50")}])
    db.insert("orders", pa.table({"id": [3], "amount": pa.array([Decimal("1.00")])}))
    db.insert("orders", pandas.DataFrame({"id": [4], "customer": [7]}))
    assert rows(db, "orders") == Counter(
        [
            (1, 7, None),
            (2, None, Decimal("2.50")),
            (3, None, Decimal("1.00")),
            (4, 7, None),
        ]
    )
    assert rows(db, "revenue") == Counter([(7, None, 2), (None, Decimal("3.50"), 2)])


def test_sql_changes_tables_and_views_follow(db):
    db.sql("INSERT INTO orders VALUES (1, 7, 10), (2, 7, 5.5), (3, 8, 1.25)")
    db.sql("INSERT INTO orders (amount, id) SELECT amount + 1, id + 10 FROM orders WHERE id < 3")
    db.sql("UPDATE orders SET amount = amount * 2, customer = 9 WHERE customer IS NULL")
    db.sql("DELETE FROM orders AS o WHERE o.id = 2")
    assert rows(db, "orders") == Counter(
        [
            (1, 7, Decimal("10.00")),
            (3, 8, Decimal("1.25")),
            (11, 9, Decimal("22.00")),
            (12, 9, Decimal("13.00")),
        ]
    )
    db.sql(
        "MERGE INTO orders AS o"
        " USING (SELECT * FROM VALUES (1, 100), (3, 300), (50, 500) AS v(id, x)) s"
        " ON o.id = s.id WHEN MATCHED AND s.x > 200 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET amount = s.x"
        " WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (s.id, s.x)"
    )
    assert rows(db, "orders") == Counter(
        [
            (1, 7, Decimal("100.00")),
            (11, 9, Decimal("22.00")),
            (12, 9, Decimal("13.00")),
            (50, None, Decimal("500.00")),
        ]
    )
    assert rows(db, "revenue") == Counter(
        [
            (7, Decimal("100.00"), 1),
            (9, Decimal("35.00"), 2),
            (None, Decimal("500.00"), 1),
        ]
    )
    assert db.audit().ok


def test_statements_of_a_transaction_see_each_other_and_nobody_else_does(db):
    db.sql("INSERT INTO orders VALUES (1, 7, 10)")
    before = db.epoch
    db.sql("BEGIN; INSERT INTO orders VALUES (2, 7, 5); UPDATE orders SET amount = amount + 1")
    assert Counter(db.sql("SELECT id, amount FROM orders").rows()) == Counter(
        [(1, Decimal("11.00")), (2, Decimal("6.00"))]
    )
    assert db.epoch == before
    assert rows(db, "revenue") == Counter([(7, Decimal("10.00"), 1)])
    db.sql("ROLLBACK")
    assert rows(db, "orders") == Counter([(1, 7, Decimal("10.00"))])
    db.sql("BEGIN; DELETE FROM orders; INSERT INTO orders VALUES (1, 8, 3); COMMIT")
    assert db.epoch == before + 1
    assert rows(db, "revenue") == Counter([(8, Decimal("3.00"), 1)])


def test_an_upsert_replaces_by_key_and_the_last_of_several_wins(db):
    db.upsert("orders", [(1, 7, "1.00"), (1, 7, "2.00"), (2, 8, "5.00")])
    with db.transaction() as tx:
        tx.insert("orders", [(3, 7, "3.00")])
        tx.upsert("orders", [(3, 9, "4.00"), (2, None, None)])
    assert rows(db, "orders") == Counter(
        [(1, 7, Decimal("2.00")), (2, None, None), (3, 9, Decimal("4.00"))]
    )
    assert db.audit().ok


def test_a_change_that_cancels_makes_no_epoch(db):
    before = db.epoch
    with db.transaction() as tx:
        tx.insert("orders", [(1, 7, "1.00")])
        tx.delete("orders", [(1, 7, "1.00")])
    with db.transaction():
        pass
    assert db.epoch == before


def test_earlier_epochs_stay_readable_through_compaction(db):
    history = {}
    for number in range(1, 8):
        db.upsert("orders", [(number % 3, number, f"{number}.00")])
        history[db.epoch] = (rows(db, "orders"), rows(db, "revenue"))
    db.compact()
    history[db.epoch] = (rows(db, "orders"), rows(db, "revenue"))
    for epoch, (orders, revenue) in history.items():
        assert rows(db, "orders", epoch=epoch) == orders
        assert rows(db, "revenue", epoch=epoch) == revenue
    assert all(status.segments <= 1 for status in db.status())
    assert db.audit().ok


def test_the_change_feed_adds_up_to_the_difference_of_two_epochs(db):
    for number in range(1, 6):
        db.upsert("orders", [(number % 2, number, f"{number}.00")])
        if number == 3:
            db.compact()
    for name in ("orders", "revenue"):
        for after in range(3, db.epoch):
            total = rows(db, name, epoch=after)
            for *row, weight, epoch in db.changes(name, after=after).rows():
                assert after < epoch <= db.epoch
                total[tuple(row)] += weight
            assert +total == rows(db, name)
            assert all(weight >= 0 for weight in total.values())


def test_many_small_transactions_are_compacted_by_themselves(db):
    for number in range(40):
        db.insert("orders", [(number, number % 3, "1.00")])
    assert max(status.segments for status in db.status()) < 25
    assert db.audit().ok


def test_retention_removes_what_only_old_epochs_need(db):
    for number in range(6):
        db.insert("orders", [(number, 1, "1.00")])
    db.compact()
    assert not db.retain(2), "somebody may be reading the others"
    removed = db.retain(2, grace=0)
    assert removed
    assert rows(db, "revenue") == Counter([(1, Decimal("6.00"), 6)])
    with pytest.raises(ev.UserError) as caught:
        db.read("orders", epoch=1)
    assert caught.value.code == "S006"
    db.insert("orders", [(99, 1, "1.00")])
    assert db.audit().ok


def test_a_view_over_existing_data_is_filled_in_one_epoch(db):
    db.insert("orders", [(i, i % 4, f"{i}.00") for i in range(50)])
    before = db.epoch
    db.sql("CREATE VIEW large AS SELECT id, customer FROM orders WHERE amount > 20")
    assert db.epoch == before + 1
    assert sum(rows(db, "large").values()) == 29
    assert {row[-2] for row in db.changes("large").rows()} == {1}
    db.delete("orders", [(49, 1, "49.00")])
    assert db.audit().ok


def test_dropping_a_view_drops_its_state_and_a_new_one_may_take_its_name(db):
    db.insert("orders", [(1, 7, "1.00")])
    states = [s.name for s in db.status() if s.kind == "state"]
    assert states
    db.sql("DROP VIEW revenue")
    assert [s.name for s in db.status()] == ["orders"]
    db.sql("CREATE VIEW revenue AS SELECT COUNT(*) AS n FROM orders; DROP TABLE IF EXISTS nothing")
    db.insert("orders", [(2, 7, "1.00")])
    assert rows(db, "revenue") == Counter([(2,)])
    db.sql("DROP VIEW revenue; DROP TABLE orders")
    assert db.status() == []


def test_equal_subplans_of_two_views_are_stored_once(db):
    before = sum(s.kind == "state" for s in db.status())
    db.sql(
        "CREATE VIEW again AS SELECT customer, SUM(amount) AS t, COUNT(*) AS m"
        " FROM orders GROUP BY customer"
    )
    assert sum(s.kind == "state" for s in db.status()) == before


def test_state_holds_only_the_columns_that_derivatives_read(db):
    db.sql("CREATE TABLE wide (k BIGINT, a INT, b INT, c STRING)")
    db.sql(
        "CREATE VIEW v AS SELECT o.amount, w.a FROM orders o"
        " JOIN wide w ON w.a = o.customer WHERE w.b > 1"
    )
    held = {
        state.name: [column.name for column in db.catalog.stored()[state.name].schema]
        for state in db.catalog.maintenance.states.stored.values()
        if state.name.startswith("wide")
    }
    assert list(held.values()) == [["a"]]


def test_a_database_opens_again_where_it_was_left(db, open_db):
    db.insert("orders", [(1, 7, "1.00")])
    path, epoch = str(db.store.folder.shown), db.epoch
    with open_db(path, read_only=True) as reader:
        db.insert("orders", [(2, 7, "1.00")])
        assert reader.epoch == epoch + 1
        assert rows(reader, "revenue") == Counter([(7, Decimal("2.00"), 2)])


def test_every_type_survives_the_way_through_a_view(open_db, tmp_path):
    with open_db(tmp_path / "s") as db:
        db.sql(f"CREATE TABLE t ({COLUMNS})")
        db.sql("CREATE VIEW once AS SELECT DISTINCT * FROM t")
        db.sql(f"CREATE VIEW grouped AS SELECT {NAMES}, COUNT(*) AS n FROM t GROUP BY {NAMES}")
        db.insert("t", [ROW, ROW, NULLS])
        assert rows(db, "once") == Counter([ROW, NULLS])
        db.delete("t", [ROW])
        assert rows(db, "grouped") == Counter([(*ROW, 1), (*NULLS, 1)])
        assert db.audit().ok


def test_another_dialect_is_stored_in_its_spark_meaning(db):
    db.sql(
        "CREATE VIEW names AS SELECT id::text || '!' AS shout"
        " FROM orders WHERE amount > 1::numeric(12,2)",
        dialect="postgres",
    )
    db.insert("orders", [(1, 7, "2.00")])
    assert rows(db, "names") == Counter([("1!",)])


def test_explain_shows_what_the_last_transaction_fetched(db):
    db.insert("orders", [(1, 7, "1.00"), (2, 8, "1.00")])
    db.upsert("orders", [(1, 7, "3.00")])
    shown = "\n".join(row[0] for row in db.sql("EXPLAIN revenue").rows())
    assert "(3 rows stored) by orders.customer: 0.5 rows per changed row, last time" in shown
    assert "fetch orders" in db.explain("revenue", "program")
    assert "1 rows last time" in db.explain("revenue", "program")
    for stage in ("plan", "derivative", "sql"):
        assert db.explain("revenue", stage)
    asked = db.sql("EXPLAIN SELECT customer FROM orders WHERE amount > 1").rows()
    assert asked[0] == ("-- query: reads nothing but the change",)


def test_explain_shows_what_each_operator_reads(db):
    db.sql("CREATE TABLE names (customer BIGINT PRIMARY KEY, name STRING)")
    db.sql(
        "CREATE VIEW named AS SELECT n.name, o.amount, r.total FROM names n "
        "JOIN orders o ON o.customer = n.customer CROSS JOIN revenue r"
    )
    shown = db.explain("named")
    assert shown.startswith("-- named: what it reads has not been measured yet\n")
    assert "-- bilinear: Δ(L ⋈ R) = ΔL ⋈ (R + ΔR) + L ⋈ ΔR" in shown
    assert "-- reads names (0 rows stored) by customer: at most one row a key" in shown
    assert "-- reads revenue (0 rows stored) whole, or not at all" in shown
    db.insert("names", [(7, "Ann"), (8, "Bob")])
    db.insert("orders", [(1, 7, "1.00"), (2, 7, "2.00"), (3, 8, "1.00"), (4, 9, "1.00")])
    shown = db.explain("named")
    assert (
        "-- reads names (2 rows stored) by customer: 0.5 rows per changed row, last time" in shown
    )


@pytest.mark.spark
def test_spark_dataframes_go_in_and_out(spark, tmp_path):
    db = ev.open(str(tmp_path / "store"), spark=spark)
    db.sql(SHOP)
    db.insert(
        "orders", spark.createDataFrame([(5, 7, 9.5)], "id bigint, customer int, amount double")
    )
    found = db.read("revenue").to_spark().collect()
    assert [tuple(row) for row in found] == [(7, Decimal("9.50"), 1)]
    db.delete("orders", [(5, 7, "9.50")])
    frame = spark.createDataFrame([(1, 7, 1.5), (2, 8, 2.5)], "id int, customer int, amount double")
    db.upsert("orders", frame)
    db.upsert("orders", frame.selectExpr("id", "customer + 1 AS customer", "amount"))
    assert rows(db, "orders") == Counter([(1, 8, Decimal("1.50")), (2, 9, Decimal("2.50"))])
    db.delete("orders", db.read("orders").to_spark())
    assert rows(db, "revenue") == Counter()
    db.close()


@pytest.mark.spark
def test_the_embedded_engine_says_what_to_do_with_a_spark_dataframe(spark, tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(SHOP)
        with pytest.raises(ev.UserError) as caught:
            db.insert("orders", spark.range(1))
        assert caught.value.code == "E012"
        with pytest.raises(ev.UserError) as caught:
            db.read("orders").to_spark()
        assert caught.value.code == "E012"


def test_a_key_column_may_have_any_name(db):
    db.sql("CREATE TABLE odd (n INT, k INT, q INT, PRIMARY KEY (n, k))")
    db.sql("CREATE VIEW by_n AS SELECT n, SUM(k) AS k, COUNT(*) AS q FROM odd GROUP BY n")
    db.insert("odd", [(1, 1, 1), (1, 2, 1)])
    with pytest.raises(ev.UserError) as caught:
        db.insert("odd", [(1, 2, 9)])
    assert caught.value.code == "T010"
    assert rows(db, "by_n") == Counter([(1, 3, 2)])
