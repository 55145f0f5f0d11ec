"""Spark's result type for every part of a scalar expression, or None where we have no rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from everview.plan.calls import call, target_type
from everview.plan.functions import RULES
from everview.plan.scalar import parse
from everview.plan.signatures import Operand, castable
from everview.plan.types import Schema, Type

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Typed:
    """A construct with its arguments, the types Spark casts those to, and its result type.

    `value` is what the text fixes: a column's name, a literal, a unit, the escape of a LIKE.
    An unknown construct has no result type and no operands.
    """

    name: str
    args: tuple[Typed, ...]
    operands: tuple[Type, ...]
    type: Type | None
    value: str | None = None

    @property
    def literal(self) -> str | None:
        """The text of a literal, None for anything else."""
        return self.value if self.name == "literal" else None


def type_of(text: str, schema: Schema) -> Type | None:
    """The type Spark's analyzer gives the text, None where our rules do not know it.

    >>> from everview.plan.types import Column
    >>> type_of("price * 2", (Column("price", "decimal(12,2)"),))
    'decimal(14,2)'
    """
    found = annotate(text, schema).type
    return None if found is not None and found.startswith("interval") else found


def annotate(tree: str | exp.Expr, schema: Schema) -> Typed:
    """The expression with types, from the leaves up."""
    types = {column.name: column.type for column in schema}
    return _typed(parse(tree) if isinstance(tree, str) else tree, types)


def _typed(node: exp.Expr, types: dict[str, Type]) -> Typed:
    match node:
        case exp.Paren():
            return _typed(node.this, types)
        case exp.Column():
            known = None if node.table else types.get(node.name)
            return Typed("column", (), (), known, node.name)
        case exp.Null():
            return _leaf("void", "NULL")
        case exp.Boolean():
            return _leaf("boolean", "TRUE" if node.this else "FALSE")
        case exp.Literal():
            return _literal(node, "")
        case exp.Neg(this=exp.Literal(is_string=False) as number):
            return _literal(number, "-")
        case exp.Cast():
            return _cast(node, types)
        case exp.Case() | exp.If() | exp.Nvl2() | exp.Nullif() | exp.Between():
            return _branching(node, types)
        case _:
            return _call(node, types)


def _leaf(type_: Type, value: str) -> Typed:
    return Typed("literal", (), (), type_, value)


def _literal(node: exp.Literal, sign: str) -> Typed:
    """A string, or a number in the smallest of int, bigint and decimal; an exponent means double.

    Spark reads the sign as part of the number: -2147483648 is an int.
    """
    if node.is_string:
        return _leaf("string", node.this)
    digits = sign + node.this
    if re.search("[eE]", digits):
        return _leaf("double", digits)
    if "." in digits:
        number = Decimal(digits).as_tuple()
        scale = -int(number.exponent)
        return _leaf(f"decimal({max(len(number.digits), scale)},{scale})", digits)
    return _leaf(_integer_type(int(digits)), digits)


def _integer_type(number: int) -> Type:
    if -_INT_MAX - 1 <= number <= _INT_MAX:
        return "int"
    return (
        "bigint" if -_LONG_MAX - 1 <= number <= _LONG_MAX else f"decimal({len(str(abs(number)))},0)"
    )


def _cast(node: exp.Cast, types: dict[str, Type]) -> Typed:
    arg = _typed(node.this, types)
    name = "try_cast" if node.args.get("safe") else "cast"
    known = arg.type is not None and castable(arg.type, target_type(node))
    return Typed(name, (arg,), (arg.type or "",), target_type(node) if known else None)


def _call(node: exp.Expr, types: dict[str, Type]) -> Typed:
    found = call(node)
    if found is None:
        return Typed(type(node).__name__.lower(), (), (), None)
    args = tuple(_typed(arg, types) for arg in found.args)
    return _applied(found.name, args, found.value)


def _applied(name: str, args: tuple[Typed, ...], value: str | None = None) -> Typed:
    rule = RULES.get(name)
    if rule is None or any(arg.type is None for arg in args):
        return Typed(name, args, (), None, value)
    signature = rule(tuple(Operand(arg.type or "", arg.literal) for arg in args), value)
    if signature is None:
        return Typed(name, args, (), None, value)
    return Typed(name, args, signature.operands, signature.result, value)


def _branching(node: exp.Expr, types: dict[str, Type]) -> Typed:
    """CASE in all its forms, as one construct: condition, value, condition, value, …, default."""

    def typed(part: exp.Expr | None) -> Typed:
        return _leaf("void", "NULL") if part is None else _typed(part, types)

    match node:
        case exp.Case():
            subject = node.args.get("this")
            parts: list[Typed] = []
            for branch in node.args["ifs"]:
                test = typed(branch.this)
                parts.append(_applied("=", (typed(subject), test)) if subject else test)
                parts.append(typed(branch.args["true"]))
            return _applied("case", (*parts, typed(node.args.get("default"))))
        case exp.If() | exp.Nvl2():
            test = typed(node.this)
            test = _applied("is not null", (test,)) if isinstance(node, exp.Nvl2) else test
            values = (typed(node.args["true"]), typed(node.args.get("false")))
            return _applied("case", (test, *values))
        case exp.Nullif():
            subject = typed(node.this)
            test = _applied("=", (subject, typed(node.expression)))
            return _applied("case", (test, _leaf("void", "NULL"), subject))
        case _:
            subject = typed(node.this)
            low = _applied(">=", (subject, typed(node.args["low"])))
            return _applied("and", (low, _applied("<=", (subject, typed(node.args["high"])))))
