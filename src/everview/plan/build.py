"""Smart constructors: what zero, identity and neighbours make of an operator is decided here."""

from __future__ import annotations

from functools import reduce

from everview.expr import scalar
from everview.expr.types import BEGUN, Column, Schema, Type, decimal_parts, is_exact, names, type_in
from everview.plan.nodes import (
    Add,
    Aggregate,
    Distinct,
    Empty,
    Filter,
    Fixpoint,
    Groups,
    Join,
    Map,
    Measure,
    Negate,
    Output,
    Over,
    Partition,
    Plan,
    Positive,
    Recursive,
    Restrict,
    Totals,
    Unnest,
    Values,
    Window,
)
from everview.plan.traverse import schema_of

TOTAL_INTEGER: Type = "decimal(38,0)"


def filter_(child: Plan, predicate: str | None) -> Plan:
    """σₚ(Q), with σ(0) = 0 and σ(σ(Q)) one filter."""
    if predicate is None or isinstance(child, Empty):
        return child
    if isinstance(child, Filter):
        both = scalar.conjuncts(child.predicate) + scalar.conjuncts(predicate)
        return Filter(child.child, scalar.conjunction(both) or "TRUE")
    return Filter(child, predicate)


def map_(child: Plan, outputs: tuple[Output, ...]) -> Plan:
    """π(Q), with π(0) = 0, π(π(Q)) one map and the identity nothing."""
    if isinstance(child, Empty):
        return Empty(schema_of(Map(child, outputs)))
    if isinstance(child, Map):
        inner = {output.name: output.scalar for output in child.outputs}
        merged = (Output(o.name, o.type, scalar.substitute(o.scalar, inner)) for o in outputs)
        return map_(child.child, tuple(merged))
    return child if outputs == identity(schema_of(child)) else Map(child, outputs)


def identity(schema: Schema) -> tuple[Output, ...]:
    """The outputs that leave every row as it is."""
    return tuple(Output(c.name, c.type, scalar.column(c.name)) for c in schema)


def project(child: Plan, columns: tuple[str, ...]) -> Plan:
    """Only the columns named, in that order."""
    schema = schema_of(child)
    picked = (Output(name, type_in(schema, name), scalar.column(name)) for name in columns)
    return map_(child, tuple(picked))


def unnest(
    child: Plan, array: str, element: Column, position: str = "", *, outer: bool = False
) -> Plan:
    """μ(Q), with μ(0) = 0."""
    made = Unnest(child, array, element, position, outer)
    return Empty(schema_of(made)) if isinstance(child, Empty) else made


def add(*terms: Plan) -> Plan:
    """L + R, with 0 + Q = Q."""
    kept = [term for term in terms if not isinstance(term, Empty)]
    return reduce(Add, kept) if kept else terms[0]


def negate(child: Plan) -> Plan:
    """−Q, with −0 = 0 and −−Q = Q."""
    if isinstance(child, Empty):
        return child
    return child.child if isinstance(child, Negate) else Negate(child)


def join(
    left: Plan,
    right: Plan,
    on: tuple[tuple[str, str], ...] = (),
    residual: str | None = None,
    nulls: bool = False,
) -> Plan:
    """L ⋈ R, with 0 ⋈ Q = Q ⋈ 0 = 0."""
    if isinstance(left, Empty) or isinstance(right, Empty):
        return Empty(schema_of(left) + schema_of(right))
    return Join(left, right, on, residual, nulls and bool(on))


def distinct(child: Plan) -> Plan:
    """δ(Q), with δ(0) = 0 and δδ = δ."""
    return child if isinstance(child, Empty | Distinct) else Distinct(child)


def positive(child: Plan) -> Plan:
    """Q⁺, with 0⁺ = 0; what has weight one or is positive already stays."""
    return child if isinstance(child, Empty | Distinct | Positive) else Positive(child)


def totals(child: Plan, keys: tuple[str, ...], measures: tuple[Measure, ...]) -> Plan:
    """Σₖ(Q), with Σ(0) = 0."""
    made = Totals(child, keys, measures)
    return Empty(schema_of(made)) if isinstance(child, Empty) else made


def groups(child: Plan, keys: tuple[str, ...]) -> Plan:
    """γ(T); the one group without keys is there even when T is 0."""
    return child if isinstance(child, Empty) and keys else Groups(child, keys)


def partition(child: Plan, keys: tuple[str, ...], aggregates: tuple[Aggregate, ...]) -> Plan:
    """Φₖ(Q); the one group without keys is there even when Q is 0."""
    made = Partition(child, keys, aggregates)
    return Empty(schema_of(made)) if isinstance(child, Empty) and keys else made


def window(child: Plan, keys: tuple[str, ...], columns: tuple[Over, ...]) -> Plan:
    """Ωₖ(Q), with Ω(0) = 0."""
    made = Window(child, keys, columns)
    return Empty(schema_of(made)) if isinstance(child, Empty) else made


def restrict(child: Plan, to: Plan, on: tuple[tuple[str, str], ...]) -> Plan:
    """Q ⋉ K, with 0 ⋉ K = 0, Q ⋉ 0 = 0, K ⋉ K = K and γ(Q) ⋉ K = γ(Q ⋉ K) by keys of γ."""
    if isinstance(child, Empty) or isinstance(to, Empty):
        return Empty(schema_of(child))
    if child == to and all(ours == theirs for ours, theirs in on):
        return child
    match child:
        case Add(left, right) if to in (left, right):
            return add(restrict(left, to, on), restrict(right, to, on))
        case Groups(rows, keys) if on and {ours for ours, _ in on} <= {*keys}:
            return groups(restrict(rows, to, on), keys)
        case _:
            return Restrict(child, to, on)


def restrict_to_keys(child: Plan, to: Plan, keys: tuple[str, ...]) -> Plan:
    """Q ⋉ K on columns of the same names."""
    return restrict(child, to, tuple((key, key) for key in keys))


def group_by(child: Plan, keys: tuple[str, ...], aggregates: tuple[Aggregate, ...]) -> Plan:
    """GROUP BY: from exact totals where every aggregate has them, else from the whole groups."""
    schema = schema_of(child)
    if not all(_has_exact_total(a, schema) for a in aggregates):
        return partition(child, keys, aggregates)
    measures = tuple(dict.fromkeys(m for a in aggregates for m in _measures(a, schema)))
    grouped = groups(totals(child, keys, measures), keys)
    kept = (Output(k, type_in(schema, k), scalar.column(k)) for k in keys)
    finished = (Output(a.name, a.type, _finish(a, schema)) for a in aggregates)
    return map_(grouped, (*kept, *finished))


def _has_exact_total(aggregate: Aggregate, schema: Schema) -> bool:
    """Whether the aggregate is a function of sums that do not depend on the order of addition."""
    if aggregate.distinct or aggregate.function not in ("count", "sum", "avg"):
        return False
    if aggregate.function == "count" or aggregate.column is None:
        return True
    type_ = type_in(schema, aggregate.column)
    parts = decimal_parts(type_)
    # An average of more than 20 digits cannot be divided exactly in 128 bits on both engines.
    return is_exact(type_) and not (aggregate.function == "avg" and parts and parts[0] > 20)


def _measures(aggregate: Aggregate, schema: Schema) -> tuple[Measure, ...]:
    if aggregate.column is None:
        return (Measure("count(*)", "bigint", "count"),)
    count = Measure(f"count({aggregate.column})", "bigint", "count", aggregate.column)
    if aggregate.function == "count":
        return (count,)
    type_ = total_type(type_in(schema, aggregate.column))
    return (count, Measure(f"sum({aggregate.column})", type_, "sum", aggregate.column))


def total_type(type_: Type) -> Type:
    """The type in which values of `type_` are summed without loss."""
    parts = decimal_parts(type_)
    return f"decimal(38,{parts[1]})" if parts else TOTAL_INTEGER


def _finish(aggregate: Aggregate, schema: Schema) -> str:
    """The aggregate as a scalar over its totals."""
    if aggregate.column is None:
        return scalar.column("count(*)")
    count = scalar.column(f"count({aggregate.column})")
    total = scalar.column(f"sum({aggregate.column})")
    if aggregate.function == "count":
        return count
    if aggregate.function == "sum":
        return scalar.canonical(
            f"CASE WHEN {count} = 0 THEN NULL ELSE CAST({total} AS {aggregate.type}) END"
        )
    return average_of(total, count, type_in(schema, aggregate.column))


def average_of(total: str, count: str, type_: Type) -> str:
    """The average of values of an exact type, from their total and number."""
    parts = decimal_parts(type_)
    if parts is None:
        return scalar.canonical(f"ev_avg_double({total}, {count})")
    return scalar.canonical(f"ev_avg_decimal({total}, {count}, {parts[0]}, {parts[1]})")


def while_(name: str, start: Plan, body: Plan, limit: int = 0) -> Plan:
    """X := start, then X := body as long as that changes X, which `body` reads as Recursive.

    Any body will do. That the loop has begun is a relation too, of no columns: 0 and then 1.
    """
    begun = Recursive(BEGUN, ())
    once = add(start, negate(join(start, begun)))
    equations = ((BEGUN, Values((), ((),))), (name, add(once, join(body, begun))))
    return Fixpoint(name, equations, limit)


def columns_of(plan: Plan) -> tuple[str, ...]:
    """The column names of a plan, in order."""
    return names(schema_of(plan))


def fresh(name: str, taken: tuple[str, ...]) -> str:
    """A name that is not taken.

    >>> fresh("place", ("id", "place"))
    "place'"
    """
    return fresh(f"{name}'", taken) if name in taken else name
