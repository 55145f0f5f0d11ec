"""Constraints, defaults and generated columns beside previews, ON CONFLICT, COPY and ALTER."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
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
    "ALTER TABLE orders DROP COLUMN price": "total of orders is generated from price",
    "ALTER TABLE orders DROP COLUMN pieces CASCADE": "total of orders is generated from pieces",
    "ALTER TABLE customer DROP COLUMN email": "customer_email_key",
    "ALTER TABLE orders DROP COLUMN customer": "orders_customer_fkey",
    "ALTER TABLE note ALTER COLUMN orders TYPE DECIMAL(38, 0)": "about",
    "ALTER TABLE orders ALTER COLUMN id TYPE DECIMAL(38, 0)": "about",
    "ALTER TABLE orders DROP COLUMN total": "spent, limits would break",
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
        ALTER TABLE orders RENAME COLUMN price TO cost;
        ALTER TABLE orders RENAME COLUMN cost TO price;
        ALTER VIEW spent RENAME TO paid;
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
    db.sql("ALTER TABLE note RENAME COLUMN text TO words; ALTER TABLE note RENAME TO remark")
    db.sql("INSERT INTO remark (words) VALUES ('longer'), ('c')")
    assert db.sql("SELECT COUNT(*) FROM everview.violations").rows() == [(2,)]
    with pytest.raises(ev.UserError, match="short"):
        db.sql("ALTER VIEW short RENAME TO brief")
    db.sql("ALTER TABLE remark DROP COLUMN words CASCADE")
    assert "short" not in db.catalog.constraints
    assert "short" not in db.catalog.views
    assert db.audit().ok


NAMED = """
CREATE TABLE p (id BIGINT PRIMARY KEY, x INT);
CREATE TABLE c (
  id BIGINT PRIMARY KEY, p BIGINT,
  n INT CHECK (n > 0 AND c.n < 1000),
  list ARRAY<INT> CHECK (FORALL(list, q -> q <= n)),
  twice INT GENERATED ALWAYS AS (c.n * 2));
CREATE VIEW sums AS SELECT p, SUM(n) AS total FROM c GROUP BY p;
CREATE ASSERTION limits CHECK (NOT EXISTS (SELECT * FROM sums WHERE total > 100));
CREATE ASSERTION natural CHECK (NOT EXISTS (SELECT * FROM c NATURAL JOIN p WHERE x = n));
CREATE ASSERTION counts CHECK ((SELECT COUNT(*) FROM c WHERE n = 7) <= (SELECT COUNT(*) FROM p));
CREATE ASSERTION soft CHECK (NOT EXISTS (SELECT * FROM c WHERE n = 8)) NOT ENFORCED;
INSERT INTO p VALUES (1, 1), (2, 5)
"""
RENAMES = (
    "ALTER TABLE {c} RENAME COLUMN {n} TO amount",
    "ALTER TABLE {c} RENAME COLUMN p TO parent",
    "ALTER TABLE {c} RENAME TO child",
    "ALTER TABLE p RENAME TO parents",
    "ALTER VIEW sums RENAME TO totals",
    "ALTER TABLE {c} ADD COLUMN x INT",
)
WRONG = {
    "(3, 9, -1, NULL)": "c_n_check",
    "(3, 9, 1000, NULL)": "c_n_check",
    "(3, 9, 1, ARRAY(2))": "c_list_check",
    "(3, 9, 101, NULL)": "limits",
    "(1, 9, 1, NULL)": "natural",
    "(3, 1, 7, NULL), (4, 1, 7, NULL), (5, 1, 7, NULL)": "counts",
}


@pytest.mark.parametrize("order", [RENAMES, RENAMES[::-1], (*RENAMES[2:], *RENAMES[:2])])
def test_a_constraint_means_the_same_under_new_names(tmp_path, order):
    """What each refuses is written here by hand; an added column must not join a NATURAL JOIN."""
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(NAMED)
        c, n, p = "c", "n", "p"
        for statement in order:
            db.sql(statement.format(c=c, n=n))
            c = "child" if statement.endswith("TO child") else c
            n = "amount" if statement.endswith("TO amount") else n
            p = "parent" if statement.endswith("TO parent") else p
            refuses_what_is_wrong(db, f"INSERT INTO {c} (id, {p}, {n}, list) VALUES")
        db.sql("INSERT INTO child (id, parent, amount) VALUES (13, 1, 8), (14, 2, 7)")
        assert db.sql("SELECT `row` FROM everview.violations").rows() == [
            ("(id=13, p=1, n=8, list=None, twice=16)",)
        ]
        shown = db.sql("SHOW CREATE TABLE child").rows()[0][0]
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        refuses_what_is_wrong(db, "INSERT INTO child (id, parent, amount, list) VALUES")
        db.sql("DELETE FROM child WHERE id = 13")
        assert db.sql("SELECT * FROM everview.violations").rows() == []
        assert db.audit().ok
        db.sql("DROP TABLE parents CASCADE; DROP TABLE child CASCADE")
        db.sql(shown)
        assert db.sql("SHOW CREATE TABLE child").rows() == [(shown,)]


def refuses_what_is_wrong(db: ev.Database, insert: str) -> None:
    for rows, name in WRONG.items():
        with pytest.raises(ev.UserError, match=f"{name} is violated"):
            db.sql(f"{insert} {rows}")


def test_a_new_name_that_means_something_else_in_a_constraint_is_refused(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("""
            CREATE TABLE t (
              a INT, list ARRAY<INT> CHECK (EXISTS(list, b -> b > a)), s STRUCT<a: INT>,
              c INT CHECK (t.c > 0))""")
        for statement, named in {
            "ALTER TABLE t RENAME COLUMN a TO b": "t_list_check",
            "ALTER TABLE t RENAME COLUMN c TO t": "t_c_check",
            "ALTER TABLE t RENAME TO s": "t_c_check",
        }.items():
            with pytest.raises(ev.UserError, match=f"{named} would break") as caught:
                db.sql(statement)
            assert caught.value.span is not None


RESTING = """
CREATE TABLE p (id BIGINT PRIMARY KEY, name STRING UNIQUE);
CREATE TABLE c (id BIGINT PRIMARY KEY, p BIGINT REFERENCES p, name STRING REFERENCES p (name));
CREATE TABLE d (n INT);
CREATE VIEW counts AS SELECT p, COUNT(*) AS n FROM c GROUP BY p;
CREATE VIEW over AS SELECT counts.p FROM counts JOIN d ON counts.n = d.n;
CREATE VIEW apart AS SELECT n FROM d;
CREATE ASSERTION few CHECK (NOT EXISTS (SELECT * FROM counts WHERE n > 2));
CREATE ASSERTION soft CHECK (NOT EXISTS (SELECT * FROM over)) NOT ENFORCED;
CREATE VIEW on_soft AS SELECT p FROM soft;
INSERT INTO p VALUES (1, 'a'); INSERT INTO c VALUES (1, 1, 'a'); INSERT INTO d VALUES (1)
"""


def test_drop_cascade_takes_what_rests_on_it_and_no_more(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql(RESTING)
        epoch = db.epoch
        for statement, named in {
            "DROP VIEW counts": "read by over, few",
            "DROP VIEW counts RESTRICT": "read by over, few",
            "DROP TABLE p": "c_p_fkey",
            "DROP VIEW soft CASCADE": "view of a constraint",
            "DROP TABLE nowhere CASCADE": "nowhere",
            "DROP TABLE counts CASCADE": "counts is a view",
            "DROP FUNCTION f CASCADE": "DROP FUNCTION",
        }.items():
            with pytest.raises(ev.UserError, match=named) as caught:
                db.sql(statement)
            assert caught.value.span is not None
            assert caught.value.remedy
        assert db.epoch == epoch
        db.sql("DROP VIEW counts CASCADE")
        assert [*db.catalog.views] == ["apart"]
        assert {*db.catalog.constraints} == {"p_name_key", "c_p_fkey", "c_name_fkey"}
        db.sql("DROP TABLE p CASCADE; DROP TABLE IF EXISTS p CASCADE")
        assert db.catalog.constraints == {}
        db.sql("INSERT INTO c VALUES (2, 9, 'z')")
    with open_db(tmp_path / "store") as db:
        assert Counter(db.read("c").rows()) == Counter([(1, 1, "a"), (2, 9, "z")])
        assert db.read("apart").rows() == [(1,)]
        assert db.audit().ok
        db.sql("DROP TABLE d CASCADE")
        assert not db.catalog.views


def test_an_error_in_a_check_names_the_constraint(tmp_path):
    """Also where a view reads the same table, and the check fails on its way."""
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("""
            CREATE TABLE p (id INT PRIMARY KEY);
            CREATE VIEW v AS SELECT id FROM p WHERE id IN (SELECT id + 1 FROM p);
            CREATE ASSERTION single CHECK ((SELECT id FROM p) = 1);
            INSERT INTO p VALUES (1)""")
        with pytest.raises(ev.UserError, match="in the constraint single"):
            db.sql("INSERT INTO p VALUES (2)")
        assert db.read("p").rows() == [(1,)]


def test_a_default_is_computed_when_it_is_declared_and_when_rows_come(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        for wrong in ("INT DEFAULT 'x'", "TINYINT DEFAULT 300"):
            with pytest.raises(ev.UserError) as caught:
                db.sql(f"CREATE TABLE wrong (a INT, b {wrong})")
            assert caught.value.span is not None
        assert db.catalog.find("wrong") is None
        began = datetime.now(UTC)
        db.sql("""
            CREATE TABLE t (
              a INT, at TIMESTAMP DEFAULT current_timestamp(), on DATE DEFAULT current_date());
            INSERT INTO t (a) VALUES (1), (2);
            INSERT INTO t VALUES (3, DEFAULT, DEFAULT), (4, DEFAULT, DEFAULT)""")
        db.insert("t", [{"a": 5}])
        rows = sorted(db.read("t").rows())
        ended = datetime.now(UTC)
        moments = [at for _, at, _ in rows]
        assert began <= moments[0] == moments[1] < moments[2] == moments[3] < moments[4] <= ended
        assert {day for _, _, day in rows} <= {began.date(), ended.date()}
        db.sql("ALTER TABLE t ADD COLUMN seen TIMESTAMP DEFAULT current_timestamp()")
        assert len({row[3] for row in db.read("t").rows()}) == 1
        assert db.audit().ok
