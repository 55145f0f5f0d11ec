"""What the generator draws: every operator, always the same from the same numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice
from types import UnionType
from typing import get_args

import pytest
from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr.types import Schema, Type
from everview.lang.sql.bind.inline_functions import inline_calls_in_text
from everview.lang.sql.lower.query import lower_query
from everview.lang.sql.parse.functions import Function
from everview.lang.sql.parse.functions import Function as Declared
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.statements import HIGHER_ORDER
from everview.plan.nodes import Change, Empty, Plan, Ref, Restrict, Source
from everview.plan.traverse import schema_of, walk
from everview.program.maps import products_in
from everview.rewrite.factorize import factorize
from everview.rewrite.passes import rewrite
from everview_fuzz.case import Case, Contents, Table, Transaction, View, reads
from everview_fuzz.generate.cases import generate
from everview_fuzz.script import script

OF_PROGRAMS = {Change, Ref, Restrict}
"""Operators of derivatives and programs, which no query is lowered to."""
OF_NO_QUERY_YET = {Empty}
"""Operators that nothing in the language makes so far: a query that does belongs in the fuzzer."""

WORDS = {
    "joins": (
        *("LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", "CROSS JOIN"),
        *("NATURAL ", "USING (", "<=>", " BETWEEN ", "CROSS JOIN LATERAL (", "LEFT JOIN LATERAL ("),
        ", LATERAL (",
    ),
    "subqueries": (
        *(" EXISTS (SELECT", "NOT EXISTS (SELECT", " IN (SELECT", "NOT IN (SELECT"),
        *(") IN (SELECT", ") NOT IN (SELECT", " ALL (SELECT", " ANY (SELECT", "WITH "),
    ),
    "recursion": ("WITH RECURSIVE q", ".d + 1 FROM q", "(x, y) AS (SELECT"),
    "set operations": (
        *("UNION ALL", " UNION SELECT", "UNION DISTINCT", "INTERSECT SELECT", "INTERSECT ALL"),
        *("EXCEPT SELECT", "EXCEPT ALL"),
    ),
    "aggregates": (
        *("MIN(", "MAX(", "AVG(", "BOOL_AND(", "BOOL_OR(", "EVERY(", "COUNT_IF(", "ANY_VALUE("),
        *("COUNT(DISTINCT", "SUM(DISTINCT", "AVG(DISTINCT", "VAR_POP(", "VAR_SAMP(", "STDDEV("),
        *("COVAR_POP(", "COVAR_SAMP(", "CORR(", "REGR_SLOPE(", "BIT_XOR(", "FIRST(", "LAST("),
        *("MEDIAN(", "PERCENTILE(", "PERCENTILE_CONT(", "PERCENTILE_DISC(", "MODE() WITHIN"),
        *("MAX_BY(", "MIN_BY(", "LISTAGG(", "LISTAGG(DISTINCT", "STRING_AGG(", "COLLECT_LIST("),
        *("COLLECT_SET(", "ARRAY_AGG(", "FILTER (WHERE", "HAVING", "ROLLUP(", "CUBE("),
        *(
            "GROUPING SETS (",
            "WITH ROLLUP",
            "WITH CUBE",
            "GROUPING(",
            "GROUPING_ID(",
            "GROUP BY ALL",
        ),
    ),
    "windows": (
        *("ROW_NUMBER() OVER", "RANK() OVER", "DENSE_RANK() OVER", "NTILE(", "PERCENT_RANK()"),
        *("CUME_DIST()", "LAG(", "LEAD(", "FIRST_VALUE(", "LAST_VALUE(", "NTH_VALUE("),
        *("IGNORE NULLS", ") OVER (PARTITION", ") OVER (ORDER", "QUALIFY", " WINDOW q"),
        *("ROWS BETWEEN", " 1 PRECEDING", " FOLLOWING", "RANGE BETWEEN 2 PRECEDING"),
        *("RANGE BETWEEN INTERVAL '2' DAY PRECEDING", ") = 1", ".rn = 1", "RESPECT NULLS"),
        *("ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN CURRENT ROW", "RANGE CURRENT ROW"),
    ),
    "the first rows": ("LIMIT 1", "LIMIT 2 OFFSET 1", " OFFSET 2", "NULLS LAST", "NULLS FIRST"),
    "rows made of rows": (
        *("(VALUES ", " PIVOT (", "UNPIVOT", "INCLUDE NULLS", "EXPLODE(", "EXPLODE_OUTER("),
        *("POSEXPLODE(", "INLINE(", "STACK(", "EXPLODE(MAP(", "LATERAL VIEW OUTER"),
        *("LATERAL VIEW EXPLODE(", ", LATERAL EXPLODE("),
    ),
    "nested values": (
        *("STRUCT(", "NAMED_STRUCT(", "ARRAY(", "MAP(", "TRANSFORM(", "FILTER(ARRAY", "AGGREGATE("),
        *("EXISTS(ARRAY", "FORALL(", "MAP_FILTER(", "TRANSFORM_VALUES(", "SORT_ARRAY("),
    ),
    "scalars": (
        *("CASE WHEN", "CAST(", "TRY_CAST(", "TRY_ADD(", "TRY_DIVIDE(", "TRY_ELEMENT_AT("),
        *("INTERVAL '", "DATEDIFF(", "TIMESTAMPDIFF(", "DATE_TRUNC(", "MAKE_DATE(", "EXTRACT("),
        *("DATE_FORMAT(", "MONTHS_BETWEEN(", "REGEXP_REPLACE(", "RLIKE", "NULLIF("),
    ),
}
"""What the language has beyond operators, by what it is for."""

SHAPES: dict[str, Callable[[exp.Expr], bool]] = {
    "a join on a range": lambda tree: any(
        isinstance(join.args.get("on"), exp.LT | exp.LTE | exp.GT | exp.GTE | exp.Between)
        for join in tree.find_all(exp.Join)
    ),
    "a subquery in ON": lambda tree: any(
        _inside(join, exp.In | exp.Exists, exp.Query) and join.args.get("on")
        for join in tree.find_all(exp.Join)
    ),
    "NOT over AND or OR with a membership": lambda tree: any(
        _inside(each.this.unnest(), exp.In, exp.Query)
        for each in tree.find_all(exp.Not)
        if isinstance(each.this.unnest(), exp.Connector)
    ),
    "a last value with FILTER": lambda tree: any(
        isinstance(each.this, exp.Filter) and isinstance(each.this.this, exp.LastValue)
        for each in tree.find_all(exp.Window)
    ),
    "a sum that is two keys": lambda tree: any(
        isinstance(key, exp.Add | exp.Paren)
        for sets in tree.find_all(exp.GroupingSets)
        for each in sets.expressions
        for key in (each.expressions or [each])
    ),
    "a subquery in the list": lambda tree: _asks_in(tree, "expressions"),
    "a subquery in WHERE": lambda tree: _asks_in(tree, "where"),
    "a subquery in HAVING": lambda tree: _asks_in(tree, "having"),
    "a subquery in CASE": lambda tree: _inside(tree, exp.Case, exp.Query),
    "a subquery in a subquery": lambda tree: any(
        _inside(each.args["query"], exp.In | exp.Exists, exp.Query)
        for each in tree.find_all(exp.In)
        if each.args.get("query")
    ),
    "a total of totals": lambda tree: any(
        select.args.get("group")
        and any(_inside(item, exp.Select, exp.Group) for item in _from(select))
        for select in tree.find_all(exp.Select)
    ),
    "an expression of aggregates": lambda tree: _inside(tree, exp.Binary, exp.AggFunc),
    "a window over groups": lambda tree: any(
        select.args.get("group") and any(each.find(exp.Window) for each in select.expressions)
        for select in tree.find_all(exp.Select)
    ),
    "several windows": lambda tree: len(list(tree.find_all(exp.Window))) > 2,
}
"""What no word tells."""

STATEMENTS = (
    *("CREATE OR REPLACE MATERIALIZED VIEW", "WITH (refresh = 'auto')", "CREATE FUNCTION"),
    *("PRIMARY KEY", "NOT NULL", " AS SELECT `", "MERGE INTO", "WHEN NOT MATCHED", "UPDATE t"),
    *("DELETE FROM t", "IN (SELECT `", "WHERE EXISTS (SELECT", "INSERT INTO", "BEGIN;"),
)
"""What is said beside queries."""


def _from(select: exp.Expr) -> list[exp.Expr]:
    first = select.args.get("from_")
    return [each for each in (first, *(select.args.get("joins") or ())) if each is not None]


def _inside(tree: exp.Expr, outer: type[exp.Expr] | UnionType, inner: type[exp.Expr]) -> bool:
    """Whether a node of one kind has one of another kind in it."""
    return any(
        isinstance(node, outer) and any(isinstance(each, inner) for each in list(node.walk())[1:])
        for node in tree.walk()
    )


def _asks_in(tree: exp.Expr, part: str) -> bool:
    """Whether a part of a SELECT has a query in it."""
    parts = (select.args.get(part) for select in tree.find_all(exp.Select))
    listed = (each if isinstance(each, list) else [each] for each in parts if each)
    return any(node.find(exp.Query) is not None for each in listed for node in each)


def unknown(scalar: str, _schema: Schema, span: Span | None) -> Type:
    raise UserError("E011", f"no type for {scalar}", span=span, remedy="")


def plans(case: Case) -> Iterator[Plan | None]:
    """The plan of every view, None where it or what it reads is refused."""
    known = {table.name: Source(table.name, table.columns, table.key) for table in case.tables}
    made = {
        step.name: Declared(step.name, step.takes, step.gives, step.body)
        for step in case.steps
        if isinstance(step, Function)
    }
    for view in case.views:
        try:
            plan = lower_query(inline_calls_in_text(view.query, made)[0], known, unknown)
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


def test_views_that_split_into_factors_are_drawn_under_higher_order():
    split: Counter[str] = Counter()
    for case in (generate(0, number) for number in range(20)):
        for view, plan in zip(case.views, plans(case), strict=True):
            if plan is not None and products_in(factorize(rewrite(plan), overflow=True)):
                split[view.policy] += 1
    assert split[HIGHER_ORDER] >= 3


@pytest.fixture(scope="module")
def cases():
    return [generate(1, number) for number in range(500)]


@pytest.mark.parametrize("topic", WORDS)
def test_every_word_of_the_language_occurs_in_the_views_drawn(cases, topic):
    queries = [view.query for case in cases for view in case.views]
    assert [word for word in WORDS[topic] if not any(word in query for query in queries)] == []


def test_every_shape_occurs_in_the_views_drawn(cases):
    missing = dict(SHAPES)
    for view in (view for case in cases for view in case.views):
        tree = parse_query(view.query) if missing else None
        missing = {name: has for name, has in missing.items() if tree and not has(tree)}
    assert list(missing) == []


def test_every_statement_occurs_in_the_cases_drawn(cases):
    scripts = "\n".join(map(script, cases))
    assert [word for word in STATEMENTS if word not in scripts] == []


def test_functions_are_called_and_replaced_views_are_read(cases):
    called, replaced = 0, 0
    for case in cases:
        made = [step for step in case.steps if isinstance(step, Function)]
        called += sum(f"{each.name}(" in view.query for each in made for view in case.views)
        again = [view for view in case.views if view.replaces]
        replaced += sum(reads(view, each.name) for each in again for view in case.views)
    assert called > 20
    assert replaced > 20


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


def test_a_forced_policy_is_that_of_every_view_and_changes_nothing_else():
    drawn, forced = generate(3, 5), generate(3, 5, "first-order")
    views = [step for step in forced.steps if isinstance(step, View)]
    assert {each.policy for each in views} == {"first-order"}
    without = [replace(s, policy="") if isinstance(s, View) else s for s in drawn.steps]
    assert without == [replace(s, policy="") if isinstance(s, View) else s for s in forced.steps]


def test_the_case_is_the_same_in_every_process():
    """Case 40 has a MERGE that inserts several rows, once in the order of a set."""
    code = """
from everview_fuzz.generate.cases import generate
from everview_fuzz.script import script
print(script(generate(1, 40)))
"""
    shown = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(shown) == 1


@pytest.mark.parametrize("number", range(30))
def test_only_forbidden_transactions_break_a_constraint(number):
    case, contents = generate(1, number), Contents()
    for step in case.steps:
        if isinstance(step, Table):
            contents.create(step)
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
        assert 4 <= len({view.name for view in case.views}) <= 10
        assert 3 <= len(changed) <= 6
