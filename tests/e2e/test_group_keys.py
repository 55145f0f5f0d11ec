"""Keys of GROUP BY that Spark takes for one, and GROUP BY ALL beside a column of that name."""

from __future__ import annotations

from collections import Counter

import pytest

import everview as ev
from e2e.checking import differences

SETS = "GROUP BY GROUPING SETS ((a + b), (b + a), (b))"
QUERIES = {
    "sets": f"""SELECT a + b AS s, b, COUNT(*) AS n, GROUPING(b + a) AS g, GROUPING_ID() AS i
        FROM t {SETS}""",
    "cube": "SELECT a * b AS s, b * a AS r, GROUPING_ID() AS i FROM t GROUP BY CUBE(a * b, b * a)",
    "rollup": """SELECT (a < b) AS s, (b > a) AS r, GROUPING_ID(a < b) AS i, SUM(v) AS n FROM t
        GROUP BY ROLLUP((a < b), (b > a))""",
    "chain": "SELECT b + (1 + a) AS s, COUNT(*) AS n FROM t GROUP BY (a + b) + 1",
    "equal": "SELECT (a = b) AS s, a <=> b AS r, COUNT(*) AS n FROM t GROUP BY b = a, b <=> a",
    "turned": "SELECT NOT (a < b) AS s, COUNT(*) AS n FROM t GROUP BY b <= a",
    "both": "SELECT (a = 1 AND b = 2) AS s, COUNT(*) AS n FROM t GROUP BY b = 2 AND a = 1",
    "listed": "SELECT a IN (1, 2) AS s, COUNT(*) AS n FROM t GROUP BY a IN (2, 1)",
    "greatest": "SELECT greatest(a, b) AS s, COUNT(*) AS n FROM t GROUP BY greatest(b, a)",
    "bits": "SELECT a & b AS s, b | a AS r, COUNT(*) AS n FROM t GROUP BY b & a, a | b",
    "having": "SELECT a + b AS s FROM t GROUP BY a + b HAVING b + a > 2 AND SUM(v) IS NOT NULL",
    "ranked": "SELECT a + b AS s, RANK() OVER (ORDER BY b + a) AS r FROM t GROUP BY a + b",
    "by_column": "SELECT SUM(v) AS s FROM g GROUP BY all",
    "by_two": "SELECT SUM(v) AS s FROM g GROUP BY all, b",
    "by_sum": "SELECT SUM(v) AS s FROM g GROUP BY all + 1",
    "by_rollup": "SELECT SUM(v) AS s FROM g GROUP BY all WITH ROLLUP",
    "by_alias": "SELECT a AS `all`, SUM(v) AS s FROM t GROUP BY all",
    "by_all": "SELECT a, b, SUM(v) AS s FROM t GROUP BY ALL",
    "by_quoted": "SELECT a, b, SUM(v) AS s FROM t GROUP BY `all`",
    "no_key": "SELECT GROUPING_ID() AS g, COUNT(*) AS n FROM t GROUP BY GROUPING SETS (())",
}
ROWS = ((1, 1, 10), (1, 2, 20), (2, 1, 30), (2, 2, None), (None, 1, 5))


@pytest.fixture
def db(open_db, tmp_path):
    with open_db(tmp_path / "store") as opened:
        opened.sql("CREATE TABLE t (a INT, b INT, v INT); CREATE TABLE g (`all` INT, b INT, v INT)")
        yield opened


def test_keys_are_one_where_spark_takes_them_for_one(db):
    for name, query in QUERIES.items():
        db.sql(f"CREATE VIEW `v_{name}` AS {query}")
    db.insert("t", ROWS)
    db.insert("g", ROWS)
    by_sum = Counter((row[0], row[2]) for row in db.read("v_sets").rows() if row[4] == 1)
    assert by_sum == Counter({(2, 1): 2, (3, 2): 2, (4, 1): 2, (None, 1): 2}), "once for each set"
    assert Counter(db.read("v_by_column").rows()) == Counter([(30,), (30,), (5,)])
    assert len(db.read("v_by_two").rows()) == 5
    assert Counter(db.read("v_chain").rows()) == Counter([(3, 1), (4, 2), (5, 1), (None, 1)])
    assert db.read("v_no_key").rows() == [(0, 5)]
    agrees(db)
    db.sql("UPDATE t SET b = 7 WHERE a = 2; DELETE FROM g WHERE b = 2")
    agrees(db)
    db.sql("DELETE FROM t WHERE TRUE; INSERT INTO g VALUES (NULL, NULL, 1)")
    agrees(db)
    assert db.read("v_no_key").rows() == [(0, 0)]


def agrees(db) -> None:
    """Plain Spark reads the texts the same; without it, the groups are told from their parts."""
    if db.engine.name == "spark":
        assert differences(db, {f"v_{name}": query for name, query in QUERIES.items()}) == []
        return
    sums = Counter()
    for a, b, _ in db.read("t").rows():
        sums[None if a is None or b is None else a + b] += 1
    found = Counter({row[0]: row[1] for row in db.read("v_chain").rows()})
    assert found == Counter({None if s is None else s + 1: n for s, n in sums.items()})
    twice = Counter()
    for s, _, n, _, i in db.read("v_sets").rows():
        twice[s] += n if i == 1 else 0
    assert +twice == Counter({s: 2 * n for s, n in sums.items()})
    by_all = Counter()
    for each, _, v in db.read("g").rows():
        by_all[each] += v or 0
    assert Counter(v or 0 for (v,) in db.read("v_by_column").rows()) == Counter(by_all.values())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT b, SUM(v) AS s FROM g GROUP BY all",
        "SELECT a, SUM(v) AS s FROM t GROUP BY all, a",
        "SELECT a - b AS s, COUNT(*) AS n FROM t GROUP BY b - a",
        "SELECT a, SUM(v) OVER (ORDER BY a) AS s FROM t GROUP BY ALL",
        "SELECT SUM(v) AS s FROM t GROUP BY DISTINCT a",
    ],
)
def test_a_key_that_is_none_is_refused_with_its_place(db, query):
    with pytest.raises(ev.UserError) as caught:
        db.sql(f"CREATE VIEW w AS {query}")
    assert caught.value.span is not None
