"""The signatures of functions on arrays, structs and maps."""

from __future__ import annotations

import re
from collections.abc import Callable

from everview.expr.coercion import common, common_of
from everview.expr.parameters import a_small_int, a_string, an_int
from everview.expr.signature_rules import Operand, Rule, Signature
from everview.expr.types import (
    INTEGERS,
    Type,
    element_of,
    entries_of,
    entry_of,
    fields_of,
    is_nested,
    struct_of,
)

Types = tuple[Type, ...]


def by_types(rule: Callable[[Types], Signature | None]) -> Rule:
    """A rule that looks at the types of its arguments alone."""
    return lambda args, _: rule(tuple(arg.type for arg in args))


def array_of(types: Types) -> Signature | None:
    """array(…): elements of the type they meet in."""
    meeting = common_of(types)
    return Signature((meeting,) * len(types), f"array<{meeting}>") if meeting else None


def struct(args: tuple[Operand, ...], value: str | None) -> Signature | None:
    """struct(…): fields of the names given, which have to be plain."""
    names = (value or "").split(",")
    plain = all(re.fullmatch(r"[A-Za-z0-9_]+", name) for name in names)
    if not plain or len(names) != len(args):
        return None
    types = tuple(arg.type for arg in args)
    return Signature(types, struct_of(zip(names, types, strict=True)))


def map_of(types: Types) -> Signature | None:
    """map(key, value, …): keys and values of the types they meet in."""
    keys, values = common_of(types[0::2]), common_of(types[1::2])
    if not types or len(types) % 2 or keys is None or values is None or is_nested(keys):
        return None
    return Signature((keys, values) * (len(types) // 2), f"map<{keys},{values}>")


def field(args: tuple[Operand, ...], value: str | None) -> Signature | None:
    """x.name: the field of a struct, or of every struct of an array."""
    if len(args) != 1:
        return None
    inner = element_of(args[0].type) or args[0].type
    if not inner.startswith("struct<"):
        return None
    wanted = (value or "").lower()
    found = [type_ for name, type_ in fields_of(inner) if name.lower() == wanted]
    if len(found) != 1:
        return None
    result = found[0] if inner == args[0].type else f"array<{found[0]}>"
    return Signature((args[0].type,), result)


def item(index: Callable[[Type], Type | None]) -> Rule:
    """An element of an array by its place, or a value of a map by its key."""

    def rule(types: Types) -> Signature | None:
        if len(types) != 2:
            return None
        container, key = types
        if element := element_of(container):
            place = index(key)
            return Signature((container, place), element) if place else None
        entry = entry_of(container)
        if entry is None or common(entry[0], key) != entry[0]:
            return None
        return Signature((container, entry[0]), entry[1])

    return by_types(rule)


def with_element(result: str) -> Rule:
    """A function of an array and a value of its elements' type; `{0}` stands for that type."""

    def rule(types: Types) -> Signature | None:
        element = element_of(types[0]) if len(types) == 2 else None
        meeting = common(element, types[1], strings=False) if element else None
        # Of an untyped NULL, Spark asks for a type where the result has another one.
        if meeting is None or (types[1] == "void" and "array" not in result):
            return None
        return Signature((f"array<{meeting}>", meeting), result.format(meeting))

    return by_types(rule)


def of_arrays(result: str, *more: Callable[[Type], Type | None], optional: int = 0) -> Rule:
    """A function of one array and further arguments; `{0}` stands for its elements' type."""

    def rule(types: Types) -> Signature | None:
        element = element_of(types[0]) if types else None
        rest = types[1:]
        if element is None or not len(more) - optional <= len(rest) <= len(more):
            return None
        found = [take(type_) for take, type_ in zip(more, rest, strict=False)]
        known = tuple(each for each in found if each is not None)
        if len(known) != len(rest):
            return None
        return Signature((types[0], *known), result.format(element))

    return by_types(rule)


def sized(types: Types) -> Signature | None:
    """size of an array or a map."""
    known = len(types) == 1 and (element_of(types[0]) or entry_of(types[0]))
    return Signature(types, "int") if known else None


def alike(result: str, least: int = 2, most: int = 2) -> Rule:
    """A function of arrays that meet in one type; `{0}` stands for it."""

    def rule(types: Types) -> Signature | None:
        arrays = least <= len(types) <= most and all(map(element_of, types))
        meeting = common_of(types, strings=False) if arrays else None
        if meeting is None:
            return None
        return Signature((meeting,) * len(types), result.format(meeting))

    return by_types(rule)


def flattened(types: Types) -> Signature | None:
    """flatten: an array of arrays as one."""
    inner = element_of(types[0]) if len(types) == 1 else None
    return Signature(types, inner) if inner and element_of(inner) else None


def joined(types: Types) -> Signature | None:
    """array_join: the elements as strings."""
    element = element_of(types[0]) if types else None
    if element is None or a_string(element) is None or not 2 <= len(types) <= 3:
        return None
    known = all(a_string(type_) for type_ in types[1:])
    return Signature(("array<string>", *["string"] * (len(types) - 1)), "string") if known else None


def repeated(types: Types) -> Signature | None:
    """array_repeat(value, times)."""
    times = an_int(types[1]) if len(types) == 2 else None
    return Signature((types[0], times), f"array<{types[0]}>") if times else None


def sequence(types: Types) -> Signature | None:
    """sequence(first, last[, step]) of integers."""
    meeting = common_of(types)
    if not 2 <= len(types) <= 3 or not all(type_ in INTEGERS for type_ in types):
        return None
    return Signature((str(meeting),) * len(types), f"array<{meeting}>")


def of_map(result: str) -> Rule:
    """A function of one map; `{0}` stands for its keys' type, `{1}` for its values'."""

    def rule(types: Types) -> Signature | None:
        entry = entry_of(types[0]) if len(types) == 1 else None
        return Signature(types, result.format(*entry)) if entry else None

    return by_types(rule)


def entries(types: Types) -> Signature | None:
    """map_entries: the entries in order."""
    entry = entry_of(types[0]) if len(types) == 1 else None
    return Signature(types, entries_of(*entry)) if entry else None


def contains_key(types: Types) -> Signature | None:
    """map_contains_key(map, key), of a key that has a type."""
    entry = entry_of(types[0]) if len(types) == 2 and types[1] != "void" else None
    if entry is None or common(entry[0], types[1], strings=False) != entry[0]:
        return None
    return Signature((types[0], entry[0]), "boolean")


def from_arrays(types: Types) -> Signature | None:
    """map_from_arrays(keys, values)."""
    keys, values = map(element_of, types) if len(types) == 2 else (None, None)
    if keys is None or values is None or is_nested(keys):
        return None
    return Signature(types, f"map<{keys},{values}>")


def from_entries(types: Types) -> Signature | None:
    """map_from_entries(array of structs of two fields)."""
    inner = element_of(types[0]) if len(types) == 1 else None
    fields = fields_of(inner) if inner and inner.startswith("struct<") else ()
    if len(fields) != 2 or is_nested(fields[0][1]):
        return None
    return Signature(types, f"map<{fields[0][1]},{fields[1][1]}>")


def _texts(types: Types) -> Signature | None:
    """split(text, pattern[, limit])."""
    known = 2 <= len(types) <= 3 and all(map(a_string, types[:2]))
    limit = [an_int(type_) for type_ in types[2:]]
    if not known or None in limit:
        return None
    return Signature(("string", "string", *["int"] * len(limit)), "array<string>")


def _truth(type_: Type) -> Type | None:
    return "boolean" if type_ == "boolean" else None


def _any_index(type_: Type) -> Type | None:
    return type_ if type_ in INTEGERS else None


NESTED: dict[str, Rule] = {
    "array": by_types(array_of),
    "struct": struct,
    "map": by_types(map_of),
    "field": field,
    "[]": item(_any_index),
    **dict.fromkeys(("element_at", "try_element_at"), item(a_small_int)),
    "get": of_arrays("{0}", an_int),
    **dict.fromkeys(("size", "cardinality"), by_types(sized)),
    "array_contains": with_element("boolean"),
    "array_position": with_element("bigint"),
    **dict.fromkeys(("array_remove", "array_append", "array_prepend"), with_element("array<{0}>")),
    **dict.fromkeys(("array_distinct", "array_compact", "array_sort"), of_arrays("array<{0}>")),
    "sort_array": of_arrays("array<{0}>", _truth, optional=1),
    **dict.fromkeys(("array_max", "array_min"), of_arrays("{0}")),
    "slice": of_arrays("array<{0}>", an_int, an_int),
    "flatten": by_types(flattened),
    **dict.fromkeys(("array_union", "array_intersect", "array_except"), alike("{0}")),
    "arrays_overlap": alike("boolean"),
    "array_join": by_types(joined),
    "array_repeat": by_types(repeated),
    "sequence": by_types(sequence),
    "split": by_types(_texts),
    "map_keys": of_map("array<{0}>"),
    "map_values": of_map("array<{1}>"),
    "map_entries": by_types(entries),
    "map_contains_key": by_types(contains_key),
    "map_from_arrays": by_types(from_arrays),
    "map_from_entries": by_types(from_entries),
}
"""The functions on nested values, but for those that take functions."""

REVERSED: Rule = of_arrays("array<{0}>")
"""reverse, which strings have too."""
JOINED: Rule = by_types(
    lambda types: (
        Signature(("string", "array<string>"), "string")
        if len(types) == 2 and a_string(types[0]) and types[1] == "array<string>"
        else None
    )
)
"""concat_ws of the elements of an array."""
CONCATENATED: Rule = alike("{0}", least=1, most=1000)
"""concat, which strings have too."""
