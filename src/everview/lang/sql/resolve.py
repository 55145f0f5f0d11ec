"""Names in an expression to plan columns, and aliases to what they stand for."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from everview.lang.sql.aggregates import Grouping
from everview.lang.sql.refuse import refuse_parts
from everview.lang.sql.scope import Scope
from everview.plan import scalar


def resolve(
    tree: exp.Expr,
    scope: Scope,
    aliases: Mapping[str, exp.Expr] | None = None,
    given: Collection[str] = (),
) -> exp.Expr:
    """The expression with plan columns instead of names, its places kept.

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
        made = exp.Column(this=exp.Identifier(this=scope.resolve(node), quoted=True))
        made.meta.update(node.this.meta)
        return made

    return tree.transform(replaced)


def resolve_having(
    tree: exp.Expr,
    scope: Scope,
    wanted: list[tuple[str, exp.Expr]],
    grouping: Grouping,
    given: Collection[str] = (),
) -> exp.Expr:
    """HAVING: outside aggregates a name is a group key, or else an alias of the SELECT list."""
    refuse_parts(tree, scope.text)
    aliases = {name.lower(): expression for name, expression in reversed(wanted)}

    def is_key(node: exp.Column) -> bool:
        return scope.has(node.name) and scalar.text(resolve(node, scope)) in grouping.keys

    def replaced(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.AggFunc):
            return resolve(node, scope, None, given)
        if not isinstance(node, exp.Column) or node.name in given:
            return node
        alias = aliases.get(node.name.lower()) if not node.table else None
        return resolve(node, scope) if alias is None or is_key(node) else _wrapped(alias)

    return tree.transform(replaced)


def _wrapped(tree: exp.Expr) -> exp.Expr:
    """A copy that keeps its meaning wherever it is put."""
    return exp.Paren(this=tree.copy()) if isinstance(tree, exp.Binary | exp.Unary) else tree.copy()
