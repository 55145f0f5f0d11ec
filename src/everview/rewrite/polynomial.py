"""A value over joined rows as a sum of products, each factor a value over one of the relations.

Conditions of correctness: every operation keeps all digits, so that products of sums equal sums of
products; a value of a relation cannot raise, because it is computed of rows that may join nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product

from sqlglot import exp

from everview.expr import scalar
from everview.expr.coercion import MAX_PRECISION, drops_digits, exact_decimal
from everview.expr.type_inference import annotate, type_of
from everview.expr.types import INTEGERS, Schema, decimal_parts, is_exact


@dataclass(frozen=True, slots=True)
class Monomial:
    """A product: texts by the relation that they are computed of, and literals."""

    negative: bool = False
    texts: tuple[tuple[int, str], ...] = ()
    literals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A sum of products that a value is equal to where conditions hold, none of them NULL.

    Conditions and `operands`, which must not be null, each go by the relation that they are of.
    """

    conditions: tuple[tuple[int, str], ...] = ()
    operands: tuple[tuple[int, str], ...] = ()
    monomials: tuple[Monomial, ...] = ()


@dataclass(frozen=True, slots=True)
class Splitting:
    """What values are split by: the types of columns, and the relation that each is of.

    With `overflow`, products of integers are taken for exact, though one that does not fit its
    type would have raised.
    """

    schema: Schema
    place: Callable[[str], int]
    overflow: bool = False
    _places: dict[str, frozenset[int]] = field(default_factory=dict)

    def places(self, text: str) -> frozenset[int]:
        """The relations that a text is computed of."""
        if text not in self._places:
            self._places[text] = frozenset(map(self.place, scalar.columns(text)))
        return self._places[text]

    def cases(self, text: str) -> tuple[Case, ...] | None:
        """The value by cases, None where it cannot be split; where no case holds it is null."""
        return self._cases(scalar.parse(text))

    def _cases(self, tree: exp.Expr) -> tuple[Case, ...] | None:
        if isinstance(tree, exp.Paren):
            return self._cases(tree.this)
        if isinstance(tree, exp.Null):
            return ()
        text = scalar.text(tree)
        places = self.places(text)
        if isinstance(tree, exp.Literal) and not tree.is_string:
            return (Case((), (), (Monomial(literals=(text,)),)),)
        if len(places) == 1 and cannot_raise(tree, self.schema):
            (place,) = places
            return (Case((), ((place, text),), (Monomial(texts=((place, text),)),)),)
        match tree:
            case exp.Mul() | exp.Add() | exp.Sub() if self._keeps_digits(tree):
                left, right = self._cases(tree.this), self._cases(tree.expression)
                if left is None or right is None:
                    return None
                return tuple(_combined(tree, a, b) for a, b in product(left, right))
            case exp.Neg() if self._exact(tree):
                below = self._cases(tree.this)
                return below and tuple(_negated(each) for each in below)
            case exp.Case() if tree.this is None and self._keeps_branches(tree):
                return self._branches(tree)
            case _:
                return None

    def _branches(self, tree: exp.Case) -> tuple[Case, ...] | None:
        """Each branch where its condition holds and none before it does."""
        found: list[Case] = []
        before: tuple[tuple[int, str], ...] = ()
        branches = [(each.this, each.args["true"]) for each in tree.args["ifs"]]
        for condition, value in [*branches, (None, tree.args.get("default") or exp.Null())]:
            own: tuple[tuple[int, str], ...] = ()
            if condition is not None:
                text = scalar.text(condition)
                if len(self.places(text)) != 1 or not cannot_raise(condition, self.schema):
                    return None
                (place,) = self.places(text)
                own = ((place, text),)
                never = ((place, f"NOT COALESCE({text}, FALSE)"),)
            cases = self._cases(value)
            if cases is None:
                return None
            found += (
                Case(before + own + each.conditions, each.operands, each.monomials)
                for each in cases
            )
            before += never if condition is not None else ()
        return tuple(found)

    def _keeps_branches(self, tree: exp.Case) -> bool:
        """Whether all branches are numbers that the type of the whole has room for."""
        whole = type_of(scalar.text(tree), self.schema)
        values = [each.args["true"] for each in tree.args["ifs"]]
        values += [tree.args["default"]] if tree.args.get("default") else []
        for value in values:
            if isinstance(value, exp.Null):
                continue
            type_ = type_of(scalar.text(value), self.schema)
            if whole is None or type_ is None or not _fits(type_, whole):
                return False
        return True

    def _exact(self, tree: exp.Expr) -> bool:
        type_ = type_of(scalar.text(tree), self.schema)
        return type_ is not None and (
            decimal_parts(type_) is not None or (self.overflow and type_ in INTEGERS)
        )

    def _keeps_digits(self, tree: exp.Binary) -> bool:
        """Whether an operation is exact for all values of its operands."""
        node = annotate(tree, self.schema)
        if node.type is None:
            return False
        if node.type in INTEGERS:
            return self.overflow
        return keeps_digits(node.name, node.operands, node.type)


def keeps_digits(operator: str, operands: tuple[str | None, ...], result: str) -> bool:
    """Whether a sum, difference or product of decimals has room for all digits."""
    left, right = (decimal_parts(each or "") for each in operands)
    if left is None or right is None or decimal_parts(result) is None:
        return False
    pair = tuple(each or "" for each in operands)
    digits, _ = exact_decimal(operator, left, right)
    return digits <= MAX_PRECISION and not drops_digits(operator, pair, result)


def _fits(type_: str, whole: str) -> bool:
    """Whether all numbers of a type are numbers of another."""
    if type_ == whole or (type_ in INTEGERS and whole in INTEGERS):
        return is_exact(whole)
    ours, theirs = decimal_parts(type_), decimal_parts(whole)
    if theirs is None:
        return False
    precision, scale = ours or (20, 0)
    return scale <= theirs[1] and (not ours or precision - scale <= theirs[0] - theirs[1])


def _combined(tree: exp.Expr, a: Case, b: Case) -> Case:
    if isinstance(tree, exp.Mul):
        monomials = tuple(_times(one, other) for one, other in product(a.monomials, b.monomials))
    else:
        right = _negated(b) if isinstance(tree, exp.Sub) else b
        monomials = a.monomials + right.monomials
    operands = tuple(dict.fromkeys(a.operands + b.operands))
    return Case(a.conditions + b.conditions, operands, monomials)


def _times(one: Monomial, other: Monomial) -> Monomial:
    return Monomial(
        one.negative != other.negative, one.texts + other.texts, one.literals + other.literals
    )


def _negated(case: Case) -> Case:
    flipped = (Monomial(not m.negative, m.texts, m.literals) for m in case.monomials)
    return Case(case.conditions, case.operands, tuple(flipped))


_TOTAL = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren),
    *(exp.And, exp.Or, exp.Not, exp.Is, exp.Case, exp.If, exp.Coalesce),
)
_COMPARISONS = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ),
    *(exp.In, exp.Between, exp.Like),
)
_PARTS_OF_DATES = (exp.Year, exp.Month, exp.Day, exp.Quarter)


def cannot_raise(tree: exp.Expr, schema: Schema) -> bool:
    """Whether an expression has a value for every row: no overflow, no failing cast, no division.

    Comparisons must be of one type, or of numbers, because a text is cast to what it is compared
    with.
    """
    if isinstance(tree, exp.Column):
        return True
    if isinstance(tree, exp.Extract):
        dated = type_of(scalar.text(tree.expression), schema) == "date"
        known = tree.name.upper() in ("YEAR", "MONTH", "DAY", "QUARTER")
        return dated and known and cannot_raise(tree.expression, schema)
    parts = [part for part in _parts(tree) if not isinstance(part, exp.DataType)]
    if not all(cannot_raise(part, schema) for part in parts):
        return False
    match tree:
        case exp.Cast():
            return isinstance(tree.this, exp.Literal) and scalar.is_constant(scalar.text(tree))
        case exp.Mul() | exp.Add() | exp.Sub():
            node = annotate(tree, schema)
            return node.type is not None and keeps_digits(node.name, node.operands, node.type)
        case exp.Neg():
            type_ = type_of(scalar.text(tree), schema)
            return isinstance(tree.this, exp.Literal) or bool(type_ and decimal_parts(type_))
        case _ if isinstance(tree, _PARTS_OF_DATES):
            return type_of(scalar.text(tree.this), schema) == "date"
        case _ if isinstance(tree, _COMPARISONS):
            return _one_kind(parts, schema)
        case _:
            return isinstance(tree, _TOTAL)


def _parts(tree: exp.Expr) -> Iterator[exp.Expr]:
    for value in tree.args.values():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, exp.Expr):
                yield part


def _one_kind(parts: list[exp.Expr], schema: Schema) -> bool:
    kinds = set()
    for part in parts:
        type_ = type_of(scalar.text(part), schema)
        if type_ is None:
            return False
        kinds.add("number" if is_exact(type_) else type_)
    return len(kinds - {"void"}) <= 1
