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
    UNITS,
    ZERO,
    Add,
    Comparison,
    Constant,
    Expr,
    Extract,
    Sum,
    Variable,
    minus,
    names_in,
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
        else:
            found.append(scalars.condition(tree))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Scalars:
    """Scalars over columns whose values are expressions; the variables `filled` are not NULL."""

    columns: Mapping[str, Expr]
    presences: Mapping[str, Expr]
    schema: Schema
    filled: frozenset[str] = frozenset()

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
            case exp.Extract() if node.this.name.lower() in UNITS:
                if self._type(node.args["expression"]) != "date":
                    raise refused(f"{scalar.text(node)} is not of a date")
                return Extract(node.this.name.lower(), self._value(node.args["expression"]))
            case exp.TsOrDsToDate() if self._type(node.this) == "date":
                return self._value(node.this)
            case exp.Year() | exp.Month() | exp.Day() if self._type(node.this) == "date":
                return Extract(type(node).__name__.lower(), self._value(node.this))
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
        if self._type(inner) == type_ or self._is_total(inner, type_):
            return self._value(inner)
        fits = narrow and wide and narrow[1] <= wide[1]
        if fits and narrow and wide and narrow[0] - narrow[1] <= wide[0] - wide[1]:
            return self._value(inner)
        raise refused(f"{scalar.text(node)} may change the value")

    def _is_total(self, node: exp.Expr, type_: Type) -> bool:
        """Whether a cast gives a total of a subquery its type, in which SQL wants it to fit."""
        if not isinstance(node, exp.Column) or not isinstance(self.columns[node.name], Sum | Add):
            return False
        narrow, wide = as_decimal(self._type(node)), as_decimal(type_)
        return bool(narrow and wide and narrow[1] <= wide[1])

    def _case(self, node: exp.Case) -> Expr:
        """CASE as the sum of its branches, each times its condition and none before it.

        A branch without a value adds nothing.
        """
        if not is_exact(self._type(node)):
            raise refused(f"{scalar.text(node)} is no exact number")
        return plus(
            *(
                times(condition, self.present(value), self._value(value))
                for condition, value in self._branches(node)
            )
        )

    def _branches(self, node: exp.Case) -> list[tuple[Expr, exp.Expr]]:
        """When each branch is taken, as 1 or 0, and its value; those that are NULL are left out."""
        before: Expr = ONE
        found: list[tuple[Expr, exp.Expr]] = []
        otherwise = node.args.get("default")
        for each in node.args["ifs"]:
            condition = self.condition(each.this)
            found.append((times(before, condition), each.args["true"]))
            before = times(before, self._unless(each.this, condition))
        if otherwise is not None:
            found.append((before, otherwise))
        return [(taken, value) for taken, value in found if not isinstance(value, exp.Null)]

    def present(self, node: exp.Expr) -> Expr:
        """1 where a value is not NULL, else 0."""
        node = _bare(node)
        if isinstance(node, exp.Case):
            branches = self._branches(node)
            parts = [self.present(value) for _, value in branches]
            if all(each == ONE for each in parts) and len(branches) == len(node.args["ifs"]) + 1:
                return ONE
            taken = (condition for condition, _ in branches)
            return plus(*(times(c, part) for c, part in zip(taken, parts, strict=True)))
        if isinstance(node, exp.Column):
            found = self.presences[node.name]
            return ONE if names_in(self.columns[node.name]) <= self.filled else found
        parts = [self.present(each) for each in node.iter_expressions() if _is_value(each)]
        return times(*dict.fromkeys(parts))

    def condition(self, node: exp.Expr, *, holds: bool = True) -> Expr:
        """1 where a condition is true, else 0; or where it is false, else 0. NULL is neither."""
        node = _bare(node)
        match node:
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                sign = _COMPARED[type(node)]
                sign = sign if holds else COMPLEMENT[sign]
                return self.compared(sign, node.this, node.args["expression"])
            case exp.Like():
                return self._like(node, "like" if holds else "not like")
            case exp.Is() if isinstance(_bare(node.args["expression"]), exp.Null):
                found = self.present(node.this)
                if found == ONE:
                    return ZERO if holds else ONE
                return Comparison("=", found, ZERO) if holds else found
            case exp.In() if node.expressions and not node.args.get("query"):
                sign = "=" if holds else "<>"
                each = [self.compared(sign, node.this, one) for one in node.expressions]
                return _any(each) if holds else times(*each)
            case exp.Between():
                low = self.compared(">=" if holds else "<", node.this, node.args["low"])
                high = self.compared("<=" if holds else ">", node.this, node.args["high"])
                return times(low, high) if holds else _any([low, high])
            case exp.And() | exp.Or():
                sides = [
                    self.condition(each, holds=holds)
                    for each in (node.this, node.args["expression"])
                ]
                return times(*sides) if isinstance(node, exp.And) == holds else _any(sides)
            case exp.Not():
                return self.condition(node.this, holds=not holds)
            case exp.Boolean():
                return ONE if node.this == holds else ZERO
            case _:
                raise refused(f"{scalar.text(node)} has no place in the calculus")

    def _unless(self, node: exp.Expr, condition: Expr) -> Expr:
        """1 where a condition is not true: false, or NULL."""
        if names_in(condition) <= self.filled:
            return self.condition(node, holds=False)
        return Comparison("=", condition, ZERO)

    def compared(self, sign: str, left: exp.Expr, right: exp.Expr) -> Expr:
        """A comparison of two values of one kind."""
        types = self._type(left), self._type(right)
        if types[0] != types[1] and not all(map(is_exact, types)):
            raise refused(f"{scalar.text(left)} and {scalar.text(right)} are cast to be compared")
        sides = self._value(left), self._value(right)
        computed = [
            each
            for each, side in zip((left, right), sides, strict=True)
            if not isinstance(side, Variable | Constant | Extract)
        ]
        return times(*map(self.present, computed), Comparison(sign, *sides))

    def _like(self, node: exp.Expr, operator: str) -> Expr:
        pattern = node.args["expression"]
        if not isinstance(pattern, exp.Literal) or node.args.get("escape"):
            raise refused(f"{scalar.text(node)} is no comparison with a pattern")
        return Comparison(operator, self._value(node.this), Constant(pattern.name))

    def _type(self, node: exp.Expr) -> Type:
        found = type_of(scalar.text(node), self.schema)
        if found is None:
            raise refused(f"{scalar.text(node)} has no place in the calculus")
        return found


def refused(problem: str) -> UserError:
    """The error for a view that AGCA cannot say."""
    return UserError("G009", f"this is no sum of products: {problem}", remedy="see docs/agca.md")


def _any(conditions: list[Expr]) -> Expr:
    """1 where one of several conditions is 1."""
    return conditions[0] if len(conditions) == 1 else Comparison(">", plus(*conditions), ZERO)


def _is_value(node: exp.Expr) -> bool:
    """Whether a part of a scalar is a value, rather than a type or a unit."""
    return not isinstance(node, exp.DataType | exp.Var | exp.Interval | exp.IntervalSpan)


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
