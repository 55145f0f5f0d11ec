"""Type classes: the names by which the parity tables say which operands they accept."""

from __future__ import annotations

from everview.expr.types import FLOATS, INTEGERS, Type, decimal_parts, element_of, is_nested

DOUBLE_DIGITS = 15
"""Digits of a decimal that survive a double."""

_ORDERED = ("double", "decimal", "boolean", "string", "date", "timestamp", "timestamp_ntz", "void")
_CLASSES = {
    "integer": INTEGERS,
    # Spark takes the lower half of a longer number for a place in an array.
    "index": ("tinyint", "smallint", "int"),
    "fraction": FLOATS,
    "number": (*INTEGERS, *FLOATS, "decimal"),
    "stamp": ("timestamp", "timestamp_ntz"),
    "ordered": (*INTEGERS, *_ORDERED),
    "plain": (*INTEGERS, *_ORDERED, "float", "binary"),
}


def is_in_class(type_: Type, class_: str) -> bool:
    """Whether a type is in a class: its own name, a family of types, or any.

    >>> is_in_class("decimal(5,2)", "decimal"), is_in_class("int", "integer")
    (True, True)
    >>> is_in_class("int", "bigint")
    False
    >>> is_in_class("array<int>", "list"), is_in_class("array<map<int,int>>", "nested")
    (True, False)
    """
    parts = decimal_parts(type_)
    if class_ == "short decimal":
        return parts is not None and parts[0] <= DOUBLE_DIGITS
    name = "decimal" if parts else type_
    if is_nested(type_) and class_ != "any":
        return _is_in_nested_class(type_, class_)
    return class_ == "any" or name in _CLASSES.get(class_, (class_,))


def _is_in_nested_class(type_: Type, class_: str) -> bool:
    """Classes of arrays, maps and structs.

    A "list" is an array of plain values; an "ordered_list" one of ordered values that are no
    floats, since 0.0 and -0.0 are equal and yet differ.
    """
    element = element_of(type_)
    match class_:
        case "nested":
            return "map<" not in type_
        case "list":
            return element is not None and is_in_class(element, "plain")
        case "ordered_list":
            return is_in_class(element or "", "ordered") and element not in FLOATS
        case "structs":
            return element is not None and element.startswith("struct<")
        case _:
            return type_.startswith(f"{class_}<")
