"""Parameters of statements: `?` and `:name`, each replaced by its value as a typed literal.

Values become nodes of the tree that was read, so none of them can be read as SQL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import index
from typing import TypeAlias

from sqlglot import exp

from everview import arguments
from everview.errors import Span, UserError
from everview.expr.dialect import DIALECT
from everview.expr.quoting import spark_type
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.statements import Parameters
from everview.lang.sql.parse.trees import read_trees

_INT_MAX, _BIGINT_MAX, _DECIMAL_DIGITS = 2**31 - 1, 2**63 - 1, 38
_KEYS = (exp.Ordered, exp.Group)
_TAKES = (exp.Query, exp.Values, exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Copy)


def bound(text: str, parameters: Parameters) -> str:
    """The statements of a text in Spark's dialect, with a literal for every parameter."""
    trees, tokens = read_trees(text)
    own = [text[each[0].start : each[-1].end + 1] for each in tokens]
    asks = [tree.find(exp.Placeholder) is not None for tree in trees]
    filled = bind_parameters(trees, text, parameters)
    written = zip(filled, own, asks, strict=True)
    return ";\n".join(
        tree.sql(dialect=QUERIES) if asked else as_is for tree, as_is, asked in written
    )


def bind_parameters(trees: Sequence[exp.Expr], text: str, parameters: Parameters) -> list[exp.Expr]:
    """Trees with literals in place of their parameters: each value is used, each parameter given.

    Values by position are taken in the order of the text.
    """
    must_be_parameters(parameters)
    places = [(tree, list(tree.find_all(exp.Placeholder))) for tree in trees]
    nodes = [node for _, found in places for node in found]
    for tree, found in places:
        if found and not _takes_parameters(tree):
            raise UserError(
                "Q009",
                f"{_shown(found[0])} stands in a definition, which is kept and has no parameters",
                span=_span(found[0], text),
                remedy="write the value itself",
            )
    values = (
        _by_name(nodes, text, parameters)
        if isinstance(parameters, Mapping)
        else _in_order(nodes, text, parameters)
    )
    for node in nodes:
        _must_be_value(node, text)
        node.replace(literal(values(node), _shown(node), _span(node, text)))
    return list(trees)


def must_be_parameters(parameters: object) -> None:
    """Refuse what is neither a sequence of values nor a mapping from names."""
    if isinstance(parameters, Mapping):
        arguments.mapping("params", parameters)
    elif isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence):
        raise UserError(
            "X002",
            f"params must be a list or a dict, not {arguments.shown(parameters)}",
            remedy="give [value, …] for ?, or {'name': value, …} for :name",
        )


def _takes_parameters(tree: exp.Expr) -> bool:
    """Whether a statement runs once; a query that fills a table does."""
    fills = isinstance(tree, exp.Create) and tree.args.get("kind") == "TABLE"
    return isinstance(tree, _TAKES) or (fills and isinstance(tree.expression, exp.Query))


_Values: TypeAlias = Callable[[exp.Expr], object]


def _in_order(nodes: Sequence[exp.Expr], text: str, given: Sequence[object]) -> _Values:
    named = next((node for node in nodes if node.args.get("this")), None)
    if named is not None:
        remedy = f"give a dict with {named.name!r}, or write ?"
        raise UserError(
            "Q009",
            f"{_shown(named)} has no name in params, which is a list",
            span=_span(named, text),
            remedy=remedy,
        )
    if any("start" not in node.meta for node in nodes):
        raise UserError(
            "Q009",
            "? in another dialect has no order",
            span=Span(text, 0, len(text)),
            remedy="write :name, and give a dict",
        )
    places = sorted({node.meta["start"] for node in nodes})  # a row value may have copies of one
    if len(places) != len(given):
        raise UserError(
            "Q009",
            f"{len(given)} values are given for {len(places)} parameters",
            span=Span(text, 0, len(text)),
            remedy="give one value for each ?",
        )
    values = dict(zip(places, given, strict=True))
    return lambda node: values[node.meta["start"]]


def _by_name(nodes: Sequence[exp.Expr], text: str, given: Mapping[str, object]) -> _Values:
    for node in nodes:
        if node.name not in given:
            known = f"there are {', '.join(map(arguments.named, given))}" if given else "none is"
            raise UserError(
                "Q009",
                f"params has no value for {_shown(node)}",
                span=_span(node, text),
                remedy=f"give one; {known}",
            )
    unused = sorted(set(given) - {node.name for node in nodes})
    if unused:
        raise UserError(
            "Q009",
            f"the text has no parameter :{unused[0]}",
            span=Span(text, 0, len(text)),
            remedy="leave the value out, or correct its name",
        )
    return lambda node: given[node.name]


def _must_be_value(node: exp.Expr, text: str) -> None:
    """Refuse a parameter in the place of a name, or as a key that may be taken for a position."""
    parent = node.parent
    in_name = isinstance(parent, exp.Table) and node.arg_key != "of"
    named = node.arg_key in ("alias", "db", "catalog") or in_name
    if named or isinstance(parent, _KEYS):
        raise UserError(
            "Q009",
            f"{_shown(node)} stands where a name is expected",
            span=_span(node, text),
            remedy="write the name itself: parameters are values",
        )


def literal(value: object, name: str, span: Span | None) -> exp.Expr:
    """A Python value as a literal of the type that Spark gives it."""
    match value:
        case None:
            return exp.null()
        case bool():
            return exp.Boolean(this=value)
        case str():
            return exp.Literal.string(arguments.text(f"the value of {name}", value))
        case bytes():
            return exp.HexString(this=value.hex())
        case float():
            return _cast(_float_text(value), "DOUBLE")
        case Decimal() if value.is_finite():
            _, digits, exponent = value.as_tuple()
            scale = max(-int(exponent), 0)
            precision = max(len(digits) + max(int(exponent), 0), scale, 1)
            if precision <= _DECIMAL_DIGITS:
                return _cast(f"{value:f}", f"DECIMAL({precision}, {scale})")
        case datetime() if (moment := _moment(value)) is not None:
            zone = "" if value.tzinfo is None else "+00:00"
            type_ = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
            return _cast(f"{moment.isoformat(' ')}{zone}", type_)
        case datetime():
            pass
        case date():
            return _cast(value.isoformat(), "DATE")
        case _:
            number = _whole(value)
            if number is not None:
                return number
    raise UserError(
        "Q009",
        f"{name} cannot have the value {arguments.shown(value)}",
        span=span,
        remedy="give None, a bool, int, float, Decimal, str, bytes, date or datetime",
    )


def _whole(value: object) -> exp.Expr | None:
    """A whole number as INT, BIGINT or DECIMAL, whichever it first fits."""
    try:
        number = index(value)  # type: ignore[arg-type]
    except Exception:
        return None
    if abs(number) <= _INT_MAX:
        digits = exp.Literal.number(abs(number))
        return exp.paren(exp.Neg(this=digits)) if number < 0 else digits
    if -_BIGINT_MAX - 1 <= number <= _BIGINT_MAX:
        return _cast(str(number), "BIGINT")
    if abs(number) < 10**_DECIMAL_DIGITS:
        return _cast(str(number), f"DECIMAL({len(str(abs(number)))}, 0)")
    return None


def _moment(value: datetime) -> datetime | None:
    """A moment in UTC, or without a zone as it is; None beyond the calendar and microseconds."""
    try:
        moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        return None
    # pandas has a moment that is none, and nanoseconds.
    return moment if moment == moment and not getattr(moment, "nanosecond", 0) else None


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(float(value))


def _cast(text: str, type_: str) -> exp.Expr:
    return exp.cast(exp.Literal.string(text), spark_type(type_), dialect=DIALECT)


def _shown(node: exp.Expr) -> str:
    return f":{node.name}" if node.args.get("this") else "?"


def _span(node: exp.Expr, text: str) -> Span:
    start = node.meta.get("start")
    return Span(text, 0, len(text)) if start is None else Span(text, start, node.meta["end"] + 1)
