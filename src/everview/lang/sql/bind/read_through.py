"""Lets a query read a relation through an item of FROM, wherever it names the relation."""

from __future__ import annotations

from sqlglot import exp

from everview.expr.quoting import spark_name
from everview.lang.sql.parse.ctes import cte_of
from everview.lang.sql.parse.parser import parse_query


def names_in(text: str) -> set[str]:
    """All names that a query writes, in lower case, whatever they stand for."""
    return {node.name.lower() for node in parse_query(text).find_all(exp.Identifier)}


def read_through(text: str, relation: str, item: str) -> str:
    """The query with another item of FROM in each place that names a relation.

    The item is called what the relation was called there, so all else in the query means the same.

    >>> read_through("SELECT t.a FROM t JOIN u AS x ON t.a = x.a", "t", "(SELECT b AS a FROM t)")
    'SELECT t.a FROM (SELECT b AS a FROM t) AS `t` JOIN u AS x ON t.a = x.a'
    """
    named = [
        node
        for node in parse_query(text).find_all(exp.Table)
        if node.name.lower() == relation.lower() and not node.db and cte_of(node) is None
    ]
    for node in sorted(named, key=lambda node: -node.this.meta["start"]):
        start, stop = node.this.meta["start"], node.this.meta["end"] + 1
        alias = "" if node.alias else f" AS {spark_name(node.name)}"
        text = f"{text[:start]}{item}{alias}{text[stop:]}"
    return text
