"""A plan of sums and counts as AGCA: one definition for each total of each group.

From ring-of-databases §5. A variable is never bound to NULL, and a column that is not used is `_`,
so a row counts where the columns have values that the condition, the keys and the summand use.
That is SQL's meaning where those columns are compared by a conjunct, which NULL does not satisfy,
or are summed; anywhere else a column that may be NULL is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from everview.expr import scalar
from everview.expr.types import names
from everview.lang.agca.factorize import eliminated
from everview.lang.agca.from_scalar import Scalars, conjuncts_of, refused
from everview.lang.agca.normal_form import Monomial
from everview.lang.agca.syntax import (
    ONE,
    Assignment,
    Atom,
    Comparison,
    Definition,
    Expr,
    Sum,
    Variable,
    Wildcard,
    names_in,
    plus,
    substituted,
    times,
    walk,
)
from everview.plan.nodes import (
    Add,
    Filter,
    Groups,
    Join,
    Map,
    Measure,
    Plan,
    Source,
    Totals,
)
from everview.plan.traverse import schema_of

NotNull = Mapping[str, Iterable[str]]
"""The columns of each relation that are never NULL."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a plan as factors, the value of each column, and the variables never NULL."""

    factors: tuple[Expr, ...]
    columns: Mapping[str, Expr]
    filled: frozenset[str]

    def where(self, conditions: Iterable[Expr]) -> _Rows:
        """The rows that satisfy conditions, which are conjuncts."""
        added = tuple(conditions)
        strict = frozenset[str]().union(*(names_in(c) for c in added if _is_strict(c)))
        for each in added:
            _must_have_values(each, self.filled | strict)
        return _Rows((*self.factors, *added), self.columns, self.filled | strict)


def definitions_of(name: str, plan: Plan, not_null: NotNull) -> tuple[Definition, ...]:
    """The totals of a view, each as a definition with the keys of the groups."""
    match plan:
        case Map(Groups(Totals() as totals), outputs):
            shown = {scalar.as_column(each.scalar): each.name for each in outputs}
        case Groups(Totals() as totals):
            shown = {}
        case _:
            raise refused("the view is no GROUP BY with sums and counts")
    alternatives = _Reading(not_null).rows(totals.child)
    keys = {key: shown.get(key) or key for key in totals.keys}
    return tuple(
        Definition(
            f"{name} {measure.name}",
            tuple(map(Variable, keys.values())),
            plus(*(_total(rows, measure, keys) for rows in alternatives)),
        )
        for measure in totals.measures
    )


def _total(rows: _Rows, measure: Measure, keys: Mapping[str, str]) -> Expr:
    """The total of one alternative: Sum(relations * conditions * summand), its keys bound."""
    value = ONE if measure.column is None else rows.columns[measure.column]
    filled = rows.filled | {*_strict_names(value)}
    _must_have_values(value, filled)
    factors = [*rows.factors]
    used = names_in(value).union(*(names_in(f) for f in factors if _says_present(f)))
    if measure.function == "sum":
        factors.append(value)
    renamed, computed = _renamed(rows, keys, frozenset(n for f in factors for n in names_in(f)))
    bound = (Assignment(Variable(k), substituted(held, renamed)) for k, held in computed.items())
    term = Monomial(Fraction(1), (*(substituted(each, renamed) for each in factors), *bound))
    simple, _ = eliminated(term, tuple(keys.values()), frozenset())
    kept = {n for v in used for n in names_in(substituted(Variable(v), renamed))}
    return Sum(_with_wildcards(simple, kept | {*keys.values()}))


def _renamed(
    rows: _Rows, keys: Mapping[str, str], used: frozenset[str]
) -> tuple[dict[str, Expr], dict[str, Expr]]:
    """New names for variables: a key that is one is called as it is shown; and the other keys."""
    renamed: dict[str, Expr] = {}
    computed: dict[str, Expr] = {}
    for key, shown in keys.items():
        held = rows.columns[key]
        if not names_in(held) <= rows.filled:
            raise refused(f"the key {shown} may be NULL")
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

    return times(*map(changed, term.factors))


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
                return [_Rows((Atom(name, tuple(held.values())),), held, filled)]
            case Add(left, right):
                return [*self.rows(left), *self.rows(right)]
            case Filter(child, predicate):
                schema = schema_of(child)
                return [
                    each.where(conjuncts_of(predicate, Scalars(each.columns, schema)))
                    for each in self.rows(child)
                ]
            case Map(child, outputs):
                schema = schema_of(child)
                return [
                    _Rows(
                        each.factors,
                        {o.name: Scalars(each.columns, schema).value(o.scalar) for o in outputs},
                        each.filled,
                    )
                    for each in self.rows(child)
                ]
            case Join():
                return self._joined(plan)
            case _:
                raise refused(f"{type(plan).__name__} is no join, filter or sum")

    def _joined(self, node: Join) -> list[_Rows]:
        schema = schema_of(node)
        found: list[_Rows] = []
        rights = self.rows(node.right)
        for left in self.rows(node.left):
            for right in rights:
                both = _Rows(
                    (*left.factors, *right.factors),
                    {**left.columns, **right.columns},
                    left.filled | right.filled,
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
                    scalars = Scalars(joined.columns, schema)
                    joined = joined.where(conjuncts_of(node.residual, scalars))
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
    return isinstance(factor, Comparison) and factor.left == factor.right


def _is_strict(condition: Expr) -> bool:
    """Whether a condition is not satisfied if one of its variables has no value."""
    return isinstance(condition, Comparison) and not any(
        isinstance(each, Comparison)
        for side in (condition.left, condition.right)
        for each in walk(side)
    )


def _strict_names(value: Expr) -> Iterable[str]:
    """The variables without which a summand has no value: those outside of its conditions."""
    if any(isinstance(each, Comparison) for each in walk(value)):
        return ()
    return names_in(value)


def _must_have_values(query: Expr, filled: frozenset[str]) -> None:
    missing = sorted(names_in(query) - filled)
    if missing:
        raise refused(f"the column {missing[0]} may be NULL where its value is needed")
