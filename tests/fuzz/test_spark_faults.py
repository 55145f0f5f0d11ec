"""Spark's own faults are told by their shape, and nothing that is only like them is."""

from __future__ import annotations

import pytest

from everview.fuzz.spark_faults import FAULTS, fault_in

FIRST, OUTER = FAULTS
ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
LISTED = {
    "SELECT a, (SELECT MIN(x) FROM t WHERE u.a NOT IN (SELECT b FROM w)) AS m FROM u": OUTER,
    "SELECT a FROM u WHERE a > 5 OR EXISTS (SELECT 1 FROM t WHERE u.a NOT IN (SELECT 1))": OUTER,
    "SELECT a, EXISTS (SELECT 1 FROM t WHERE u.a NOT IN (SELECT b FROM w)) AS e FROM u": OUTER,
    "SELECT a FROM u WHERE (SELECT MIN(x) FROM t WHERE NOT (u.a IN (SELECT b FROM w))) > 1": OUTER,
    f"SELECT FIRST_VALUE(v) FILTER (WHERE c = 'b') OVER (ORDER BY o {ROWS}) AS f FROM s": FIRST,
    f"SELECT FIRST(v) FILTER (WHERE c) IGNORE NULLS OVER (ORDER BY o {ROWS}) AS f FROM s": FIRST,
}
RELATIVES = (
    "SELECT a FROM u WHERE u.a NOT IN (SELECT b FROM w)",
    "SELECT a FROM u WHERE NOT (a > 5 OR a IN (SELECT c FROM w))",
    "SELECT a FROM u WHERE EXISTS (SELECT 1 FROM t WHERE u.a NOT IN (SELECT b FROM w))",
    "SELECT a FROM u WHERE a > 1 AND NOT EXISTS (SELECT 1 FROM t WHERE u.a NOT IN (SELECT 1))",
    "SELECT a, (SELECT MIN(x) FROM t WHERE u.a IN (SELECT b FROM w)) AS m FROM u",
    "SELECT a, (SELECT MIN(x) FROM t WHERE t.x NOT IN (SELECT b FROM w)) AS m FROM u",
    "SELECT a, (SELECT MIN(x) FROM t WHERE u.a NOT IN (1, 2)) AS m FROM u",
    "SELECT q.a FROM u, (SELECT x AS a FROM t WHERE t.x NOT IN (SELECT b FROM w)) AS q",
    f"SELECT LAST_VALUE(v) FILTER (WHERE c = 'b') OVER (ORDER BY o {ROWS}) AS f FROM s",
    "SELECT FIRST_VALUE(v) FILTER (WHERE c) OVER (ORDER BY o ROWS 2 PRECEDING) AS f FROM s",
    f"SELECT FIRST_VALUE(v) OVER (ORDER BY o {ROWS}) AS f FROM s",
    "SELECT FIRST_VALUE(v) IGNORE NULLS OVER (ORDER BY o) AS f FROM s",
    "SELECT FIRST_VALUE(v) OVER (ORDER BY o) AS f, SUM(v) FILTER (WHERE c) OVER () AS g FROM s",
    "SELECT MIN(v) FILTER (WHERE c = 'b') AS f FROM s",
)


@pytest.mark.parametrize("query", LISTED)
def test_a_listed_case_has_its_fault(query):
    assert fault_in(query) == LISTED[query]


@pytest.mark.parametrize("query", RELATIVES)
def test_what_is_only_like_a_listed_case_has_none(query):
    assert fault_in(query) == ""
