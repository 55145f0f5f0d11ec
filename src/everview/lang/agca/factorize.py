"""Monomials made small: variables eliminated, and a sum split into independent factors.

From ring-of-databases §5 and Ex. 1.3: Sum(α ∗ β) = Sum(α) ∗ Sum(β) if α and β share no variable
that is not bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

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
Keys = Mapping[str, tuple[int, ...]]
"""The positions of the columns of each relation that no two rows agree on."""


def eliminated(
    term: Monomial, keys: tuple[str, ...], row: Names
) -> tuple[Monomial, tuple[str, ...]]:
    """A monomial without the variables that are equal to others, and its group variables then.

    `row` are the variables of an event, whose values are known. A group variable that is assigned
    one of them is that one from then on; what is assigned twice is compared. A variable that is
    equal to another is not NULL.
    """
    filled = {name for each in term.factors for name in _filled(each, row)}
    while (found := _equation(term, frozenset(keys), row)) is not None:
        at, old, new = found
        equal = isinstance(term.factors[at], Comparison)
        left = [each for number, each in enumerate(term.factors) if number != at]
        values: dict[str, Expr] = {old: Variable(new)}
        if equal or old in filled:
            filled.add(new)
        if equal:
            left = [_not_null(each, frozenset({old, new})) for each in left]
        factors = (_compared(substituted(each, values), row) for each in left)
        term = Monomial(term.coefficient, tuple(factors))
        keys = tuple(new if key == old else key for key in keys)
    kept: list[Expr] = []
    for each in term.factors:
        repeated = isinstance(each, Comparison) and each in kept
        if not _is_trivial(each, filled) and not repeated:
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
            return Comparison("=", replace(variable, nullable=False), value)
        case _:
            return factor


def _filled(factor: Expr, row: Names) -> Iterable[str]:
    """The variables that are not NULL where a factor binds them."""
    match factor:
        case Atom(_, arguments):
            held = (each for each in arguments if isinstance(each, Variable))
            return [each.name for each in held if not each.nullable]
        case Assignment(variable, Variable(name)) if name in row and not variable.nullable:
            return [variable.name, name]
        case _:
            return []


def _not_null(factor: Expr, names: Names) -> Expr:
    """A factor that binds some variables to values only."""
    match factor:
        case Atom(_, arguments):
            given = (
                replace(each, nullable=False)
                if isinstance(each, Variable) and each.name in names
                else each
                for each in arguments
            )
            return replace(factor, arguments=tuple(given))
        case Assignment(variable, value) if variable.name in names:
            return Assignment(replace(variable, nullable=False), value)
        case _:
            return factor


def _is_trivial(factor: Expr, filled: Collection[str]) -> bool:
    match factor:
        case Comparison("=", left, right):
            return left == right and names_in(left) <= {*filled}
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


def factorized(
    term: Monomial, known: Names, row: Names = frozenset(), unique: Keys | None = None
) -> tuple[tuple[Component, ...], tuple[Expr, ...]]:
    """The components of a monomial, and its other factors, where some variables are known.

    A factor over the variables of one component goes into it, unless it is over those of the `row`
    alone. One over several, or over known variables that the component does not have, stays
    outside, and its variables become keys.
    A component is cut at a variable that keys of relations determine, if parts of it are then
    looked up by different known variables: else its map would hold all their combinations.
    """
    cuts = _cuts(term.atoms, known, unique or {})
    groups = _connected(term.atoms, known | cuts)
    names = [_names(group) for group in groups]
    inside: list[list[Expr]] = [list(group) for group in groups]
    outside: list[Expr] = []
    for each in term.factors:
        if isinstance(each, Atom):
            continue
        used = names_in(each)
        if isinstance(each, Assignment):
            # A group variable that is computed inside is a key; the map then sums over the rest.
            used = names_in(each.value) if each.variable.name in known else frozenset()
        homes = [at for at, held in enumerate(names) if used and used <= held]
        summed = [at for at in homes if not used <= row]
        if summed:
            inside[summed[0]].append(each)
            names[summed[0]] |= names_in(each)
        else:
            outside.append(each)
    needed = known.union(cuts, *map(names_in, outside))
    return tuple(
        Component(_in_order(factors, needed), tuple(factors)) for factors in inside
    ), tuple(outside)


def _cuts(atoms: tuple[Atom, ...], known: Names, unique: Keys) -> Names:
    """The variables to cut at, as few as possible, so that no component mixes what is looked up."""
    cuts = frozenset[str]()
    for group in _connected(atoms, known):
        determined = _determined(group, known, unique) - known
        while determined - cuts:
            cost = _mixed(group, known, cuts)
            tried = [(_mixed(group, known, cuts | {name}), name) for name in determined - cuts]
            best, name = min(tried)
            if best[0] >= cost[0]:
                break
            cuts |= {name}
    return cuts


def _mixed(group: list[Atom], known: Names, cuts: Names) -> tuple[int, int]:
    """By how many known variables each part of a component is looked up, squared and summed."""
    parts = _connected(group, known | cuts)
    sizes = [len(_names(part) & known) for part in parts]
    later = [len(_names(part) & cuts) for part in parts]
    return sum(size * size for size in sizes), sum(later)


def _determined(group: list[Atom], known: Names, unique: Keys) -> Names:
    """The variables that have one value at most where some are known, by the keys of relations."""
    found = known
    while True:
        wider = found.union(
            *(
                names_in(atom)
                for atom in group
                if atom.relation in unique
                and all(
                    isinstance(each, Variable) and each.name in found
                    for each in (atom.arguments[at] for at in unique[atom.relation])
                )
            )
        )
        if wider == found:
            return found
        found = wider


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


def _in_order(factors: Iterable[Expr], wanted: Names) -> tuple[str, ...]:
    """The variables that factors bind, if they are wanted."""
    listed = [n for f in factors if isinstance(f, Atom) for n in _variables(f)]
    listed += [f.variable.name for f in factors if isinstance(f, Assignment)]
    return tuple(dict.fromkeys(name for name in listed if name in wanted))


def _variables(atom: Atom) -> Iterable[str]:
    return (each.name for each in atom.arguments if isinstance(each, Variable))
