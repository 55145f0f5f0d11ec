"""Nested views that are written in SQL: the relations of a SELECT with collections in its list.

The query is lowered as any other; see `lang/sql/lower/collections.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from everview.errors import Span, UserError
from everview.expr.types import Schema, unusable_name
from everview.lang.sql.lower.collections import (
    SIGN,
    FoundCollection,
    Mode,
    Shredding,
    array_query,
    dictionary,
)
from everview.lang.sql.lower.context import Analyze
from everview.lang.sql.lower.nested_items import nested_relation
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
    flat, found = _lowered(query, _read(query, known), analyze)
    if found:
        _must_have_plain_names(query, schema_of(flat), found)
    return ("", *sorted(found, key=lambda path: path.split(".")))


def _read(query: SqlQuery, known: Mapping[str, Source]) -> tuple[tuple[str, Source], ...]:
    """The relations that a query names, with what is inside them; all, if one is not there."""
    named = tuple(name.lower() for name in query.reads)
    if not all(name in known for name in named):
        return tuple(known.items())
    roots = tuple(f"{name}." for name in named)
    return tuple(each for each in known.items() if each[0] in named or each[0].startswith(roots))


@lru_cache(maxsize=64)
def _lowered(
    query: SqlQuery, read: tuple[tuple[str, Source], ...], analyze: Analyze
) -> tuple[Plan, Mapping[str, FoundCollection]]:
    """The flat relation of a view, and its collections: lowered once for all its relations."""
    shredding = Shredding(query.mode)
    return lower_query(query.text, dict(read), analyze, (), shredding), shredding.found


def _must_have_plain_names(
    query: SqlQuery, flat: Schema, found: Mapping[str, FoundCollection]
) -> None:
    steps = [step for path in found for step in path.split(".")]
    wrong = [each for each in steps if not _PLAIN.fullmatch(each) or unusable_name(each)]
    own = (c.name for c in flat if not any(c.name.startswith(f"{path}{SIGN}") for path in found))
    wrong += [each for each in own if "." in each or SIGN in each]
    elements = (c.name for each in found.values() for c in schema_of(each.rows))
    wrong += [each for each in elements if unusable_name(each)]
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
    flat, collections = _lowered(query, _read(query, known), analyze)
    if not path:
        return flat
    if path not in collections:
        raise UserError(
            "N008",
            f"{view} has no collection {path}",
            remedy=f"there are: {', '.join(collections) or 'none'}",
        )
    found = collections[path]
    above = f"{view}.{found.above}" if found.above else view
    plan = dictionary(found, known[above.lower()])
    _must_have_named_elements(plan, path, query)
    return plan


def _must_have_named_elements(plan: Plan, path: str, query: SqlQuery) -> None:
    names = [
        c.name for c in schema_of(plan) if not c.name.startswith((f"{path}{SIGN}", f"{path}."))
    ]
    wrong = [each for each in names if not _PLAIN.fullmatch(each) or unusable_name(each)]
    named = next(iter(wrong or names), "").partition("/")[0]
    if wrong or len({each.lower() for each in names}) < len(names):
        raise UserError(
            "N006",
            f"an element of {path} has a component called {named!r}",
            span=Span(query.text, 0, len(query.text)),
            remedy="give every component a plain name of its own with AS",
        )


def rebuilt_relation(view: str, known: Mapping[str, Source]) -> Plan:
    """The plan that reads a view with its collections as arrays."""
    nested = nested_relation(known, view)
    assert nested is not None
    return nested.fields_with()
