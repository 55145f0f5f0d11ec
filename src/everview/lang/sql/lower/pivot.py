"""PIVOT and UNPIVOT, rewritten as GROUP BY and UNION ALL."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.errors import UserError
from everview.lang.sql.bind.column_names import output_name
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.desugar import desugared
from everview.lang.sql.parse.span import span_of
from everview.plan.build import columns_of
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of

_ROWS = "rows to pivot"
"""The name of the rows to pivot in the query that is built."""
_OF_ANY_SIZE = ("string", "binary", "array", "map", "struct", "variant")
"""Types without a fixed size."""


def pivoted(context: LoweringContext, plan: Plan, node: exp.Pivot) -> Plan:
    """The rows of `plan` pivoted, values to columns, or unpivoted, columns to values."""
    if len(node.args["fields"]) != 1:
        raise refused("PIVOT with several FOR", node, context.text, "list tuples after one FOR")
    (field,) = node.args["fields"]
    turn = _unpivot if node.args.get("unpivot") else _pivot
    return turn(context, plan, node, field)


def _pivot(context: LoweringContext, plan: Plan, node: exp.Pivot, field: exp.In) -> Plan:
    """One group for each value of the columns that PIVOT does not name, a column for each value.

    Spark groups by the value too before it spreads the results, so an aggregate over no rows is
    NULL, even COUNT; but not where some result has no fixed size.
    """
    aggregates = [each.this if isinstance(each, exp.Alias) else each for each in node.expressions]
    results = schema_of(_lowered(context, plan, _select(_aliased(aggregates))))
    spread = not any(column.type.startswith(_OF_ANY_SIZE) for column in results)
    named = {column.name.lower() for each in (*aggregates, field.this) for column in _columns(each)}
    keys = [name for name in columns_of(plan) if name.lower() not in named]
    columns: list[exp.Expr] = [exp.column(name, quoted=True) for name in keys]
    for entry in field.expressions:
        value, name = _entry(entry)
        _must_be_values(field.this, value, context.text)
        here = _equal(field.this, value)
        for given, tree in zip(node.expressions, aggregates, strict=True):
            column = _filtered(tree, here)
            if spread:
                some = exp.GT(this=exp.CountIf(this=here.copy()), expression=exp.Literal.number(0))
                column = exp.Case(ifs=[exp.If(this=some, true=column)])
            shown = name if len(aggregates) == 1 else f"{name}_{output_name(given)}"
            columns.append(exp.alias_(column, shown, quoted=True))
    query = _select(columns)
    if keys:
        query = query.group_by(*(exp.column(name, quoted=True) for name in keys), copy=False)
    return _lowered(context, plan, query)


def _unpivot(context: LoweringContext, plan: Plan, node: exp.Pivot, field: exp.In) -> Plan:
    """A row for each column listed, with its name and its value."""
    entries = [_entry(entry) for entry in field.expressions]
    named = {column.name.lower() for value, _ in entries for column in _columns(value)}
    keys = [name for name in columns_of(plan) if name.lower() not in named]
    names = [each.name for given in node.expressions for each in _parts(given)]
    branches = []
    for value, name in entries:
        values = _parts(value)
        for each in values:
            if not isinstance(each, exp.Column):
                raise refused("UNPIVOT of an expression", each, context.text, "name columns")
        if len(values) != len(names):
            remedy = "list as many columns as there are names"
            raise refused(f"UNPIVOT of {len(values)} columns", value, context.text, remedy)
        kept: list[exp.Expr] = [exp.column(key, quoted=True) for key in keys]
        kept.append(exp.alias_(exp.Literal.string(name), field.this.name, quoted=True))
        kept += [exp.alias_(v.copy(), n, quoted=True) for v, n in zip(values, names, strict=True)]
        query = _select(kept)
        if not node.args.get("include_nulls"):
            query = query.where(exp.or_(*map(_is_not_null, values)), copy=False)
        branches.append(query)
    return _lowered(
        context, plan, exp.union(*branches, distinct=False) if branches[1:] else branches[0]
    )


def _lowered(context: LoweringContext, plan: Plan, tree: exp.Expr) -> Plan:
    """The plan of a query that was built here, over the rows of `plan`."""
    over_rows = replace(context, domain=None, ctes={_ROWS: plan})
    return over_rows.query(desugared(tree))


def _is_not_null(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value.copy(), expression=exp.null()))


def _select(columns: list[exp.Expr]) -> exp.Select:
    rows = exp.Table(this=exp.to_identifier(_ROWS, quoted=True))
    return exp.select(*columns, copy=False).from_(rows, copy=False)


def _aliased(trees: list[exp.Expr]) -> list[exp.Expr]:
    return [exp.alias_(tree.copy(), f"c{n}") for n, tree in enumerate(trees)]


def _entry(node: exp.Expr) -> tuple[exp.Expr, str]:
    """An entry of the list after IN, and the name of its column."""
    if isinstance(node, exp.PivotAlias):
        return node.this, node.args["alias"].name
    return node, _shown(node)


def _shown(node: exp.Expr) -> str:
    parts = _parts(node)
    if len(parts) == 1:
        return parts[0].name or parts[0].sql(dialect="spark")
    shown = [each.name for each in parts]
    plain = all(isinstance(each, exp.Column) for each in parts)
    return "_".join(shown) if plain else "{" + ", ".join(shown) + "}"


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node.unnest()]


def _columns(node: exp.Expr) -> list[exp.Column]:
    return list(node.find_all(exp.Column))


def _must_be_values(columns: exp.Expr, value: exp.Expr, text: str) -> None:
    """Refuse an entry that is not one constant for each column after FOR."""
    wanted, given = len(_parts(columns)), len(_parts(value))
    if wanted != given:
        raise UserError(
            "Q012",
            f"PIVOT compares {wanted} columns with {given} values",
            span=span_of(value, text),
            remedy="list as many values as there are columns after FOR",
        )
    for column in _columns(value):
        name = "PIVOT to values that are not constant"
        raise refused(name, column, text, "list the values themselves")


def _equal(columns: exp.Expr, value: exp.Expr) -> exp.Expr:
    pairs = zip(_parts(columns), _parts(value), strict=True)
    return exp.and_(*(exp.NullSafeEQ(this=a.copy(), expression=b.copy()) for a, b in pairs))


def _filtered(tree: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """The expression with its aggregates over the rows that satisfy the condition."""

    def filtered(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.AggFunc):
            return node
        return exp.Filter(this=node, expression=exp.Where(this=condition.copy()))

    return tree.copy().transform(filtered)
