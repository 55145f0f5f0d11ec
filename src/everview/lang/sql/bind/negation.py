"""NOT over AND, OR and IN (subquery), moved to the leaves of a condition.

Spark takes an IN and a NOT IN that are not known for false, once NOT has been pushed to them. So
NOT (a > 5 OR a IN (…)) means a <= 5 AND a NOT IN (…), and is not the opposite of a false IN.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

Opposite = Callable[[exp.Expr], exp.Expr | None]


def push_not(tree: exp.Expr, opposite: Opposite) -> exp.Expr:
    """The expression with every NOT above an IN moved to it, by De Morgan's laws.

    `opposite` gives NOT IN for an IN and IN for a NOT IN, and None for anything else. A condition
    compared with TRUE or FALSE is the condition itself or its opposite.
    """
    made = tree.copy()
    # Inner ones first, so that what a NOT stands over has none left above an IN.
    for node in reversed(list(made.walk())):
        pushed = _pushed(node, opposite)
        if node is made:
            made = pushed
        elif pushed is not node:
            node.replace(pushed)
    return made


def has_in(tree: exp.Expr) -> bool:
    """Whether a condition joins an IN (subquery) with others."""
    return _negated(tree, lambda node: node if _is_in(node) else None) is not None


def _is_in(node: exp.Expr) -> bool:
    return isinstance(node, exp.In) and bool(node.args.get("query"))


def _pushed(node: exp.Expr, opposite: Opposite) -> exp.Expr:
    match node:
        case exp.Not():
            return _negated(node.this, opposite) or node
        case exp.EQ() | exp.NEQ():
            for condition, other in ((node.left, node.right), (node.right, node.left)):
                denied = _negated(condition, opposite)
                known = _known(other) if denied is not None else None
                if denied is not None and known is not None:
                    return condition.copy() if known == isinstance(node, exp.EQ) else denied
            return node
        case exp.Case(this=exp.Expr() as operand) if _negated(operand, opposite) is not None:
            # CASE condition WHEN TRUE … compares the condition with each value.
            made = node.copy()
            made.set("this", None)
            for branch in made.args["ifs"]:
                equal = exp.EQ(this=exp.Paren(this=operand.copy()), expression=branch.this)
                branch.set("this", _pushed(equal, opposite))
            return made
        case _:
            return node


def _negated(node: exp.Expr, opposite: Opposite) -> exp.Expr | None:
    """NOT of a condition that joins an IN with others, None for any other expression."""
    match node:
        case exp.Paren():
            return _negated(node.this, opposite)
        case exp.Not():
            held = node.this.unnest()
            return node.this.copy() if _negated(held, opposite) is not None else None
        case exp.And() | exp.Or():
            left, right = _negated(node.left, opposite), _negated(node.right, opposite)
            if left is None and right is None:
                return None
            joined = exp.Or if isinstance(node, exp.And) else exp.And
            return exp.Paren(
                this=joined(this=left or _not(node.left), expression=right or _not(node.right))
            )
        case _:
            return opposite(node)


def _not(node: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Paren(this=node.unnest().copy()))


def _known(node: exp.Expr) -> bool | None:
    """Whether a condition of literals is true, None for any other expression."""
    if node.find(exp.Column, exp.Func, exp.Query) is not None:
        return None
    literal = simplify(node.unnest().copy())
    return bool(literal.this) if isinstance(literal, exp.Boolean) else None
