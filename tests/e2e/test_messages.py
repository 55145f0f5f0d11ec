"""What messages say: the nearest name that there is, and where a value cannot be computed."""

from __future__ import annotations

import pytest

import everview as ev
from e2e.messages import internals

SETUP = """
CREATE TABLE orders (id INT, price INT, pieces INT, note STRING);
CREATE VIEW each AS SELECT id, price / pieces AS one FROM orders;
CREATE VIEW above AS SELECT one FROM each WHERE one > 1;
CREATE VIEW other AS SELECT id, price * 2 AS double_price FROM orders
"""


@pytest.fixture(scope="module")
def db(open_db, tmp_path_factory):
    opened = open_db(tmp_path_factory.mktemp("messages") / "store")
    opened.sql(SETUP)
    yield opened
    opened.close()


def refusal(run) -> ev.UserError:
    with pytest.raises(ev.UserError) as caught:
        run()
    return caught.value


@pytest.mark.parametrize(
    ("run", "near"),
    [
        (lambda db: db.sql("CREATE VIEW v AS SELECT id FROM ordres"), "orders"),
        (lambda db: db.read("ordres"), "orders"),
        (lambda db: db.insert("Ordesr", []), "orders"),
        (lambda db: db.sql("CREATE VIEW v AS SELECT pirce FROM orders"), "price"),
        (lambda db: db.insert("orders", [{"pirce": 1}]), "price"),
        (lambda db: db.sql("SELECT 1 AS x", dialect="postgress"), "postgres"),
        (lambda db: db.explain("each", "operator"), "operators"),
        (
            lambda db: db.sql("CREATE VIEW v AS SELECT substrng(note, 1) AS x FROM orders"),
            "substring",
        ),
        (lambda db: ev.open("x", engine="sparc"), "spark"),
        (lambda db: db.sql("DROP FUNCTION substrin"), None),
    ],
)
def test_a_name_that_is_nearly_one_is_asked_back(db, run, near):
    error = refusal(lambda: run(db))
    assert near is None or f"did you mean {near}?" in error.remedy, error.render()


@pytest.mark.parametrize("way", ["insert", "statement"])
def test_a_division_by_zero_names_its_view_and_expression(db, way):
    before = db.epoch
    if way == "insert":
        error = refusal(lambda: db.insert("orders", [(1, 5, 0, None)]))
    else:
        error = refusal(lambda: db.sql("INSERT INTO orders VALUES (1, 5, 0, NULL)"))
    assert error.code == "E010"
    assert "division by zero" in error.problem.lower(), error.render()
    assert "price / pieces in the view each" in error.problem, error.render()
    assert "other" not in error.problem
    assert "above" not in error.problem
    assert db.epoch == before


def test_a_view_that_cannot_be_built_names_its_expression(db):
    db.insert("orders", [(1, 5, 1, "abc")])
    try:
        text = "CREATE VIEW v AS SELECT CAST(note AS INT) AS n, price + 1 AS m FROM orders"
        error = refusal(lambda: db.sql(text))
        assert error.code == "E010"
        assert "CAST(note AS INT) in the view v" in error.problem, error.render()
    finally:
        db.delete("orders", [(1, 5, 1, "abc")])


def test_an_overflow_names_its_expression(db):
    error = refusal(lambda: db.insert("orders", [(1, 2**31 - 1, 1, None)]))
    assert "price * 2 in the view other" in error.problem, error.render()


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("SELECT 7 % (1 - 1) AS x", "7 % (1 - 1)"),
        ("SELECT CAST('a' AS INT) AS x", "CAST('a' AS INT)"),
        ("INSERT INTO orders VALUES (1 / 0, 1, 1, NULL)", "1 / 0"),
    ],
)
def test_a_statement_names_its_expression(db, text, expression):
    error = refusal(lambda: (found := db.sql(text)) and found.rows())
    assert error.code in ("E010", "Q010")
    assert expression in error.render(), error.render()


def test_deep_correlation_is_called_that(db):
    text = (
        "CREATE VIEW v AS SELECT a.id FROM orders a JOIN (SELECT id FROM"
        " (SELECT id FROM orders b WHERE b.price = a.price) r) q ON a.id = q.id"
    )
    error = refusal(lambda: db.sql(text))
    assert "deep correlation" in error.problem, error.render()
    assert "LATERAL" in error.remedy
    plain = refusal(lambda: db.sql("CREATE VIEW v AS SELECT a.id FROM orders"))
    assert "deep" not in plain.problem


LEAKING = """
SELECT soundex(GROUPING(id)) AS x FROM orders GROUP BY ROLLUP(id)
SELECT id, (SELECT MAX(soundex(o.note)) FROM orders b WHERE b.id = o.id) AS x FROM orders o
SELECT transform(array(id), e -> soundex(e)) AS x FROM orders
SELECT * FROM (SELECT id, map(id, price) AS m, price FROM orders) PIVOT (SUM(price) FOR id IN (1))
SELECT * FROM (SELECT id, price FROM orders) PIVOT (SUM(price) FOR id IN ('x', TRUE, 1.5))
SELECT id FROM orders QUALIFY soundex(ROW_NUMBER() OVER (ORDER BY id)) = 'a'
SELECT id FROM orders WHERE soundex(id) IN (SELECT note FROM orders)
SELECT c + TRUE AS x FROM orders LATERAL VIEW explode(array(id)) q AS c
"""


@pytest.mark.parametrize("query", LEAKING.strip().splitlines())
@pytest.mark.parametrize("around", ["CREATE VIEW v AS {}", "INSERT INTO orders {}"])
def test_no_message_names_a_column_that_we_made(db, query, around):
    text = around.format(query)
    if db.engine.name == "spark":
        pytest.skip("Spark answers these")
    assert internals(refusal(lambda: db.sql(text)), text) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT id::bigint AS a, nope FROM orders", "nope"),
        ('CREATE VIEW v AS SELECT "o".id FROM orders AS "o" WHERE "o".nope > 1', None),
        ("SELECT 1::int / (id - id) AS x FROM orders", None),
    ],
)
def test_a_text_of_another_dialect_is_shown_as_it_is_written(db, text, place):
    db.insert("orders", [(1, 2, 3, None)])
    try:
        error = refusal(lambda: (found := db.sql(text, dialect="postgres")) and found.rows())
    finally:
        db.delete("orders", [(1, 2, 3, None)])
    assert error.span is not None
    assert error.span.text == text
    if place is not None:
        assert text[error.span.start : error.span.stop] == place
    assert "CAST" not in error.render(), error.render()
