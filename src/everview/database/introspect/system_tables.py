"""Tables that are told and not stored: `everview.history`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr.quoting import spark_name
from everview.expr.types import Schema
from everview.lang.sql.parse.parser import parse_query
from everview.runtime.protocol import Changes, Snapshot, Stored

SPACE = "everview"


@dataclass(frozen=True, slots=True)
class Told:
    """A table of the system: its columns, and its weighted rows when they are asked for."""

    columns: Schema
    rows: Callable[[], pa.Table]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query over tables that are all in the snapshot, or pending."""

    text: str
    reads: tuple[str, ...]
    snapshot: Snapshot
    pending: Changes


def with_told(asked: Asked, tables: Mapping[str, Told]) -> Asked:
    """The query with each table of the system as one that has nothing but pending rows."""
    if SPACE not in asked.text.lower():
        return asked
    text, stored, pending = asked.text, dict(asked.snapshot.stored), dict(asked.pending)
    reads = list(asked.reads)
    found = [node for node in parse_query(text).find_all(exp.Table) if node.db.lower() == SPACE]
    for node in sorted(found, key=lambda node: -node.this.meta["start"]):
        table = tables.get(node.name.lower())
        place = Span(asked.text, node.args["db"].meta["start"], node.this.meta["end"] + 1)
        if table is None:
            shown = ", ".join(f"{SPACE}.{name}" for name in tables)
            problem = f"there is no table {SPACE}.{node.name}"
            raise UserError("C002", problem, span=place, remedy=f"there is {shown}")
        name = _free(f"{SPACE}_{node.name.lower()}", asked.snapshot)
        alias = "" if node.alias else f" AS {spark_name(node.name)}"
        text = f"{text[: place.start]}{spark_name(name)}{alias}{text[place.stop :]}"
        if name not in stored:
            stored[name], pending[name] = Stored(table.columns, ()), [table.rows()]
            reads.append(name)
    return Asked(text, tuple(reads), replace(asked.snapshot, stored=stored), pending)


def _free(name: str, snapshot: Snapshot) -> str:
    """A name that no relation of the snapshot has."""
    taken = {each.lower() for each in snapshot.stored}
    while name in taken:
        name += "_"
    return name
