"""Which queries have a shape in which plain Spark is known to contradict SQL.

The smallest case of each is in docs/differences-from-spark.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from sqlglot import exp

from everview.lang.sql.parse import parse_query


@lru_cache(maxsize=1024)
def fault_in(query: str) -> str:
    """The name of the fault that a query may show, empty where there is none."""
    tree = parse_query(query)
    return next((name for name, shows in FAULTS.items() if any(map(shows, tree.walk()))), "")


def _filtered_first_value(node: exp.Expr) -> bool:
    """FIRST_VALUE(…) FILTER (…) over ROWS that begin where the partition does.

    Spark keeps the first row of the partition, whether it passes the filter or not.
    """
    spec = node.args.get("spec") if isinstance(node, exp.Window) else None
    if spec is None or (spec.args.get("kind"), spec.args.get("start")) != ("ROWS", "UNBOUNDED"):
        return False
    call = node.this
    while isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    return isinstance(call, exp.Filter) and isinstance(call.this, exp.First | exp.FirstValue)


def _outer_not_in(node: exp.Expr) -> bool:
    """NOT IN of a value from outside, in a subquery that is a value or an EXISTS used as one.

    Spark moves the condition out of the subquery, where it forgets that it may be unknown.
    """
    if not isinstance(node, exp.Select) or not _is_value(node):
        return False
    where = node.args.get("where")
    own = set(_aliases(node))
    return where is not None and any(
        _reads_outside(found.this, own) for found in _denied_memberships(where, node)
    )


def _is_value(query: exp.Select) -> bool:
    """Whether a query is a scalar subquery, or an EXISTS that is no conjunct of a condition."""
    parent = query.parent
    if isinstance(parent, exp.Exists):
        return not _is_conjunct(parent)
    if not isinstance(parent, exp.Subquery):
        return False
    above = parent.parent
    return not isinstance(above, exp.From | exp.Join | exp.In | exp.Lateral | exp.CTE | None)


def _is_conjunct(node: exp.Expr) -> bool:
    """Whether a condition holds only where the node, or its negation, does."""
    parent = node.parent
    if isinstance(parent, exp.Not):
        parent = parent.parent
    while isinstance(parent, exp.And | exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Where | exp.Having | exp.Qualify | exp.Join)


def _denied_memberships(where: exp.Expr, query: exp.Select) -> Iterator[exp.In]:
    """NOT … IN (subquery) in the query's own WHERE."""
    for found in where.find_all(exp.In):
        above = found.parent
        while isinstance(above, exp.Paren):
            above = above.parent
        denied = isinstance(above, exp.Not) and found.args.get("query") is not None
        if denied and found.find_ancestor(exp.Select) is query:
            yield found


def _aliases(query: exp.Select) -> Iterator[str]:
    """The names that the query's own FROM gives."""
    start = query.args.get("from_")
    joins = [join.this for join in query.args.get("joins") or ()]
    laterals = query.args.get("laterals") or ()
    for item in (*((start.this,) if start else ()), *joins, *laterals):
        yield item.alias_or_name.lower()


def _reads_outside(value: exp.Expr, own: set[str]) -> bool:
    return any(c.table and c.table.lower() not in own for c in value.find_all(exp.Column))


FAULTS: dict[str, Callable[[exp.Expr], bool]] = {
    "FIRST_VALUE with FILTER over ROWS from the start": _filtered_first_value,
    "NOT IN of an outer value in a subquery used as a value": _outer_not_in,
}
"""Each fault by name, and the node that shows it."""
