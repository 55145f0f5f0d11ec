"""Nested views that are written in SQL: the relations of a SELECT with collections in its list.

The query is lowered as any other; see `lang/sql/lower/collections.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from everview.errors import Span, UserError
from everview.expr.types import Schema
from everview.lang.sql.lower.collections import (
    SIGN,
    Mode,
    Shredding,
    array_query,
    dictionary,
)
from everview.lang.sql.lower.context import Analyze
from everview.lang.sql.lower.query import lower_query
from everview.lang.sql.parse.ctes import reads_of
from everview.lang.sql.parse.parser import parse_query
from everview.plan.nodes import Plan, Source
from everview.plan.traverse import schema_of

_MARK = re.compile(r"\[sql (\w+)\] ")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A query in SQL, and how its collections are kept."""

    text: str
    mode: Mode

    @property
    def marked(self) -> str:
        """The text that a catalog holds of it."""
        return f"[sql {self.mode}] {self.text}"

    @property
    def reads(self) -> tuple[str, ...]:
        """The relations that it names."""
        return reads_of(parse_query(self.text))


def read_query(marked: str) -> SqlQuery | None:
    """The query in SQL that a catalog holds as a text; None for one in another language."""
    found = _MARK.match(marked)
    if found is None:
        return None
    return SqlQuery(marked[found.end() :], "shredded" if found[1] == "shredded" else "auto")


def has_collections(query: str) -> bool:
    """Whether a query has ARRAY(SELECT …) or MULTISET(SELECT …) anywhere."""
    return any(array_query(node) is not None for node in parse_query(query).walk())


def paths_of(query: SqlQuery, known: Mapping[str, Source], analyze: Analyze) -> tuple[str, ...]:
    """The paths of the relations of a view, each after the one above it; one if it is flat."""
    shredding = Shredding(query.mode)
    flat = lower_query(query.text, known, analyze, (), shredding)
    if shredding.found:
        _must_have_plain_names(query, schema_of(flat), shredding.found)
    return ("", *sorted(shredding.found, key=lambda path: path.split(".")))


def _must_have_plain_names(query: SqlQuery, flat: Schema, paths: Iterable[str]) -> None:
    steps = [step for path in paths for step in path.split(".")]
    wrong = [each for each in steps if not _PLAIN.fullmatch(each)]
    own = (c.name for c in flat if not any(c.name.startswith(f"{path}{SIGN}") for path in paths))
    wrong += [each for each in own if "." in each or SIGN in each]
    if wrong:
        raise UserError(
            "N006",
            f"the result has a column called {wrong[0]!r}",
            span=Span(query.text, 0, len(query.text)),
            remedy="give it a plain name with AS",
        )


def lower_relation(
    query: SqlQuery,
    view: str,
    path: str,
    known: Mapping[str, Source],
    analyze: Analyze,
) -> Plan:
    """The plan of one relation of a view: the flat one, or a dictionary over those above it."""
    shredding = Shredding(query.mode)
    flat = lower_query(query.text, known, analyze, (), shredding)
    if not path:
        return flat
    if path not in shredding.found:
        raise UserError(
            "N008",
            f"{view} has no collection {path}",
            remedy=f"there are: {', '.join(shredding.found) or 'none'}",
        )
    found = shredding.found[path]
    above = f"{view}.{found.above}" if found.above else view
    plan = dictionary(found, known[above.lower()])
    _must_have_named_elements(plan, path, query)
    return plan


def _must_have_named_elements(plan: Plan, path: str, query: SqlQuery) -> None:
    names = [
        c.name for c in schema_of(plan) if not c.name.startswith((f"{path}{SIGN}", f"{path}."))
    ]
    wrong = [each for each in names if not _PLAIN.fullmatch(each)]
    if wrong or len({each.lower() for each in names}) < len(names):
        raise UserError(
            "N006",
            f"an element of {path} has a component called {(wrong or names)[0].partition('/')[0]!r}",
            span=Span(query.text, 0, len(query.text)),
            remedy="give every component a plain name of its own with AS",
        )
