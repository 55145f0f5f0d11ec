"""The plan of a SQL text has the rows that another reader of SQL gives: DuckDB, of the very text.

The texts mean the same in Spark and in DuckDB: whole numbers, NULL among them, no order of rows,
NULLS FIRST where windows order. `IN` stands in conditions only, where what is not known keeps no
row; as a value, Spark's meaning is another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

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
    "SELECT r.a, r.b, s.a AS c, s.b AS d FROM r FULL JOIN s ON r.a < s.b",
    "SELECT a, r.b, s.b AS c FROM r JOIN s USING (a)",
    "SELECT a, r.b, s.b AS c FROM r FULL JOIN s USING (a)",
    "SELECT a, b FROM r UNION SELECT b, a FROM s",
    "SELECT a, b FROM r INTERSECT SELECT a, b FROM s",
    "SELECT a, b FROM r INTERSECT ALL SELECT a, b FROM s",
    "SELECT a, b FROM r EXCEPT SELECT a, b FROM s",
    "SELECT a, b FROM r EXCEPT ALL SELECT a, b FROM s",
    "SELECT a, COUNT(*) AS n, COUNT(b) AS m, MIN(b) AS low FROM r GROUP BY a",
    "SELECT COUNT(*) AS n, MAX(b) AS m FROM r",
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
    f"SELECT a, b FROM r QUALIFY RANK() {ORDERED}) = 1",
    "WITH c AS (SELECT a, MAX(b) AS m FROM r GROUP BY a) SELECT c.a, s.b FROM c JOIN s ON m = s.a",
    "SELECT DISTINCT r.a, q.m FROM r, LATERAL (SELECT MAX(s.b) AS m FROM s WHERE s.a = r.a) q",
)

number = st.sampled_from([None, 0, 1, 2])
rows = st.tuples(number, number)
tables = st.lists(rows, max_size=6).map(Counter)
some = st.lists(rows, min_size=1, max_size=6).map(Counter)
"""With no rows at all, GROUPING SETS have no row in Spark, and one in DuckDB."""


def answer(text: str, world: Mapping[str, Bag]) -> Bag:
    """What DuckDB answers."""
    with duckdb.connect() as connection:
        for name, bag in world.items():
            connection.execute(f"CREATE TABLE {name} (a INT, b INT)")
            if bag:
                connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", [*bag.elements()])
        return Counter(connection.execute(text).fetchall())


@given(text=st.sampled_from(TEXTS), r=some, s=tables)
def test_the_plan_of_a_text_has_the_rows_of_the_text(text, r, s):
    world = {"r": r, "s": s}
    plan = lower_query(text, TABLES, lambda *_: "unknown")
    expected = answer(text, world)
    assert calculate(plan, world) == expected
    assert calculate(rewrite(plan), world) == expected


def test_every_text_has_the_rows_of_its_plan():
    """None is left to chance."""
    given = [(a, b) for a in (None, 0, 1) for b in (None, 1)] + [(0, 1), (2, 2)]
    world = {"r": Counter(given), "s": Counter([(0, 2), (1, 1), (1, 1), (0, 1), (2, None)])}
    for text in TEXTS:
        plan = lower_query(text, TABLES, lambda *_: "unknown")
        assert calculate(plan, world) == answer(text, world), text
