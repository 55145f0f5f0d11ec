"""The canonical form of expressions: two with the same one are equal for Spark.

Spark reorders the operands of commutative operators before it compares two expressions, so
`a + b` and `b + a` are one key of GROUP BY.
"""

from __future__ import annotations

from sqlglot import exp

from everview.expr import scalar

_CHAINS = (exp.Add, exp.Mul, exp.And, exp.Or, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
"""Commutative and associative operators."""
_PAIRS = (exp.EQ, exp.NEQ, exp.NullSafeEQ)
_MIRRORED: dict[type[exp.Expr], type[exp.Binary]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}
"""Comparisons that are replaced by the one with exchanged sides."""
_NEGATED: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.EQ: exp.NEQ,
}
"""The comparison that is NOT of another."""


def canonical_text(tree: exp.Expr) -> str:
    """A text that is the same for expressions that are equal for Spark.

    >>> canonical_text(scalar.parse("b + (1 + a) > c"))
    '`c` < (1 + `a` + `b`)'
    """
    return scalar.text(_canonical(tree.copy()))


def _canonical(tree: exp.Expr) -> exp.Expr:
    node = tree.unnest()
    inner = node.this.unnest() if isinstance(node, exp.Not) else node
    if inner is not node and isinstance(inner, exp.Binary) and type(inner) in _NEGATED:
        node = _NEGATED[type(inner)](this=inner.left, expression=inner.right)
    if isinstance(node, exp.Binary) and type(node) in _MIRRORED:
        node = _MIRRORED[type(node)](this=node.right, expression=node.left)
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"])
        node = exp.And(this=low, expression=exp.LTE(this=node.this, expression=node.args["high"]))
    if isinstance(node, _CHAINS):
        operands = sorted(map(_operand, _chained(node, type(node))), key=scalar.text)
        chain = operands[0]
        for each in operands[1:]:
            chain = type(node)(this=chain, expression=each)
        return chain
    if isinstance(node, _PAIRS):
        left, right = sorted((_operand(node.left), _operand(node.right)), key=scalar.text)
        return type(node)(this=left, expression=right)
    return _with_parts(node)


def _with_parts(node: exp.Expr) -> exp.Expr:
    """The node with its parts in canonical form."""
    result = node.copy()
    for name, value in node.args.items():
        if isinstance(value, exp.Expr):
            result.set(name, _operand(value))
        elif isinstance(value, list):
            parts = [_operand(each) if isinstance(each, exp.Expr) else each for each in value]
            result.set(name, parts)
    if isinstance(result, exp.Greatest | exp.Least):
        values = (_values(each, type(result)) for each in (result.this, *result.expressions))
        first, *others = sorted((v for each in values for v in each), key=scalar.text)
        result.set("this", first)
        result.set("expressions", others)
    if isinstance(result, exp.In) and result.expressions:
        result.set("expressions", sorted(result.expressions, key=scalar.text))
    return result


def _values(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The arguments of a nested GREATEST or LEAST, which are merged into the outer one."""
    return [node.this, *node.expressions] if type(node) is kind else [node]


def _operand(node: exp.Expr) -> exp.Expr:
    operand = _canonical(node)
    operator = isinstance(operand, exp.Binary | exp.Unary) and not isinstance(operand, exp.Dot)
    return exp.Paren(this=operand) if operator else operand


def _chained(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """The operands of a chain of one operator: a, b, c of a + (b + c)."""
    bare = node.unnest()
    if type(bare) is not kind or not isinstance(bare, exp.Binary):
        return [bare]
    return [*_chained(bare.left, kind), *_chained(bare.right, kind)]
