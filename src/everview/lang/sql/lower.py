"""A query to a plan: names resolved, types known, every clause an operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from everview.errors import Span, UserError
from everview.lang.sql.aggregates import Grouping, aggregates_in, function_of, result_type
from everview.lang.sql.naming import output_name
from everview.lang.sql.parse import parse_query
from everview.lang.sql.place import span_of
from everview.lang.sql.refuse import refuse_clauses, refused
from everview.lang.sql.resolve import resolve, resolve_having
from everview.lang.sql.scope import Scope, qualified
from everview.lang.sql.shaping import as_types, behind, renamed, with_partner
from everview.lang.sql.values import lower_values
from everview.plan import scalar
from everview.plan.build import (
    add,
    columns_of,
    distinct,
    filter_,
    group_by,
    join,
    map_,
    negate,
    project,
)
from everview.plan.nodes import Aggregate, Output, Plan, Source, Values
from everview.plan.traverse import schema_of
from everview.plan.types import Column, Schema, Type, storable_type, unusable_name
from everview.plan.typing import type_of

Analyze = Callable[[str, Schema, Span | None], Type]


def lower_query(
    text: str,
    relations: Mapping[str, Source],
    analyze: Analyze,
    columns: tuple[str, ...] = (),
) -> Plan:
    """The plan of a query; `relations` are the tables and views it may read, by lower-case name.

    `analyze` gives the type of a scalar that our own rules do not know.
    """
    lowered = _Lowering(text, relations, analyze, {}).query(parse_query(text))
    return _named(renamed(lowered, columns, text) if columns else lowered, text)


def lower_tree(
    tree: exp.Expr, text: str, relations: Mapping[str, Source], analyze: Analyze
) -> Plan:
    """The plan of a parsed query; `text` is where its places are."""
    return _named(_Lowering(text, relations, analyze, {}).query(tree), text)


def _named(plan: Plan, text: str) -> Plan:
    """The plan, when its columns have usable names."""
    seen: set[str] = set()
    for name in columns_of(plan):
        unusable = unusable_name(name)
        if name.lower() in seen or unusable:
            raise UserError(
                "Q011",
                unusable or f"two columns are called {name}",
                span=Span(text, 0, len(text)),
                remedy="give one of them another name with AS",
            )
        seen.add(name.lower())
    return plan


@dataclass(frozen=True, slots=True)
class _Lowering:
    text: str
    relations: Mapping[str, Source]
    analyze: Analyze
    ctes: Mapping[str, Plan]

    def query(self, tree: exp.Expr) -> Plan:
        """Any query: with CTEs, in parentheses, a set operation or a SELECT."""
        inner = self._with_ctes(tree)
        match tree:
            case exp.Subquery():
                refuse_clauses(tree, self.text)
                return inner.query(tree.this)
            case exp.Union():
                return inner.union(tree)
            case exp.Select():
                return inner.select(tree)
            case exp.Values():
                return lower_values(tree, self.text, self._type)
            case exp.SetOperation():
                name = f"{tree.key.upper()}"
                raise refused(name, tree, self.text, "use joins and SELECT DISTINCT")
            case _:
                name = tree.key.upper()
                raise refused(name, tree, self.text, "write a SELECT")

    def _with_ctes(self, tree: exp.Expr) -> _Lowering:
        clause = tree.args.get("with_")
        if clause is None:
            return self
        if clause.args.get("recursive"):
            raise refused("WITH RECURSIVE", clause, self.text, "write the joins out")
        inner = self
        for cte in clause.expressions:
            plan = inner.query(cte.this)
            given = tuple(column.name for column in cte.args["alias"].columns)
            plan = renamed(plan, given, self.text) if given else plan
            inner = replace(inner, ctes={**inner.ctes, cte.alias.lower(): plan})
        return inner

    def union(self, tree: exp.Union) -> Plan:
        """UNION ALL is +; UNION is δ of it."""
        refuse_clauses(tree, self.text)
        if tree.args.get("by_name"):
            raise refused("UNION BY NAME", tree, self.text, "select the columns in one order")
        left, right = self.query(tree.left), self.query(tree.right)
        a, b = schema_of(left), schema_of(right)
        if len(a) != len(b):
            raise UserError(
                "Q012",
                f"the sides of UNION have {len(a)} and {len(b)} columns",
                span=span_of(tree, self.text),
                remedy="select as many columns on both sides",
            )
        pairs = [self._common(x.name, x.type, y.type, tree) for x, y in zip(a, b, strict=True)]
        both = add(as_types(left, pairs), as_types(right, pairs))
        return distinct(both) if tree.args.get("distinct") else both

    def _common(self, name: str, a: Type, b: Type, tree: exp.Expr) -> tuple[str, Type]:
        if a == b:
            return name, a
        schema = (Column("a", a), Column("b", b))
        return name, self._type("COALESCE(`a`, `b`)", schema, tree)

    def select(self, tree: exp.Select) -> Plan:
        """FROM, WHERE, GROUP BY, HAVING, SELECT and DISTINCT, in that order."""
        refuse_clauses(tree, self.text)
        plan, scope = self._from(tree)
        if where := tree.args.get("where"):
            plan = filter_(plan, self._condition(where.this, plan, scope, "WHERE"))
        wanted = self._projections(tree, scope)
        having = tree.args.get("having")
        grouped = tree.args.get("group") or having
        if grouped or any(aggregates_in(expression) for _, expression in wanted):
            plan, wanted, condition = self._group(tree, plan, scope, wanted)
            plan = filter_(plan, condition)
        outputs = tuple(self._output(name, e, schema_of(plan)) for name, e in wanted)
        plan = map_(plan, outputs)
        if (quantifier := tree.args.get("distinct")) is not None:
            if quantifier.args.get("on"):
                raise refused("DISTINCT ON", quantifier, self.text, "use GROUP BY")
            plan = distinct(plan)
        return plan

    def _from(self, tree: exp.Select) -> tuple[Plan, Scope]:
        scope = Scope(self.text)
        clause = tree.args.get("from_")
        if clause is None:
            return Values((), ((),)), scope
        plan = self._item(clause.this, scope)
        for each in tree.args.get("joins") or ():
            plan = self._join(plan, each, scope)
        return plan, scope

    def _join(self, plan: Plan, node: exp.Join, scope: Scope) -> Plan:
        words = " ".join(
            str(node.args[part]).upper()
            for part in ("method", "side", "kind")
            if node.args.get(part)
        )
        if words in ("LEFT SEMI", "SEMI", "LEFT ANTI", "ANTI"):
            return self._semi_join(plan, node, scope, keep="SEMI" in words)
        if words not in ("", "INNER", "CROSS"):
            remedy = "use an inner join, and UNION ALL for the rows without a partner"
            raise refused(f"{words} JOIN", node, self.text, remedy)
        if node.args.get("using"):
            raise refused("JOIN … USING", node, self.text, "write ON a.key = b.key")
        made = join(plan, self._item(node.this, scope))
        if condition := node.args.get("on"):
            return filter_(made, self._condition(condition, made, scope, "ON"))
        return made

    def _semi_join(self, plan: Plan, node: exp.Join, scope: Scope, *, keep: bool) -> Plan:
        """The rows of `plan` that have a partner, or those that have none."""
        if node.args.get("using"):
            raise refused("JOIN … USING", node, self.text, "write ON a.key = b.key")
        outer = len(scope.items)
        made = join(plan, self._item(node.this, scope))
        if condition := node.args.get("on"):
            made = filter_(made, self._condition(condition, made, scope, "ON"))
        del scope.items[outer:]
        found = with_partner(plan, distinct(project(made, columns_of(plan))))
        return found if keep else add(plan, negate(found))

    def _item(self, node: exp.Expr, scope: Scope) -> Plan:
        """A FROM item, its columns named after its alias."""
        refuse_clauses(node, self.text)
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                plan, alias = self._relation(node), node.alias or node.name
            case exp.Subquery() | exp.Values():
                inner = node if isinstance(node, exp.Values) else node.this
                plan, alias = self.query(inner), node.alias or f"item {len(scope.items) + 1}"
            case _:
                raise refused(
                    f"{node.key.upper()} in FROM", node, self.text, "name a table, view or subquery"
                )
        given = tuple(column.name for column in node.args["alias"].columns) if node.alias else ()
        plan = renamed(plan, given, self.text) if given else plan
        if any(item.alias.lower() == alias.lower() for item in scope.items):
            raise UserError(
                "Q008",
                f"{alias} stands twice in FROM",
                span=span_of(node, self.text),
                remedy="give each its own alias with AS",
            )
        item = qualified(alias, schema_of(plan))
        scope.items.append(item)
        return map_(plan, behind(item, schema_of(plan)))

    def _relation(self, node: exp.Table) -> Plan:
        name = node.name.lower()
        if not node.args.get("db"):
            if name in self.ctes:
                return self.ctes[name]
            if name in self.relations:
                return self.relations[name]
        known = ", ".join(sorted(source.name for source in self.relations.values()))
        raise UserError(
            "Q006",
            f"there is no table or view {node.sql(dialect='spark').split(' AS ')[0]}",
            span=span_of(node.this, self.text),
            remedy=f"create it first; there are: {known}" if known else "create it first",
        )

    def _projections(self, tree: exp.Select, scope: Scope) -> list[tuple[str, exp.Expr]]:
        """The SELECT list with stars expanded: output names and resolved expressions."""
        found: list[tuple[str, exp.Expr]] = []
        for node in tree.expressions:
            star = node if isinstance(node, exp.Star) else node.this
            if isinstance(star, exp.Star) and isinstance(node, exp.Star | exp.Column):
                if any(star.args.get(part) for part in ("except_", "replace", "rename")):
                    raise refused("* EXCEPT", node, self.text, "list the columns")
                table = node.table if isinstance(node, exp.Column) else None
                pairs = scope.star(table or None, node)
                found += [(name, scalar.parse(scalar.column(plan))) for name, plan in pairs]
                continue
            inner = node.this if isinstance(node, exp.Alias) else node
            found.append((output_name(node), resolve(inner, scope, dict(reversed(found)))))
        return found

    def _condition(self, tree: exp.Expr, plan: Plan, scope: Scope, clause: str) -> str:
        resolved = resolve(tree, scope)
        for node in aggregates_in(resolved):
            raise UserError(
                "Q009",
                f"an aggregate in {clause}",
                span=span_of(node, self.text),
                remedy="move the condition to HAVING",
            )
        return self._boolean(resolved, schema_of(plan), clause)

    def _boolean(self, tree: exp.Expr, schema: Schema, clause: str) -> str:
        text = scalar.text(tree)
        found = self._type(text, schema, tree)
        if found not in ("boolean", "void"):
            raise UserError(
                "Q013",
                f"the condition after {clause} is {found}, not boolean",
                span=span_of(tree, self.text),
                remedy="compare it with something",
            )
        return text

    def _group(
        self,
        tree: exp.Select,
        plan: Plan,
        scope: Scope,
        wanted: list[tuple[str, exp.Expr]],
    ) -> tuple[Plan, list[tuple[str, exp.Expr]], str | None]:
        """Group the rows; the SELECT list and HAVING then speak of groups."""
        grouping, schema = Grouping(self.text), schema_of(plan)
        for node in self._group_keys(tree, scope, wanted):
            text = scalar.text(node)
            grouping.keys[text] = grouping.input(text, self._type(text, schema, node), "key")
        having = tree.args.get("having")
        condition = None
        if having:
            condition = resolve_having(having.this, scope, wanted, grouping)
        for expression in (*(e for _, e in wanted), *((condition,) if condition else ())):
            for node in aggregates_in(expression):
                self._aggregate(node, grouping, schema)
        inputs = map_(plan, tuple(grouping.inputs.values()))
        keys = tuple(dict.fromkeys(grouping.keys.values()))
        grouped = group_by(inputs, keys, tuple(grouping.aggregates.values()))
        over = [(name, grouping.over_groups(e)) for name, e in wanted]
        kept = None
        if condition is not None:
            kept = self._boolean(grouping.over_groups(condition), schema_of(grouped), "HAVING")
        return grouped, over, kept

    def _group_keys(
        self, tree: exp.Select, scope: Scope, wanted: list[tuple[str, exp.Expr]]
    ) -> list[exp.Expr]:
        clause = tree.args.get("group")
        if clause is None:
            return []
        for part in ("grouping_sets", "rollup", "cube", "totals"):
            if clause.args.get(part):
                name = part.upper().replace("_", " ")
                raise refused(name, clause, self.text, "UNION ALL one GROUP BY for each set")
        if clause.args.get("all"):
            raise refused("GROUP BY ALL", clause, self.text, "list the columns")
        return [self._group_key(node, scope, wanted) for node in clause.expressions]

    def _group_key(
        self, node: exp.Expr, scope: Scope, wanted: list[tuple[str, exp.Expr]]
    ) -> exp.Expr:
        """A key by position, by an alias of the SELECT list, or by expression."""
        if isinstance(node, exp.Literal) and not node.is_string:
            position = int(node.name) if node.name.isdigit() else 0
            if not 1 <= position <= len(wanted):
                raise UserError(
                    "Q009",
                    f"GROUP BY position {node.name} is not in the SELECT list",
                    span=Span(self.text, 0, len(self.text)),
                    remedy=f"use 1 to {len(wanted)}",
                )
            return wanted[position - 1][1]
        if isinstance(node, exp.Column) and not node.table and not scope.has(node.name):
            for name, expression in wanted:
                if name.lower() == node.name.lower() and not aggregates_in(expression):
                    return expression
        resolved = resolve(node, scope)
        for found in aggregates_in(resolved):
            raise UserError(
                "Q009",
                "an aggregate in GROUP BY",
                span=span_of(found, self.text),
                remedy="group by plain expressions",
            )
        return resolved

    def _aggregate(self, node: exp.AggFunc, grouping: Grouping, schema: Schema) -> None:
        shown = scalar.text(node)
        if shown in grouping.aggregates:
            return
        function = function_of(node, self.text)
        name = f"agg{len(grouping.aggregates) + 1}"
        argument = node.this
        counts_rows = function == "count" and isinstance(argument, exp.Star | exp.Literal)
        if counts_rows:
            grouping.aggregates[shown] = Aggregate(name, "bigint", "count")
            return
        text = scalar.text(argument)
        type_ = self._type(text, schema, argument)
        if function != "count" and type_ in ("string", "void"):
            text, type_ = scalar.canonical(f"CAST({text} AS DOUBLE)"), "double"
        if function == "count" and storable_type(type_) is None:
            text, type_ = scalar.canonical(f"CASE WHEN {text} IS NULL THEN NULL ELSE 1 END"), "int"
        result = result_type(function, type_)
        if result is None:
            raise UserError(
                "Q013",
                f"{function.upper()} of {type_} has no meaning",
                span=span_of(node, self.text),
                remedy="aggregate a number, or CAST it to one",
            )
        column = grouping.input(text, type_, "value")
        grouping.aggregates[shown] = Aggregate(name, result, function, column)

    def _output(self, name: str, tree: exp.Expr, schema: Schema) -> Output:
        text = scalar.text(tree)
        type_ = self._type(text, schema, tree)
        if storable_type(type_) is None:
            raise UserError(
                "Q014",
                f"the column {name} has a type that cannot be stored yet: {type_}",
                span=span_of(tree, self.text) or Span(self.text, 0, len(self.text)),
                remedy="CAST it to a plain type" if type_ != "void" else "CAST NULL to a type",
            )
        return Output(name, type_, text)

    def _type(self, text: str, schema: Schema, node: exp.Expr) -> Type:
        known = type_of(text, schema)
        return known if known is not None else self.analyze(text, schema, span_of(node, self.text))
