"""An AGCA text as views: which it declares, what each reads, and the plan of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from everview.errors import UserError
from everview.expr.types import PLAIN_NAME, unusable_name
from everview.lang.agca.lower import VALUE, lower_definition
from everview.lang.agca.lower import correlated_nodes as nodes_of_definition
from everview.lang.agca.normal_form import Monomial, monomials
from everview.lang.agca.parse import parse_definitions
from everview.lang.agca.printer import print_definition, print_name, print_query
from everview.lang.agca.scope import binds, check_scope, in_order
from everview.lang.agca.syntax import (
    Add,
    Assignment,
    Atom,
    Comparison,
    Definition,
    Expr,
    Extract,
    Sum,
    Variable,
    children,
    rebuilt,
    relations,
)
from everview.lang.correlation import CorrelatedNode
from everview.lang.stored_relation import StoredRelation
from everview.plan.nodes import Plan


@dataclass(frozen=True, slots=True)
class DeclaredView:
    """A view that a text declares: its name, and its definition as it is written."""

    name: str
    text: str


def declared_views(text: str) -> tuple[DeclaredView, ...]:
    """The views that a text declares, in order; a later one may read those before it."""
    found = []
    for each in checked_definitions(text):
        assert each.span is not None
        found.append(DeclaredView(each.name, text[each.span.start : each.span.stop]))
    return tuple(found)


def reads_of(text: str) -> tuple[str, ...]:
    """The relations that a definition reads, as it spells them."""
    return relations(_single(text).body)


def reading_instead(text: str, name: str, instead: str) -> str:
    """The text of a definition over another relation, whose columns are at the same places.

    >>> reading_instead("v[k] := Sum(R(k, _) * s(k))", "r", "t")
    'v[k] := Sum(t(k, _) * s(k))'
    """

    def changed(node: Expr) -> Expr:
        if isinstance(node, Atom) and node.relation.lower() == name.lower():
            return replace(node, relation=instead)
        return rebuilt(node, changed)

    definition = _single(text)
    return print_definition(replace(definition, body=changed(definition.body)))


def lower_view(text: str, known: Mapping[str, StoredRelation]) -> Plan:
    """The plan of a view from the text of its definition."""
    return lower_definition(_single(text), known)


def correlated_nodes(text: str, known: Mapping[str, StoredRelation]) -> tuple[CorrelatedNode, ...]:
    """The nodes with parameters of a view from the text of its definition."""
    return nodes_of_definition(_single(text), known)


def _single(text: str) -> Definition:
    definitions = checked_definitions(text)
    if len(definitions) != 1:
        raise UserError(
            "G001",
            f"one definition was expected, not {len(definitions)}",
            remedy="give each view a text of its own",
        )
    return definitions[0]


@lru_cache(maxsize=1024)
def checked_definitions(text: str) -> tuple[Definition, ...]:
    """The definitions of a text, with every variable bound and every column with a name."""
    definitions = parse_definitions(text)
    _check_distinct(definitions)
    for each in definitions:
        _check_names(each)
        check_scope(each.body, frozenset(each.key_names))
        _check_nullable(each.body, {})
        _check_keys(each)
    return definitions


def _check_distinct(definitions: tuple[Definition, ...]) -> None:
    """Views have different names, whatever the case."""
    taken: set[str] = set()
    for each in definitions:
        if each.name.lower() in taken:
            raise UserError(
                "G006",
                f"there is more than one view {print_name(each.name)}, whatever its case",
                span=each.span,
                remedy="rename one of them",
            )
        taken.add(each.name.lower())


def _check_nullable(query: Expr, bound: Mapping[str, bool]) -> Mapping[str, bool]:
    """The variables bound after an expression, and whether each may be NULL.

    One that may be is bound in one place: NULL is equal to nothing, so it joins nothing.
    """
    match query:
        case Atom(_, arguments):
            return _bound_by([each for each in arguments if isinstance(each, Variable)], bound)
        case Assignment(variable, value):
            _check_nullable(value, bound)
            return _bound_by([variable], bound)
        case Sum() | Comparison() | Extract():
            for part in children(query):
                _check_nullable(part, bound)
            return bound
        case Add(terms):
            ends = [_check_nullable(each, bound) for each in terms]
            names = frozenset.intersection(*map(frozenset, ends))
            return {name: any(each[name] for each in ends) for name in names}
        case _:
            for part in children(query):
                bound = _check_nullable(part, bound)
            return bound


def _bound_by(variables: list[Variable], bound: Mapping[str, bool]) -> Mapping[str, bool]:
    found = dict(bound)
    for each in variables:
        if each.name in found and (each.nullable or found[each.name]):
            name = print_name(each.name)
            raise UserError(
                "G003",
                f"{name} is bound in two places, so it is never NULL",
                span=each.span,
                remedy=f"write {name} without ?, or give each its own variable",
            )
        found[each.name] = each.nullable
    return found


def _check_keys(definition: Definition) -> None:
    """Every term must bind every group variable, by a relation or an assignment."""
    for term in monomials(definition.body, frozenset(definition.key_names)):
        bound = frozenset[str]().union(*map(binds, term.factors))
        for each in definition.keys:
            if each.name not in bound:
                raise _not_bound(each, term)
        if in_order(term.factors, frozenset()) is None:
            raise _not_bound(definition.keys[0], term)


def _not_bound(key: Variable, term: Monomial) -> UserError:
    name = print_name(key.name)
    return UserError(
        "G003",
        f"the group variable {name} is not bound in the term {print_query(term.as_query())}",
        span=key.span,
        remedy=f"bind it in every term, by a relation or by ({name} := …)",
    )


def _check_names(definition: Definition) -> None:
    taken = {VALUE}
    for each in definition.keys:
        if problem := unusable_name(each.name):
            raise UserError("Q011", problem, span=each.span, remedy=PLAIN_NAME)
        if each.name.lower() in taken:
            problem = f"there is more than one column {each.name}, whatever its case"
            raise UserError(
                "G006",
                problem,
                span=each.span,
                remedy=f"rename the variable; {VALUE} is the column of the values",
            )
        taken.add(each.name.lower())
