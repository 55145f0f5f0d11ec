"""What `*` stands for: the columns of FROM or of one of its items, or the fields of a struct."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.types import Schema, Type, fields_of
from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.bind.resolve import resolve
from everview.lang.sql.bind.scope import Scope, plan_column
from everview.lang.sql.parse.span import span_of

TypeOf: TypeAlias = Callable[[str, Schema, exp.Expr], Type]
"""The type of a scalar over columns; the node is for errors."""


def is_star(node: exp.Expr) -> bool:
    """Whether a node is `*` or something before `.*`."""
    return isinstance(node, exp.Star) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    )


def selected_by_star(
    node: exp.Expr, scope: Scope, type_of: TypeOf, schema: Schema
) -> list[tuple[str, exp.Expr]]:
    """What a star in the SELECT list selects: output names and resolved expressions."""
    star = node if isinstance(node, exp.Star) else node.this
    for part in ("replace", "rename"):
        if star.args.get(part):
            raise refused(f"* {part.upper()}", node, scope.text, "list the columns")
    whole = _selected(node, scope, type_of, schema)
    left_out = star.args.get("except_") or []
    for each in left_out:
        if len(each.parts) > 1:
            raise refused("* EXCEPT of a field", each, scope.text, "list the columns")
        if each.name.lower() not in (name.lower() for name, _ in whole):
            raise UserError(
                "Q007",
                f"unknown column {each.name}",
                span=span_of(each, scope.text),
                remedy=f"* stands for {', '.join(name for name, _ in whole)}",
            )
    names = {each.name.lower() for each in left_out}
    return [(name, tree) for name, tree in whole if name.lower() not in names]


def _selected(
    node: exp.Expr, scope: Scope, type_of: TypeOf, schema: Schema
) -> list[tuple[str, exp.Expr]]:
    parts = node.parts if isinstance(node, exp.Column) else ()
    alias = parts[0].name if parts else None
    if alias is None or (len(parts) == 2 and scope.has_item(alias)):
        return [(name, plan_column(plan)) for name, plan in scope.star(alias, node)]
    return [(each.name, resolve(each, scope)) for each in starred(node, scope, type_of, schema)]


def starred(node: exp.Expr, scope: Scope, type_of: TypeOf, schema: Schema) -> list[exp.Expr]:
    """The columns that a star in the SELECT list or among arguments stands for, by name.

    An item of FROM goes before a column of the same name, as in Spark.
    """
    parts = list(node.parts)[:-1] if isinstance(node, exp.Column) else []
    if not parts:
        return [_name(name, scope.alias_of(plan)) for name, plan in scope.star(None, node)]
    if len(parts) == 1 and scope.has_item(parts[0].name):
        return [_name(name, parts[0].name) for name, _ in scope.star(parts[0].name, node)]
    fields = _fields(parts, scope, type_of, schema, node)
    if not fields:
        raise scope.unknown_table(node)
    return [_column([*(part.copy() for part in parts), _quoted(name)]) for name in fields]


def _fields(
    parts: list[exp.Expr], scope: Scope, type_of: TypeOf, schema: Schema, node: exp.Expr
) -> list[str]:
    """The fields of the struct that a name refers to; none if it refers to no struct."""
    if not (scope.has(parts[0].name) or scope.has_item(parts[0].name)):
        return []
    struct = resolve(_column([part.copy() for part in parts]), scope)
    type_ = type_of(scalar.text(struct), schema, node)
    return [name for name, _ in fields_of(type_)] if type_.startswith("struct<") else []


def with_stars(tree: exp.Expr, scope: Scope, type_of: TypeOf, schema: Schema) -> exp.Expr:
    """The expression with the stars among the arguments of functions expanded."""
    holders = [
        node
        for node in tree.find_all(exp.Func)
        if any(map(is_star, node.expressions)) and not isinstance(node, exp.AggFunc)
    ]
    for node in holders:
        arguments: list[exp.Expr] = []
        for each in node.expressions:
            names = starred(each, scope, type_of, schema) if is_star(each) else [each]
            named = is_star(each) and isinstance(node, exp.Struct)
            arguments += map(_field, names) if named else names
        node.set("expressions", arguments)
    return tree


def _field(column: exp.Expr) -> exp.Expr:
    """A column as a field of the same name."""
    return exp.PropertyEQ(this=_quoted(column.name), expression=column)


def _name(name: str, alias: str) -> exp.Column:
    return _column([*([_quoted(alias)] if alias else []), _quoted(name)])


def _column(parts: list[exp.Expr]) -> exp.Column:
    """A dotted name of these parts; the last is the column's own."""
    places = dict(zip(("this", "table", "db", "catalog"), reversed(parts), strict=False))
    return exp.Column(**places)


def _quoted(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=True)
