"""Aggregates: of rows, of the values that occur, or of the rows that satisfy a condition."""

from __future__ import annotations

from collections.abc import Sequence

from everview.fuzz.scalars import Atom, Family, Scalar
from everview.fuzz.writer import Writer
from everview.plan.aggregates import result_type
from everview.plan.types import FLOATS, decimal_parts


def aggregate(w: Writer, atoms: Sequence[Atom]) -> Atom:
    """Any aggregate over rows with these columns."""
    made = _unfiltered(w, atoms)
    if not w.chance(0.12):
        return made
    condition = w.condition(atoms, 1)
    return Atom(
        f"{made.text} FILTER (WHERE {condition})", made.type, made.wild, made.exact, made.loose
    )


def extreme(w: Writer, atoms: Sequence[Atom], family: Family) -> Atom:
    """The least or greatest value of a family, so an aggregate of that family."""
    scalar = w.palette(atoms).draw(family, w.rng.choice((0, 0, 0, 1)))
    if scalar.constant:
        return Atom(f"{w.rng.choice(('MIN', 'MAX'))}({scalar.text})", scalar.type)
    function = w.rng.choice(("MIN", "MAX"))
    return Atom(f"{function}({scalar.text})", scalar.type, scalar.wild, scalar.exact)


def _unfiltered(w: Writer, atoms: Sequence[Atom]) -> Atom:
    match w.rng.choice(_KINDS):
        case "total":
            return _total(w, atoms)
        case "extreme":
            return extreme(w, atoms, w.family(atoms))
        case "truth":
            return _truth(w, atoms)
        case _:
            return _count(w, atoms)


_KINDS = ("total", "total", "total", "count", "count", "extreme", "extreme", "truth")


def _total(w: Writer, atoms: Sequence[Atom]) -> Atom:
    """A sum or an average, of all values or of those that occur."""
    palette = w.palette(atoms)
    function = "sum" if w.kit.portable else w.rng.choice(("sum", "sum", "avg"))
    for _ in range(5):
        scalar = palette.draw(w.rng.choice(w.kit.numbers), w.rng.choice((0, 0, 1, 2)))
        type_ = result_type(function, scalar.type)
        if type_ is not None and not scalar.constant and _summable(scalar):
            inexact = scalar.type in FLOATS and not scalar.exact
            exact = function == "sum" and not inexact
            once = "DISTINCT " if w.chance(0.2) else ""
            return Atom(f"{function.upper()}({once}{scalar.text})", type_, False, exact, inexact)
    return _count(w, atoms)


def _summable(scalar: Scalar) -> bool:
    """Whether the sum of a group is likely to fit its type."""
    parts = decimal_parts(scalar.type)
    if scalar.wild and (parts or scalar.type == "bigint"):
        return False
    return not parts or parts[0] < 38 or not scalar.wild


def _truth(w: Writer, atoms: Sequence[Atom]) -> Atom:
    condition = w.condition(atoms, 1)
    names = ("BOOL_AND", "BOOL_OR") if w.kit.portable else ("BOOL_AND", "BOOL_OR", "EVERY", "SOME")
    return Atom(f"{w.rng.choice(names)}({condition})", "boolean")


def _count(w: Writer, atoms: Sequence[Atom]) -> Atom:
    if w.chance(0.2):
        return Atom(f"COUNT_IF({w.condition(atoms, 1)})", "bigint")
    exact = [atom.text for atom in atoms if not atom.loose]
    if exact and w.chance(0.3):
        return Atom(f"COUNT(DISTINCT {w.rng.choice(exact)})", "bigint")
    counted = w.rng.choice(("*", "1", *(atom.text for atom in atoms)))
    return Atom(f"COUNT({counted})", "bigint")
