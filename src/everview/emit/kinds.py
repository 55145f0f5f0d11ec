"""Kinds of types, as the parity tables name them, and the refusal they end in."""

from __future__ import annotations

from everview.plan.types import FLOATS, INTEGERS, Type, decimal_parts


class NotEqual(Exception):
    """A construct not shown to give Spark's answer on DuckDB; the step that uses it runs on Spark."""

    def __init__(self, construct: str, why: str) -> None:
        super().__init__(f"{construct}: {why}")
        self.construct = construct
        self.why = why


_KINDS = {
    "integer": INTEGERS,
    "fraction": FLOATS,
    "stamp": ("timestamp", "timestamp_ntz"),
    "moment": ("date", "timestamp", "timestamp_ntz"),
}


def is_kind(type_: Type, kind: str) -> bool:
    """Whether a type is of a kind: itself, a family, or any.

    >>> is_kind("decimal(5,2)", "decimal"), is_kind("int", "integer"), is_kind("int", "bigint")
    (True, True, False)
    """
    match kind:
        case "any":
            return True
        case "decimal":
            return decimal_parts(type_) is not None
        case "number":
            return type_ in (*INTEGERS, *FLOATS) or decimal_parts(type_) is not None
        case "plain":
            flat = (*INTEGERS, *FLOATS, "boolean", "string", "date", "timestamp", "timestamp_ntz")
            return type_ in (*flat, "binary", "void") or decimal_parts(type_) is not None
        case _:
            return type_ in _KINDS.get(kind, (kind,))


def raised(problem: str, witness: str, target: str) -> str:
    """DuckDB SQL of type `target` that raises when evaluated.

    DuckDB's own error() counts as volatile, which stops filters from being pushed down and TRY
    from being used; a cast that cannot succeed does neither.
    """
    return f"CAST('{problem}: ' || CAST({witness} AS VARCHAR) AS {target})"
