"""What the generator draws: every operator, always the same from the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import get_args

import pytest
from sqlglot import exp

from everview.errors import Span, UserError
from everview.fuzz.case import Case, Contents, Transaction
from everview.fuzz.generate import generate
from everview.lang.sql.lower import lower_query
from everview.lang.sql.parse import parse_query
from everview.plan.nodes import Change, Empty, Plan, Ref, Restrict, Source
from everview.plan.traverse import schema_of, walk
from everview.plan.types import Schema, Type

OF_PROGRAMS = {Change, Ref, Restrict}
"""Operators of derivatives and programs, which no query is lowered to."""
OF_NO_QUERY_YET = {Empty}
"""Operators that nothing in the language makes so far: a query that does belongs in the fuzzer."""

WORDS = (
    *("LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", "CROSS JOIN", "NATURAL "),
    *("USING (", "UNION ALL", "INTERSECT ", "INTERSECT ALL", "EXCEPT ", "EXCEPT ALL", "(VALUES "),
    *("MIN(", "MAX(", "BOOL_AND(", "BOOL_OR(", "COUNT(DISTINCT", "SUM(DISTINCT", "AVG(DISTINCT"),
    *("VAR_POP(", "STDDEV(", "BIT_XOR(", "MEDIAN(", "PERCENTILE_DISC(", "MODE() WITHIN", "MAX_BY("),
    *("LISTAGG(", "LISTAGG(DISTINCT", "IGNORE NULLS", ") OVER (PARTITION"),
    *("COUNT_IF(", "FILTER (WHERE", " EXISTS (SELECT", "NOT EXISTS (SELECT", " IN (SELECT"),
    *("NOT IN (SELECT", ") IN (SELECT", ") NOT IN (SELECT", "<=>", "HAVING", "WITH "),
    *("LATERAL VIEW OUTER", "POSEXPLODE(", "EXPLODE(", "COLLECT_LIST(", "STRUCT(", "TRANSFORM("),
    *("OVER (", "PARTITION BY", "QUALIFY", "LIMIT", "ROWS BETWEEN", "LATERAL (", " PIVOT ("),
    *("UNPIVOT", "ROLLUP(", "CUBE(", "GROUPING SETS (", " ALL (SELECT", " ANY (SELECT"),
)
"""What the language has beyond operators."""


def unknown(scalar: str, _schema: Schema, span: Span | None) -> Type:
    raise UserError("E011", f"no type for {scalar}", span=span, remedy="")


def plans(case: Case) -> Iterator[Plan | None]:
    """The plan of every view, None where it or what it reads is refused."""
    known = {table.name: Source(table.name, table.columns, table.key) for table in case.tables}
    for view in case.views:
        try:
            plan = lower_query(view.query, known, unknown)
        except UserError:
            yield None
            continue
        known[view.name] = Source(view.name, schema_of(plan))
        yield plan


def drawn(views: int) -> Iterator[Plan | None]:
    """The plans of the first views that are drawn."""
    return islice((plan for number in count() for plan in plans(generate(0, number))), views)


def test_every_operator_occurs_in_2000_views_drawn():
    expected = set(get_args(Plan)) - OF_PROGRAMS - OF_NO_QUERY_YET
    seen: set[type[Plan]] = set()
    for plan in drawn(2000):
        seen |= {type(node) for node in walk(plan)} if plan is not None else set()
        if seen >= expected:
            break
    assert seen == expected


def test_few_of_the_views_drawn_are_refused():
    refused = sum(plan is None for plan in drawn(300))
    assert refused < 30


def test_every_word_of_the_language_occurs_in_the_views_drawn():
    queries = [view.query for number in range(500) for view in generate(0, number).views]
    assert [word for word in WORDS if not any(word in query for query in queries)] == []


def test_half_of_the_cases_are_portable_and_a_fifth_of_the_views_have_subqueries():
    cases = [generate(0, number) for number in range(100)]
    views = [view for case in cases for view in case.views]
    portable = [case for case in cases if all(view.portable for view in case.views)]
    assert len(portable) >= len(cases) / 2
    assert sum(has_subquery(view.query) for view in views) >= len(views) / 5


def has_subquery(query: str) -> bool:
    """Whether an expression has a query in it; FROM items are queries with an alias."""
    tree = parse_query(query)
    asking = (exp.Exists, exp.In)
    return any(
        (isinstance(node, asking) and node.find(exp.Query) is not None)
        or (isinstance(node, exp.Subquery) and isinstance(node.parent, exp.Binary | exp.Func))
        for node in tree.walk()
    )


def test_the_numbers_decide_the_case():
    assert generate(3, 5) == generate(3, 5)
    assert generate(3, 5) != generate(3, 6)
    assert generate(3, 5) != generate(4, 5)


@pytest.mark.parametrize("number", range(30))
def test_only_forbidden_transactions_break_a_constraint(number):
    case, contents = generate(1, number), Contents()
    for table in case.tables:
        contents.create(table)
    for step in case.steps:
        if isinstance(step, Transaction):
            after = contents.copy()
            for change in step.changes:
                after.apply(change)
            assert (after.problem() is not None) == step.forbidden
            contents = contents if step.forbidden else after


def test_cases_have_four_to_ten_views_and_three_to_six_transactions_after_the_first_view():
    for number in range(30):
        case = generate(2, number)
        began = next(i for i, step in enumerate(case.steps) if step in case.views)
        changed = [step for step in case.steps[began:] if isinstance(step, Transaction)]
        assert 4 <= len(case.views) <= 10
        assert 3 <= len(changed) <= 6
