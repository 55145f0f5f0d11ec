"""A query with its ties broken in another way: other answers to it that SQL permits."""

from __future__ import annotations

from sqlglot import exp, parse_one

from everview.expr.dialect import DIALECT
from everview.lang.sql.parse.broken_ties import with_broken_ties


def refined(query: str, seed: int) -> str | None:
    """The query with its ties broken at random; None if none of its orders decides between rows."""
    tree = with_broken_ties(parse_one(query, read=DIALECT), seed)
    return None if tree is None else tree.sql(dialect=DIALECT)


def reversed_windows(query: str) -> str | None:
    """The query with the window functions of each SELECT list computed in the reverse order.

    Spark sorts the rows once for each window, and rows that tie in one keep the order that the one
    before it left. None if no SELECT list has two of them.
    """
    tree = parse_one(query, read=DIALECT)
    turned = 0
    for select in list(tree.find_all(exp.Select)):
        named = all(isinstance(each, exp.Alias) for each in select.expressions)
        windows = sum(each.find(exp.Window) is not None for each in select.expressions)
        if windows < 2 or not named or select.args.get("order"):
            continue
        inner = select.copy()
        inner.set("expressions", list(reversed(inner.expressions)))
        names = [exp.column(each.alias, quoted=True) for each in select.expressions]
        outer = exp.select(*names).from_(inner.subquery("reversed_list"))
        if inner.args.get("with_"):
            outer.set("with_", inner.args["with_"].pop())
        if select is tree:
            tree = outer
        else:
            select.replace(outer)
        turned += 1
    return tree.sql(dialect=DIALECT) if turned else None


def reprinted(query: str) -> str:
    """The query as our printer writes it, with nothing else changed."""
    return parse_one(query, read=DIALECT).sql(dialect=DIALECT)
