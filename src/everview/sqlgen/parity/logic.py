"""Which comparisons, connectives and choices give Spark's answer on DuckDB, and their SQL there."""

from __future__ import annotations

from collections.abc import Callable

from everview.sqlgen.parity.entry import Entry, Site


def _case(site: Site) -> str:
    *pairs, default = site.args
    branches = zip(pairs[0::2], pairs[1::2], strict=True)
    tests = " ".join(f"WHEN {test} THEN {value}" for test, value in branches)
    return f"CASE {tests} ELSE {default} END"


def _joined(opening: str, separator: str) -> Callable[[Site], str]:
    return lambda site: f"{opening}({separator.join(site.args)})"


def _of_floats(site: Site) -> str:
    """Among floats, DuckDB's answer loses the sign of a zero; among doubles it does not."""
    wide = ", ".join(f"CAST({arg} AS DOUBLE)" for arg in site.args)
    return f"CAST({site.name}({wide}) AS FLOAT)"


def _membership(site: Site) -> str:
    return f"({site.args[0]} IN ({', '.join(site.args[1:])}))"


ENTRIES: tuple[Entry, ...] = (
    *(
        Entry(symbol, "plain plain", f"({{0}} {symbol} {{1}})")
        for symbol in ("=", "<>", "<", "<=", ">", ">=")
    ),
    Entry("<=>", "plain plain", "({0} IS NOT DISTINCT FROM {1})"),
    Entry("is distinct from", "plain plain", "({0} IS DISTINCT FROM {1})"),
    Entry("and", "boolean boolean", "({0} AND {1})"),
    Entry("or", "boolean boolean", "({0} OR {1})"),
    Entry("not", "boolean", "(NOT {0})"),
    Entry("is null", "any", "({0} IS NULL)"),
    Entry("is not null", "any", "({0} IS NOT NULL)"),
    Entry("is true", "boolean", "({0} IS TRUE)"),
    Entry("is false", "boolean", "({0} IS FALSE)"),
    Entry("in", "plain plain*", _membership),
    Entry("case", "any any*", _case),
    Entry("coalesce", "any*", _joined("COALESCE", ", ")),
    Entry("greatest", "ordered ordered*", _joined("greatest", ", ")),
    Entry("least", "ordered ordered*", _joined("least", ", ")),
    Entry("greatest", "float float*", _of_floats),
    Entry("least", "float float*", _of_floats),
)
