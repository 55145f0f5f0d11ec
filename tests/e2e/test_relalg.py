"""Views in relational algebra are the sets that they say, and their changes are minimal."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import everview as ev
from everview.database.database import Database
from everview.differentiate.sets.nabla import changes_of
from everview.differentiate.sets.transaction import transaction
from everview.lang.relalg.parse import parse_query
from set_evaluation import Row, Rows, State, evaluate

COLUMNS = {"r": ("a", "b"), "s": ("a", "b"), "u": ("b", "c")}
VIEWS = {
    "selection": "σ[a > 0 OR b IS NULL](r)",
    "projection": "Π[a](r)",
    "product": "Π[a](r) × Π[b AS d](s)",
    "union_of": "r ∪ s",
    "intersection": "r ∩ s",
    "difference": "r − s",
    "natural_join": "r ⋈ u",
    "on_equal_columns": "r ⋈ s",
    "symmetric": "(r − s) ∪ (s − r)",
    "nested": "Π[c]((Π[a, b](r ⋈ u) ∪ s) ⋈ u) − Π[a AS c](s ∩ r)",
    "renamed": "Π[a, d](r ⋈ Π[a AS b, b AS d](s))",
    "of_views": "symmetric ∩ union_of",
}
VALUES = (None, 0, 1, 2)


def drawn(rng: random.Random, most: int) -> list[Row]:
    return [(rng.choice(VALUES), rng.choice(VALUES)) for _ in range(rng.randint(0, most))]


def rows_of(db: Database, name: str) -> Rows:
    """The rows of a view, none of which is there twice."""
    bag = Counter(db.read(name).rows())
    assert set(bag.values()) <= {1}, (name, bag)
    return frozenset(bag)


Pairs = dict[str, tuple[Rows, Rows]]
"""∇V and ΔV of each view."""


def changed(db: Database, rng: random.Random, tables: dict[str, Counter[Row]]) -> Pairs:
    """One transaction: rows and copies of rows go, come, and go and come again; its preview."""
    with db.transaction() as tx:
        for name, rows in tables.items():
            there = sorted(rows.elements(), key=repr)
            gone = rng.sample(there, rng.randint(0, min(3, len(there))))
            come = drawn(rng, 3) + gone[: rng.randint(0, 1)]
            tx.delete(name, gone)
            tx.insert(name, come)
            rows.subtract(gone)
            rows.update(come)
        preview = tx.preview([*VIEWS])
        return {
            name: (frozenset(pair.deleted.rows()), frozenset(pair.inserted.rows()))
            for name, pair in preview.items()
        }


def sets_of(tables: dict[str, Counter[Row]]) -> dict[str, Rows]:
    return {name: frozenset(+rows) for name, rows in tables.items()}


def test_views_are_what_they_say_and_their_changes_are_minimal(open_db, engine, tmp_path):
    """The rows, the feed, and what is previewed: the expressions of Fig. 2 before the commit."""
    rng = random.Random(3)
    tables: dict[str, Counter[Row]] = {name: Counter() for name in COLUMNS}
    moved: Counter[str] = Counter()
    with open_db(tmp_path / "store") as db:
        for name, columns in COLUMNS.items():
            db.sql(f"CREATE TABLE {name} ({columns[0]} INT, {columns[1]} INT)")
            tables[name].update(drawn(rng, 4))
            db.insert(name, list(tables[name].elements()))
        for name, text in VIEWS.items():
            db.relalg(name, text)
        names = dict(COLUMNS)
        names |= {name: tuple(c.name for c in db.source(name).schema) for name in VIEWS}
        before = {name: rows_of(db, name) for name in VIEWS}
        for _ in range(3 if engine == "spark" else 10):
            seen, old = db.epoch, sets_of(tables) | before
            previewed = changed(db, rng, tables)
            new = sets_of(tables)
            state = State(names, old, {n: old[n] - new[n] for n in new}, {})
            state.come = {n: new[n] - old[n] for n in new}
            for name, text in VIEWS.items():
                query = parse_query(text)
                new[name] = evaluate(query, State(names, new))
                assert rows_of(db, name) == new[name], name
                gone, come = feed(db, name, seen)
                assert gone <= before[name], name
                assert not come & before[name], name
                assert (before[name] - gone) | come == new[name], name
                changes = changes_of(transaction(old), query)
                by_rules = evaluate(changes.deleted, state), evaluate(changes.inserted, state)
                assert by_rules == previewed[name] == (gone, come), name
                state.gone, state.come = {**state.gone, name: gone}, {**state.come, name: come}
                moved[name] += bool(gone) + bool(come)
                before[name] = new[name]
        assert db.audit().ok
        if engine == "duckdb":
            assert min(moved[name] for name in VIEWS) > 2, moved
        assert {each.refresh for each in db.status() if each.kind == "view"} == {"incremental"}


def feed(db: Database, name: str, seen: int) -> tuple[Rows, Rows]:
    """∇V and ΔV since an epoch; no row is in both, or in one of them twice."""
    rows = db.changes(name, after=seen).rows()
    weights = {row[:-2]: row[-2] for row in rows}
    assert len(weights) == len(rows), name
    assert set(weights.values()) <= {1, -1}, name
    gone = frozenset(row for row, weight in weights.items() if weight < 0)
    return gone, frozenset(weights) - gone


def test_the_example_of_the_paper_moves_one_row(open_db, tmp_path):
    """R1 = {a, b} loses b, R2 = {a} gets b and c: ∇Q = ∅, ΔQ = {c}."""
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE R1 (x STRING); CREATE TABLE R2 (x STRING)")
        db.relalg("Q", "R1 ∪ R2")
        db.insert("R1", [("a",), ("b",)])
        db.insert("R2", [("a",)])
        seen = db.epoch
        with db.transaction() as tx:
            tx.delete("R1", [("b",)])
            tx.insert("R2", [("b",), ("c",)])
        assert feed(db, "Q", seen) == (frozenset(), {("c",)})
        assert rows_of(db, "Q") == {("a",), ("b",), ("c",)}
        assert db.explain("Q", "nabla").splitlines()[:3] == [
            "Q = R1 ∪ R2",
            "∇Q = (∇R1 − mod(R2)) ∪ (∇R2 − mod(R1))",
            "ΔQ = (ΔR1 − R2) ∪ (ΔR2 − R1)",
        ]


@pytest.fixture
def db(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as opened:
        opened.sql("CREATE TABLE r (a INT, b INT); CREATE TABLE s (a INT, b INT)")
        yield opened


def test_what_is_handed_in_need_not_be_minimal(db):
    """The counterexamples to Fig. 2: what comes in is made a change of sets first."""
    db.relalg("either", "r ∪ s")
    db.relalg("only_r", "r − s")
    db.insert("s", [(0, 0)])
    seen = db.epoch
    with db.transaction() as tx:
        tx.insert("r", [(0, 0), (0, 0)])
        tx.delete("r", [(0, 0)])
        tx.delete("s", [(0, 0)])
    assert rows_of(db, "either") == {(0, 0)}
    assert feed(db, "either", seen) == (frozenset(), frozenset())
    assert feed(db, "only_r", seen) == (frozenset(), {(0, 0)})
    seen = db.epoch
    with db.transaction() as tx:
        tx.delete("r", [(0, 0)])
        tx.insert("r", [(0, 0)])
    db.insert("r", [(0, 0)])
    db.delete("r", [(0, 0)])
    assert feed(db, "only_r", seen) == (frozenset(), frozenset())
    db.sql("UPDATE r SET b = 1")
    assert feed(db, "either", seen) == ({(0, 0)}, {(0, 1)})
    assert db.audit().ok


def test_a_join_without_state_of_what_will_be_reads_slices_only(db):
    """Of ∪, ∩, − and ⋈ no set is read whole for a small change: mod(S) is never made."""
    db.relalg("nested", "Π[a](((r ∪ s) − (r ∩ s)) ⋈ r)")
    db.insert("r", [(number, number) for number in range(300)])
    db.insert("s", [(number, number) for number in range(150)])
    db.insert("s", [(200, 200)])
    shown = db.explain("nested")
    assert "whole" not in shown
    assert db.read("nested").rows().count((200,)) == 0
    [epoch] = [each for each in db.history(1) if each.view == "nested"]
    assert epoch.rows_read < 40


def test_a_view_is_there_again_and_other_languages_read_it(db, tmp_path):
    db.relalg("wide", "r ⋈ Π[a AS b, b AS `c d`](s)")
    db.sql("CREATE VIEW counted AS SELECT `c d` AS c, COUNT(*) AS n FROM wide GROUP BY 1")
    db.datalog(
        ".decl r(x: number, y: number) .input r .decl d(x: number) .output d d(x) :- r(x, _)."
    )
    db.relalg("read_back", "Π[c AS a](counted) ∩ Π[x AS a](d)")
    db.insert("r", [(1, 2), (1, 2), (3, 2), (None, None)])
    db.insert("s", [(2, 1), (None, 5)])
    db.close()
    with ev.open(str(tmp_path / "store"), engine="duckdb") as again:
        assert rows_of(again, "wide") == {(1, 2, 1), (3, 2, 1), (None, None, 5)}
        assert rows_of(again, "read_back") == {(1,)}
        again.delete("s", [(2, 1)])
        assert rows_of(again, "wide") == {(None, None, 5)}
        assert rows_of(again, "read_back") == set()
        assert again.audit().ok
        again.sql("DROP VIEW read_back; DROP VIEW counted; DROP VIEW wide")


def test_a_refused_expression_changes_nothing(db):
    epoch, catalog = db.epoch, db.catalog
    with pytest.raises(ev.UserError) as caught:
        db.relalg("wrong", "r ∪\nσ[a > zero](s)")
    assert caught.value.code == "Q007"
    assert (caught.value.span.line, caught.value.span.column) == (2, 7)
    with pytest.raises(ev.UserError) as caught:
        db.relalg("r", "s")
    assert caught.value.code == "C001"
    with db.transaction(), pytest.raises(ev.UserError) as caught:
        db.relalg("inside", "r")
    assert caught.value.code == "T008"
    assert (db.epoch, db.catalog) == (epoch, catalog)


def test_other_views_have_no_nabla(db):
    db.sql("CREATE VIEW plain AS SELECT a FROM r")
    with pytest.raises(ev.UserError) as caught:
        db.explain("plain", "nabla")
    with pytest.raises(ev.UserError, match="has no pre"):
        db.explain("plain", "pre")
    assert caught.value.code == "R005"
    db.relalg("same", "plain")
    assert db.explain("same", "nabla").splitlines()[:3] == [
        "same = plain",
        "∇same = ∇plain",
        "Δsame = Δplain",
    ]


def test_what_a_view_will_be_is_shown_over_what_its_relations_are(tmp_path):
    with ev.open(tmp_path / "store", engine="duckdb") as db:
        db.sql("CREATE TABLE r (a INT, b INT); CREATE TABLE s (b INT, c INT)")
        db.relalg("q", "project[a](select[b > 1](r)) minus project[a](r join s)")
        shown = db.explain("q", "pre").splitlines()[0]
        r, s = "(r − ∇r) ∪ Δr", "(s − ∇s) ∪ Δs"
        assert shown == f"pre(q) = Π[a](σ[`b` > 1]({r})) − Π[a](({r}) ⋈ ({s}))"
        written = shown.partition(" = ")[2]
        db.insert("r", [(1, 2), (2, 2), (3, 0)])
        db.insert("s", [(2, 9)])
        with db.transaction() as tx:
            tx.apply("r", deleted=[(1, 2)], inserted=[(4, 5), (5, 6)])
            tx.apply("s", inserted=[(6, 1)])
            wanted = sorted(tx.read("q").rows())
        for name, gone, come in (("r", [(1, 2)], [(4, 5), (5, 6)]), ("s", [], [(6, 1)])):
            columns = "a INT, b INT" if name == "r" else "b INT, c INT"
            db.sql(f"CREATE TABLE gone_{name} ({columns}); CREATE TABLE come_{name} ({columns})")
            db.sql(f"CREATE TABLE was_{name} ({columns})")
            db.insert(f"gone_{name}", gone)
            db.insert(f"come_{name}", come)
            for sign, table in (("∇", "gone"), ("Δ", "come"), ("(", "(was")):
                written = written.replace(f"{sign}{name}", f"{table}_{name}")
        db.insert("was_r", [(1, 2), (2, 2), (3, 0)])
        db.insert("was_s", [(2, 9)])
        db.relalg("by_text", written)
        assert sorted(db.read("by_text").rows()) == wanted == sorted(db.read("q").rows())


def test_a_chain_of_differences_is_kept_fresh(tmp_path):
    """S − T says S twice, so the tree of a chain is exponential; a part is lowered once."""
    with ev.open(str(tmp_path / "s"), engine="duckdb") as db:
        db.sql("CREATE TABLE r (a INT); CREATE TABLE s (a INT)")
        db.relalg("chain", " − ".join(("r", *("s",) * 12)))
        db.insert("r", [(n,) for n in range(4)])
        db.insert("s", [(1,), (3,), (9,)])
        assert sorted(db.read("chain").rows()) == [(0,), (2,)]
        db.delete("s", [(3,)])
        assert sorted(db.read("chain").rows()) == [(0,), (2,), (3,)]
        assert db.audit().ok
