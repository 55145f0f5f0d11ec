"""Changes that say too much are minimized on the way in, and feeds are minimal on the way out."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from cases import THOROUGH
from e2e.previewing import bag

SETUP = """
CREATE TABLE bag (x INT, y STRING);
CREATE TABLE one (x INT, y STRING) WITH (kind = 'set');
CREATE TABLE keyed (x INT PRIMARY KEY, y STRING) WITH (kind = 'set');
CREATE VIEW of_bag AS SELECT y, COUNT(*) AS n, SUM(x) AS s FROM bag GROUP BY y;
CREATE VIEW of_one AS SELECT y, COUNT(*) AS n, SUM(x) AS s FROM one GROUP BY y;
CREATE VIEW both AS SELECT x, y FROM bag UNION SELECT x, y FROM one
"""
VALUES = [(x, y) for x in (None, 1, 2) for y in (None, "a")]
ROWS = st.lists(st.sampled_from(VALUES), max_size=4)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["bag", "one"]),
        st.sampled_from(["apply", "statements", "apart", "update"]),
        ROWS,
        ROWS,
    ),
    min_size=1,
    max_size=6,
)


def model(old: Counter, deleted: Counter, inserted: Counter, *, once: bool) -> Counter:
    """(R − ∇R) ∪ ΔR, where − takes away what is there and ∪ keeps the more of two."""
    wanted = Counter({**dict.fromkeys(inserted, 1)}) if once else inserted
    return (old - deleted) | wanted


def values_of(rows) -> str:
    shown = (", ".join("NULL" if v is None else repr(v) for v in row) for row in rows)
    return ", ".join(f"({each})" for each in shown)


def apply_step(db, tx, step) -> None:
    """One change of a table, in one of the ways there are; a bag is changed by `apply` alone."""
    table, way, deleted, inserted = step
    if way == "apply" or table == "bag":
        tx.apply(table, deleted=deleted, inserted=inserted, minimal=True)
    elif way == "apart":
        tx.delete(table, deleted)
        tx.insert(table, inserted)
    elif way == "update":
        db.sql("UPDATE one SET x = 1 WHERE y IS NULL")
    else:
        db.sql("DELETE FROM one WHERE x = 1")
        if inserted:
            db.sql(f"INSERT INTO one VALUES {values_of(inserted)}")


def expect(step, old: Counter) -> Counter:
    """What a table has after a step."""
    table, way, deleted, inserted = step
    if way == "update" and table == "one":
        return Counter({(1, y) if y is None else (x, y): 1 for x, y in old})
    if way == "statements" and table == "one":
        deleted = [row for row in old if row[0] == 1]
    return model(old, Counter(deleted), Counter(inserted), once=table == "one")


def check_random(db, transactions) -> None:
    expected = {"bag": Counter(), "one": Counter()}
    for steps in transactions:
        epoch, before = db.epoch, {name: bag(db.read(name)) for name in (*expected, "both")}
        db.sql("BEGIN")
        tx = db.handle.thread.transaction
        for step in steps:
            apply_step(db, tx, step)
            expected[step[0]] = expect(step, expected[step[0]])
            assert bag(tx.read(step[0])) == expected[step[0]], step
        db.sql("COMMIT")
        for name, old in before.items():
            deleted, inserted = map(bag, db.changes(name, after=epoch, pair=True))
            assert deleted <= old
            assert not deleted & inserted
            assert name == "bag" or not inserted & old
            assert (
                old - deleted + inserted
                == bag(db.read(name))
                == expected.get(name, bag(db.read(name)))
            )
    assert db.audit().ok


@settings(max_examples=60 if THOROUGH else 3)
@given(st.lists(STEPS, min_size=1, max_size=3))
def test_changes_that_say_too_much_are_minimized(tmp_path_factory, transactions):
    path = str(tmp_path_factory.mktemp("minimal") / "store")
    with ev.open(path, engine="duckdb") as db:
        db.sql(SETUP)
        check_random(db, transactions)


def random_steps(seed: int):
    chance = Random(seed)

    def rows():
        return [chance.choice(VALUES) for _ in range(chance.randint(0, 4))]

    ways = ("apply", "statements", "apart", "update")
    return [
        [(chance.choice(["bag", "one"]), chance.choice(ways), rows(), rows()) for _ in range(3)]
        for _ in range(2)
    ]


@pytest.mark.spark
@pytest.mark.parametrize("large_rows", [pytest.param(-1, marks=pytest.mark.slow), 1000])
def test_changes_are_minimized_on_spark(spark, tmp_path, large_rows):
    """Also as DataFrames, and where executors alone have the rows."""
    from e2e.test_gears import opened

    with opened(tmp_path / "store", spark, large_rows=large_rows) as db:
        db.sql(SETUP)
        check_random(db, random_steps(3))
        old = {name: bag(db.read(name)) for name in ("bag", "one")}
        gone, fresh = [(1, "a"), (7, None)], [(1, "a"), (1, "a"), (8, None), (8, None)]
        with db.transaction() as tx:
            frames = [spark.createDataFrame(rows, "x INT, y STRING") for rows in (gone, fresh)]
            tx.apply("bag", deleted=frames[0], inserted=frames[1], minimal=True)
            tx.insert("one", frames[1])
            tx.delete("one", frames[0])
        wanted = model(old["bag"], Counter(gone), Counter(fresh), once=False)
        assert bag(db.read("bag")) == wanted
        inserted = model(old["one"], Counter(), Counter(fresh), once=True)
        assert bag(db.read("one")) == inserted - Counter(gone)
        assert db.audit().ok


@pytest.fixture
def db(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql(SETUP)
        yield db


def test_the_union_of_the_paper_changes_by_one_row(db):
    """Prop. 1: R1 = {a, b}, R2 = {a}; b leaves R1, b and c come to R2. Only c is new."""
    for name in ("r1", "r2"):
        db.sql(f"CREATE TABLE {name} (x STRING) WITH (kind = 'set')")
    db.sql("CREATE VIEW q AS SELECT x FROM r1 UNION SELECT x FROM r2")
    db.sql("INSERT INTO r1 VALUES ('a'), ('b'); INSERT INTO r2 VALUES ('a')")
    before = db.epoch
    with db.transaction() as tx:
        tx.apply("r1", deleted=[("b",)], minimal=True)
        tx.apply("r2", inserted=[("b",), ("c",)], minimal=True)
        assert [each.rows() for each in tx.preview("q")] == [[], [("c",)]]
    assert [each.rows() for each in db.changes("q", after=before, pair=True)] == [[], [("c",)]]


def test_a_set_stays_one_when_the_store_is_opened_again(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE s (a ARRAY<INT>, d DOUBLE) WITH (kind = 'set')")
        db.insert("s", [([1, 2], 0.5), (None, float("nan"))])
    with open_db(tmp_path / "store") as db:
        epoch = db.epoch
        db.insert("s", [([1, 2], 0.5), (None, float("nan"))])
        db.delete("s", [([2, 1], 0.5)])
        assert db.epoch == epoch, "what changes nothing makes no epoch"
        db.insert("s", [([1, 2], 0.5), ([], None), ([], None)])
        assert len(db.read("s").rows()) == 3


def test_a_set_stays_one_when_its_rows_lose_what_they_refer_to(db):
    db.sql("""
        CREATE TABLE p (k INT PRIMARY KEY);
        CREATE TABLE s (k INT REFERENCES p ON DELETE SET NULL, y STRING) WITH (kind = 'set');
        CREATE VIEW v AS SELECT y, COUNT(*) AS n FROM s GROUP BY y""")
    db.insert("p", [(1,), (2,), (3,)])
    db.insert("s", [(1, "a"), (2, "a"), (3, "a"), (None, "b"), (3, "b")])
    for keys, left in (((1, 2), [(None, "a"), (3, "a")]), ((3,), [(None, "a")])):
        epoch, before = db.epoch, bag(db.read("s"))
        db.delete("p", keys=list(keys))
        after = Counter([*left, (None, "b"), *[row for row in [(3, "b")] if 3 not in keys]])
        assert bag(db.read("s")) == after
        deleted, inserted = map(bag, db.changes("s", after=epoch, pair=True))
        assert (deleted, inserted) == (before - after, after - before)
        assert bag(db.read("v")) == Counter(Counter(y for _, y in after).items())


def test_a_set_of_nested_values_alone_is_minimized(db):
    db.sql("CREATE TABLE n (a ARRAY<INT>) WITH (kind = 'set')")
    for _ in range(2):
        db.insert("n", [([1],), ([1],), (None,)])
    db.delete("n", [([3],), (None,)])
    assert db.read("n").rows() == [([1],)]


@pytest.mark.parametrize("columns", ["x DOUBLE", "x FLOAT, i INT", "x DOUBLE, a ARRAY<INT>"])
def test_both_zeros_are_one_row_of_a_set(tmp_path, columns):
    rest = () if "," not in columns else (1,) if "i INT" in columns else ([1],)
    with ev.open(tmp_path / "store", engine="duckdb") as db:
        db.sql(f"CREATE TABLE z ({columns}) WITH (kind = 'set')")
        for x in (0.0, -0.0, float("nan"), float("nan")):
            db.insert("z", [(x, *rest)])
        assert len(db.read("z").rows()) == 2
        db.delete("z", [(-0.0, *rest)])
        assert len(db.read("z").rows()) == 1


def test_a_key_is_still_a_key(db):
    db.upsert("keyed", [(1, "a")])
    db.insert("keyed", [(1, "a")])
    with pytest.raises(ev.UserError, match="T010"):
        db.insert("keyed", [(1, "b")])
    db.upsert("keyed", [(1, "b"), (2, "c")])
    with db.transaction() as tx:
        tx.apply("keyed", deleted=[(1, "b"), (9, "z")], inserted=[(1, "d")], minimal=True)
    assert bag(db.read("keyed")) == Counter([(1, "d"), (2, "c")])


def test_without_minimal_a_change_is_taken_at_its_word(db):
    db.insert("bag", [(1, "a")])
    with db.transaction() as tx:
        tx.apply("bag", deleted=[(1, "a")], inserted=[(1, "a"), (1, "a")])
    assert bag(db.read("bag")) == Counter({(1, "a"): 2})
    tx = db.transaction()
    tx.apply("bag", deleted=[(5, "q")])
    with pytest.raises(ev.UserError, match="T011"):
        tx.commit()


KEYED = st.lists(st.tuples(st.integers(1, 4), st.sampled_from("abc")), min_size=1, max_size=4)


@settings(max_examples=60 if THOROUGH else 4)
@given(st.lists(st.tuples(KEYED, st.sampled_from(["nothing", "update", "where"])), max_size=5))
def test_conflicts_are_settled_as_a_dict_would(tmp_path_factory, statements):
    path = str(tmp_path_factory.mktemp("conflict") / "store")
    does = {
        "nothing": "DO NOTHING",
        "update": "DO UPDATE SET y = CONCAT(keyed.y, excluded.y)",
        "where": "DO UPDATE SET y = excluded.y WHERE keyed.y < excluded.y",
    }
    with ev.open(path, engine="duckdb") as db:
        db.sql(SETUP)
        expected: dict[int, str] = {}
        for rows, action in statements:
            text = f"INSERT INTO keyed VALUES {values_of(rows)} ON CONFLICT (x) {does[action]}"
            if len(dict(rows)) < len({*rows}):
                with pytest.raises(ev.UserError, match="T006"):
                    db.sql(text)
                continue
            db.sql(text)
            for x, y in {*rows}:
                new = {
                    "nothing": expected.get(x, y),
                    "update": expected.get(x, "") + y,
                    "where": max(expected.get(x, y), y),
                }
                expected[x] = new[action]
            assert dict(db.read("keyed").rows()) == expected
        assert db.audit().ok


def test_conflicts_with_columns_named_and_rows_of_a_query(db):
    db.sql("INSERT INTO keyed VALUES (1, 'a')")
    db.sql(
        "BEGIN; INSERT INTO keyed VALUES (2, 'b');"
        "INSERT INTO keyed (y, x) SELECT UPPER(y), x FROM keyed ON CONFLICT (X) DO UPDATE "
        "SET y = excluded.y; INSERT INTO keyed (x) VALUES (3), (1) ON CONFLICT DO NOTHING; COMMIT"
    )
    db.sql(
        "INSERT INTO keyed AS k (x, y) VALUES (1, 'b') ON CONFLICT (x) DO UPDATE "
        "SET (y, x) = (CONCAT(k.y, excluded.y), k.x + 3) WHERE k.x = 1"
    )
    assert bag(db.read("keyed")) == Counter([(4, "Ab"), (2, "B"), (3, None)])


def test_a_set_is_shown_as_one_and_keeps_the_columns_that_make_its_rows_differ(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(SETUP)
        [(shown,)] = db.sql("SHOW CREATE TABLE one").rows()
        db.sql(shown.replace("one", "two", 1))
        for _ in range(2):
            db.insert("two", [(1, "a")])
        assert db.read("two").rows() == [(1, "a")]
        with pytest.raises(ev.UserError, match="C008") as refused:
            db.sql("ALTER TABLE two DROP COLUMN y")
        assert refused.value.remedy
        db.sql("ALTER TABLE two ADD COLUMN z INT; INSERT INTO two VALUES (1, 'a', NULL)")
        assert db.read("two").rows() == [(1, "a", None)]
        db.sql("ALTER TABLE keyed DROP COLUMN y")


BAD = {
    "INSERT INTO keyed VALUES (1, 'a'), (1, 'b') ON CONFLICT DO NOTHING": "T006",
    "INSERT INTO bag VALUES (1, 'a') ON CONFLICT DO NOTHING": "T004",
    "INSERT INTO one VALUES (1, 'a') ON CONFLICT (x) DO NOTHING": "T004",
    "INSERT INTO keyed VALUES (1, 'a') ON CONFLICT (y) DO NOTHING": "T004",
    "INSERT INTO keyed VALUES (1, 'a') ON CONFLICT (nope) DO NOTHING": "Q007",
    "INSERT INTO keyed VALUES (1, 'a') ON CONFLICT (x) DO UPDATE SET nope = 1": "Q007",
    "INSERT INTO keyed VALUES (1, 'a') ON CONFLICT (x) DO UPDATE SET y = y": "Q008",
    "INSERT INTO keyed VALUES (1, 'a') ON CONFLICT (x) DO UPDATE SET bag.y = 'b'": "Q006",
    "INSERT INTO keyed VALUES (1, 'a') ON CONFLICT (x) DO UPDATE": "Q0",
    "INSERT INTO keyed VALUES (1, 'a') ON CONFLICT (x)": "Q003",
    "INSERT INTO keyed VALUES (1, 'a') ON CONFLICT": "Q003",
    "INSERT INTO keyed VALUES (1, 'a') ON CONFLICT ON CONSTRAINT c DO NOTHING": "Q003",
    "INSERT INTO keyed VALUES (1, 'a') ON CONFLICT (x + 1) DO NOTHING": "Q003",
    "INSERT INTO keyed VALUES (1, 'a') ON DUPLICATE KEY UPDATE y = 'b'": "Q003",
    "INSERT INTO keyed VALUES (1, 'a') ON CONFLICT (x) DO UPDATE SET (x, y) = (1, 'b', 2)": "Q012",
    "CREATE TABLE q (x INT) WITH (kind = 'heap')": "Q003",
    "CREATE TABLE q (x INT) WITH (kinds = 'set')": "Q003",
    "CREATE TABLE q (x INT) WITH (kind = 'set', rows = 'few')": "Q003",
    "CREATE TABLE q (x INT) WITH (kind = 'set', kind = 'bag')": "Q003",
    "CREATE TABLE q WITH (kind = 'set') AS SELECT 1 AS x": "Q004",
}


def test_bad_statements_are_refused_with_their_place_and_nothing_changes(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(SETUP)
        db.insert("keyed", [(1, "z")])
        epoch = db.epoch
        for text, code in BAD.items():
            with pytest.raises(ev.UserError, match=code) as refused:
                db.sql(text)
            assert refused.value.span is not None, text
            assert refused.value.remedy
        for bad in ({"minimal": 1}, {"deleted": 7}, {"inserted": [(1, 2, 3)]}, {"deleted": None}):
            tx = db.transaction()
            with pytest.raises(ev.UserError):
                tx.apply("bag", **bad)
            tx.rollback()
        assert db.epoch == epoch
