"""The types of functions that take functions: transform, filter, exists, forall, aggregate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sqlglot import exp

from everview.plan.typed import Typed
from everview.plan.types import Type, element_of

TypeOf: TypeAlias = Callable[[exp.Expr, dict[str, Type]], Typed]
"""The typed form of a part, given the types of the variables around it."""

INDEX: Type = "index"
"""What the second parameter of a function over elements is: an int, counted from zero."""

_NODES: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Transform: ("transform", "this expression"),
    exp.ArrayFilter: ("filter", "this expression"),
    exp.Exists: ("exists", "this expression"),
    exp.Reduce: ("aggregate", "this initial merge finish"),
}


def higher_order(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """The name and the arguments of a function that takes functions, None for others."""
    if isinstance(node, exp.Anonymous) and node.name.lower() == "forall":
        return "forall", list(node.expressions)
    if type(node) not in _NODES:
        return None
    name, keys = _NODES[type(node)]
    parts = [node.args.get(key) for key in keys.split()]
    return name, [part for part in parts if part is not None]


def typed_call(name: str, parts: list[exp.Expr], type_of: TypeOf) -> Typed:
    """A function that takes functions, with types."""
    unknown = Typed(name, (), (), None)
    array = type_of(parts[0], {})
    element = element_of(array.type or "")
    if element is None:
        return Typed(name, (array,), (), None)
    if name == "aggregate":
        return _aggregate(array, element, parts[1:], type_of) or unknown
    places = 2 if name in ("transform", "filter") else 1
    body = _function(parts[1], (element, INDEX)[:places], type_of) if len(parts) == 2 else None
    if body is None or body.type is None or (name != "transform" and body.type != "boolean"):
        return unknown if body is None else Typed(name, (array, body), (), None)
    result = {"transform": f"array<{body.type}>", "filter": array.type}.get(name, "boolean")
    return Typed(name, (array, body), (array.type or "", body.type), result)


def variable(node: exp.Expr, types: dict[str, Type]) -> Typed:
    """A parameter of a function around."""
    known = types.get(node.name)
    if known == INDEX:
        return Typed("index", (), (), "int", node.name)
    return Typed("variable", (), (), known, node.name)


def _aggregate(array: Typed, element: Type, parts: list[exp.Expr], type_of: TypeOf) -> Typed | None:
    """aggregate(array, first, merge[, finish]): what merge gives has the type of `first`."""
    first = type_of(parts[0], {})
    if first.type is None or not 2 <= len(parts) <= 3:
        return None
    merged = _function(parts[1], (first.type, element), type_of)
    if merged is None or merged.type != first.type:
        return None
    args = [array, first, merged]
    if len(parts) == 3:
        finished = _function(parts[2], (first.type,), type_of)
        if finished is None or finished.type is None:
            return None
        args.append(finished)
    return Typed("aggregate", tuple(args), tuple(a.type or "" for a in args), args[-1].type)


def _function(node: exp.Expr, types: tuple[Type, ...], type_of: TypeOf) -> Typed | None:
    """A lambda whose parameters have these types; the last may be left out."""
    if not isinstance(node, exp.Lambda) or not 1 <= len(node.expressions) <= len(types):
        return None
    names = [parameter.name for parameter in node.expressions]
    body = type_of(node.this, dict(zip(names, types, strict=False)))
    return Typed("lambda", (body,), (body.type or "",), body.type, "\n".join(names))
