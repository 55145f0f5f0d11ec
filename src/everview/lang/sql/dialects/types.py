"""The kind of value (text, integer, …) of an expression of another dialect.

A kind is coarse: it decides what an operator means, not the type of its result. An expression of
which nothing is known has none, and what depends on it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.scope import Scope, traverse_scope

from everview.expr.dialect import DIALECT
from everview.expr.types import FLOATS, INTEGERS, Type, decimal_parts, storable_type

Kind: TypeAlias = str | None
INTEGER, DECIMAL, FLOAT, TEXT = "integer", "decimal", "float", "text"
BOOLEAN, DATE, TIMESTAMP, NULL = "boolean", "date", "timestamp", "null"
NUMBERS = (INTEGER, DECIMAL, FLOAT)
Columns: TypeAlias = Mapping[str, Kind]
"""The columns of a table by lower-case name."""


def kind_of_type(type_: Type | None) -> Kind:
    """The kind of a column type."""
    if type_ is None:
        return None
    if type_ in INTEGERS:
        return INTEGER
    if type_ in FLOATS:
        return FLOAT
    if decimal_parts(type_):
        return DECIMAL
    plain = {"string": TEXT, "boolean": BOOLEAN, "date": DATE}
    return TIMESTAMP if type_.startswith("timestamp") else plain.get(type_)


_RESULTS: dict[Kind, tuple[type[exp.Expr], ...]] = {
    INTEGER: (
        *(exp.Count, exp.CountIf, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.Length),
        *(exp.StrPosition, exp.Ascii, exp.IntDiv, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor),
        *(exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Hour, exp.Minute, exp.DateDiff, exp.Week),
        *(exp.TimestampDiff, exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfYear),
    ),
    FLOAT: (
        *(exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Sin, exp.Cos, exp.Tan, exp.Stddev),
        *(exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Corr),
    ),
    TIMESTAMP: (exp.TimestampTrunc,),
    TEXT: (
        *(exp.DPipe, exp.Concat, exp.ConcatWs, exp.Substring, exp.Upper, exp.Lower, exp.Trim),
        *(exp.Replace, exp.Left, exp.Right, exp.Pad, exp.Initcap, exp.SplitPart, exp.GroupConcat),
    ),
    BOOLEAN: (
        *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Not, exp.Is),
        *(exp.Like, exp.ILike, exp.In, exp.Between, exp.Exists, exp.Boolean, exp.LogicalAnd),
    ),
}
"""Expressions that have one kind of value, whatever they are of."""
_OF_OPERANDS = (exp.Add, exp.Sub, exp.Mul, exp.Mod)
_OF_FIRST = (
    *(exp.Paren, exp.Neg, exp.Abs, exp.Sum, exp.Min, exp.Max, exp.Window, exp.Distinct, exp.Lag),
    *(exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue, exp.Filter, exp.Nullif, exp.Alias),
    *(exp.AnyValue, exp.IgnoreNulls, exp.RespectNulls),
)


class Kinds:
    """The kinds of the expressions of one statement, over tables of known columns.

    The dialect says what a literal with a fraction, a quotient of integers and a part of a moment
    that is extracted are.
    """

    def __init__(
        self,
        tree: exp.Expr,
        tables: Mapping[str, Columns],
        *,
        fractions: Kind,
        quotient: Kind,
        extracted: Kind,
    ) -> None:
        self._tables = tables
        self._fractions = fractions
        self._quotient = quotient
        self._extracted = extracted
        self._scopes = {id(scope.expression): scope for scope in _scopes(tree)}
        self._asked: set[tuple[int, str]] = set()

    def of(self, node: exp.Expr | None) -> Kind:
        """The kind of an expression."""
        match node:
            case None | exp.Null():
                return NULL
            case exp.Literal():
                return self._literal(node)
            case exp.Column():
                return self._column(node)
            case exp.Cast():
                return kind_of_type(storable_type(node.to.sql(dialect=DIALECT)))
            case exp.Div():
                found = common_kind(map(self.of, (node.this, node.expression)))
                return self._quotient if found == INTEGER else found
            case exp.Case():
                branches = [branch.args["true"] for branch in node.args["ifs"]]
                return common_kind(map(self.of, (*branches, node.args.get("default"))))
            case exp.If():
                return common_kind(map(self.of, (node.args["true"], node.args.get("false"))))
            case exp.Coalesce() | exp.Greatest() | exp.Least():
                return common_kind(map(self.of, (node.this, *node.expressions)))
            case exp.Subquery() if isinstance(node.this, exp.Query):
                return self._output(self._scopes.get(id(node.this)), 0)
            case exp.Extract():
                return self._extracted
            case exp.Floor() | exp.Ceil() | exp.Round():
                found = self.of(node.this)
                return found if found in (DECIMAL, FLOAT) else None
            case exp.Sub() if self.of(node.this) == self.of(node.expression) == DATE:
                return INTEGER
            case exp.Avg():
                return FLOAT if self.of(node.this) in (INTEGER, FLOAT) else None
        if isinstance(node, _OF_OPERANDS):
            return _arithmetic(self.of(node.this), self.of(node.expression))
        if isinstance(node, exp.Distinct):
            return self.of(node.expressions[0]) if len(node.expressions) == 1 else None
        if isinstance(node, _OF_FIRST):
            return self.of(node.this)
        return next((kind for kind, nodes in _RESULTS.items() if isinstance(node, nodes)), None)

    def outputs(self, query: exp.Expr) -> Columns:
        """The columns of a query by name, those without one left out."""
        scope = self._scopes.get(id(query))
        names = query.named_selects if isinstance(query, exp.Query) else []
        return {name.lower(): self._output(scope, at) for at, name in enumerate(names)}

    def _literal(self, node: exp.Literal) -> Kind:
        if node.is_string:
            return TEXT
        return INTEGER if node.name.isdigit() else self._fractions

    def _column(self, node: exp.Column) -> Kind:
        """The kind of a column where it stands: of the nearest query around that has such a one."""
        name = node.name.lower()
        for scope in self._around(node):
            sources = scope.sources
            if node.table:
                by_name = {each.lower(): source for each, source in sources.items()}
                if node.table.lower() in by_name:
                    return self._in_source(by_name[node.table.lower()], name)[1]
                continue
            found = [
                kind
                for there, kind in (self._in_source(s, name) for s in sources.values())
                if there
            ]
            if found:
                return found[0] if len(set(found)) == 1 else None
        return self._of_target(node, name)

    def _around(self, node: exp.Expr) -> Iterable[Scope]:
        outer: exp.Expr | None = node
        while outer is not None:
            if id(outer) in self._scopes:
                yield self._scopes[id(outer)]
            outer = outer.parent

    def _of_target(self, node: exp.Expr, name: str) -> Kind:
        """A column of the table that a statement changes, or of what MERGE uses."""
        root = node.root()
        if not isinstance(root, exp.Update | exp.Delete | exp.Merge):
            return None
        tables = [root.this, root.args.get("using")]
        named = [each.name.lower() for each in tables if isinstance(each, exp.Table)]
        kinds = {self._tables[each][name] for each in named if name in self._tables.get(each, {})}
        return kinds.pop() if len(kinds) == 1 else None

    def _in_source(self, source: exp.Expr | Scope, name: str) -> tuple[bool, Kind]:
        """Whether a source has a column of a name, and its kind; one that is not known may have."""
        if isinstance(source, exp.Table):
            columns = self._tables.get(source.name.lower())
            return (True, None) if columns is None else (name in columns, columns.get(name))
        assert isinstance(source, Scope)
        names = _names(source)
        if "*" not in names:
            return name in names, self._output(source, names.index(name)) if name in names else None
        found = [self._in_source(inner, name) for inner in source.sources.values()]
        there = [kind for has, kind in found if has]
        return bool(there), there[0] if len(there) == 1 else None

    def _output(self, scope: Scope | None, place: int) -> Kind:
        """The kind of an output of a query; of one that reads itself, what the rest of it says."""
        if scope is None or (id(scope.expression), str(place)) in self._asked:
            return NULL if scope is not None else None
        self._asked.add((id(scope.expression), str(place)))
        try:
            query = scope.expression
            if isinstance(query, exp.SetOperation):
                sides = (self._scopes.get(id(each)) for each in (query.left, query.right))
                return common_kind([self._output(side, place) for side in sides])
            rows = query.expressions
            if isinstance(query, exp.Values):
                return common_kind([self.of(row.expressions[place]) for row in rows])
            return self.of(rows[place]) if isinstance(query, exp.Select) else None
        finally:
            self._asked.discard((id(scope.expression), str(place)))


def _scopes(tree: exp.Expr) -> list[Scope]:
    """The scopes of all queries in a statement that are in no other query."""
    roots = [
        query
        for query in tree.find_all(exp.Query)
        if not isinstance(query, exp.Subquery) and query.find_ancestor(exp.Query) is None
    ]
    try:
        return [scope for root in roots for scope in traverse_scope(root)]
    except OptimizeError:
        return []


def _names(scope: Scope) -> list[str]:
    """The names of a query's outputs, those of an alias where it gives some."""
    query = scope.expression
    outer = query.parent
    alias = outer.args.get("alias") if isinstance(outer, exp.Subquery | exp.CTE) else None
    alias = alias or query.args.get("alias")
    given = alias.columns if isinstance(alias, exp.TableAlias) else []
    names = [each.name for each in given] or getattr(query, "named_selects", [])
    return [name.lower() for name in names]


def common_kind(kinds: Iterable[Kind]) -> Kind:
    """The common kind of several values; NULL has any kind."""
    distinct = {*kinds} - {NULL}
    if not distinct:
        return NULL
    if len(distinct) == 1:
        return distinct.pop()
    if distinct <= {*NUMBERS}:
        return FLOAT if FLOAT in distinct else DECIMAL
    return None


def _arithmetic(left: Kind, right: Kind) -> Kind:
    if DATE in (left, right):
        return DATE if INTEGER in (left, right) else None
    found = common_kind((left, right))
    return found if found in (*NUMBERS, TEXT) else None
