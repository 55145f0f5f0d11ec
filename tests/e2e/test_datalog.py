"""Datalog programs as maintained views: the book's answer after every change of the facts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import everview as ev
from e2e.datalog_meaning import Facts, meaning
from everview.database.database import Database
from everview.errors import UserError
from everview.runtime.recursion import seminaive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from conftest import Open

PROGRAMS = {
    "linear": """
        .decl e(x: number, y: number) .input e
        .decl r(x: number, y: number) .output r
        r(x, y) :- e(x, y). r(x, z) :- r(x, y), e(y, z).""",
    "non-linear": """
        .decl e(x: number, y: number) .input e
        .decl r(x: number, y: number) .output r
        r(x, y) :- e(x, y). r(x, z) :- r(x, y), r(y, z).""",
    "mutual": """
        .decl e(x: number, y: number) .input e
        .decl odd(x: number, y: number) .decl even(x: number, y: number) .output odd, even
        odd(x, y) :- e(x, y).
        even(x, z) :- odd(x, y), e(y, z). odd(x, z) :- even(x, y), e(y, z).""",
    "given and derived": """
        .decl e(x: number, y: number) .input e
        e(y, x) :- e(x, y).
        .decl lonely(x: number) .output lonely, e
        lonely(x) :- e(x, y), !e(y, y), x != y.""",
    "negation": """
        .decl e(x: number, y: number) .input e
        .decl n(x: number) n(x) :- e(x, _). n(y) :- e(_, y).
        .decl r(x: number, y: number) r(x, y) :- e(x, y). r(x, z) :- r(x, y), e(y, z).
        .decl far(x: number, y: number) .output far
        far(x, y) :- n(x), n(y), !r(x, y).
        .decl none() .output none
        none() :- n(_), !far(_, _).""",
    "aggregates": """
        .decl e(x: number, y: number) .input e
        .decl d(x: number, n: number, s: number, most: number) .output d
        d(x, n, s, m) :-
            e(x, _), n = count : { e(x, _) }, s = sum y : { e(x, y) }, m = max y : e(x, y).
        .decl below(x: number, n: number) .output below
        below(x, n) :- e(x, _), n = count : { e(y, _), y < x }.
        .decl whole(n: number, s: number) .output whole
        whole(n, s) :- n = count : e(_, _), s = sum x * y : e(x, y).
        .decl best(x: number, n: number) .output best
        best(x, n) :- n = max m : { e(x, _), m = count : e(x, _) }.""",
    "computed": """
        .decl e(x: number, y: number) .input e
        .decl hop(x: number, n: number) .output hop
        hop(0, 0). hop(y, n + 1) :- hop(x, n), e(x, y), n < 6.
        .decl shortest(x: number, n: number) .output shortest
        shortest(x, n) :- hop(x, _), n = min m : hop(x, m).
        .decl step(x: number, y: number) .output step
        step(x, y) :- e(x, y), e(x + 1, y - 1). step(x, x / y) :- e(x, y), y > 0, x % y = 0.""",
    "choice": """
        .decl e(x: number, y: number) .input e
        .decl near(x: number) .output near
        near(x) :- (x = 1; x = 2; e(x, x)), (e(x, _); e(_, x), x > 1).""",
    "equivalence": """
        .decl e(x: number, y: number) .input e
        .decl same(x: number, y: number) eqrel
        same(x, y) :- e(x, y), x < y. .output same""",
}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as opened:
        yield opened


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_relation_is_what_its_rules_mean_after_every_change(db: Database, name: str) -> None:
    follow(db, name, turns=8)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["mutual", "negation"])
def test_every_relation_is_what_its_rules_mean_on_spark(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        follow(db, name, turns=3)


def follow(db: Database, name: str, turns: int) -> None:
    """Change the facts again and again; after every change each relation is what its rules mean."""
    text, rng = PROGRAMS[name], random.Random(name)
    outputs = db.datalog(text)
    table = "e" if "e" in db.catalog.tables else "e_facts"
    present: set[tuple[int, int]] = set()
    everything = [(x, y) for x in range(5) for y in range(5)]
    for turn in range(turns):
        come = {e for e in everything if e not in present and rng.random() < 0.2}
        go = {e for e in present if rng.random() < (1.0 if turn == 5 else 0.3)}
        with db.transaction() as tx:
            tx.insert(table, sorted(come)) if come else None
            tx.delete(table, sorted(go)) if go else None
        present = (present | come) - go
        given: Facts = {"e": set(present)}
        wanted = meaning(text, given)
        for output in outputs:
            found = db.read(output).rows()
            assert len(found) == len(set(found))
            assert set(found) == wanted[output], (turn, output)
    assert db.audit().ok


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_over_facts_that_are_there_means_the_same(db: Database, name: str) -> None:
    rng = random.Random(f"{name} at once")
    facts = {(rng.randrange(5), rng.randrange(5)) for _ in range(9)}
    outputs = db.datalog(PROGRAMS[name], {"e": sorted(facts)})
    wanted = meaning(PROGRAMS[name], {"e": facts})
    for output in outputs:
        assert set(db.read(output).rows()) == wanted[output]


READ_AS_NUMBERS = {
    "0xcafe": (51966, 51966),
    "-0b100": (-4, None),
    "-0x10": (-16, None),
    "0b101": (5, 5),
    " 12 ": (12, 12),
    "+7": (7, 7),
    "12abc": (12, 12),
    "1.9": (1, 1),
    "0x": (0, 0),
    " 0x1f": (0, 0),
    "0X1f": (0, 0),
    "0b": (None, None),
    "0b2": (None, None),
    "-0b-1": (None, None),
    "x": (None, None),
    "": (None, None),
    "2147483647": (2147483647, 2147483647),
    "2147483648": (None, 2147483648),
    "-2147483648": (-2147483648, None),
    "0x80000000": (None, 2147483648),
    "4294967297": (None, 1),
    "18446744073709551616": (None, None),
    "00000000000000000000000000012": (12, 12),
}
"""Texts, and what C++'s stoi and stoul make of them after the prefix has chosen the base."""


def test_texts_are_read_as_numbers_as_souffle_reads_them(open_db: Open, tmp_path: Path) -> None:
    with open_db(tmp_path / "store") as db:
        must_read_as_numbers(db)


def must_read_as_numbers(db: Database) -> None:
    db.datalog(
        """
        .decl w(s: symbol) .input w
        .decl n(s: symbol, x: number) .output n
        n(s, to_number(s)) :- w(s).
        .decl u(s: symbol, x: unsigned) .output u
        u(s, to_unsigned(s)) :- w(s).
        """,
        {"w": [(text,) for text in READ_AS_NUMBERS]},
    )
    for place, output in enumerate(("n", "u")):
        wanted = {(s, x[place]) for s, x in READ_AS_NUMBERS.items() if x[place] is not None}
        assert set(db.read(output).rows()) == wanted


def test_functors_mean_what_they_do_in_souffle(db: Database) -> None:
    db.datalog("""
        .decl n(x: number, y: number)
        n(2147483647, 1). n(-7, 2). n(7, -2). n(-2147483648, -1). n(5, 0).
        .decl sums(x: number, y: number, s: number, p: number) .output sums
        sums(x, y, x + y, x * y * 3) :- n(x, y).
        .decl parts(x: number, y: number, q: number, r: number) .output parts
        parts(x, y, x / y, x % y) :- n(x, y).
        .decl bits(x: number, a: number, b: number) .output bits
        bits(x, x bshl 3, x bshru 28) :- n(x, _).
        .decl t(s: symbol, l: number, a: symbol, b: symbol, c: symbol) .output t
        t(s, strlen(s), substr(s, 1, 2), substr(s, 9, 1), substr(s, 2, -1)) :- w(s).
        .decl w(s: symbol)
        w("hello"). w("12"). w("").
        .decl v(s: symbol, x: number) .output v
        v(s, to_number(s) + 1) :- w(s).
        .decl u(x: unsigned, y: unsigned) .output u
        u(a - b, a * b) :- z(a, b).
        .decl z(a: unsigned, b: unsigned)
        z(1, 2). z(4294967295, 4294967295).
        .decl k(s: symbol) .output k
        k(s) :- w(s), (match("h.*o", s); contains("1", s)), !contains("22", s).
    """)
    assert set(db.read("sums").rows()) == {
        (2147483647, 1, -2147483648, 2147483645),
        (-7, 2, -5, -42),
        (7, -2, 5, -42),
        (-2147483648, -1, 2147483647, -2147483648),
        (5, 0, 5, 0),
    }
    assert set(db.read("parts").rows()) == {
        (2147483647, 1, 2147483647, 0),
        (-7, 2, -3, -1),
        (7, -2, -3, 1),
        (-2147483648, -1, -2147483648, 0),
    }
    assert (-7, -56, 15) in db.read("bits").rows()
    assert set(db.read("t").rows()) == {
        ("hello", 5, "el", "", "llo"),
        ("12", 2, "2", "", ""),
        ("", 0, "", "", ""),
    }
    assert db.read("v").rows() == [("12", 13)]
    assert set(db.read("u").rows()) == {(4294967295, 2), (0, 1)}
    assert sorted(db.read("k").rows()) == [("12",), ("hello",)]


def test_rules_read_tables_and_views_that_are_there(db: Database) -> None:
    db.sql("""
        CREATE TABLE roads (start INT, stop INT, km INT);
        CREATE VIEW short AS SELECT start, stop FROM roads WHERE km < 100;
        INSERT INTO roads VALUES (1, 2, 50), (2, 3, 60), (2, 3, 70), (3, 4, 500), (NULL, 1, 5)
    """)
    db.datalog("""
        .decl short(x: number, y: number) .input short
        .decl reach(x: number, y: number) .output reach
        reach(x, y) :- short(x, y). reach(x, z) :- reach(x, y), short(y, z).
    """)
    assert sorted(db.read("reach").rows()) == [(1, 2), (1, 3), (2, 3)]
    db.sql("UPDATE roads SET km = 10 WHERE km = 500; DELETE FROM roads WHERE km = 60")
    found = db.sql("SELECT COUNT(*) AS n FROM reach WHERE x = 1")
    assert found is not None
    assert found.rows() == [(3,)]
    assert db.audit("reach").ok


def test_a_program_is_there_when_the_store_is_opened_again(tmp_path: Path) -> None:
    where = str(tmp_path / "store")
    with ev.open(where, engine="duckdb") as db:
        db.datalog(PROGRAMS["mutual"], {"e": [(1, 2), (2, 3)]})
    with ev.open(where, engine="duckdb") as db:
        db.insert("e", [(3, 4)])
        assert sorted(db.read("odd").rows()) == [(1, 2), (1, 4), (2, 3), (3, 4)]
        assert db.audit().ok
        assert "Fixpoint" in db.explain("odd")


def test_a_program_that_is_refused_leaves_nothing(db: Database) -> None:
    text = """
        .decl w(s: symbol) w("a"). .decl p(s: symbol) p("b").
        .decl m(s: symbol) .output m
        m(s) :- w(s), p(q), match(q, s)."""
    with pytest.raises(UserError, match="E011"):
        db.datalog(text)
    assert not db.catalog.tables
    assert not db.catalog.views
    with pytest.raises(UserError, match="no relation with facts"):
        db.datalog(PROGRAMS["linear"], {"r": [(1, 2)]})
    db.sql("BEGIN")
    with pytest.raises(UserError, match="T008"):
        db.datalog(PROGRAMS["linear"])
    db.sql("ROLLBACK")
    assert not db.catalog.tables


def test_a_fact_is_there_or_not(db: Database) -> None:
    db.datalog(PROGRAMS["linear"], {"e": [(1, 2), (1, 2)]})
    assert db.read("e").rows() == [(1, 2)]
    with pytest.raises(UserError):
        db.insert("e", [(1, 2)])
    db.upsert("e", [(1, 2), (2, 3)])
    assert sorted(db.read("r").rows()) == [(1, 2), (1, 3), (2, 3)]


def test_a_rule_may_count_to_ten_thousand_and_one_that_never_ends_is_told(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.datalog(".decl nat(x: number) .output nat\nnat(0). nat(x+1) :- nat(x), x < 10000.")
    assert sorted(db.read("nat").rows()) == [(n,) for n in range(10_001)]
    monkeypatch.setattr(seminaive, "MAX_ITERATIONS", 200)
    with pytest.raises(UserError, match=r"E014.* of endless has not ended after 200 iterations"):
        db.datalog(
            ".decl endless(x: number) .output endless\nendless(0). endless(x+1) :- endless(x)."
        )
    assert [*db.catalog.views] == ["nat"]
