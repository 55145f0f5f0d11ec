"""A view whose plan shares parts on every level: 150 operators, and as a tree 350,000."""

from __future__ import annotations

import pytest

import everview as ev
from everview.plan.nodes import Join, Plan, Source
from everview.plan.traverse import transform, tree_size, walk

QUERY = """
SELECT n2, ROW_NUMBER() OVER (PARTITION BY x4 ORDER BY n2, n1) AS rn FROM (
  SELECT b AS x1, CAST(e <> c OR e IS NULL AS INT) AS x2, b AS x3,
    NOT ((e < 0 OR e NOT IN (SELECT q.b FROM t AS q WHERE q.b > s.c))
      AND (c IN (SELECT q.e FROM u AS q WHERE q.w = s.b)
        OR d NOT IN (SELECT -1 FROM v AS q WHERE q.c > s.d))) AS x4
  FROM s) UNPIVOT (n2 FOR n1 IN (x1, x2 AS p, x3 AS r))
"""


@pytest.mark.timeout(120)
def test_three_subqueries_in_one_value_are_followed(tmp_path):
    """It took all memory once: every pass walked the plan as a tree."""
    with ev.open(str(tmp_path), engine="duckdb") as db:
        db.sql(
            "CREATE TABLE s (a INT PRIMARY KEY, b INT, c INT, d INT, e INT);"
            "CREATE TABLE t (b INT); CREATE TABLE u (e INT, w INT); CREATE TABLE v (c INT)"
        )
        db.sql(f"CREATE VIEW big AS {QUERY}")
        db.sql("INSERT INTO s VALUES (1, 1, 2, 3, 4), (2, NULL, 1, NULL, 0), (3, 2, 2, 1, NULL)")
        for change in (
            "INSERT INTO t VALUES (3), (NULL), (4)",
            "INSERT INTO u VALUES (2, 1), (NULL, 2)",
            "INSERT INTO v VALUES (7), (NULL)",
            "DELETE FROM t WHERE b IS NULL",
            "UPDATE s SET e = 3 WHERE a = 3",
            "DELETE FROM s WHERE a = 1",
        ):
            db.sql(change)
            assert db.audit().ok


def doubled(levels: int) -> Plan:
    plan: Plan = Source("t", ())
    for _ in range(levels):
        plan = Join(plan, plan, (), None)
    return plan


def test_a_plan_is_walked_and_transformed_as_the_graph_that_it_is():
    plan = doubled(60)
    assert tree_size(plan) > 2**60
    assert len(list(walk(plan))) == 61
    assert transform(plan, lambda node: node) is plan
