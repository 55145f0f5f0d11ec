"""The text of a view is also asked of DuckDB itself, so that a misread text is found."""

from __future__ import annotations

from collections import Counter

import pytest

from everview.database import audit_query
from everview.expr.types import Column
from everview.lang.sql.lower import expressions, subquery_joins
from everview.plan.build import add, negate
from everview_fuzz.case import Case, Change, Table, Transaction, View
from everview_fuzz.check.reference import Reference, Unanswered, in_duckdb, table_of
from everview_fuzz.check.run import run
from everview_fuzz.report import finding_text
from everview_fuzz.search import Finding, reproduces

NUMBERS = (Column("a", "int"), Column("b", "int"))
PAIRS = Counter({(1, None): 1, (3, None): 2, (1, 2): 1, (None, None): 1, (3, 2): 1})
OTHERS = Counter({(1, 2): 1, (4, None): 1})


@pytest.fixture
def asked():
    reference = Reference()
    relations = {"t": table_of(NUMBERS, PAIRS), "u": table_of(NUMBERS, OTHERS)}

    def answer(query: str, *types: str) -> Counter[tuple[object, ...]]:
        schema = tuple(Column(f"c{n}", type_) for n, type_ in enumerate(types))
        found = reference.answer(query, schema, relations)
        return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))

    yield answer
    reference.close()


def test_in_of_several_values_is_true_false_or_open(asked):
    found = asked(
        "SELECT a, b, (a, b) IN (SELECT a, b FROM u) AS c FROM t", "int", "int", "boolean"
    )
    assert found == Counter(
        {
            (1, None, None): 1,
            (3, None, False): 2,
            (1, 2, True): 1,
            (None, None, None): 1,
            (3, 2, False): 1,
        }
    )


def test_nulls_are_told_apart_and_none_counted_is_zero(asked):
    assert asked("SELECT COUNT(*) FROM t WHERE b <=> NULL", "bigint") == Counter({(4,): 1})
    assert asked("SELECT COUNT_IF(a > 0) FROM t WHERE FALSE", "bigint") == Counter({(0,): 1})


def test_an_error_is_no_answer_and_the_next_question_has_one(asked):
    with pytest.raises(Unanswered, match="More than one row"):
        asked("SELECT (SELECT a FROM t) AS c", "int")
    assert asked("SELECT MAX(a) FROM t", "int") == Counter({(3,): 1})


def test_names_keep_their_quotes():
    assert in_duckdb("SELECT `two words` FROM t") == 'SELECT "two words" FROM "t"'


MISREAD = Case(
    0,
    0,
    (
        Table("t", NUMBERS),
        Table("u", NUMBERS),
        View("v", "SELECT a FROM t WHERE a NOT IN (SELECT b FROM u)", portable=True),
        Transaction((Change("insert", "t", ((1, 1),)), Change("insert", "u", ((4, None),)))),
    ),
)


@pytest.fixture
def unremembered():
    """Nothing lowered before a fault is planted is used after it, nor the other way round."""
    audit_query._lowered.cache_clear()
    yield audit_query._lowered.cache_clear
    audit_query._lowered.cache_clear()


def test_a_view_that_is_maintained_well_and_means_something_else_is_found(
    monkeypatch, tmp_path, unremembered
):
    assert run(MISREAD, ("duckdb",), tmp_path / "right").failure is None

    def forgetting_nulls(lower, plan, inner, left):
        return add(plan, negate(subquery_joins.keep_in(lower, plan, inner, left)))

    monkeypatch.setattr(expressions.subquery_joins, "keep_not_in", forgetting_nulls)
    unremembered()
    failure = run(MISREAD, ("duckdb",), tmp_path / "wrong").failure
    assert failure is not None
    assert failure.kind == "meaning"
    assert reproduces(MISREAD, "duckdb")
    shown = finding_text(Finding(MISREAD, failure, ("duckdb",), confirmed=True))
    assert in_duckdb(MISREAD.views[0].query) in shown
