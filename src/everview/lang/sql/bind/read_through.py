"""Lets a text go on when what it reads is altered: through an item of FROM, or by new names."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from everview.errors import UserError
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


def with_new_names(text: str, table: str, to: str, became: Mapping[str, str | None]) -> str:
    """An expression over one row of a table, with the names that it and its columns have now.

    Refused where a new name would be taken for something else.

    >>> with_new_names("t.a > 0 AND EXISTS(b, a -> a > 1)", "t", "u", {"a": "c", "b": "b"})
    '`u`.`c` > 0 AND EXISTS(b, a -> a > 1)'
    """
    now = {old.lower(): new for old, new in became.items() if new is not None and new != old}
    columns = {name.lower() for pair in became.items() for name in pair if name is not None}
    tree = parse_query(text)
    places: dict[int, tuple[int, str]] = {}
    for node in tree.find_all(exp.Column):
        first, *rest = (part for part in node.parts if isinstance(part, exp.Identifier))
        if rest and first.name.lower() == table.lower():
            if {table.lower(), to.lower()} & columns:
                raise _taken(to)
            if to != table:
                places[first.meta["start"]] = first.meta["end"] + 1, to
            first = rest[0]
        if first.name.lower() in now:
            places[first.meta["start"]] = first.meta["end"] + 1, now[first.name.lower()]
    variables = {
        each.name.lower() for node in tree.find_all(exp.Lambda) for each in node.expressions
    }
    for start, (stop, name) in sorted(places.items(), reverse=True):
        if name.lower() in variables:
            raise _taken(name)
        text = f"{text[:start]}{spark_name(name)}{text[stop:]}"
    return text


def _taken(name: str) -> UserError:
    problem = f"in it {name} means something else"
    return UserError("C008", problem, remedy="choose another name")
