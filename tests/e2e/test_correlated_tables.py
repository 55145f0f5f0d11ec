"""Subqueries in FROM of a subquery that read the query around it, compared with recomputation."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import everview as ev

SHAPES = {
    "sum_of_a_union": (
        "SELECT m.x, (SELECT SUM(q.v) FROM (SELECT v FROM a WHERE a.k = m.x UNION ALL "
        "SELECT v FROM b WHERE b.k = m.x) q) AS s FROM m",
        lambda m, a, b: [(x, total([v for k, v in a + b if same(k, x)])) for (x,) in m],
    ),
    "counted": (
        "SELECT m.x, (SELECT COUNT(*) FROM (SELECT v FROM a WHERE a.k = m.x) q) AS n FROM m",
        lambda m, a, b: [(x, sum(same(k, x) for k, _ in a)) for (x,) in m],
    ),
    "exists_over_a_group": (
        "SELECT m.x FROM m WHERE EXISTS (SELECT 1 FROM (SELECT v, COUNT(*) AS n FROM a "
        "WHERE a.k = m.x GROUP BY v) q WHERE q.n > 1)",
        lambda m, a, b: [
            (x,)
            for (x,) in m
            if any(n > 1 for n in Counter(v for k, v in a if same(k, x)).values())
        ],
    ),
    "joined_with_a_table": (
        "SELECT m.x, (SELECT SUM(q.v * b.v) FROM (SELECT v FROM a WHERE a.k < m.x) q "
        "JOIN b ON b.k = q.v) AS s FROM m",
        lambda m, a, b: [
            (x, total([times(v, w) for k, v in a if less(k, x) for j, w in b if same(j, v)]))
            for (x,) in m
        ],
    ),
    "the_second_in_FROM": (
        "SELECT m.x, (SELECT SUM(q.v * b.v) FROM b JOIN (SELECT v FROM a WHERE a.k < m.x) q "
        "ON b.k = q.v) AS s FROM m",
        lambda m, a, b: [
            (x, total([times(v, w) for k, v in a if less(k, x) for j, w in b if same(j, v)]))
            for (x,) in m
        ],
    ),
    "two_of_them": (
        "SELECT m.x, (SELECT SUM(q.v * p.v) FROM (SELECT v FROM a WHERE a.k = m.x) q, "
        "(SELECT v FROM b WHERE b.k = m.x) p) AS s FROM m",
        lambda m, a, b: [
            (x, total([times(v, w) for k, v in a if same(k, x) for j, w in b if same(j, x)]))
            for (x,) in m
        ],
    ),
    "one_in_another": (
        "SELECT m.x, (SELECT MAX(p.v) FROM (SELECT q.v FROM (SELECT v FROM a WHERE a.k = m.x) q "
        "WHERE q.v <> m.x) p) AS s FROM m",
        lambda m, a, b: [
            (x, max([v for k, v in a if same(k, x) and v is not None and v != x], default=None))
            for (x,) in m
        ],
    ),
    "a_subquery_inside": (
        "SELECT m.x, (SELECT COUNT(q.v) FROM (SELECT v FROM a WHERE EXISTS "
        "(SELECT 1 FROM b WHERE b.k = a.k AND b.v = m.x)) q) AS s FROM m",
        lambda m, a, b: [
            (
                x,
                sum(any(same(j, k) and same(w, x) for j, w in b) for k, v in a if v is not None),
            )
            for (x,) in m
        ],
    ),
}


def same(left, right):
    return left is not None and left == right


def less(left, right):
    return left is not None and right is not None and left < right


def times(left, right):
    return None if left is None or right is None else left * right


def total(values):
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def test_a_derived_table_of_a_subquery_reads_the_query_around_it(tmp_path):
    tables = {"m": [], "a": [], "b": []}
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(
            "CREATE TABLE m (x INT); CREATE TABLE a (k INT, v INT); CREATE TABLE b (k INT, v INT)"
        )
        for name, (text, _) in SHAPES.items():
            db.sql(f"CREATE VIEW `{name}` AS {text}")
        draw = random.Random(4)
        for _ in range(6):
            with db.transaction() as tx:
                for name, rows in tables.items():
                    width = 1 if name == "m" else 2
                    gone = [row for row in rows if draw.random() < 0.4]
                    more = [
                        tuple(draw.choice([None, 1, 2, 2, 3]) for _ in range(width))
                        for _ in range(draw.randrange(4))
                    ]
                    if gone:
                        tx.delete(name, gone)
                    if more:
                        tx.insert(name, more)
                    tables[name] = list((Counter(rows) - Counter(gone)).elements()) + more
            for name, (_, meaning) in SHAPES.items():
                assert Counter(db.read(name).rows()) == Counter(meaning(*tables.values())), name
        assert all(db.audit(name).ok for name in SHAPES)


def test_an_outer_join_with_one_is_refused_by_name(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE m (x INT); CREATE TABLE a (k INT, v INT)")
        query = (
            "SELECT (SELECT SUM(q.v) FROM a LEFT JOIN (SELECT v FROM a WHERE k = m.x) q "
            "ON a.v = q.v) AS s FROM m"
        )
        with pytest.raises(ev.UserError, match="in an outer join that reads the query around"):
            db.sql(f"CREATE VIEW found AS {query}")
