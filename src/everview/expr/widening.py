"""Which types hold every value of another exactly, as Spark widens the types of stored columns."""

from __future__ import annotations

from everview.expr.types import INTEGERS, Type, decimal_parts

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""The digits that a decimal needs for an integer, as Spark counts them."""


def is_wider(wide: Type, narrow: Type) -> bool:
    """Whether every value of `narrow` is one of `wide`, in the same order; so it is of itself.

    >>> is_wider("bigint", "int"), is_wider("int", "bigint"), is_wider("decimal(12,2)", "int")
    (True, False, True)
    """
    if wide == narrow:
        return True
    if narrow in INTEGERS and wide in INTEGERS:
        return INTEGERS.index(wide) > INTEGERS.index(narrow)
    parts, old = decimal_parts(wide), decimal_parts(narrow)
    digits = _DIGITS.get(narrow) if old is None else old[0] - old[1]
    if parts is not None and digits is not None:
        return parts[0] - parts[1] >= digits and parts[1] >= (old[1] if old else 0)
    return (narrow, wide) in (
        ("float", "double"),
        ("tinyint", "double"),
        ("smallint", "double"),
        ("int", "double"),
        ("date", "timestamp_ntz"),
    )
