"""An audit says whose reading of a query it compares a view with."""

from __future__ import annotations

import pytest

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


def test_the_audit_tells_a_change_that_no_query_explains(db, monkeypatch):
    """Spark's reading is compared with what is stored, whatever our own reading says."""
    if db.engine.name != "spark":
        pytest.skip("the embedded engine has no reader but ours")
    from everview.engine.spark import engine

    monkeypatch.setattr(engine, "written_minus_stored", lambda *_: pytest.fail("not needed"))
    assert db.audit("sums").ok
