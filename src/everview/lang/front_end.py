"""Which front end reads the text of a view: SQL, Datalog, AGCA, sets, collections, or plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from everview.lang import plan_text
from everview.lang.agca import views as agca
from everview.lang.correlation import CorrelatedNode
from everview.lang.datalog import program as datalog
from everview.lang.nested import definition
from everview.lang.nested import view as nested
from everview.lang.nested.definition import Definition, read_definition
from everview.lang.nested.estimate import Estimate
from everview.lang.nested.known import Known
from everview.lang.relalg import view as relalg
from everview.lang.sql.lower.context import Analyze
from everview.lang.sql.lower.query import correlated_nodes as sql_nodes
from everview.lang.sql.lower.query import lower_query
from everview.lang.sql.parse.ctes import reads_of
from everview.lang.sql.parse.parser import parse_query
from everview.lang.stored_relation import StoredRelation
from everview.plan.nodes import Plan

SQL, DATALOG, AGCA, PLAN = "sql", "datalog", "agca", "plan"
RELALG, NESTED = "relalg", "nested"
LANGUAGES = (SQL, DATALOG, AGCA, PLAN, RELALG, NESTED)
"""The languages that the query of a view may be written in."""


@dataclass(frozen=True, slots=True)
class ViewText:
    """The query of a view as it is written, and the names given to its columns, if any."""

    name: str
    text: str
    language: str = SQL
    columns: tuple[str, ...] = ()


@lru_cache(maxsize=4096)
def names_read(text: str, language: str) -> tuple[str, ...]:
    """The relations that the query of a view names, as it spells them."""
    match language:
        case "plan":
            return plan_text.reads_of(text)
        case "datalog":
            return datalog.reads_of(text)
        case "agca":
            return agca.reads_of(text)
        case "relalg":
            return relalg.reads_of(text)
        case "nested":
            return definition.reads_of(text)
        case _:
            return reads_of(parse_query(text))


def lower_view(view: ViewText, known: Mapping[str, StoredRelation], analyze: Analyze) -> Plan:
    """The plan of a view as it is written, over the relations it may read, by lower-case name."""
    if view.language == DATALOG:
        return datalog.lower_view(view.text, view.name, known)
    if view.language == AGCA:
        return agca.lower_view(view.text, known)
    sources = {name: each.source for name, each in known.items()}
    if view.language == PLAN:
        return plan_text.lower_view(view.text, sources, analyze)
    if view.language == RELALG:
        return relalg.lower_view(view.text, sources, analyze)
    if view.language == NESTED:
        return nested.lower_view(view.text, nested_known(known), analyze)
    return lower_query(view.text, sources, analyze, view.columns)


def correlated_nodes(
    view: ViewText, known: Mapping[str, StoredRelation], analyze: Analyze
) -> tuple[CorrelatedNode, ...]:
    """The nodes with parameters of a view: of SQL, and the sums in conditions of AGCA."""
    if view.language == AGCA:
        return agca.correlated_nodes(view.text, known)
    if view.language == SQL:
        sources = {name: each.source for name, each in known.items()}
        return sql_nodes(view.text, sources, analyze)
    return ()


def nested_view(text: str, language: str) -> str | None:
    """The nested view that a relation is a dictionary of; None for any other relation."""
    if language != NESTED:
        return None
    found = read_definition(text)
    return found.view if found.path else None


def comprehension(text: str, language: str) -> Definition | None:
    """What a relation of a nested view by comprehensions is, which sees inside what it reads."""
    found = read_definition(text) if language == NESTED else None
    return None if found is None or found.in_sql else found


def is_nested_in_sql(text: str, language: str) -> bool:
    """Whether a relation is a nested view whose query is in SQL, and no dictionary of one."""
    if language != NESTED:
        return False
    found = read_definition(text)
    return not found.path and found.in_sql


def nested_known(known: Mapping[str, StoredRelation]) -> Known:
    """The relations there are, as nested views read them."""
    texts = {name: each.nested for name, each in known.items() if each.nested}
    return Known({name: each.source for name, each in known.items()}, texts)


def flat_queries(text: str, known: Mapping[str, StoredRelation]) -> dict[str, str]:
    """The flat query of each relation of a nested view, by name."""
    return nested.flat_texts(text, nested_known(known))


def shared_dictionaries(text: str, known: Mapping[str, StoredRelation]) -> dict[str, str]:
    """The dictionaries of other views that a nested view has labels of, by their paths in it."""
    return nested.shared_by(text, nested_known(known))


def estimated_costs(
    text: str, known: Mapping[str, StoredRelation], rows: Mapping[str, int]
) -> dict[str, Estimate]:
    """What each relation of a nested view costs, by name, where relations have so many rows."""
    return nested.estimated(text, nested_known(known), rows)


def rebuilt_view(text: str, known: Mapping[str, StoredRelation]) -> Plan:
    """The plan that reads a nested view in its nested form, over the relations it is made of."""
    return nested.rebuilt(text, nested_known(known))


def reading_instead(
    text: str, language: str, name: str, instead: str, columns: Mapping[str, str]
) -> str | None:
    """The text of a view over another relation in the place of one; None if it cannot be written.

    `columns` are the names of now by those of before; none where the columns are the same.
    """
    if language == RELALG:
        return relalg.reading_instead(text, name, instead, columns)
    return agca.reading_instead(text, name, instead) if language == AGCA else None
