"""Forms of aggregates that are other ways to write simpler ones."""

from __future__ import annotations

from sqlglot import exp

_NAMED: dict[str, type[exp.AggFunc]] = {
    "every": exp.LogicalAnd,
    "some": exp.LogicalOr,
}


def desugared(tree: exp.Expr) -> exp.Expr:
    """The query without FILTER clauses, COUNT_IF and second names of aggregates."""
    made = tree.copy()
    # Inner ones first: what is replaced may stand inside what is replaced.
    for node in reversed(list(made.walk())):
        simpler = _simpler(node)
        if node is made:
            made = simpler
        elif simpler is not node:
            node.replace(simpler)
    return made


def _simpler(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.Filter(this=exp.AggFunc() as call):
            return _filtered(call, node.expression.this)
        case exp.CountIf():
            return exp.Count(this=_when(node.this, exp.Literal.number(1)))
        case exp.Anonymous() if node.name.lower() in _NAMED and len(node.expressions) == 1:
            return _NAMED[node.name.lower()](this=node.expressions[0])
        case exp.Any() if not node.find(exp.Query):
            return exp.LogicalOr(this=node.this)
        case _:
            return node


def _filtered(call: exp.AggFunc, condition: exp.Expr) -> exp.Expr:
    """An aggregate of the rows that satisfy a condition: the others bring NULL."""
    if isinstance(call, exp.CountIf):
        return exp.Count(this=_when(exp.and_(call.this, condition), exp.Literal.number(1)))
    argument = call.this
    if isinstance(argument, exp.Distinct):
        kept = [_when(condition, each) for each in argument.expressions]
        return type(call)(this=exp.Distinct(expressions=kept))
    if isinstance(argument, exp.Star):
        argument = exp.Literal.number(1)
    return type(call)(**{**call.args, "this": _when(condition, argument)})


def _when(condition: exp.Expr, value: exp.Expr) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])
