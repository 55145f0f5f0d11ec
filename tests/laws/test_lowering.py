"""The plan of a SQL text has the rows that another reader of SQL gives: DuckDB, of the very text.

The texts mean the same in Spark and in DuckDB: whole numbers, NULL among them, no order of rows,
NULLS FIRST where windows order. `IN` stands in conditions only, where what is not known keeps no
row; as a value, Spark's meaning is another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from random import Random

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from evaluation import calculate
from everview.expr.types import Column
from everview.lang.sql.lower.query import lower_query
from everview.plan.nodes import Source
from everview.rewrite.passes import rewrite
from strategies import Bag

PAIR = (Column("a", "int"), Column("b", "int"))
TABLES = {"r": Source("r", PAIR), "s": Source("s", PAIR)}
ORDERED = "OVER (PARTITION BY a ORDER BY b NULLS FIRST"
TEXTS = (
    "SELECT a, b FROM r WHERE a NOT IN (SELECT a FROM s)",
    "SELECT a, b FROM r WHERE a NOT IN (SELECT s.a FROM s WHERE s.b = r.b)",
    "SELECT a, b FROM r WHERE (a, b) NOT IN (SELECT a, b FROM s)",
    "SELECT a, b FROM r WHERE a IN (SELECT b FROM s) OR b NOT IN (SELECT a FROM s)",
    "SELECT a, b FROM r WHERE NOT (a IN (SELECT b FROM s WHERE s.a > 0) OR b IS NULL)",
    "SELECT a, b FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a = r.a AND s.b <> r.b)",
    "SELECT a, b FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a < r.a)",
    "SELECT a, (SELECT COUNT(*) FROM s WHERE s.a = r.a) AS n FROM r",
    "SELECT a, (SELECT MAX(b) FROM s WHERE s.a = r.a) AS n FROM r",
    "SELECT r.a, r.b, s.a AS c, s.b AS d FROM r LEFT JOIN s ON r.a = s.a",
    "SELECT r.a, r.b, s.a AS c, s.b AS d FROM r LEFT JOIN s ON r.a = s.a AND r.b > 0 AND s.b > 0",
    "SELECT r.a, r.b, s.a AS c, s.b AS d FROM r RIGHT JOIN s ON r.a = s.a AND r.b < s.b",
    "SELECT r.a, r.b, s.a AS c, s.b AS d FROM r FULL JOIN s ON r.a = s.a",
    "SELECT r.a, r.b, s.a AS c, s.b AS d FROM r FULL JOIN s ON r.a = s.a AND r.b > 0",
    "SELECT r.a, r.b, s.a AS c, s.b AS d FROM r FULL JOIN s ON r.a < s.b",
    "SELECT a, r.b, s.b AS c FROM r JOIN s USING (a)",
    "SELECT a, r.b, s.b AS c FROM r FULL JOIN s USING (a)",
    "SELECT r.a, s.b, q.b AS c FROM r, s, r q WHERE r.b = q.a AND q.b = s.a AND r.a < s.b",
    "SELECT q.a, r.b FROM r, s, s q WHERE r.a = q.a AND (s.b = q.b OR s.b IS NULL) AND q.b = s.a",
    "SELECT a, b FROM r UNION SELECT b, a FROM s",
    "SELECT a, b FROM r INTERSECT SELECT a, b FROM s",
    "SELECT a, b FROM r INTERSECT ALL SELECT a, b FROM s",
    "SELECT a, b FROM r EXCEPT SELECT a, b FROM s",
    "SELECT a, b FROM r EXCEPT ALL SELECT a, b FROM s",
    "SELECT a, COUNT(*) AS n, COUNT(b) AS m, MIN(b) AS low FROM r GROUP BY a",
    "SELECT COUNT(*) AS n, MAX(b) AS m FROM r",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM r) q WHERE 1 = 2",
    "SELECT a, n FROM (SELECT a, COUNT(*) AS n FROM r GROUP BY a) q WHERE n > 1 AND a >= 0",
    "SELECT a, b FROM (SELECT a, b FROM r UNION ALL SELECT b, a FROM s) q WHERE a > 0",
    "SELECT a, COUNT(DISTINCT b) AS n FROM r GROUP BY a HAVING COUNT(*) > 1",
    "SELECT a, b, COUNT(*) AS n, GROUPING(a) AS g FROM r GROUP BY GROUPING SETS ((a, b), (b), ())",
    "SELECT a, b, COUNT(b) AS n FROM r GROUP BY ROLLUP (a, b)",
    "SELECT a, b, MAX(b) AS n, GROUPING(a) AS g, GROUPING(b) AS h FROM r GROUP BY CUBE (a, b)",
    f"SELECT a, b, COUNT(*) {ORDERED} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM r",
    f"SELECT a, b, COUNT(*) {ORDERED} ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS n FROM r",
    f"SELECT a, b, COUNT(b) {ORDERED} RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n FROM r",
    f"SELECT a, b, COUNT(*) {ORDERED}) AS n FROM r",
    f"SELECT a, b, RANK() {ORDERED}) AS n, DENSE_RANK() {ORDERED}) AS m FROM r",
    "SELECT a, b, MAX(b) OVER (PARTITION BY a) AS m, COUNT(*) OVER () AS n FROM r",
    "SELECT a, b, ROW_NUMBER() OVER (ORDER BY a NULLS FIRST, b NULLS FIRST) AS n FROM r",
    f"SELECT a, ROW_NUMBER() {ORDERED}) AS n FROM r",
    f"SELECT a, b FROM r QUALIFY RANK() {ORDERED}) = 1",
    "WITH c AS (SELECT a, MAX(b) AS m FROM r GROUP BY a) SELECT c.a, s.b FROM c JOIN s ON m = s.a",
    "SELECT DISTINCT r.a, q.m FROM r, LATERAL (SELECT MAX(s.b) AS m FROM s WHERE s.a = r.a) q",
)

VALUES = (None, 0, 1, 2)


def drawn(rng: Random, least: int) -> Bag:
    """A few rows, one of them twice."""
    rows = [(rng.choice(VALUES), rng.choice(VALUES)) for _ in range(rng.randint(least, 6))]
    return Counter(rows + rows[:1])


def answers(texts: Iterable[str], world: Mapping[str, Bag]) -> dict[str, Bag]:
    """What DuckDB answers to each text."""
    with duckdb.connect(config={"threads": 1}) as connection:
        for name, bag in world.items():
            connection.execute(f"CREATE TABLE {name} (a INT, b INT)")
            if bag:
                rows = ", ".join("(?, ?)" for _ in bag.elements())
                values = [value for row in bag.elements() for value in row]
                connection.execute(f"INSERT INTO {name} VALUES {rows}", values)
        return {text: Counter(connection.execute(text).fetchall()) for text in texts}


def mean_the_same(texts: Iterable[str], world: Mapping[str, Bag]) -> None:
    for text, expected in answers(texts, world).items():
        plan = lower_query(text, TABLES, lambda *_: "unknown")
        assert calculate(plan, world) == expected, text
        assert calculate(rewrite(plan), world) == expected, text


@given(seed=st.integers(0, 2**32))
def test_the_plans_of_texts_have_the_rows_of_the_texts(seed):
    """Of no rows at all, GROUPING SETS have no row in Spark and one in DuckDB: so r has some."""
    rng = Random(seed)
    world = {"r": drawn(rng, 1), "s": drawn(rng, 0)}
    mean_the_same(rng.sample(TEXTS, 7), world)


def test_no_text_is_left_to_chance():
    r = [(a, b) for a in (None, 0, 1) for b in (None, 1)] + [(0, 1), (2, 2)]
    s = [(0, 2), (1, 1), (1, 1), (0, 1), (2, None)]
    mean_the_same(TEXTS, {"r": Counter(r), "s": Counter(s)})
