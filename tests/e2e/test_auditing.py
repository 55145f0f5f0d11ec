"""An audit says whose reading of a query it compares a view with."""

from __future__ import annotations

import pytest
from sqlglot import exp

import everview
from e2e.test_gears import opened
from everview.database import audit_query
from everview.engines.spark import audit
from everview.lang.sql.lower import query
from everview.runtime.retry import not_computed

TABLES = """CREATE TABLE t (k INT, v INT); CREATE TABLE e (x INT, y INT);
INSERT INTO t VALUES (1, 10), (1, 10), (2, NULL); INSERT INTO e VALUES (1, 2), (2, 3), (3, 1)"""
CLOSURE = """WITH RECURSIVE r(x, y) AS (SELECT x, y FROM e UNION
SELECT r.x, e.y FROM r JOIN e ON r.y = e.x) SELECT * FROM r"""


@pytest.fixture
def db(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql(TABLES)
        db.sql("CREATE VIEW sums AS SELECT k, SUM(v) AS s FROM t GROUP BY k")
        db.sql(f"CREATE VIEW reached AS {CLOSURE}")
        yield db


def test_the_audit_says_why_it_reads_a_query_itself(db):
    found = {each.view: each for each in db.audit()}
    assert all(each.ok for each in found.values())
    if db.engine.name == "spark":
        assert found["sums"].ours == ""
        assert found["reached"].ours.startswith("Spark does not read it: The UNION operator")
    else:
        assert {each.ours for each in found.values()} == {"the embedded engine has no other reader"}


@pytest.fixture
def misread(monkeypatch):
    """A front end that takes LAST_VALUE for FIRST_VALUE."""

    def planted(node: exp.Expr) -> exp.Expr:
        return exp.FirstValue(this=node.this) if isinstance(node, exp.LastValue) else node

    desugared = query.desugared
    monkeypatch.setattr(query, "desugared", lambda tree: desugared(tree.transform(planted)))
    audit_query._lowered.cache_clear()
    yield
    audit_query._lowered.cache_clear()


LAST = "LAST_VALUE(v) OVER (ORDER BY {} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"


@pytest.mark.spark
def test_spark_denies_a_misread_window_where_no_rows_tie(spark, misread, tmp_path):
    with everview.open(str(tmp_path / "store"), spark=spark) as db:
        db.sql("CREATE TABLE t (k INT, v INT); INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
        db.sql(f"CREATE VIEW last AS SELECT k, {LAST.format('k')} AS l FROM t")
        found = db.audit("last").views[0]
        assert (found.ok, found.ours) == (False, "")


@pytest.mark.spark
def test_where_rows_tie_our_own_order_of_them_is_audited(spark, tmp_path):
    with everview.open(str(tmp_path / "store"), spark=spark) as db:
        db.sql("CREATE TABLE t (k INT, v INT); INSERT INTO t VALUES (1, 30), (1, 20), (1, 10)")
        db.sql("INSERT INTO t VALUES (1, 15), (1, 25)")
        db.sql(f"CREATE VIEW last AS SELECT v, {LAST.format('k')} AS l FROM t")
        found = db.audit("last").views[0]
        assert found.ok
        assert found.ours in ("", "rows tie, and Spark may take them in any order")


@pytest.mark.spark
def test_rows_that_tie_are_seen_where_another_window_sorts_them_first(spark, tmp_path):
    with everview.open(str(tmp_path / "store"), spark=spark) as db:
        db.sql("CREATE TABLE t (a INT PRIMARY KEY, c STRING, d INT, e DOUBLE)")
        db.sql("INSERT INTO t VALUES (15, 'x', 1, NULL), (24, NULL, 1, NULL)")
        db.sql(
            "CREATE VIEW v AS SELECT FIRST_VALUE(e) OVER (PARTITION BY c ORDER BY e DESC) AS w1, "
            "FIRST_VALUE(c) OVER (PARTITION BY e ORDER BY d DESC "
            "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS w2 FROM t"
        )
        [view] = db.audit()
        assert view.ok
        assert view.ours == "rows tie, and Spark may take them in any order"


FAILING = (
    # A correlated EXCEPT over outer joins, which Spark 4.3 cannot take apart: it raises for itself.
    "SELECT q1.b FROM t AS q1 WHERE q1.d IN ("
    "SELECT q3.d AS s FROM u AS q2 LEFT OUTER JOIN t AS q3 ON TRUE "
    "WHERE q2.f IS NOT DISTINCT FROM q1.c "
    "EXCEPT SELECT q5.d AS s FROM t AS q4 FULL OUTER JOIN t AS q5 ON TRUE)",
    # An IN of one side of a join that reads the other side, which only the optimizer refuses.
    "SELECT t.b FROM t JOIN u ON t.c = u.f "
    "AND (t.b NOT IN (SELECT q.a FROM u AS q WHERE q.f = u.f) OR t.b = u.a)",
)


@pytest.mark.spark
def test_what_spark_fails_on_inside_is_read_by_us(spark, tmp_path):
    with everview.open(str(tmp_path), spark=spark) as db:
        db.sql(
            "CREATE TABLE t (a STRING PRIMARY KEY, b BIGINT, c DOUBLE, d TIMESTAMP);"
            "CREATE TABLE u (a INT PRIMARY KEY, f DOUBLE)"
        )
        for number, query in enumerate(FAILING):
            db.sql(f"CREATE VIEW v{number} AS {query}")
            with pytest.raises(everview.UserError, match="optimizer fails on this query"):
                db.sql(query).rows()
        for view in db.audit():
            assert view.ok
            assert "optimizer fails" in view.ours


@pytest.mark.spark
def test_a_plan_that_spark_fails_on_too_is_evaluated_in_process(spark, tmp_path):
    """Spark 4.3 fails on LISTAGG beside COUNT(DISTINCT …), however the query is written."""
    with everview.open(str(tmp_path), spark=spark) as db:
        db.sql(
            "CREATE TABLE t (a STRING PRIMARY KEY, b STRING, c BIGINT); CREATE VIEW v AS "
            "SELECT c, COUNT(DISTINCT b) AS n, COUNT(DISTINCT a) AS m, "
            "LISTAGG(b, ',') WITHIN GROUP (ORDER BY b) AS l FROM t GROUP BY c;"
            "INSERT INTO t VALUES ('x', 'p', 1), ('y', 'q', 1), ('z', NULL, NULL)"
        )
        [view] = db.audit()
        assert (view.ok, view.rows) == (True, 2)
        assert "optimizer fails" in view.ours


FAR = """
    CREATE TABLE t (a INT, e INT); CREATE TABLE q (r INT, s INT);
    INSERT INTO q VALUES (4, 1), (2, 6), (3, 3);
    INSERT INTO t VALUES (0, CAST('-2147483648' AS INT)), (7, 2)
"""
INFERRED = "SELECT t.a FROM t CROSS JOIN q WHERE t.e = q.r AND q.r - 1 IN (1)"


@pytest.mark.spark
@pytest.mark.parametrize("large_rows", [-1, 1000])
def test_what_spark_infers_is_not_computed_for_rows_that_join_nothing(spark, tmp_path, large_rows):
    """From e = r AND r - 1 IN (1) Spark infers e - 1 IN (1), and overflows."""
    with opened(tmp_path, spark, large_rows=large_rows) as db:
        db.sql(f"{FAR}; CREATE VIEW v AS {INFERRED}")
        db.sql("INSERT INTO t VALUES (1, CAST('-2147483648' AS INT)), (8, 2)")
        assert sorted(db.read("v").rows()) == [(7,), (8,)]
        [view] = db.audit()
        assert (view.ok, view.rows, view.ours) == (True, 2, "")


@pytest.mark.spark
def test_what_spark_cannot_compute_is_read_by_us(spark, tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise not_computed("overflow")

    with everview.open(str(tmp_path), spark=spark) as db:
        db.sql(f"{FAR}; CREATE VIEW v AS {INFERRED}")
        monkeypatch.setattr(audit, "text_difference", fail)
        [view] = db.audit()
        assert (view.ok, view.rows) == (True, 1)
        assert view.ours == "Spark cannot compute it: a value cannot be computed: overflow"
