"""What reads a table with collections: its rows put together."""

from __future__ import annotations

from everview.database.catalog.definitions import TableDefinition
from everview.database.catalog.dictionaries import Dictionary
from everview.expr import scalar
from everview.expr.types import names
from everview.lang.sql.lower.collections import collected, with_arrays
from everview.plan.build import distinct, map_, project
from everview.plan.nodes import Output, Plan, Source
from everview.plan.traverse import schema_of

_ARRAY = "#array"


def rebuilt(table: TableDefinition) -> Plan:
    """The rows of a table with its collections as arrays, as it is declared (u of the paper)."""
    assert table.collections is not None
    plan: Plan = table.source
    for each in table.dictionaries:
        plan = _with_array(plan, each)
    return project(plan, names(table.collections.columns))


def _with_array(plan: Plan, dictionary: Dictionary) -> Plan:
    """A relation with the collection of a dictionary in the place of its label."""
    elements: Plan = Source(dictionary.relation, dictionary.columns)
    for each in dictionary.inner:
        elements = _with_array(elements, each)
    renamed = zip(dictionary.above, dictionary.labels, strict=True)
    support = map_(plan, tuple(Output(c.name, c.type, scalar.column(n)) for n, c in renamed))
    keys = names(dictionary.labels)
    item = Output(_ARRAY, dictionary.element, _packed(dictionary))
    found = collected(elements, distinct(support), keys, item)
    joined = with_arrays(plan, found, tuple(zip(dictionary.above, keys, strict=True)), _ARRAY)
    kept = [c for c in schema_of(plan) if c.name != dictionary.column]
    outputs = [Output(c.name, c.type, scalar.column(c.name)) for c in kept]
    array = Output(dictionary.column, f"array<{dictionary.element}>", scalar.column(_ARRAY))
    return map_(joined, (*outputs, array))


def _packed(dictionary: Dictionary) -> str:
    if not dictionary.is_record:
        return scalar.column(dictionary.fields[0].name)
    fields = (f"'{name}', {scalar.column(name)}" for name in names(dictionary.fields))
    return f"named_struct({', '.join(fields)})"
