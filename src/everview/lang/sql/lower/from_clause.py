"""FROM: items joined by every kind of join, LATERAL VIEW, and the names that USING merges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.lang.sql.bind.refuse import refuse_clauses, refused
from everview.lang.sql.bind.scope import Scope
from everview.lang.sql.lower.conditions import lower_condition
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.from_items import lower_item
from everview.lang.sql.lower.generators import generator_of, lower_lateral_view
from everview.lang.sql.lower.lateral import asof_subquery, lateral_join
from everview.lang.sql.lower.outer_joins import (
    anti_join_on,
    inner_join,
    outer_join,
    semi_join_on,
)
from everview.plan.build import columns_of, filter_, identity, join, map_, project
from everview.plan.nodes import Output, Plan, Values
from everview.plan.traverse import schema_of


def lower_from(context: LoweringContext, tree: exp.Select, scope: Scope) -> Plan:
    """The rows of a FROM clause for each value of the domain; `scope` learns what is visible."""
    plan = _joined_items(context, tree, scope)
    for view in tree.args.get("laterals") or ():
        plan = lower_lateral_view(context, plan, view, scope, outer=bool(view.args.get("outer")))
    return plan


def _joined_items(context: LoweringContext, tree: exp.Select, scope: Scope) -> Plan:
    clause = tree.args.get("from_")
    if clause is None:
        return context.with_domain(Values((), ((),)))
    plan = _joined(context, clause.this, scope)
    joins = tree.args.get("joins") or ()
    # The rows of a RIGHT or FULL join that have no partner belong to every value of the domain.
    late = any(str(each.args.get("side") or "").upper() in ("RIGHT", "FULL") for each in joins)
    if context.carries_domain(plan):
        if late:
            raise _reads_domain_error(clause.this, context)
    elif not late:
        plan = context.with_domain(plan)
    for each in joins:
        plan = _join(context, plan, each, scope)
    return context.with_domain(plan) if late else plan


def _reads_domain_error(node: exp.Expr, context: LoweringContext) -> UserError:
    name = "a generator or subquery in an outer join that reads the query around its subquery"
    return refused(name, node, context.text, "let it be the first in FROM, without RIGHT or FULL")


def _joined(context: LoweringContext, node: exp.Expr, scope: Scope) -> Plan:
    """An item, with the joins that parentheses bind to it."""
    if _is_parenthesised(node):
        refuse_clauses(node, context.text)
        plan = _joined(context, node.this, scope)
    else:
        plan = lower_item(context, node, scope)
    for each in node.args.get("joins") or ():
        plan = _join(context, plan, each, scope)
    return plan


def _is_parenthesised(node: exp.Expr) -> bool:
    """Whether a node is a join in parentheses without an alias, which hides none of its items."""
    is_parenthesis = isinstance(node, exp.Paren | exp.Subquery)
    return is_parenthesis and isinstance(node.this, exp.Table) and not node.alias


def _join(context: LoweringContext, plan: Plan, node: exp.Join, scope: Scope) -> Plan:
    words = [str(node.args[p]).upper() for p in ("method", "side", "kind") if node.args.get(p)]
    if "ASOF" in words:
        return _asof_join(context, plan, node, scope)
    natural = "NATURAL" in words
    kept = [word for word in words if word not in ("NATURAL", "OUTER", "INNER", "CROSS")]
    kind = " ".join(kept)
    if kind not in _KINDS:
        raise refused(f"{' '.join(words)} JOIN", node, context.text, "use another kind of join")
    if isinstance(node.this, exp.Lateral) and generator_of(node.this.this) is not None:
        return _generator_join(context, plan, node, kind, scope)
    if isinstance(node.this, exp.Lateral):
        return lateral_join(context, plan, node, scope, kind)
    before = scope.copy()
    right = _joined(context, node.this, scope)
    if context.carries_domain(right):
        if kind or not context.carries_domain(plan):
            raise _reads_domain_error(node.this, context)
        plan, right = _joined_by_domain(context, plan, right), Values((), ((),))
    fresh = scope.since(before)
    using = [each.name for each in node.args.get("using") or ()]
    if natural:
        using = before.common(fresh)
    both = join(plan, right)
    conditions = [_equal(name, before, fresh, node) for name in using]
    if on := node.args.get("on"):
        conditions.append(lower_condition(context, on, both, scope, "ON"))
    joined = _KINDS[kind](plan, right, scalar.conjunction(conditions))
    if kind.endswith(("SEMI", "ANTI")):
        scope.items, scope.visible = before.items, before.visible
        scope.merge([(name, before.resolve(_using_column(name, node))) for name in using])
        return joined
    return _merged(context, joined, _Using(tuple(using), before, fresh, kind), scope)


def _joined_by_domain(context: LoweringContext, plan: Plan, right: Plan) -> Plan:
    """Two items that both carry the domain, for equal values of it."""
    mark, carried = "right ", context.domain_columns
    outputs = (
        replace(each, name=mark + each.name) if each.name in carried else each
        for each in identity(schema_of(right))
    )
    on = tuple((name, mark + name) for name in carried)
    both = join(plan, map_(right, tuple(outputs)), on, nulls=True)
    kept = (*columns_of(plan), *(n for n in columns_of(right) if n not in carried))
    return project(both, kept)


_KINDS: dict[str, Callable[[Plan, Plan, str | None], Plan]] = {
    "": inner_join,
    "LEFT": lambda a, b, on: outer_join(a, b, on, "LEFT"),
    "RIGHT": lambda a, b, on: outer_join(a, b, on, "RIGHT"),
    "FULL": lambda a, b, on: outer_join(a, b, on, "FULL"),
    "SEMI": semi_join_on,
    "LEFT SEMI": semi_join_on,
    "ANTI": anti_join_on,
    "LEFT ANTI": anti_join_on,
}


def _asof_join(context: LoweringContext, plan: Plan, node: exp.Join, scope: Scope) -> Plan:
    """A join with the nearest row of the other side; LEFT keeps those that have none."""
    before = scope.copy()
    _joined(context, node.this, scope)
    fresh = scope.since(before)
    scope.items, scope.visible = list(before.items), list(before.visible)
    if len(fresh.items) != 1:
        raise refused("ASOF JOIN with a join", node.this, context.text, "join a table or subquery")
    alias = fresh.items[0].alias
    using = [each.name for each in node.args.get("using") or ()]
    conditions = [_using_condition(name, before, alias, node) for name in using]
    if on := node.args.get("on"):
        conditions.append(on)
    lateral = asof_subquery(node, alias, conditions, fresh, context.text)
    kind = str(node.args.get("side") or "").upper()
    joined = lateral_join(context, plan, exp.Join(this=lateral, side=kind or None), scope, kind)
    return _merged(context, joined, _Using(tuple(using), before, scope.since(before), kind), scope)


def _using_condition(name: str, before: Scope, alias: str, node: exp.Join) -> exp.Expr:
    """The equality that USING asks for of one name, as it would be written in ON."""
    left = _using_column(name, node)
    owner = before.alias_of(before.resolve(left))
    if owner:
        left.set("table", exp.Identifier(this=owner, quoted=True))
    right = _using_column(name, node)
    right.set("table", exp.Identifier(this=alias, quoted=True))
    return exp.EQ(this=left, expression=right)


def _generator_join(
    context: LoweringContext, plan: Plan, node: exp.Join, kind: str, scope: Scope
) -> Plan:
    """A join with the rows that a generator makes of each row; LEFT keeps those without."""
    on = node.args.get("on")
    is_true = not isinstance(on, exp.Expr) or (isinstance(on, exp.Boolean) and bool(on.this))
    if kind not in ("", "LEFT") or node.args.get("using") or (kind and not is_true):
        remedy = "use CROSS JOIN LATERAL, or LEFT JOIN LATERAL … ON TRUE"
        raise refused("this kind of join with a generator", node, context.text, remedy)
    plan = lower_lateral_view(context, plan, node.this, scope, outer=kind == "LEFT")
    if is_true or not isinstance(on, exp.Expr):
        return plan
    return filter_(plan, lower_condition(context, on, plan, scope, "ON"))


def _using_column(name: str, node: exp.Join) -> exp.Column:
    """A column that USING names, at its place in the text."""
    column = exp.Column(this=exp.Identifier(this=name))
    column.this.meta.update(node.args["using"][0].meta if node.args.get("using") else {})
    return column


def _equal(name: str, before: Scope, fresh: Scope, node: exp.Join) -> str:
    """The equality that USING asks for of one name."""
    column = _using_column(name, node)
    left, right = before.resolve(column), fresh.resolve(column)
    return scalar.canonical(f"{scalar.column(left)} = {scalar.column(right)}")


@dataclass(frozen=True, slots=True)
class _Using:
    """The names of USING or NATURAL, with the columns on both sides of the join."""

    names: tuple[str, ...]
    left: Scope
    right: Scope
    kind: str


def _merged(context: LoweringContext, plan: Plan, using: _Using, scope: Scope) -> Plan:
    """One column for each name in USING: of a FULL join the one of the two that is not NULL."""
    outputs = list(identity(schema_of(plan)))
    merged = []
    for name in using.names:
        node = exp.Column(this=exp.Identifier(this=name))
        left, right = using.left.resolve(node), using.right.resolve(node)
        column = right if using.kind == "RIGHT" else left
        if using.kind == "FULL":
            text = scalar.canonical(f"COALESCE({scalar.column(left)}, {scalar.column(right)})")
            column = f"using.{name}"
            outputs = [each for each in outputs if each.name != column]
            outputs.append(Output(column, context.type_of(text, schema_of(plan), node), text))
        merged.append((name, column))
    scope.merge(merged)
    return map_(plan, tuple(outputs))
