"""Spark's result type for every part of a scalar expression, or None where we have no rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce

from sqlglot import exp

from everview.expr.calls import call, cast_call, interval_cast, target_type
from everview.expr.functions import RULES
from everview.expr.lambdas import Variables, higher_order, typed_call, variable
from everview.expr.scalar import parse
from everview.expr.signatures import Operand, castable
from everview.expr.typed import Typed
from everview.expr.types import Schema, Type

__all__ = ["Typed", "annotate", "type_of"]

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1


def type_of(text: str, schema: Schema) -> Type | None:
    """The type Spark's analyzer gives the text, None where our rules do not know it.

    >>> from everview.expr.types import Column
    >>> type_of("price * 2", (Column("price", "decimal(12,2)"),))
    'decimal(14,2)'
    """
    found = annotate(text, schema).type
    return None if found is not None and found.startswith("interval") else found


def annotate(tree: str | exp.Expr, schema: Schema) -> Typed:
    """The expression with types, from the leaves up."""
    names = Names({column.name: column.type for column in schema}, {})
    return _typed(parse(tree) if isinstance(tree, str) else tree, names)


@dataclass(frozen=True, slots=True)
class Names:
    """What names stand for: the types of columns, and the variables of functions around."""

    columns: dict[str, Type]
    variables: Variables

    def typed(self, node: exp.Expr, more: Variables) -> Typed:
        """A part in which further variables are known."""
        return _typed(node, Names(self.columns, {**self.variables, **more}))


def _typed(node: exp.Expr, names: Names) -> Typed:
    match node:
        case exp.Paren():
            return _typed(node.this, names)
        case exp.Column():
            known = None if node.table else names.columns.get(node.name)
            return Typed("column", (), (), known, node.name)
        case exp.Null():
            return _leaf("void", "NULL")
        case exp.Boolean():
            return _leaf("boolean", "TRUE" if node.this else "FALSE")
        case exp.Literal():
            return _literal(node, "")
        case exp.HexString():
            return _leaf("binary", node.name)
        case exp.Neg(this=exp.Literal(is_string=False) as number):
            return _literal(number, "-")
        case exp.Cast() if (found := interval_cast(node)) is not None:
            return _applied(found.name, (), found.value)
        case exp.Cast():
            name = "try_cast" if node.args.get("safe") else "cast"
            return _cast(name, node.this, target_type(node), names)
        case exp.Case() | exp.If() | exp.Nvl2() | exp.Nullif() | exp.Between() | exp.DecodeCase():
            return _branching(node, names)
        case (
            exp.Like(expression=exp.Any() | exp.All()) | exp.ILike(expression=exp.Any() | exp.All())
        ):
            return _any_or_all(node, names)
        case exp.Identifier():
            return variable(node, names.variables)
        case exp.Func() if (applied := higher_order(node)) is not None:
            return typed_call(*applied, names.typed)
        case exp.Anonymous() if (conversion := cast_call(node)) is not None:
            return _cast("cast", *conversion, names)
        case exp.Anonymous(expressions=[subject]) if node.name.lower() in _ZERO_CALLS:
            return _zero_call(node.name.lower(), _typed(subject, names))
        case _:
            return _call(node, names)


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


def _cast(name: str, value: exp.Expr, target: Type | None, names: Names) -> Typed:
    arg = _typed(value, names)
    known = arg.type is not None and castable(arg.type, target)
    return Typed(name, (arg,), (arg.type or "",), target if known else None)


def _call(node: exp.Expr, names: Names) -> Typed:
    found = call(node)
    if found is None:
        name = node.sql_name() if isinstance(node, exp.Func) else type(node).__name__
        return Typed(name.lower(), (), (), None)
    args = tuple(_typed(arg, names) for arg in found.args)
    return _applied(found.name, args, found.value)


def _applied(name: str, args: tuple[Typed, ...], value: str | None = None) -> Typed:
    rule = RULES.get(name)
    if rule is None or any(arg.type is None for arg in args):
        return Typed(name, args, (), None, value)
    signature = rule(tuple(Operand(arg.type or "", arg.literal) for arg in args), value)
    if signature is None:
        return Typed(name, args, (), None, value)
    return Typed(name, args, signature.operands, signature.result, value)


def _branching(node: exp.Expr, names: Names) -> Typed:
    """CASE in all its forms, as one construct: condition, value, condition, value, …, default."""

    def typed(part: exp.Expr | None) -> Typed:
        return _leaf("void", "NULL") if part is None else _typed(part, names)

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
            return _null_if(typed(node.this), typed(node.expression))
        case exp.DecodeCase():
            subject, *rest = map(typed, node.expressions)
            default = rest.pop() if len(rest) % 2 else _NO_DEFAULT
            rest[0::2] = [_applied("<=>", (subject, test)) for test in rest[0::2]]
            return _applied("case", (*rest, default))
        case _:
            subject = typed(node.this)
            low = _applied(">=", (subject, typed(node.args["low"])))
            return _applied("and", (low, _applied("<=", (subject, typed(node.args["high"])))))


_NO_DEFAULT = Typed("cast", (_leaf("void", "NULL"),), ("void",), "string")
"""What DECODE gives by default: a NULL, which Spark takes for a string."""


def _null_if(subject: Typed, test: Typed) -> Typed:
    return _applied("case", (_applied("=", (subject, test)), _leaf("void", "NULL"), subject))


_ZERO_CALLS = ("nullifzero", "zeroifnull")


def _zero_call(name: str, subject: Typed) -> Typed:
    zero = _leaf("int", "0")
    return (
        _null_if(subject, zero) if name == "nullifzero" else _applied("coalesce", (subject, zero))
    )


def _any_or_all(node: exp.Expr, names: Names) -> Typed:
    """x LIKE ANY (…) is an OR of its patterns, ALL an AND; a NOT belongs to each of them."""
    word = "or" if isinstance(node.expression, exp.Any) else "and"
    patterns = node.expression.this.unnest()
    each = patterns.expressions if isinstance(patterns, exp.Tuple) else [patterns]
    tests = [_typed(_with_pattern(node, pattern), names) for pattern in each]
    return reduce(lambda left, right: _applied(word, (left, right)), tests)


def _with_pattern(node: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    negate = bool(node.args.get("negate"))
    return type(node)(this=node.this.copy(), expression=pattern.copy(), negate=negate)
