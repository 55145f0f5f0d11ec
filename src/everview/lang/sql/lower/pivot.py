"""PIVOT and UNPIVOT, written as the GROUP BY and the UNION ALL that they stand for."""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp

from everview.errors import UserError
from everview.lang.sql.bind.column_names import output_name
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.parse.span import span_of
from everview.plan.build import columns_of
from everview.plan.nodes import Plan
from everview.plan.traverse import schema_of


class Lower(Protocol):
    """What PIVOT needs of the lowering around it."""

    @property
    def text(self) -> str:
        """The text that places are in."""

    def over(self, plan: Plan, tree: exp.Expr) -> Plan:
        """The plan of a query whose FROM names `ROWS` for the rows of `plan`."""


ROWS = "rows to pivot"
_OF_ANY_SIZE = ("string", "binary", "array", "map", "struct", "variant")


def pivoted(lower: Lower, plan: Plan, node: exp.Pivot) -> Plan:
    """The rows of `plan` turned: values to columns, or columns to values."""
    if len(node.args["fields"]) != 1:
        raise refused("PIVOT with several FOR", node, lower.text, "list tuples after one FOR")
    (field,) = node.args["fields"]
    turn = _unpivot if node.args.get("unpivot") else _pivot
    return turn(lower, plan, node, field)


def _pivot(lower: Lower, plan: Plan, node: exp.Pivot, field: exp.In) -> Plan:
    """One group for each value of the columns that are not spoken of, a column for each value.

    Spark groups by the value too before it spreads the results, so an aggregate over no rows is
    NULL, even COUNT; but not where some result has no fixed size.
    """
    asked = [each.this if isinstance(each, exp.Alias) else each for each in node.expressions]
    kinds = schema_of(lower.over(plan, _select(_aliased(asked))))
    spread = not any(column.type.startswith(_OF_ANY_SIZE) for column in kinds)
    spoken = {column.name.lower() for each in (*asked, field.this) for column in _columns(each)}
    keys = [name for name in columns_of(plan) if name.lower() not in spoken]
    made: list[exp.Expr] = [exp.column(name, quoted=True) for name in keys]
    for entry in field.expressions:
        value, name = _entry(entry)
        _must_be_values(field.this, value, lower.text)
        here = _equal(field.this, value)
        for given, tree in zip(node.expressions, asked, strict=True):
            column = _among(tree, here)
            if spread:
                some = exp.GT(this=exp.CountIf(this=here.copy()), expression=exp.Literal.number(0))
                column = exp.Case(ifs=[exp.If(this=some, true=column)])
            shown = name if len(asked) == 1 else f"{name}_{output_name(given)}"
            made.append(exp.alias_(column, shown, quoted=True))
    query = _select(made)
    if keys:
        query = query.group_by(*(exp.column(name, quoted=True) for name in keys), copy=False)
    return lower.over(plan, query)


def _unpivot(lower: Lower, plan: Plan, node: exp.Pivot, field: exp.In) -> Plan:
    """A row for each column listed, with its name and its value."""
    entries = [_entry(entry) for entry in field.expressions]
    spoken = {column.name.lower() for value, _ in entries for column in _columns(value)}
    keys = [name for name in columns_of(plan) if name.lower() not in spoken]
    names = [each.name for given in node.expressions for each in _parts(given)]
    branches = []
    for value, name in entries:
        values = _parts(value)
        for each in values:
            if not isinstance(each, exp.Column):
                raise refused("UNPIVOT of an expression", each, lower.text, "name columns")
        if len(values) != len(names):
            remedy = "list as many columns as there are names"
            raise refused(f"UNPIVOT of {len(values)} columns", value, lower.text, remedy)
        kept: list[exp.Expr] = [exp.column(key, quoted=True) for key in keys]
        kept.append(exp.alias_(exp.Literal.string(name), field.this.name, quoted=True))
        kept += [exp.alias_(v.copy(), n, quoted=True) for v, n in zip(values, names, strict=True)]
        query = _select(kept)
        if not node.args.get("include_nulls"):
            query = query.where(exp.or_(*map(_is_there, values)), copy=False)
        branches.append(query)
    return lower.over(plan, exp.union(*branches, distinct=False) if branches[1:] else branches[0])


def _is_there(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value.copy(), expression=exp.null()))


def _select(columns: list[exp.Expr]) -> exp.Select:
    rows = exp.Table(this=exp.to_identifier(ROWS, quoted=True))
    return exp.select(*columns, copy=False).from_(rows, copy=False)


def _aliased(trees: list[exp.Expr]) -> list[exp.Expr]:
    return [exp.alias_(tree.copy(), f"c{n}") for n, tree in enumerate(trees)]


def _entry(node: exp.Expr) -> tuple[exp.Expr, str]:
    """What is listed after IN, and the name of the column made of it."""
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
    """Refuse what is not one constant for each column that is turned."""
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


def _among(tree: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """The expression with its aggregates over the rows that satisfy the condition."""

    def filtered(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.AggFunc):
            return node
        return exp.Filter(this=node, expression=exp.Where(this=condition.copy()))

    return tree.copy().transform(filtered)
