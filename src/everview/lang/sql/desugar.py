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
        case exp.Predicate(expression=exp.Any(this=exp.Query() as query)) if (
            type(node) in _OTHERWISE
        ):
            every = _OTHERWISE[type(node)](this=node.this, expression=exp.All(this=query))
            return exp.Not(this=every)
        case exp.Select():
            return _moved(node)
        case _:
            return node


_OTHERWISE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.NEQ: exp.EQ,
}
"""A comparison holds for ANY row if the opposite one does not hold for ALL."""


def _moved(node: exp.Select) -> exp.Select:
    """Subqueries in ON of inner joins stand in WHERE, where no later join keeps lonely rows."""
    for join in reversed(node.args.get("joins") or ()):
        if str(join.args.get("side") or "").upper() in ("RIGHT", "FULL"):
            break
        on = join.args.get("on")
        if on is None or any(join.args.get(p) for p in ("side", "using", "method")):
            continue
        if str(join.args.get("kind") or "INNER").upper() not in ("INNER", "CROSS"):
            continue
        parts = list(on.flatten()) if isinstance(on, exp.And) else [on]
        asking = [part for part in parts if part.find(exp.Query)]
        if asking:
            plain = [part.copy() for part in parts if part not in asking]
            join.set("on", exp.and_(*plain) if plain else None)
            node.where(*asking, copy=False)
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
