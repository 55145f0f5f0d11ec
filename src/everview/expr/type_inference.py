"""Type inference: Spark's type of each part of a scalar, None where we have no rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import TypeAlias

from sqlglot import exp

from everview.expr.constructs import cast_call, construct_of, interval_cast, target_type
from everview.expr.scalar import parse
from everview.expr.signature_rules import Operand, castable
from everview.expr.signatures import SIGNATURES
from everview.expr.types import Schema, Type, element_of, entry_of, struct_of

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
        """The text of a literal, None for anything else, and for NULL, which has none."""
        return self.value if self.name == "literal" and self.type != "void" else None

    @property
    def literals(self) -> tuple[str | None, ...]:
        """The text of each argument that is a literal, None for any other."""
        return tuple(arg.literal for arg in self.args)


Variables: TypeAlias = Mapping[str, Typed]
"""The parameters of the lambdas around a part, by name."""


def type_of(text: str, schema: Schema) -> Type | None:
    """The type Spark's analyzer gives the text, None where our rules do not know it.

    >>> from everview.expr.types import Column
    >>> type_of("price * 2", (Column("price", "decimal(12,2)"),))
    'decimal(14,2)'
    """
    type_ = annotate(text, schema).type
    return None if type_ is not None and type_.startswith("interval") else type_


def annotate(tree: str | exp.Expr, schema: Schema) -> Typed:
    """The expression with types, from the leaves up."""
    names = Names({column.name: column.type for column in schema}, {})
    return _typed(parse(tree) if isinstance(tree, str) else tree, names)


@dataclass(frozen=True, slots=True)
class Names:
    """What names stand for: the types of columns, and the parameters of the lambdas around."""

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
        case exp.Cast() if (interval := interval_cast(node)) is not None:
            return _applied(interval.name, (), interval.value)
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
            unknown = Typed("variable", (), (), None, node.name)
            return names.variables.get(node.name) or unknown
        case exp.Func() if (applied := _higher_order(node)) is not None:
            return _typed_higher_order(*applied, names)
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
    construct = construct_of(node)
    if construct is None:
        name = node.sql_name() if isinstance(node, exp.Func) else type(node).__name__
        return Typed(name.lower(), (), (), None)
    args = tuple(_typed(arg, names) for arg in construct.args)
    return _applied(construct.name, args, construct.value)


def _applied(name: str, args: tuple[Typed, ...], value: str | None = None) -> Typed:
    rule = SIGNATURES.get(name)
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


# Functions that take functions: transform, filter, exists, forall, aggregate, …

_HIGHER_ORDER: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Transform: ("transform", "this expression"),
    exp.ArrayFilter: ("filter", "this expression"),
    exp.Exists: ("exists", "this expression"),
    exp.Reduce: ("aggregate", "this initial merge finish"),
}
_HIGHER_ORDER_NAMES = ("forall", "map_filter", "transform_values", "transform_keys")


def _higher_order(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """The name and the arguments of a function that takes functions, None for others."""
    if isinstance(node, exp.Anonymous) and node.name.lower() in _HIGHER_ORDER_NAMES:
        return node.name.lower(), list(node.expressions)
    if type(node) not in _HIGHER_ORDER:
        return None
    name, keys = _HIGHER_ORDER[type(node)]
    parts = [node.args.get(key) for key in keys.split()]
    return name, [part for part in parts if part is not None]


def _typed_higher_order(name: str, parts: list[exp.Expr], names: Names) -> Typed:
    """A function that takes functions, with types."""
    unknown = Typed(name, (), (), None)
    values = names.typed(parts[0], {})
    if len(parts) < 2 or values.type is None:
        return Typed(name, (values,), (), None)
    if name == "aggregate":
        return _aggregate(values, parts[1:], names) or unknown
    over = _over_entries if entry_of(values.type) else _over_elements
    body = over(name, values.type, parts[1], names)
    result = _result(name, values.type, body) if body is not None and len(parts) == 2 else None
    if body is None or body.type is None or result is None:
        return Typed(name, (values,) if body is None else (values, body), (), None)
    return Typed(name, (values, body), (values.type, body.type), result)


def _result(name: str, values: Type, body: Typed) -> Type | None:
    """The type of a call; a predicate has to be boolean."""
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


def _over_elements(name: str, values: Type, node: exp.Expr, names: Names) -> Typed | None:
    """A function of an element, and of its index where the call allows one."""
    element = element_of(values)
    if element is None or not isinstance(node, exp.Lambda):
        return None
    most = 2 if name in ("transform", "filter") else 1
    parameters = [parameter.name for parameter in node.expressions]
    if not 1 <= len(parameters) <= most:
        return None
    bound = {parameters[0]: _variable(parameters[0], element)}
    if len(parameters) == 2:
        bound[parameters[1]] = Typed("index", (), (), "int", parameters[1])
    return _function(node, parameters, bound, names)


def _over_entries(_: str, values: Type, node: exp.Expr, names: Names) -> Typed | None:
    """A function of a key and a value, which are the fields of one entry."""
    entry = entry_of(values)
    if entry is None or not isinstance(node, exp.Lambda) or len(node.expressions) != 2:
        return None
    parameters = [parameter.name for parameter in node.expressions]
    whole = _variable(",".join(parameters), struct_of(zip(("key", "value"), entry, strict=True)))
    bound = {
        name: Typed("field", (whole,), (whole.type or "",), type_, part)
        for name, part, type_ in zip(parameters, ("key", "value"), entry, strict=True)
    }
    return _function(node, [whole.value or ""], bound, names)


def _variable(name: str, type_: Type) -> Typed:
    return Typed("variable", (), (), type_, name)


def _aggregate(array: Typed, parts: list[exp.Expr], names: Names) -> Typed | None:
    """aggregate(array, first, merge[, finish]): what merge gives has the type of `first`."""
    first, element = names.typed(parts[0], {}), element_of(array.type or "")
    if first.type is None or element is None or not 2 <= len(parts) <= 3:
        return None
    merged = _plain(parts[1], (first.type, element), names)
    if merged is None or merged.type != first.type:
        return None
    args = [array, first, merged]
    if len(parts) == 3:
        finished = _plain(parts[2], (first.type,), names)
        if finished is None or finished.type is None:
            return None
        args.append(finished)
    return Typed("aggregate", tuple(args), tuple(a.type or "" for a in args), args[-1].type)


def _plain(node: exp.Expr, types: tuple[Type, ...], names: Names) -> Typed | None:
    """A function of as many values as there are types."""
    if not isinstance(node, exp.Lambda) or len(node.expressions) != len(types):
        return None
    parameters = [parameter.name for parameter in node.expressions]
    bound = {name: _variable(name, type_) for name, type_ in zip(parameters, types, strict=True)}
    return _function(node, parameters, bound, names)


def _function(node: exp.Lambda, parameters: list[str], bound: Variables, names: Names) -> Typed:
    body = names.typed(node.this, bound)
    return Typed("lambda", (body,), (body.type or "",), body.type, "\n".join(parameters))
