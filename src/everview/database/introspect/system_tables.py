"""System tables, computed when a query reads them: `everview.history`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr.quoting import spark_name
from everview.expr.types import Schema
from everview.lang.sql.parse.parser import parse_query
from everview.runtime.protocol import Changes, Snapshot, Stored

NAMESPACE = "everview"
PendingOf = Callable[[Iterable[str]], Changes]
"""The changes of some views that the open transaction would make."""


@dataclass(frozen=True, slots=True)
class SystemTable:
    """The columns of a system table, and its weighted rows, computed when called."""

    columns: Schema
    rows: Callable[[], pa.Table]


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query whose relations are all in the snapshot, or pending."""

    text: str
    reads: tuple[str, ...]
    snapshot: Snapshot
    pending: Changes


def bind_system_tables(
    query: BoundQuery, tables: Mapping[str, SystemTable], namespace: str = NAMESPACE
) -> BoundQuery:
    """The query with each system table bound to a table that has nothing but pending rows."""
    if namespace not in query.text.lower():
        return query
    text, stored, pending = query.text, dict(query.snapshot.stored), dict(query.pending)
    reads = list(query.reads)
    named = [node for node in parse_query(text).find_all(exp.Table) if node.db.lower() == namespace]
    for node in sorted(named, key=lambda node: -node.this.meta["start"]):
        table = tables.get(node.name.lower())
        place = Span(query.text, node.args["db"].meta["start"], node.this.meta["end"] + 1)
        if table is None:
            known = ", ".join(f"{namespace}.{name}" for name in tables)
            problem = f"there is no table {namespace}.{node.name}"
            raise UserError("C002", problem, span=place, remedy=f"there is {known}")
        name = _unused_name(f"{namespace}_{node.name.lower()}", query.snapshot)
        alias = "" if node.alias else f" AS {spark_name(node.name)}"
        text = f"{text[: place.start]}{spark_name(name)}{alias}{text[place.stop :]}"
        if name not in stored:
            stored[name], pending[name] = Stored(table.columns, ()), [table.rows()]
            reads.append(name)
    return BoundQuery(text, tuple(reads), replace(query.snapshot, stored=stored), pending)


def _unused_name(name: str, snapshot: Snapshot) -> str:
    """A name that no relation of the snapshot has."""
    taken = {each.lower() for each in snapshot.stored}
    while name in taken:
        name += "_"
    return name
