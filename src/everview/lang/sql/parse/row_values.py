"""Row values, such as `(i, j) = (2, 20)`, as comparisons of their values, by SQL's rules.

A comparison looks at pairs from left to right, as PostgreSQL's does: what the first unequal pair
says counts, and a NULL in the pair that decides makes the answer unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from sqlglot import exp

from everview.errors import UserError
from everview.lang.sql.parse.span import span_of

IS_NOT = "is not"
"""The mark of `row IS NOT NULL`, which is another question than `NOT row IS NULL`."""
_ORDERED: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.LT: exp.LT,
    exp.LTE: exp.LT,
    exp.GT: exp.GT,
    exp.GTE: exp.GT,
}
"""By the comparison of two rows, the one of a pair that decides before the last."""
_EQUAL = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ)


def without_row_values(tree: exp.Expr, text: str) -> exp.Expr:
    """The tree with every comparison of row values written out; others are left as they are."""
    if tree.find(exp.Tuple) is None:
        return tree
    for update in list(tree.find_all(exp.Update, exp.OnConflict)):
        pairs = [each for pair in update.expressions for each in _assignments(pair, text)]
        update.set("expressions", pairs)
    for node in reversed(list(tree.walk())):  # a row value may hold others
        written = _written_out(node, text)
        if written is not None and node is tree:
            tree = written
        elif written is not None:
            node.replace(written)
    return tree


def must_not_ask_rows(tree: exp.Expr, text: str) -> None:
    """Refuse `row IS NOT NULL` where a parser takes it for `NOT row IS NULL`."""
    for node in tree.find_all(exp.Is):
        if isinstance(node.this, exp.Tuple) and isinstance(node.parent, exp.Not):
            raise UserError(
                "Q012",
                "in another dialect, a row IS NOT NULL cannot be told from NOT a row IS NULL",
                span=span_of(node, text),
                remedy="ask each value: a IS NOT NULL AND b IS NOT NULL",
            )


def _written_out(node: exp.Expr, text: str) -> exp.Expr | None:
    match node:
        case exp.In() if isinstance(node.parent, exp.Pivot):  # names columns, and compares none
            return None
        case exp.In() if isinstance(node.this, exp.Tuple) and node.expressions:
            if not all(isinstance(each, exp.Tuple) for each in node.expressions):
                _must_be_no_value(node.this, node.expressions, text)
                return None
            return _any([_compared(exp.EQ, node.this, each, text) for each in node.expressions])
        case exp.Not(this=exp.Is(this=exp.Tuple() as row, expression=exp.Null())):
            return _each_is(row, missing=False) if IS_NOT in node.meta else None
        case exp.Is(this=exp.Tuple() as row, expression=exp.Null()):
            of_not = isinstance(node.parent, exp.Not) and IS_NOT in node.parent.meta
            return None if of_not else _each_is(row, missing=True)
        case exp.Between() if isinstance(node.this, exp.Tuple):
            low, high = node.args["low"], node.args["high"]
            if not isinstance(low, exp.Tuple) or not isinstance(high, exp.Tuple):
                return None
            return exp.paren(
                exp.and_(
                    _compared(exp.GTE, node.this, low, text),
                    _compared(exp.LTE, node.this, high, text),
                    copy=False,
                ),
                copy=False,
            )
        case exp.Binary() if type(node) in (*_ORDERED, *_EQUAL):
            if isinstance(node.left, exp.Tuple) and isinstance(node.right, exp.Tuple):
                return _compared(type(node), node.left, node.right, text)
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(side, exp.Tuple):
                    _must_be_no_value(side, [other], text)
        case exp.Is(this=exp.Tuple() as row, expression=exp.Boolean() as value):
            _must_be_no_value(row, [value], text)
    return None


def _must_be_no_value(row: exp.Tuple, others: Iterable[exp.Expr], text: str) -> None:
    """Refuse a constant beside a row: what is no constant may be a struct."""
    for other in others:
        if isinstance(other, exp.Literal | exp.Boolean | exp.Null | exp.Neg):
            raise UserError(
                "Q012",
                f"a row of {len(row.expressions)} values stands beside one that is no row",
                span=span_of(other, text) or span_of(row, text),
                remedy="give a row in parentheses, with as many values",
            )


def _each_is(row: exp.Tuple, *, missing: bool) -> exp.Expr:
    """A row IS NULL if each of its values is, and IS NOT NULL if none of them is."""
    tests = [exp.Is(this=exp.paren(each.copy()), expression=exp.Null()) for each in row.expressions]
    return exp.paren(exp.and_(*(each if missing else exp.Not(this=each) for each in tests)))


def _compared(kind: type[exp.Expr], left: exp.Tuple, right: exp.Tuple, text: str) -> exp.Expr:
    """One comparison of two rows, in parentheses."""
    pairs = list(_pairs(left, right, text))

    def compare(with_: type[exp.Expr], pair: tuple[exp.Expr, exp.Expr]) -> exp.Expr:
        operands = (
            exp.paren(each) if isinstance(each, exp.Binary) else each.copy() for each in pair
        )
        compared = with_(**dict(zip(("this", "expression"), operands, strict=True)))
        return _written_out(compared, text) or compared

    if kind in (exp.EQ, exp.NullSafeEQ):
        return exp.paren(exp.and_(*(compare(kind, pair) for pair in pairs)), copy=False)
    if kind in (exp.NEQ, exp.NullSafeNEQ):
        return exp.paren(exp.or_(*(compare(kind, pair) for pair in pairs)), copy=False)
    decides = _ORDERED[kind]

    def before(rest: exp.Expr, pair: tuple[exp.Expr, exp.Expr]) -> exp.Expr:
        tied = exp.and_(compare(exp.EQ, pair), rest, copy=False)
        return exp.paren(exp.or_(compare(decides, pair), exp.paren(tied), copy=False))

    return reduce(before, reversed(pairs[:-1]), compare(kind, pairs[-1]))


def _any(conditions: list[exp.Expr]) -> exp.Expr:
    """That one of many conditions holds, as a tree that is not deep."""
    while len(conditions) > 1:
        halves = zip(conditions[::2], [*conditions[1::2], None], strict=False)
        conditions = [
            a if b is None else exp.paren(exp.Or(this=a, expression=b), copy=False)
            for a, b in halves
        ]
    return conditions[0]


def _assignments(pair: exp.Expr, text: str) -> list[exp.Expr]:
    """SET (a, b) = (1, 2) as assignments of each column."""
    if not isinstance(pair, exp.EQ) or not isinstance(pair.left, exp.Tuple):
        return [pair]
    if not isinstance(pair.right, exp.Tuple):
        return [pair]
    return [exp.EQ(this=a, expression=b) for a, b in _pairs(pair.left, pair.right, text)]


def _pairs(left: exp.Tuple, right: exp.Tuple, text: str) -> zip[tuple[exp.Expr, exp.Expr]]:
    ours, theirs = left.expressions, right.expressions
    if len(ours) != len(theirs):
        raise UserError(
            "Q012",
            f"a row of {len(ours)} values stands beside one of {len(theirs)}",
            span=span_of(right, text) or span_of(left, text),
            remedy="give both rows the same number of values",
        )
    return zip(ours, theirs, strict=True)
