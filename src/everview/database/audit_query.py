"""Views as they are written: their texts as plans that no rewriting has touched."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from sqlglot import exp

from everview.expr.types import names
from everview.lang.sql.lower.context import Analyze
from everview.lang.sql.lower.query import lower_query
from everview.lang.sql.parse.parser import parse_query
from everview.plan.build import add, negate
from everview.plan.nodes import Plan, Source
from everview.plan.traverse import transform
from everview.runtime.protocol import Snapshot

Written = str | Plan
"""A view as it is written: a query in SQL, or the plan of what another language says."""


def written_minus_stored(
    name: str, texts: Mapping[str, Written], snapshot: Snapshot, analyze: Analyze
) -> Plan:
    """A view's query minus the view, over what has no text in `texts`."""
    known = declared(snapshot)
    plans: dict[str, Plan] = {}
    for view, text in texts.items():
        if not isinstance(text, str):
            plans[view] = inlined(text, plans)
            continue
        columns = names(snapshot.stored[view].schema)
        read = tuple(known[name] for name in _with_dictionaries(_tables(text), known))
        plans[view] = inlined(_lowered(text, read, columns, analyze), plans)
    return add(plans[name], negate(Source(name, snapshot.stored[name].schema)))


def declared(snapshot: Snapshot) -> dict[str, Source]:
    """The tables and views, by lower-case name."""
    stored = snapshot.stored.items()
    return {name.lower(): Source(name, each.schema) for name, each in stored if not each.ours}


@lru_cache(maxsize=256)
def _tables(text: str) -> tuple[str, ...]:
    """The names in lower case of what a query reads: tables, views, and its own WITH clauses."""
    found = (node.name.lower() for node in parse_query(text).find_all(exp.Table))
    return tuple(sorted({*found}))


def _with_dictionaries(named: tuple[str, ...], known: Mapping[str, Source]) -> tuple[str, ...]:
    """The relations that a query names, and those inside nested views among them."""
    roots = tuple(f"{name}." for name in named)
    return tuple(name for name in known if name in named or name.startswith(roots))


@lru_cache(maxsize=256)
def _lowered(
    text: str, known: tuple[Source, ...], columns: tuple[str, ...], analyze: Analyze
) -> Plan:
    """The plan of a text over the relations that it names, whatever others there are."""
    return lower_query(text, {source.name.lower(): source for source in known}, analyze, columns)


def inlined(plan: Plan, views: Mapping[str, Plan]) -> Plan:
    """The plan with the plans of views in the place of their names."""

    def instead(node: Plan) -> Plan:
        return views.get(node.name, node) if isinstance(node, Source) else node

    return transform(plan, instead)
