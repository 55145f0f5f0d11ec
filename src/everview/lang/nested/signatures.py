"""Which arguments functions and classes of records take: bound by Python's own rules."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from inspect import Parameter, Signature
from typing import Any

from everview.lang.nested.python_source import Unread

_COMPUTED = "{} computes its components when one is made, and is not run"


def of_definition(args: ast.arguments) -> Signature:
    """The signature of a function as it is written; its defaults are expressions."""
    return Signature([*_parameters(args)])


def _parameters(args: ast.arguments) -> Iterator[Parameter]:
    placed = [*args.posonlyargs, *args.args]
    defaults: list[Any] = [Parameter.empty] * (len(placed) - len(args.defaults)) + args.defaults
    for at, (each, default) in enumerate(zip(placed, defaults, strict=True)):
        first = at < len(args.posonlyargs)
        kind = Parameter.POSITIONAL_ONLY if first else Parameter.POSITIONAL_OR_KEYWORD
        yield Parameter(each.arg, kind, default=default)
    if args.vararg is not None:
        yield Parameter(args.vararg.arg, Parameter.VAR_POSITIONAL)
    for each, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        default = Parameter.empty if value is None else value
        yield Parameter(each.arg, Parameter.KEYWORD_ONLY, default=default)
    if args.kwarg is not None:
        yield Parameter(args.kwarg.arg, Parameter.VAR_KEYWORD)


def takes_any(signature: Signature) -> bool:
    """Whether a function takes as many arguments as there are."""
    several = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return any(each.kind in several for each in signature.parameters.values())


def field_names(kind: type) -> tuple[str, ...] | None:
    """The components of a data class or a named tuple; None for any other class."""
    if dataclasses.is_dataclass(kind):
        return tuple(each.name for each in dataclasses.fields(kind))
    return getattr(kind, "_fields", None) if issubclass(kind, tuple) else None


def of_record(kind: type) -> Signature | Unread:
    """What a data class or a named tuple takes, if its components are what it is given."""
    signature = inspect.signature(kind)
    plain = _is_plain_data_class if dataclasses.is_dataclass(kind) else _is_plain_named_tuple
    if not plain(kind) or {*signature.parameters} != {*(field_names(kind) or ())}:
        return Unread(_COMPUTED.format(kind.__name__))
    computed = {each.name for each in _with_factory(kind)}
    parameters = [
        each.replace(default=Unread(f"the default of {each.name} of {kind.__name__} is computed"))
        if each.name in computed
        else each
        for each in signature.parameters.values()
    ]
    return Signature(parameters)


def _with_factory(kind: type) -> Iterator[dataclasses.Field[Any]]:
    for each in dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ():
        if each.default_factory is not dataclasses.MISSING:
            yield each


def _is_plain_data_class(kind: type) -> bool:
    """Whether its own decorator wrote what makes one, and nothing runs beside that."""
    written = vars(_owner(kind, "__init__")).get("__dataclass_params__")
    runs_more = hasattr(kind, "__post_init__") or _owner(kind, "__new__") is not object
    return written is not None and written.init and not runs_more


def _is_plain_named_tuple(kind: type) -> bool:
    """Whether what makes one was written by `namedtuple`, which also wrote `_make`."""
    return "_make" in vars(_owner(kind, "__new__")) and _owner(kind, "__init__") is object


def _owner(kind: type, name: str) -> type:
    """The class that a class has a method from."""
    return next(each for each in kind.__mro__ if name in vars(each))
