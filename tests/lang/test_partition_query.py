"""Which blocks of a query become parts that are recomputed."""

from __future__ import annotations

import pytest

from everview.errors import UserError
from everview.expr.types import Column
from everview.lang.sql.recompute.partition_query import partition_query
from everview.plan.nodes import Source

T = Source("t", (Column("k", "int"), Column("v", "int")))
U = Source("u", (Column("k", "int"), Column("w", "int")))
RELATIONS = {"t": T, "u": U}
BLOCK = "SELECT k, APPROX_COUNT_DISTINCT(v) AS z FROM t GROUP BY k"


def analyze(scalar, schema, span):
    raise UserError("E011", f"unknown: {scalar}", span=span, remedy="")


def describe(sql, relations):
    """Spark's part in it: a query that names what it does not read is refused."""
    if "t.k = u.k" in sql and "u" not in relations:
        raise UserError("Q010", "u.k cannot be resolved", remedy="")
    if "ARRAY(" in sql.partition("FROM")[0]:
        return (Column("k", "int"), Column("z", "interval day"))
    if "RECURSIVE" in sql:
        return (Column("n", "int"),)
    return (Column("k", "int"), Column("z", "double"))


def divided(text):
    return partition_query("v", text, RELATIONS, analyze, describe)


def parts(text):
    return [part.query for part in divided(text).parts]


def test_a_query_that_can_be_maintained_has_no_parts():
    text = "SELECT k, SUM(v) AS z FROM t GROUP BY k"
    found = divided(text)
    assert (found.query, found.parts) == (text, ())


def test_a_query_of_one_block_is_a_part_as_it_was_written():
    text = "SELECT k,  approx_count_distinct(v) AS z FROM t GROUP BY k -- as written"
    found = divided(text)
    [part] = found.parts
    assert part.query == text
    assert part.reads == ("t",)
    assert part.reason.startswith("the aggregate approx")
    assert found.query == f"SELECT * FROM `{part.name}`"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT u.w, s.z FROM u JOIN ({BLOCK}) AS s ON s.k = u.k",
        f"WITH s AS ({BLOCK}) SELECT u.w, s.z FROM u LEFT JOIN s ON s.k = u.k",
        f"WITH s AS ({BLOCK}), r AS (SELECT * FROM s WHERE k > 0) SELECT z FROM r, u AS s",
        f"SELECT k, w FROM u UNION ALL {BLOCK}",
        f"{BLOCK} EXCEPT SELECT k, w FROM u",
        f"SELECT k FROM u WHERE (k, CAST(w AS DOUBLE)) IN ({BLOCK})",
        f"SELECT k FROM u WHERE EXISTS ({BLOCK})",
        f"SELECT a.k FROM ({BLOCK}) AS a JOIN ({BLOCK}) AS b ON a.k = b.k",
        f"WITH s AS ({BLOCK}) SELECT a.k FROM s AS a JOIN s AS b ON a.k = b.k",
        f"SELECT * FROM ({BLOCK}) AS s",
    ],
)
def test_the_smallest_block_is_the_part_and_the_rest_is_maintained(text):
    assert parts(text) == [BLOCK]


def test_names_that_with_gives_hide_tables_only_where_they_are_seen():
    text = f"WITH u AS (SELECT k AS w FROM t) SELECT s.z FROM u JOIN ({BLOCK}) AS s ON s.k = u.w"
    found = divided(text)
    assert [part.query for part in found.parts] == [BLOCK]
    assert "(SELECT k AS w FROM t) AS u" in found.query


def test_the_columns_that_with_gives_stay_with_another_alias():
    text = f"WITH s (a, b) AS ({BLOCK}) SELECT q.b FROM s AS q"
    found = divided(text)
    assert "AS q(a, b)" in found.query.replace("q (", "q(")


def test_a_block_that_reads_what_is_around_it_is_no_part():
    text = "SELECT k, (SELECT APPROX_COUNT_DISTINCT(v) FROM t WHERE t.k = u.k) AS z FROM u"
    assert parts(text) == [text]


def test_a_block_whose_columns_cannot_be_stored_is_no_part():
    inner = BLOCK.replace("APPROX_COUNT_DISTINCT(v)", "ARRAY(APPROX_COUNT_DISTINCT(v))")
    text = f"SELECT k, SIZE(z) AS z FROM ({inner}) AS s"
    assert parts(text) == [text]


def test_a_recursive_with_is_one_block():
    joined = "SELECT r.n + 1 FROM r JOIN r AS q ON r.n = q.n WHERE r.n < 5"
    text = f"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL {joined}) SELECT n FROM r"
    assert parts(text) == [text]
    hidden = text.replace(" r ", " t ").replace(" r)", " t)").replace("FROM r", "FROM t")
    hidden = hidden.replace("SELECT n + 1", "SELECT APPROX_COUNT_DISTINCT(n)")
    assert parts(hidden) == [hidden]
    inner = f"SELECT u.w, q.n FROM u JOIN ({text}) AS q ON q.n = u.k"
    assert divided(inner).parts[0].reads == ()


@pytest.mark.parametrize(
    "block",
    [
        "SELECT k, APPROX_COUNT_DISTINCT(v) AS z, FIRST(v) AS a FROM t GROUP BY k",
        "SELECT k, APPROX_COUNT_DISTINCT(v) AS z, MAX_BY(v, k) AS a FROM t GROUP BY k",
        "SELECT k, APPROX_COUNT_DISTINCT(v) AS z, LISTAGG(v) AS a FROM t GROUP BY k",
        "SELECT k, APPROX_COUNT_DISTINCT(RAND()) AS z FROM t GROUP BY k",
        "SELECT k, APPROX_COUNT_DISTINCT(v) AS z FROM (SELECT * FROM t LIMIT 3) GROUP BY k",
        "SELECT k, APPROX_COUNT_DISTINCT(v) AS z FROM t TABLESAMPLE (3 ROWS) GROUP BY k",
        "SELECT k, v AS z FROM t OFFSET 2",
        "SELECT k, SUM(APPROX_COUNT_DISTINCT(v)) OVER (ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
        " AS z FROM t GROUP BY k",
    ],
)
def test_what_may_answer_otherwise_the_next_time_is_refused(block):
    for text in (block, f"SELECT u.w, s.z FROM u JOIN ({block}) AS s ON s.k = u.k"):
        with pytest.raises(UserError) as caught:
            divided(text)
        assert caught.value.code == "Q021"


def test_an_error_in_the_text_is_told_and_not_recomputed():
    def nothing(sql, relations):
        raise UserError("Q010", "nope cannot be resolved", remedy="")

    with pytest.raises(UserError) as caught:
        partition_query("v", "SELECT nope FROM t", RELATIONS, analyze, nothing)
    assert caught.value.code == "Q007"
