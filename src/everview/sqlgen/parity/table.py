"""The parity table: the constructs shown to give Spark's answer on DuckDB, and their SQL there.

A construct that is not here runs on Spark. Operands arrive already cast to the types Spark casts
them to; an entry gives exactly Spark's value, type and error. tests/sqlgen/test_parity.py shows
each entry equal over a grid of values. Casts have a table of their own, casts.py.

One thing differs by design of the engines: Spark does not evaluate the right operand where the
left is NULL, nor the rest of an IN once it is decided, so DuckDB may raise where Spark gives an
answer, never the other way. An error on DuckDB is therefore a question to Spark, not a verdict.
"""

from __future__ import annotations

from functools import cache

from everview.expr.type_inference import Typed
from everview.expr.types import Type
from everview.sqlgen.parity import arithmetic, dates, json, logic, nested, strings
from everview.sqlgen.parity.entry import Entry
from everview.sqlgen.parity.errors import NotAtParity

TABLE: tuple[Entry, ...] = (
    *arithmetic.ENTRIES,
    *logic.ENTRIES,
    *strings.ENTRIES,
    *dates.ENTRIES,
    *nested.ENTRIES,
    *json.ENTRIES,
)
"""Every construct that may run on DuckDB, a family a module."""


def entry_for(name: str, types: tuple[Type, ...]) -> Entry:
    """The first entry for the construct with operands of these types; NotAtParity if none."""
    for entry in _by_name().get(name, ()):
        if entry.accepts(name, types):
            return entry
    raise NotAtParity(f"{name}({', '.join(types)})")


@cache
def _by_name() -> dict[str, tuple[Entry, ...]]:
    names = dict.fromkeys(entry.name for entry in TABLE)
    return {name: tuple(e for e in TABLE if e.name == name) for name in names}


NULL_TOLERANT = frozenset(
    (
        *("and", "or", "<=>", "is distinct from", "is null", "is not null", "is true", "is false"),
        *("in", "case", "coalesce", "greatest", "least", "isnan", "nanvl", "concat_ws", "locate"),
        *("to_date", "to_timestamp"),  # a moment is not read, whatever the format is
        *("array", "struct", "named_struct", "map", "ev_single"),
        *("array_append", "array_prepend", "array_repeat", "array_join"),
    )
)
"""Constructs that look at a NULL; all others are NULL where an argument is."""


def is_null_by_an_argument(node: Typed) -> bool:
    """Whether a call is NULL because one of its arguments is the literal NULL."""
    return node.name not in NULL_TOLERANT and any(map(_is_null, node.args))


def _is_null(node: Typed) -> bool:
    """Whether a node is the literal NULL, cast or not."""
    if node.name == "cast":
        return _is_null(node.args[0])
    return node.name == "literal" and node.type == "void"
