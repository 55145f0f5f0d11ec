"""What a view may not contain: each construct by name, with its place and what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import isinf

from sqlglot import exp

from everview.errors import UserError
from everview.expr.scalar import is_volatile
from everview.lang.sql.bind.pure_functions import NEVER
from everview.lang.sql.parse.span import span_of

_CLAUSES_OF: dict[type[exp.Expr], frozenset[str]] = {
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
"""The clauses that are understood; any other is refused, never ignored."""
_REFUSED_CLAUSES = {
    "sort": ("SORT BY", "order the rows where you read the view"),
    "cluster": ("CLUSTER BY", "leave it out: it does not change the rows"),
    "distribute": ("DISTRIBUTE BY", "leave it out: it does not change the rows"),
    "sample": ("TABLESAMPLE", "a sample is not the same twice: filter with WHERE"),
    "match": ("MATCH_RECOGNIZE", "use joins"),
    "connect": ("CONNECT BY", "use joins"),
    "into": ("INTO", "leave it out"),
    "kind": ("SELECT AS STRUCT", "select the columns"),
}


UNMAINTAINED_AGGREGATES = frozenset(
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


_NEED_OVER = (
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
_TIMES = (exp.DType.TIME, exp.DType.TIMETZ, exp.DType.TIME_NS)
"""Types that Spark's dialect is printed without: they would become a TIMESTAMP."""


def windowed(node: exp.Expr) -> bool:
    """Whether a call has OVER, so that it is a window function and not one over groups."""
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
    for clause, (construct, remedy) in _REFUSED_CLAUSES.items():
        value = tree.args.get(clause)
        if value:
            node = value[0] if isinstance(value, list) else value
            place = node if isinstance(node, exp.Expr) else tree
            raise refused(construct, place, text, remedy)
    understood = _CLAUSES_OF.get(type(tree))
    for clause, value in tree.args.items() if understood else ():
        if value and clause not in (understood or ()):
            name = _SHOWN.get(clause, clause.strip("_").replace("_", " ").upper())
            raise refused(name, tree, text, "leave it out")


_SHOWN = {"locks": "FOR UPDATE", "version": "AS OF", "when": "AT"}


def function_name(node: exp.Expr) -> str:
    """The name of what a node calls, or of the node, as a user would write it."""
    named = isinstance(node, exp.Anonymous | exp.Table | exp.Column | exp.Identifier)
    return node.name if named else node.sql_name() if isinstance(node, exp.Func) else node.key


def refuse_parts(tree: exp.Expr, text: str) -> None:
    """Refuse what cannot stand in a scalar expression of a view, by the table `_REFUSALS`."""
    for node in tree.walk():
        for refusal in _REFUSALS:
            if refusal.applies(node):
                raise refusal.error(node, tree, text)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """One construct that is refused: which nodes it is, and what the error says."""

    applies: Callable[[exp.Expr], bool]
    problem: Callable[[exp.Expr], str]
    remedy: str
    code: str = "Q020"
    place: Callable[[exp.Expr], exp.Expr] = lambda node: node
    or_whole: bool = False
    """Whether the whole expression is shown where the node has no place of its own."""

    def error(self, node: exp.Expr, tree: exp.Expr, text: str) -> UserError:
        """The error for a node of an expression."""
        place, problem = self.place(node), self.problem(node)
        if self.code == "Q020":
            return refused(problem, place, text, self.remedy)
        span = span_of(place, text) or (span_of(tree, text) if self.or_whole else None)
        return UserError(self.code, problem, span=span, remedy=self.remedy)


def _of(*types: type[exp.Expr]) -> Callable[[exp.Expr], bool]:
    return lambda node: isinstance(node, types)


def _always(problem: str) -> Callable[[exp.Expr], str]:
    return lambda _: problem


def _is_too_large(node: exp.Expr) -> bool:
    """Whether a node is a number beyond any DOUBLE, with or without a letter for its type."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return False
    with suppress(ValueError):
        return isinf(float(node.name))
    return False


def _quantifies(kind: type[exp.Expr], *, subquery: bool) -> Callable[[exp.Expr], bool]:
    """Whether ALL or ANY stands in a comparison; in LIKE only those with a subquery matter."""

    def applies(node: exp.Expr) -> bool:
        compares = isinstance(node, kind) and isinstance(node.parent, exp.Predicate)
        in_like = isinstance(node.parent, exp.Like | exp.ILike)
        if subquery:
            return compares and in_like and node.find(exp.Query) is not None
        return compares and not in_like

    return applies


def _filtered_call(node: exp.Expr) -> exp.Expr:
    """What a FILTER belongs to, without IGNORE NULLS or RESPECT NULLS."""
    call: exp.Expr = node.this
    return call.this if isinstance(call, exp.IgnoreNulls | exp.RespectNulls) else call


def _time_place(node: exp.Expr) -> exp.Expr:
    return node.parent if isinstance(node.parent, exp.Cast) else node


def _named(names: frozenset[str]) -> Callable[[exp.Expr], bool]:
    return lambda node: isinstance(node, exp.Anonymous) and node.name.lower() in names


def _around(node: exp.Expr) -> exp.Expr:
    return node.parent or node


_ALONE = "let it stand alone in the SELECT list, or use LATERAL VIEW"
_REFUSALS: tuple[_Refusal, ...] = (
    _Refusal(
        _named(NEVER),
        lambda node: f"{node.name.lower()}() calls Java",
        "compute it outside; nothing can allow it",
        "Q023",
        or_whole=True,
    ),
    _Refusal(
        _of(exp.QueryTransform),
        _always("TRANSFORM starts a program"),
        "compute it outside; nothing can allow it",
        "Q023",
        or_whole=True,
    ),
    _Refusal(
        is_volatile,
        lambda node: (
            f"{node.sql(dialect='spark').partition('(')[0].lower()}() gives another answer every "
            "time: no view can stay equal to it"
        ),
        "compute the value when you insert, and store it in a column",
        "Q021",
    ),
    _Refusal(
        lambda node: isinstance(node, _NEED_OVER) and not windowed(node),
        lambda node: f"{function_name(node)} stands without OVER",
        "write OVER (PARTITION BY … ORDER BY …) after it",
        "Q009",
    ),
    _Refusal(
        _is_too_large,
        lambda node: f"the number {node.name[:40]}{'…' * (len(node.name) > 40)} is too large",
        "write a number that a DOUBLE can hold",
        "Q013",
    ),
    _Refusal(
        lambda node: isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count),
        _always("* stands for columns only in the SELECT list and in COUNT(*)"),
        "name the columns",
        "Q009",
        or_whole=True,
    ),
    _Refusal(
        _of(exp.Placeholder, exp.Parameter, exp.SessionParameter),
        lambda node: f"{node.sql(dialect='spark')} has no value here",
        "write the value itself, or give it in params, which statements have and views have not",
        "Q009",
        or_whole=True,
    ),
    *(
        _Refusal(
            _quantifies(kind, subquery=True),
            _always(f"LIKE {word} of a subquery"),
            "write the patterns out",
        )
        for kind, word in ((exp.All, "ALL"), (exp.Any, "ANY"))
    ),
    *(
        _Refusal(
            applies,
            _always(f"{word} of something that is no subquery"),
            f"write {word} (SELECT …)",
            place=_around,
        )
        for applies, word in (
            (_quantifies(exp.All, subquery=False), "ALL"),
            (_quantifies(exp.Any, subquery=False), "ANY"),
            (_named(frozenset({"all"})), "ALL"),
        )
    ),
    _Refusal(
        _named(UNMAINTAINED_AGGREGATES),
        lambda node: f"the aggregate {node.name.lower()}",
        "use SUM, COUNT, AVG, MIN or MAX",
    ),
    _Refusal(
        lambda node: isinstance(node, exp.Filter) and isinstance(_filtered_call(node), _NEED_OVER),
        lambda node: f"{function_name(_filtered_call(node)).upper()} takes no FILTER",
        "leave FILTER out, or filter the rows in a subquery in FROM",
        "Q009",
    ),
    _Refusal(
        lambda node: isinstance(node, exp.DataType) and node.this in _TIMES,
        lambda node: f"the type {str(node.this.value).upper()}",
        "use TIMESTAMP, or a number of seconds",
        place=_time_place,
    ),
    *(
        _Refusal(_of(kind), _always(construct), remedy)
        for kind, construct, remedy in (
            (exp.Filter, "FILTER on an aggregate", "aggregate a CASE expression instead"),
            (exp.Subquery, "a subquery here", "join with the subquery in FROM"),
            (exp.Select, "a subquery here", "join with the subquery in FROM"),
            (exp.Posexplode, "POSEXPLODE here", _ALONE),
            (exp.Explode, "EXPLODE here", _ALONE),
            (exp.Inline, "INLINE here", _ALONE),
            (exp.Stack, "STACK here", _ALONE),
        )
    ),
    _Refusal(
        lambda node: isinstance(node, exp.In) and bool(node.args.get("query")),
        _always("IN (subquery)"),
        "join with SELECT DISTINCT of the subquery",
    ),
)
"""What a scalar expression may not hold; of several rows that apply to a node, the first counts."""


def aggregates_in(tree: exp.Expr) -> list[exp.AggFunc]:
    """The aggregate calls of an expression, outermost first."""
    return [node for node in tree.walk() if isinstance(node, exp.AggFunc) and not windowed(node)]


def must_be_plain(tree: exp.Expr, place: str, text: str) -> None:
    """Refuse aggregates and window functions in a place where an expression is over one row."""
    for node in (*aggregates_in(tree), *tree.find_all(exp.Window)):
        is_window = isinstance(node, exp.Window)
        remedies = _WINDOW_REMEDIES if is_window else _AGGREGATE_REMEDIES
        raise UserError(
            "Q009",
            f"{'a window function' if is_window else 'an aggregate'} inside {place}",
            span=span_of(node, text),
            remedy=remedies.get(place, "compute it in a subquery in FROM first"),
        )


_AGGREGATE_REMEDIES = {
    "WHERE": "move the condition to HAVING",
    "GROUP BY": "group by plain expressions",
    "σ": "compute it in a view in SQL, and read that",
}
_WINDOW_REMEDIES = {
    "WHERE": "move the condition to QUALIFY, or to a query around this one",
    "σ": "compute it in a view in SQL, and read that",
}
"""What to do with an aggregate or a window function in a place where it cannot stand."""
