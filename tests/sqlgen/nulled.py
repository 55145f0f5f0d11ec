"""The examples with NULL in the place of an argument: once for each place of every construct."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from sqlglot import exp

from everview.expr.scalar import parse, text
from everview.expr.type_inference import annotate
from everview.expr.types import INTEGERS, decimal_parts
from sqlgen import grid

_SCHEMA = grid.schema()
_VALUES = (exp.Column, exp.Literal, exp.Boolean, exp.HexString, exp.Neg, exp.Cast)
"""Parts of a tree that stand for a value."""
_FIXED = (exp.Interval, exp.DataType, exp.DataTypeParam)
"""Parts of a tree in which a literal is no value."""


def nulled(examples: Iterable[str]) -> tuple[str, ...]:
    """Each example with NULL for one of its values, those left out that show nothing new.

    What counts as new is the construct around the value, with the kinds of its operands and which
    of them are literals, and the place of the NULL among them.
    """
    found: dict[object, str] = {}
    for example in examples:
        tree = parse(example)
        for place, part in enumerate(tree.walk()):
            outer = part.parent
            if isinstance(part, _VALUES) and outer is not None and not isinstance(outer, _FIXED):
                found.setdefault(_shape(outer, part), _with_null(tree, place))
    return tuple(dict.fromkeys(found.values()))


def _shape(construct: exp.Expr, part: exp.Expr) -> object:
    operands = list(construct.iter_expressions())
    place = next(at for at, operand in enumerate(operands) if operand is part)
    name = construct.name.lower() if isinstance(construct, exp.Anonymous) else construct.key
    target = text(construct.to) if isinstance(construct, exp.Cast) else ""
    return name, target, place, tuple(map(_kind, operands))


def _kind(operand: exp.Expr) -> object:
    fixed = isinstance(operand, exp.Literal | exp.Boolean | exp.Null | exp.Var)
    return _type(text(operand)), fixed


@cache
def _type(operand: str) -> str | None:
    """The type of an operand; integers are alike here, and so are decimals."""
    try:
        found = annotate(operand, _SCHEMA).type or ""
    except Exception:
        return None
    if found in INTEGERS:
        return "integer"
    return "decimal" if decimal_parts(found) else found


def _with_null(tree: exp.Expr, place: int) -> str:
    """The tree with NULL for the part that a walk comes to as the one of that number."""
    copy = tree.copy()
    part = next(each for at, each in enumerate(copy.walk()) if at == place)
    part.replace(exp.Null())
    return text(copy)
