"""What may be computed from base values: each primitive with its meaning and its SQL.

Equality is null-safe, as in Python; an order comparison with None is false. So every predicate is
true or false. Arithmetic with None gives None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from sqlglot import exp

from everview.expr import scalar
from everview.expr.dialect import DIALECT
from everview.expr.types import INTEGERS, Type, decimal_parts
from everview.lang.nested.syntax import Value


@dataclass(frozen=True, slots=True)
class Primitive:
    """A function of base values: how it is written, what it means, and its SQL.

    An `infix` is written between its operands, the higher `binds` the closer. The
    operands in the SQL are in parentheses. `takes` is what operands may be.
    """

    name: str
    sql: str
    meaning: Callable[..., Any]
    takes: Literal["any", "boolean", "number", "integer", "string", "ordered"]
    gives_boolean: bool = False
    binds: int = 0

    @property
    def infix(self) -> bool:
        """Whether it is written between its operands."""
        return self.binds > 0


def _known(function: Callable[..., Any], otherwise: Any = None) -> Callable[..., Any]:
    """The function where all operands are known, else another value."""
    return lambda *args: otherwise if None in args else function(*args)


def _equal(a: Any, b: Any) -> bool:
    return a is b if a is None or b is None else bool(a == b)


def _order(symbol: str, function: Callable[[Any, Any], bool]) -> Primitive:
    sql = f"COALESCE({{0}} {symbol} {{1}}, FALSE)"
    return Primitive(symbol, sql, _known(function, otherwise=False), "ordered", True, 4)


def _test(name: str, sql: str, meaning: Callable[..., bool]) -> Primitive:
    return Primitive(name, f"COALESCE({sql}, FALSE)", _known(meaning, False), "string", True)


_OFF = "({0} % {1} <> 0 AND ({0} < 0) <> ({1} < 0))"
"""Whether Python's division, which rounds down, differs from Spark's, which rounds to zero."""

_BLANK = exp.Literal.string(
    "".join(chr(code) for code in range(0x3001) if chr(code).isspace())
).sql(dialect=DIALECT)
"""What Python's `strip` takes away."""

PRIMITIVES = {
    each.name: each
    for each in (
        Primitive("or", "{0} OR {1}", lambda a, b: bool(a or b), "boolean", True, 1),
        Primitive("and", "{0} AND {1}", lambda a, b: bool(a and b), "boolean", True, 2),
        Primitive("not", "NOT {0}", lambda a: not a, "boolean", True),
        Primitive("==", "{0} <=> {1}", _equal, "any", True, 4),
        Primitive("!=", "NOT ({0} <=> {1})", lambda a, b: not _equal(a, b), "any", True, 4),
        _order("<", lambda a, b: a < b),
        _order("<=", lambda a, b: a <= b),
        _order(">", lambda a, b: a > b),
        _order(">=", lambda a, b: a >= b),
        Primitive("is_none", "{0} IS NULL", lambda a: a is None, "any", True),
        Primitive("+", "{0} + {1}", _known(lambda a, b: a + b), "number", binds=5),
        Primitive("-", "{0} - {1}", _known(lambda a, b: a - b), "number", binds=5),
        Primitive("*", "{0} * {1}", _known(lambda a, b: a * b), "number", binds=6),
        Primitive("/", "{0} / {1}", _known(lambda a, b: a / b), "number", binds=6),
        Primitive(
            "//",
            f"({{0}} DIV {{1}}) - CASE WHEN {_OFF} THEN 1 ELSE 0 END",
            _known(lambda a, b: a // b),
            "integer",
            binds=6,
        ),
        Primitive(
            "%",
            f"({{0}} % {{1}}) + CASE WHEN {_OFF} THEN {{1}} ELSE 0 END",
            _known(lambda a, b: a % b),
            "integer",
            binds=6,
        ),
        Primitive("neg", "-{0}", _known(lambda a: -a), "number"),
        Primitive("abs", "ABS({0})", _known(abs), "number"),
        Primitive("concat", "CONCAT({0}, {1})", _known(lambda a, b: a + b), "string"),
        Primitive("upper", "UPPER({0})", _known(str.upper), "string"),
        Primitive("lower", "LOWER({0})", _known(str.lower), "string"),
        Primitive("text", "CAST({0} AS STRING)", _known(str), "integer"),
        Primitive("strip", f"TRIM(BOTH {_BLANK} FROM {{0}})", _known(str.strip), "string"),
        Primitive("lstrip", f"TRIM(LEADING {_BLANK} FROM {{0}})", _known(str.lstrip), "string"),
        Primitive("rstrip", f"TRIM(TRAILING {_BLANK} FROM {{0}})", _known(str.rstrip), "string"),
        Primitive("length", "LENGTH({0})", _known(len), "string"),
        _test("startswith", "STARTSWITH({0}, {1})", str.startswith),
        _test("endswith", "ENDSWITH({0}, {1})", str.endswith),
        _test("contains", "CONTAINS({0}, {1})", lambda a, b: b in a),
    )
}
"""Every primitive, by name. Their SQL is Spark's."""

ARITIES = {each.name: 2 if "{1}" in each.sql else 1 for each in PRIMITIVES.values()}


def accepts(primitive: Primitive, type_: Type) -> bool:
    """Whether a primitive takes operands of a type of Spark's; None fits everywhere."""
    match primitive.takes:
        case _ if type_ == "void":
            return True
        case "any" | "ordered":
            return not type_.startswith(("map<", "array<", "struct<"))
        case "number":
            return type_ in (*INTEGERS, "float", "double") or decimal_parts(type_) is not None
        case "integer":
            return type_ in INTEGERS
        case other:
            return type_ == other


def literal(value: Value) -> str:
    """A constant as Spark's SQL.

    >>> literal("it's"), literal(None), literal(2.5), literal(-3)
    ("'it\\\\'s'", 'NULL', '2.5e0', '-3')
    """
    match value:
        case None:
            tree: exp.Expr = exp.Null()
        case bool():
            tree = exp.Boolean(this=value)
        case str():
            tree = exp.Literal.string(value)
        case float():
            text = repr(value)
            tree = scalar.parse(text if "e" in text else f"{text}e0")
        case date():
            tree = exp.cast(exp.Literal.string(value.isoformat()), "date")
        case int() | Decimal():
            tree = scalar.parse(f"{value:f}" if isinstance(value, Decimal) else str(value))
    return tree.sql(dialect=DIALECT, identify=True)
