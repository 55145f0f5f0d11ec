"""AGCA to trigger programs: recursive deltas, factorized, with a map for each factor.

From ring-of-databases §1.1 and 7. The delta of a map for an event is a sum of monomials; what of a
monomial reads the database falls into components, and each is a map again, of lower degree, until
nothing reads the database. Equal maps are one. A trigger changes a map before the maps it is
computed from, so that every statement reads old values: in increasing order of delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from everview.errors import UserError
from everview.lang.agca.delta import Event, delta, is_simple
from everview.lang.agca.factorize import Component, Keys, eliminated, factorized
from everview.lang.agca.from_plan import rows_name
from everview.lang.agca.normal_form import Monomial, monomials, normal_form, polynomial
from everview.lang.agca.printer import print_name, print_query
from everview.lang.agca.scope import span_of
from everview.lang.agca.syntax import (
    ONE,
    Add,
    Assignment,
    Atom,
    Comparison,
    Constant,
    Definition,
    Expr,
    Negate,
    Product,
    Sum,
    Variable,
    children,
    minus,
    names_in,
    rebuilt,
    relations,
    substituted,
    times,
    walk,
)
from everview.trigger_programs.program import Statement, Trigger, TriggerProgram, View


def compile_triggers(
    definitions: Iterable[Definition],
    unique: Keys | None = None,
    rows: Callable[[Definition], Expr] = lambda each: arity(each.body),
) -> TriggerProgram:
    """The program that keeps the views of AGCA definitions fresh, from their tables' rows.

    `unique` are the keys of relations; they make maps small, and no answer depends on them. `rows`
    is the expression that counts the bindings of a group.
    """
    compilation = _Compilation(unique or {})
    definitions = tuple(definitions)
    _must_read_tables(definitions)
    views: list[View] = []
    for each in definitions:
        compilation.check(each)
        values = compilation.map_of(each.body, each.key_names)
        counts = compilation.map_of(rows(each), each.key_names)
        views.append(View(each.name, values, counts))
    compilation.close()
    maps = sorted(compilation.maps.values(), key=lambda each: -_order(each))
    return TriggerProgram(tuple(maps), compilation.triggers(maps), tuple(views))


def _must_read_tables(definitions: tuple[Definition, ...]) -> None:
    """Refuse a definition that reads the view of another, which no event changes."""
    views = {each.name.lower() for each in definitions}
    for definition in definitions:
        for each in walk(definition.body):
            if isinstance(each, Atom) and each.relation.lower() in views:
                raise UserError(
                    "G007",
                    f"{print_name(definition.name)} reads {each.relation}, which is a view here",
                    span=each.span,
                    remedy="write what it stands for, or keep both in a store, by db.agca",
                )


def compile_totals(
    views: Mapping[str, tuple[Definition, ...]], unique: Keys | None = None
) -> TriggerProgram:
    """The program of the totals of views of SQL, one of which counts the rows of each group."""
    rows: dict[str, Expr] = {}
    for view, totals in views.items():
        if any(_endless_condition(each) is not None for each in totals):
            raise UserError(
                "G007",
                f"{view} has no triggers: it compares with a sum or count of a subquery, "
                "and a change of that may change any row",
                remedy="keep it in a store, with db.sql",
            )
        counted = next(each for each in totals if each.name == rows_name(view))
        rows |= {each.name: counted.body for each in totals}
    definitions = [each for totals in views.values() for each in totals]
    return compile_triggers(definitions, unique, lambda each: rows[each.name])


def _endless_condition(definition: Definition) -> Expr | None:
    """A condition or assignment with relations in it, which has no finite chain of deltas."""
    return next(
        (
            each
            for each in walk(definition.body)
            if isinstance(each, Comparison | Assignment) and not _is_computed(each)
        ),
        None,
    )


def arity(query: Expr) -> Expr:
    """The expression whose value at a group is the number of its bindings: all values are 1."""
    match query:
        case Constant() | Variable():
            return ONE
        case Negate(body):
            return arity(body)
        case Add((first, *_)) if not any(
            isinstance(each, Atom | Comparison | Assignment) for each in walk(query)
        ):
            return arity(first)
        case Add() | Product() | Sum():
            return rebuilt(query, arity)
        case _:
            return query


_Added: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[Expr, ...]]
"""The keys, the columns that must have values, and the factors of what a statement adds."""


class _Compilation:
    """The maps that are needed so far, by their canonical definition."""

    def __init__(self, unique: Keys) -> None:
        self.unique = unique
        self.maps: dict[tuple[tuple[str, ...], Expr], Definition] = {}
        self.columns: dict[str, int] = {}
        self.statements: dict[tuple[str, int, str], list[Statement]] = {}

    def check(self, definition: Definition) -> None:
        """Refuse what has no finite chain of deltas, and note how many columns relations have."""
        condition = _endless_condition(definition)
        if condition is not None:
            raise UserError(
                "G007",
                f"{print_query(condition)} is no simple condition: its deltas may not end",
                span=span_of(condition),
                remedy="keep it as a view of a store, by db.agca or db.sql",
            )
        for each in walk(definition.body):
            if isinstance(each, Atom):
                known = self.columns.setdefault(each.relation, len(each.arguments))
                if known != len(each.arguments):
                    raise UserError(
                        "G002",
                        f"{each.relation} has {known} columns, not {len(each.arguments)}",
                        span=each.span,
                        remedy="name as many everywhere",
                    )

    def map_of(self, body: Expr, keys: tuple[str, ...]) -> str:
        """The name of the map with this meaning, which is kept from now on."""
        terms = normal_form(body, frozenset(keys), _scopes(body))
        simple = [eliminated(each, keys, frozenset())[0] for each in terms]
        query = polynomial(simple)
        names = _canonical(query, keys)
        return self._map(substituted(query, dict(names)), tuple(names[k].name for k in keys))

    def component(self, component: Component) -> Atom:
        """The lookup of a component in its map."""
        query = times(*component.factors)
        names = _canonical(query, component.keys)
        keys = tuple(names[key].name for key in component.keys)
        name = self._map(substituted(query, dict(names)), keys)
        empty = nullable_names(component.factors)
        return Atom(name, tuple(Variable(each, each in empty) for each in component.keys))

    def _map(self, query: Expr, keys: tuple[str, ...]) -> str:
        known = self.maps.get((keys, query))
        if known is None:
            known = Definition(f"m{len(self.maps)}", tuple(map(Variable, keys)), query)
            self.maps[keys, query] = known
        return known.name

    def close(self) -> None:
        """Derive every map for every event; the maps that this needs, too."""
        done = 0
        while done < len(self.maps):
            definition = list(self.maps.values())[done]
            done += 1
            for relation in relations(definition.body):
                made = self._derived(definition, relation, 1)
                self.statements[relation, 1, definition.name] = made
                if _is_linear(definition.body, relation):
                    # Δ for a deletion is −Δ for an insertion.
                    undone = [replace(each, body=minus(each.body)) for each in made]
                else:
                    undone = self._derived(definition, relation, -1)
                self.statements[relation, -1, definition.name] = undone

    def _derived(self, definition: Definition, relation: str, sign: int) -> list[Statement]:
        """What an event adds to a map."""
        row = self.row(relation)
        event = Event(relation, sign, tuple(map(Variable, row)))
        known = frozenset(row)
        change = delta(definition.body, event)
        sums: dict[_Added, Fraction] = {}
        bound = known | {*definition.key_names}
        for term in normal_form(change, bound, _scopes(definition.body)):
            given = tuple(sorted(_given(term, known), key=row.index))
            simple, keys = eliminated(term, definition.key_names, known)
            components, others = factorized(simple, known | {*keys}, known, self.unique)
            lookups = tuple(self.component(each) for each in components)
            added = (keys, given, (*lookups, *others))
            sums[added] = sums.get(added, Fraction(0)) + simple.coefficient
        return [
            Statement(definition.name, keys, Monomial(number, factors).as_query(), given)
            for (keys, given, factors), number in sums.items()
            if number
        ]

    def row(self, relation: str) -> tuple[str, ...]:
        """The variables of a row of a relation; no map has variables of these names."""
        return tuple(f"t{each}" for each in range(1, self.columns[relation] + 1))

    def triggers(self, maps: Iterable[Definition]) -> tuple[Trigger, ...]:
        """The triggers of every relation, for insertions and deletions."""
        found = []
        for relation in self.columns:
            for sign in (1, -1):
                statements = [
                    statement
                    for each in maps
                    for statement in self.statements.get((relation, sign, each.name), ())
                ]
                found.append(Trigger(relation, sign, self.row(relation), tuple(statements)))
        return tuple(found)


def _is_computed(query: Comparison | Assignment) -> bool:
    """Whether a condition or assignment is simple, and sums over no variables of its own."""
    inner = (each for value in children(query) for each in walk(value))
    return is_simple(query) and not any(isinstance(each, Assignment) for each in inner)


def _canonical(query: Expr, keys: tuple[str, ...]) -> dict[str, Variable]:
    """Names for the variables by position: keys first, then those that are summed."""
    listed = [each for q in walk(query) for each in _listed(q)]
    summed = dict.fromkeys(name for name in listed if name not in keys)
    names = {name: Variable(f"k{number}") for number, name in enumerate(keys, 1)}
    return names | {name: Variable(f"v{number}") for number, name in enumerate(summed, 1)}


def _listed(query: Expr) -> list[str]:
    match query:
        case Atom(_, arguments):
            return [each.name for each in arguments if isinstance(each, Variable)]
        case Assignment(variable):
            return [variable.name]
        case _:
            return sorted(names_in(query)) if isinstance(query, Variable) else []


def _given(term: Monomial, row: frozenset[str]) -> set[str]:
    """The variables of the row that a delta binds others to: those must not be NULL."""
    return {
        each.value.name
        for each in term.factors
        if isinstance(each, Assignment)
        and isinstance(each.value, Variable)
        and each.value.name in row
        and not each.variable.nullable
    }


def _is_linear(query: Expr, relation: str) -> bool:
    """Whether no monomial joins a relation with itself."""
    return all(
        sum(atom.relation == relation for atom in term.atoms) <= 1
        for term in monomials(query, whole_terms=True)
    )


def _scopes(query: Expr) -> tuple[frozenset[str], ...]:
    """The variables of each relation: a polynomial over those of one need not be multiplied out."""
    return tuple(names_in(each) for each in walk(query) if isinstance(each, Atom))


def nullable_names(factors: Iterable[Expr]) -> frozenset[str]:
    """The variables that may be NULL where factors bind them."""
    listed = [a for f in factors if isinstance(f, Atom) for a in f.arguments]
    held = [each for each in listed if isinstance(each, Variable)]
    filled = {each.name for each in held if not each.nullable}
    found = frozenset(each.name for each in held) - filled
    assigned = [f for f in factors if isinstance(f, Assignment)]
    return found | {f.variable.name for f in assigned if names_in(f.value) & found} - filled


def _order(definition: Definition) -> int:
    """How many relations the largest monomial of a map joins."""
    return max((len(t.atoms) for t in normal_form(definition.body)), default=0)
