"""Whether the labels of a table with collections are consistent (nested-collections, Def. 1).

The rows of the relation above a dictionary define its labels. Each label must be that of one
collection, and each element must have a label that is defined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from everview.database.catalog.definitions import TableDefinition
from everview.database.catalog.dictionaries import Dictionary
from everview.database.verdict import ViewAudit, judge
from everview.expr.quoting import spark_name
from everview.expr.types import Schema, names
from everview.lang.sql.lower.query import lower_query
from everview.plan.nodes import Source
from everview.runtime.protocol import Difference, Engine, Snapshot

LABELS = "it has no query: its labels are compared with those above it"
"""How the collections of a table are audited."""


def audit_labels(table: TableDefinition, engine: Engine, snapshot: Snapshot) -> list[ViewAudit]:
    """A verdict for each collection of a table.

    Missing are the labels that no collection has, or several have: NULL, and what stands twice.
    Surplus are the elements whose label is not defined.
    """
    return [
        _verdict(above, each, engine, snapshot) for above, each in _pairs(table, table.dictionaries)
    ]


def _pairs(
    table: TableDefinition, found: Sequence[Dictionary]
) -> Iterator[tuple[Source, Dictionary]]:
    for top in found:
        yield table.source, top
        yield from _inside(top)


def _inside(above: Dictionary) -> Iterator[tuple[Source, Dictionary]]:
    for each in above.inner:
        yield Source(above.relation, above.columns), each
        yield from _inside(each)


def _verdict(above: Source, own: Dictionary, engine: Engine, snapshot: Snapshot) -> ViewAudit:
    elements = Source(own.relation, own.columns)
    known = {each.name.lower(): each for each in (above, elements)}
    label = ", ".join(map(spark_name, own.above))
    unset = " OR ".join(f"{spark_name(name)} IS NULL" for name in own.above)
    wrong = (
        f"SELECT {label} FROM {spark_name(above.name)} "
        f"GROUP BY {label} HAVING COUNT(*) > 1 OR {unset}"
    )
    pairs = zip(names(own.labels), own.above, strict=True)
    same = " AND ".join(f"d.{spark_name(n)} <=> a.{spark_name(other)}" for n, other in pairs)
    shown = ", ".join(f"d.{spark_name(name)}" for name in names(own.columns))
    dangling = (
        f"SELECT {shown} FROM {spark_name(own.relation)} AS d "
        f"LEFT ANTI JOIN {spark_name(above.name)} AS a ON {same}"
    )
    count = f"SELECT COUNT(*) AS n FROM {spark_name(own.relation)}"

    def answer(query: str, schema: Schema) -> ViewAudit:
        plan = lower_query(query, known, engine.analyze)
        rows = engine.evaluate(plan, snapshot, {}, cached=False)
        return judge(own.relation, schema, Difference(0, rows, LABELS))

    labels = tuple(column for column in above.schema if column.name in own.above)
    [rows] = engine.evaluate(lower_query(count, known, engine.analyze), snapshot, {}, cached=False)[
        "n"
    ].to_pylist()
    missing = answer(wrong, labels).missing
    surplus = answer(dangling, own.columns).missing
    return ViewAudit(own.relation, rows, missing, surplus, ours=LABELS)
