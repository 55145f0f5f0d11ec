"""Groups of rows: keys, aggregates and grouping sets as columns of a plan."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr import scalar
from everview.expr.types import Schema, Type, type_in
from everview.lang.sql.bind.canonical_form import canonical_text
from everview.lang.sql.bind.refuse import windowed
from everview.lang.sql.bind.scope import plan_column, shown_name
from everview.lang.sql.lower.aggregates import InputColumns, any_value_of, lower_aggregate
from everview.lang.sql.lower.columns import null_of
from everview.lang.sql.lower.context import LoweringContext
from everview.lang.sql.lower.domain import group_each_value
from everview.lang.sql.parse.span import span_of
from everview.plan.build import add, group_by, identity, map_
from everview.plan.nodes import Aggregate, Output, Plan
from everview.plan.traverse import schema_of


@dataclass(slots=True)
class GroupBy:
    """What the groups of one SELECT are computed from: input columns, keys and aggregates."""

    text: str
    inputs: InputColumns = field(default_factory=InputColumns)
    keys: dict[str, str] = field(default_factory=dict)
    """The column of each key, by the canonical text of its expression."""
    aggregates: dict[str, Aggregate] = field(default_factory=dict)
    """The aggregates, by the text of their call."""
    free: frozenset[str] = frozenset()
    """Columns that stand for subqueries and are joined to the groups."""
    sets: tuple[tuple[str, ...], ...] = ()
    """The keys of each grouping set, where there are several."""
    whole: bool = False
    """Whether the one grouping set is the one without keys."""
    marks: dict[str, Mark] = field(default_factory=dict)
    """The columns for GROUPING and GROUPING_ID, by the text of their call."""

    def key(self, node: exp.Expr) -> str | None:
        """The column of the key that an expression is, None if it is none."""
        return self.keys.get(canonical_text(node))

    def column(self, key: exp.Expr) -> str:
        """The column of an expression that is a key."""
        return self.keys[canonical_text(key)]

    def add_key(self, node: exp.Expr, type_: Type) -> None:
        """Group by an expression, if it is not a key already."""
        if self.key(node) is None:
            column = self.inputs.add(scalar.text(node), type_, "key")
            self.keys[canonical_text(node)] = column

    def over_groups(self, tree: exp.Expr) -> exp.Expr:
        """The expression over group keys and aggregates instead of rows."""

        def replaced(node: exp.Expr) -> exp.Expr:
            if windowed(node):
                return node
            shown = scalar.text(node)
            if shown in self.marks:
                return plan_column(self.marks[shown].name)
            if (key := self.key(node)) is not None:
                return plan_column(key)
            if shown in self.aggregates:
                return plan_column(self.aggregates[shown].name)
            if isinstance(node, exp.Column) and node.name not in self.free:
                name = shown_name(node.name.partition(".")[2] or node.name)
                raise UserError(
                    "Q009",
                    f"{name} is neither in GROUP BY nor inside an aggregate",
                    span=span_of(node, self.text),
                    remedy="add it to GROUP BY, or aggregate it",
                )
            return node

        return tree.transform(replaced)


@dataclass(frozen=True, slots=True)
class Mark:
    """A column for GROUPING or GROUPING_ID: a bit for each key, 1 where a row has it left out."""

    name: str
    is_single: bool
    keys: tuple[str, ...]

    def output(self, grouped_by: tuple[str, ...]) -> Output:
        """The value of the column in the rows of one grouping set."""
        bits = sum((key not in grouped_by) << at for at, key in enumerate(reversed(self.keys)))
        type_: Type = "tinyint" if self.is_single else "bigint"
        return Output(self.name, type_, scalar.canonical(f"CAST({bits} AS {type_})"))


def add_aggregate(
    context: LoweringContext, node: exp.AggFunc, grouping: GroupBy, schema: Schema
) -> None:
    """Have the grouping compute one aggregate call."""
    if isinstance(node, exp.Grouping | exp.GroupingId):
        _add_mark(node, grouping, context.text)
        return
    shown = scalar.text(node)
    if shown in grouping.aggregates:
        return
    # A grouping set that leaves a key out has many values of it, of which ANY_VALUE gives some.
    value = any_value_of(node) if not grouping.sets else None
    if value is not None and (key := grouping.key(value)) is not None:
        grouping.keys[canonical_text(node)] = key
        return
    name = f"agg{len(grouping.aggregates) + 1}"
    grouping.aggregates[shown] = lower_aggregate(context, node, name, grouping.inputs, schema)


def _add_mark(node: exp.Func, grouping: GroupBy, text: str) -> None:
    """Have the grouping compute GROUPING or GROUPING_ID."""
    every = tuple(dict.fromkeys(grouping.keys.values()))
    arguments = [(grouping.key(each), each) for each in node.expressions]
    for key, part in arguments or [(None, node)] * (not grouping.sets and not grouping.whole):
        if key is None or not grouping.sets:
            raise UserError(
                "Q009",
                f"{node.sql_name()} of something that GROUP BY has no sets of",
                span=span_of(part, text) or Span(text, 0, len(text)),
                remedy="name a key of GROUPING SETS, ROLLUP or CUBE",
            )
    is_single = isinstance(node, exp.Grouping)
    keys = tuple(key for key, _ in arguments if key is not None) or every
    if not is_single and keys != every:
        raise UserError(
            "Q009",
            "GROUPING_ID of other columns than GROUP BY has",
            span=span_of(node, text),
            remedy="name all of them in their order, or none",
        )
    mark = Mark(f"mark{len(grouping.marks) + 1}", is_single, keys)
    grouping.marks.setdefault(scalar.text(node), mark)


def group_rows(context: LoweringContext, plan: Plan, grouping: GroupBy) -> Plan:
    """The groups of the rows, within each value of the domain."""
    schema, aggregates = schema_of(plan), tuple(grouping.aggregates.values())
    carried = tuple(o for o in identity(schema) if o.name in context.domain_columns)
    inputs = (*carried, *(o for o in grouping.inputs.outputs.values() if o not in carried))
    rows = map_(plan, inputs)
    keys = tuple(dict.fromkeys((*context.domain_columns, *grouping.keys.values())))
    if grouping.sets:
        carried_names = context.domain_columns
        return add(*(_one_set(rows, carried_names, by, grouping) for by in grouping.sets))
    if grouping.keys or context.domain is None:
        groups = group_by(rows, keys, aggregates)
    else:
        groups = group_each_value(rows, context.domain.leaf, keys, aggregates)
    if not grouping.marks:
        return groups
    # GROUPING SETS (()) has no keys, so its GROUPING_ID has no bits.
    marks = (mark.output(()) for mark in grouping.marks.values())
    return map_(groups, (*identity(schema_of(groups)), *marks))


def _one_set(
    rows: Plan, carried: tuple[str, ...], keys: tuple[str, ...], grouping: GroupBy
) -> Plan:
    """The groups of one grouping set; keys that it leaves out are NULL.

    It has a constant key too, so that it has no group where there are no rows at all.
    """
    schema, aggregates = schema_of(rows), tuple(grouping.aggregates.values())
    by = tuple(dict.fromkeys((*carried, *keys)))
    with_constant = map_(rows, (*identity(schema), Output(_CONSTANT, "int", "1")))
    groups = group_by(with_constant, (*by, _CONSTANT), aggregates)
    every = dict.fromkeys((*carried, *grouping.keys.values()))
    types = {name: type_in(schema, name) for name in every}
    shown = (
        Output(name, type_, scalar.column(name) if name in by else null_of(type_))
        for name, type_ in types.items()
    )
    computed = (Output(a.name, a.type, scalar.column(a.name)) for a in aggregates)
    marks = (mark.output(keys) for mark in grouping.marks.values())
    return map_(groups, (*shown, *computed, *marks))


_CONSTANT = "grouping"
"""The constant key."""
