"""The text of a query for Spark: it reads only declared relations, and calls only pure functions.

The text that Spark reads is written from the tree that was checked, never from the text of a user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr.quoting import spark_name
from everview.lang.sql.allowlist.words import stranger
from everview.lang.sql.bind.pure_functions import NEVER
from everview.lang.sql.parse.ctes import cte_of
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.span import span_of
from everview.lang.sql.parse.trees import too_deep

_KINDS = (
    *(exp.Func, exp.Identifier, exp.Literal, exp.Column, exp.Star, exp.Boolean, exp.Null),
    *(exp.HexString, exp.Var, exp.Dot, exp.Bracket, exp.Slice, exp.Paren, exp.Tuple, exp.Lambda),
    *(exp.DataType, exp.DataTypeParam, exp.ColumnDef, exp.Interval, exp.IntervalSpan, exp.Kwarg),
    *(exp.PropertyEQ, exp.Alias, exp.Aliases, exp.TableAlias, exp.Collate, exp.Escape),
    *(exp.Binary, exp.Unary, exp.Predicate, exp.Distinct, exp.IgnoreNulls, exp.RespectNulls),
    *(exp.Filter, exp.WithinGroup, exp.Window, exp.WindowSpec, exp.Order, exp.Ordered),
    *(exp.Select, exp.SetOperation, exp.Subquery, exp.Values, exp.With, exp.CTE, exp.From),
    *(exp.Table, exp.Join, exp.Lateral, exp.Pivot, exp.PivotAlias, exp.PivotAny, exp.Unnest),
    *(exp.TableSample, exp.Where, exp.Group, exp.GroupingSets, exp.Rollup, exp.Cube, exp.Having),
    *(exp.Qualify, exp.Limit, exp.Offset, exp.Sort, exp.Cluster, exp.Distribute, exp.All, exp.Any),
    *(exp.In, exp.Between, exp.Hint, exp.JSONPath, exp.JSONPathPart, exp.UnpivotColumns),
)
"""The kinds of nodes that a query may have; any other, also of later versions, is refused."""
_TABLE_PARTS = frozenset(
    ("this", "alias", "db", "catalog", "joins", "laterals", "pivots", "sample")
)
_CTE_PREFIX = "everview with "
"""Names of WITH begin with this, so they hide no table: catalog names have no spaces."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*", re.ASCII)

Names = Mapping[str, str]
"""The name by which Spark knows a relation, by its lower-case name as a query writes it."""


def checked_query(text: str, names: Names, functions: frozenset[str] = frozenset()) -> str:
    """`checked_text` of the text of one query."""
    return checked_text(parse_query(text), names, functions, text)


def checked_text(
    tree: exp.Expr, names: Names, functions: frozenset[str] = frozenset(), text: str = ""
) -> str:
    """The query as text for Spark, or a UserError that names what is not allowed.

    `names` are all that it can read, `functions` what it may call beside those known to be pure.
    What comes out is a fixed point: read again it is the tree that was checked.
    """
    checked = tree.copy()
    for hint in list(checked.find_all(exp.Hint)):
        hint.pop()
    _check_kinds(checked, text)
    _bind(checked, names, text)
    written = _written(checked)
    again = parse_query(written)
    _check_kinds(again, text)
    is_same = _written(again) == written and _meant(again) == _meant(checked)
    if not is_same or not _read(again) <= {*names.values(), *_defined(again)}:
        raise _refused("this query", tree, text, "write it in another way")
    unknown_word = stranger(written, functions)
    if unknown_word is not None:
        raise _stranger(unknown_word, tree, text)
    return written


def outside(tree: exp.Expr, declared: Mapping[str, str]) -> tuple[exp.Table, ...]:
    """The tables that a query reads and that neither it nor the store defines."""
    return tuple(
        table
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier)
        and cte_of(table) is None
        and spelled(table) not in declared
    )


def spelled(table: exp.Table) -> str:
    """The name of a table in lower case; of several parts, each is in quotes."""
    parts = [part.name for part in table.parts]
    return (parts[0] if len(parts) == 1 else ".".join(map(spark_name, parts))).lower()


def _written(tree: exp.Expr) -> str:
    for name in tree.find_all(exp.Identifier):
        name.set("quoted", True)  # `identify` leaves out parameters of lambdas below CASE
    try:
        return tree.sql(dialect=QUERIES, identify=True, comments=False)
    except RecursionError:
        raise too_deep(Span("", 0, 0)) from None


def _meant(tree: exp.Expr) -> exp.Expr | None:
    """A tree in which what has two spellings has one, None for what is written by its meaning.

    Names come with and without quotes, calls in either case, literals of a type as casts, and a
    frame that does not say where it ends does so at the current row. PIVOT with an alias is written
    as a subquery.
    """
    if tree.find(exp.Pivot):
        return None
    tree = tree.copy()
    for node in tree.walk():
        match node:
            case exp.Identifier():
                node.set("quoted", False)
            case exp.Anonymous() if isinstance(node.this, str):
                node.set("this", node.this.upper())
            case exp.WindowSpec() if node.args.get("end") is None:
                node.set("end", "CURRENT ROW")
    return tree.transform(_cast_of_literal, copy=False)


def _cast_of_literal(node: exp.Expr) -> exp.Expr:
    """DATE '2024-01-01' is read as another kind of cast than CAST('2024-01-01' AS DATE)."""
    if type(node) is exp.Cast and isinstance(node.this, exp.Literal):
        return exp.TryCast(this=node.this, to=node.args["to"])
    if isinstance(node, exp.TryCast) and isinstance(node.this, exp.Literal):
        return exp.TryCast(this=node.this, to=node.args["to"], safe=node.args.get("safe"))
    return node


def _check_kinds(tree: exp.Expr, text: str) -> None:
    if not isinstance(tree, exp.Query | exp.Values):
        raise _refused("this statement", tree, text, "ask a query")
    for node in tree.walk():
        if not isinstance(node, _KINDS) or isinstance(node, exp.Command):
            raise _refused(node.key.upper(), node, text, "leave it out")
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            name = node.sql(dialect=QUERIES, comments=False).partition("(")[0]
            raise _refused(f"the function {name}", node, text, "call a function by its plain name")
        if isinstance(node, exp.Anonymous):
            _check_call(node, text)
        if isinstance(node, exp.Var) and not _WORD.fullmatch(node.name):
            raise _refused(repr(node.name), node, text, "write a word")
        if isinstance(node, exp.Literal) and not node.is_string and not _is_number(node.name):
            raise _refused(node.name, node, text, "write a number")
        if isinstance(node, exp.Table):
            _check_table(node, text)


def _check_call(node: exp.Anonymous, text: str) -> None:
    """A call has a plain name, which is written without quotes, as the list of names has it."""
    name = node.name
    if not _WORD.fullmatch(name):
        raise _refused(f"the function {name}", node, text, "call a function by its plain name")
    node.set("this", name)


def _is_number(digits: str) -> bool:
    return re.fullmatch(r"[\d.]+(?:[eE][+-]?\d+)?[A-Za-z]{0,2}", digits, re.ASCII) is not None


def _check_table(node: exp.Table, text: str) -> None:
    for part, value in node.args.items():
        if value and part not in _TABLE_PARTS:
            shown = part.strip("_").upper()
            raise _refused(f"{shown} after a table", node, text, "leave it out")
    if not isinstance(node.this, exp.Identifier | exp.Func):
        raise _refused("this table", node, text, "read a table or view by its name")
    if isinstance(node.this, exp.Func) and (node.args.get("db") or node.args.get("catalog")):
        raise _refused("this table", node, text, "call a function by its plain name")


def _bind(tree: exp.Expr, names: Names, text: str) -> None:
    """Rename every table to the one that we gave Spark, or to a unique name for WITH."""
    tables = [t for t in tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier)]
    of_with = {id(table): cte_of(table) for table in tables}
    fresh = {id(cte): f"{_CTE_PREFIX}{n}" for n, cte in enumerate(tree.find_all(exp.CTE))}
    for table in tables:
        cte = of_with[id(table)]
        name = fresh[id(cte)] if cte is not None else names.get(spelled(table))
        if name is None:
            raise _unknown(table, text)
        if not table.alias:
            alias = exp.to_identifier(table.name, quoted=True)
            kept = table.args.get("alias")
            columns = kept.args.get("columns") if kept is not None else None
            table.set("alias", exp.TableAlias(this=alias, columns=columns))
        table.set("this", exp.to_identifier(name, quoted=True))
        table.set("db", None)
        table.set("catalog", None)
    for cte in tree.find_all(exp.CTE):
        cte.args["alias"].set("this", exp.to_identifier(fresh[id(cte)], quoted=True))


def _read(tree: exp.Expr) -> set[str]:
    tables = (t for t in tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier))
    return {".".join(part.name for part in table.parts) for table in tables}


def _defined(tree: exp.Expr) -> set[str]:
    return {cte.alias for cte in tree.find_all(exp.CTE)}


def _unknown(table: exp.Table, text: str) -> UserError:
    name = ".".join(part.name for part in table.parts)
    remedy = "create the table or view first, or correct its name"
    if table.args.get("db"):
        remedy = "read what is declared here, or let ev.open(…, allow=[…]) name what may be read"
    return UserError(
        "Q006", f"there is no table or view {name}", span=span_of(table, text), remedy=remedy
    )


def _refused(what: str, node: exp.Expr, text: str, remedy: str) -> UserError:
    place = span_of(node, text) if text else None
    return UserError("Q023", f"{what} is not handed to Spark", span=place, remedy=remedy)


def _stranger(word: str, tree: exp.Expr, text: str) -> UserError:
    """The error for a word that is not allowed, at the call that contains it if there is one."""
    calls = (node for node in tree.find_all(exp.Func) if _name(node) == word.lower())
    node = next(calls, tree)
    place = span_of(node, text) if text else None
    if word.lower() in NEVER:
        remedy = "compute it outside; nothing can allow it"
    elif node is tree or not word.isidentifier():
        return _refused(word, node, text, "leave it out")
    else:
        remedy = (
            f"ev.open(…, allow=['function:{word.lower()}']) lets a statement call it, not a view"
        )
    return UserError("Q023", f"{word.lower()}() is not known to be pure", span=place, remedy=remedy)


def _name(node: exp.Func) -> str:
    return (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
