"""Constraints, defaults and generated columns beside previews, ON CONFLICT, COPY and ALTER."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import everview as ev

SETUP = """
CREATE TABLE customer (id BIGINT PRIMARY KEY, email STRING UNIQUE, chief BIGINT);
CREATE TABLE orders (
  id BIGINT PRIMARY KEY,
  customer BIGINT REFERENCES customer ON DELETE CASCADE,
  price BIGINT CHECK (price >= 0),
  pieces BIGINT DEFAULT 2,
  total BIGINT GENERATED ALWAYS AS (price * pieces));
CREATE TABLE note (
  orders BIGINT, text STRING,
  CONSTRAINT about FOREIGN KEY (orders) REFERENCES orders (id) ON DELETE SET NULL);
CREATE VIEW spent AS SELECT customer, SUM(total) AS total FROM orders GROUP BY customer;
CREATE VIEW notes AS SELECT orders, COUNT(*) AS n FROM note GROUP BY orders;
CREATE ASSERTION limits CHECK (NOT EXISTS (SELECT * FROM spent WHERE total > 1000))
"""
RELATIONS = ("customer", "orders", "note", "spent", "notes")


@pytest.fixture
def db(open_db, tmp_path):
    with open_db(tmp_path / "store", allow=[f"files:{tmp_path}"]) as opened:
        opened.sql(SETUP)
        opened.sql("INSERT INTO customer VALUES (1, 'a@x', NULL), (2, 'b@x', 1)")
        opened.sql("INSERT INTO orders (id, customer, price) VALUES (10, 1, 5), (11, 2, 7)")
        opened.sql("INSERT INTO note VALUES (10, 'a'), (10, 'a'), (11, 'b'), (NULL, 'c')")
        yield opened


def contents(db: ev.Database) -> dict[str, Counter[Any]]:
    return {name: Counter(db.read(name).rows()) for name in RELATIONS}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM customer WHERE id = 1",
        "TRUNCATE TABLE customer",
        "DELETE FROM orders WHERE id = 11",
        "DELETE FROM customer WHERE id = 2; INSERT INTO customer VALUES (2, NULL, NULL)",
    ],
)
def test_a_preview_has_what_foreign_keys_do(db, statement):
    before = contents(db)
    db.sql(f"BEGIN; {statement}")
    tx = db.handle.thread.transaction
    read = {name: Counter(tx.read(name).rows()) for name in RELATIONS}
    asked = {name: Counter(db.sql(f"SELECT * FROM {name}").rows()) for name in RELATIONS}
    pairs = {
        name: tuple(Counter(each.rows()) for each in pair)
        for name, pair in tx.preview(list(RELATIONS)).items()
    }
    shown = Counter(db.sql("EXPLAIN CHANGES OF notes").rows())
    db.sql("COMMIT")
    after = contents(db)
    assert read == asked == after
    for name, (deleted, inserted) in pairs.items():
        assert (deleted, inserted) == (before[name] - after[name], after[name] - before[name])
    weights = [row[-1] for row in shown]
    assert weights.count(-1) == len(pairs["notes"][0])
    assert db.audit().ok


def test_a_key_that_comes_back_keeps_what_refers_to_it(db):
    """Statements that change rows still see what would go: nothing has gone yet."""
    db.sql("""
        BEGIN;
        DELETE FROM customer WHERE id = 1;
        UPDATE orders SET price = 6 WHERE customer = 1;
        INSERT INTO customer VALUES (1, 'c@x', NULL);
        COMMIT""")
    assert Counter(db.read("orders").rows()) == Counter([(10, 1, 6, 2, 12), (11, 2, 7, 2, 14)])
    assert db.audit().ok


def test_a_preview_is_refused_as_the_commit_would_be(db):
    with db.transaction() as tx:
        tx.upsert("orders", [{"id": 10, "customer": 1, "price": 5000}])
        with pytest.raises(ev.UserError, match="limits"):
            tx.preview("spent")
        tx.upsert("orders", [{"id": 10, "customer": 1, "price": 4}])
        assert Counter(tx.read("spent").rows()) == Counter([(1, 8), (2, 14)])


def test_rows_have_their_defaults_however_they_come(db, tmp_path):
    """Each way gives a row without pieces and total."""
    path = tmp_path / "rows.csv"
    path.write_text("id,customer,price\n20,1,3\n")
    arrow = pa.table({"id": [21], "customer": [1], "price": [3]})
    db.sql(f"COPY INTO orders FROM '{path}'")
    with db.transaction() as tx:
        tx.insert("orders", iter(arrow.to_batches()))
        tx.apply("orders", inserted=[{"id": 22, "customer": 1, "price": 3}], minimal=True)
        tx.upsert("orders", arrow.set_column(0, "id", [[23]]))
        tx.insert("orders", [(24, 1, 3, 2)])
        path.write_text("id,customer,price\n25,1,3\n")
        tx.insert("orders", path)
    conflict = "INSERT INTO orders (id, customer, price) VALUES (26, 1, 3), (10, 1, 9) ON CONFLICT"
    assert db.sql(f"{conflict} DO NOTHING").rows() == [(1,)]
    db.sql("INSERT INTO orders VALUES (27, 1, 3, DEFAULT) ON CONFLICT (id) DO NOTHING")
    db.sql(f"{conflict} DO UPDATE SET price = excluded.price, pieces = DEFAULT")
    found = {row[0]: row[1:] for row in db.read("orders").rows()}
    assert {id_: found[id_] for id_ in range(20, 28)} == dict.fromkeys(range(20, 28), (1, 3, 2, 6))
    assert found[10] == (1, 9, 2, 18)
    assert db.audit().ok


def test_an_added_column_has_its_default_in_later_rows_too(db, open_db, tmp_path):
    db.sql("ALTER TABLE note ADD COLUMN stars BIGINT NOT NULL DEFAULT 3")
    db.sql("INSERT INTO note (orders, text) VALUES (11, 'd')")
    db.sql("ALTER TABLE note RENAME COLUMN stars TO s")
    db.insert("note", [{"text": "e"}])
    db.close()
    with open_db(tmp_path / "store") as again:
        again.insert("note", [{"text": "f"}])
        assert {row[2] for row in again.read("note").rows()} == {3}
        again.sql("ALTER TABLE note DROP COLUMN s")
        again.insert("note", [(None, "g")])
        assert again.audit().ok


REFUSED = {
    "ALTER TABLE orders RENAME COLUMN price TO cost": "total of orders is generated from price",
    "ALTER TABLE orders DROP COLUMN pieces CASCADE": "total of orders is generated from pieces",
    "ALTER TABLE customer DROP COLUMN email": "customer_email_key",
    "ALTER TABLE orders DROP COLUMN customer": "orders_customer_fkey",
    "ALTER TABLE note ALTER COLUMN orders TYPE DECIMAL(38, 0)": "about",
    "ALTER VIEW spent RENAME TO paid": "limits",
    "ALTER TABLE note RENAME TO orders_total_generated": "orders_total_generated",
    "ALTER TABLE note ADD COLUMN x BIGINT, ADD CONSTRAINT c CHECK (x > 0)": "ALTER",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_an_alter_against_a_constraint_is_refused_by_name(db, statement):
    before, epoch = contents(db), db.epoch
    with pytest.raises(ev.UserError) as caught:
        db.sql(statement)
    assert REFUSED[statement] in caught.value.problem
    assert caught.value.remedy
    assert (contents(db), db.epoch) == (before, epoch)


def test_constraints_follow_new_names(db, open_db, tmp_path):
    db.sql("""
        ALTER TABLE customer RENAME COLUMN id TO number;
        ALTER TABLE customer RENAME COLUMN email TO address;
        ALTER TABLE orders RENAME COLUMN total TO sum;
        ALTER TABLE orders RENAME COLUMN customer TO buyer;
        ALTER TABLE orders RENAME TO sales""")
    db.close()
    with open_db(tmp_path / "store") as again:
        again.sql("INSERT INTO sales (id, buyer, price) VALUES (12, 1, 4)")
        assert (12, 1, 4, 2, 8) in again.read("sales").rows()
        for wrong, name in {
            "INSERT INTO sales (id, buyer) VALUES (13, 9)": "orders_customer_fkey",
            "INSERT INTO sales (id, price) VALUES (13, -1)": "orders_price_check",
            "INSERT INTO customer VALUES (3, 'a@x', NULL)": "customer_email_key",
            "INSERT INTO note VALUES (99, 'x')": "about",
            "INSERT INTO sales (id, buyer, price) VALUES (13, 1, 999)": "limits",
        }.items():
            with pytest.raises(ev.UserError, match=name):
                again.sql(wrong)
        with pytest.raises(ev.UserError, match="sales_sum_generated"):
            again.sql("ALTER TABLE sales DROP CONSTRAINT sales_sum_generated")
        again.sql("DELETE FROM customer WHERE number = 1")
        assert Counter(again.read("note").rows()) == Counter(
            [(None, "a"), (None, "a"), (11, "b"), (None, "c")]
        )
        assert again.audit().ok


def test_cascade_drops_the_constraints_in_the_way(db):
    db.sql("ALTER TABLE customer DROP COLUMN email CASCADE")
    assert "customer_email_key" not in db.catalog.constraints
    db.sql("ALTER TABLE orders DROP COLUMN total CASCADE")
    assert {*db.catalog.constraints} == {"orders_customer_fkey", "orders_price_check", "about"}
    db.sql("ALTER TABLE orders DROP COLUMN price CASCADE")
    assert {*db.catalog.constraints} == {"orders_customer_fkey", "about"}
    db.sql("INSERT INTO orders VALUES (30, 2, 1)")
    assert db.audit().ok


def test_a_table_is_created_again_as_it_is_shown(db, open_db, tmp_path):
    shown = {n: db.sql(f"SHOW CREATE TABLE {n}").rows()[0][0] for n in ("customer", "orders")}
    with open_db(tmp_path / "other") as other:
        for statement in shown.values():
            other.sql(statement)
        again = {n: other.sql(f"SHOW CREATE TABLE {n}").rows()[0][0] for n in shown}
        names = {"customer_email_key", "orders_customer_fkey", "orders_price_check"}
        assert {*other.catalog.constraints} == {*names, "orders_total_generated"}
    assert again == shown


def test_violations_are_still_collected_where_a_table_is_altered(db):
    db.sql("ALTER TABLE note ADD CONSTRAINT short CHECK (LENGTH(text) < 2) NOT ENFORCED")
    db.sql("INSERT INTO note VALUES (10, 'long'); ALTER TABLE note ADD COLUMN x BIGINT")
    assert db.sql("SELECT COUNT(*) FROM everview.violations").rows() == [(1,)]
    with pytest.raises(ev.UserError, match="short"):
        db.sql("ALTER TABLE note RENAME COLUMN text TO words")
    with pytest.raises(ev.UserError, match="short"):
        db.sql("ALTER VIEW short RENAME TO brief")
    db.sql("ALTER TABLE note DROP COLUMN text CASCADE")
    assert "short" not in db.catalog.constraints
    assert "short" not in db.catalog.views
    assert db.audit().ok
