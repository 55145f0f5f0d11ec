"""Comprehensions to plans: what a comprehension gives for each row of a plan around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias, assert_never

from everview.expr import scalar
from everview.expr.aggregates import result_type
from everview.expr.quoting import spark_type
from everview.expr.type_inference import type_of
from everview.expr.types import Column, Schema, Type
from everview.lang.nested.disjunctions import disjoint
from everview.lang.nested.normal_form import (
    Call,
    Collection,
    ColumnOf,
    Comprehension,
    Generator,
    Part,
    Term,
    Total,
    Tuple,
    free_columns,
    guarded,
    may_fail,
    totals_in,
)
from everview.lang.nested.primitives import PRIMITIVES, literal
from everview.lang.nested.syntax import Const
from everview.lang.sql.lower.context import Analyze
from everview.plan.build import (
    add,
    columns_of,
    distinct,
    filter_,
    group_by,
    identity,
    join,
    map_,
    negate,
    project,
    unnest,
)
from everview.plan.nodes import Aggregate, Output, Plan, Source, Values
from everview.plan.traverse import schema_of

ONCE = Values((), ((),))
"""The relation of no columns with one row: what stands around a query."""

Computed: TypeAlias = Mapping[Total, str]
"""The columns that hold the aggregates of a plan."""


def column_name(column: ColumnOf) -> str:
    """The column of a plan that holds a column of a variable."""
    return f"{column.variable}.{column.name}"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a comprehension: a plan with the columns of its variables, and its aggregates."""

    plan: Plan
    computed: Computed

    def sql(self, term: Term) -> str:
        """A base value as a scalar over the rows."""
        return _sql(term, self.computed)


@dataclass(frozen=True, slots=True)
class Lowering:
    """Lowers comprehensions over relations; `analyze` types what we have no rule for."""

    sources: Mapping[str, Source]
    analyze: Analyze
    _count: list[int] = field(default_factory=lambda: [0])

    def rows(self, part: Comprehension, around: Plan, heads: Iterable[Term]) -> list[Rows]:
        """The rows of a comprehension for each row around it, as plans to be added.

        The `heads` are what is computed from the rows. A disjunction of joins is one plan for each
        of its sides, so that each is a join by keys.
        """
        plan = around
        for generator in part.generators:
            plan = self._generate(generator, plan)
        conditions = guarded(part.conditions)
        plain = tuple(each for each in conditions if not totals_in(each))
        tested = tuple(each for each in conditions if totals_in(each))
        found: list[Rows] = []
        for side in disjoint(plain):
            test = scalar.conjunction(_predicate(each, {}) for each in side)
            found.append(self._with_totals(filter_(plan, test), tested, tuple(heads)))
        return found

    def type(self, text: str, schema: Schema) -> Type:
        """The type of a scalar by Spark's rules."""
        return type_of(text, schema) or self.analyze(text, schema, None)

    def _generate(self, generator: Generator, plan: Plan) -> Plan:
        variable, source = generator.variable, generator.source
        if not isinstance(source, str):
            (element,) = generator.columns
            column = Column(column_name(ColumnOf(variable, element.name)), element.type)
            return unnest(plan, scalar.canonical(_sql(source, {})), column)
        relation = self.sources[source]
        renamed = (
            Output(column_name(ColumnOf(variable, c.name)), c.type, scalar.column(c.name))
            for c in relation.schema
        )
        rows = map_(relation, tuple(renamed))
        return rows if plan is ONCE else join(plan, rows)

    def _with_totals(self, plan: Plan, tested: tuple[Term, ...], heads: tuple[Term, ...]) -> Rows:
        """The rows with columns for the aggregates in conditions and heads; conditions first."""
        computed: dict[Total, str] = {}
        for terms in (tested, heads):
            for total in dict.fromkeys(each for term in terms for each in totals_in(term)):
                if total not in computed:
                    plan, computed[total] = self._with_total(plan, total)
            if terms is tested and tested:
                test = scalar.conjunction(_predicate(each, computed) for each in tested)
                plan = filter_(plan, test)
        return Rows(plan, computed)

    def _with_total(self, plan: Plan, total: Total) -> tuple[Plan, str]:
        """The rows with one more column: an aggregate of a collection that depends on the row.

        Each value that it depends on has a group, with a row of its own that counts nothing: so the
        sum of an empty collection is there, and is zero.
        """
        self._count[0] += 1
        name = f"#{self._count[0]}"
        keys = tuple(sorted(map(column_name, free_columns(total))))
        around = distinct(project(plan, keys)) if keys else ONCE
        grouped = self._grouped(total, around, keys, name)
        on = tuple((key, f"{name}.{key}") for key in keys)
        joined = join(plan, grouped, on, nulls=True)
        return project(joined, (*columns_of(plan), name)), name

    def _grouped(self, total: Total, around: Plan, keys: tuple[str, ...], name: str) -> Plan:
        members = self._members(total, around, keys)
        item = schema_of(members)[-2].type
        function = {"len": "count", "any": "sum", "all": "sum"}.get(total.function, total.function)
        column = "hit" if total.function == "len" else "item"
        type_ = "bigint" if function == "count" else result_type(function, item)
        assert type_ is not None
        groups = group_by(members, keys, (Aggregate("value", type_, function, column),))
        finished = _finish(total, type_)
        schema = schema_of(groups)
        kept = (Output(f"{name}.{c.name}", c.type, scalar.column(c.name)) for c in schema[:-1])
        value = Output(name, self.type(finished, schema), finished)
        return map_(groups, (*kept, value))

    def _members(self, total: Total, around: Plan, keys: tuple[str, ...]) -> Plan:
        """The elements as `item`, with `hit` not null, and a row with neither for each key."""
        parts: list[tuple[Rows, str, bool]] = []
        for part in total.collection.parts:
            head = Const(1) if isinstance(part.head, Tuple | Collection) else part.head
            for rows in self.rows(part, around, (head,)):
                parts.append((rows, _item(total, head, rows), part.negative))
        types = [self.type(text, schema_of(rows.plan)) for rows, text, _ in parts]
        type_ = self._common(types) if types else "int"
        kept = identity(schema_of(around))
        plans = []
        for rows, text, negative in parts:
            item = Output("item", type_, _cast(text, type_))
            hit = Output("hit", "int", "1")
            kept_here = tuple(each for each in identity(schema_of(rows.plan)) if each.name in keys)
            plan = map_(rows.plan, (*kept_here, item, hit))
            plan = project(plan, (*keys, "item", "hit"))
            plans.append(negate(plan) if negative else plan)
        nothing = (Output("item", type_, _null(type_)), Output("hit", "int", _null("int")))
        plans.append(project(map_(around, (*kept, *nothing)), (*keys, "item", "hit")))
        return add(*plans)

    def _common(self, types: list[Type]) -> Type:
        """The type that values of all types fit in."""

        def both(left: Type, right: Type) -> Type:
            if left == right or "void" in (left, right):
                return right if left == "void" else left
            columns = (Column("a", left), Column("b", right))
            return self.type("CASE WHEN TRUE THEN `a` ELSE `b` END", columns)

        found = reduce(both, types)
        return "int" if found == "void" else found


def _item(total: Total, head: Term, rows: Rows) -> str:
    """What is aggregated of an element; any and all count the elements that decide."""
    if total.function == "len":
        return "1"
    if total.function in ("any", "all"):
        decides, other = (1, 0) if total.function == "any" else (0, 1)
        test = _predicate(head, rows.computed)
        return scalar.canonical(f"CASE WHEN {test} THEN {decides} ELSE {other} END")
    return scalar.canonical(rows.sql(head))


def _finish(total: Total, type_: Type) -> str:
    value = scalar.column("value")
    match total.function:
        case "any":
            return scalar.canonical(f"COALESCE({value}, 0) > 0")
        case "all":
            return scalar.canonical(f"COALESCE({value}, 0) = 0")
        case "sum":
            return scalar.canonical(f"COALESCE({value}, CAST(0 AS {spark_type(type_)}))")
        case _:
            return value


def _cast(text: str, type_: Type) -> str:
    return scalar.canonical(f"CAST({text} AS {spark_type(type_)})")


def _null(type_: Type) -> str:
    return scalar.canonical(f"CAST(NULL AS {spark_type(type_)})")


def _predicate(term: Term, computed: Computed) -> str:
    """A condition as a scalar that is true or false, never null."""
    text = _sql(term, computed)
    if isinstance(term, Call) and term.function != "if" and PRIMITIVES[term.function].gives_boolean:
        return text
    if isinstance(term, Total) and term.function in ("any", "all"):
        return text
    return scalar.canonical(f"COALESCE({text}, FALSE)")


def _sql(term: Term, computed: Computed) -> str:
    match term:
        case ColumnOf():
            return scalar.column(column_name(term))
        case Const(value):
            return literal(value)
        case Part(child, name):
            return f"({_sql(child, computed)}).{scalar.column(name)}"
        case Total():
            return scalar.column(computed[term])
        case Call("if", (test, then, otherwise)):
            parts = (_predicate(test, computed), _sql(then, computed), _sql(otherwise, computed))
            return scalar.canonical("CASE WHEN {} THEN {} ELSE {} END".format(*parts))
        case Call("and" | "or" as function, (left, right)) if may_fail(right):
            decides, other = _predicate(left, computed), _predicate(right, computed)
            sides = (other, "FALSE") if function == "and" else ("TRUE", other)
            return scalar.canonical("CASE WHEN {} THEN {} ELSE {} END".format(decides, *sides))
        case Call(function, args):
            logical = PRIMITIVES[function].takes == "boolean"
            texts = ((_predicate if logical else _sql)(each, computed) for each in args)
            return scalar.canonical(PRIMITIVES[function].sql.format(*(f"({t})" for t in texts)))
        case _:
            assert_never(term)
