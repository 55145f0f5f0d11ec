"""What the query of a view reads and means, whichever language it is written in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from everview.database.catalog.definitions import DATALOG, PLAN, ViewDefinition
from everview.lang import plan_text
from everview.lang.datalog import program as datalog
from everview.lang.datalog.lower import StoredRelation
from everview.lang.sql.lower.context import Analyze
from everview.lang.sql.lower.query import lower_query
from everview.lang.sql.parse.ctes import reads_of
from everview.lang.sql.parse.parser import parse_query
from everview.plan.nodes import Plan


def read_names(view: ViewDefinition) -> tuple[str, ...]:
    """The relations that the query of a view names, as it spells them."""
    return _names(view.query, view.language)


@lru_cache(maxsize=4096)
def _names(query: str, language: str) -> tuple[str, ...]:
    if language == PLAN:
        return plan_text.reads_of(query)
    return datalog.reads_of(query) if language == DATALOG else reads_of(parse_query(query))


def lower_view(view: ViewDefinition, known: Mapping[str, StoredRelation], analyze: Analyze) -> Plan:
    """The plan of a view as it is written, over relations by lower-case name."""
    if view.language == DATALOG:
        return datalog.lower_view(view.query, view.name, known)
    sources = {name: each.source for name, each in known.items()}
    if view.language == PLAN:
        return plan_text.lower_view(view.query, sources, analyze)
    text = view.query if view.rest is None else view.rest
    return lower_query(text, sources, analyze, view.columns)
