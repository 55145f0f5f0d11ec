"""NOT over AND, OR and IN (subquery), pushed down to the leaves of a condition.

Spark takes an IN and a NOT IN whose value is unknown for false, after NOT was pushed down to them.
So NOT (a > 5 OR a IN (…)) means a <= 5 AND a NOT IN (…), which is not NOT of a false IN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

NegationOf = Callable[[exp.Expr], exp.Expr | None]
"""NOT IN for an IN, and IN for a NOT IN; None for anything else."""
CteQuery = Callable[[exp.Expr], exp.Expr | None]
"""The query that WITH gives the name of a table, None for other tables."""
STAR_MAX_COLUMNS = 10_000
"""More columns than `*` can stand for."""


def push_not(tree: exp.Expr, negation_of: NegationOf) -> exp.Expr:
    """The expression with every NOT above an IN moved to it, by De Morgan's laws.

    A condition compared with TRUE or FALSE is the condition itself or its negation.
    """
    result = tree.copy()
    # Inner ones first, so that what a NOT stands over has none left above an IN.
    for node in reversed(list(result.walk())):
        pushed = _pushed(node, negation_of)
        if node is result:
            result = pushed
        elif pushed is not node:
            node.replace(pushed)
    return result


def has_in(tree: exp.Expr) -> bool:
    """Whether a condition is an IN (subquery), alone or joined with others by AND, OR and NOT."""
    return _negated(tree, lambda node: node if _is_in(node) else None) is not None


def _is_in(node: exp.Expr) -> bool:
    return isinstance(node, exp.In) and bool(node.args.get("query"))


def columns_without_negation(tree: exp.Expr, cte_query: CteQuery) -> frozenset[int]:
    """The positions of columns of a query that hold IN (subquery) without its negation beside.

    Where DISTINCT, LIMIT or a set operation merges or drops rows, the column for the negation
    cannot be carried along, and NOT of the column would be wrong.
    """
    match tree:
        case exp.Subquery():
            return columns_without_negation(tree.this, cte_query)
        case exp.SetOperation():
            left = columns_without_negation(tree.left, cte_query)
            return left | columns_without_negation(tree.right, cte_query)
        case exp.Select():
            through = _names_without_negation(tree, cte_query)
            return frozenset(
                at + further
                for at, node in enumerate(tree.expressions)
                for further in _positions(node, through)
            )
        case _:
            return frozenset()


def _names_without_negation(tree: exp.Select, cte_query: CteQuery) -> frozenset[str]:
    """The names in lower case of such columns of the items in FROM; a star is any name."""
    start, joins = tree.args.get("from_"), tree.args.get("joins") or ()
    names: set[str] = set()
    for item in (*([start.this] if start else ()), *(each.this for each in joins)):
        query = item.this if isinstance(item, exp.Subquery) else cte_query(item)
        if not isinstance(query, exp.Query) or query is tree:
            continue
        given = item.args["alias"].columns if item.alias else ()
        columns = [each.name for each in given] or query.named_selects
        positions = columns_without_negation(query, _without(query, cte_query))
        names.update(columns[at] for at in positions if at < len(columns))
    return frozenset(name.lower() for name in names)


def _without(query: exp.Expr, cte_query: CteQuery) -> CteQuery:
    """The queries that names stand for inside a query: its own name stands for another there."""

    def found(node: exp.Expr) -> exp.Expr | None:
        other = cte_query(node)
        return None if other is query else other

    return found


def _positions(node: exp.Expr, through: frozenset[str]) -> Iterable[int]:
    """Where a column of the SELECT list has an IN, counted from its own position.

    Which columns a star stands for is not known here: it may be any.
    """
    if node.is_star:
        return range(STAR_MAX_COLUMNS) if through else ()
    read = {column.name.lower() for column in node.unalias().find_all(exp.Column)}
    holds_in = has_in(node.unalias()) or read & through or (read and "*" in through)
    return (0,) if holds_in else ()


def _pushed(node: exp.Expr, negation_of: NegationOf) -> exp.Expr:
    match node:
        case exp.Not():
            return _negated(node.this, negation_of) or node
        case exp.EQ() | exp.NEQ():
            for condition, other in ((node.left, node.right), (node.right, node.left)):
                denied = _negated(condition, negation_of)
                value = _constant(other) if denied is not None else None
                if denied is not None and value is not None:
                    return condition.copy() if value == isinstance(node, exp.EQ) else denied
            return node
        case exp.Case(this=exp.Expr() as operand) if _negated(operand, negation_of) is not None:
            # CASE condition WHEN TRUE … compares the condition with each value.
            searched = node.copy()
            searched.set("this", None)
            for branch in searched.args["ifs"]:
                equal = exp.EQ(this=exp.Paren(this=operand.copy()), expression=branch.this)
                branch.set("this", _pushed(equal, negation_of))
            return searched
        case _:
            return node


def _negated(node: exp.Expr, negation_of: NegationOf) -> exp.Expr | None:
    """NOT of a condition that joins an IN with others, None for any other expression."""
    match node:
        case exp.Paren():
            return _negated(node.this, negation_of)
        case exp.Not():
            held = node.this.unnest()
            return node.this.copy() if _negated(held, negation_of) is not None else None
        case exp.And() | exp.Or():
            left, right = _negated(node.left, negation_of), _negated(node.right, negation_of)
            if left is None and right is None:
                return None
            joined = exp.Or if isinstance(node, exp.And) else exp.And
            return exp.Paren(
                this=joined(this=left or _not(node.left), expression=right or _not(node.right))
            )
        case _:
            return negation_of(node)


def _not(node: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Paren(this=node.unnest().copy()))


def _constant(node: exp.Expr) -> bool | None:
    """Whether a condition of literals is true, None for any other expression."""
    if node.find(exp.Column, exp.Func, exp.Query) is not None:
        return None
    literal = simplify(node.unnest().copy())
    return bool(literal.this) if isinstance(literal, exp.Boolean) else None
