"""Scalars of SQL as values and conditions of AGCA, exactly or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.coercion import as_decimal, exact_decimal
from everview.expr.type_inference import type_of
from everview.expr.types import Schema, Type, decimal_parts, is_exact
from everview.lang.agca.syntax import (
    COMPLEMENT,
    ONE,
    ZERO,
    Comparison,
    Constant,
    Expr,
    Variable,
    minus,
    plus,
    times,
)

_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}


def conjuncts_of(predicate: str, scalars: Scalars) -> tuple[Expr, ...]:
    """The conjuncts of a condition; a BETWEEN is two."""
    found: list[Expr] = []
    for each in scalar.conjuncts(predicate):
        tree = _bare(scalar.parse(each))
        if isinstance(tree, exp.Between):
            low, high = tree.args["low"], tree.args["high"]
            found.append(scalars.compared(">=", tree.this, low))
            found.append(scalars.compared("<=", tree.this, high))
        elif isinstance(tree, exp.Not) and isinstance(_bare(tree.this), exp.Is):
            found.append(scalars.present(_bare(tree.this)))
        else:
            found.append(scalars.condition(tree))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Scalars:
    """Scalars over columns whose values are expressions."""

    columns: Mapping[str, Expr]
    schema: Schema

    def value(self, text: str) -> Expr:
        """A scalar as a value."""
        return self._value(scalar.parse(text))

    def _value(self, node: exp.Expr) -> Expr:
        match node:
            case exp.Paren():
                return self._value(node.this)
            case exp.Column():
                return self.columns[node.name]
            case exp.Literal():
                return _literal(node)
            case exp.Neg():
                return minus(self._value(node.this))
            case exp.Add() | exp.Sub() | exp.Mul():
                moved = _moved_date(node)
                return moved if moved is not None else self._arithmetic(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Case(this=None):
                return self._case(node)
            case _:
                raise refused(f"{scalar.text(node)} has no place in the calculus")

    def _arithmetic(self, node: exp.Expr) -> Expr:
        sign = _ARITHMETIC[type(node)]
        self._must_be_exact(node, sign)
        left, right = self._value(node.this), self._value(node.args["expression"])
        if sign == "*":
            return times(left, right)
        return plus(left, right if sign == "+" else minus(right))

    def _must_be_exact(self, node: exp.Expr, sign: str) -> None:
        """Refuse a sum or product that SQL rounds, or computes in doubles."""
        types = [self._type(each) for each in (node.this, node.args["expression"], node)]
        left, right, result = as_decimal(types[0]), as_decimal(types[1]), decimal_parts(types[2])
        if not all(map(is_exact, types)):
            raise refused(f"{scalar.text(node)} is no exact number")
        if result and left and right and exact_decimal(sign, left, right)[1] > result[1]:
            raise refused(f"{scalar.text(node)} is rounded")

    def _cast(self, node: exp.Cast) -> Expr:
        """A cast that changes no value, or of a text to a date."""
        inner, type_ = node.this, self._type(node)
        if type_ == "date" and isinstance(inner, exp.Literal) and inner.is_string:
            return _date(inner.name)
        narrow, wide = as_decimal(self._type(inner)), as_decimal(type_)
        if self._type(inner) == type_:
            return self._value(inner)
        fits = narrow and wide and narrow[1] <= wide[1]
        if fits and narrow and wide and narrow[0] - narrow[1] <= wide[0] - wide[1]:
            return self._value(inner)
        raise refused(f"{scalar.text(node)} may change the value")

    def _case(self, node: exp.Case) -> Expr:
        """CASE as the sum of its branches, each times its condition and none before it."""
        before: Expr = ONE
        branches: list[Expr] = []
        for each in node.args["ifs"]:
            condition = self.condition(each.this)
            branches.append(times(before, condition, self._value(each.args["true"])))
            before = times(before, _complement(condition))
        otherwise = node.args.get("default")
        if otherwise is None or isinstance(otherwise, exp.Null):
            raise refused(f"{scalar.text(node)} may be NULL")
        return plus(*branches, times(before, self._value(otherwise)))

    def condition(self, node: exp.Expr) -> Expr:
        """A condition as 1 or 0, of values that are not NULL."""
        node = _bare(node)
        match node:
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return self.compared(_COMPARED[type(node)], node.this, node.args["expression"])
            case exp.Like():
                return self._like(node)
            case exp.In() if node.expressions and not node.args.get("query"):
                each = [self.compared("=", node.this, one) for one in node.expressions]
                return each[0] if len(each) == 1 else Comparison(">", plus(*each), ZERO)
            case exp.Between():
                low = self.compared(">=", node.this, node.args["low"])
                return times(low, self.compared("<=", node.this, node.args["high"]))
            case exp.And():
                return times(self.condition(node.this), self.condition(node.args["expression"]))
            case exp.Or():
                sides = self.condition(node.this), self.condition(node.args["expression"])
                return Comparison(">", plus(*sides), ZERO)
            case exp.Not():
                return _complement(self.condition(node.this))
            case _:
                raise refused(f"{scalar.text(node)} has no place in the calculus")

    def compared(self, sign: str, left: exp.Expr, right: exp.Expr) -> Expr:
        """A comparison of two values of one kind."""
        types = self._type(left), self._type(right)
        if types[0] != types[1] and not all(map(is_exact, types)):
            raise refused(f"{scalar.text(left)} and {scalar.text(right)} are cast to be compared")
        return Comparison(sign, self._value(left), self._value(right))

    def present(self, node: exp.Expr) -> Expr:
        """IS NOT NULL, as an equation that NULL does not satisfy."""
        value = self._value(node.this)
        if not isinstance(value, Variable):
            raise refused(f"{scalar.text(node)} is a question about a computed value")
        return Comparison("=", value, value)

    def _like(self, node: exp.Expr) -> Expr:
        pattern = node.args["expression"]
        if not isinstance(pattern, exp.Literal) or node.args.get("escape"):
            raise refused(f"{scalar.text(node)} is no comparison with a pattern")
        return Comparison("like", self._value(node.this), Constant(pattern.name))

    def _type(self, node: exp.Expr) -> Type:
        found = type_of(scalar.text(node), self.schema)
        if found is None:
            raise refused(f"{scalar.text(node)} has no place in the calculus")
        return found


def refused(problem: str) -> UserError:
    """The error for a view that AGCA cannot say."""
    return UserError("G009", f"this is no sum of products: {problem}", remedy="see docs/agca.md")


def _complement(condition: Expr) -> Expr:
    """1 where a condition is 0, and 0 where it is 1."""
    if isinstance(condition, Comparison):
        return Comparison(COMPLEMENT[condition.operator], condition.left, condition.right)
    return Comparison("=", condition, ZERO)


def _literal(node: exp.Literal) -> Constant:
    if node.is_string:
        return Constant(node.name)
    if not node.name.replace(".", "", 1).isdigit():
        raise refused(f"{node.name} is no exact number")
    return Constant(Decimal(node.name) if "." in node.name else int(node.name))


def _date(text: str) -> Constant:
    try:
        return Constant(date.fromisoformat(text))
    except ValueError:
        raise refused(f"{text} is no plain date") from None


def _moved_date(node: exp.Expr) -> Constant | None:
    """A date in the text plus or minus an interval in the text; None for anything else."""
    start, interval = _bare(node.this), node.args["expression"]
    if not isinstance(interval, exp.Interval) or not isinstance(interval.this, exp.Literal):
        return None
    inner = _moved_date(start) if isinstance(start, exp.Add | exp.Sub) else None
    if inner is None and isinstance(start, exp.Cast) and isinstance(start.this, exp.Literal):
        inner = _date(start.this.name)
    if inner is None or not isinstance(inner.value, date):
        return None
    number = int(interval.this.name) * (1 if isinstance(node, exp.Add) else -1)
    unit = str(interval.args["unit"].name).rstrip("Ss").upper()
    if unit in ("DAY", "WEEK"):
        return Constant(inner.value + timedelta(days=number * (7 if unit == "WEEK" else 1)))
    if unit not in ("MONTH", "YEAR"):
        return None
    months = inner.value.year * 12 + inner.value.month - 1 + number * (12 if unit == "YEAR" else 1)
    year, month = divmod(months, 12)
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return Constant(date(year, month + 1, min(inner.value.day, last)))


def _bare(node: exp.Expr) -> exp.Expr:
    return _bare(node.this) if isinstance(node, exp.Paren) else node
