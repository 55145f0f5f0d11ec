"""Statements that once ended in internal words: each is answered, or refused with its place."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest
from sqlglot import exp, parse_one
from sqlglot.errors import ParseError

import everview as ev
from everview.expr.dialect import DIALECT
from everview.lang.sql.bind import refuse
from everview.lang.sql.lower.desugar import desugared

REFUSED = {
    "SELECT count() FROM t": "Q001",
    "SELECT o, count() OVER (ORDER BY o) AS n FROM t": "Q001",
    "SELECT count() FILTER (WHERE o > 1) AS n FROM t": "Q001",
    "SELECT o, time_trunc('HOUR', TIME'12:34:56') AS x FROM t": "Q020",
    "SELECT o, TIME'12:34:56' AS x FROM t": "Q020",
    "SELECT o FROM t WHERE hour(TIME'12:34:56') = o": "Q020",
    "SELECT o, CAST(c AS TIME) AS x FROM t": "Q020",
    "SELECT o FROM t WHERE CAST(c AS ARRAY<TIME(3)>) IS NULL": "Q020",
    "SELECT length(tuple_sketch_agg_double(v, o)) AS n FROM t": "Q020",
    "SELECT c, length(tuple_sketch_agg_double(v, o)) AS n FROM t GROUP BY c": "Q020",
    "SELECT grouping_id() AS g FROM t": "Q009",
    "SELECT grouping_id() AS g FROM t GROUP BY c": "Q009",
}


@pytest.fixture
def db(open_db, tmp_path):
    with open_db(tmp_path / "store") as opened:
        opened.sql("CREATE TABLE t (o INT PRIMARY KEY, c STRING, v INT)")
        yield opened


@pytest.mark.parametrize("query", REFUSED)
def test_a_query_is_refused_with_its_place_and_the_store_stays_usable(db, query):
    with pytest.raises(ev.UserError) as caught:
        db.sql(f"CREATE VIEW x AS {query}")
    assert caught.value.code == REFUSED[query]
    assert caught.value.span is not None
    assert "mark" not in caught.value.problem
    assert "^" not in caught.value.problem
    db.insert("t", [(1, "a", 10)])
    assert db.read("t").rows() == [(1, "a", 10)]


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE x (a TIME)",
        "CREATE TABLE x AS SELECT TIME'12:00:00' AS a",
        "INSERT INTO t SELECT 1, 'a', hour(TIME'12:00:00')",
        "DELETE FROM t WHERE TIME'12:00:00' = CAST(c AS TIME)",
        "UPDATE t SET c = CAST(TIME'12:00:00' AS STRING)",
    ],
)
def test_a_time_is_no_timestamp_in_any_statement(open_db, tmp_path, statement):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(
            "CREATE TABLE t (o INT PRIMARY KEY, c STRING, v INT); INSERT INTO t VALUES (1, 'a', 2)"
        )
        with pytest.raises(ev.UserError) as caught:
            db.sql(statement)
        assert caught.value.span is not None
        assert db.read("t").rows() == [(1, "a", 2)]


ANSWERED = {
    "whole": (
        "SELECT grouping_id() AS g, COUNT(*) AS n FROM t GROUP BY GROUPING SETS (())",
        [(0, 3)],
        [(0, 2)],
    ),
    "first_of_all": (
        "SELECT o FROM (SELECT o FROM t ORDER BY NULL, o DESC LIMIT 2) AS q",
        [(2,), (3,)],
        [(1,), (3,)],
    ),
    "first_of_none": (
        "SELECT o, v FROM t ORDER BY NULL LIMIT 2",
        [(1, 10), (2, None)],
        [(1, 10), (3, 40)],
    ),
    "by_all": ("SELECT o, v FROM t ORDER BY ALL LIMIT 1", [(1, 10)], [(1, 10)]),
    "over_null": (
        "SELECT o, SUM(v) OVER (PARTITION BY NULL ORDER BY NULL) AS s FROM t",
        [(1, 40), (2, 40), (3, 40)],
        [(1, 50), (3, 50)],
    ),
    "exploded": (
        "SELECT t.o, x.col FROM t, LATERAL (SELECT * FROM EXPLODE(ARRAY(o, v))) AS x",
        [(1, 1), (1, 10), (2, 2), (2, None), (3, 3), (3, 30)],
        [(1, 1), (1, 10), (3, 3), (3, 40)],
    ),
    "exploded_most": (
        "SELECT o, (SELECT MAX(col) FROM EXPLODE(ARRAY(o, v))) AS m FROM t",
        [(1, 10), (2, 2), (3, 30)],
        [(1, 10), (3, 40)],
    ),
    "exploded_joined": (
        "SELECT t.o, x.s FROM t, LATERAL (SELECT col + r.o AS s FROM EXPLODE(ARRAY(t.v)) "
        "JOIN t AS r ON r.o = col / 10) AS x",
        [(1, 11), (3, 33)],
        [(1, 11)],
    ),
    "exploded_beside": (
        "SELECT t.o, x.col FROM t, LATERAL (SELECT * FROM t AS r, EXPLODE(ARRAY(t.o)) AS e(col)) x",
        [(1, 1), (1, 1), (1, 1), (2, 2), (2, 2), (2, 2), (3, 3), (3, 3), (3, 3)],
        [(1, 1), (1, 1), (3, 3), (3, 3)],
    ),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_a_query_is_answered_and_its_view_follows(db, name):
    query, before, after = ANSWERED[name]
    db.sql(f"CREATE VIEW x AS {query}")
    db.insert("t", [(1, "a", 10), (2, "b", None), (3, "a", 30)])
    assert Counter(db.read("x").rows()) == Counter(before)
    db.sql("DELETE FROM t WHERE o = 2; UPDATE t SET v = 40 WHERE o = 3")
    assert Counter(db.read("x").rows()) == Counter(after)


@pytest.mark.spark
def test_every_aggregate_of_spark_is_known_as_one(spark):
    registry = spark._jsparkSession.sessionState().functionRegistry()
    functions = registry.listFunction().iterator()
    aggregates = []
    while functions.hasNext():
        function = functions.next()
        if registry.lookupFunction(function).get().getGroup() == "agg_funcs":
            aggregates.append(function.funcName())
    assert len(aggregates) > 80
    assert [name for name in sorted(aggregates) if not known_as_aggregate(name)] == []


def known_as_aggregate(name: str) -> bool:
    """Whether the parser reads a call as an aggregate, or the language refuses it as one."""
    for arguments in ("a", "a, b", "", "0.5"):
        with suppress(ParseError):
            call = desugared(parse_one(f"SELECT {name}({arguments})", read=DIALECT)).expressions[0]
            if isinstance(call, exp.AggFunc):
                return True
    return name in refuse.UNMAINTAINED_AGGREGATES
