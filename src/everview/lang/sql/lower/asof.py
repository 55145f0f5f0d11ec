"""ASOF JOIN: each row with the nearest one of the other side, as a LATERAL that keeps the first."""

from __future__ import annotations

from sqlglot import exp

from everview.errors import Span, UserError
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.bind.scope import Scope
from everview.lang.sql.parse.span import span_of

_DESCENDS: dict[type[exp.Expr], bool] = {
    exp.GTE: True,
    exp.GT: True,
    exp.LTE: False,
    exp.LT: False,
}
"""Left ≥ right: of the rows that come before, the latest is the nearest."""


def asof_subquery(
    node: exp.Join, alias: str, conditions: list[exp.Expr], right: Scope, text: str
) -> exp.Lateral:
    """The rows of the right side that match, the nearest first, and of them the first.

    Where several are equally near, LIMIT takes them in the order of all their columns.
    """
    match = node.args.get("match_condition")
    if match is None or type(match) not in _DESCENDS:
        raise UserError(
            "Q001",
            "syntax error: ASOF JOIN needs a MATCH_CONDITION with >=, >, <= or <",
            span=span_of(match or node, text) or Span(text, 0, len(text)),
            remedy="write MATCH_CONDITION (a.at >= b.at)",
        )
    descends = _DESCENDS[type(match)]
    left, nearest = match.this, match.expression
    if _speaks_of(left, right) and not _speaks_of(nearest, right):
        left, nearest, descends = nearest, left, not descends
    if isinstance(left, exp.Tuple) or isinstance(nearest, exp.Tuple):
        raise refused("a MATCH_CONDITION of several values", match, text, "compare one value")
    if _speaks_of(left, right):
        remedy = "compare a value of the left side with one of the right side"
        raise refused("this MATCH_CONDITION", match, text, remedy)
    item = node.this.copy()
    found = exp.Select(expressions=[exp.Star()]).from_(item)
    found = found.where(match.copy(), *(each.copy() for each in conditions), copy=False)
    first = exp.Ordered(this=nearest.copy(), desc=descends, nulls_first=not descends)
    found.set("order", exp.Order(expressions=[first]))
    found.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    name = exp.TableAlias(this=exp.Identifier(this=alias, quoted=True))
    return exp.Lateral(this=exp.Subquery(this=found), alias=name)


def _speaks_of(tree: exp.Expr, right: Scope) -> bool:
    """Whether an expression has a column of the right side."""
    return any(right.find(column) is not None for column in tree.find_all(exp.Column))
