"""Tables with arrays, structs and maps: in, out, by row identity, and through views."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

import everview as ev
from e2e.checking import differences

DECLARED = """CREATE TABLE t (id INT, a ARRAY<INT>, r STRUCT<x: INT, y: STRING>,
    ar ARRAY<STRUCT<x: INT, tags: ARRAY<STRING>>>, m MAP<STRING, INT>)"""
ARRAYS = [None, [], [1], [1, 2], [2, 1], [None], [3, None, 3]]
STRUCTS = [None, {"x": 1, "y": "p"}, {"x": None, "y": "p"}, {"x": None, "y": None}, {"x": 2}]
DEEP = [None, [], [{"x": 1, "tags": ["p", None]}, None], [{"x": None, "tags": []}], [(2, ["q"])]]
MAPS = [None, {}, {"b": 1, "a": 2}, {"a": 2, "b": 1}, {"a": None}, {"é": 3, "z": 1}]

VIEWS = {
    "whole": "SELECT * FROM t",
    "distinct_rows": "SELECT DISTINCT a, r, ar FROM t",
    "distinct_maps": "SELECT DISTINCT a, r, ar, map_entries(m) AS m FROM t",
    "by_array": "SELECT a, COUNT(*) AS n, SUM(id) AS z FROM t GROUP BY a",
    "by_struct": "SELECT r, MAX(id) AS n FROM t GROUP BY r",
    "by_map": "SELECT map_entries(m) AS m, COUNT(*) AS n FROM t GROUP BY map_entries(m)",
    "parts": """SELECT id, r.x, t.r.y, size(a) AS n, size(m) AS keys, m['a'] AS va,
        get(a, 1) AS second, ar.x AS xs, map_keys(m) AS ks FROM t""",
    "elements": "SELECT id, e FROM t LATERAL VIEW OUTER explode(a) AS e",
    "deep": """SELECT id, x, tag FROM t LATERAL VIEW inline(ar) AS x, tags
        LATERAL VIEW OUTER explode(tags) AS tag""",
    "entries": "SELECT id, key, value FROM t LATERAL VIEW explode(m) e",
    "keys": "SELECT key, SUM(value) AS n FROM (SELECT explode(m) FROM t) GROUP BY key",
    "same": """SELECT x.id AS i, y.id AS j FROM t x JOIN t y ON x.a = y.a AND x.r <=> y.r""",
    "without": "SELECT a, r FROM t WHERE id > 1 EXCEPT ALL SELECT a, r FROM t WHERE id = 1",
    "without_map": "SELECT id, m FROM t x WHERE NOT EXISTS (SELECT 1 FROM t y WHERE y.id > x.id)",
    "made": "SELECT id, map('z', id, 'b', size(a)) AS m FROM t WHERE id > 1",
    "over_made": "SELECT id, map_keys(m) AS ks, m['b'] AS b FROM made",
    "changed": """SELECT id, filter(a, x -> x > 1) AS big, transform(ar, e -> size(e.tags)) AS n,
        array_append(a, id) AS more, coalesce(m, m) AS m FROM t""",
    "collected": """SELECT id, sort_array(collect_list(r)) AS rs, sort_array(collect_set(a)) AS xs
        FROM t GROUP BY id""",
}


def row(chance: random.Random) -> tuple[object, ...]:
    pick = chance.choice
    return (pick([1, 2, 3]), pick(ARRAYS), pick(STRUCTS), pick(DEEP), pick(MAPS))


@pytest.fixture
def db(open_db, tmp_path):
    db = open_db(tmp_path / "store")
    db.sql(DECLARED)
    yield db
    db.close()


def test_views_of_nested_values_equal_their_queries_after_every_transaction(db):
    chance = random.Random(11)
    db.insert("t", [row(chance) for _ in range(4)])
    for name, text in VIEWS.items():
        db.sql(f"CREATE VIEW {name} AS {text}")
    for number in range(4):
        with db.transaction() as tx:
            present = db.read("t").rows()
            gone = present if number == 2 else chance.sample(present, min(2, len(present)))
            tx.delete("t", gone)
            tx.insert("t", [row(chance) for _ in range(4)])
        assert differences(db, VIEWS) == []
    assert db.audit().ok


def test_rows_with_equal_nested_values_are_one_row(db):
    db.sql("CREATE VIEW v AS SELECT a, r, ar, m FROM t")
    db.sql("CREATE VIEW n AS SELECT a, r, ar, COUNT(*) AS n FROM t GROUP BY a, r, ar")
    values = ([1, None], (1, "p"), [{"x": 1, "tags": ["q"]}])
    db.insert("t", [(1, *values, {"b": 1, "a": 2}), (1, *values, {"b": 1, "a": 2})])
    expected = ([1, None], {"x": 1, "y": "p"}, [{"x": 1, "tags": ["q"]}], {"b": 1, "a": 2})
    assert db.read("v").rows() == [expected] * 2
    assert db.read("n").rows() == [(*expected[:3], 2)]
    with pytest.raises(ev.UserError):
        db.delete("t", [(1, *values, {"a": 2, "b": 1})])
    db.delete("t", [(1, *values, {"b": 1, "a": 2})])
    assert db.read("v").rows() == [expected]
    assert db.read("n").rows() == [(*expected[:3], 1)]
    assert db.read("t").rows() == [(1, *expected)]
    feed = db.changes("v", after=0).rows()
    assert [line[-2] for line in feed] == [2, -1]


def test_sql_writes_and_changes_nested_values(db):
    db.sql(
        "INSERT INTO t VALUES (1, array(1, 2), named_struct('x', 1, 'y', 'p'), NULL, "
        "map('z', 1, 'b', 2)), (2, NULL, NULL, array(), NULL);"
        "UPDATE t SET a = array_append(a, 3) WHERE r.x = 1;"
        "DELETE FROM t WHERE size(ar) = 0"
    )
    assert db.read("t").rows() == [(1, [1, 2, 3], {"x": 1, "y": "p"}, None, {"b": 2, "z": 1})]
    assert db.sql("SELECT m['z'] AS z, get(a, 2) AS last FROM t").rows() == [(1, 3)]


def test_collected_values_come_in_their_order(db):
    db.sql("CREATE VIEW v AS SELECT collect_list(id) AS a, collect_set(r.y) AS b FROM t")
    assert db.read("v").rows() == [([], [])]
    db.insert("t", [(i, None, (i, y), None, None) for i, y in ((3, "q"), (1, None), (3, "p"))])
    assert db.read("v").rows() == [([1, 3, 3], ["p", "q"])]
    assert db.sql("SELECT collect_list(id) AS a FROM t").rows() == [([1, 3, 3],)]
    assert db.audit().ok


def test_arrow_rows_of_nested_types_are_taken(db):
    rows = pa.table(
        {
            "id": pa.array([1], pa.int64()),
            "a": pa.array([[7, None]], pa.large_list(pa.int64())),
            "r": pa.array([{"x": 1, "y": "p"}]),
            "m": pa.array([[("b", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())),
        }
    )
    db.insert("t", rows)
    assert db.read("t").rows() == [(1, [7, None], {"x": 1, "y": "p"}, None, {"a": 2, "b": 1})]


@pytest.mark.parametrize(
    "bad",
    [
        (1, "no list", None, None, None),
        (1, ["x"], None, None, None),
        (1, {"x": 1}, None, None, None),
        (1, None, {"z": 1}, None, None),
        (1, None, (1,), None, None),
        (1, None, None, [{"x": 1, "tags": "p"}], None),
        (1, None, None, None, {1: 1}),
        (1, None, None, None, [("a", 1), ("a", 2)]),
        (1, None, None, None, [(None, 1)]),
    ],
)
def test_what_is_no_value_of_the_type_is_refused(tmp_path, bad):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(DECLARED)
        with pytest.raises(ev.UserError) as caught:
            db.insert("t", [bad])
        assert caught.value.code == "T001"
        assert db.read("t").rows() == []


def test_every_plain_type_may_stand_in_a_nested_one(db):
    db.sql(
        "CREATE TABLE every (v ARRAY<STRUCT<d: DATE, n: DECIMAL(6,2), f: DOUBLE, b: BINARY>>);"
        "CREATE VIEW v AS SELECT DISTINCT v, element_at(v, 1).n AS n FROM every"
    )
    value = {"d": date(2024, 2, 29), "n": Decimal("1.50"), "f": 0.5, "b": b"\x00"}
    db.insert("every", [([("2024-02-29", "1.5", 0.5, b"\x00")],), ([value],)])
    assert db.read("v").rows() == [([value], Decimal("1.50"))]


def test_a_field_may_have_the_name_of_a_reserved_word(tmp_path):
    with ev.open(str(tmp_path / "s"), engine="duckdb") as db:
        fields = "STRUCT<`select`: INT, `not`: STRING>"
        db.sql(f"""
            CREATE TABLE r (id INT PRIMARY KEY, s {fields}, bag BAG<{fields}>);
            CREATE TABLE u (id INT PRIMARY KEY);
            INSERT INTO u VALUES (1), (2);
            CREATE VIEW grouped AS SELECT u.id, max(r.s) AS m, collect_list(r.s) AS every
                FROM u LEFT JOIN r ON r.id = u.id GROUP BY u.id;
            CREATE VIEW kept AS
                SELECT u.id, ARRAY(SELECT r.s FROM r WHERE r.id = u.id) AS every FROM u;
            CREATE VIEW rows_of WITH (nested = 'inline') AS
                SELECT u.id, ARRAY(SELECT r.id, r.s FROM r WHERE r.id = u.id) AS every FROM u;
            CREATE FUNCTION same(x {fields}) RETURNS {fields} RETURN x;
            CREATE VIEW called AS SELECT same(s).`not` AS n, CAST(NULL AS {fields}) AS c FROM r
        """)
        db.insert("r", [(1, (2, "a"), [(3, "b")])])
        db.sql("UPDATE r SET s = named_struct('select', s.`select` + 1, 'not', 'a') WHERE id = 1")
        one = {"select": 3, "not": "a"}
        assert db.read("r").rows() == [(1, one, [{"select": 3, "not": "b"}])]
        assert sorted(db.read("grouped").rows()) == [(1, one, [one]), (2, None, [])]
        assert sorted(db.read("kept").rows()) == [(1, [one]), (2, [])]
        assert sorted(db.read("rows_of").rows()) == [(1, [{"id": 1, "s": one}]), (2, [])]
        assert db.read("called").rows() == [("a", None)]
        assert db.audit().ok
