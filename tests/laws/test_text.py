"""parse(print(plan)) is plan: the text of a plan says all of it."""

from __future__ import annotations

from copy import deepcopy

from hypothesis import given

from everview.differentiate.derive import derive
from everview.plan.text import parse_plan, print_plan
from everview.rewrite.factorize import factorize
from everview.rewrite.passes import rewrite
from strategies import grouped_joins, plans


@given(plan=plans())
def test_a_plan_is_what_its_text_says(plan):
    for form in (plan, derive(plan), rewrite(plan)):
        assert parse_plan(print_plan(form)) is form
        assert deepcopy(form) is form


@given(plan=grouped_joins())
def test_products_of_totals_are_what_their_text_says(plan):
    made = factorize(plan, overflow=True)
    for form in (made, derive(made)):
        assert parse_plan(print_plan(form)) is form
