"""Bad input: a clear error with its place and remedy, and nothing changed."""

from __future__ import annotations

import json

import pytest

import everview as ev
from cases import check_each, sampled

SETUP = """
CREATE TABLE orders (
  id BIGINT PRIMARY KEY, customer BIGINT NOT NULL, amount DECIMAL(12,2), day DATE);
CREATE TABLE customers (id BIGINT, name STRING);
CREATE MATERIALIZED VIEW revenue AS
  SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer;
CREATE MATERIALIZED VIEW big AS SELECT customer FROM revenue WHERE total > 10
"""

BAD_SQL = {
    "SELEC 1": ("Q001", "SELEC 1", None),
    "SELECT * FROM orders WHERE (": ("Q001", None, None),
    "SELECT 'open": ("Q001", None, "quote"),
    "GRANT ALL ON orders TO me": ("Q003", "GRANT", None),
    "CREATE VIEW v AS SELECT * FROM nowhere": ("Q006", "nowhere", "orders"),
    "CREATE VIEW v AS SELECT amuont FROM orders": ("Q007", "amuont", "amount"),
    "CREATE VIEW v AS SELECT x.id FROM orders": ("Q006", "x", "orders"),
    "CREATE VIEW v AS SELECT frobnicate(id) FROM orders": {
        "spark": ("Q023", "frobnicate(id", "spelling"),
        "duckdb": ("E011", "frobnicate(id", "engine='spark'"),
    },
    "CREATE VIEW v AS SELECT id FROM orders o JOIN customers c ON o.customer = c.id": (
        "Q008",
        "id",
        "o.id or c.id",
    ),
    "CREATE VIEW v AS SELECT id + TRUE AS x FROM orders": {
        "spark": ("Q010", "id", "reference"),
        "duckdb": ("E011", "id", "engine='spark'"),
    },
    "CREATE VIEW v AS SELECT id FROM orders WHERE amount": ("Q013", "amount", "compare"),
    "CREATE VIEW v AS SELECT SUM(day) FROM orders": ("Q013", "SUM(day", "CAST"),
    "CREATE VIEW v AS SELECT rand() AS r FROM orders": ("Q021", "rand", "store it"),
    "CREATE VIEW v AS SELECT id, now() AS t FROM orders": ("Q021", "now", "store it"),
    "CREATE VIEW v AS SELECT uuid() AS u FROM orders": ("Q021", "uuid", "store it"),
    "CREATE VIEW v AS SELECT current_date() AS u FROM orders": ("Q021", "current_date", "store"),
    "CREATE VIEW v AS SELECT id, amount FROM orders GROUP BY id": ("Q009", "amount", "GROUP BY"),
    "CREATE VIEW v AS SELECT id FROM orders WHERE SUM(amount) > 1": ("Q009", None, "HAVING"),
    "CREATE VIEW v AS SELECT id AS a, customer AS A FROM orders": ("Q011", None, "AS"),
    "CREATE VIEW v AS SELECT id FROM orders UNION ALL SELECT id, 1 FROM orders": (
        "Q012",
        None,
        "both sides",
    ),
    "CREATE VIEW v AS SELECT id FROM orders LIMIT 3": ("Q020", None, "come first"),
    "CREATE VIEW v AS SELECT id FROM orders ORDER BY 2 LIMIT 1": ("Q009", None, "use 1 to 1"),
    "CREATE VIEW v AS SELECT try_sum(id) FROM orders": ("Q020", "try_sum(id", "SUM"),
    "CREATE VIEW v AS SELECT FIRST(id) AS f FROM orders": ("Q020", "FIRST(id", "MIN or MAX"),
    "CREATE VIEW v AS SELECT ANY_VALUE(id) AS f FROM orders GROUP BY day": (
        "Q020",
        "ANY_VALUE(id",
        "MIN or MAX",
    ),
    "CREATE VIEW v AS SELECT percentile_approx(id, 0.5) AS p FROM orders": (
        "Q020",
        None,
        "PERCENTILE",
    ),
    "CREATE VIEW v AS SELECT percentile(id, 1.5) AS p FROM orders": ("Q020", None, "from 0 to 1"),
    "CREATE VIEW v AS SELECT percentile(id, 0.5, 2) AS p FROM orders": ("Q020", None, "SUM"),
    "CREATE VIEW v AS SELECT max_by(id, day, 2) AS p FROM orders": ("Q020", None, "aggregate"),
    "CREATE VIEW v AS SELECT LISTAGG(name) AS p FROM customers": ("Q020", None, "WITHIN GROUP"),
    "CREATE VIEW v AS SELECT LISTAGG(DISTINCT name) WITHIN GROUP (ORDER BY id) AS p"
    " FROM customers": ("Q020", "id", "order by the string"),
    "CREATE VIEW v AS SELECT STDDEV(day) AS p FROM orders": ("Q013", None, "CAST"),
    "CREATE VIEW v AS SELECT BIT_OR(amount) AS p FROM orders": ("Q013", None, "CAST"),
    "CREATE VIEW v AS SELECT COUNT() AS p FROM orders": ("Q001", ")", "correct"),
    "CREATE VIEW v AS SELECT COUNT(DISTINCT id) OVER () AS p FROM orders": (
        "Q020",
        None,
        "another function",
    ),
    "CREATE VIEW v AS SELECT MEDIAN(id) OVER () AS p FROM orders": ("Q020", None, "GROUP BY"),
    "CREATE VIEW v AS SELECT LAST_VALUE(amount) IGNORE NULLS OVER (ORDER BY day) AS p"
    " FROM orders": ("Q020", None, "ROWS BETWEEN"),
    "CREATE VIEW v AS SELECT SUM(id) OVER (ORDER BY id RANGE BETWEEN INTERVAL 1 DAY PRECEDING"
    " AND CURRENT ROW) AS p FROM orders": ("Q020", None, "one unit"),
    "CREATE VIEW v AS SELECT id FROM orders WHERE id IN (SELECT id, name FROM customers)": (
        "Q012",
        None,
        "as many columns",
    ),
    "CREATE VIEW v AS SELECT (SELECT id, name FROM customers) AS x FROM orders": (
        "Q012",
        None,
        "one column",
    ),
    "CREATE VIEW v AS SELECT id FROM orders GROUP BY id HAVING EXISTS"
    " (SELECT 1 FROM customers c WHERE c.id = orders.amount)": ("Q009", "amount", "GROUP BY"),
    "CREATE VIEW v AS SELECT row_number() OVER () AS n FROM orders": ("Q020", None, "comes first"),
    "CREATE VIEW v AS SELECT id FROM orders WHERE rank() OVER (ORDER BY id) = 1": (
        "Q009",
        None,
        "QUALIFY",
    ),
    "CREATE VIEW v AS SELECT id FROM orders WHERE SUM(id) > (SELECT 1 AS x)": (
        "Q009",
        "SUM(id",
        "HAVING",
    ),
    "CREATE VIEW v AS SELECT id FROM orders WHERE rank() OVER (ORDER BY id) IN (SELECT 1 AS x)": (
        "Q009",
        None,
        "QUALIFY",
    ),
    "CREATE VIEW v AS SELECT COUNT(*) AS n FROM orders GROUP BY rank() OVER (ORDER BY id)": (
        "Q009",
        None,
        "subquery in FROM",
    ),
    "CREATE VIEW v AS SELECT SUM(rank() OVER (ORDER BY id)) AS n FROM orders": (
        "Q009",
        None,
        "subquery in FROM",
    ),
    "CREATE VIEW v AS SELECT rank() OVER (ORDER BY id) IN (SELECT 1 AS x) AS n FROM orders": (
        "Q009",
        None,
        "subquery in FROM",
    ),
    "CREATE VIEW v AS SELECT id, (SELECT COUNT(b.id) FROM customers a"
    " RIGHT JOIN customers b ON a.id = b.id AND b.id = orders.id) AS n FROM orders": (
        "Q020",
        "orders.id",
        "WHERE",
    ),
    "CREATE VIEW v AS SELECT id, GROUPING(customer) AS g FROM orders GROUP BY ROLLUP(id)": (
        "Q009",
        "customer",
        "ROLLUP",
    ),
    "CREATE VIEW v AS SELECT id, amount FROM orders GROUP BY ROLLUP(id)": (
        "Q009",
        "amount",
        "GROUP BY",
    ),
    "CREATE VIEW v AS SELECT o.id FROM orders o RIGHT JOIN LATERAL (SELECT 1 AS x) y ON TRUE": (
        "Q020",
        None,
        "LEFT JOIN",
    ),
    "CREATE VIEW v AS SELECT o.id FROM orders o, LATERAL (SELECT 1 AS x) y(a, b)": (
        "Q012",
        None,
        "every column",
    ),
    "CREATE VIEW v AS SELECT o.id FROM orders o, LATERAL (SELECT o.id AS x) O": (
        "Q008",
        "o.id",
        "own alias",
    ),
    "CREATE VIEW v AS SELECT id FROM orders WHERE id > ALL (SELECT id, name FROM customers)": (
        "Q012",
        None,
        "before > ALL",
    ),
    "CREATE VIEW v AS SELECT * FROM orders UNPIVOT (a FOR b IN ((id, customer)))": (
        "Q020",
        None,
        "as many columns",
    ),
    "CREATE VIEW v AS SELECT id FROM orders EXCEPT SELECT * FROM customers": ("Q012", None, None),
    "CREATE VIEW v AS WITH RECURSIVE r AS (SELECT n FROM r) SELECT n FROM r": (
        "Q022",
        "r AS (SELECT n FROM r",
        "before UNION",
    ),
    "CREATE VIEW v AS SELECT ARRAY() AS a FROM orders": ("Q014", None, "CAST"),
    "CREATE VIEW v AS SELECT DISTINCT map('a', id) AS m FROM orders": ("Q020", None, "MAP_ENTRIES"),
    "CREATE VIEW v AS SELECT COUNT(*) AS n FROM orders GROUP BY map(1, id)": (
        "Q020",
        "map(1, id",
        "MAP_ENTRIES",
    ),
    "CREATE VIEW v AS SELECT map(1, id) AS m FROM orders EXCEPT ALL SELECT map(1, 2)": (
        "Q020",
        None,
        "MAP_ENTRIES",
    ),
    "CREATE VIEW v AS SELECT id + explode(ARRAY(1)) AS e FROM orders": (
        "Q020",
        "explode(ARRAY(1",
        "LATERAL VIEW",
    ),
    "CREATE VIEW v AS SELECT col FROM orders LATERAL VIEW explode(array(id))": (
        "Q001",
        "explode(array(id",
        "name AS column",
    ),
    "CREATE VIEW v AS SELECT explode(id) FROM orders": ("Q013", "explode(id", "array"),
    "CREATE VIEW v AS SELECT inline(ARRAY(id)) FROM orders": ("Q013", None, "structs"),
    "CREATE VIEW v AS SELECT posexplode(ARRAY(id)) AS e FROM orders": (
        "Q012",
        None,
        "every column",
    ),
    "CREATE VIEW v AS SELECT explode(ARRAY(id)) AS e, COUNT(*) AS n FROM orders GROUP BY 1": (
        "Q020",
        None,
        "subquery",
    ),
    "CREATE VIEW v AS SELECT explode(ARRAY(id)) AS e, RANK() OVER (ORDER BY id) AS r FROM orders": (
        "Q020",
        None,
        "subquery",
    ),
    "CREATE VIEW v AS SELECT e FROM orders FULL JOIN LATERAL explode(ARRAY(id)) AS x(e) ON TRUE": (
        "Q020",
        None,
        "LATERAL",
    ),
    "CREATE VIEW v AS SELECT id.x FROM orders": ("Q007", "id.x", "only structs"),
    "CREATE VIEW v AS SELECT r.b FROM (SELECT STRUCT(id AS a) AS r FROM orders)": (
        "Q007",
        "r.b",
        "the fields are a",
    ),
    "CREATE TABLE bad (id ARRAY<INT> PRIMARY KEY)": ("Q004", None, "plain values"),
    "CREATE TABLE bad (id STRUCT<a: INT, A: INT>)": ("Q005", None, "STRUCT"),
    "CREATE TABLE bad (id MAP<ARRAY<INT>, INT>)": ("Q005", None, "MAP"),
    "CREATE VIEW v AS SELECT NULL AS nothing FROM orders": ("Q014", None, "CAST NULL"),
    "CREATE VIEW revenue AS SELECT 1 AS x FROM orders": ("C001", None, "another name"),
    "CREATE TABLE orders (id INT)": ("C001", None, "IF NOT EXISTS"),
    "CREATE TABLE bad (id INT, _w INT)": ("Q011", None, "_w"),
    "CREATE TABLE bad (id INT, `a``b` INT)": ("Q011", None, "plain name"),
    "CREATE VIEW v AS SELECT id AS _w FROM orders": ("Q011", None, "plain name"),
    "CREATE TABLE bad (id INT CHECK (nope > 0))": ("C009", None, "columns"),
    "CREATE TABLE bad (id INT, PRIMARY KEY (nope))": ("Q006", None, "id"),
    "CREATE TABLE bad (x INTERVAL)": ("Q005", "x", "DATE"),
    "DROP TABLE orders": ("C003", None, "drop revenue first"),
    "DROP VIEW revenue": ("C003", None, "drop big first"),
    "DROP TABLE revenue": ("C005", None, "DROP VIEW"),
    "DROP TABLE nowhere": ("C002", None, "orders"),
    "INSERT INTO nowhere VALUES (1)": ("C002", None, "orders"),
    "INSERT INTO revenue VALUES (1, 2)": ("C004", None, "orders"),
    "INSERT INTO orders VALUES (1, 2)": ("T002", None, "id, customer"),
    "INSERT INTO orders (id, nope) VALUES (1, 2)": ("Q007", None, "amount"),
    "INSERT INTO orders VALUES (5, 'abc', 1, NULL)": ("E010", None, None),
    "INSERT INTO orders VALUES (5, 1, 99999999999999, NULL)": ("E010", None, None),
    "INSERT INTO orders VALUES (5, NULL, 1, NULL)": ("T012", None, "value"),
    "INSERT INTO orders VALUES (1, 1, 1, NULL)": ("T010", None, "upsert"),
    "INSERT INTO orders VALUES (5, 1, 1, NULL), (5, 2, 1, NULL)": ("T010", None, "upsert"),
    "UPDATE orders SET id = 2 WHERE id = 1": ("T010", None, "upsert"),
    "UPDATE orders SET nope = 1": ("Q007", None, "amount"),
    "DELETE FROM orders WHERE nope = 1": {
        "spark": ("Q010", "nope", "reference"),
        "duckdb": ("Q007", "nope", "amount"),
    },
    "MERGE INTO orders USING (SELECT 1 AS id UNION ALL SELECT 1) s ON orders.id = s.id"
    " WHEN MATCHED THEN DELETE": ("T006", None, "unique"),
    "SELECT nope FROM orders": {
        "spark": ("Q010", "nope", "reference"),
        "duckdb": ("Q007", "nope", "amount"),
    },
    "SELECT * FROM nowhere": {
        "spark": ("Q006", "nowhere", "create the table"),
        "duckdb": ("Q006", "nowhere", "there are: big, customers, orders, revenue"),
    },
    "COMMIT": ("T008", "COMMIT", "BEGIN"),
    "EXPLAIN nowhere": ("C002", None, "orders"),
}


@pytest.fixture(scope="module")
def shop(open_db, tmp_path_factory):
    db = open_db(tmp_path_factory.mktemp("errors") / "store")
    db.sql(SETUP)
    db.insert("orders", [(1, 7, "10.00", "2026-01-01"), (2, 7, "5.50", None)])
    yield db
    db.close()


def unchanged(db, do) -> ev.UserError:
    """The error that `do` raises; afterwards everything is as it was."""
    before = (db.epoch, db.catalog.to_json(), contents(db))
    error = refused(db, do)
    assert (db.epoch, db.catalog.to_json(), contents(db)) == before
    return error


def refused(db, do) -> ev.UserError:
    """The error that `do` raises, and leaves epoch and catalog as they were."""
    before = (db.epoch, db.catalog.to_json())
    with pytest.raises(ev.UserError) as caught:
        do()
    assert (db.epoch, db.catalog.to_json()) == before
    assert caught.value.remedy
    return caught.value


def contents(db):
    return db.read("orders").rows(), db.read("revenue").rows()


def test_bad_sql_is_refused_with_its_place_and_a_remedy(shop):
    """The contents are read once before and after all, as reading is what takes Spark's time."""

    def check(text: str) -> None:
        expected = BAD_SQL[text]
        code, place, remedy = expected[shop.engine.name] if isinstance(expected, dict) else expected
        error = refused(shop, lambda: shop.sql(text))
        assert error.code == code, error.render()
        if place is not None:
            assert error.span is not None, error.render()
            found = error.span.text[error.span.start : error.span.stop]
            assert (found and found in place) or place in found, error.render()
        if remedy is not None:
            assert remedy in error.remedy, error.render()

    before = contents(shop)
    cases = sampled(BAD_SQL, shop.engine.name, always=lambda text: isinstance(BAD_SQL[text], dict))
    check_each(cases, check)
    assert contents(shop) == before


def test_a_place_counts_from_the_text_the_user_wrote(shop):
    text = "SELECT 1;\n\nCREATE VIEW v AS\n  SELECT amuont FROM orders"
    error = unchanged(shop, lambda: shop.sql(text))
    assert (error.span.line, error.span.column) == (4, 10)
    assert "4 |   SELECT amuont FROM orders" in error.render()


BAD_ROWS = {
    "a text in a number": [(3, "x", "1.00", None)],
    "a float in a decimal": [(3, 1, 1.5, None)],
    "too many digits": [(3, 1, "1.005", None)],
    "too large": [(3, 1, "12345678901234.00", None)],
    "not a date": [(3, 1, "1.00", "tomorrow")],
    "too few values": [(3, 1)],
    "an unknown column": [{"id": 3, "customer": 1, "colour": "red"}],
    "not a row": [5],
    "out of range": [(2**63, 1, "1.00", None)],
    "not rows": "id=3",
}


def test_rows_that_do_not_fit_are_refused(shop):
    def check(what: str) -> None:
        error = refused(shop, lambda: shop.insert("orders", BAD_ROWS[what]))
        assert error.code == "T001", error.render()
        assert "orders" in error.problem

    before = contents(shop)
    check_each(BAD_ROWS, check)
    assert contents(shop) == before


def test_deleting_what_is_not_there_is_refused(shop):
    for rows in ([(9, 9, "1.00", None)], [(1, 7, "10.01", "2026-01-01")]):
        error = unchanged(shop, lambda rows=rows: shop.delete("orders", rows))
        assert error.code == "T011"
        assert str(rows[0][0]) in error.problem


def test_deleting_a_row_twice_is_refused(shop):
    row = (2, 7, "5.50", None)
    error = unchanged(shop, lambda: shop.delete("orders", [row, row]))
    assert error.code == "T011"


def test_an_error_inside_a_transaction_leaves_nothing(shop):
    def do() -> None:
        with shop.transaction() as tx:
            tx.insert("orders", [(50, 1, "1.00", None)])
            tx.insert("customers", [(1, "a")])
            raise ev.UserError("X", "stop", remedy="none")

    unchanged(shop, do)
    assert shop.read("customers").rows() == []


def test_division_by_zero_in_a_view_refuses_the_transaction(open_db, tmp_path):
    with open_db(tmp_path / "s") as db:
        db.sql("CREATE TABLE orders (id INT, n INT)")
        db.sql("CREATE VIEW revenue AS SELECT id, 10 / n AS x FROM orders")
        db.insert("orders", [(1, 5)])
        error = unchanged(db, lambda: db.insert("orders", [(2, 0)]))
        assert error.code == "E010"


def test_a_second_writer_is_told_who_has_the_store(shop, open_db):
    with pytest.raises(ev.UserError) as caught:
        open_db(shop.store.folder.shown)
    assert caught.value.code == "S008"
    with open_db(shop.store.folder.shown, read_only=True) as reader:
        assert sorted(reader.read("revenue").rows()) == sorted(shop.read("revenue").rows())
        with pytest.raises(ev.UserError) as refused:
            reader.insert("orders", [])
        assert refused.value.code == "T009"


def test_a_damaged_or_newer_store_is_refused(open_db, tmp_path):
    path = tmp_path / "store"
    with open_db(path) as db:
        db.sql("CREATE TABLE t (a INT)")
        db.insert("t", [(1,)])
    newest = sorted((path / "manifests").glob("*.json"))[-1]
    good = newest.read_bytes()
    newest.write_bytes(good[: len(good) // 2])
    with pytest.raises(ev.UserError) as caught:
        open_db(path)
    assert caught.value.code == "S002"
    raw = json.loads(good.splitlines()[-1])
    raw["format"] = 99
    newest.write_text(json.dumps(raw))
    with pytest.raises(ev.UserError) as caught:
        open_db(path)
    assert caught.value.code == "S001"
    newest.write_bytes(good)
    with open_db(path) as db:
        assert db.read("t").rows() == [(1,)]
        db.insert("t", [(each,) for each in range(5000)])
    for segment in [*(path / "segments").rglob("*.parquet"), *(path / "changes").iterdir()]:
        whole = segment.read_bytes()
        segment.write_bytes(whole[:100])
        with open_db(path) as db, pytest.raises(ev.UserError) as caught:
            db.read("t").rows()
        assert caught.value.code == "S003"
        assert segment.name in caught.value.problem
        segment.write_bytes(whole)


def test_opening_what_is_not_a_store_says_so(open_db, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ev.UserError) as caught:
        open_db(tmp_path)
    assert caught.value.code == "S005"
    with pytest.raises(ev.UserError) as caught:
        open_db(tmp_path / "none", read_only=True)
    assert caught.value.code == "S004"
    with pytest.raises(ev.UserError) as caught:
        ev.open(str(tmp_path / "none"), engine="abacus")
    assert caught.value.code == "E002"
