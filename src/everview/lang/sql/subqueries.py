"""Subqueries in expressions, made joins: the dependent join is removed algebraically.

A subquery that reads columns of the query around it is computed for all values of those columns
at once: its FROM begins with the set D of those values, its groups and its rows carry them along,
and the result is joined back to the rows around it, NULL with NULL. So every shape of subquery is
covered by one rule, and what is left are the operators that have derivatives already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from sqlglot import exp

from everview.errors import UserError
from everview.lang.sql.joining import beside_nulls, null_of
from everview.lang.sql.place import span_of
from everview.lang.sql.scope import Scope
from everview.lang.sql.shaping import with_partner
from everview.plan import scalar
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
)
from everview.plan.nodes import Aggregate, Output, Plan, Ref
from everview.plan.traverse import schema_of, transform
from everview.plan.types import Schema, Type, type_in


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
    """A subquery in an expression, and the column that will stand for it."""

    name: str
    kind: Literal["scalar", "exists", "in"]
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


def mark(tree: exp.Expr, pending: dict[str, Marked], lower: Lower) -> exp.Expr:
    """The expression with a column in the place of every subquery."""

    def replaced(node: exp.Expr) -> exp.Expr:
        found = _subquery(node)
        if found is None:
            return node
        kind, query, left = found
        name = f"subquery {lower.number()}"
        pending[name] = Marked(name, kind, query, node, left)
        return exp.Column(this=exp.Identifier(this=name, quoted=True))

    return tree.copy().transform(replaced, copy=False)


def _subquery(
    node: exp.Expr,
) -> tuple[Literal["scalar", "exists", "in"], exp.Expr, tuple[exp.Expr, ...]] | None:
    match node:
        case exp.Exists():
            return "exists", node.this, ()
        case exp.In() if node.args.get("query"):
            left = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
            return "in", node.args["query"].unnest(), tuple(left)
        case exp.Subquery():
            return "scalar", node.this, ()
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Inner:
    """A subquery computed for all values of its domain."""

    plan: Plan
    domain: Domain

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Columns of the rows around, and of the subquery, that must agree."""
        return tuple((column, self.domain.named(column)) for column in self.domain.offered)

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
    made = lower.inside(domain, query)
    leaf, values = domain.leaf, domain.values(plan)
    return Inner(transform(made, lambda n: values if n == leaf else n), domain)


def attach_exists(plan: Plan, inner: Inner, name: str) -> Plan:
    """The rows with a column that says whether the subquery has any."""
    some = _domain_set(inner)
    return _flagged(plan, _having(plan, some, inner), name)


def keep_existing(plan: Plan, inner: Inner) -> Plan:
    """The rows for which the subquery has some."""
    return _having(plan, _domain_set(inner), inner)


def drop_existing(plan: Plan, inner: Inner) -> Plan:
    """The rows for which the subquery has none."""
    return add(plan, negate(keep_existing(plan, inner)))


def attach_scalar(plan: Plan, inner: Inner, name: str, *, one_row: bool) -> Plan:
    """The rows with the one value of the subquery, NULL where it has none."""
    value = inner.outputs[0]
    type_ = type_in(schema_of(inner.plan), value)
    keys = columns_of(inner.plan)[: len(inner.domain.offered)]
    answers = project(inner.plan, (*keys, value))
    if not one_row:
        answers = _single(answers, keys, value, type_)
    renamed = tuple(
        Output(name if o.name == value else o.name, o.type, o.scalar)
        for o in identity(schema_of(answers))
    )
    answers = map_(answers, renamed)
    wanted = (*columns_of(plan), name)
    found = project(join(plan, answers, inner.pairs, nulls=True), wanted)
    if one_row:
        return found
    some = distinct(project(answers, keys))
    without = add(plan, negate(_having(plan, some, inner)))
    return add(found, beside_nulls(without, found))


def _single(answers: Plan, keys: tuple[str, ...], value: str, type_: Type) -> Plan:
    """One value for each key, or an error, as SQL wants of a subquery used as a value."""
    aggregates = (
        Aggregate("rows", "bigint", "count"),
        Aggregate("value", type_, "max", value),
    )
    grouped = group_by(answers, keys, aggregates)
    if not keys:
        grouped = filter_(grouped, scalar.canonical("`rows` > 0"))
    checked = scalar.canonical(
        "CASE WHEN `rows` > 1 THEN"
        f" CAST(raise_error('a subquery used as a value has more than one row') AS {type_})"
        " ELSE `value` END"
    )
    kept = tuple(o for o in identity(schema_of(grouped)) if o.name in keys)
    return map_(grouped, (*kept, Output(value, type_, checked)))


def attach_in(lower: Lower, plan: Plan, inner: Inner, left: tuple[str, ...], name: str) -> Plan:
    """The rows with `left IN (subquery)`: true, false or NULL, as SQL says."""
    keyed = _keyed(plan, left, lower)
    asked = tuple(f"in {n}" for n in range(len(left)))
    yes = _in_rows(keyed, inner, asked)
    maybe = add(keyed, negate(yes))
    unknown = _unknown_rows(maybe, inner, asked)
    no = add(maybe, negate(unknown))
    parts = []
    for rows, text in ((yes, "TRUE"), (unknown, null_of("boolean")), (no, "FALSE")):
        outputs = tuple(o for o in identity(schema_of(rows)) if o.name not in asked)
        parts.append(map_(rows, (*outputs, Output(name, "boolean", scalar.canonical(text)))))
    return add(*parts)


def keep_in(lower: Lower, plan: Plan, inner: Inner, left: tuple[str, ...]) -> Plan:
    """The rows for which `left IN (subquery)` is true."""
    asked = tuple(f"in {n}" for n in range(len(left)))
    return project(_in_rows(_keyed(plan, left, lower), inner, asked), columns_of(plan))


def keep_not_in(lower: Lower, plan: Plan, inner: Inner, left: tuple[str, ...]) -> Plan:
    """The rows for which `left NOT IN (subquery)` is true: neither IN nor unknown."""
    asked = tuple(f"in {n}" for n in range(len(left)))
    keyed = _keyed(plan, left, lower)
    maybe = add(keyed, negate(_in_rows(keyed, inner, asked)))
    no = add(maybe, negate(_unknown_rows(maybe, inner, asked)))
    return project(no, columns_of(plan))


def _keyed(plan: Plan, left: tuple[str, ...], lower: Lower) -> Plan:
    schema = schema_of(plan)
    outputs = tuple(
        Output(f"in {n}", lower.type_(text, schema, scalar.parse(text)), text)
        for n, text in enumerate(left)
    )
    return map_(plan, (*identity(schema), *outputs))


def _in_rows(keyed: Plan, inner: Inner, asked: tuple[str, ...]) -> Plan:
    """The rows whose asked columns equal a row of the subquery; NULL equals nothing."""
    some, ours = distinct(inner.plan), schema_of(keyed)
    on, equal = list(inner.pairs), []
    for mine, theirs in zip(asked, inner.outputs, strict=True):
        if type_in(ours, mine) == type_in(schema_of(some), theirs):
            on.append((mine, theirs))
            equal.append(scalar.canonical(f"{scalar.column(mine)} IS NOT NULL"))
        else:
            text = f"{scalar.column(mine)} = {scalar.column(theirs)}"
            equal.append(scalar.canonical(text))
    found = filter_(join(keyed, some, tuple(on), nulls=True), scalar.conjunction(equal))
    return project(found, columns_of(keyed))


def _unknown_rows(rows: Plan, inner: Inner, asked: tuple[str, ...]) -> Plan:
    """Of the rows that equal none, those for which a NULL on either side leaves it open."""
    nulls = [
        scalar.canonical(f"{scalar.column(a)} IS NULL OR {scalar.column(b)} IS NULL")
        for a, b in zip(asked, inner.outputs, strict=True)
    ]
    open_ = scalar.canonical(" OR ".join(f"({text})" for text in nulls))
    possible = scalar.canonical(
        " AND ".join(
            f"({scalar.column(a)} IS NULL OR {scalar.column(b)} IS NULL"
            f" OR {scalar.column(a)} = {scalar.column(b)})"
            for a, b in zip(asked, inner.outputs, strict=True)
        )
    )
    if len(asked) == 1:
        return _unknown_one(rows, inner, asked[0], inner.outputs[0])
    pairs = filter_(join(rows, distinct(inner.plan), inner.pairs, nulls=True), open_)
    found = distinct(project(filter_(pairs, possible), columns_of(rows)))
    return with_partner(rows, found)


def _unknown_one(rows: Plan, inner: Inner, asked: str, output: str) -> Plan:
    """NULL asked of a subquery with rows, or anything asked of one with a NULL among them."""
    is_null = scalar.canonical(f"{scalar.column(asked)} IS NULL")
    not_null = scalar.canonical(f"{scalar.column(asked)} IS NOT NULL")
    with_null = filter_(inner.plan, scalar.canonical(f"{scalar.column(output)} IS NULL"))
    return add(
        _having(filter_(rows, is_null), _domain_set(inner), inner),
        _having(filter_(rows, not_null), _domain_set(replace(inner, plan=with_null)), inner),
    )


def _domain_set(inner: Inner) -> Plan:
    keys = tuple(named for _, named in inner.pairs)
    return distinct(project(inner.plan, keys))


def _having(plan: Plan, some: Plan, inner: Inner) -> Plan:
    """The rows whose domain columns are in a set."""
    return project(join(plan, some, inner.pairs, nulls=True), columns_of(plan))


def _flagged(plan: Plan, true: Plan, name: str) -> Plan:
    def with_flag(rows: Plan, text: str) -> Plan:
        return map_(rows, (*identity(schema_of(rows)), Output(name, "boolean", text)))

    return add(with_flag(true, "TRUE"), with_flag(add(plan, negate(true)), "FALSE"))
