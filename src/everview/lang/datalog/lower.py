"""A checked program to plans: a relation is the union of its rules, or a fixpoint if recursive."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from everview.errors import UserError
from everview.expr import scalar
from everview.expr.types import Column, Schema
from everview.lang.datalog.check import CheckedProgram, TypedRule
from everview.lang.datalog.functors import SPARK
from everview.lang.datalog.rule_body import BodyLowering
from everview.lang.datalog.scalars import is_partial
from everview.lang.datalog.syntax import Variable, parts, variables
from everview.lang.stored_relation import StoredRelation
from everview.plan.build import add, distinct, filter_, map_
from everview.plan.nodes import Empty, Fixpoint, Output, Plan, Recursive


def lower_relation(checked: CheckedProgram, name: str, known: Mapping[str, StoredRelation]) -> Plan:
    """The plan of a derived relation; `known` are the stored relations, by lower-case name."""
    component = next(part for part in checked.strata if name in part)
    plans: dict[str, Plan] = {
        each: _stored(checked, each, known)
        for each in checked.declared
        if each not in component and each not in checked.rules
    }
    if name not in checked.recursive:
        return _derived(checked, name, plans)
    for each in component:
        plans[each] = Recursive(each, schema_of_relation(checked, each))
    equations = tuple((each, _derived(checked, each, plans)) for each in component)
    return Fixpoint(name, equations)


def schema_of_relation(checked: CheckedProgram, name: str) -> Schema:
    """The columns of a relation, with Spark's types."""
    types = tuple(SPARK[each] for each in checked.columns[name]) or ("boolean",)
    return tuple(map(Column, checked.names(name), types))


def _stored(checked: CheckedProgram, name: str, known: Mapping[str, StoredRelation]) -> Plan:
    """A stored relation as rules read it: by the declared names, every fact once."""
    relation = known.get(name.lower())
    schema = schema_of_relation(checked, name)
    if relation is None:
        return Empty(schema)
    stored = relation.source.schema
    if tuple(each.type for each in stored) != tuple(each.type for each in schema):
        declared = checked.declared[name]
        columns = ", ".join(f"{each.name} {each.type}" for each in stored)
        raise UserError(
            "D005",
            f"{relation.source.name} has other columns than declared: {columns}",
            span=declared.span,
            remedy="declare as many attributes: number for INT, unsigned for BIGINT, "
            "float for DOUBLE, symbol for STRING; or CAST in a view between",
        )
    outputs = tuple(
        Output(mine.name, mine.type, scalar.column(theirs.name))
        for mine, theirs in zip(schema, stored, strict=True)
    )
    plan: Plan = relation.source
    if relation.nulls:
        not_null = (f"NOT {scalar.column(each.name)} IS NULL" for each in stored)
        plan = distinct(filter_(plan, scalar.conjunction(not_null)))
    return map_(plan, outputs)


def _derived(checked: CheckedProgram, name: str, plans: Mapping[str, Plan]) -> Plan:
    """The distinct union of what the rules of a relation derive."""
    plans_of_rules = dict.fromkeys(
        _rule(checked, name, each, plans) for each in checked.rules[name]
    )
    return distinct(reduce(add, plans_of_rules))


def _rule(checked: CheckedProgram, name: str, typed: TypedRule, plans: Mapping[str, Plan]) -> Plan:
    """The rows that one rule derives: its head over the bindings of its body."""
    rule, lowering = typed.rule, BodyLowering(checked, plans, typed.types, _columns(typed))
    bindings = lowering.lowered(rule.body, {each.name for each in variables(rule.head)})
    texts, plan = lowering.scalars(bindings), bindings.plan
    outputs: list[Output] = []
    schema = schema_of_relation(checked, name)
    types = checked.columns[name]
    for column, type_, argument in zip(schema, types, rule.head.arguments, strict=False):
        text = texts.text(argument, type_)
        plan = filter_(plan, f"NOT {text} IS NULL") if is_partial(argument) else plan
        outputs.append(Output(column.name, column.type, text))
    return map_(plan, tuple(outputs) or (Output(schema[0].name, "boolean", "TRUE"),))


def _columns(typed: TypedRule) -> dict[str, str]:
    """A column for each variable by position, so that renaming variables does not change a plan."""
    columns: dict[str, str] = {}
    for literal in (*typed.rule.body, typed.rule.head):
        for each in parts(literal):
            if isinstance(each, Variable):
                columns.setdefault(each.name, f"v{len(columns) + 1}")
    return columns
