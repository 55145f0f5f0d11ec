"""Recursive views against plain Python, through inserted and deleted edges."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

import everview as ev

Pair = tuple[int, int]
Pairs = Iterable[Pair]

NODES = 9
UP = "SELECT a, b FROM e WHERE a < b"

VIEWS = {
    "reach": """WITH RECURSIVE t AS (SELECT a, b FROM e UNION SELECT t.a, e.b FROM t
        JOIN e ON t.b = e.a) SELECT a, b FROM t""",
    "squared": """WITH RECURSIVE t(x, y) AS (SELECT a, b FROM e UNION SELECT l.x, r.y FROM t AS l
        JOIN t AS r ON l.y = r.x) SELECT x, y FROM t""",
    "odd": """WITH RECURSIVE even(x, y) AS (SELECT o.x, e.b FROM odd AS o JOIN e ON o.y = e.a),
        odd(x, y) AS (SELECT a, b FROM e UNION SELECT v.x, e.b FROM even AS v JOIN e ON v.y = e.a)
        SELECT x, y FROM odd""",
    "both_ways": """WITH RECURSIVE t(x, y) AS (SELECT a, b FROM e UNION SELECT e.a, t.y FROM e
        JOIN t ON e.b = t.x UNION SELECT y, x FROM t WHERE y < 3) SELECT x, y FROM t""",
    "allowed": """WITH RECURSIVE t(x, y) AS (SELECT a, b FROM e UNION SELECT t.x, e.b FROM t
        JOIN e ON t.y = e.a WHERE e.b NOT IN (SELECT a FROM f)) SELECT x, y FROM t""",
    "unanswered": """WITH RECURSIVE t(x, y) AS (SELECT a, b FROM e UNION SELECT t.x, e.b FROM t
        JOIN e ON t.y = e.a LEFT JOIN f ON f.a = e.b AND f.b = t.x WHERE f.a IS NULL)
        SELECT x, y FROM t""",
    "unless": """WITH RECURSIVE t(x, y) AS (SELECT a, b FROM e UNION SELECT t.x, e.b FROM t
        JOIN e ON t.y = e.a WHERE NOT EXISTS (SELECT 1 FROM f AS t JOIN f AS g ON g.b = t.b
        WHERE t.a = e.b AND g.a < 5 AND t.b = x)) SELECT x, y FROM t""",
    "backed": """WITH RECURSIVE t(x, y) AS (SELECT a, b FROM e UNION SELECT t.x, e.b FROM t
        JOIN e ON t.y = e.a WHERE EXISTS (SELECT 1 FROM f WHERE f.a = e.b OR f.b > t.x))
        SELECT x, y FROM t""",
    "ways": f"""WITH RECURSIVE t(x, y) AS ({UP} UNION ALL SELECT t.x, u.b FROM t
        JOIN ({UP}) AS u ON t.y = u.a) SELECT x, y FROM t""",
    "busy": """WITH RECURSIVE hub AS (SELECT a FROM e GROUP BY a HAVING COUNT(*) > 1),
        t(x, y) AS (SELECT a, b FROM e UNION SELECT t.x, e.b FROM t JOIN hub ON hub.a = t.y
        JOIN e ON e.a = hub.a) SELECT x, y FROM t""",
    "counted": """WITH RECURSIVE t AS (SELECT a, b FROM e UNION SELECT t.a, e.b FROM t
        JOIN e ON t.b = e.a) SELECT a, COUNT(*) AS n FROM t GROUP BY a""",
    "known": "SELECT reach.a, reach.b FROM reach JOIN f ON f.a = reach.a AND f.b = reach.b",
    "hops": """WITH RECURSIVE t(x, n) AS (SELECT 0, 0 UNION SELECT e.b, t.n + 1 FROM t
        JOIN e ON e.a = t.x WHERE t.n < 6) SELECT x, MIN(n) AS n FROM t GROUP BY x""",
}


def _closed(start: Pairs, step: Callable[[set[Pair]], set[Pair]]) -> set[Pair]:
    found = set(start)
    while (more := found | step(found)) != found:
        found = more
    return found


def _then(left: Pairs, right: Pairs) -> set[Pair]:
    return {(a, d) for a, b in left for c, d in right if b == c}


def _ways(edges: Counter[Pair]) -> Counter[Pair]:
    up = Counter({(a, b): w for (a, b), w in edges.items() if a < b})
    level, found = up, Counter(up)
    while level:
        after: Counter[Pair] = Counter()
        for (a, b), v in level.items():
            for (c, d), w in up.items():
                if b == c:
                    after[a, d] += v * w
        found += after
        level = after
    return found


def _hops(edges: set[Pair]) -> Counter[Pair]:
    far = {0: 0}
    for n in range(1, 7):
        for b in {b for a, b in edges if far.get(a) == n - 1} - far.keys():
            far[b] = n
    return Counter(far.items())


def expected(e: Counter[Pair], f: Counter[Pair]) -> dict[str, Counter[Pair]]:
    """What each view holds, by definition."""
    edges, marks = set(e), set(f)
    reach = _closed(edges, lambda t: _then(t, edges))
    hubs = {a for a in dict(edges) if sum(w for (x, _), w in e.items() if x == a) > 1}
    blocked = {a for a, _ in marks}
    shared = {(a, b) for a, b in marks if any(c < 5 for c, d in marks if d == b)}
    open_ = {(a, b) for a, b in edges if b not in blocked}
    busy = {(a, b) for a, b in edges if a in hubs}
    twice = _then(edges, edges)
    sets = {
        "reach": reach,
        "squared": reach,
        "odd": _closed(edges, lambda t: _then(t, twice)),
        "both_ways": _closed(edges, lambda t: _then(edges, t) | {(b, a) for a, b in t if b < 3}),
        "allowed": _closed(edges, lambda t: _then(t, open_)),
        "unanswered": _closed(
            edges, lambda t: {(x, y) for x, y in _then(t, edges) if (y, x) not in marks}
        ),
        "unless": _closed(
            edges, lambda t: {(x, y) for x, y in _then(t, edges) if (y, x) not in shared}
        ),
        "backed": _closed(
            edges,
            lambda t: {
                (x, y) for x, y in _then(t, edges) if any(a == y or b > x for a, b in marks)
            },
        ),
        "busy": _closed(edges, lambda t: _then(t, busy)),
    }
    found = {name: Counter(pairs) for name, pairs in sets.items()}
    found["ways"] = _ways(e)
    found["counted"] = Counter(Counter(a for a, _ in reach).items())
    found["known"] = Counter({pair: f[pair] for pair in reach & marks})
    found["hops"] = _hops(edges)
    return found


def change(rng: random.Random, table: Counter[Pair], most: int) -> tuple[list[Pair], list[Pair]]:
    gone = rng.sample(sorted(table.elements()), min(rng.randint(0, 2), table.total()))
    room = max(0, most - table.total())
    node = range(NODES)
    came = [(rng.choice(node), rng.choice(node)) for _ in range(min(rng.randint(0, 2), room))]
    table.subtract(gone)
    table.update(came)
    for pair in [pair for pair, weight in table.items() if not weight]:
        del table[pair]
    return gone, came


@pytest.mark.parametrize("seed", [1])
def test_fifty_transactions_leave_every_recursive_view_as_python_has_it(open_db, tmp_path, seed):
    rng = random.Random(seed)
    e: Counter[Pair] = Counter()
    f: Counter[Pair] = Counter()
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE e (a INT, b INT); CREATE TABLE f (a INT, b INT)")
        for name, text in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        for number in range(50):
            with db.transaction() as tx:
                for name, table, most in (("e", e, 14), ("f", f, 4)):
                    gone, came = change(rng, table, most)
                    tx.delete(name, gone)
                    tx.insert(name, came)
            for name, rows in expected(e, f).items():
                assert Counter(db.read(name).rows()) == rows, (number, name, e, f)
        assert db.audit().ok


def test_a_view_declared_over_data_holds_what_it_would_have_followed(open_db, tmp_path):
    rng = random.Random(7)
    e = Counter((rng.randrange(NODES), rng.randrange(NODES)) for _ in range(14))
    f = Counter({(1, 2): 1, (3, 3): 2})
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE e (a INT, b INT); CREATE TABLE f (a INT, b INT)")
        db.insert("e", list(e.elements()))
        db.insert("f", list(f.elements()))
        for name, text in VIEWS.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        for _ in range(3):
            for name, rows in expected(e, f).items():
                assert Counter(db.read(name).rows()) == rows, name
            gone, came = change(rng, e, 14)
            with db.transaction() as tx:
                tx.delete("e", gone)
                tx.insert("e", came)


def test_a_cycle_that_loses_its_entry_is_gone_and_comes_back(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE e (a STRING, b STRING)")
        db.sql("""CREATE VIEW r AS WITH RECURSIVE r(x) AS (SELECT 'root' UNION
            SELECT e.b FROM r JOIN e ON e.a = r.x) SELECT x FROM r""")
        db.insert("e", [("root", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", None)])
        assert set(db.read("r").rows()) == {("root",), ("a",), ("b",), ("c",), (None,)}
        db.delete("e", [("root", "a")])
        assert db.read("r").rows() == [("root",)]
        db.insert("e", [("root", "b")])
        assert set(db.read("r").rows()) == {("root",), ("a",), ("b",), ("c",), (None,)}
        assert db.audit().ok


def test_a_row_that_loses_its_first_way_is_found_again_at_a_later_iteration(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE e (a INT, b INT)")
        db.sql("""CREATE VIEW r AS WITH RECURSIVE r(x) AS (SELECT 0 UNION
            SELECT e.b FROM r JOIN e ON e.a = r.x) SELECT x FROM r""")
        db.insert("e", [(0, 3), (0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
        db.delete("e", [(0, 3)])
        assert sorted(db.read("r").rows()) == [(n,) for n in range(6)]
        db.insert("e", [(0, 4)])
        db.delete("e", [(2, 3)])
        assert sorted(db.read("r").rows()) == [(0,), (1,), (2,), (4,), (5,)]
        db.insert("e", [(5, 3)])
        db.delete("e", [(0, 4)])
        assert sorted(db.read("r").rows()) == [(0,), (1,), (2,)]
        assert db.audit().ok


def test_levels_are_limited_as_spark_limits_them(open_db, tmp_path):
    text = """WITH RECURSIVE t(n) MAX RECURSION LEVEL {} AS (SELECT a FROM e UNION ALL
        SELECT n + 1 FROM t WHERE n < 5) SELECT n FROM t"""
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE e (a INT); INSERT INTO e VALUES (1)")
        with pytest.raises(ev.UserError) as caught:
            db.sql(f"CREATE VIEW four AS {text.format(4)}")
        assert caught.value.code == "E014"
        db.sql(f"CREATE VIEW five AS {text.format(5)}")
        with pytest.raises(ev.UserError) as caught:
            db.insert("e", [(0,)])
        assert caught.value.code == "E014"
        assert sorted(db.read("five").rows()) == [(n,) for n in range(1, 6)]
        assert db.read("e").rows() == [(1,)]
        db.insert("e", [(3,)])
        assert db.audit().ok


NOT_STRATIFIED = {
    "SELECT a FROM e EXCEPT SELECT a FROM t": "negation",
    "SELECT a FROM e UNION SELECT e.a FROM e WHERE e.b NOT IN (SELECT a FROM t)": "negation",
    "SELECT a FROM e UNION SELECT e.a FROM e LEFT JOIN t ON t.a = e.b": "negation",
    "SELECT a FROM e UNION SELECT CAST(COUNT(*) AS INT) FROM t": "aggregate",
    "SELECT a FROM e UNION (SELECT a FROM t ORDER BY a LIMIT 1)": "LIMIT",
    "SELECT a FROM e UNION ALL SELECT t.a FROM t JOIN t AS u ON t.a = u.a": "UNION ALL",
    "SELECT a FROM t": "begins",
    "SELECT a FROM e UNION SELECT CAST(a AS BIGINT) FROM t": "bigint",
}


@pytest.mark.parametrize("body", NOT_STRATIFIED)
def test_what_is_not_stratified_is_refused_with_its_circle(tmp_path, body):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE e (a INT, b INT)")
        with pytest.raises(ev.UserError) as caught:
            db.sql(f"CREATE VIEW v AS WITH RECURSIVE t(a) AS ({body}) SELECT a FROM t")
        assert caught.value.code in ("Q022", "Q020", "Q013")
        assert NOT_STRATIFIED[body] in caught.value.problem
        assert "t" in caught.value.problem


def test_the_circle_of_several_relations_is_named(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE e (a INT, b INT)")
        with pytest.raises(ev.UserError, match=r"lose → win → lose goes through .*negation"):
            db.sql("""CREATE VIEW v AS WITH RECURSIVE
                win(x) AS (SELECT a FROM e UNION SELECT e.a FROM e JOIN lose ON lose.x = e.b),
                lose(x) AS (SELECT b FROM e UNION SELECT b FROM e WHERE b NOT IN
                (SELECT x FROM win)) SELECT x FROM win""")


def test_a_query_may_be_recursive(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE e (a INT, b INT); INSERT INTO e VALUES (1, 2), (2, 3), (3, 1)")
        assert sorted(db.sql(VIEWS["counted"]).rows()) == [(1, 3), (2, 3), (3, 3)]
        ordered = db.sql(VIEWS["squared"] + " WHERE x > 1 ORDER BY y DESC, x LIMIT 3 OFFSET 1")
        assert ordered.rows() == [(3, 3), (2, 2), (3, 2)]
        assert sorted(db.sql(VIEWS["odd"]).rows()) == [(x, y) for x in (1, 2, 3) for y in (1, 2, 3)]


def test_a_query_asks_for_a_recursion_inside_a_transaction(open_db, tmp_path):
    count = VIEWS["reach"].replace("SELECT a, b FROM t", "SELECT COUNT(*) AS n FROM t")
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE e (a INT, b INT); INSERT INTO e VALUES (1, 2), (2, 3)")
        db.sql("BEGIN; INSERT INTO e VALUES (3, 1), (3, 1); DELETE FROM e WHERE a = 1")
        assert db.sql(count).rows() == [(3,)]
        db.sql("INSERT INTO e VALUES (1, 2)")
        assert db.sql(count).rows() == [(9,)]
        db.sql("ROLLBACK")
        assert db.sql(count).rows() == [(3,)]


def test_a_query_goes_deeper_than_spark_would(open_db, tmp_path):
    deep = """WITH RECURSIVE t(n) AS (SELECT a FROM e UNION ALL SELECT n + 1 FROM t WHERE n < 150)
        SELECT MAX(n) AS n, COUNT(*) AS c FROM t"""
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE e (a INT, b INT); INSERT INTO e VALUES (1, 1)")
        assert db.sql(deep).rows() == [(150, 150)]


def test_a_table_is_made_of_a_recursion(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE e (a INT, b INT); INSERT INTO e VALUES (1, 2), (2, 3)")
        db.sql(f"CREATE TABLE kept AS {VIEWS['reach']}")
        db.sql(f"INSERT INTO e {VIEWS['reach']}")
        assert sorted(db.read("kept").rows()) == [(1, 2), (1, 3), (2, 3)]
        assert sorted(db.read("e").rows()) == [(1, 2), (1, 2), (1, 3), (2, 3), (2, 3)]
