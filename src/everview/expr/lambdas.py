"""The types of functions that take functions: transform, filter, exists, forall, aggregate, …"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from sqlglot import exp

from everview.expr.typed import Typed
from everview.expr.types import Type, element_of, entry_of, struct_of

Variables: TypeAlias = Mapping[str, Typed]
"""What the parameters of the functions around stand for."""

TypeOf: TypeAlias = Callable[[exp.Expr, Variables], Typed]
"""The typed form of a part, given further variables."""

_NODES: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Transform: ("transform", "this expression"),
    exp.ArrayFilter: ("filter", "this expression"),
    exp.Exists: ("exists", "this expression"),
    exp.Reduce: ("aggregate", "this initial merge finish"),
}
_NAMED = ("forall", "map_filter", "transform_values", "transform_keys")


def higher_order(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """The name and the arguments of a function that takes functions, None for others."""
    if isinstance(node, exp.Anonymous) and node.name.lower() in _NAMED:
        return node.name.lower(), list(node.expressions)
    if type(node) not in _NODES:
        return None
    name, keys = _NODES[type(node)]
    parts = [node.args.get(key) for key in keys.split()]
    return name, [part for part in parts if part is not None]


def typed_call(name: str, parts: list[exp.Expr], type_of: TypeOf) -> Typed:
    """A function that takes functions, with types."""
    unknown = Typed(name, (), (), None)
    values = type_of(parts[0], {})
    if len(parts) < 2 or values.type is None:
        return Typed(name, (values,), (), None)
    if name == "aggregate":
        return _aggregate(values, parts[1:], type_of) or unknown
    over = _over_entries if entry_of(values.type) else _over_elements
    body = over(name, values.type, parts[1], type_of)
    result = _result(name, values.type, body) if body is not None and len(parts) == 2 else None
    if body is None or body.type is None or result is None:
        return Typed(name, (values,) if body is None else (values, body), (), None)
    return Typed(name, (values, body), (values.type, body.type), result)


def _result(name: str, values: Type, body: Typed) -> Type | None:
    """The type of a call; tests have to be boolean."""
    entry = entry_of(values)
    match name:
        case "transform" if element_of(values):
            return f"array<{body.type}>"
        case "transform_values" if entry:
            return f"map<{entry[0]},{body.type}>"
        case "transform_keys" if entry:
            return f"map<{body.type},{entry[1]}>"
        case "filter" | "exists" | "forall" if element_of(values) and body.type == "boolean":
            return values if name == "filter" else "boolean"
        case "map_filter" if entry and body.type == "boolean":
            return values
        case _:
            return None


def variable(node: exp.Expr, variables: Variables) -> Typed:
    """A parameter of a function around."""
    return variables.get(node.name) or Typed("variable", (), (), None, node.name)


def _over_elements(name: str, values: Type, node: exp.Expr, type_of: TypeOf) -> Typed | None:
    """A function of an element, and of its place where there may be one."""
    element = element_of(values)
    if element is None or not isinstance(node, exp.Lambda):
        return None
    most = 2 if name in ("transform", "filter") else 1
    names = [parameter.name for parameter in node.expressions]
    if not 1 <= len(names) <= most:
        return None
    bound = {names[0]: _variable(names[0], element)}
    if len(names) == 2:
        bound[names[1]] = Typed("index", (), (), "int", names[1])
    return _function(node, names, bound, type_of)


def _over_entries(_: str, values: Type, node: exp.Expr, type_of: TypeOf) -> Typed | None:
    """A function of a key and a value, which are the fields of one entry."""
    entry = entry_of(values)
    if entry is None or not isinstance(node, exp.Lambda) or len(node.expressions) != 2:
        return None
    names = [parameter.name for parameter in node.expressions]
    whole = _variable(",".join(names), struct_of(zip(("key", "value"), entry, strict=True)))
    bound = {
        name: Typed("field", (whole,), (whole.type or "",), type_, part)
        for name, part, type_ in zip(names, ("key", "value"), entry, strict=True)
    }
    return _function(node, [whole.value or ""], bound, type_of)


def _variable(name: str, type_: Type) -> Typed:
    return Typed("variable", (), (), type_, name)


def _aggregate(array: Typed, parts: list[exp.Expr], type_of: TypeOf) -> Typed | None:
    """aggregate(array, first, merge[, finish]): what merge gives has the type of `first`."""
    first, element = type_of(parts[0], {}), element_of(array.type or "")
    if first.type is None or element is None or not 2 <= len(parts) <= 3:
        return None
    merged = _plain(parts[1], (first.type, element), type_of)
    if merged is None or merged.type != first.type:
        return None
    args = [array, first, merged]
    if len(parts) == 3:
        finished = _plain(parts[2], (first.type,), type_of)
        if finished is None or finished.type is None:
            return None
        args.append(finished)
    return Typed("aggregate", tuple(args), tuple(a.type or "" for a in args), args[-1].type)


def _plain(node: exp.Expr, types: tuple[Type, ...], type_of: TypeOf) -> Typed | None:
    """A function of as many values as there are types."""
    if not isinstance(node, exp.Lambda) or len(node.expressions) != len(types):
        return None
    names = [parameter.name for parameter in node.expressions]
    bound = {name: _variable(name, type_) for name, type_ in zip(names, types, strict=True)}
    return _function(node, names, bound, type_of)


def _function(node: exp.Lambda, names: list[str], bound: Variables, type_of: TypeOf) -> Typed:
    body = type_of(node.this, bound)
    return Typed("lambda", (body,), (body.type or "",), body.type, "\n".join(names))
