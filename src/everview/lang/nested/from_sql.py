"""Nested views that are written in SQL: the relations of a SELECT with collections in its list.

The query is lowered as any other; see `lang/sql/lower/collections.py`. The relations that it makes
tell by their columns how they belong together: those of the label of `v.x` begin with `x#`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from everview.errors import Span, UserError
from everview.expr.types import Schema
from everview.lang.nested.shred import Occurrence, Shredded
from everview.lang.nested.types import ELEMENT, Bag, Base, Product, Type
from everview.lang.sql.lower.collections import Mode, Shredding, array_query, dictionary
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
    own = (c.name for c in flat if not any(c.name.startswith(f"{path}#") for path in paths))
    wrong += [each for each in own if "." in each or "#" in each]
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
    names = [c.name for c in schema_of(plan) if not c.name.startswith((f"{path}#", f"{path}."))]
    wrong = [each for each in names if not _PLAIN.fullmatch(each)]
    if wrong or len({each.lower() for each in names}) < len(names):
        raise UserError(
            "N006",
            f"an element of {path} has a component called {(wrong or names)[0].partition('/')[0]!r}",
            span=Span(query.text, 0, len(query.text)),
            remedy="give every component a plain name of its own with AS",
        )


def shredded(view: str, known: Mapping[str, Source]) -> dict[str, Shredded]:
    """The relations of a view by path, as their columns tell."""
    prefix = f"{view.lower()}."
    paths = {each.name[len(prefix) :] for name, each in known.items() if name.startswith(prefix)}
    found: dict[str, Shredded] = {}
    for path in ("", *sorted(paths, key=lambda each: each.split("."))):
        source = known[f"{view}.{path}".lower() if path else view.lower()]
        above = path.rpartition(".")[0]
        own = tuple(c for c in source.schema if c.name.startswith(f"{path}#")) if path else ()
        label = () if [c.name for c in own] == [f"{path}#"] else own
        occurrences = (Occurrence(0, 0, label, ()),) if path else ()
        element = _element(path, source, tuple(paths), known, view)
        found[path] = Shredded(path, above, element, occurrences, ())
    return found


def _element(
    path: str, source: Source, paths: tuple[str, ...], known: Mapping[str, Source], view: str
) -> Type:
    """The type of the elements of a relation: labels are collections."""
    fields: dict[str, Type] = {}
    below = f"{path}." if path else ""
    for column in source.schema:
        stem = column.name.partition("#")[0]
        if stem == path and path and "#" in column.name:
            continue
        if "#" in column.name and stem in paths and stem.startswith(below):
            inner = known[f"{view}.{stem}".lower()]
            bag = Bag(_element(stem, inner, paths, known, view))
            fields.setdefault(stem[len(below) :], bag)
        else:
            fields[column.name] = Base(column.type)
    if path and [*fields] == [ELEMENT]:
        return fields[ELEMENT]
    return Product(tuple(fields.items()))
