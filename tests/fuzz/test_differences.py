"""Where plain Spark contradicts SQL: each case still differs, and Everview answers as is said."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from everview_fuzz.check.differences import DIFFERENCES, TABLES, differs, page

ROWS = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"

LISTED = (
    "SELECT a, (SELECT MIN(x) FROM t WHERE u.a NOT IN (SELECT b FROM w)) AS m FROM u",
    "SELECT a FROM u WHERE a > 5 OR EXISTS (SELECT 1 FROM t WHERE u.a NOT IN (SELECT 1))",
    "SELECT a, EXISTS (SELECT 1 FROM t WHERE u.a NOT IN (SELECT b FROM w)) AS e FROM u",
    "SELECT a FROM u WHERE (SELECT MIN(x) FROM t WHERE NOT (u.a IN (SELECT b FROM w))) > 1",
    f"SELECT FIRST_VALUE(v) FILTER (WHERE c = 'b') OVER (ORDER BY o {ROWS}) AS f FROM s",
    f"SELECT FIRST(v) FILTER (WHERE c) IGNORE NULLS OVER (ORDER BY o {ROWS}) AS f FROM s",
    "SELECT (SELECT t.v FROM t WHERE t.k = u.k + 0 ORDER BY t.v LIMIT 1) AS m FROM u",
)
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
    "SELECT u.k FROM u WHERE NOT (u.k > 5 OR u.v IN (SELECT v FROM w))",
    "SELECT u.k, u.v NOT IN (SELECT v FROM w) AS x FROM u",
    "SELECT u.k FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.v NOT IN (SELECT v FROM w))",
    "SELECT k FROM (SELECT k, v IN (SELECT v FROM w) AS x FROM u) AS q WHERE NOT x",
    "SELECT LAST_VALUE(v) FILTER (WHERE v < 9) OVER (ORDER BY k ROWS 1 PRECEDING) AS f FROM t",
    "SELECT (SELECT t.v FROM t WHERE t.k = 1 ORDER BY t.v LIMIT 1) AS m FROM u",
    "SELECT q.v FROM u, LATERAL (SELECT t.v FROM t WHERE t.k = CAST(u.k AS BIGINT)) AS q",
)

PAGE = Path(__file__).parents[2] / "docs" / "differences-from-spark.md"


def test_the_page_lists_every_difference():
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("case", DIFFERENCES, ids=lambda case: case.title)
def test_a_difference_is_found_in_its_own_case(case):
    assert case.occurs is not None
    assert differs(case.query) is not None
    assert case.spark != case.ours


@pytest.mark.parametrize("query", LISTED)
def test_a_difference_is_found_in_a_case_of_its_shape(query):
    assert differs(query) is not None


@pytest.mark.parametrize("query", RELATIVES)
def test_what_spark_answers_as_sql_is_no_difference(query):
    assert differs(query) is None


@pytest.mark.parametrize(
    ("types", "listed"),
    [
        ({"t": {"k": "int32"}, "u": {"k": "int32"}}, False),
        ({"t": {"k": "int32"}, "u": {"k": "int64"}}, True),
        ({"t": {"k": "int32"}, "u": {}}, True),
    ],
)
def test_a_limit_by_a_key_of_one_type_is_no_difference(types, listed):
    query = "SELECT x.v FROM u, LATERAL (SELECT t.v FROM t WHERE t.k = u.k LIMIT 1) AS x"
    assert (differs(query, types) is not None) == listed


def test_the_engines_answer_as_is_said(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        for name in TABLES:
            db.sql(f"CREATE TABLE {name} (k INT, v INT)")
        for number, case in enumerate(DIFFERENCES):
            db.sql(f"CREATE VIEW v{number} AS {case.query}")
        for name, rows in TABLES.items():
            db.insert(name, rows)
        for number, case in enumerate(DIFFERENCES):
            assert Counter(db.read(f"v{number}").rows()) == Counter(case.ours), case.title


@pytest.mark.spark
def test_plain_spark_answers_as_is_said(spark):
    session = spark.newSession()
    for name, rows in TABLES.items():
        session.createDataFrame(rows, "k INT, v INT").createOrReplaceTempView(name)
    for case in DIFFERENCES:
        found = [tuple(row) for row in session.sql(case.query).collect()]
        assert Counter(found) == Counter(case.spark), case.title
