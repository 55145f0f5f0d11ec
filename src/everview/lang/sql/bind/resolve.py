"""The names in an expression resolved: to plan columns, or to the expressions of aliases."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from sqlglot import exp

from everview.lang.sql.bind.refuse import refuse_parts
from everview.lang.sql.bind.scope import Scope, plan_column

SelectList: TypeAlias = list[tuple[str, exp.Expr]]
"""The SELECT list: names of columns, and resolved expressions."""


def resolve(
    tree: exp.Expr,
    scope: Scope,
    aliases: Mapping[str, exp.Expr] | None = None,
    given: Collection[str] = (),
) -> exp.Expr:
    """The expression with plan columns instead of names; places in the text are kept.

    A name that FROM does not have may be an alias of the SELECT list, given by `aliases`. Names
    that are `given` are plan columns already.
    """
    refuse_parts(tree, scope.text)
    known = {name.lower(): expression for name, expression in (aliases or {}).items()}

    def replaced(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.name in given:
            return node
        alias = known.get(node.name.lower()) if not node.table else None
        if alias is not None and not scope.has(node.name):
            return _wrapped(alias)
        node, fields = _path(node, scope)
        column = plan_column(scope.resolve(node))
        column.meta.update(node.this.meta)
        return _fields(column, fields)

    return _with_own_variables(tree).transform(replaced)


def _path(node: exp.Column, scope: Scope) -> tuple[exp.Column, list[exp.Expr]]:
    """A dotted name as a column, and the struct fields that the rest of the name selects."""
    parts = list(node.parts)
    if len(parts) > 1 and scope.find(node) is None:
        for length in (2, 1):
            head = exp.Column(this=parts[length - 1], table=parts[0] if length == 2 else None)
            if length < len(parts) and scope.find(head) is not None:
                return head, parts[length:]
    return node, []


def _fields(column: exp.Expr, fields: list[exp.Expr]) -> exp.Expr:
    """The field of a field … of a column."""
    path = column
    for field in fields:
        path = exp.Dot(this=path, expression=exp.Identifier(this=field.name, quoted=True))
        path.expression.meta.update(field.meta)
    return path


VARIABLE_SUFFIX = "/λ"
"""The end of the names of lambda variables, which no column's name has. Such names are joined by
line ends, so they contain none."""


def _with_own_variables(tree: exp.Expr) -> exp.Expr:
    """The expression with names for lambda variables that cannot be those of columns."""
    if tree.find(exp.Lambda) is None:
        return tree
    tree = tree.copy()
    for each in list(tree.find_all(exp.Lambda)):
        variables = {parameter.name for parameter in each.expressions}
        for node in list(each.find_all(exp.Identifier)):
            if node.name in variables and _is_variable(node):
                node.set("this", node.name.replace("\n", "/n") + VARIABLE_SUFFIX)
                node.set("quoted", True)
    return tree


def _is_variable(node: exp.Identifier) -> bool:
    """Whether an identifier is a value by itself, and not a part of another name."""
    parent, key = node.parent, node.arg_key
    if isinstance(parent, exp.Column | exp.ColumnDef):
        return False
    named = isinstance(parent, exp.PropertyEQ) and key == "this"
    return not named and not (isinstance(parent, exp.Dot) and key == "expression")


def resolve_having(
    tree: exp.Expr,
    scope: Scope,
    wanted: SelectList,
    is_key: Callable[[exp.Expr], bool],
    given: Collection[str] = (),
) -> exp.Expr:
    """HAVING: outside aggregates a name is a group key, or else an alias of the SELECT list.

    `is_key` says whether a resolved expression is a key of GROUP BY.
    """
    refuse_parts(tree, scope.text)
    aliases = {name.lower(): expression for name, expression in reversed(wanted)}

    def names_key(node: exp.Column) -> bool:
        return scope.has(node.name) and is_key(resolve(node, scope))

    def replaced(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.AggFunc):
            return resolve(node, scope, None, given)
        if not isinstance(node, exp.Column) or node.name in given:
            return node
        alias = aliases.get(node.name.lower()) if not node.table else None
        return resolve(node, scope) if alias is None or names_key(node) else _wrapped(alias)

    return _with_own_variables(tree).transform(replaced)


def _wrapped(tree: exp.Expr) -> exp.Expr:
    """A copy in parentheses where operators around it could bind more strongly."""
    return exp.Paren(this=tree.copy()) if isinstance(tree, exp.Binary | exp.Unary) else tree.copy()
