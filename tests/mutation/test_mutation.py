"""Every fault planted on purpose breaks a law: a test that cannot fail is found out here."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from everview.differentiate import recursion, rules
from everview.differentiate.rules import RULES, SPECIAL
from everview.program import lowering
from everview.rewrite import factorize, polynomial
from mutation import named, operators, slips, whole_rules
from mutation.planting import Fault, source
from mutation.replay import Law

FAULTS = [
    *whole_rules.faults(),
    *operators.faults(rules),
    *operators.faults(recursion),
    *operators.faults(lowering),
    *slips.faults(),
]
NAMED = named.faults()
SAMPLE, OF_NAMED = 47, 5
"""One fault in so many is planted in `make test`; `make test-all` plants all."""

EACH_DERIVATIVE = "test_the_derivative_of_each_operator_is_the_difference_it_stands_for"
EACH_PRODUCT = "test_each_product_of_a_joined_row_is_split_and_keeps_its_meaning"
PRODUCTS = "test_the_derivative_of_products_is_the_difference_it_stands_for"
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
    ("test_derivative.py", PRODUCTS, 100),
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
REWRITES = (
    ("test_rewrites.py", "test_every_pass_keeps_the_meaning", 300),
    (
        "test_rewrites.py",
        "test_every_pass_keeps_the_meaning_of_one_column_of_each_operator",
        100,
    ),
    ("test_rewrites.py", "test_a_distinct_below_a_subtraction_stays", 20),
    ("test_lowering.py", "test_the_plans_of_texts_have_the_rows_of_the_texts", 80),
    ("test_join_order.py", "test_joins_in_another_order_are_the_same_relation", 100),
    ("test_rewrites.py", EACH_PRODUCT, 600),
    ("test_rewrites.py", "test_pushing_aggregation_below_joins_keeps_the_meaning", 100),
    ("test_recursion.py", "test_every_pass_keeps_what_a_loop_reaches", 60),
)
LOWERING = (("test_lowering.py", "test_the_plans_of_texts_have_the_rows_of_the_texts", 80),)
LAWS = {
    "differentiate": DERIVATIVE,
    "program": PROGRAM,
    "compiler": PROGRAM,
    "sqlgen": SQL,
    "rewrite": REWRITES,
    "lang": LOWERING,
}
"""A fault of a layer is caught by the law of that layer."""

law = cache(Law.of)


def laws_for(fault: Fault) -> list[tuple[str, str, int]]:
    """The laws of a fault's layer; where it is in a loop or a product, those of them first."""
    looped = fault.where in ("Recursive", "Fixpoint")
    split = fault.module in (factorize, polynomial)
    laws = LAWS[fault.module.__name__.split(".")[1]]
    first = "test_recursion.py" if looped else EACH_PRODUCT if split else None
    return sorted(laws, key=lambda each: first is not None and first not in each)


def breaks_a_law(fault: Fault) -> bool:
    """Whether a law of the fault's layer fails while the fault is in force."""
    for each in laws_for(fault):
        sound = law(*each)  # its examples are drawn before the fault is there
        with fault.plant():
            if sound.is_broken():
                return True
    return False


def sample(faults: list[Fault], one_in: int) -> list[Any]:
    """The faults as cases, of which those between the samples are slow."""
    quick = range(one_in // 2, len(faults), one_in)
    return [
        pytest.param(fault, id=fault.name, marks=() if at in quick else pytest.mark.slow)
        for at, fault in enumerate(faults)
    ]


@pytest.mark.parametrize("fault", sample(FAULTS, SAMPLE))
def test_a_fault_breaks_a_law(fault):
    assert breaks_a_law(fault)


@pytest.mark.parametrize("fault", sample(NAMED, OF_NAMED))
def test_a_fault_breaks_the_test_that_is_there_for_it(fault):
    with fault.plant():
        assert named.fails(named.test_of(fault))


def test_every_rule_is_faulted():
    faulted = {f.where for f in FAULTS if f.module is rules}
    assert {operator.__name__ for operator in RULES} <= faulted
    assert {whole_rules.place(rule) for rule in SPECIAL} <= faulted


def test_every_fault_has_a_name_of_its_own():
    every = [*FAULTS, *NAMED]
    assert len({fault.name for fault in every}) == len(every)


def test_every_slip_is_in_the_source():
    """A line that was changed, and its slip with it."""
    slipped = [
        (source(module), right) for module in slips.SLIPS for _, right, _ in slips.SLIPS[module]
    ]
    slipped += [(source(f.module), s.right) for f, s in zip(NAMED, named.SLIPS, strict=True)]
    assert [right for text, right in slipped if text.count(right) != 1] == []
