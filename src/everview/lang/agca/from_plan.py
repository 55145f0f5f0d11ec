"""A plan of sums and counts as AGCA: one definition for each total of each group.

From ring-of-databases §5. A column that is not used is `_`. One that is compared by a conjunct,
which NULL does not satisfy, or summed, has a variable, which is never NULL. Any other that may be
NULL has a nullable variable: a condition is 1 where it is true, and 0 where it is false or NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

from everview.expr import scalar
from everview.expr.types import Schema, names
from everview.lang.agca.factorize import eliminated
from everview.lang.agca.from_scalar import Scalars, conjuncts_of, refused
from everview.lang.agca.normal_form import Monomial
from everview.lang.agca.syntax import (
    ONE,
    ZERO,
    Assignment,
    Atom,
    Comparison,
    Constant,
    Definition,
    Expr,
    Extract,
    Negate,
    Product,
    Sum,
    Variable,
    Wildcard,
    names_in,
    plus,
    substituted,
    times,
    walk,
)
from everview.lang.agca.syntax import Add as Add_
from everview.plan import nodes
from everview.plan.nodes import (
    Add,
    Filter,
    Groups,
    Join,
    Map,
    Measure,
    Output,
    Plan,
    Ref,
    Source,
    Totals,
    Window,
)
from everview.plan.traverse import schema_of

NotNull = Mapping[str, Iterable[str]]
"""The columns of each relation that are never NULL."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a plan as factors, the value of each column, and 1 where it has one, else 0.

    The variables `filled` are not NULL in these rows, those `declared` in no row.
    """

    factors: tuple[Expr, ...]
    columns: Mapping[str, Expr]
    presences: Mapping[str, Expr]
    filled: frozenset[str]
    declared: frozenset[str]

    def where(self, conditions: Iterable[Expr]) -> _Rows:
        """The rows that satisfy conditions, which are conjuncts."""
        listed = (factor for each in conditions for factor in _factors(each))
        added = tuple(_NEVER if each == ZERO else each for each in listed)
        strict = frozenset[str]().union(*(names_in(c) for c in added if _is_strict(c)))
        return replace(self, factors=(*self.factors, *added), filled=self.filled | strict)

    def scalars(self, schema: Schema) -> Scalars:
        """Scalars over the columns."""
        return Scalars(self.columns, self.presences, schema, self.filled)


@dataclass(frozen=True, slots=True)
class Grouped:
    """A view as totals of groups, and the plan around them, which reads them as `TOTALS`."""

    totals: Totals
    around: Plan


_NEVER = Comparison("=", ONE, ZERO)
"""A condition that no row satisfies; 0 as a factor would say that the rows are there."""

TOTALS = "totals"
"""The relation of the totals of a view."""


def grouped(plan: Plan) -> Grouped | None:
    """The innermost totals of a view whose other operators each read one relation."""
    match plan:
        case Groups(Totals() as totals, keys):
            return Grouped(totals, Groups(Ref(TOTALS, schema_of(totals)), keys))
        case Map() | Filter() | Window():
            found = grouped(plan.child)
            return found and Grouped(found.totals, replace(plan, child=found.around))
        case _:
            return None


def rows_name(name: str) -> str:
    """The definition that counts the rows of each group of a view."""
    return f"{name} count(*)"


def definitions_of(name: str, plan: Plan, not_null: NotNull) -> tuple[Definition, ...]:
    """The totals of a view, each as a definition with the keys of the groups."""
    found = grouped(plan)
    if found is None:
        raise refused("the view is no GROUP BY with sums and counts")
    totals = found.totals
    shown: dict[str, str] = {}
    if isinstance(plan, Map):
        shown = {scalar.as_column(each.scalar) or "": each.name for each in plan.outputs}
    keys = {key: shown.get(key) or key for key in totals.keys}
    reading = _Reading(not_null)
    alternatives = [part for rows in reading.rows(totals.child) for part in _disjoint(rows)]
    measures = [each for each in totals.measures if each.function != "product"]
    if len(measures) < len(totals.measures):
        raise refused("the view is split into factors already")
    every = Measure("count(*)", "bigint", "count")
    if not any(each.name == every.name for each in measures):
        measures.append(every)
    return tuple(
        Definition(
            f"{name} {measure.name}",
            tuple(map(Variable, keys.values())),
            plus(*(_total(rows, measure, keys, sign) for sign, rows in alternatives)),
        )
        for measure in measures
    )


_MAX_ALTERNATIVES = 3
"""How many sides of an OR are multiplied out."""


def _disjoint(rows: _Rows) -> list[tuple[int, _Rows]]:
    """Rows without an OR over several relations: a + b − a * b, so that each term splits.

    A product of conditions that says x = c and x = d is left out.
    """
    relations = [names_in(each) for each in rows.factors if isinstance(each, Atom)]
    for at, each in enumerate(rows.factors):
        if not isinstance(each, Comparison) or not isinstance(each.left, Add_):
            continue
        sides = _sides(each)
        if each.operator != ">" or each.right != ZERO or len(sides) > _MAX_ALTERNATIVES:
            continue
        if any(names_in(each) <= held for held in relations):
            continue
        others = (*rows.factors[:at], *rows.factors[at + 1 :])
        found: list[tuple[int, _Rows]] = []
        for size in range(1, len(sides) + 1):
            for chosen in combinations(sides, size):
                factors = tuple(part for side in chosen for part in _factors(side))
                if _contradict((*others, *factors)):
                    continue
                one = replace(rows, factors=others).where(dict.fromkeys(factors))
                sign = 1 if size % 2 else -1
                found += [(sign * more, part) for more, part in _disjoint(one)]
        return found
    return [(1, rows)]


def _sides(condition: Comparison) -> list[Expr]:
    """The sides of an OR, those of ORs in it too."""
    assert isinstance(condition.left, Add_)
    found: list[Expr] = []
    for each in condition.left.terms:
        nested = (
            isinstance(each, Comparison)
            and (each.operator, each.right) == (">", ZERO)
            and isinstance(each.left, Add_)
        )
        found += _sides(each) if nested and isinstance(each, Comparison) else [each]
    return found


def _factors(query: Expr) -> tuple[Expr, ...]:
    return query.factors if isinstance(query, Product) else (query,)


def _contradict(factors: Iterable[Expr]) -> bool:
    """Whether a variable is equal to two constants."""
    known: dict[Expr, Expr] = {}
    return any(
        isinstance(each, Comparison)
        and each.operator == "="
        and isinstance(each.left, Variable)
        and isinstance(each.right, Constant)
        and known.setdefault(each.left, each.right) != each.right
        for each in factors
    )


def _total(rows: _Rows, measure: Measure, keys: Mapping[str, str], sign: int) -> Expr:
    """The total of one alternative: Sum(relations * conditions * summand), its keys bound."""
    value: Expr = ONE
    present: Expr = ONE
    if measure.column is not None:
        value, present = rows.columns[measure.column], rows.presences[measure.column]
    filled, present_ = rows.filled, present
    if not _is_conditional(present):
        filled |= names_in(present)
        present = ONE
    factors = [*rows.factors, *_factors(present)]
    if measure.function == "sum":
        factors.append(value)
    renamed, computed = _renamed(rows, keys, frozenset(n for f in factors for n in names_in(f)))
    bound = (Assignment(Variable(k), substituted(held, renamed)) for k, held in computed.items())
    term = Monomial(Fraction(1), (*(substituted(each, renamed) for each in factors), *bound))
    held = frozenset(n for v in filled for n in names_in(substituted(Variable(v), renamed)))
    term = Monomial(Fraction(sign), tuple(_plain(each, held) for each in term.factors))
    simple, _ = eliminated(term, tuple(keys.values()), frozenset())
    said = [present_, *(each for each in rows.factors if _says_present(each))]
    needed = frozenset[str]().union(*map(names_in, said)) - rows.declared
    kept = {n for v in needed for n in names_in(substituted(Variable(v), renamed))}
    text = _with_wildcards(simple, kept | {*keys.values()})
    return Negate(Sum(text)) if sign < 0 else Sum(text)


def _renamed(
    rows: _Rows, keys: Mapping[str, str], used: frozenset[str]
) -> tuple[dict[str, Expr], dict[str, Expr]]:
    """New names for variables: a key that is one is called as it is shown; and the other keys."""
    renamed: dict[str, Expr] = {}
    computed: dict[str, Expr] = {}
    for key, shown in keys.items():
        held = rows.columns[key]
        if not names_in(held) <= rows.filled and not _keeps_null(held):
            raise refused(f"the key {shown} is computed, and may be NULL")
        if isinstance(held, Variable) and held.name not in renamed:
            renamed[held.name] = Variable(shown)
        else:
            computed[shown] = held
    taken = {*keys.values(), *used}
    for each in sorted((used & {*keys.values()}) - renamed.keys()):
        name = _fresh(each, taken)
        taken.add(name)
        renamed[each] = Variable(name)
    return renamed, computed


def _with_wildcards(term: Monomial, kept: set[str]) -> Expr:
    """A monomial with `_` for the variables that occur once, and need not have values."""
    counted: dict[str, int] = {}
    for factor in term.factors:
        listed = factor.arguments if isinstance(factor, Atom) else map(Variable, names_in(factor))
        for each in listed:
            if isinstance(each, Variable):
                counted[each.name] = counted.get(each.name, 0) + 1
    once = {each for each, number in counted.items() if number == 1} - kept

    def changed(factor: Expr) -> Expr:
        if not isinstance(factor, Atom):
            return factor
        arguments = (
            Wildcard() if isinstance(each, Variable) and each.name in once else each
            for each in factor.arguments
        )
        return Atom(factor.relation, tuple(arguments))

    # A summand that is 0 stays: its groups are there.
    factors = (part for each in map(changed, term.factors) for part in _factors(each))
    parts = tuple(part for part in factors if part != ONE)
    return Product(parts) if len(parts) > 1 else times(*parts)


_IN_SQL: Mapping[type, str] = {
    nodes.Negate: "an outer join, EXCEPT or NOT EXISTS",
    nodes.Positive: "EXCEPT ALL or INTERSECT ALL",
    nodes.Distinct: "DISTINCT, UNION, EXISTS, or another operation on sets",
    nodes.Groups: "another GROUP BY, or a subquery with an aggregate",
    nodes.Totals: "another GROUP BY, or a subquery with an aggregate",
    nodes.Partition: "an aggregate that is no SUM, COUNT or AVG",
    nodes.Window: "a window or a LIMIT",
    nodes.Unnest: "a generator such as explode",
    nodes.Values: "VALUES",
    nodes.Fixpoint: "recursion",
}
"""What a query says where its plan has an operator that AGCA has not."""


class _Reading:
    """Reads one plan; every column of every relation that it reads gets a variable of its own."""

    def __init__(self, not_null: NotNull) -> None:
        self.not_null = not_null
        self.taken: set[str] = set()

    def rows(self, plan: Plan) -> list[_Rows]:
        """The rows of a plan, as alternatives that are added."""
        match plan:
            case Source(name, schema):
                held = {each: self._variable(each) for each in names(schema)}
                filled = frozenset(held[each].name for each in self.not_null.get(name, ()))
                atom = Atom(name, tuple(held.values()))
                presences: dict[str, Expr] = {
                    column: ONE if each.name in filled else Comparison("=", each, each)
                    for column, each in held.items()
                }
                return [_Rows((atom,), held, presences, filled, filled)]
            case Add(left, right):
                return [*self.rows(left), *self.rows(right)]
            case Filter(child, predicate):
                schema = schema_of(child)
                return [
                    each.where(conjuncts_of(predicate, each.scalars(schema)))
                    for each in self.rows(child)
                ]
            case Map(child, outputs):
                schema = schema_of(child)
                return [_mapped(each, outputs, schema) for each in self.rows(child)]
            case Join():
                return self._joined(plan)
            case Groups(Totals(keys=()) as totals, ()):
                return [self._one_group(totals)]
            case _:
                said = next((s for kind, s in _IN_SQL.items() if isinstance(plan, kind)), "")
                raise refused(f"below its sums it has {said or 'more than joins and conditions'}")

    def _one_group(self, totals: Totals) -> _Rows:
        """The one row of totals without keys, each as a Sum, which has a value always."""
        alternatives = [part for rows in self.rows(totals.child) for part in _disjoint(rows)]
        held = {
            each.name: plus(*(_total(rows, each, {}, sign) for sign, rows in alternatives))
            for each in totals.measures
            if each.function != "product"
        }
        if len(held) < len(totals.measures):
            raise refused("a subquery is split into factors already")
        return _Rows((), held, dict.fromkeys(held, ONE), frozenset(), frozenset())

    def _joined(self, node: Join) -> list[_Rows]:
        schema = schema_of(node)
        found: list[_Rows] = []
        rights = self.rows(node.right)
        for left in self.rows(node.left):
            for right in rights:
                both = _Rows(
                    (*left.factors, *right.factors),
                    {**left.columns, **right.columns},
                    {**left.presences, **right.presences},
                    left.filled | right.filled,
                    left.declared | right.declared,
                )
                equal = [
                    Comparison("=", left.columns[one], right.columns[other])
                    for one, other in node.on
                ]
                if node.nulls:
                    for each in equal:
                        _must_have_values(each, both.filled)
                joined = both.where(equal)
                if node.residual is not None:
                    conditions = conjuncts_of(node.residual, joined.scalars(schema))
                    joined = joined.where(conditions)
                found.append(joined)
        return found

    def _variable(self, column: str) -> Variable:
        name = _fresh(column, self.taken)
        self.taken.add(name)
        return Variable(name)


def _fresh(name: str, taken: Iterable[str]) -> str:
    known = {*taken}
    while name in known:
        name += "'"
    return name


def _says_present(factor: Expr) -> bool:
    """Whether a factor is an equation x = x, which says that x has a value."""
    match factor:
        case Comparison("=", left, right):
            return left == right and _keeps_null(left)
        case _:
            return False


def _is_strict(condition: Expr) -> bool:
    """Whether a condition is not satisfied if one of its variables has no value."""
    return isinstance(condition, Comparison) and not any(
        isinstance(each, Comparison)
        for side in (condition.left, condition.right)
        for each in walk(side)
    )


def _mapped(rows: _Rows, outputs: Iterable[Output], schema: Schema) -> _Rows:
    scalars = rows.scalars(schema)
    columns = {each.name: scalars.value(each.scalar) for each in outputs}
    presences = {each.name: scalars.present(scalar.parse(each.scalar)) for each in outputs}
    return replace(rows, columns=columns, presences=presences)


def _is_conditional(present: Expr) -> bool:
    """Whether a value is there or not for another reason than that its variables are NULL."""
    return not all(each == ONE or _says_present(each) for each in _factors(present))


def _keeps_null(value: Expr) -> bool:
    """Whether a value is NULL if and only if its variable is."""
    return isinstance(value, Variable) or (isinstance(value, Extract) and _keeps_null(value.date))


def _plain(factor: Expr, filled: frozenset[str]) -> Expr:
    """A relation with nullable variables for the columns that may be NULL."""
    if not isinstance(factor, Atom):
        return factor
    arguments = (
        replace(each, nullable=each.name not in filled) if isinstance(each, Variable) else each
        for each in factor.arguments
    )
    return replace(factor, arguments=tuple(arguments))


def _must_have_values(query: Expr, filled: frozenset[str]) -> None:
    missing = sorted(names_in(query) - filled)
    if missing:
        raise refused(f"the column {missing[0]} may be NULL where its value is needed")
