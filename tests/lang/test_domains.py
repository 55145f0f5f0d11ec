"""Domains and arities of AGCA: the examples of domains-and-arities, with their numbers."""

from __future__ import annotations

import pytest

from everview.algebra.relation import record
from everview.algebra.ring import BOOLEANS, NATURALS
from everview.errors import UserError
from everview.lang.agca.domain_tree import DomainTree
from everview.lang.agca.domains import arity_at, entries, extended
from everview.lang.agca.parse import parse_definitions, parse_query

R = [((1, 2), 1), ((1, 3), 2), ((3, 4), 1)]
S = [((1, 1), 1), ((2, 2), 2), ((3, 5), 2)]
TABLE_4 = [
    (1, 2, 4, 3),
    (2, 3, 5, 4),
    (7, 2, 5, 2),
    (6, 3, 9, 4),
    (11, 2, 4, 2),
    (1, 2, 9, 3),
    (3, 3, 5, 5),
    (3, 2, 5, 2),
    (3, 2, 5, 3),
]


def tree(text, ring=BOOLEANS, maps=None, **tables):
    definitions = {each.name: each for each in parse_definitions(maps)} if maps else {}
    return DomainTree(parse_query(text), tables, ring, definitions)


def node_of(made, text):
    return next(each for each in made.root.walk() if each.query == parse_query(text))


def arities(text, columns, **tables):
    return entries(tree(text, NATURALS, **tables).domain, columns)


def domain(text, columns, **tables):
    return set(entries(tree(text, **tables).domain, columns))


def test_the_domain_of_a_relation_is_its_tuples():
    assert domain("R(a, b)", ("a", "b"), R=R) == {(1, 2), (1, 3), (3, 4)}


def test_tables_1_to_3_a_join_multiplies_arities():
    found = tree("R(a, b) * S(b, c)", NATURALS, R=R, S=S).domain
    assert entries(found, ("a", "b", "c")) == {(1, 2, 2): 2, (1, 3, 5): 4}
    assert arity_at(found, {}, a=3, b=4, c=1) == 0
    assert arity_at(found, {}, a=9, b=1, c=1) == 0


def test_tables_4_and_5_an_arity_is_the_count_of_its_group():
    rows = [(row, 1) for row in TABLE_4]
    counted = {(2, 3): 3, (3, 4): 2, (2, 2): 3, (3, 5): 1}
    assert arities("R(_, b, _, d)", ("b", "d"), R=rows) == counted
    assert arities("R(a, b, c, d)", ("b", "d"), R=rows) == counted


def test_a_union_adds_arities_and_counts_a_missing_tuple_as_none():
    found = arities("R(a, b) + S(a, b)", ("a", "b"), R=R, S=[((1, 2), 3), ((9, 9), 1)])
    assert found == {(1, 2): 4, (1, 3): 2, (3, 4): 1, (9, 9): 1}
    assert arities("R(a, b) + S(a, b)", ("a", "b"), R=R, S=[]) == {(1, 2): 1, (1, 3): 2, (3, 4): 1}


def test_an_arity_is_not_the_value_of_a_map():
    assert arities("R(a, b) * 0", ("a",), R=R) == {(1,): 3, (3,): 1}
    assert arities("R(a, b) - R(a, b)", ("a",), R=R) == {(1,): 6, (3,): 2}


@pytest.mark.parametrize("text", ["3", "x", "(x < y)", "(x := y)"])
def test_an_infinite_domain_stays_symbolic(text):
    found = tree(text, NATURALS).domain
    assert len(found) == 1
    with pytest.raises(UserError, match="is not bound"):
        entries(found, ("x",))


def test_a_symbolic_domain_knows_its_members():
    less = tree("(x < y)", NATURALS).domain
    assert (arity_at(less, {}, x=1, y=2), arity_at(less, {}, x=2, y=2)) == (1, 0)
    equal = tree("(x := y + 1)", NATURALS).domain
    assert (arity_at(equal, {}, x=3, y=2), arity_at(equal, {}, x=2, y=2)) == (1, 0)


def test_an_assignment_is_checked_against_the_value_that_is_assigned():
    """(15) and (20) as printed forget that; (8) says it."""
    assert arities("R(a, b) * (v := a + b)", ("a", "v"), R=R) == {(1, 3): 1, (1, 4): 2, (3, 7): 1}
    assert arities("R(a, b) * (b := a + 1)", ("a", "b"), R=R) == {(1, 2): 1, (3, 4): 1}


def test_a_union_of_other_variables_leaves_some_free():
    found = tree("R(a, _) + S(_, c)", NATURALS, R=R, S=S).domain
    assert arity_at(found, {}, a=1, c=77) == 3
    assert arity_at(found, {}, a=1, c=5) == 3 + 2
    with pytest.raises(UserError, match="the variable c is not bound"):
        entries(found, ("a", "c"))


def test_ext_adds_arities_where_it_shrinks_and_leaves_free_where_it_grows():
    found = tree("R(a, b)", NATURALS, R=R).domain
    assert entries(extended(found, frozenset("a")), ("a",)) == {(1,): 3, (3,): 1}
    grown = extended(found, frozenset("abz"))
    assert arity_at(grown, {}, a=1, b=3, z=12345) == 2


def test_ext_keeps_what_is_compared_with_a_column_that_it_drops():
    found = extended(tree("S(b, _) * (b < x)", S=S).domain, frozenset("x"))
    assert [arity_at(found, {}, x=x) for x in (1, 2, 9)] == [False, True, True]
    with pytest.raises(UserError, match="the variable x is not bound"):
        extended(found, frozenset())


def test_a_product_hands_its_domain_to_both_sides_of_a_sum():
    """q1 * (q2 * q3 + q4 * q5), by the law of distribution (4-13)."""
    made = tree("R(a, b) * (S(b, c) * Sum(S(b, d)) + Sum(S(a, d)) * S(a, c))", NATURALS, R=R, S=S)
    assert entries(made.domain, ("a", "b", "c")) == {(1, 2, 2): 4, (1, 2, 1): 1} | {
        (1, 3, 5): 8,
        (1, 3, 1): 2,
        (3, 4, 5): 4,
    }
    first, second = node_of(made, "Sum(S(b, d))"), node_of(made, "Sum(S(a, d))")
    assert set(entries(first.given, ("b",))) == {(2,), (3,)}
    assert set(entries(second.given, ("a",))) == {(1,), (3,)}


def test_a_map_has_its_inputs_from_the_left_and_its_outputs_from_its_child():
    made = tree("R(a, b) * M(c)", NATURALS, "M[c] := S(b, c)", R=R, S=S)
    node = next(each for each in made.root.walk() if each.is_map)
    assert (node.inputs, node.outputs) == (frozenset("b"), frozenset("c"))
    assert set(entries(node.given, ("b",))) == {(2,), (3,), (4,)}
    # Its own arities, which those of R, that are references from outside, do not multiply.
    assert entries(node.own, ("b", "c")) == {(2, 2): 2, (3, 5): 2}
    assert entries(made.domain, ("a", "b", "c")) == {(1, 2, 2): 2, (1, 3, 5): 4}


def test_a_map_whose_input_stays_free_is_refused():
    with pytest.raises(UserError, match="the variable x is not bound here"):
        tree("Sum(S(b, c) * (b < x))", S=S)
    with pytest.raises(UserError, match="a is bound in some terms only"):
        tree("(R(a, _) + S(_, c)) * Sum(R(a, b))", R=R, S=S)


def test_input_and_output_variables():
    made = tree("R(a, b) * (S(b, c) + S(c, c)) * (c < a) * (v := Sum(R(a, d) * d))", R=R, S=S)
    assert (made.root.inputs, made.root.outputs) == (frozenset(), frozenset("abcv"))
    assert made.root.reads == {"R", "S"}
    united = node_of(made, "S(b, c) + S(c, c)")
    assert (united.inputs, united.outputs) == (frozenset(), frozenset("c"))
    compared = node_of(made, "(c < a)")
    assert (compared.inputs, compared.outputs) == (frozenset("ac"), frozenset())
    assigned = node_of(made, "(v := Sum(R(a, d) * d))")
    assert (assigned.inputs, assigned.outputs) == (frozenset("a"), frozenset("v"))
    # (27) lacks brackets: what the left side needs stays needed, whatever it binds itself.
    assert tree("(x < y) * R(x, z) * (z < w)", R=R).root.inputs == frozenset("xyw")


def test_each_node_is_visited_once():
    """Thm 3.1."""
    text = "R(a, b) * (S(b, c) + S(a, c) * (a < b)) * (2 < Sum(R(a, d) * Sum(S(d, e))))"
    made = tree(text, R=R, S=S)
    assert made.visits == sum(1 for _ in made.root.walk()) == 14


VWAP = "bids(p, v) * (Sum(bids(q, w) * (q > p) * w) < 10)"


def test_the_domain_of_a_nested_aggregate_is_the_prices_around_it():
    bids = [((1, 5), 1), ((2, 5), 1), ((3, 5), 1)]
    made = tree(VWAP, bids=bids)
    node = next(each for each in made.root.walk() if each.is_map)
    assert set(entries(node.given, ("p",))) == {(1,), (2,), (3,)}
    assert set(entries(node.own, ("p",))) == {(1,), (2,)}
    assert set(entries(made.domain, ("p",))) == {(2,), (3,)}
    made.insert("bids", (4, 1))
    assert set(entries(node.own, ("p",))) == {(1,), (2,), (3,)}
    assert set(entries(made.domain, ("p",))) == {(2,), (3,), (4,)}
    # A value that is compared changes without any change from 0 to 1.
    made.insert("bids", (4, 1))
    made.insert("bids", (4, 4))
    assert set(entries(made.domain, ("p",))) == {(3,), (4,)}


def test_algorithm_5_as_printed_loses_what_joins_with_a_new_tuple():
    made = tree("R(a, b) * S(b, c)", R=[((1, 2), 1)], S=S)
    assert made.insert("R", (1, 3))
    assert set(entries(made.domain, ("a", "b", "c"))) == {(1, 2, 2), (1, 3, 5)}
    assert made.insert("S", (3, 6))
    assert set(entries(made.domain, ("a", "b", "c"))) == {(1, 2, 2), (1, 3, 5), (1, 3, 6)}


def test_what_has_no_inputs_is_computed_beside_an_empty_domain():
    made = tree("R(a, a) * R(a, a) * (1 < 2)", R=[])
    made.insert("R", (1, 1))
    fresh = tree("R(a, a) * R(a, a) * (1 < 2)", R=[((1, 1), 1)])
    assert [each.given for each in made.root.walk()] == [each.given for each in fresh.root.walk()]
    assert set(entries(made.domain, ("a",))) == {(1,)}


def test_conditions_on_the_right_follow_the_left():
    made = tree("R(a) * ((a = a) * (a = a))", R=[((1,), 1)])
    made.insert("R", (2,))
    assert set(entries(made.domain, ("a",))) == {(1,), (2,)}


def test_only_changes_from_0_to_1_and_from_1_to_0_do_work():
    made = tree("R(a, b) * S(b, c) * Sum(S(b, d))", R=R, S=S)
    before = made.visits, made.recomputed
    assert not made.insert("R", (1, 3))
    assert not made.delete("R", (1, 3))
    assert not made.delete("R", (1, 3))
    assert (made.visits, made.recomputed) == before
    assert made.delete("R", (1, 3))
    assert made.recomputed > before[1]
    assert set(entries(made.domain, ("a", "b", "c"))) == {(1, 2, 2)}
    node = next(each for each in made.root.walk() if each.is_map)
    assert set(entries(node.given, ("b",))) == {(2,)}


def test_the_right_side_is_left_alone_where_no_input_of_it_changes():
    made = tree("R(a) * (S(b, c) * S(c, d) * S(d, e))", R=[((1,), 1)], S=S)
    before = made.visits
    assert made.insert("R", (2,))
    # The root and R.
    assert made.visits - before == 2
    assert len(entries(made.domain, ("a", "b", "e"))) == 4


def test_a_row_that_is_not_there_cannot_be_deleted():
    made = tree("R(a, b)", R=R)
    with pytest.raises(UserError, match="is not in R"):
        made.delete("R", (7, 7))
    assert made.rows["R"] == dict(R)


def test_the_arity_of_a_tuple_in_the_domain_of_a_relation_is_positive():
    """Thm 5.1."""
    made = tree("R(a, b)", R=R)
    for row, n in R:
        for _ in range(n):
            assert made.root.arities[record(a=row[0], b=row[1])] > 0
            made.delete("R", row)
        assert record(a=row[0], b=row[1]) not in made.root.arities
    assert len(made.domain) == 0
