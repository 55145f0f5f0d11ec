"""Monomials made small: variables eliminated, and a sum split into independent factors.

From ring-of-databases §5 and Ex. 1.3: Sum(α ∗ β) = Sum(α) ∗ Sum(β) if α and β share no variable
that is not bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from everview.lang.agca.normal_form import Monomial
from everview.lang.agca.syntax import (
    Assignment,
    Atom,
    Comparison,
    Expr,
    Variable,
    names_in,
    substituted,
)

Names = frozenset[str]


def eliminated(
    term: Monomial, keys: tuple[str, ...], row: Names
) -> tuple[Monomial, tuple[str, ...]]:
    """A monomial without the variables that are equal to others, and its group variables then.

    `row` are the variables of an event, whose values are known. A group variable that is assigned
    one of them is that one from then on; what is assigned twice is compared.
    """
    while (found := _equation(term, frozenset(keys), row)) is not None:
        at, old, new = found
        left = (each for number, each in enumerate(term.factors) if number != at)
        values: dict[str, Expr] = {old: Variable(new)}
        factors = (_compared(substituted(each, values), row) for each in left)
        term = Monomial(term.coefficient, tuple(factors))
        keys = tuple(new if key == old else key for key in keys)
    kept: list[Expr] = []
    for each in term.factors:
        repeated = isinstance(each, Comparison) and each in kept
        if not _is_trivial(each) and not repeated:
            kept.append(each)
    return Monomial(term.coefficient, tuple(kept)), keys


def _equation(term: Monomial, keys: Names, row: Names) -> tuple[int, str, str] | None:
    """A factor that says that two variables are equal, the one to replace, and by which."""
    for at, each in enumerate(term.factors):
        match each:
            case Assignment(Variable(one), Variable(other)):
                pass
            case Comparison("=", Variable(one), Variable(other)):
                pass
            case _:
                continue
        if one == other:
            continue
        for old, new in ((one, other), (other, one)):
            if old not in keys and old not in row:
                return at, old, new
        for old, new in ((one, other), (other, one)):
            if old in keys and old not in row and new in row:
                return at, old, new
    return None


def _compared(factor: Expr, row: Names) -> Expr:
    """An assignment to a variable whose value is known compares."""
    match factor:
        case Assignment(variable, value) if variable.name in row:
            return Comparison("=", variable, value)
        case _:
            return factor


def _is_trivial(factor: Expr) -> bool:
    match factor:
        case Comparison("=", left, right):
            return left == right
        case Assignment(variable, value):
            return variable == value
        case _:
            return False


@dataclass(frozen=True, slots=True)
class Component:
    """Relations that hang together by summed variables, with the factors over them alone.

    `keys` are the variables by which it is looked up: known ones, and those used elsewhere too.
    """

    keys: tuple[str, ...]
    factors: tuple[Expr, ...]


def factorized(term: Monomial, known: Names) -> tuple[tuple[Component, ...], tuple[Expr, ...]]:
    """The components of a monomial, and its other factors, where some variables are known.

    A factor over the variables of one component goes into it. One over several, or over known
    variables that the component does not have, stays outside, and its variables become keys.
    """
    groups = _connected(term.atoms, known)
    inside: list[list[Expr]] = [list(group) for group in groups]
    outside: list[Expr] = []
    for each in term.factors:
        if isinstance(each, Atom):
            continue
        used = names_in(each)
        homes = [at for at, group in enumerate(groups) if used and used <= _names(group)]
        summed = [at for at in homes if not used <= known]
        if summed and not isinstance(each, Assignment):
            inside[summed[0]].append(each)
        else:
            outside.append(each)
    needed = known.union(*map(names_in, outside))
    return tuple(
        Component(_in_order(group, needed), tuple(factors))
        for group, factors in zip(groups, inside, strict=True)
    ), tuple(outside)


def _connected(atoms: Iterable[Atom], known: Names) -> list[list[Atom]]:
    """The atoms, those together that share a variable which is not known."""
    groups: list[list[Atom]] = []
    for atom in atoms:
        summed = names_in(atom) - known
        met = [group for group in groups if _names(group) & summed]
        groups = [group for group in groups if group not in met]
        groups.append([*(each for group in met for each in group), atom])
    return groups


def _names(atoms: Iterable[Atom]) -> Names:
    return frozenset[str]().union(*map(names_in, atoms))


def _in_order(atoms: Iterable[Atom], wanted: Names) -> tuple[str, ...]:
    listed = (a.name for atom in atoms for a in atom.arguments if isinstance(a, Variable))
    return tuple(dict.fromkeys(name for name in listed if name in wanted))
