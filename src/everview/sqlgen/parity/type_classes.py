"""Kinds of types, as the parity tables name them, and the refusal they end in."""

from __future__ import annotations

from everview.expr.types import FLOATS, INTEGERS, Type, decimal_parts, element_of, is_nested


class NotEqual(Exception):  # noqa: N818 - a verdict about a construct, not a failure
    """A construct not shown to give Spark's answer on DuckDB: its step runs on Spark."""

    def __init__(self, construct: str, why: str = "") -> None:
        verdict = f"{construct} is not shown equal on DuckDB"
        super().__init__(f"{verdict}: {why}" if why else verdict)
        self.construct = construct
        self.why = why


SHORT = 15
"""Digits that every double tells apart."""

_ORDERED = ("double", "decimal", "boolean", "string", "date", "timestamp", "timestamp_ntz", "void")
_KINDS = {
    "integer": INTEGERS,
    # Spark takes the lower half of a longer number for a place in an array.
    "index": ("tinyint", "smallint", "int"),
    "fraction": FLOATS,
    "number": (*INTEGERS, *FLOATS, "decimal"),
    "stamp": ("timestamp", "timestamp_ntz"),
    "ordered": (*INTEGERS, *_ORDERED),
    "plain": (*INTEGERS, *_ORDERED, "float", "binary"),
}


def is_kind(type_: Type, kind: str) -> bool:
    """Whether a type is of a kind: itself, a family, or any.

    >>> is_kind("decimal(5,2)", "decimal"), is_kind("int", "integer"), is_kind("int", "bigint")
    (True, True, False)
    >>> is_kind("array<int>", "list"), is_kind("array<map<int,int>>", "nested")
    (True, False)
    """
    parts = decimal_parts(type_)
    if kind == "short decimal":
        return parts is not None and parts[0] <= SHORT
    name = "decimal" if parts else type_
    if is_nested(type_) and kind != "any":
        return _is_nested_kind(type_, kind)
    return kind == "any" or name in _KINDS.get(kind, (kind,))


def _is_nested_kind(type_: Type, kind: str) -> bool:
    """Arrays, maps and structs; a list is an array of plain values, a column one of
    ordered values that are no fractions, of which some are equal and yet differ in a sign.
    """
    element = element_of(type_)
    match kind:
        case "nested":
            return "map<" not in type_
        case "list":
            return element is not None and is_kind(element, "plain")
        case "column":
            return is_kind(element or "", "ordered") and element not in FLOATS
        case "structs":
            return element is not None and element.startswith("struct<")
        case _:
            return type_.startswith(f"{kind}<")


def raised(problem: str, witness: str, target: str) -> str:
    """DuckDB SQL of type `target` that raises when evaluated.

    DuckDB's own error() counts as volatile, which stops filters from being pushed down and TRY
    from being used; a cast that cannot succeed does neither.
    """
    if target == "VARCHAR":
        return f"CAST({raised(problem, witness, 'INTEGER')} AS VARCHAR)"
    return f"CAST('{problem}: ' || CAST({witness} AS VARCHAR) AS {target})"


def field(sql: str, name: str) -> str:
    """DuckDB SQL for a field of a struct."""
    return f"struct_extract({sql}, '{name}')"
