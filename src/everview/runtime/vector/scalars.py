"""Compiles scalar expressions over Arrow columns: the constructs that give the database's answer.

Operands arrive cast to the types that Spark casts them to. Where a value needs care (a sum that
overflows, a NaN in a comparison), Unsupported or an Arrow error says so, and the database is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from everview.expr.type_inference import Typed, annotate
from everview.expr.types import FLOATS, INTEGERS, Schema, Type, decimal_parts, is_nested
from everview.runtime.arrow_types import arrow_type
from everview.runtime.vector import decimals
from everview.runtime.vector.casts import cast
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.int_encoding import int_column

Value: TypeAlias = Any
"""An Arrow array, or a scalar that stands for every row."""
Compute: TypeAlias = Callable[[pa.RecordBatch], Value]
Fold: TypeAlias = Callable[[Typed], pa.Scalar]
"""The value of an expression without columns, as the database gives it."""
Construct: TypeAlias = Callable[..., Value]
"""A function of the operands' values."""
Make: TypeAlias = Callable[[Typed], Construct]
"""What makes the function of one use of a construct, or raises Unsupported."""


def compile_scalar(text: str, schema: Schema, fold: Fold) -> tuple[Compute, Type]:
    """What computes a text over the columns of a schema, and its type; else Unsupported."""
    node = annotate(text, schema)
    places = {column.name: place for place, column in enumerate(schema)}
    return _compile(node, places, fold), node.type or ""


def _compile(node: Typed, places: dict[str, int], fold: Fold) -> Compute:
    if node.name == "column" and node.type is not None:
        place = places[node.value or ""]
        return lambda rows: rows.column(place)
    if node.type is None or not _plain(node.type):
        raise Unsupported(node.name)
    if not _reads_columns(node):
        constant = fold(node)
        return lambda _: constant
    if node.name == "cast":
        return _as(_compile(node.args[0], places, fold), node.args[0].type or "", node.type)
    construct = _construct(node)
    parts = [
        _as(_compile(arg, places, fold), arg.type or "", to)
        for arg, to in zip(node.args, node.operands, strict=True)
    ]
    if len(parts) == 2:
        left, right = parts
        return lambda rows: construct(left(rows), right(rows))
    return lambda rows: construct(*(part(rows) for part in parts))


def _plain(type_: Type) -> bool:
    return type_ == "void" or (not is_nested(type_) and arrow_type(type_) is not None)


def _reads_columns(node: Typed) -> bool:
    return node.name in ("column", "variable") or any(map(_reads_columns, node.args))


def _as(compute: Compute, source: Type, target: Type) -> Compute:
    if source == target:
        return compute
    convert = cast(source, target)
    return lambda rows: convert(compute(rows))


def _construct(node: Typed) -> Construct:
    make = CONSTRUCTS.get(node.name)
    if make is None:
        raise Unsupported(node.name)
    return make(node)


def _exact(type_: Type) -> bool:
    return type_ in _EXACT or decimal_parts(type_) is not None


_EXACT = (*INTEGERS, "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz")
"""Types of which equal values are the same bytes, ordered by them."""


def _all_exact(node: Typed) -> None:
    if not all(map(_exact, node.operands)):
        raise _unsupported(node)


def _unsupported(node: Typed) -> Unsupported:
    return Unsupported(f"{node.name}({', '.join(node.operands)})")


def _arithmetic(integers: Construct, others: Construct) -> Make:
    """Checked for integers; plain for floats; for decimals if the result keeps all digits."""

    def make(node: Typed) -> Construct:
        if all(type_ in INTEGERS for type_ in node.operands) and node.type == node.operands[0]:
            return integers
        if all(type_ in FLOATS for type_ in node.operands) and node.type == node.operands[0]:
            return others
        if all(map(decimal_parts, node.operands)):
            return decimals.exact(node, others)
        raise _unsupported(node)

    return make


def _quotient(node: Typed) -> Construct:
    if not all(map(decimal_parts, node.operands)):
        raise _unsupported(node)
    return decimals.quotient(node.operands, node.type or "")


def _pmod(node: Typed) -> Construct:
    """The remainder of integers by a positive number that is written out."""
    literal = node.literals[1] or ""
    if any(type_ not in INTEGERS for type_ in node.operands) or node.type != node.operands[0]:
        raise _unsupported(node)
    if not literal.isascii() or not literal.isdecimal() or int(literal) == 0:
        raise Unsupported(node.name)
    divisor = int(literal)

    def remainder(values: Value, _divisor: Value) -> Value:
        if not isinstance(values, pa.Array):
            raise Unsupported(node.name)
        if not values.null_count:
            return int_column(values.to_numpy() % divisor)
        filled = values.fill_null(0).to_numpy() % divisor
        return pa.array(filled, mask=values.is_null().to_numpy(zero_copy_only=False))

    return remainder


def _comparison(compare: Construct) -> Make:
    """NaN equals itself in Spark, so fractions are compared here only where there is none."""

    def make(node: Typed) -> Construct:
        if any(type_ in FLOATS for type_ in node.operands):
            return lambda left, right: compare(_no_nan(left), _no_nan(right))
        _all_exact(node)
        return compare

    return make


def _no_nan(values: Value) -> Value:
    if pc.any(pc.is_nan(values)).as_py():
        raise Unsupported("NaN")
    return values


def _same(left: Value, right: Value) -> Value:
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(both, pc.fill_null(pc.equal(left, right), fill_value=False))


def _null_safe(negate: bool) -> Make:
    def make(node: Typed) -> Construct:
        _all_exact(node)
        return (lambda left, right: pc.invert(_same(left, right))) if negate else _same

    return make


def _membership(node: Typed) -> Construct:
    _all_exact(node)
    return lambda value, *others: reduce(pc.or_kleene, (pc.equal(value, other) for other in others))


def _either(test: Value, yes: Value, no: Value) -> Value:
    """One value where a test is true, another where it is not; often it is the same for all."""
    if isinstance(test, pa.Array):
        count = test.true_count
        if count == 0 and isinstance(no, pa.Array):
            return no
        if count == len(test) and isinstance(yes, pa.Array):
            return yes
    return pc.if_else(pc.fill_null(test, fill_value=False), yes, no)


def _unless_zero(counts: Value) -> Value:
    """Counts, null instead of zero."""
    return _either(pc.equal(counts, 0), pa.scalar(None, counts.type), counts)


def _case(_node: Typed) -> Construct:
    def choose(*parts: Value) -> Value:
        *pairs, chosen = parts
        for test, value in reversed(list(zip(pairs[0::2], pairs[1::2], strict=True))):
            chosen = _either(test, value, chosen)
        return chosen

    return choose


def _extreme(function: Construct) -> Make:
    def make(node: Typed) -> Construct:
        _all_exact(node)
        if {"timestamp", "boolean"} & set(node.operands):  # Arrow has no such function of them
            raise Unsupported(node.name)
        return lambda *values: function(*values, skip_nulls=True)

    return make


_NO_ESCAPE = (None, "", "\\")


def _like(negate: bool) -> Make:
    """Patterns of text and % alone."""

    def make(node: Typed) -> Construct:
        pattern = node.literals[1]
        if pattern is None or "_" in pattern or "\\" in pattern or node.value not in _NO_ESCAPE:
            raise Unsupported("like")

        def match(values: Value, _pattern: Value) -> Value:
            matches = pc.match_like(values, pattern=pattern)
            return pc.invert(matches) if negate else matches

        return match

    return make


def _date_part(function: Construct) -> Make:
    def make(node: Typed) -> Construct:
        if node.operands != ("date",) or node.type != "int":
            raise _unsupported(node)
        return lambda dates: pc.cast(function(dates), pa.int32())

    return make


def _substring(node: Typed) -> Construct:
    if node.operands != ("string", "int", "int") or None in node.literals[1:]:
        raise Unsupported("substring")
    start, length = (int(literal or 0) for literal in node.literals[1:])
    if start < 1 or length < 0:
        raise Unsupported("substring")
    return lambda texts, *_: pc.utf8_slice_codeunits(
        texts, start=start - 1, stop=start - 1 + length
    )


def _single(_node: Typed) -> Construct:
    """The value of a subquery that has one row at most; several are an error."""

    def only(count: Value, value: Value) -> Value:
        if pc.any(pc.greater(count, 1)).as_py():
            raise Unsupported("several rows")
        return value

    return only


def _average_double(_node: Typed) -> Construct:
    """A total beyond a bigint is divided in two parts, which is left to the database."""

    def average(total: Value, count: Value) -> Value:
        whole = pc.cast(pc.cast(total, pa.int64()), pa.float64(), safe=False)
        under = pc.cast(_unless_zero(count), pa.float64(), safe=False)
        return pc.divide(whole, under)

    return average


def _average_decimal(node: Typed) -> Construct:
    divide = decimals.quotient((node.operands[0], "decimal(19,0)"), node.type or "")

    def average(total: Value, count: Value, *_: Value) -> Value:
        return divide(total, pc.cast(_unless_zero(count), pa.decimal128(19, 0)))

    return average


def _simple(function: Construct) -> Make:
    return lambda _node: function


def _of_texts(function: Construct) -> Make:
    def make(node: Typed) -> Construct:
        if any(type_ != "string" for type_ in node.operands):
            raise _unsupported(node)
        return function

    return make


CONSTRUCTS: dict[str, Make] = {
    "+": _arithmetic(pc.add_checked, pc.add),
    "-": _arithmetic(pc.subtract_checked, pc.subtract),
    "*": _arithmetic(pc.multiply_checked, pc.multiply),
    "/": _quotient,
    "pmod": _pmod,
    "=": _comparison(pc.equal),
    "<>": _comparison(pc.not_equal),
    "<": _comparison(pc.less),
    "<=": _comparison(pc.less_equal),
    ">": _comparison(pc.greater),
    ">=": _comparison(pc.greater_equal),
    "<=>": _null_safe(negate=False),
    "is distinct from": _null_safe(negate=True),
    "and": _simple(pc.and_kleene),
    "or": _simple(pc.or_kleene),
    "not": _simple(pc.invert),
    "is null": _simple(lambda values: pc.is_null(values)),
    "is not null": _simple(lambda values: pc.is_valid(values)),
    "is true": _simple(lambda values: pc.fill_null(values, fill_value=False)),
    "is false": _simple(lambda values: pc.invert(pc.fill_null(values, fill_value=True))),
    "in": _membership,
    "case": _case,
    "coalesce": _simple(lambda *values: pc.coalesce(*values)),
    "greatest": _extreme(pc.max_element_wise),
    "least": _extreme(pc.min_element_wise),
    "like": _like(negate=False),
    "not like": _like(negate=True),
    "year": _date_part(pc.year),
    "month": _date_part(pc.month),
    "day": _date_part(pc.day),
    "substring": _substring,
    "concat": _of_texts(lambda *texts: pc.binary_join_element_wise(*texts, "")),
    "length": _of_texts(lambda texts: pc.utf8_length(texts)),
    "ev_single": _single,
    "ev_avg_double": _average_double,
    "ev_avg_decimal": _average_decimal,
}
"""Per construct, what makes the function of its operands' values, or raises Unsupported."""
