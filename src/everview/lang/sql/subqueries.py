"""Subqueries in expressions, made joins: the dependent join is removed algebraically.

A subquery that reads columns of the query around it is computed for all values of those columns
at once: its FROM begins with the set D of those values, its groups and its rows carry them along,
and the result is joined back to the rows around it, NULL with NULL. So every shape of subquery is
covered by one rule, and what is left are the operators that have derivatives already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from sqlglot import exp

from everview.errors import UserError
from everview.lang.sql.aggregates import column_named
from everview.lang.sql.grouping import group_each
from everview.lang.sql.place import span_of
from everview.lang.sql.scope import Scope
from everview.plan import scalar
from everview.plan.build import (
    add,
    columns_of,
    distinct,
    filter_,
    identity,
    join,
    map_,
    negate,
    project,
)
from everview.plan.nodes import Aggregate, Output, Plan, Ref
from everview.plan.traverse import schema_of, transform
from everview.plan.types import Schema, Type, type_in

_ROWS = Aggregate("rows", "bigint", "count")

Kind: TypeAlias = Literal["scalar", "exists", "in", "not in"]


@dataclass(slots=True)
class Domain:
    """The columns of the query around that a subquery may read, and those it did read.

    `translate` gives the column that stands for one of the scope's where the rows are now, for
    instance the group key; None where it has none.
    """

    scope: Scope
    schema: Schema
    translate: Callable[[str], str | None]
    offered: tuple[str, ...]
    number: int
    used: dict[str, None] = field(default_factory=dict)

    def find(self, node: exp.Column) -> str | None:
        """The column of the set D behind a name of the query around."""
        found = self.scope.find(node)
        if found is None:
            return None
        here = self.translate(found)
        if here is None:
            raise UserError(
                "Q009",
                f"{node.name} is neither in GROUP BY nor inside an aggregate",
                span=span_of(node, self.scope.text),
                remedy="add it to GROUP BY, or use it inside an aggregate",
            )
        self.used[here] = None
        return self.named(here)

    def named(self, column: str) -> str:
        """The name of a column of the query around inside the subquery."""
        return f"{self.number}^{column}"

    @property
    def leaf(self) -> Ref:
        """D as a leaf of the subquery's plan; what it is, is known when it is joined back."""
        columns = (c for c in self.schema if c.name in self.offered)
        return Ref(
            f"domain {self.number}", tuple(replace(c, name=self.named(c.name)) for c in columns)
        )

    def values(self, plan: Plan) -> Plan:
        """D: the values that the columns read have in the rows around."""
        read = project(plan, self.offered)
        outputs = tuple(
            Output(self.named(o.name), o.type, o.scalar) for o in identity(schema_of(read))
        )
        return distinct(map_(read, outputs))


@dataclass(frozen=True, slots=True)
class Marked:
    """A subquery in an expression, and the column that will stand for it.

    `left` is what IN looks for, in terms of the rows before they are grouped.
    """

    name: str
    kind: Kind
    query: exp.Expr
    node: exp.Expr
    left: tuple[exp.Expr, ...] = ()


class Lower(Protocol):
    """What subqueries need of the lowering around them."""

    @property
    def text(self) -> str:
        """The text that places are in."""

    def number(self) -> int:
        """A number not given before, the same ones for the same query."""

    def inside(self, domain: Domain | None, tree: exp.Expr) -> Plan:
        """The plan of a subquery, the columns of its domain first."""

    def type_(self, text: str, schema: Schema, node: exp.Expr) -> Type:
        """The type of a scalar."""


def mark(
    tree: exp.Expr,
    pending: dict[str, Marked],
    lower: Lower,
    resolved: Callable[[exp.Expr], exp.Expr],
) -> exp.Expr:
    """The expression with a column in the place of every subquery; equal ones share it."""

    def replaced(node: exp.Expr) -> exp.Expr:
        found = _subquery(node)
        if found is None:
            return node
        kind, query, operands = found
        left = tuple(resolved(operand) for operand in operands)
        for known in pending.values():
            if (known.kind, known.query, known.left) == (kind, query, left):
                return column_named(known.name)
        name = f"subquery {lower.number()}"
        pending[name] = Marked(name, kind, query, node, left)
        return column_named(name)

    return tree.copy().transform(replaced, copy=False)


def _subquery(
    node: exp.Expr,
) -> tuple[Kind, exp.Expr, tuple[exp.Expr, ...]] | None:
    match node:
        case exp.Exists(expression=None):
            return "exists", node.this, ()
        case exp.Not(this=inner) if _is_not_in(inner.unnest()):
            return "in", *_sides(inner.unnest().this.unnest())
        case exp.Not() if _is_in(node.this.unnest()):
            return "not in", *_sides(node.this.unnest())
        case exp.In() if _is_in(node):
            return "in", *_sides(node)
        case exp.Subquery():
            return "scalar", node.this, ()
        case _:
            return None


def _is_in(node: exp.Expr) -> bool:
    return isinstance(node, exp.In) and bool(node.args.get("query"))


def _is_not_in(node: exp.Expr) -> bool:
    return isinstance(node, exp.Not) and _is_in(node.this.unnest())


def _sides(node: exp.Expr) -> tuple[exp.Expr, tuple[exp.Expr, ...]]:
    """The query of an IN, and what is looked for in it."""
    left = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    return node.args["query"].unnest(), tuple(left)


@dataclass(frozen=True, slots=True)
class Inner:
    """A subquery computed for all values of its domain, and those values."""

    plan: Plan
    domain: Domain
    values: Plan

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Columns of the rows around, and of the subquery, that must agree."""
        return tuple((column, self.domain.named(column)) for column in self.domain.offered)

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the domain."""
        return tuple(named for _, named in self.pairs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The columns that the subquery itself selects."""
        return columns_of(self.plan)[len(self.domain.offered) :]


def compute(
    lower: Lower,
    query: exp.Expr,
    plan: Plan,
    scope: Scope,
    translate: Callable[[str], str | None],
) -> Inner:
    """A subquery over the rows of `plan`: once to see which columns it reads, then with those."""
    schema = schema_of(plan)
    trial = Domain(scope, schema, translate, columns_of(plan), lower.number())
    lower.inside(trial, query)
    read = tuple(name for name in columns_of(plan) if name in trial.used)
    domain = Domain(scope, schema, translate, read, lower.number())
    made = _named_apart(lower.inside(domain, query), domain)
    leaf, values = domain.leaf, domain.values(plan)
    return Inner(transform(made, lambda n: values if n == leaf else n), domain, values)


def _named_apart(plan: Plan, domain: Domain) -> Plan:
    """What a subquery selects, under names that nothing it is joined with has."""
    outputs = identity(schema_of(plan))
    carried = len(domain.offered)
    selected = (
        replace(output, name=f"{domain.number}.{place}")
        for place, output in enumerate(outputs[carried:], 1)
    )
    return map_(plan, (*outputs[:carried], *selected))


# Conditions that only keep rows: a join that asks for a partner.


def keep_existing(plan: Plan, inner: Inner) -> Plan:
    """The rows for which the subquery has some."""
    some = distinct(project(inner.plan, inner.keys))
    return project(join(plan, some, inner.pairs, nulls=True), columns_of(plan))


def drop_existing(plan: Plan, inner: Inner) -> Plan:
    """The rows for which the subquery has none."""
    return add(plan, negate(keep_existing(plan, inner)))


def keep_in(lower: Lower, plan: Plan, inner: Inner, left: tuple[str, ...]) -> Plan:
    """The rows for which `left IN (subquery)` is true."""
    keyed, asked = _keyed(plan, left, lower)
    return project(_in_rows(keyed, inner, asked), columns_of(plan))


def keep_not_in(lower: Lower, plan: Plan, inner: Inner, left: tuple[str, ...]) -> Plan:
    """The rows for which `left NOT IN (subquery)` is true."""
    keyed, asked = _keyed(plan, left, lower)
    if len(asked) > 1:
        return project(filter_(_compared(keyed, inner, asked), _NONE), columns_of(plan))
    kept = filter_(_told(keyed, inner), _sure(asked[0]))
    return project(add(kept, negate(_in_rows(kept, inner, asked))), columns_of(plan))


# Values that stand in an expression: one row for each value of the domain, joined back.


def attach_exists(plan: Plan, inner: Inner, name: str) -> Plan:
    """The rows with a column that says whether the subquery has any."""
    answers = group_each(project(inner.plan, inner.keys), inner.values, inner.keys, (_ROWS,))
    return _beside(plan, answers, inner.pairs, Output(name, "boolean", "`rows` > 0"))


def attach_in(lower: Lower, plan: Plan, inner: Inner, left: tuple[str, ...], name: str) -> Plan:
    """The rows with `left IN (subquery)` as a value: in Spark, what is not known is false."""
    keyed, asked = _keyed(plan, left, lower)
    found = _matched(keyed, inner, asked)
    return map_(found, (*identity(schema_of(plan)), Output(name, "boolean", "`yes` > 0")))


def attach_not_in(lower: Lower, plan: Plan, inner: Inner, left: tuple[str, ...], name: str) -> Plan:
    """The rows with `left NOT IN (subquery)` as a value: what is not known is false here too."""
    keyed, asked = _keyed(plan, left, lower)
    if len(asked) > 1:
        found, text = _compared(keyed, inner, asked), _NONE
    else:
        found = _told(_matched(keyed, inner, asked), inner)
        text = f"`yes` = 0 AND ({_sure(asked[0])})"
    flag = Output(name, "boolean", scalar.canonical(text))
    return map_(found, (*identity(schema_of(plan)), flag))


def attach_scalar(plan: Plan, inner: Inner, name: str, *, one_row: bool) -> Plan:
    """The rows with the one value of the subquery, NULL where it has none."""
    value = inner.outputs[0]
    type_ = type_in(schema_of(inner.plan), value)
    if one_row:
        answers = project(inner.plan, (*inner.keys, value))
        return _beside(plan, answers, inner.pairs, Output(name, type_, scalar.column(value)))
    wanted = (_ROWS, Aggregate("value", type_, "max", value))
    answers = group_each(inner.plan, inner.values, inner.keys, wanted)
    single = scalar.canonical("ev_single(`rows`, `value`)")
    return _beside(plan, answers, inner.pairs, Output(name, type_, single))


def _beside(
    plan: Plan, answers: Plan, pairs: tuple[tuple[str, str], ...], *outputs: Output
) -> Plan:
    """The rows with something computed from the one answer for their values."""
    joined = join(plan, answers, pairs, nulls=True)
    return map_(joined, (*identity(schema_of(plan)), *outputs))


def _keyed(plan: Plan, left: tuple[str, ...], lower: Lower) -> tuple[Plan, tuple[str, ...]]:
    """The rows with what is asked for by IN in columns of their own."""
    schema, number = schema_of(plan), lower.number()
    outputs = tuple(
        Output(f"in {number} {n}", lower.type_(text, schema, scalar.parse(text)), text)
        for n, text in enumerate(left)
    )
    return map_(plan, (*identity(schema), *outputs)), tuple(o.name for o in outputs)


def _in_rows(keyed: Plan, inner: Inner, asked: tuple[str, ...]) -> Plan:
    """The rows whose asked columns equal a row of the subquery; NULL equals nothing."""
    some, ours = distinct(inner.plan), schema_of(keyed)
    on, equal = list(inner.pairs), []
    for mine, theirs in zip(asked, inner.outputs, strict=True):
        if type_in(ours, mine) == type_in(schema_of(some), theirs):
            on.append((mine, theirs))
            equal.append(scalar.canonical(f"{scalar.column(mine)} IS NOT NULL"))
        else:
            equal.append(_equal(mine, theirs))
    found = filter_(join(keyed, some, tuple(on), nulls=True), scalar.conjunction(equal))
    return project(found, columns_of(keyed))


def _told(keyed: Plan, inner: Inner) -> Plan:
    """The rows with how many rows the subquery has for them, and how many are not NULL."""
    output = inner.outputs[0]
    wanted = (_ROWS, Aggregate("known", "bigint", "count", output))
    answers = group_each(inner.plan, inner.values, inner.keys, wanted)
    counts = (Output("rows", "bigint", "`rows`"), Output("known", "bigint", "`known`"))
    return _beside(keyed, answers, inner.pairs, *counts)


def _matched(keyed: Plan, inner: Inner, asked: tuple[str, ...]) -> Plan:
    """The rows with `yes`, how many rows of the subquery equal what they ask for."""
    values, pairs, keys = _asked_values(keyed, inner, asked)
    mine = tuple((k, v) for k, (_, v) in zip(keys, inner.pairs, strict=False))
    some = distinct(inner.plan)
    equal = [_equal(a, b) for a, b in zip(keys[len(mine) :], inner.outputs, strict=True)]
    rows = filter_(join(values, some, mine, nulls=True), scalar.conjunction(equal))
    answers = group_each(project(rows, keys), values, keys, (_ROWS,))
    return _beside(keyed, answers, pairs, Output("yes", "bigint", "`rows`"))


def _compared(keyed: Plan, inner: Inner, asked: tuple[str, ...]) -> Plan:
    """The rows with `yes`, how many rows of the subquery equal theirs, and `open`, how many may."""
    values, pairs, keys = _asked_values(keyed, inner, asked)
    mine = tuple((k, v) for k, (_, v) in zip(keys, inner.pairs, strict=False))
    both = join(values, inner.plan, mine, nulls=True)
    equal = " AND ".join(
        f"({_equal(a, b)})" for a, b in zip(keys[len(mine) :], inner.outputs, strict=True)
    )
    kept = tuple(o for o in identity(schema_of(both)) if o.name in keys)
    flags = (
        Output("is", "int", scalar.canonical(f"CASE WHEN {equal} THEN 1 END")),
        Output("may be", "int", scalar.canonical(f"CASE WHEN ({equal}) IS NULL THEN 1 END")),
    )
    counts = (
        Aggregate("yes", "bigint", "count", "is"),
        Aggregate("open", "bigint", "count", "may be"),
    )
    answers = group_each(map_(both, (*kept, *flags)), values, keys, counts)
    told = tuple(Output(n, "bigint", scalar.column(n)) for n in ("yes", "open"))
    return _beside(keyed, answers, pairs, *told)


_NONE = "`yes` = 0 AND `open` = 0"


def _sure(asked: str) -> str:
    """Whether no NULL on either side leaves NOT IN open, over what `_told` told."""
    known = f"`rows` = `known` AND NOT {scalar.column(asked)} IS NULL"
    return scalar.canonical(f"`rows` = 0 OR ({known})")


def _asked_values(
    keyed: Plan, inner: Inner, asked: tuple[str, ...]
) -> tuple[Plan, tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The values asked for, with those of the domain; how rows and values agree; their names."""
    columns = (*inner.domain.offered, *asked)
    pairs = tuple((column, f"of {column}") for column in columns)
    schema = schema_of(keyed)
    outputs = tuple(Output(n, type_in(schema, c), scalar.column(c)) for c, n in pairs)
    return distinct(map_(keyed, outputs)), pairs, tuple(n for _, n in pairs)


def _equal(mine: str, theirs: str) -> str:
    return scalar.canonical(f"{scalar.column(mine)} = {scalar.column(theirs)}")
