"""The laws of domains and arities: what is kept is what is computed, and what the meaning says."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from agca_queries import queries, values
from everview.algebra.relation import record
from everview.algebra.ring import BOOLEANS, NATURALS
from everview.errors import UserError
from everview.lang.agca.domain_tree import DomainTree
from everview.lang.agca.evaluate import evaluate
from everview.lang.agca.syntax import (
    Assignment,
    Comparison,
    Constant,
    Negate,
    Variable,
    rebuilt,
)

rows = st.dictionaries(st.tuples(values, values), st.integers(1, 3), max_size=4)
tables = st.fixed_dictionaries({"r": rows, "s": rows})
steps = st.lists(
    st.tuples(st.sampled_from("rs"), st.tuples(values, values), st.booleans()),
    min_size=1,
    max_size=5,
)


def counted(query):
    """The expression that counts bindings: numbers are left out where they are factors."""
    match query:
        case Comparison() | Assignment():
            return query
        case Constant() | Variable():
            return Constant(1)
        case Negate(body):
            return counted(body)
        case _:
            return rebuilt(query, counted)


def tree(query, database, ring):
    try:
        return DomainTree(query, {name: each.items() for name, each in database.items()}, ring)
    except UserError as problem:
        assume("in some terms only" not in problem.problem)
        raise


def parts(domain):
    """A domain without conditions, as the meaning of an expression is."""
    assert not any(conditions for (_, conditions), _ in domain)
    return {bound: arity for (bound, _), arity in domain}


@given(query=queries(), database=tables)
def test_arities_count_the_bindings_of_an_expression(query, database):
    given_rows = {name: each.items() for name, each in database.items()}
    expected = evaluate(counted(query), given_rows)(record())
    assert parts(tree(query, database, NATURALS).domain) == dict(expected)


@given(query=queries(), database=tables)
def test_a_domain_is_what_has_an_arity(query, database):
    whole = tree(query, database, BOOLEANS).domain
    assert parts(whole).keys() == parts(tree(query, database, NATURALS).domain).keys()


@given(query=queries(), database=tables, changes=steps, ring=st.sampled_from([BOOLEANS, NATURALS]))
def test_maintained_domains_are_those_computed_from_scratch(query, database, changes, ring):
    kept = tree(query, database, ring)
    for relation, row, is_insert in changes:
        if not is_insert and not kept.rows[relation][row]:
            continue
        (kept.insert if is_insert else kept.delete)(relation, row)
        fresh = tree(query, kept.rows, ring)
        for ours, scratch in zip(kept.root.walk(), fresh.root.walk(), strict=True):
            assert ours.query == scratch.query
            assert (ours.given, ours.own) == (scratch.given, scratch.own), ours.query


@given(query=queries(), database=tables)
def test_each_node_is_visited_once(query, database):
    made = tree(query, database, BOOLEANS)
    assert made.visits == sum(1 for _ in made.root.walk())
