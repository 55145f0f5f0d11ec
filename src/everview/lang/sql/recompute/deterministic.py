"""Whether a query is deterministic: the same tables give the same rows, in whatever order."""

from __future__ import annotations

from sqlglot import exp

from everview.errors import UserError
from everview.expr.scalar import is_volatile
from everview.lang.sql.parse.span import span_of

_ORDER_DEPENDENT = (
    exp.First,
    exp.Last,
    exp.FirstValue,
    exp.LastValue,
    exp.NthValue,
    exp.AnyValue,
    exp.ArrayAgg,
    exp.ArrayUniqueAgg,
    exp.GroupConcat,
    exp.Mode,
    exp.ArgMax,
    exp.ArgMin,
    exp.ApproxQuantile,
)
_ORDER_DEPENDENT_NAMES = frozenset(
    {
        "approx_top_k",
        "bitmap_construct_agg",
        "count_min_sketch",
        "histogram_numeric",
        "kll_sketch_agg_bigint",
        "kll_sketch_agg_double",
        "listagg",
        "string_agg",
        "schema_of_variant_agg",
        "theta_sketch_agg",
    }
)
_FIX_ORDER = (exp.ArraySort, exp.WithinGroup, exp.ArraySize)


def must_be_deterministic(tree: exp.Expr, text: str) -> None:
    """Refuse a query whose answer depends on more than the rows of its tables."""
    for node in tree.walk():
        problem = _problem(node)
        if problem is not None:
            name, remedy = problem
            raise UserError(
                "Q021",
                f"{name} may give another answer every time: no view can stay equal to it",
                span=span_of(node, text),
                remedy=remedy,
            )


def _problem(node: exp.Expr) -> tuple[str, str] | None:
    """The construct of a node that is not deterministic, and what to write instead."""
    if is_volatile(node):
        name = node.sql(dialect="spark").partition("(")[0].lower()
        return f"{name}()", "compute the value when you insert, and store it in a column"
    if isinstance(node, exp.TableSample):
        return "TABLESAMPLE", "filter with WHERE"
    if isinstance(node, exp.Query) and not node.args.get("order"):
        for clause in ("limit", "offset"):
            if node.args.get(clause):
                return f"{clause.upper()} without ORDER BY", "say which rows come first"
    if isinstance(node, exp.Window) and not node.args.get("order"):
        spec = node.args.get("spec")
        if spec is not None and str(spec.args.get("kind")).upper() == "ROWS":
            return "a frame of ROWS without ORDER BY", "say which row comes first"
    if _depends_on_order(node) and not _ordered(node):
        name = node.sql(dialect="spark").partition("(")[0].lower()
        return f"{name}()", "use MIN or MAX, or say which row comes first"
    return None


def _depends_on_order(node: exp.Expr) -> bool:
    """Whether the order in which rows arrive decides the result of a call."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _ORDER_DEPENDENT_NAMES
    return isinstance(node, _ORDER_DEPENDENT)


def _ordered(node: exp.Expr) -> bool:
    """Whether something around a call fixes the order of its rows, or makes it irrelevant."""
    if isinstance(node.this, exp.Order):
        return True
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        parent = parent.parent
    if isinstance(parent, exp.Window):
        return parent.args.get("order") is not None
    return isinstance(parent, _FIX_ORDER)
