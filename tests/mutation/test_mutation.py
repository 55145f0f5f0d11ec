"""Every fault planted on purpose breaks a law: a test that cannot fail is found out here."""

from __future__ import annotations

from functools import cache

import pytest

from everview.differentiate import recursion, rules
from everview.differentiate.rules import RULES, SPECIAL
from everview.program import lowering
from mutation import operators, slips, whole_rules
from mutation.planting import Fault
from mutation.replay import Law

pytestmark = pytest.mark.slow

FAULTS = [
    *whole_rules.faults(),
    *operators.faults(rules),
    *operators.faults(recursion),
    *operators.faults(lowering),
    *slips.faults(),
]

EACH_DERIVATIVE = "test_the_derivative_of_each_operator_is_the_difference_it_stands_for"
LOOPS = "test_a_loop_and_its_states_equal_their_queries_after_every_epoch"
WHILE = "test_the_derivative_of_a_while_program_is_the_difference_it_stands_for"
DERIVATIVE = (
    ("test_derivative.py", EACH_DERIVATIVE, 100),
    ("test_top_k.py", "test_the_derivative_of_first_rows_is_the_difference_it_stands_for", 100),
    ("test_mergeable.py", "test_the_derivative_of_extremes_is_the_difference_it_stands_for", 150),
    (
        "test_range_frame.py",
        "test_the_derivative_of_near_rows_is_the_difference_it_stands_for",
        100,
    ),
    ("test_derivative.py", "test_a_derivative_is_the_difference_it_stands_for", 400),
    ("test_recursion.py", "test_the_derivative_of_a_loop_is_the_difference_it_stands_for", 60),
    ("test_recursion.py", WHILE, 60),
    ("test_recursion.py", "test_the_derivative_of_a_body_is_what_one_iteration_adds", 60),
    ("test_recursion.py", LOOPS, 60),
)
FIRST_ROWS = "test_first_rows_and_what_is_kept_of_them_equal_their_queries_after_every_epoch"
PROGRAM = (
    ("test_program.py", "test_a_join_with_a_join_equals_its_query_after_every_epoch", 100),
    ("test_program.py", "test_a_join_with_a_view_equals_its_query_after_every_epoch", 150),
    ("test_program.py", "test_views_and_states_equal_their_queries_after_every_epoch", 200),
    ("test_program.py", "test_a_view_over_a_view_follows_it", 60),
    ("test_top_k.py", FIRST_ROWS, 60),
    ("test_recursion.py", LOOPS, 60),
    ("test_program.py", "test_views_with_different_filters_share_an_arrangement_rightly", 30),
)
SQL = (
    ("test_sqlgen.py", "test_a_restriction_without_keys_asks_for_any_row", 20),
    ("test_sqlgen.py", "test_the_sql_of_a_plan_computes_its_meaning", 300),
    ("test_sqlgen.py", "test_totals_are_added_up_as_rings", 50),
    ("test_sqlgen.py", "test_the_sql_of_each_operator_over_signed_rows_computes_its_meaning", 100),
    ("test_sqlgen.py", "test_the_sql_of_a_derivative_computes_its_meaning", 150),
)
LAWS = {"differentiate": DERIVATIVE, "program": PROGRAM, "compiler": PROGRAM, "sqlgen": SQL}
"""A fault of a layer is caught by the law of that layer."""

law = cache(Law.of)


def breaks_a_law(fault: Fault) -> bool:
    """Whether a law of the fault's layer fails while the fault is in force."""
    laws = [law(*each) for each in LAWS[fault.module.__name__.split(".")[1]]]
    with fault.plant():
        return any(each.is_broken() for each in laws)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_breaks_a_law(fault):
    assert breaks_a_law(fault)


def test_every_rule_is_faulted():
    faulted = {f.where for f in FAULTS if f.module is rules}
    assert {operator.__name__ for operator in RULES} <= faulted
    assert {whole_rules.place(rule) for rule in SPECIAL} <= faulted


def test_every_fault_has_a_name_of_its_own():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
