"""The scalars of the random plans, evaluated by definition over one row."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from operator import add, eq, ge, gt, le, lt, mul, sub
from typing import Any

from sqlglot import exp

from everview.expr import scalar

Row = Mapping[str, Any]

_STRICT = {
    exp.Add: add,
    exp.Sub: sub,
    exp.Mul: mul,
    exp.IntDiv: lambda a, b: int(a / b),
    exp.EQ: eq,
    exp.GT: gt,
    exp.LT: lt,
    exp.GTE: ge,
    exp.LTE: le,
}
"""Null where an operand is null. NaN, larger than everything, does not occur in an operand."""


def value(text: str, row: Row) -> Any:
    """The value of a scalar text; None is NULL."""
    return _value(scalar.parse(text), row)


def _value(tree: exp.Expr, row: Row) -> Any:
    match tree:
        case exp.Column():
            return row[tree.name]
        case exp.Literal() | exp.Null() | exp.Boolean() | exp.Neg():
            return _constant(tree.sql())
        case exp.Paren():
            return _value(tree.this, row)
        case exp.Not():
            inner = _value(tree.this, row)
            return None if inner is None else not inner
        case exp.Is():
            return _value(tree.this, row) is None
        case exp.And():
            return _both(_value(tree.this, row), _value(tree.expression, row))
        case exp.Or():
            return _either(_value(tree.this, row), _value(tree.expression, row))
        case exp.Between():
            of, low, high = (_value(tree.args[part], row) for part in ("this", "low", "high"))
            return None if None in (of, low, high) else low <= of <= high
        case exp.Case():
            return _case(tree, row)
        case exp.Cast():
            return _cast(_value(tree.this, row), tree.to.sql("spark"))
        case exp.Array():
            return tuple(_value(each, row) for each in tree.expressions)
        case exp.ConcatWs():
            separator, *texts = (_value(each, row) for each in tree.expressions)
            return separator.join(text for text in texts if text is not None)
        case exp.Coalesce():
            values = [_value(each, row) for each in (tree.this, *tree.expressions)]
            return next((v for v in values if v is not None), None)
        case exp.Greatest():
            values = [_value(each, row) for each in (tree.this, *tree.expressions)]
            return max((v for v in values if v is not None), default=None)
        case exp.Anonymous():
            return _average(tree.name.lower(), [_value(arg, row) for arg in tree.expressions])
        case _:
            left, right = _value(tree.this, row), _value(tree.expression, row)
            return None if left is None or right is None else _STRICT[type(tree)](left, right)


@lru_cache
def _constant(text: str) -> Any:
    words = {"NULL": None, "TRUE": True, "FALSE": False}
    return words[text] if text in words else text[1:-1] if text[0] == "'" else int(text)


def _either(left: Any, right: Any) -> Any:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _both(left: Any, right: Any) -> Any:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _case(tree: exp.Case, row: Row) -> Any:
    for branch in tree.args["ifs"]:
        if _value(branch.this, row):
            return _value(branch.args["true"], row)
    default = tree.args.get("default")
    return None if default is None else _value(default, row)


def _cast(value_: Any, target: str) -> Any:
    """Only widening casts occur, and a total that is whole becomes an integer."""
    if value_ is None:
        return None
    if isinstance(value_, tuple) or target == "STRING":
        return value_ if isinstance(value_, tuple) else str(value_)
    return int(value_) if target in ("INT", "BIGINT") else Decimal(value_)


def _average(function: str, args: list[Any]) -> Any:
    total, count, *rest = args
    if not count:
        return None
    if function == "ev_avg_double":
        return float(total) / count
    assert function == "ev_avg_decimal", function
    return (Decimal(total) / count).quantize(Decimal(1).scaleb(-(rest[1] + 4)), ROUND_HALF_UP)
