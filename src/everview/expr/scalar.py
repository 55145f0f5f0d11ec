"""Scalar expressions as canonical Spark text: reading, printing, and editing by column name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from sqlglot import exp, parse_one

from everview.expr.dialect import DIALECT


@lru_cache(maxsize=8192)
def parse(text: str) -> exp.Expr:
    """The tree of a scalar text. Shared: copy it before an edit."""
    tree = parse_one(text, read=DIALECT)
    assert isinstance(tree, exp.Expr)
    return tree


def text(tree: exp.Expr) -> str:
    """The canonical text of a tree, a fixed point: text(parse(text(t))) = text(t).

    >>> text(parse("a+1 >= 0 and b is not null"))
    '`a` + 1 >= 0 AND NOT `b` IS NULL'
    """
    return tree.sql(dialect=DIALECT, identify=True, comments=False)


@lru_cache(maxsize=8192)
def column(name: str) -> str:
    """The text of a plain column.

    >>> column("o.id")
    '`o.id`'
    """
    return text(_column_tree(name))


def as_column(text_: str) -> str | None:
    """The column's name if the text is a plain column, else None."""
    tree = _bare(parse(text_))
    return tree.name if isinstance(tree, exp.Column) and not tree.table else None


@lru_cache(maxsize=8192)
def columns(text_: str) -> frozenset[str]:
    """The names of the columns used.

    >>> sorted(columns("`o.id` + b * 2"))
    ['b', 'o.id']
    """
    return frozenset(node.name for node in parse(text_).find_all(exp.Column))


def substitute(text_: str, mapping: Mapping[str, str]) -> str:
    """The text with columns replaced by expressions, each in parentheses where it needs them.

    >>> substitute("a * b", {"a": "x + 1"})
    '(`x` + 1) * `b`'
    """

    def replaced(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.name not in mapping:
            return node
        new = parse(mapping[node.name]).copy()
        return exp.Paren(this=new) if _binds(node.parent) and _binds(new) else new

    if not columns(text_) & mapping.keys():
        return text_
    return text(parse(text_).transform(replaced))


def rename(text_: str, mapping: Mapping[str, str]) -> str:
    """The text with columns renamed."""
    return substitute(text_, {old: column(new) for old, new in mapping.items()})


def conjuncts(text_: str) -> tuple[str, ...]:
    """The parts of an AND, in order; a text without AND is its only part.

    What all sides of an OR have in common is a part: (A ∧ B) ∨ (A ∧ C) = A ∧ (B ∨ C).

    >>> conjuncts("a AND (b AND (c OR d))")
    ('`a`', '`b`', '`c` OR `d`')
    >>> conjuncts("(a AND b) OR (c AND a AND d)")
    ('`a`', '(`b`) OR (`c` AND `d`)')
    """
    return tuple(_parts(parse(text_)))


def _parts(tree: exp.Expr) -> Iterable[str]:
    tree = _bare(tree)
    if isinstance(tree, exp.And):
        yield from _parts(tree.this)
        yield from _parts(tree.expression)
        return
    sides = [tuple(_parts(side)) for side in tree.flatten()] if isinstance(tree, exp.Or) else []
    common = [part for part in sides[0] if all(part in side for side in sides)] if sides else []
    if not common:
        yield text(tree)
        return
    yield from common
    rest = [conjunction(part for part in side if part not in common) for side in sides]
    if all(rest):
        yield canonical(" OR ".join(f"({each})" for each in rest))


def conjunction(texts: Iterable[str]) -> str | None:
    """All texts joined by AND, None when there are none.

    >>> conjunction(["a OR b", "c"])
    '(`a` OR `b`) AND `c`'
    """
    trees = [parse(part) for part in texts]
    wrapped = [f"({text(tree)})" if isinstance(tree, exp.Or) else text(tree) for tree in trees]
    return " AND ".join(wrapped) or None


def is_constant(text_: str) -> bool:
    """Whether the text has one value, whatever the row, the session and the moment.

    >>> is_constant("1 + 2"), is_constant("a"), is_constant("rand()")
    (True, False, False)
    """
    return not any(
        isinstance(node, _ROW_DEPENDENT) or is_volatile(node) for node in parse(text_).walk()
    )


_ROW_DEPENDENT = (exp.Column, exp.Query, exp.AggFunc, exp.Window, exp.Star, exp.Subquery)
_VOLATILE_NODES = (
    exp.Rand,
    exp.Randn,
    exp.Uuid,
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.CurrentDatetime,
    exp.CurrentUser,
    exp.CurrentTimezone,
)
_VOLATILE_NAMES = frozenset(
    [
        "now",
        "curdate",
        "random",
        "rand",
        "randn",
        "randstr",
        "uniform",
        "shuffle",
        "uuid",
        "monotonically_increasing_id",
        "spark_partition_id",
        "input_file_name",
        "localtimestamp",
        "current_catalog",
        "current_database",
        "current_schema",
        "session_user",
        "user",
        "version",
    ]
)


def is_volatile(node: exp.Expr) -> bool:
    """Whether a call gives another answer in another session or at another moment."""
    if isinstance(node, exp.Anonymous):
        name = node.name.lower()
        return name in _VOLATILE_NAMES or (name == "unix_timestamp" and not node.expressions)
    return isinstance(node, _VOLATILE_NODES)


def _bare(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    return tree


def _column_tree(name: str) -> exp.Column:
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


_OPERATORS = (
    exp.Binary,
    exp.Unary,
    exp.Between,
    exp.In,
    exp.Is,
    exp.Connector,
    exp.Interval,
    exp.Bracket,
    exp.Escape,
)


def _binds(node: exp.Expr | None) -> bool:
    """Whether the node is printed with an operator, so that precedence matters around it."""
    return isinstance(node, _OPERATORS) and not isinstance(node, exp.Paren)


def canonical(text_: str) -> str:
    """The canonical spelling of a scalar text."""
    return text(parse(text_))


def equality(text_: str, *, nulls: bool = False) -> tuple[str, str] | None:
    """The two sides of `a = b`, or of `a <=> b` where NULL is to equal NULL, else None."""
    tree, wanted = _bare(parse(text_)), exp.NullSafeEQ if nulls else exp.EQ
    return (text(tree.this), text(tree.expression)) if isinstance(tree, wanted) else None


def never_null_operand(condition: str) -> exp.Expr | None:
    """What `x IS NOT NULL` looks at; None for any other condition."""
    match parse(condition):
        case exp.Not(this=exp.Is(this=exp.Expr() as operand, expression=exp.Null())):
            return operand
        case _:
            return None


def whole_number(node: exp.Expr | None) -> int | None:
    """The value of an expression of integer literals, None for any other expression.

    >>> whole_number(parse("-(2 * 3)"))
    -6
    """
    match node:
        case exp.Literal(is_string=False) if node.name.isdigit():
            return int(node.name)
        case exp.Paren():
            return whole_number(node.this)
        case exp.Cast() if node.to.this is exp.DType.INT:
            return whole_number(node.this)
        case exp.Neg():
            inner = whole_number(node.this)
            return None if inner is None else -inner
        case exp.Add() | exp.Sub() | exp.Mul():
            left, right = whole_number(node.this), whole_number(node.expression)
            if left is None or right is None:
                return None
            return {exp.Add: left + right, exp.Sub: left - right, exp.Mul: left * right}[type(node)]
        case _:
            return None
