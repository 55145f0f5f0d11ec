"""Views in every language follow a rename by their trees, or are named in the refusal."""

from __future__ import annotations

from collections import Counter

import pytest

import everview as ev

SETUP = """
CREATE TABLE r (k INT, a INT, t STRING);
CREATE TABLE s (k INT, b INT);
CREATE VIEW base AS SELECT k, a FROM r;
INSERT INTO r VALUES (1, 2, 'r'), (2, 3, 'k'), (2, 3, 'k'), (9, 4, 's');
INSERT INTO s VALUES (1, 5), (2, 6)
"""
RELALG = {
    "r1": "Π[a](σ[k > 1 AND t <> 'r'](R))",
    "r2": "Π[k, a](r) ⋈ s",
    "r3": "Π[k](r) − Π[k](s)",
    "r4": "Π[k, a](r) ∩ base",
}
AGCA = "g1[k] := Sum(r(k, a, _) * a); g2[] := Sum(R(k, a, t?) * s(k, b) * a); g3[k] := base(k, _)"
RENAMES = (
    "ALTER TABLE r RENAME TO `new r`",
    "ALTER TABLE r RENAME COLUMN a TO `σ a`, RENAME COLUMN t TO a",
    "ALTER TABLE s RENAME COLUMN k TO other",
    "ALTER TABLE s RENAME COLUMN b TO a",
    "ALTER VIEW base RENAME TO k",
    "ALTER VIEW g1 RENAME TO renamed",
    "ALTER TABLE r RENAME COLUMN k TO x; ALTER TABLE r RENAME TO t;"
    "ALTER TABLE t RENAME COLUMN x TO k",
)


def contents(db, names):
    return {name: Counter(db.read(name).rows()) for name in names}


@pytest.mark.parametrize("statement", RENAMES)
def test_views_of_relational_algebra_and_agca_follow_a_rename(tmp_path, statement):
    where = tmp_path / "store"
    with ev.open(where, engine="duckdb") as db:
        db.sql(SETUP)
        for name, text in RELALG.items():
            db.relalg(name, text)
        db.agca(AGCA)
        views = [name for name in db.catalog.views if name not in ("base", "g1")]
        before, epoch = contents(db, views), db.epoch
        assert all(before.values())
        db.sql(statement)
        assert contents(db, views) == before
        assert all(len(db.changes(name, after=epoch).rows()) == 0 for name in views)
    with ev.open(where, engine="duckdb") as db:
        table = next(n for n in db.catalog.tables if len(db.catalog.schema(n)) == 3)
        db.insert(table, [(2, 9, "z")])
        db.insert("s", [(9, 9)])
        assert db.audit().ok
        assert contents(db, views) != before


def test_a_new_column_is_not_joined_by_an_older_view(tmp_path):
    with ev.open(tmp_path / "store", engine="duckdb") as db:
        db.sql(SETUP)
        db.relalg("joined", RELALG["r2"])
        before = db.read("joined").rows()
        db.sql("ALTER TABLE s ADD COLUMN a INT DEFAULT 0")
        db.insert("s", [(9, 1, 4)])
        assert Counter(db.read("joined").rows()) == Counter([*before, (9, 4, 1)])
        assert db.audit().ok


def test_a_column_that_a_view_does_not_read_is_dropped_after_a_rename(tmp_path):
    with ev.open(tmp_path / "store", engine="duckdb") as db:
        db.sql(SETUP)
        db.relalg("some", "Π[b](σ[k > 1](Π[k](r) ⋈ s)) ∪ Π[b](σ[a = 3](r × Π[b](s)))")
        db.relalg("every", "r − r")
        db.sql("ALTER TABLE r RENAME COLUMN k TO key")
        with pytest.raises(ev.UserError, match="every would break"):
            db.sql("ALTER TABLE r DROP COLUMN t")
        db.sql("DROP VIEW every; ALTER TABLE r DROP COLUMN t")
        with pytest.raises(ev.UserError, match="some would break"):
            db.sql("ALTER TABLE r DROP COLUMN a")
        db.insert("r", [(1, 3)])
        assert Counter(db.read("some").rows()) == Counter([(5,), (6,)])
        assert db.audit().ok


@pytest.mark.parametrize("to", ["r RENAME TO q", "r RENAME COLUMN a TO q"])
def test_what_cannot_follow_is_named_and_nothing_happens(tmp_path, to):
    with ev.open(tmp_path / "store", engine="duckdb") as db:
        db.sql(SETUP)
        db.nested("for x in r where x.a > 2 union sng(x.k)", name="large")
        db.sql("CREATE VIEW over AS SELECT COUNT(*) AS n FROM large")
        db.datalog(".decl p(x: number)\n.input p\n.decl q2(x: number)\n.output q2\nq2(x) :- p(x).")
        epoch = db.epoch
        for text, names in {to: "large, over", "p RENAME TO o": "q2"}.items():
            with pytest.raises(ev.UserError, match=f"{names} would break") as refused:
                db.sql(f"ALTER TABLE {text}")
            assert (refused.value.code, db.epoch) == ("C008", epoch)
        db.sql(f"ALTER TABLE {to} CASCADE")
        assert {*db.catalog.views} == {"base", "q2"}
        assert db.audit().ok
