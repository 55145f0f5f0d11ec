"""The laws of AGCA: its normal form, its deltas and its degree (ring-of-databases §5 and 6)."""

from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal

from hypothesis import assume, example, given
from hypothesis import strategies as st

from agca_queries import databases, definitions, queries, values
from everview.algebra.relation import record
from everview.lang.agca.delta import Event, batch_delta, degree, delta, deltas, is_simple
from everview.lang.agca.evaluate import evaluate, rows_of, value_of
from everview.lang.agca.normal_form import monomials_of, normal_form, polynomial
from everview.lang.agca.parse import parse_definitions, parse_query
from everview.lang.agca.printer import print_definition, print_query
from everview.lang.agca.scope import check_scope
from everview.lang.agca.syntax import (
    COMPLEMENT,
    UNITS,
    Add,
    Assignment,
    Atom,
    Comparison,
    Constant,
    Expr,
    Extract,
    Negate,
    Product,
    Sum,
    Variable,
    Wildcard,
    relations,
)

signs = st.sampled_from([1, -1])
row = st.tuples(values, values)


def event(relation: str, sign: int, mark: str) -> Event:
    return Event(relation, sign, (Variable(f"{mark}1"), Variable(f"{mark}2")))


def bound_to(mark: str, inserted: tuple[int, int]) -> dict[str, int]:
    return {f"{mark}1": inserted[0], f"{mark}2": inserted[1]}


def changed(database: dict, relation: str, more: list) -> dict:
    return {**database, relation: [*database[relation], *more]}


@given(query=queries())
def test_an_expression_reads_back_as_it_was_printed(query):
    assert parse_query(print_query(query)) == query


names = st.sampled_from(["x", "y'", "a b", "sum", "Date", "not", "_", "extract", "from", "a`b"])
numbers = [0, -3, 10**30, Decimal("-0.5"), Decimal("1E+3"), Decimal("1E-7")]
texts = ["it's", "", "a'b''c", "`", "//x", "/* */", "%\\_", "\n"]
constants = st.sampled_from([*numbers, *texts, date(2024, 2, 29)])
columns = st.one_of(st.just(Wildcard()), st.builds(Variable, names, st.booleans()))
anything = st.recursive(
    st.one_of(
        st.builds(Constant, constants),
        st.builds(Variable, names),
        st.builds(Atom, names, st.lists(columns, max_size=3).map(tuple)),
    ),
    lambda parts: st.one_of(
        st.builds(Add, st.tuples(parts, parts)),
        st.builds(Product, st.tuples(parts, parts)),
        st.builds(Negate, parts),
        st.builds(Sum, parts),
        st.builds(Comparison, st.sampled_from([*COMPLEMENT]), parts, parts),
        st.builds(Assignment, st.builds(Variable, names), parts),
        st.builds(Extract, st.sampled_from(UNITS), parts),
    ),
    max_leaves=6,
)


@given(query=anything)
@example(Product((Variable("extract"), Comparison("=", Atom("from", ()), Variable("x")))))
@example(Atom("a`b", ()))
def test_whatever_its_names_and_constants_an_expression_reads_back(query):
    assert parse_query(print_query(query)) == query


@given(definition=definitions())
def test_a_definition_reads_back_as_it_was_printed(definition):
    assert parse_definitions(print_definition(definition)) == (definition,)


@given(query=queries())
def test_random_expressions_are_range_restricted(query):
    check_scope(query, frozenset())


@given(query=queries(bound=frozenset("x")), database=databases, x=values)
def test_the_normal_form_has_the_value_of_the_expression(query, database, x):
    """It opens the Sums that are factors, so the values over all bindings are equal."""
    form = polynomial(normal_form(query, frozenset("x")))
    assert value_of(Sum(form), database, x=x) == value_of(Sum(query), database, x=x)


@given(query=queries())
def test_a_monomial_of_the_normal_form_has_no_sum_of_expressions_among_its_factors(query):
    for each in normal_form(query):
        assert not any(isinstance(f, Add | Negate | Product | Sum) for f in each.factors)


@given(query=queries(), database=databases, relation=st.sampled_from("rs"), sign=signs, new=row)
def test_a_delta_is_the_difference_it_stands_for(query, database, relation, sign, new):
    """Prop. 6.1, for one row and for every kind of expression."""
    after = changed(database, relation, [(new, sign)])
    change = delta(query, event(relation, sign, "t"))
    b = record(**bound_to("t", new))
    expected = evaluate(query, after)(b) - evaluate(query, database)(b)
    assert evaluate(change, database)(b) == expected


@given(query=queries(), database=databases, change=databases)
def test_the_delta_of_a_batch_is_the_difference_it_stands_for(query, database, change):
    after = {name: [*database[name], *change[name]] for name in database}
    named = {f"d{name}": listed for name, listed in change.items()}
    found = evaluate(batch_delta(query, {"r": "dr", "s": "ds"}), {**database, **named})(record())
    assert found == evaluate(query, after)(record()) - evaluate(query, database)(record())


@given(
    query=queries(nested=False),
    database=databases,
    updates=st.tuples(*[st.tuples(st.sampled_from("rs"), signs, row)] * 2),
)
def test_the_delta_of_a_delta_is_the_difference_of_the_delta(query, database, updates):
    """Closure: Δ_v Δ_u q (A) = Δ_u q (A + v) − Δ_u q (A)."""
    (r1, sign1, new1), (r2, sign2, new2) = updates
    first, second = event(r1, sign1, "t"), event(r2, sign2, "u")
    b = record(**bound_to("t", new1), **bound_to("u", new2))
    after = changed(database, r2, [(new2, sign2)])
    once = delta(query, first)
    expected = evaluate(once, after)(b) - evaluate(once, database)(b)
    assert evaluate(deltas(query, first, second), database)(b) == expected


@given(query=queries(), relation=st.sampled_from("rs"))
def test_a_delta_lowers_the_degree_of_an_expression_with_simple_conditions(query, relation):
    """Thm 6.4, as an upper bound for each event."""
    assume(is_simple(query))
    change = delta(query, event(relation, 1, "t"))
    assert degree(change) <= max(0, degree(query) - 1)


@given(query=queries(nested=False))
def test_the_degree_falls_by_one_for_a_relation_of_a_largest_monomial(query):
    """Thm 6.4, as an equality, of the normal form: terms that cancel have no degree."""
    assume(is_simple(query))
    form = normal_form(query)
    largest = max((len(each.atoms) for each in form), default=0)
    assume(largest > 0)
    [most, *_] = [each for each in form if len(each.atoms) == largest]
    counted = Counter(each.relation for each in most.atoms)
    change = delta(most.as_query(), event(min(counted), 1, "t"))
    assert degree(change) == largest - 1


@given(query=queries(nested=False), database=databases, other=databases, new=row)
def test_the_last_delta_depends_on_the_update_alone(query, database, other, new):
    assume(is_simple(query))
    order = degree(query)
    events = [event("r", 1, f"t{each}") for each in range(order)]
    last = deltas(query, *events)
    bound = [bound_to(f"t{each}", new) for each in range(order)]
    b = record(**{name: value for each in bound for name, value in each.items()})
    assert relations(last) == ()
    assert evaluate(last, database)(b) == evaluate(last, other)(b)


@given(definition=definitions(), database=databases)
def test_the_row_of_a_group_has_the_value_of_the_expression_there(definition, database):
    """What is read off the monomials of a view is ⟦Sum(q)⟧ at the group, by definition."""
    whole: Expr = Sum(definition.body)
    for key, value in rows_of(definition, monomials_of(definition), database).items():
        bound = dict(zip(definition.key_names, key, strict=True))
        assert value_of(whole, database, **bound) == value


@given(definition=definitions(), database=databases, x=values, y=values, z=values)
def test_a_group_without_a_row_has_the_value_zero(definition, database, x, y, z):
    chosen = {"x": x, "y": y, "z": z}
    bound = {name: chosen[name] for name in definition.key_names}
    found = rows_of(definition, monomials_of(definition), database)
    if tuple(bound.values()) not in found:
        assert value_of(Sum(definition.body), database, **bound) == 0
