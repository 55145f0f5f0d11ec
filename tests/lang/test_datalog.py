"""What a Datalog text says, and what is said where it means nothing."""

from __future__ import annotations

import pytest

from everview.errors import UserError
from everview.expr.types import Column
from everview.lang.datalog.facts import facts_in, row_of
from everview.lang.datalog.parse import parse_program
from everview.lang.datalog.printer import print_rule
from everview.lang.datalog.program import checked_program, declarations, lower_view, reads_of
from everview.lang.datalog.syntax import Aggregate, Atom, Call, Comparison, Constant, Negation
from everview.lang.stored_relation import StoredRelation
from everview.plan.nodes import Fixpoint, Source
from everview.plan.traverse import schema_of, walk

GRAPH = """
.decl edge(x: number, y: number)
.input edge
.decl reach(x: number, y: number)
.output reach
reach(x, y) :- edge(x, y).
reach(x, z) :- reach(x, y), edge(y, z).
"""


def rules_of(text: str) -> list[str]:
    return [print_rule(rule) for rule in parse_program(text).rules]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("a(1).", ["a(1)."]),
        ('a(-1, "x\\"y", 0x10, 0b101, 1.5, 2u).', ['a((-1), "x\\"y", 16, 5, (1.5), 2u).']),
        ("a(1.2.3.4).", [f"a({1 << 24 | 2 << 16 | 3 << 8 | 4})."]),
        ("a(x), b(x) :- c(x).", ["a(x) :- c(x).", "b(x) :- c(x)."]),
        ("a(x) :- b(x), (c(x); d(x, _)).", ["a(x) :- b(x), c(x).", "a(x) :- b(x), d(x, _)."]),
        ("a(x) :- b(x), !(c(x), x = 1).", ["a(x) :- b(x), !c(x).", "a(x) :- b(x), x != 1."]),
        ("a(x) :- b(x), !(c(x); x < 1).", ["a(x) :- b(x), !c(x), x >= 1."]),
        ("a(x) :- b(x), ((x+1)*2) > (x).", ["a(x) :- b(x), ((x + 1) * 2) > x."]),
        (
            "a(x) :- b(x), 1 - x - 2 * -x ^ 2 = 0.",
            ["a(x) :- b(x), ((1 - x) - (2 * (-(x ^ 2)))) = 0."],
        ),
        ("a(x) :- b(x), bnot x band 1 = 0.", ["a(x) :- b(x), ((bnot x) band 1) = 0."]),
        ('a(x) :- b(x), !match("a.*", x).', ['a(x) :- b(x), !match("a.*", x).']),
        ("a(n) :- n = count : b(_).", ["a(n) :- n = count : { b(_) }."]),
        ("a(n) :- n = max (x/y) : b(x, y).", ["a(n) :- n = max ((x / y)) : { b(x, y) }."]),
        ("a(max(x, 1)) :- b(x). /* no */ // more", ["a(max(x, 1)) :- b(x)."]),
        ("a(x) :- b(x), true.", ["a(x) :- b(x)."]),
        ("a(x) :- b(x), false.", []),
    ],
)
def test_a_rule_has_one_head_and_one_conjunction(text: str, rules: list[str]) -> None:
    assert rules_of(text) == rules
    again = "\n".join(rules)
    assert rules_of(again) == rules


def test_terms_are_read_as_what_they_are() -> None:
    (rule,) = parse_program(
        'a(x) :- b(x, "s"), !c(x), x = sum y : { d(y), y < cat("a", x) }.'
    ).rules
    first, second, third = rule.body
    assert isinstance(first, Atom)
    assert first.arguments[1] == Constant("s", "symbol", first.span)
    assert isinstance(second, Negation)
    assert isinstance(third, Comparison)
    assert isinstance(third.right, Aggregate)
    (inner,) = third.right.bodies
    assert isinstance(inner[1], Comparison)
    assert isinstance(inner[1].right, Call)


DECLARED = ".decl a(x: number)\n.decl b(x: number, y: symbol)\n.decl f(x: float)\n"


@pytest.mark.parametrize(
    ("rule", "code", "problem"),
    [
        ("a(x) :- b(x, _), !a(y).", "D006", "binds the variable y"),
        ("a(y) :- b(x, _).", "D006", "binds the variable y in the rule a(y) :- b(x, _)."),
        ("a(x) :- b(_, _), x < 3.", "D006", "binds the variable x"),
        ("a(x) :- x = y + 1.", "D006", "binds the variable"),
        ("a(_) :- b(_, _).", "D006", "binds the variable _"),
        ("a(x) :- a(x), x = _ + 1.", "D006", "_ stands for any value"),
        ("a(x) :- a(x), 2 = count : { b(_, s), s < t }.", "D006", "binds the variable t"),
        ("a(n) :- n = sum y : { a(_) }.", "D006", "binds the variable y"),
        ("a(x) :- b(x).", "D004", "b takes 2 arguments, not 1"),
        ("a(x) :- b(x, s), strlen(s, s) = 1.", "D004", "strlen takes 1 arguments, not 2"),
        ("a(x) :- b(x, s), match(s) .", "D004", "match takes 2"),
        ("a(x) :- c(x).", "D003", "there is no relation c"),
        ("a(x) :- a(x), x = hash(x).", "D003", "there is no functor hash"),
        (".input c", "D003", "there is no relation c"),
        (".decl c(x: int)", "D003", "there is no type int"),
        ("a(x) :- b(_, x).", "D005", "x is a number, and a symbol"),
        ("a(x) :- b(x, s), x = s.", "D005", "s is a symbol"),
        ('a("x").', "D005", "'x' is a symbol"),
        ("a(1.5).", "D005", "1.5 is a float"),
        ("a(2147483648).", "D005", "does not fit a number of 32 bits"),
        ("a(x) :- b(x, s), cat(s, x) = s.", "D005", "x is a number"),
        ("f(x) :- f(x), x band x = x.", "D005", "band takes number or unsigned, not float"),
        ("a(x) :- a(x), !a(x).", "D007", "a depends on the negation of itself: a → a"),
        ("a(n) :- n = count : a(_).", "D007", "a depends on the count of itself"),
        (".decl A(x: number)", "D008", "a and A differ in case alone"),
        (".decl a(x: number)", "D008", "a is declared twice"),
        (".decl c(x: number, X: number)", "D008", "two attributes of c are called X"),
        ("a(ord(s)) :- b(_, s).", "D002", "ord is not part of the language"),
        (".comp C { }", "D002", "a component"),
        (".type R = [x: number]", "D002", "a record"),
        ("a(x) :- a(x), x = [1, 2].", "D002", "a record"),
        ("a(x) :- a(x), x = @f(1).", "D002", "a functor of the user's"),
        ("a(x) <= a(y) :- x < y.", "D002", "subsumption"),
        ("#define X", "D002", "preprocessor"),
        ("a(x) :- a(x), x = 'y'.", "D001", "means nothing here"),
        ("a(x) :- a(x)", "D001", ". was expected, not the end of the text"),
        ("a(x :- a(x).", "D001", ", was expected"),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(rule: str, code: str, problem: str) -> None:
    text = DECLARED + rule
    with pytest.raises(UserError) as caught:
        declarations(text)
    assert caught.value.code == code
    assert problem in caught.value.problem
    assert caught.value.span is not None
    assert caught.value.span.line == 4
    assert caught.value.remedy


def test_a_cycle_through_several_relations_is_named() -> None:
    text = (
        ".decl base(x: number)\n.decl a(x: number)\n.decl b(x: number)\n.decl c(x: number)\n"
        "a(x) :- b(x).\nb(x) :- base(x), !c(x).\nc(x) :- a(x)."
    )
    with pytest.raises(UserError, match="b depends on the negation of itself: b → a → c → b"):
        declarations(text)


def test_what_is_given_is_a_table_and_what_is_derived_a_view() -> None:
    program = declarations(GRAPH + "edge(1, 2). reach(7, 8). reach(7, 8).")
    assert [(each.name, each.facts) for each in program.given] == [
        ("edge", ((1, 2),)),
        ("reach_facts", ((7, 8),)),
    ]
    (reach,) = program.derived
    assert reads_of(reach.text) == ("edge", "reach_facts")
    assert program.outputs == ("reach",)


def test_what_no_output_needs_is_no_view() -> None:
    program = declarations(GRAPH + ".decl other(x: number) other(x) :- edge(x, _).")
    assert [each.name for each in program.derived] == ["reach"]


def test_relations_that_depend_on_each_other_are_one_loop() -> None:
    text = """.decl e, odd, even(x: number, y: number)
    odd(x, y) :- e(x, y). odd(x, z) :- even(x, y), e(y, z). even(x, z) :- odd(x, y), e(y, z)."""
    program = declarations(text)
    known = {
        each.name.lower(): StoredRelation(Source(each.name, each.columns)) for each in program.given
    }
    plans = [lower_view(each.text, each.name, known) for each in program.derived]
    loops = [plan for plan in plans if isinstance(plan, Fixpoint)]
    assert [loop.result for loop in loops] == ["odd", "even"]
    assert loops[0].equations == loops[1].equations


def test_rules_that_differ_in_their_names_alone_are_one() -> None:
    text = GRAPH + "reach(a, b) :- edge(a, b). reach(u, w) :- reach(u, v), edge(v, w)."
    (once,), (twice,) = declarations(GRAPH).derived, declarations(text).derived
    known = {"edge": StoredRelation(Source("edge", (Column("x", "int"), Column("y", "int"))))}
    assert lower_view(once.text, "reach", known) == lower_view(twice.text, "reach", known)


def test_a_relation_that_may_hold_nulls_is_read_without_them() -> None:
    (view,) = declarations(GRAPH).derived
    source = Source("edge", (Column("from", "int"), Column("to", "int")))
    plan = lower_view(view.text, "reach", {"edge": StoredRelation(source, nulls=True)})
    assert any("`from` IS NULL" in getattr(node, "predicate", "") for node in walk(plan))
    assert schema_of(plan) == (Column("x", "int"), Column("y", "int"))


def test_a_stored_relation_of_other_types_is_refused() -> None:
    (view,) = declarations(GRAPH).derived
    source = Source("edge", (Column("x", "bigint"), Column("y", "int")))
    with pytest.raises(UserError, match="edge has other columns than declared: x bigint, y int"):
        lower_view(view.text, "reach", {"edge": StoredRelation(source)})


def test_types_come_to_one_of_four() -> None:
    text = """.type Id <: unsigned .type Both = Id | Other .type Other = Id .number_type N
    .type Tree = Leaf {} | Node { left: Tree, right: Tree } .type Old
    .decl r(a: Both, b: N, c: Tree, d: Old, e: float)"""
    assert checked_program(text).columns["r"] == ("unsigned", "number", "symbol", "symbol", "float")
    with pytest.raises(UserError, match="the type X is made of number and symbol"):
        checked_program(".type X = number | symbol")


def test_facts_are_read_as_their_types() -> None:
    (edge,) = declarations(GRAPH).given
    assert list(facts_in("1\t2\n\n3\t4\n", edge, "edge.facts")) == [(1, 2), (3, 4)]
    for bad, problem in (("1", "2 values were expected, not 1"), ("1\tx", "invalid literal")):
        with pytest.raises(UserError, match=problem) as caught:
            list(facts_in(f"1\t2\n{bad}", edge, "edge.facts"))
        assert "edge.facts, line 2" in caught.value.problem
    with pytest.raises(UserError, match="does not fit 32 bits"):
        row_of(["3000000000", "1"], edge.columns, "edge")
