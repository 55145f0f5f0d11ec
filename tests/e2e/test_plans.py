"""Views by plans that were built in Python, while-programs above all."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import everview as ev
from everview.expr.types import Column
from everview.plan.build import (
    add,
    columns_of,
    distinct,
    filter_,
    group_by,
    join,
    map_,
    negate,
    project,
    while_,
)
from everview.plan.nodes import (
    Aggregate,
    Change,
    Fixpoint,
    Measure,
    Output,
    Plan,
    Recursive,
    Ref,
    Source,
    Totals,
)

PLACE = (Column("p", "int"),)
LIMIT = 12


def renamed(plan: Plan, **columns: str) -> Plan:
    """Columns of whole numbers under other names."""
    made = (Output(name, "int", f"`{column}`") for name, column in columns.items())
    return map_(plan, tuple(made))


def places(move: Plan) -> Plan:
    """Where a move begins or ends."""
    return distinct(add(renamed(move, p="a"), renamed(move, p="b")))


def won(move: Plan) -> Plan:
    """The places from which a move leads to one that is not won: not monotone."""
    lost = add(places(move), negate(Recursive("won", PLACE)))
    body = distinct(renamed(join(move, renamed(lost, q="p"), (("b", "q"),)), p="a"))
    return while_("won", filter_(places(move), "FALSE"), body, LIMIT)


def wins(moves: set[tuple[int, int]]) -> set[int] | None:
    """The same in Python; None where it has not ended after as many turns as it may have."""
    everywhere = {place for move in moves for place in move}
    found: set[int] = set()
    for _ in range(LIMIT):
        lost = everywhere - found
        after = {a for a, b in moves if b in lost}
        if after == found:
            return found
        found = after
    return None


def test_a_while_program_holds_what_it_reaches_or_nothing_changes(open_db, tmp_path):
    rng, moves, ended = random.Random(5), set[tuple[int, int]](), [0, 0]
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE move (a INT, b INT)")
        db.view("won", won(db.source("move")))
        for _ in range(25):
            one = (rng.randrange(7), rng.randrange(7))
            after = moves ^ {one}
            wanted, epoch = wins(after), db.epoch
            change = db.delete if one in moves else db.insert
            ended[wanted is None] += 1
            if wanted is None:
                with pytest.raises(ev.UserError) as caught:
                    change("move", [one])
                assert caught.value.code == "E014"
                assert db.epoch == epoch
            else:
                change("move", [one])
                moves = after
            assert {*db.read("move").rows()} == moves
            assert sorted(db.read("won").rows()) == [(p,) for p in sorted(wins(moves) or ())]
        assert db.audit().ok
        assert min(ended) > 2


def test_a_view_by_a_plan_is_there_when_the_store_is_opened_again(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE move (a INT, b INT); INSERT INTO move VALUES (1, 2), (2, 3)")
        db.view("won", won(db.source("MOVE")))
        db.sql("CREATE VIEW named AS SELECT p * 10 AS n FROM won")
    with open_db(tmp_path / "store") as db:
        assert db.read("named").rows() == [(20,)]
        db.insert("move", [(3, 4)])
        assert sorted(db.read("named").rows()) == [(10,), (30,)]
        assert db.audit("named").ok
        db.sql("DROP VIEW named; DROP VIEW won")


@pytest.fixture
def db(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as opened:
        opened.sql("CREATE TABLE move (a INT, b INT)")
        yield opened


def reached(move: Plan) -> Plan:
    """Pairs with a way from one to the other."""
    step = join(Recursive("t", Source("move", PAIR).schema), renamed(move, c="a", d="b"), ON)
    return Fixpoint("t", (("t", distinct(add(move, renamed(step, a="a", b="d")))),))


PAIR = (Column("a", "int"), Column("b", "int"))
ON = (("b", "c"),)


def test_a_recursion_by_a_plan_is_followed_and_a_while_program_is_run_anew(db):
    db.view("reached", reached(db.source("move")))
    db.view("won", won(db.source("move")))
    db.insert("move", [(1, 2), (2, 3)])
    db.delete("move", [(1, 2)])
    assert db.read("reached").rows() == [(2, 3)]
    assert "-- stratum of t: 2 iterations, last time" in db.explain("reached")
    assert "-- stratum of won: run again from scratch, over all that it reads" in db.explain("won")
    assert "-- recursive: Δ(fix B) = fix B(R + ΔR) − fix B(R)" in db.explain("won")
    told = {each.name: each.refresh for each in db.status() if each.kind == "view"}
    assert told == {
        "reached": "incremental",
        "won": "recompute: the loop of won is run again from scratch",
    }


def test_scalars_are_written_as_we_write_them(db):
    move = db.source("move")
    db.view("some", map_(filter_(move, "a>1 and b is not null"), (Output("s", "int", "a+b"),)))
    db.view("counted", group_by(move, ("a",), (Aggregate("n", "bigint", "count"),)))
    db.insert("move", [(1, 2), (2, 3), (2, None)])
    assert db.read("some").rows() == [(5,)]
    assert sorted(db.read("counted").rows()) == [(1, 1), (2, 2)]
    assert db.audit().ok


T = Recursive("t", PAIR)
TURNED = renamed(T, a="b", b="a")
Wrong = Callable[[Source], Plan]
WRONG: dict[str, tuple[str, Wrong, str]] = {
    "an unknown table": ("P001", lambda m: Source("none", PLACE), "none, which is no table"),
    "other columns": ("P001", lambda m: Source("move", PLACE), "move, which has other columns"),
    "a change": ("P002", lambda m: Change("move", PAIR), "Change occurs in derivatives"),
    "a result": ("P002", lambda m: Ref("t1", PAIR), "Ref occurs in derivatives"),
    "a product of totals": (
        "P002",
        lambda m: Totals(m, (), (Measure("p", "bigint", "product", None, ("a", "b")),)),
        "products of totals are made by a policy",
    ),
    "no loop": ("P002", lambda m: Recursive("t", PAIR), "where no loop defines it"),
    "a loop of other columns": (
        "P002",
        lambda m: Fixpoint(
            "t", (("t", distinct(add(m, renamed(Recursive("t", PLACE), a="p", b="p")))),)
        ),
        "with these columns",
    ),
    "negation": (
        "P002",
        lambda m: Fixpoint("t", (("t", distinct(add(m, negate(T)))),)),
        "the recursion of t goes through a negation",
    ),
    "a loop that takes away what it turns round": (
        "P002",
        lambda m: Fixpoint("t", (("t", distinct(add(m, add(T, negate(TURNED))))),)),
        "the recursion of t goes through a negation",
    ),
    "sums of other columns": ("P002", lambda m: add(m, project(m, ("b", "a"))), "other columns"),
    "a join of one name": ("P002", lambda m: join(m, m), "columns of one name"),
    "a key that is not there": ("P002", lambda m: join(m, renamed(m, c="a"), (("x", "c"),)), "x"),
    "a type": ("P003", lambda m: map_(m, (Output("a", "string", "`a`"),)), "is int, not string"),
    "a condition": ("P003", lambda m: filter_(m, "`a` + 1"), "is int, not boolean"),
    "a column": ("P003", lambda m: filter_(m, "`c` > 1"), "reads c, which is not there"),
    "no expression": ("P003", lambda m: filter_(m, "(`a` > 1"), "is no expression"),
    "chance": ("P003", lambda m: filter_(m, "RAND() > 0.5"), "another answer every time"),
    "a name": ("P003", lambda m: map_(m, (Output("_w", "int", "`a`"),)), "uses itself"),
}


@pytest.mark.parametrize("why", WRONG)
def test_a_plan_that_cannot_be_a_view_is_refused_and_nothing_is_declared(db, why):
    code, made, told = WRONG[why]
    with pytest.raises(ev.UserError) as caught:
        db.view("v", made(db.source("move")))
    assert caught.value.code == code
    assert told in caught.value.problem
    assert not db.catalog.views


def test_a_view_by_a_plan_has_a_free_name_and_no_transaction_around_it(db):
    move = db.source("move")
    assert columns_of(move) == ("a", "b")
    for name, code in (("move", "C001"), ("a/b", "Q011")):
        with pytest.raises(ev.UserError) as caught:
            db.view(name, move)
        assert caught.value.code == code
    db.sql("BEGIN")
    with pytest.raises(ev.UserError) as caught:
        db.view("v", move)
    assert caught.value.code == "T008"
    db.sql("ROLLBACK")
    with pytest.raises(ev.UserError) as caught:
        db.source("nowhere")
    assert caught.value.code == "C002"
