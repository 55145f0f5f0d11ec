"""Every policy gives the same answers: what it stores and reads is all that differs."""

from __future__ import annotations

import random
from typing import ClassVar

import pytest
from click.testing import CliRunner

import everview as ev
from cases import THOROUGH
from e2e.constructs import CONSTRUCTS
from e2e.test_views import World
from everview.cli.main import main
from everview.errors import UserError
from everview.program.policy import CIRCUIT, FIRST_ORDER, HIGHER_ORDER, POLICIES

TABLES = """
    CREATE TABLE r (a DECIMAL(10,2), b BIGINT);
    CREATE TABLE s (b BIGINT, d BIGINT, g STRING);
    CREATE TABLE t (d BIGINT, f INT);
    CREATE TABLE c (id BIGINT PRIMARY KEY, n STRING, w DECIMAL(6,2));
"""
QUERIES = {
    "pairs": """SELECT s.g, SUM(r.a * t.f) AS total, COUNT(*) AS n, AVG(t.f) AS mean, SUM(r.a) AS a,
        COUNT(r.a) AS m FROM r JOIN s ON r.b = s.b JOIN t ON s.d = t.d GROUP BY s.g""",
    "whole": "SELECT SUM(r.a * t.f) AS total FROM r, s, t WHERE r.b = s.b AND s.d = t.d",
    "cases": """SELECT r.b, SUM(CASE WHEN t.f > 1 THEN r.a ELSE 0 END) AS x,
        SUM(CASE WHEN s.g = 'x' THEN r.a * (1 - t.f) WHEN r.a > 1 THEN 2 END) AS y
        FROM r JOIN s ON r.b = s.b JOIN t ON s.d = t.d GROUP BY r.b""",
    "keyed": """SELECT c.n, SUM(r.a * c.w - t.f) AS total, COUNT(t.f) AS m
        FROM r JOIN c ON r.b = c.id JOIN t ON t.d = c.id WHERE t.f > 0 GROUP BY c.n""",
    "itself": """SELECT x.b, SUM(x.a * y.a) AS total, COUNT(*) AS n
        FROM r x JOIN r y ON x.b = y.b JOIN s ON s.b = y.b GROUP BY x.b""",
    "circle": """SELECT SUM(r.a * t.f) AS total FROM r, s, t
        WHERE r.b = s.b AND s.d = t.d AND t.d = r.b""",
    "one key": """SELECT s.g, SUM(r.a * t.f) AS total, COUNT(*) AS n, COUNT(c.w) AS m
        FROM r JOIN s ON r.b = s.b JOIN t ON s.b = t.d JOIN c ON t.d = c.id GROUP BY s.g""",
    "twice": """SELECT SUM(r.a * t.f) AS total, SUM(c.w) AS w FROM r, s, t, c
        WHERE r.b = s.b AND r.b = s.d AND t.d = s.d AND c.id = t.d""",
    "triangle": """SELECT COUNT(*) AS n FROM s x, s y, s z
        WHERE x.b = y.d AND y.b = z.d AND z.b = x.d""",
    "tied": """SELECT s.g, SUM(r.a) AS total FROM r JOIN s ON r.b = s.b JOIN t ON s.d = t.d
        AND t.f < s.b + 2 GROUP BY s.g""",
    "product": "SELECT s.g, SUM(r.a) AS total, COUNT(*) AS n FROM r, s GROUP BY s.g",
    "nested": """SELECT s.g, SUM(q.top * t.f) AS total FROM s JOIN t ON s.d = t.d
        JOIN (SELECT b, MAX(a) AS top FROM r GROUP BY b) q ON q.b = s.b GROUP BY s.g""",
    "listed": """SELECT s.g, SUM(r.a) AS total, COUNT(*) AS n FROM r JOIN s ON r.b = s.b
        JOIN c ON c.id = s.d WHERE s.b IN (SELECT b FROM r GROUP BY b HAVING SUM(a) > 1)
        GROUP BY s.g""",
    "having": """SELECT s.d, SUM(r.a * t.f) AS total FROM r JOIN s ON r.b = s.b
        JOIN t ON s.d = t.d GROUP BY s.d HAVING SUM(r.a * t.f) > 3""",
}
VALUES = {
    "r": lambda rnd: (
        rnd.choice((None, "0.00", "1.25", "-3.10", "7.00")),
        rnd.choice((None, 1, 2)),
    ),
    "s": lambda rnd: (rnd.choice((1, 2)), rnd.choice((None, 1, 2)), rnd.choice((None, "x", "y"))),
    "t": lambda rnd: (rnd.choice((1, 2)), rnd.choice((None, -1, 2, 3))),
}


class Shop:
    """Tables r, s, t and c with random changes: NULLs, duplicates, emptied and filled again."""

    def __init__(self, db: ev.Database, seed: int) -> None:
        self.db, self.random = db, random.Random(seed)
        self.rows: dict[str, list[tuple[object, ...]]] = {"r": [], "s": [], "t": [], "c": []}

    def transact(self, number: int) -> None:
        """Random inserts and deletes of all tables; the fourth transaction empties one of them."""
        with self.db.transaction() as tx:
            for name, make in VALUES.items():
                gone = [row for row in self.rows[name] if self.random.random() < 0.3]
                if number == 3 and name == self.random.choice("rst"):
                    gone = list(self.rows[name])
                for row in gone:
                    self.rows[name].remove(row)
                fresh = [make(self.random) for _ in range(self.random.randrange(1, 5))]
                self.rows[name] += fresh
                tx.delete(name, gone)
                tx.insert(name, fresh)
            keys = {row[0] for row in self.rows["c"]}
            new = (self.random.randrange(1, 4), self.random.choice("ab"), "1.50")
            old = [row for row in self.rows["c"] if row[0] == new[0]]
            if new[0] in keys:
                tx.delete("c", old)
                self.rows["c"].remove(old[0])
            else:
                tx.insert("c", [new])
                self.rows["c"].append(new)


def declare(db: ev.Database, policy: str, queries: dict[str, str], suffix: str = "") -> None:
    """Every query as a view under a policy."""
    for name, text in queries.items():
        db.sql(f"CREATE VIEW `{name}{suffix}` WITH (policy = '{policy}') AS {text}")


@pytest.mark.parametrize("seed", range(6 if THOROUGH else 1))
def test_grouped_joins_equal_recomputation_under_each_policy(tmp_path, seed):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        shop = Shop(db, seed)
        for number, policy in enumerate(POLICIES):
            declare(db, policy, QUERIES, str(number))
        for number in range(5):
            shop.transact(number)
            assert db.audit().ok
            for name in QUERIES:
                first, *others = (sorted(map(repr, db.read(f"{name}{n}").rows())) for n in range(3))
                assert all(first == other for other in others), name
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        shop.db = db
        shop.transact(8)
        assert db.audit().ok


@pytest.mark.spark
def test_products_of_totals_are_right_on_spark(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql(TABLES)
        shop = Shop(db, 11)
        declare(db, HIGHER_ORDER, {n: QUERIES[n] for n in ("pairs", "cases", "keyed", "itself")})
        for number in range(3):
            shop.transact(number)
            assert db.audit().ok


SIMILAR = """SELECT SUM((r.a + 1) * s.b) AS computed, SUM(r.`a + 1` * s.b) AS named,
    SUM(CASE WHEN r.g <> 'x' THEN r.a END * s.b) AS small,
    SUM(CASE WHEN r.g <> 'X' THEN r.a END * s.b) AS capital,
    SUM(CASE WHEN r.g IN ('`x') THEN r.a END * s.b) AS quoted,
    SUM(CASE WHEN r.g IN ('x') THEN r.a END * s.b) AS plain, COUNT(`r.a`.k) AS k, COUNT(r.a) AS n
    FROM r JOIN s ON r.k = s.k JOIN `r.a` ON `r.a`.k = s.k"""
"""Factors whose texts differ by quotes and case alone, and a table named like a column."""


def test_factors_that_are_written_alike_are_told_apart(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(
            "CREATE TABLE r (k INT, a DECIMAL(8,2), `a + 1` DECIMAL(8,2), g STRING);"
            "CREATE TABLE s (k INT, b DECIMAL(6,2)); CREATE TABLE `r.a` (k INT)"
        )
        declare(db, CIRCUIT, {"pairs": SIMILAR})
        declare(db, HIGHER_ORDER, {"maps": SIMILAR})
        db.sql(
            "INSERT INTO s VALUES (1, 2), (1, 4), (2, 3); INSERT INTO `r.a` VALUES (1), (1), (2)"
        )
        db.sql("INSERT INTO r VALUES (1, 2, 70, 'x'), (1, 7, 80, 'X'), (1, 5, 90, '`x')")
        db.sql("INSERT INTO r VALUES (2, NULL, NULL, 'y'), (2, NULL, 1, NULL)")
        db.sql("DELETE FROM s WHERE b = 4")
        assert db.audit().ok
        assert db.read("maps").rows() == db.read("pairs").rows()
        assert len(set(map(str, db.read("maps").rows()[0]))) == 8


SAMPLE = [name for name, text in CONSTRUCTS.items() if "JOIN" in text and "SUM" in text]


def _follow_constructs(tmp_path, policy: str, names: list[str]) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        world = World(db, seed=9)
        world.transact(0)
        declare(db, policy, {f"v_{name}": CONSTRUCTS[name] for name in names})
        for number in range(1, 4):
            world.transact(number)
            assert db.audit().ok


@pytest.mark.parametrize("policy", [FIRST_ORDER, HIGHER_ORDER])
def test_a_sample_of_the_constructs_equals_recomputation_under_each_policy(tmp_path, policy):
    _follow_constructs(tmp_path, policy, [*SAMPLE, *list(CONSTRUCTS)[::25]])


@pytest.mark.slow
@pytest.mark.parametrize("policy", [FIRST_ORDER, HIGHER_ORDER])
@pytest.mark.parametrize("first", range(0, len(CONSTRUCTS), 30))
def test_every_construct_equals_recomputation_under_each_policy(tmp_path, policy, first):
    _follow_constructs(tmp_path, policy, list(CONSTRUCTS)[first : first + 30])


def _rows_read(location: str, policy: str, size: int) -> int:
    """How many rows one row into s reads of groups of `size` rows on either side."""
    with ev.open(location, engine="duckdb") as db:
        db.sql(TABLES)
        declare(db, policy, {"pairs": QUERIES["pairs"]})
        with db.transaction() as tx:
            tx.insert("r", [(f"{n}.00", 1) for n in range(size)])
            tx.insert("t", [(1, n) for n in range(size)])
        db.sql("INSERT INTO s VALUES (1, 1, 'x')")
        assert db.audit().ok
        return sum(entry.rows_read for entry in db.history(1) if entry.view == "pairs")


def test_one_row_reads_partial_sums_and_forms_no_pairs(tmp_path):
    read = {
        (policy, size): _rows_read(str(tmp_path / f"{policy}{size}"), policy, size)
        for policy in (CIRCUIT, HIGHER_ORDER)
        for size in (5, 200)
    }
    assert read[HIGHER_ORDER, 5] == read[HIGHER_ORDER, 200] <= 3
    assert read[CIRCUIT, 200] >= 400


def _policies(db: ev.Database) -> dict[str, str]:
    return {each.name: each.policy.split(" ")[0] for each in db.status() if each.kind == "view"}


def test_a_policy_is_chosen_when_a_view_is_declared_and_kept(tmp_path):
    location = str(tmp_path / "store")
    with ev.open(location, engine="duckdb") as db:
        db.sql(TABLES)
        db.sql(f"CREATE VIEW pairs AS {QUERIES['pairs']}")
        db.sql(f"CREATE VIEW keyed AS {QUERIES['keyed']}")
        db.sql("CREATE VIEW plain AS SELECT b, SUM(a) AS a FROM r GROUP BY b")
        db.sql(f"CREATE VIEW triangle AS {QUERIES['triangle']}")
        db.sql(f"CREATE VIEW fixed WITH (policy = 'first-order') AS {QUERIES['pairs']}")
        chosen = _policies(db)
        assert chosen["pairs"] == HIGHER_ORDER
        assert (chosen["plain"], chosen["fixed"]) == (CIRCUIT, FIRST_ORDER)
        assert chosen["triangle"] == CIRCUIT
        reason = next(each.policy for each in db.status() if each.name == "pairs")
        assert "reads about" in reason
        assert "maps kept" in reason
    with ev.open(location, engine="duckdb") as db:
        assert _policies(db) == chosen


SHOPS = """
    CREATE TABLE towns (town BIGINT PRIMARY KEY, land STRING);
    CREATE TABLE buyers (buyer BIGINT PRIMARY KEY, town BIGINT);
    CREATE TABLE shops (shop BIGINT PRIMARY KEY, town BIGINT, open BOOLEAN);
    CREATE TABLE bills (bill BIGINT PRIMARY KEY, buyer BIGINT);
    CREATE TABLE items (bill BIGINT, shop BIGINT, price DECIMAL(8,2))
"""
LOCAL = """SELECT land, SUM(price) AS total, COUNT(*) AS n, AVG(price) AS mean
    FROM towns t JOIN buyers b ON b.town = t.town JOIN bills l ON l.buyer = b.buyer
    JOIN items i ON i.bill = l.bill JOIN shops s ON s.shop = i.shop AND s.town = t.town
    WHERE s.open GROUP BY land"""
"""What is bought in the town one lives in: Q5 of TPC-H, small."""


class Town:
    """Tables of SHOPS with random changes: NULLs, duplicates, rows that join nothing."""

    ROWS: ClassVar = {"towns": 6, "buyers": 60, "shops": 12, "bills": 300, "items": 1200}

    def __init__(self, db: ev.Database, seed: int) -> None:
        self.db, self.random = db, random.Random(seed)
        self.rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in self.ROWS}
        self.number = 0

    def row(self, table: str) -> tuple[object, ...]:
        """A new row, whose key is free."""
        self.number += 1
        any_of = {name: (None, *range(1, count + 2)) for name, count in self.ROWS.items()}
        town = self.random.choice(any_of["towns"])
        taken = {row[0] for row in self.rows[table]}
        key = next(n for n in range(1, 10_000) if n not in taken)
        match table:
            case "towns":
                return key, self.random.choice(("x", "y", None))
            case "buyers":
                return key, town
            case "shops":
                return key, town, self.random.choice((True, True, False, None))
            case "bills":
                return key, self.random.choice(any_of["buyers"])
            case _:
                price = self.random.choice((None, "0.00", "1.25", "-7.50"))
                bill, shop = (self.random.choice(any_of[n]) for n in ("bills", "shops"))
                return bill, shop, price

    def transact(self, tables: tuple[str, ...], share: float = 0.2) -> None:
        """Some rows of the tables go, and as many come; all of them go with a share of 1."""
        with self.db.transaction() as tx:
            for name in tables:
                gone = [row for row in self.rows[name] if self.random.random() < share]
                for row in gone:
                    self.rows[name].remove(row)
                fresh = list[tuple[object, ...]]()
                while len(self.rows[name]) < self.ROWS[name] and share < 1:
                    fresh.append(self.row(name))
                    self.rows[name].append(fresh[-1])
                tx.delete(name, gone)
                tx.insert(name, fresh)


def _maps(db: ev.Database, view: str) -> int:
    return sum("stored as" in line for line in db.explain(view, stage="deltas").splitlines())


def test_a_chosen_policy_keeps_the_maps_that_pay_and_reads_less(tmp_path):
    location = str(tmp_path / "store")
    with ev.open(location, engine="duckdb") as db:
        db.sql(SHOPS)
        town = Town(db, 5)
        town.transact(tuple(Town.ROWS), 0)
        db.sql(f"CREATE VIEW chosen AS {LOCAL}")
        declare(db, CIRCUIT, {"circuit": LOCAL})
        assert _policies(db)["chosen"] == HIGHER_ORDER
        kept = next(each.states for each in db.status() if each.name == "chosen")
        assert _maps(db, "chosen") == 1
        read = {"chosen": 0, "circuit": 0}
        for name in Town.ROWS:
            town.transact((name,), 4 / Town.ROWS[name])
            for each in db.history(1):
                if each.view in read:
                    read[each.view] += each.rows_read or 0
            assert db.audit().ok, name
        assert read["chosen"] < read["circuit"]
        declare(db, HIGHER_ORDER, {"declared": LOCAL})
        assert _maps(db, "declared") > 2
        town.transact(tuple(Town.ROWS))
        assert db.audit().ok
        db.sql("DROP VIEW declared; DROP VIEW circuit")
        assert next(each.states for each in db.status() if each.name == "chosen") == kept
    with ev.open(location, engine="duckdb") as db:
        town.db = db
        assert next(each.states for each in db.status() if each.name == "chosen") == kept
        for share in (0.5, 1, 0):
            town.transact(tuple(Town.ROWS), share)
            assert db.audit().ok
        db.sql("ALTER TABLE shops RENAME TO stores")
        with db.transaction() as tx:
            tx.delete("stores", town.rows["shops"][:3])
        assert db.audit().ok


def test_products_of_integers_keep_their_overflow_unless_the_policy_is_declared(tmp_path):
    query = "SELECT SUM(x.k * y.k) AS total FROM n x JOIN m ON x.g = m.g JOIN n y ON y.g = m.h"
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE n (g INT, k INT); CREATE TABLE m (g INT, h INT)")
        db.sql(f"CREATE VIEW chosen AS {query}")
        assert _policies(db)["chosen"] == CIRCUIT
        assert "overflow" in next(e.policy for e in db.status() if e.name == "chosen")


def test_another_policy_rebuilds_what_differs_and_the_feed_goes_on(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        shop = Shop(db, 3)
        declare(db, CIRCUIT, {"pairs": QUERIES["pairs"]})
        shop.transact(0)
        segments = {each.name: each.segments for each in db.status()}
        states = {each.name for each in db.status() if each.kind == "state"}
        feed = db.changes("pairs", after=0).rows()
        for policy in (HIGHER_ORDER, FIRST_ORDER, CIRCUIT):
            text = f"WITH (policy = '{policy}') AS {QUERIES['pairs']}"
            db.sql(f"CREATE OR REPLACE VIEW pairs {text}")
            now = {each.name: each.segments for each in db.status()}
            assert now["pairs"] == segments["pairs"]
            assert db.changes("pairs", after=0).rows() == feed
            assert _policies(db)["pairs"] == policy
            kept = {each.name for each in db.status() if each.kind == "state"}
            assert bool(kept) == (policy != FIRST_ORDER)
            assert (kept == states) == (policy == CIRCUIT)
            assert db.audit().ok
        shop.transact(1)
        assert db.audit().ok


def test_equal_maps_of_views_with_other_names_are_stored_once(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        declare(db, HIGHER_ORDER, {"one": QUERIES["whole"]})
        before = {each.name for each in db.status() if each.kind == "state"}
        other = "SELECT SUM(k.a * l.f) AS x FROM r k JOIN s m ON k.b = m.b JOIN t l ON m.d = l.d"
        declare(db, HIGHER_ORDER, {"other": other})
        assert {each.name for each in db.status() if each.kind == "state"} == before


def test_a_lookup_that_only_a_state_needs_finds_all_its_columns(tmp_path):
    """The state of `v` looks `t` up by d and g, after `w` has had it arranged by d alone."""
    with ev.open(str(tmp_path), engine="duckdb") as db:
        db.sql("""
            CREATE TABLE t (a INT PRIMARY KEY, d INT, g DECIMAL(5,0));
            CREATE TABLE u (k INT PRIMARY KEY, c BIGINT);
            CREATE VIEW v WITH (policy = 'first-order') AS SELECT u.c, SUM(u.c / 4) AS s
              FROM t JOIN u ON TRUE WHERE (t.d, t.g) IN (SELECT a, g FROM t) GROUP BY 1;
            CREATE VIEW w AS SELECT u.k FROM u JOIN t ON u.c = t.d;
            INSERT INTO t VALUES (1, 1, 5), (2, 1, 5), (3, 1, 6), (4, NULL, 5);
            INSERT INTO u VALUES (1, 1), (2, 3), (3, NULL);
            UPDATE t SET d = 3 WHERE a = 2; DELETE FROM t WHERE a = 4; DELETE FROM u WHERE k = 3;
            UPDATE t SET g = 6 WHERE a = 1
        """)
        assert sorted(db.read("v").rows()) == [(1, 0.5), (3, 1.5)]
        assert sorted(db.read("w").rows()) == [(1,), (1,), (2,)]
        assert db.audit().ok


def test_a_subquery_that_aggregates_is_a_factor_of_a_join(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        declare(db, HIGHER_ORDER, {"listed": QUERIES["listed"]})
        shown = db.explain("listed", stage="deltas")
    assert "Δc: reads " in shown
    assert "can be split" not in shown


def test_a_policy_that_does_not_exist_is_refused(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        for policy in ("lazy", "", "higher_order"):
            with pytest.raises(UserError, match="not part of the language") as caught:
                db.sql(f"CREATE VIEW v WITH (policy = '{policy}') AS SELECT * FROM r")
            assert caught.value.code == "Q003"
            assert "higher-order" in caught.value.remedy
        assert not [each for each in db.status() if each.kind == "view"]


def test_explain_shows_degrees_and_the_maps_of_each_delta(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        declare(db, HIGHER_ORDER, {"whole": QUERIES["whole"]})
        lines = db.explain("whole", stage="deltas").splitlines()
        assert lines[0] == "policy higher-order (declared)"
        assert lines[1] == "Σ over r ⋈ s ⋈ t by nothing: degree 3"
        assert "  Δs: reads r by r.b; t by t.d  -- constant work" in lines
        assert "  Δr: reads s ⋈ t by s.b  -- constant work" in lines
        assert sum("degree 2, stored as" in line for line in lines) == 2


def test_columns_that_are_known_to_be_equal_hold_no_relations_together(tmp_path):
    """All four are joined by one value, so a change looks up each of the others, and no pairs."""
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        declare(db, HIGHER_ORDER, {"keyed": QUERIES["one key"]})
        shown = db.explain("keyed", stage="deltas")
    assert "stored as" not in shown
    assert "Δr: reads c by c.id, a unique key; s by s.b; t by t.d" in shown


def test_explain_names_the_keys_that_are_examined_again(tmp_path):
    views = {
        "linear": "SELECT b, SUM(a) AS a FROM r GROUP BY b",
        "largest": "SELECT b, MAX(a) AS a FROM r GROUP BY b",
        "unequal": "SELECT SUM(r.a) AS a FROM r JOIN s ON r.b < s.b",
        "looked_up": "SELECT r.b, c.n FROM r JOIN c ON r.b = c.id",
        "nested": QUERIES["nested"],
    }
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        declare(db, CIRCUIT, views)
        found = {name: db.explain(name, stage="deltas").splitlines()[1:] for name in views}
        declare(db, HIGHER_ORDER, {"by_day": KEYED_BY_MORE})
        assert "  Δs: reads r by r.b; t by t.d  -- examines every r.a" in db.explain(
            "by_day", stage="deltas"
        )
    assert found["linear"] == ["totals over r: degree 1  -- constant work"]
    assert found["largest"][1:] == ["examined again:", "  Δr: groups by r.b"]
    assert found["unequal"][2:] == ["  Δr: s all rows", "  Δs: r all rows"]
    assert found["looked_up"][2:] == ["  Δr: c by c.id, a unique key", "  Δc: r by r.b"]
    assert any(line.startswith("  Δr: groups by ") for line in found["nested"])


def test_status_advises_by_what_was_read_and_switches_nothing(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        declare(db, CIRCUIT, {"pairs": QUERIES["pairs"], "plain": "SELECT b, d FROM s"})
        declare(db, HIGHER_ORDER, {"maps": QUERIES["pairs"]})
        declare(db, FIRST_ORDER, {"whole": QUERIES["whole"]})
        with db.transaction() as tx:
            tx.insert("r", [(f"{n}.00", 1) for n in range(300)])
            tx.insert("t", [(1, n) for n in range(300)])
        assert not any(each.advice for each in db.status())
        for _ in range(4):
            db.sql("INSERT INTO s VALUES (1, 1, 'x')")
        found = {each.name: each for each in db.status() if each.kind == "view"}
        assert found["pairs"].advice.startswith("higher-order: half of the last 5 ")
        assert found["whole"].advice.startswith(("circuit: ", "higher-order: "))
        assert not found["maps"].advice
        assert not found["plain"].advice
        assert _policies(db)["pairs"] == CIRCUIT
    shown = CliRunner().invoke(main, ["status", str(tmp_path / "store"), "--engine", "duckdb"])
    assert "advice for pairs: higher-order: half of the last 5 " in shown.output
    [line] = [each for each in shown.output.splitlines() if "maps" in each and " view " in each]
    assert f"{len(found['maps'].states)}, " in line.partition(HIGHER_ORDER)[2]


KEYED_BY_MORE = """SELECT r.a, SUM(t.f) AS total FROM r JOIN s ON r.b = s.b JOIN t ON s.d = t.d
    GROUP BY r.a"""
