"""FROM: tables, views, subqueries and VALUES, joined in every way there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.types import names
from everview.lang.sql.bind.refuse import function_name, refuse_clauses, refused
from everview.lang.sql.bind.resolve import resolve
from everview.lang.sql.bind.scope import (
    Item,
    Scope,
    is_negated,
    negated_name,
    qualified,
    unlike,
)
from everview.lang.sql.lower import pivot, subqueries
from everview.lang.sql.lower.aggregates import must_be_plain
from everview.lang.sql.lower.asof import asof_subquery
from everview.lang.sql.lower.columns import behind, name_each
from everview.lang.sql.lower.generators import Generator, generated, generator
from everview.lang.sql.lower.generators import renamed as named
from everview.lang.sql.lower.lateral import keep_lonely, lateral_pairs
from everview.lang.sql.lower.outer_joins import inner_join, matched, outer_join, unmatched
from everview.lang.sql.lower.range_function import range_query
from everview.lang.sql.parse.span import span_of
from everview.plan.build import columns_of, filter_, identity, join, map_, project
from everview.plan.nodes import Output, Plan, Values
from everview.plan.traverse import schema_of


class Lower(subqueries.Lower, pivot.Lower, Protocol):
    """What FROM needs of the lowering around it."""

    @property
    def carried(self) -> tuple[str, ...]:
        """The columns of the domain."""

    def carrying(self, plan: Plan) -> Plan:
        """The rows once for each value of the domain."""

    def item(self, tree: exp.Expr) -> Plan:
        """The plan of a subquery in FROM."""

    def body(self, node: exp.Expr) -> exp.Expr | None:
        """The query that WITH gives the name of a table, None for other tables."""

    def unsure_columns(self, tree: exp.Expr) -> frozenset[int]:
        """The places of columns of a query that hold IN (subquery), without NOT beside them."""

    def relation(self, node: exp.Table) -> Plan:
        """The plan of a named relation."""

    def cut(self, plan: Plan, tree: exp.Expr) -> Plan:
        """ORDER BY, LIMIT and OFFSET over the columns of a result."""

    def condition(self, tree: exp.Expr, plan: Plan, scope: Scope, clause: str) -> str:
        """A boolean condition over the rows of `plan`."""


def lower_from(lower: Lower, tree: exp.Select, scope: Scope) -> Plan:
    """The rows of a FROM clause for each value of the domain; `scope` learns what is visible."""
    plan = _joined_items(lower, tree, scope)
    for view in tree.args.get("laterals") or ():
        plan = _lateral(lower, plan, view, scope, outer=bool(view.args.get("outer")))
    return plan


def _joined_items(lower: Lower, tree: exp.Select, scope: Scope) -> Plan:
    clause = tree.args.get("from_")
    if clause is None:
        return lower.carrying(Values((), ((),)))
    plan = _joined(lower, clause.this, scope)
    joins = tree.args.get("joins") or ()
    # The rows of a RIGHT or FULL join that have no partner belong to every value of the domain.
    late = any(str(each.args.get("side") or "").upper() in ("RIGHT", "FULL") for each in joins)
    if _reads_around(lower, plan):
        if late:
            raise _around(clause.this, lower)
    elif not late:
        plan = lower.carrying(plan)
    for each in joins:
        plan = _join(lower, plan, each, scope)
    return lower.carrying(plan) if late else plan


def _reads_around(lower: Lower, plan: Plan) -> bool:
    """Whether the rows of an item carry the domain: a generator may make them of its columns."""
    return bool(lower.carried) and set(lower.carried) <= set(columns_of(plan))


def _around(node: exp.Expr, lower: Lower) -> UserError:
    name = "a generator in a join that reads the query around its subquery"
    return refused(name, node, lower.text, "let it be the first in FROM, without RIGHT or FULL")


def _joined(lower: Lower, node: exp.Expr, scope: Scope) -> Plan:
    """An item, with the joins that parentheses bind to it."""
    plan = _item(lower, node, scope)
    for each in node.args.get("joins") or ():
        plan = _join(lower, plan, each, scope)
    return plan


def _join(lower: Lower, plan: Plan, node: exp.Join, scope: Scope) -> Plan:
    words = [str(node.args[p]).upper() for p in ("method", "side", "kind") if node.args.get(p)]
    if "ASOF" in words:
        return _asof_join(lower, plan, node, scope)
    natural = "NATURAL" in words
    kept = [word for word in words if word not in ("NATURAL", "OUTER", "INNER", "CROSS")]
    kind = " ".join(kept)
    if kind not in _KINDS:
        raise refused(f"{' '.join(words)} JOIN", node, lower.text, "use another kind of join")
    if isinstance(node.this, exp.Lateral) and generator(node.this.this) is not None:
        return _lateral_join(lower, plan, node, kind, scope)
    if isinstance(node.this, exp.Lateral):
        return _lateral_subquery(lower, plan, node, scope, kind)
    before = scope.copy()
    right = _joined(lower, node.this, scope)
    if _reads_around(lower, right):
        raise _around(node.this, lower)
    fresh = scope.since(before)
    using = [each.name for each in node.args.get("using") or ()]
    if natural:
        using = before.common(fresh)
    both = join(plan, right)
    conditions = [_equal(name, before, fresh, node) for name in using]
    if on := node.args.get("on"):
        conditions.append(lower.condition(on, both, scope, "ON"))
    made = _KINDS[kind](plan, right, scalar.conjunction(conditions))
    if kind.endswith(("SEMI", "ANTI")):
        scope.items, scope.visible = before.items, before.visible
        scope.merge([(name, before.resolve(_named(name, node))) for name in using])
        return made
    return _merged(made, using, before, fresh, kind, scope, lower)


_KINDS: dict[str, Callable[[Plan, Plan, str | None], Plan]] = {
    "": inner_join,
    "LEFT": lambda a, b, on: outer_join(a, b, on, "LEFT"),
    "RIGHT": lambda a, b, on: outer_join(a, b, on, "RIGHT"),
    "FULL": lambda a, b, on: outer_join(a, b, on, "FULL"),
    "SEMI": matched,
    "LEFT SEMI": matched,
    "ANTI": unmatched,
    "LEFT ANTI": unmatched,
}


def _asof_join(lower: Lower, plan: Plan, node: exp.Join, scope: Scope) -> Plan:
    """A join with the nearest row of the other side; LEFT keeps those that have none."""
    before = scope.copy()
    _joined(lower, node.this, scope)
    fresh = scope.since(before)
    scope.items, scope.visible = list(before.items), list(before.visible)
    if len(fresh.items) != 1:
        raise refused("ASOF JOIN with a join", node.this, lower.text, "join a table or subquery")
    alias = fresh.items[0].alias
    using = [each.name for each in node.args.get("using") or ()]
    conditions = [_of_both(name, before, alias, node) for name in using]
    if on := node.args.get("on"):
        conditions.append(on)
    lateral = asof_subquery(node, alias, conditions, fresh, lower.text)
    kind = str(node.args.get("side") or "").upper()
    joined = exp.Join(this=lateral, side=kind or None)
    made = _lateral_subquery(lower, plan, joined, scope, kind)
    return _merged(made, using, before, scope.since(before), kind, scope, lower)


def _of_both(name: str, before: Scope, alias: str, node: exp.Join) -> exp.Expr:
    """The equality that USING asks for of one name, as it would be written in ON."""
    left = _named(name, node)
    owner = before.alias_of(before.resolve(left))
    if owner:
        left.set("table", exp.Identifier(this=owner, quoted=True))
    right = _named(name, node)
    right.set("table", exp.Identifier(this=alias, quoted=True))
    return exp.EQ(this=left, expression=right)


def _lateral_subquery(lower: Lower, plan: Plan, node: exp.Join, scope: Scope, kind: str) -> Plan:
    """A join with a subquery that reads the rows before it."""
    if kind not in ("", "LEFT") or node.args.get("using"):
        raise refused(f"{kind} JOIN LATERAL", node, lower.text, "use JOIN or LEFT JOIN … ON")
    pairs = lateral_pairs(lower, plan, node.this, scope)
    if on := node.args.get("on"):
        pairs = filter_(pairs, lower.condition(on, pairs, scope, "ON"))
    return keep_lonely(plan, pairs) if kind else pairs


def _lateral_join(lower: Lower, plan: Plan, node: exp.Join, kind: str, scope: Scope) -> Plan:
    """A join with the rows that a generator makes of each row; LEFT keeps those without."""
    on = node.args.get("on")
    told = not isinstance(on, exp.Expr) or (isinstance(on, exp.Boolean) and bool(on.this))
    if kind not in ("", "LEFT") or node.args.get("using") or (kind and not told):
        remedy = "use CROSS JOIN LATERAL, or LEFT JOIN LATERAL … ON TRUE"
        raise refused("this kind of join with a generator", node, lower.text, remedy)
    plan = _lateral(lower, plan, node.this, scope, outer=kind == "LEFT")
    if told or not isinstance(on, exp.Expr):
        return plan
    return filter_(plan, lower.condition(on, plan, scope, "ON"))


def lateral_rows(
    lower: Lower, plan: Plan, array: exp.Expr, name: str, scope: Scope, node: exp.Expr
) -> Plan:
    """Each row once for each element of an array over plan columns, which is a column `name`."""
    call = Generator(node, array)
    made, columns = generated(lower, plan, call, scalar.text(array))
    outputs = tuple(replace(each, name=f"{name}.{name}") for each in columns)
    scope.add(Item(name, ((name, f"{name}.{name}"),)), node)
    return map_(made, (*identity(schema_of(plan)), *outputs))


def _first_lateral(lower: Lower, node: exp.Expr, scope: Scope) -> Plan:
    """The rows that a generator makes of no row, or of each value of the domain if it reads one."""
    call = generator(node.this)
    alone: Plan = Values((), ((),))
    reads = call is not None and scalar.columns(scalar.text(resolve(call.array, scope.copy())))
    return _lateral(lower, lower.carrying(alone) if reads else alone, node, scope, outer=False)


def _lateral(lower: Lower, plan: Plan, node: exp.Expr, scope: Scope, *, outer: bool) -> Plan:
    """The rows that a generator makes of each row, beside it; `scope` learns its columns."""
    call = generator(node.this)
    if call is None:
        remedy = "use EXPLODE, POSEXPLODE, INLINE or STACK"
        name = function_name(node.this).upper()
        raise refused(f"LATERAL {name}", node, lower.text, remedy)
    call = replace(call, outer=call.outer or outer)
    array = resolve(call.array, scope)
    must_be_plain(array, "LATERAL", lower.text)
    made, columns = generated(lower, plan, call, scalar.text(array))
    given = node.args.get("alias")
    if node.args.get("view") and not (given and (given.this or given.columns)):
        raise UserError(
            "Q001",
            "syntax error: LATERAL VIEW has no name",
            span=span_of(node, lower.text),
            remedy="write LATERAL VIEW explode(…) name AS column",
        )
    names = [column.name for column in given.columns] if given else []
    alias = node.alias or f"item {len(scope.items) + 1}"
    outputs = tuple(
        replace(o, name=f"{alias}.{o.name}") for o in named(columns, names, call, lower.text)
    )
    shown = tuple((o.name.removeprefix(f"{alias}."), o.name) for o in outputs)
    scope.add(Item(alias, shown), node)
    return map_(made, (*identity(schema_of(plan)), *outputs))


def _named(name: str, node: exp.Join) -> exp.Column:
    """A column that USING names, at its place in the text."""
    asked = exp.Column(this=exp.Identifier(this=name))
    asked.this.meta.update(node.args["using"][0].meta if node.args.get("using") else {})
    return asked


def _equal(name: str, before: Scope, fresh: Scope, node: exp.Join) -> str:
    """The equality that USING asks for of one name."""
    asked = _named(name, node)
    left, right = before.resolve(asked), fresh.resolve(asked)
    return scalar.canonical(f"{scalar.column(left)} = {scalar.column(right)}")


def _merged(
    plan: Plan,
    using: list[str],
    before: Scope,
    fresh: Scope,
    kind: str,
    scope: Scope,
    lower: Lower,
) -> Plan:
    """One column for each name in USING: the one that is not NULL where one may be."""
    made = list(identity(schema_of(plan)))
    merged = []
    for name in using:
        asked = exp.Column(this=exp.Identifier(this=name))
        left, right = before.resolve(asked), fresh.resolve(asked)
        column = right if kind == "RIGHT" else left
        if kind == "FULL":
            text = scalar.canonical(f"COALESCE({scalar.column(left)}, {scalar.column(right)})")
            column = f"using.{name}"
            made = [each for each in made if each.name != column]
            made.append(Output(column, lower.type_(text, schema_of(plan), asked), text))
        merged.append((name, column))
    scope.merge(merged)
    return map_(plan, tuple(made))


def _item(lower: Lower, node: exp.Expr, scope: Scope) -> Plan:
    """A FROM item, its columns named after its alias."""
    refuse_clauses(node, lower.text)
    match node:
        case exp.Table() if isinstance(node.this, exp.Identifier):
            plan, alias = lower.relation(node), node.alias or node.name
        case exp.Table() | exp.Lateral() if generator(node.this) is not None:
            return _first_lateral(lower, node, scope)
        case exp.Table() if (numbers := range_query(node, lower.text)) is not None:
            plan, alias = lower.item(numbers), node.alias or f"item {len(scope.items) + 1}"
        case exp.Paren() | exp.Subquery() if isinstance(node.this, exp.Table) and not node.alias:
            return _joined(lower, node.this, scope)
        case exp.Subquery() if isinstance(node.this, exp.Table):
            # Joins in parentheses that have a name are a table of all their columns.
            joined = exp.Select(expressions=[exp.Star()]).from_(node.this)
            plan, alias = lower.item(joined), node.alias
        case exp.Subquery() | exp.Values() | exp.Lateral(this=exp.Subquery()):
            # There is nothing before the first item that LATERAL could let it read.
            whole = node.this if isinstance(node, exp.Lateral) else node
            inner = whole if isinstance(whole, exp.Values) else whole.this
            plan, alias = lower.item(inner), node.alias or f"item {len(scope.items) + 1}"
        case _:
            remedy = "name a table, view or subquery"
            made = node.this if isinstance(node.this, exp.Func) else None
            name = f"the function {function_name(made)}" if made else node.key.upper()
            raise refused(f"{name} in FROM", node, lower.text, remedy)
    for each in node.args.get("pivots") or ():
        plan = project(plan, tuple(n for n in columns_of(plan) if not is_negated(n)))
        plan, alias = pivot.pivoted(lower, plan, each), each.alias or alias
    given = tuple(column.name for column in node.args["alias"].columns) if node.alias else ()
    schema = schema_of(plan)
    shown = tuple(column for column in schema if not is_negated(column.name))
    if given:
        name_each(given, shown, span_of(node, lower.text))
    called = zip(unlike(given) if given else names(shown), shown, strict=True)
    item = qualified(alias, tuple(replace(column, name=name) for name, column in called))
    scope.add(item, node)
    outputs = list(behind(item, shown))
    for own, (_, column) in zip(shown, item.columns, strict=True):
        if (hidden := negated_name(own.name)) in names(schema):
            outputs.append(Output(negated_name(column), "boolean", scalar.column(hidden)))
            scope.opposites.add(negated_name(column))
    body = node.this if isinstance(node, exp.Subquery) else lower.body(node)
    if body is not None and not node.args.get("pivots"):
        places = (at for at in lower.unsure_columns(body) if at < len(item.columns))
        unsure = {item.columns[at][1] for at in places}
        scope.unsure |= {name for name in unsure if negated_name(name) not in scope.opposites}
    return map_(plan, tuple(outputs))
