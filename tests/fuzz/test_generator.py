"""What the generator draws: every operator, always the same from the same numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import get_args

import pytest

from everview.errors import Span, UserError
from everview.fuzz.case import Case, Contents, Transaction
from everview.fuzz.generate import generate
from everview.lang.sql.lower import lower_query
from everview.plan.nodes import Change, Empty, Negate, Plan, Ref, Restrict, Source
from everview.plan.traverse import schema_of, walk
from everview.plan.types import Schema, Type
from everview.rewrite.passes import rewrite

VIEWS = 2000

OF_PROGRAMS = {Change, Ref, Restrict}
"""Operators of derivatives and programs, which no query is lowered to."""
OF_NO_QUERY_YET = {Negate, Empty}
"""Operators that nothing in the language makes so far: a query that does belongs in the fuzzer."""


def unknown(scalar: str, _schema: Schema, span: Span | None) -> Type:
    raise UserError("E011", f"no type for {scalar}", span=span, remedy="")


def plans(case: Case) -> Iterator[Plan | None]:
    """The plan of every view, None where it or what it reads is refused."""
    known = {table.name: Source(table.name, table.columns, table.key) for table in case.tables}
    for view in case.views:
        try:
            plan = rewrite(lower_query(view.query, known, unknown))
        except UserError:
            yield None
            continue
        known[view.name] = Source(view.name, schema_of(plan))
        yield plan


@pytest.fixture(scope="module")
def drawn() -> list[Plan | None]:
    found: list[Plan | None] = []
    for number in count():
        found += plans(generate(0, number))
        if len(found) >= VIEWS:
            break
    return found


def test_every_operator_occurs_in_the_views_drawn(drawn):
    seen = Counter(type(node) for plan in drawn if plan is not None for node in walk(plan))
    expected = set(get_args(Plan)) - OF_PROGRAMS - OF_NO_QUERY_YET
    assert expected - set(seen) == set()
    assert set(seen) <= expected


def test_few_of_the_views_drawn_are_refused(drawn):
    assert sum(plan is None for plan in drawn) < len(drawn) / 10


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
