"""Totals for each value of a domain, below a correlated subquery, instead of single rows.

A subquery that compares its rows with values x of its domain D reads all of them for a new value:
Σₓ(D ⋈ R). With the totals of R for each value of the columns compared, Σₓ(D ⋈ Σⱼ(R)), a new value
gets its initial value from them (domains-and-arities §5, eager aggregation). The rows around a
subquery are totalled by its inputs in the same way, Σₖ(R ⋈ M[x]) = Σₖ(Σₓ(R) ⋈ M[x]), so what
changes M for many x looks up the totals for these x, and not their rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from everview.analysis.keys import keys
from everview.expr import scalar
from everview.expr.type_inference import type_of
from everview.expr.types import FLOATS, Schema, Type, is_nested, type_in
from everview.plan.build import add, columns_of, filter_, groups, identity, join, map_, total_type
from everview.plan.nodes import (
    Add,
    Distinct,
    Filter,
    Groups,
    Join,
    Map,
    Measure,
    Output,
    Plan,
    Source,
    Totals,
)
from everview.plan.traverse import schema_of, transform
from everview.rewrite.polynomial import cannot_raise

Columns = frozenset[str]


def preaggregate(plan: Plan) -> Plan:
    """Every grouped join with a domain over totals of what is joined, where these are fewer."""
    return transform(plan, _rule)


def _rule(node: Plan) -> Plan:
    match node:
        case Groups(Totals(child, by, measures), _) if all(
            m.function != "product" for m in measures
        ):
            return _over_totals(node, child, by, measures)
        case _:
            return node


def _over_totals(
    node: Plan, child: Plan, by: tuple[str, ...], measures: tuple[Measure, ...]
) -> Plan:
    values = {m.name: scalar.column(m.column) if m.column else None for m in measures}
    narrowed = [_narrowed(term, _Wanted(measures, values, frozenset(by))) for term in _terms(child)]
    if not any(narrowed):
        return node
    totals = [
        new if new is not None else _row_by_row(term, by, measures)
        for term, new in zip(_terms(child), narrowed, strict=True)
    ]
    ordered = [_columns(term, by, measures) for term in totals]
    summed = tuple(Measure(m.name, _sum_type(m), "sum", _each(m)) for m in measures)
    grouped = groups(Totals(add(*ordered), by, summed), by)
    kept = identity(schema_of(node)[: len(by)])
    return map_(grouped, (*kept, *(Output(m.name, m.type, _restored(m)) for m in measures)))


def _columns(term: Plan, by: tuple[str, ...], measures: tuple[Measure, ...]) -> Plan:
    """The keys and the parts of the measures; a value that overflowed raises, where it counts."""
    own = {each.name: each for each in identity(schema_of(term))}
    outputs = [own[name] for name in by]
    for m in measures:
        part, lost = own[_each(m)], _lost(m)
        if lost in own:
            raised = f"CAST({_MOST} + {scalar.column(lost)} AS {part.type})"
            text = f"CASE WHEN {scalar.column(lost)} > 0 THEN {raised} ELSE {part.scalar} END"
            part = replace(part, scalar=scalar.canonical(text))
        outputs.append(part)
    return map_(term, tuple(outputs))


def _terms(plan: Plan) -> tuple[Plan, ...]:
    if isinstance(plan, Add):
        return (*_terms(plan.left), *_terms(plan.right))
    return (plan,)


def _each(measure: Measure) -> str:
    """The column of a measure's part, in a row that stands for several."""
    return f"{measure.name} of each"


def _lost(measure: Measure) -> str:
    """The column that counts the values of a measure that do not fit their type."""
    return f"{measure.name} overflows"


_MOST = "CAST(9223372036854775807 AS BIGINT)"
"""The greatest integer: a sum with it overflows, as the value did that is counted there."""
_BOUNDS = {"int": 2**31, "bigint": 2**63}


def _sum_type(measure: Measure) -> Type:
    return total_type(measure.type)


def _restored(measure: Measure) -> str:
    name = scalar.column(measure.name)
    same = _sum_type(measure) == measure.type
    return name if same else scalar.canonical(f"CAST({name} AS {measure.type})")


def _row_by_row(plan: Plan, by: tuple[str, ...], measures: tuple[Measure, ...]) -> Plan:
    """Rows that stand for themselves, with what each adds to a measure."""
    outputs = [each for each in identity(schema_of(plan)) if each.name in by]
    for m in measures:
        if m.column is None:
            text = "CAST(1 AS BIGINT)"
        elif m.function == "count":
            text = f"CAST(CASE WHEN {scalar.column(m.column)} IS NULL THEN 0 ELSE 1 END AS BIGINT)"
        else:
            text = f"CAST({scalar.column(m.column)} AS {m.type})"
        outputs.append(Output(_each(m), m.type, scalar.canonical(text)))
    return map_(plan, tuple(outputs))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is wanted of a plan: the measures as texts over its columns, and other columns.

    `domain` are the columns by which totals may be kept: none before a join with a domain is seen,
    then its inputs, or all columns where rows are compared with a domain by no key.
    """

    measures: tuple[Measure, ...]
    values: Mapping[str, str | None]
    columns: Columns
    domain: Columns | None = None

    @property
    def read(self) -> Columns:
        """The columns that the measures look at."""
        texts = (each for each in self.values.values() if each is not None)
        return frozenset(name for text in texts for name in scalar.columns(text))


def _narrowed(plan: Plan, wanted: _Wanted) -> Plan | None:
    """The wanted columns and parts of the measures, from totals of one relation; None if not."""
    if _is_linear(plan):
        return _totalled(plan, wanted)
    match plan:
        case Filter(child, predicate):
            inside = replace(wanted, columns=wanted.columns | scalar.columns(predicate))
            found = _narrowed(child, inside)
            return None if found is None else filter_(found, predicate)
        case Map(child, outputs):
            return _below_map(child, outputs, wanted)
        case Join():
            return _below_join(plan, wanted)
        case _:
            return None


def _below_map(child: Plan, outputs: tuple[Output, ...], wanted: _Wanted) -> Plan | None:
    texts = {each.name: each.scalar for each in outputs}
    kept = tuple(each for each in outputs if each.name in wanted.columns)
    domain = wanted.domain
    if domain is not None:
        plain = (scalar.as_column(texts[name]) for name in domain if name in texts)
        domain = frozenset(name for name in plain if name is not None)
    inside = _Wanted(
        wanted.measures,
        {m: t and scalar.substitute(t, texts) for m, t in wanted.values.items()},
        frozenset(name for each in kept for name in scalar.columns(each.scalar)),
        domain,
    )
    found = _narrowed(child, inside)
    if found is None:
        return None
    parts = {name for m in wanted.measures for name in (_each(m), _lost(m))}
    return map_(found, (*kept, *(o for o in identity(schema_of(found)) if o.name in parts)))


def _below_join(plan: Join, wanted: _Wanted) -> Plan | None:
    looked_at = wanted.columns | (scalar.columns(plan.residual) if plan.residual else frozenset())
    sides = (plan.left, plan.right)
    for at, side in enumerate(sides):
        ours, other = frozenset(columns_of(side)), sides[1 - at]
        if not wanted.read <= ours:
            continue
        on = frozenset(pair[at] for pair in plan.on)
        domain = wanted.domain
        if plan.nulls and plan.residual:
            domain = (domain or frozenset()) | on | (wanted.columns & ours)
        elif not plan.on and _is_domain(other):
            domain = ours
        inside = _Wanted(wanted.measures, wanted.values, (looked_at & ours) | on, domain)
        found = _narrowed(side, inside)
        if found is not None:
            both = (found, other) if at == 0 else (other, found)
            return join(*both, plan.on, plan.residual, plan.nulls)
    return None


def _is_domain(plan: Plan) -> bool:
    return isinstance(plan.child if isinstance(plan, Map) else plan, Distinct)


def _is_linear(plan: Plan) -> bool:
    """Whether a plan is filters and maps over a stored relation."""
    while isinstance(plan, Filter | Map):
        plan = plan.child
    return isinstance(plan, Source)


def _totalled(plan: Plan, wanted: _Wanted) -> Plan | None:
    """The totals of a relation by the columns wanted, unless these would tell its rows apart."""
    by = tuple(name for name in columns_of(plan) if name in wanted.columns)
    schema = schema_of(plan)
    if wanted.domain is None or not wanted.columns <= wanted.domain:
        return None
    if any(key <= wanted.columns for key in keys(plan)) or any(
        type_in(schema, name) in FLOATS or is_nested(type_in(schema, name)) for name in by
    ):
        return None
    outputs = [each for each in identity(schema) if each.name in by]
    made = list[Measure]()
    for m in wanted.measures:
        text = wanted.values[m.name]
        if text is None:
            made.append(replace(m, name=_each(m)))
            continue
        type_ = type_of(text, schema)
        if type_ is not None and not cannot_raise(scalar.parse(text), schema):
            exact = _exact_product(text, schema)
            if exact is None:
                return None
            bound = _BOUNDS[type_]
            lost = f"{exact} >= {bound} OR {exact} < -{bound}"
            flag = f"CASE WHEN {lost} THEN 1 END"
            outputs.append(Output(_lost(m), "int", scalar.canonical(flag)))
            made.append(Measure(_lost(m), "bigint", "count", _lost(m)))
            text = scalar.canonical(f"CASE WHEN NOT ({lost}) THEN {exact} END")
            type_ = type_of(text, schema)
        if type_ is None:
            return None
        if m.function == "sum" and total_type(type_) != m.type:
            return None
        value = f"value of {m.name}"
        outputs.append(Output(value, type_, text))
        made.append(replace(m, name=_each(m), column=value))
    return groups(Totals(map_(plan, tuple(outputs)), by, tuple(made)), by)


def _exact_product(text: str, schema: Schema) -> str | None:
    """A product of two integers with all of its digits, None for any other text."""
    tree = scalar.parse(text)
    if not isinstance(tree, exp.Mul) or type_of(text, schema) not in _BOUNDS:
        return None
    sides = [scalar.text(side) for side in (tree.this, tree.expression)]
    if not all(scalar.as_column(side) and type_of(side, schema) in _BOUNDS for side in sides):
        return None
    return scalar.canonical(" * ".join(f"CAST({side} AS DECIMAL(19, 0))" for side in sides))
