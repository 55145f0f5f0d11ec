"""What a text of relational algebra says, and what is said where it means nothing."""

from __future__ import annotations

import pytest

from everview.errors import UserError
from everview.expr.types import Column, names
from everview.lang.relalg.parse import parse_query
from everview.lang.relalg.printer import print_expression
from everview.lang.relalg.view import lower_view, reads_of
from everview.plan.nodes import Plan, Source
from everview.plan.traverse import schema_of

KNOWN = {
    "r": Source("r", (Column("a", "int"), Column("b", "int"))),
    "s": Source("S", (Column("A", "int"), Column("B", "int"))),
    "u": Source("u", (Column("b", "int"), Column("c", "string"), Column("at", "array<int>"))),
    "m": Source("m", (Column("k", "int"), Column("m", "map<int,int>"))),
    "p": Source("p", (Column("point", "struct<x:int,y:int>"), Column("comment", "string"))),
}


def lowered(text: str) -> Plan:
    def analyze(*_: object) -> str:
        raise UserError("E011", "the type is not known", remedy="none")

    return lower_view(text, KNOWN, analyze)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("r", "r"),
        ("SELECT[a>1 and B is not null](r)", "σ[`a` > 1 AND NOT `B` IS NULL](r)"),
        ("project[a,b as c](r)", "Π[a, b AS c](r)"),
        ("Π[`as`, x AS `minus`](`union`)", "Π[`as`, x AS `minus`](`union`)"),
        ("a union b minus c", "(a ∪ b) − c"),
        ("a - (b - c)", "a − (b − c)"),
        ("a∪b×c∩d⋈e", "a ∪ ((b × c) ∩ (d ⋈ e))"),
        ("a times b join c", "(a × b) ⋈ c"),
        ("(((a)))", "a"),
        ("a -- one ∪ b\n∪ /* ∩ */ c", "a ∪ c"),
        ("σ[at[0] = 1 -- ]\n](u)", "σ[`at`[0] = 1](u)"),
        ("σ[c = ']' OR c = r'\\' OR `a]` = 1](u)", "σ[`c` = ']' OR `c` = '\\\\' OR `a]` = 1](u)"),
        ("σ[comment > 'x' AND point.x = 1](p)", "σ[`comment` > 'x' AND `point`.`x` = 1](p)"),
        ("été ∪ _x1", "été ∪ _x1"),
    ],
)
def test_an_expression_is_read_and_written(text, printed):
    query = parse_query(text)
    assert print_expression(query) == printed
    assert parse_query(printed) == query


def test_names_are_those_that_are_declared():
    assert names(schema_of(lowered("Π[B, A AS x](R)"))) == ("b", "x")
    assert names(schema_of(lowered("r ∪ s"))) == ("a", "b")
    assert names(schema_of(lowered("S ⋈ u"))) == ("A", "B", "c", "at")
    assert names(schema_of(lowered("Π[a](r) × u"))) == ("a", "b", "c", "at")
    assert lowered("r ∩ s") == lowered("r ∩ Π[a, b](s)")
    assert reads_of("r ∪ s − Π[a, b](R ⋈ r)") == ("r", "s", "R")


@pytest.mark.parametrize(
    ("text", "code", "shown", "remedy"),
    [
        ("r ∪", "R001", "", "σ[condition]"),
        ("r # s", "R001", "#", "σ[condition]"),
        ("`r", "R001", "`", "σ[condition]"),
        ("r s", "R001", "s", "σ[condition]"),
        ("σ[a > 1(r)", "R001", "[", "σ[condition]"),
        ("σ[a >](r)", "R001", ">", "condition of SQL"),
        ("σ[](r)", "R001", "", "condition of SQL"),
        ("σ[a = 1) OR (b = 2](r)", "R001", "a = 1) OR (b = 2", "condition of SQL"),
        ("σ[a = = 1](r)", "Q001", "=", "Spark's dialect"),
        ("Π[a + 1](r)", "R001", "+", "σ[condition]"),
        ("Π[1](r)", "R001", "1", "σ[condition]"),
        ("Π[σ](r)", "R001", "σ", "name columns"),
        ("r ∪ nope", "R002", "nope", "there are: S, m, p, r, u"),
        ("m", "R004", "m", "MAP_ENTRIES"),
        ("Π[a, x](r)", "R003", "[a, x]", "the columns here are a, b"),
        ("Π[a, b AS A](r)", "R003", "[a, b AS A]", "a name of its own"),
        ("Π[a AS _w](r)", "Q011", "[a AS _w]", "choose a plain name"),
        ("r × s", "R003", "×", "rename it"),
        ("r ∪ u", "R004", "∪", "same columns"),
        ("r − Π[b AS a, c AS b](u)", "R004", "−", "CAST"),
        ("r ⋈ Π[c AS a](u)", "R004", "⋈", "CAST"),
        ("σ[a > 1](r) ∪ σ[z > 1](r)", "Q007", "z", "the columns here are a, b"),
        ("σ[r.a > 1](r)", "R003", "r", "without its relation"),
        ("σ[a](r)", "Q013", "a", "compare it"),
        ("σ[a IN (SELECT b FROM u)](r)", "R003", "b FROM u", "join with ⋈"),
        ("σ[MAX(a) = 1](r)", "Q009", "MAX(a", "a view in SQL"),
        ("σ[RANK() OVER (ORDER BY a) = 1](r)", "Q009", "RANK() OVER (ORDER BY a", "a view in SQL"),
        ("σ[RAND() > 0](r)", "Q021", "RAND", "when you insert"),
        ("σ[frob(a)](r)", "E011", None, "none"),
    ],
)
def test_an_error_has_its_place_and_a_remedy(text, code, shown, remedy):
    with pytest.raises(UserError) as caught:
        lowered(text)
    problem = caught.value
    assert problem.code == code, problem
    assert remedy in problem.remedy
    if shown is not None:
        assert problem.span is not None
        assert problem.span.text == text
        assert text[problem.span.start : problem.span.stop] == shown
