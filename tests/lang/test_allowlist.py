"""What is handed to Spark: written from the tree that was checked, and of known words alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from sqlglot import exp

from e2e.constructs import BEYOND_SPARK, CONSTRUCTS
from everview.errors import UserError
from everview.lang.sql.allowlist import checked_text
from everview.lang.sql.allowlist.checked_text import checked_query
from everview.lang.sql.allowlist.words import stranger
from everview.lang.sql.parse.parser import parse_query
from everview.plan.traverse import has_loops
from everview.sqlgen.sql import SPARK, emit_consolidated
from strategies import plans


def plain(query: str) -> str:
    """The tree of a query, as text that no dialect rewrites."""
    return repr(parse_query(query).transform(_quoted))


def _quoted(node: exp.Expr) -> exp.Expr:
    return exp.to_identifier(node.name, quoted=True) if isinstance(node, exp.Identifier) else node


NAMES = {"t": "everview_1", "u": "everview_2", "asof left join": "ASOF LEFT JOIN"}


def test_a_query_reads_what_was_given_to_spark_under_its_own_name():
    assert checked_query("SELECT t.a FROM t -- and so on", NAMES) == (
        "SELECT `t`.`a` FROM `everview_1` AS `t`"
    )


def test_what_with_defines_has_a_name_that_no_catalog_has():
    asked = "WITH u AS (SELECT a FROM t) SELECT * FROM u, (WITH t AS (SELECT 1) SELECT * FROM t)"
    assert checked_query(asked, NAMES) == (
        "WITH `everview with 0` AS (SELECT `a` FROM `everview_1` AS `t`) "
        "SELECT * FROM `everview with 0` AS `u` CROSS JOIN "
        "(WITH `everview with 1` AS (SELECT 1) SELECT * FROM `everview with 1` AS `t`)"
    )


def test_a_name_of_with_does_not_reach_before_its_definition():
    with pytest.raises(UserError, match="no table or view later"):
        checked_query("WITH a AS (SELECT * FROM later), later AS (SELECT 1) SELECT * FROM a", NAMES)


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a) FROM t",
        "SELECT a FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY a) = 1",
        "SELECT (WITH c AS (SELECT 1) SELECT * FROM c) FROM t",
        "SELECT CAST(a AS TIME) FROM t",
        "SELECT t.a FROM t JOIN `ASOF LEFT JOIN` AS c ON c.b = 'ASOF LEFT JOIN'",
        "SELECT CAST('1' AS INT), TRY_CAST('1' AS INT) FROM t",
        "SELECT LISTAGG(a) WITHIN GROUP (ORDER BY a DESC) FROM t",
        "SELECT LISTAGG(DISTINCT a, '|') WITHIN GROUP (ORDER BY a) FROM t",
        "SELECT TRANSFORM(a, v -> CASE WHEN v > 1 THEN v ELSE v + 1 END) FROM t",
        "SELECT * FROM t LATERAL VIEW OUTER EXPLODE(a) `x y` AS `z``z`",
        "SELECT 'it''s', '\\\\', '\\'', 'a -- b', 'c /* d', `a``b` FROM t",
    ],
)
def test_what_is_written_is_what_was_read(asked):
    written = checked_query(asked, NAMES)
    for one, other in (("`everview_1` AS `t`", "`t`"), ("`everview with 0` AS `c`", "`c`")):
        written = written.replace(one, other)
    written = written.replace("`everview with 0`", "`c`")
    assert plain(written) == plain(asked)


@given(plans())
@settings(max_examples=50, deadline=None)
def test_the_words_of_our_own_sql_are_known(plan):
    if not has_loops(plan):
        assert stranger(emit_consolidated(plan, SPARK)) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT `reflect`('a')",
        "SELECT 1, `reflect`(`a`, `b`) AS (`x`, `y`)",
        "SELECT `default`.upper(`a`)",
        "SELECT TRANSFORM(`a`) USING 'sh'",
        "SELECT r'a'",
        "SELECT 1 -- 2",
        "SELECT /* 1 */ 2",
        "SELECT ${x}",
        'SELECT "a"',
        "SELECT 1; SELECT 2",
        "SELECT * FROM parquet.`x`",
        "SELECT `a` FROM IDENTIFIER('a')",
    ],
)
def test_no_other_word_comes_through(text):
    assert stranger(text) is not None


def test_names_of_columns_are_no_calls():
    text = "WITH `a`(`x`) AS (SELECT 1), `b`(`y`, `z`) MAX RECURSION LEVEL 5 AS (SELECT 1, 2) "
    assert stranger(f"{text}SELECT `q`.`x` FROM `a` AS `q`(`x`)") is None


def test_a_writer_that_changes_the_meaning_is_noticed(monkeypatch):
    """Whatever a text says when it is read again is compared with the tree that was checked."""
    written = checked_text._written
    changed = lambda tree: written(tree).replace("LISTAGG(`s`)", "LISTAGG(`s`, ',')")  # noqa: E731
    monkeypatch.setattr(checked_text, "_written", changed)
    with pytest.raises(UserError, match="not handed to Spark"):
        checked_query("SELECT LISTAGG(s) WITHIN GROUP (ORDER BY s) AS c FROM t", {"t": "t"})


def test_every_construct_is_handed_to_spark_or_known_to_be_read_by_us():
    refused = set()
    for name, text in CONSTRUCTS.items():
        tree = parse_query(text)
        names = {table.name.lower(): f"n {table.name}" for table in tree.find_all(exp.Table)}
        try:
            checked_query(text, names)
        except UserError:
            refused.add(name)
    assert refused <= {"pivot_pairs", "range_of_several_units", *BEYOND_SPARK}
