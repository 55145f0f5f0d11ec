"""What a view may not contain: each construct by name, with its place and what to write instead."""

from __future__ import annotations

from contextlib import suppress
from math import isinf

from sqlglot import exp

from everview.errors import UserError
from everview.expr.scalar import is_volatile
from everview.lang.sql.parse.span import span_of

_KNOWN: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        (
            *("with_", "expressions", "hint", "distinct", "from_", "laterals", "joins", "where"),
            *("group", "having", "qualify", "windows", "order", "limit", "offset"),
        )
    ),
    exp.Table: frozenset(
        ("this", "alias", "db", "catalog", "laterals", "joins", "pivots", "hints")
    ),
}
"""The clauses that are understood; any other is refused, and none is left out."""
_CLAUSES = {
    "sort": ("SORT BY", "order the rows where you read the view"),
    "cluster": ("CLUSTER BY", "leave it out: it does not change the rows"),
    "distribute": ("DISTRIBUTE BY", "leave it out: it does not change the rows"),
    "sample": ("TABLESAMPLE", "a sample is not the same twice: filter with WHERE"),
    "match": ("MATCH_RECOGNIZE", "use joins"),
    "connect": ("CONNECT BY", "use joins"),
    "into": ("INTO", "leave it out"),
    "kind": ("SELECT AS STRUCT", "select the columns"),
}
_GENERATOR = "let it stand alone in the SELECT list, or use LATERAL VIEW"
_NODES: tuple[tuple[type[exp.Expr], str, str], ...] = (
    (exp.Filter, "FILTER on an aggregate", "aggregate a CASE expression instead"),
    (exp.Subquery, "a subquery here", "join with the subquery in FROM"),
    (exp.Select, "a subquery here", "join with the subquery in FROM"),
    (exp.Posexplode, "POSEXPLODE here", _GENERATOR),
    (exp.Explode, "EXPLODE here", _GENERATOR),
    (exp.Inline, "INLINE here", _GENERATOR),
    (exp.Stack, "STACK here", _GENERATOR),
)


AGGREGATES = frozenset(
    {
        "approx_top_k",
        "approx_top_k_accumulate",
        "approx_top_k_combine",
        "bitmap_and_agg",
        "bitmap_construct_agg",
        "bitmap_or_agg",
        "bool_xor",
        "collect_union",
        "count_min_sketch",
        "histogram_numeric",
        "hll_sketch_agg",
        "hll_union_agg",
        "kll_merge_agg_bigint",
        "kll_merge_agg_double",
        "kll_merge_agg_float",
        "kll_sketch_agg_bigint",
        "kll_sketch_agg_double",
        "kll_sketch_agg_float",
        "measure",
        "percentile",
        "product",
        "schema_of_variant_agg",
        "theta_intersection_agg",
        "theta_sketch_agg",
        "theta_union_agg",
        "try_avg",
        "try_sum",
        "tuple_intersection_agg_double",
        "tuple_intersection_agg_integer",
        "tuple_sketch_agg_double",
        "tuple_sketch_agg_integer",
        "tuple_union_agg_double",
        "tuple_union_agg_integer",
    }
)
"""Aggregates of Spark that the parser takes for plain functions."""


_TIMES = (exp.DType.TIME, exp.DType.TIMETZ, exp.DType.TIME_NS)
"""Types that Spark's dialect is printed without: they would become a TIMESTAMP."""


def _called(node: exp.Filter) -> exp.Expr:
    call: exp.Expr = node.this
    if isinstance(call, exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    return call


def _float(digits: str) -> float:
    """A number as it is written, with or without a letter for its type."""
    with suppress(ValueError):
        return float(digits)
    return 0.0


_OVER = (
    exp.RowNumber,
    exp.Rank,
    exp.DenseRank,
    exp.PercentRank,
    exp.CumeDist,
    exp.Ntile,
    exp.Lag,
    exp.Lead,
    exp.NthValue,
)
"""Functions that mean something only before OVER."""


def windowed(node: exp.Expr) -> bool:
    """Whether a call is that of a window, and not one over groups."""
    parent = node.parent
    if isinstance(parent, exp.IgnoreNulls | exp.RespectNulls | exp.Filter) and parent.this is node:
        return windowed(parent)
    return isinstance(parent, exp.Window) and parent.this is node


def refused(construct: str, node: exp.Expr, text: str, remedy: str) -> UserError:
    """The error for a construct outside the language."""
    return UserError(
        "Q020",
        f"{construct} cannot be maintained in a view yet",
        span=span_of(node, text),
        remedy=remedy,
    )


def refuse_clauses(tree: exp.Expr, text: str) -> None:
    """Refuse the clauses of a query that are outside the language."""
    for clause, (construct, remedy) in _CLAUSES.items():
        found = tree.args.get(clause)
        if found:
            node = found[0] if isinstance(found, list) else found
            place = node if isinstance(node, exp.Expr) else tree
            raise refused(construct, place, text, remedy)
    known = _KNOWN.get(type(tree))
    for clause, value in tree.args.items() if known else ():
        if value and clause not in (known or ()):
            name = _SHOWN.get(clause, clause.strip("_").replace("_", " ").upper())
            raise refused(name, tree, text, "leave it out")


_SHOWN = {"locks": "FOR UPDATE", "version": "AS OF", "when": "AT"}


def function_name(node: exp.Expr) -> str:
    """The name of what a node calls, or of the node, as a user would write it."""
    named = isinstance(node, exp.Anonymous | exp.Table | exp.Column | exp.Identifier)
    return node.name if named else node.sql_name() if isinstance(node, exp.Func) else node.key


def refuse_parts(tree: exp.Expr, text: str) -> None:
    """Refuse what cannot stand in a scalar expression of a view."""
    for node in tree.walk():
        if is_volatile(node):
            name = node.sql(dialect="spark").partition("(")[0]
            raise UserError(
                "Q021",
                f"{name.lower()}() gives another answer every time: no view can stay equal to it",
                span=span_of(node, text),
                remedy="compute the value when you insert, and store it in a column",
            )
        if isinstance(node, _OVER) and not windowed(node):
            raise UserError(
                "Q009",
                f"{node.sql_name()} stands without OVER",
                span=span_of(node, text),
                remedy="write OVER (PARTITION BY … ORDER BY …) after it",
            )
        if isinstance(node, exp.Literal) and not node.is_string and isinf(_float(node.name)):
            raise UserError(
                "Q013",
                f"the number {node.name[:40]}{'…' * (len(node.name) > 40)} is too large",
                span=span_of(node, text),
                remedy="write a number that a DOUBLE can hold",
            )
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            raise UserError(
                "Q009",
                "* stands for columns only in the SELECT list and in COUNT(*)",
                span=span_of(node, text) or span_of(tree, text),
                remedy="name the columns",
            )
        if isinstance(node, exp.Placeholder | exp.Parameter | exp.SessionParameter):
            raise UserError(
                "Q009",
                f"{node.sql(dialect='spark')} has no value here",
                span=span_of(node, text) or span_of(tree, text),
                remedy="write the value itself",
            )
        asked = isinstance(node, exp.All | exp.Any) and isinstance(node.parent, exp.Predicate)
        liked = isinstance(node.parent, exp.Like | exp.ILike)
        if liked and asked and node.find(exp.Query):
            name = f"LIKE {function_name(node).upper()} of a subquery"
            raise refused(name, node, text, "write the patterns out")
        if (asked and not liked) or (
            isinstance(node, exp.Anonymous) and node.name.upper() == "ALL"
        ):
            word = function_name(node).upper()
            name = f"{word} of something that is no subquery"
            raise refused(name, node.parent or node, text, f"write {word} (SELECT …)")
        if isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES:
            name = f"the aggregate {node.name.lower()}"
            raise refused(name, node, text, "use SUM, COUNT, AVG, MIN or MAX")
        if isinstance(node, exp.Filter) and isinstance(_called(node), _OVER):
            raise UserError(
                "Q009",
                f"{function_name(_called(node)).upper()} takes no FILTER",
                span=span_of(node, text),
                remedy="leave FILTER out, or filter the rows in a subquery in FROM",
            )
        if isinstance(node, exp.DataType) and node.this in _TIMES:
            place = node.parent if isinstance(node.parent, exp.Cast) else node
            name = f"the type {str(node.this.value).upper()}"
            raise refused(name, place, text, "use TIMESTAMP, or a number of seconds")
        for kind, construct, remedy in _NODES:
            if isinstance(node, kind):
                raise refused(construct, node, text, remedy)
        if isinstance(node, exp.In) and node.args.get("query"):
            raise refused("IN (subquery)", node, text, "join with SELECT DISTINCT of the subquery")
