"""Loads the catalog of a manifest, which is untrusted: refuses what no user can have declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from everview.database.catalog.catalog import Catalog
from everview.database.catalog.constraints import problems_in
from everview.database.catalog.definitions import TableDefinition, ViewDefinition
from everview.database.catalog.evolution import evolution_problems
from everview.database.collections.declare import with_collections
from everview.database.queries import describe
from everview.errors import Span, UserError
from everview.expr.types import Schema, names, storable_type, unusable_name
from everview.lang.front_end import LANGUAGES
from everview.lang.sql.parse.statements import AUTO, POLICIES, STRICT
from everview.lang.sql.recompute.partition_query import RecomputedBlock
from everview.program.policy import Decision
from everview.runtime.protocol import Engine
from everview.store.errors import unusable_catalog
from everview.store.manifest import Manifest

_SHAPE_ERRORS = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)
"""What JSON of another shape raises when it is read."""


def load(manifest: Manifest, engine: Engine, location: str) -> Catalog:
    """What an epoch declares, refused where it cannot be what a user declared here."""
    where = f"epoch {manifest.epoch} of {location}"
    try:
        catalog = Catalog.from_json(manifest.catalog, engine.analyze, partial(describe, engine))
        problem = next(_problems(catalog, manifest.relations), None)
    except UserError as wrong:
        raise unusable_catalog(where, wrong.problem) from wrong
    except _SHAPE_ERRORS as wrong:
        raise unusable_catalog(where, f"{type(wrong).__name__} {wrong!s:.80}") from wrong
    if problem is not None:
        raise unusable_catalog(where, problem)
    return catalog


def _problems(catalog: Catalog, stored: Mapping[str, object]) -> Iterator[str]:
    enforced = (name for name, each in catalog.constraints.items() if each.enforced)
    yield from _twice((*catalog.tables, *catalog.views, *enforced))
    for name in (*catalog.tables, *catalog.views):
        if problem := unusable_name(name):
            yield problem
        if name not in stored:
            yield f"the manifest has no rows of {name!r}"
    for table in catalog.tables.values():
        yield from _in_table(table)
    for view in catalog.views.values():
        yield from _in_view(view)
    for constraint in catalog.constraints.values():
        others = catalog.constraints.values()
        yield from problems_in(constraint, catalog.tables, catalog.views, others)
    yield from _in_collections(catalog.tables)
    for source in catalog.known.sources.values():
        yield from _in_columns(source.name, source.schema)
        if not source.schema or {*source.key} - {*names(source.schema)}:
            yield f"{source.name!r} has no such columns"
    for tables in catalog.known.states.values():
        yield from _not_text(tables)
    for function in catalog.functions.values():
        yield from _not_text((function.name, function.gives, function.body))
        yield from _in_columns(function.name, function.takes)


def _in_table(table: TableDefinition) -> Iterator[str]:
    yield from _in_columns(table.name, table.columns)
    computed = dict((*table.defaults, *table.generated))
    yield from _not_text((*computed, *computed.values()))
    if not table.columns or {*table.key, *table.not_null, *computed} - {*names(table.columns)}:
        yield f"{table.name!r} has no such columns"
    for layout in table.evolution.layouts:
        yield from _in_columns(table.name, layout.columns)
    yield from evolution_problems(table.evolution, table.columns)
    yield from _not_text((table.inside,))
    yield from _twice(table.key)
    yield from _in_lengths(table)
    yield from _in_names_and_comments(table)


def _in_lengths(table: TableDefinition) -> Iterator[str]:
    types = {column.name: column.type for column in table.columns}
    for name, length in table.lengths:
        if types.get(name) != "string" or length < 1:
            yield f"{table.name!r} has no texts of at most {length} characters in {name!r:.40}"


def _in_collections(tables: Mapping[str, TableDefinition]) -> Iterator[str]:
    """Tables with collections are those that a declaration makes, and so are their dictionaries."""
    made: dict[str, TableDefinition] = {}
    for table in tables.values():
        if table.collections is None:
            continue
        paths, columns = table.collections.paths, table.collections.columns
        if {*paths} != {each.path for top in table.dictionaries for each in top.walk()}:
            yield f"{table.name!r} has no such collections"
        whole = replace(table, columns=columns, collections=None)
        text = Span(table.name, 0, 0)
        made |= {each.name: each for each in with_collections(whole, paths, text)}
    for name in sorted(made.keys() - tables.keys()):
        yield f"the collection {name!r} is no table"
    for table in tables.values():
        wanted = made.get(table.name)
        if wanted is None:
            if table.inside:
                yield f"{table.name!r} is inside no table"
        elif wanted != replace(table, comments=wanted.comments, formerly=wanted.formerly):
            yield f"{table.name!r} is not what its collections make of it"


def _in_names_and_comments(each: TableDefinition | ViewDefinition) -> Iterator[str]:
    yield from _not_text(name for _, name in each.formerly)
    yield from _not_text((each.comments.relation, *chain(*each.comments.columns)))


def _in_view(view: ViewDefinition) -> Iterator[str]:
    given = () if view.rest is None else (view.rest,)
    yield from _not_text((view.query, view.language, view.refresh, *given))
    yield from _not_text((*view.columns, *view.calls))
    yield from _in_names_and_comments(view)
    if view.language not in LANGUAGES or view.refresh not in (STRICT, AUTO):
        yield f"{view.name!r} is in no language of ours"
    yield from _in_decision(view)
    for part in view.parts:
        yield from _in_part(part)


def _in_decision(view: ViewDefinition) -> Iterator[str]:
    decision = view.decision or Decision()
    yield from _not_text((decision.policy, decision.reason))
    if decision.policy not in POLICIES or not isinstance(decision.declared, bool):
        yield f"{view.name!r} has no policy of ours"
    if any(type(count) is not int or count < 0 for _, count in decision.rows):
        yield f"{view.name!r} was chosen a policy for relations of no size"


def _in_part(part: RecomputedBlock) -> Iterator[str]:
    yield from _not_text((part.name, part.query, part.reason, *part.reads))
    yield from _in_columns(part.name, part.columns)


def _in_columns(name: str, columns: Schema) -> Iterator[str]:
    for column in columns:
        yield from _not_text((column.name, column.type))
        if (problem := unusable_name(column.name)) or storable_type(column.type) is None:
            yield problem or f"{name!r} has a column of type {column.type!r:.40}"
    yield from _twice(names(columns))


def _twice(given: Iterable[str]) -> Iterator[str]:
    """Names that are equal but for case."""
    seen: set[str] = set()
    for name in given:
        yield from _not_text((name,))
        if name.lower() in seen:
            yield f"{name!r} is declared twice"
        seen.add(name.lower())


def _not_text(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if not isinstance(value, str):
            yield f"{value!r:.40} is no text"
