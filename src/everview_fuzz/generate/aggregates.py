"""Aggregates: of rows, of the values that occur, or of the rows that satisfy a condition."""

from __future__ import annotations

from collections.abc import Sequence

from everview.expr.aggregates import result_type
from everview.expr.types import FLOATS, decimal_parts
from everview_fuzz.generate.query_context import QueryContext
from everview_fuzz.generate.scalars import Atom, Family, Scalar


def aggregate(w: QueryContext, atoms: Sequence[Atom]) -> Atom:
    """Any aggregate over rows with these columns."""
    made = _unfiltered(w, atoms)
    if made.text.startswith("ROUND(") or not w.chance(0.12):
        return made
    condition = w.condition(atoms, 1)
    return Atom(
        f"{made.text} FILTER (WHERE {condition})", made.type, made.wild, made.exact, made.loose
    )


def extreme(w: QueryContext, atoms: Sequence[Atom], family: Family) -> Atom:
    """The least or greatest value of a family, so an aggregate of that family."""
    scalar = w.palette(atoms).draw(family, w.rng.choice((0, 0, 0, 1)))
    if scalar.constant:
        return Atom(f"{w.rng.choice(('MIN', 'MAX'))}({scalar.text})", scalar.type)
    function = w.rng.choice(("MIN", "MAX"))
    return Atom(f"{function}({scalar.text})", scalar.type, scalar.wild, scalar.exact)


def _unfiltered(w: QueryContext, atoms: Sequence[Atom]) -> Atom:
    match w.rng.choice(_KINDS):
        case "total":
            return _total(w, atoms)
        case "extreme":
            return extreme(w, atoms, w.family(atoms))
        case "truth":
            return _truth(w, atoms)
        case "spread":
            return spread(w, atoms) or _count(w, atoms)
        case "pair":
            return _pair(w, atoms)
        case "bits":
            return _bits(w, atoms)
        case "ordered":
            return _ordered(w, atoms)
        case _:
            return _count(w, atoms)


_KINDS = (
    *("total", "total", "total", "count", "count", "extreme", "extreme", "truth"),
    *("spread", "bits", "ordered", "ordered", "pair"),
)
SPREADS = ("VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV")
"""Functions that are zero only where all values are equal, so that nothing cancels."""
PAIRS = ("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_R2")
"""Functions of two numbers a row, whose terms cancel: only so many digits are looked at."""
PLACES = ("0", "0.25", "0.3", "0.5", "1")


def spread(w: QueryContext, atoms: Sequence[Atom]) -> Atom | None:
    """How far numbers are from their mean, if there are numbers that are exact."""
    scalar = w.palette(atoms).draw(w.rng.choice(w.kit.numbers), 0)
    if scalar.wild or scalar.constant or not scalar.exact:
        return None
    return Atom(f"{w.rng.choice(SPREADS)}({scalar.text})", "double", exact=False, loose=True)


def _pair(w: QueryContext, atoms: Sequence[Atom]) -> Atom:
    """What two numbers have to do with each other, where both are exact."""
    palette = w.palette(atoms)
    both = [palette.draw(w.rng.choice(w.kit.numbers), 0) for _ in range(2)]
    if w.kit.portable or any(each.wild or each.constant or not each.exact for each in both):
        return _count(w, atoms)
    texts = ", ".join(each.text for each in both)
    if w.chance(0.2):
        return Atom(f"REGR_COUNT({texts})", "bigint")
    text = f"ROUND({w.rng.choice(PAIRS)}({texts}), 9)"
    return Atom(text, "double", exact=False, loose=True)


def _bits(w: QueryContext, atoms: Sequence[Atom]) -> Atom:
    scalar = w.palette(atoms).draw("whole", w.rng.choice((0, 1)))
    if scalar.constant:
        return _count(w, atoms)
    function = w.rng.choice(("BIT_AND(", "BIT_OR(", "BIT_XOR(", "BIT_XOR(DISTINCT "))
    return Atom(f"{function}{scalar.text})", scalar.type, scalar.wild)


def _ordered(w: QueryContext, atoms: Sequence[Atom]) -> Atom:
    """An aggregate of values in their order, one that no tie leaves open."""
    if w.kit.portable or w.chance(0.3):
        return _listed(w, atoms)
    calm = [atom for atom in atoms if not atom.loose]
    if not calm:
        return _count(w, atoms)
    found = w.rng.choice(calm)
    way = w.rng.choice(("", " DESC"))
    choice = w.rng.random()
    if choice < 0.3:
        text = f"MODE() WITHIN GROUP (ORDER BY {found.text}{way})"
        return Atom(text, found.type, found.wild, found.exact)
    if choice < 0.6:
        value = w.palette([found]).draw(w.family([found]), w.rng.choice((0, 1)))
        function = w.rng.choice(("MAX_BY", "MIN_BY"))
        text = f"{function}({value.text}, {found.text})"
        return Atom(text, value.type, value.wild, value.exact)
    return _percentile(w, atoms, way)


def _percentile(w: QueryContext, atoms: Sequence[Atom], way: str) -> Atom:
    value = w.palette(atoms).draw(w.rng.choice(w.kit.numbers), 0)
    if value.wild or value.constant:
        return _count(w, atoms)
    place, order = w.rng.choice(PLACES), f"WITHIN GROUP (ORDER BY {value.text}{way})"
    forms = (
        f"MEDIAN({value.text})",
        f"PERCENTILE({value.text}, {place})",
        f"PERCENTILE_CONT({place}) {order}",
        f"PERCENTILE_DISC({place}) {order}",
    )
    return Atom(w.rng.choice(forms), "double", exact=False)


def _listed(w: QueryContext, atoms: Sequence[Atom]) -> Atom:
    texts = [atom.text for atom in atoms if atom.type == "string"]
    if not texts:
        return _count(w, atoms)
    text, once = w.rng.choice(texts), w.rng.choice(("", "DISTINCT "))
    order = f"WITHIN GROUP (ORDER BY {text}{w.rng.choice(('', ' DESC'))})"
    name = "LISTAGG" if w.kit.portable else w.rng.choice(("LISTAGG", "STRING_AGG"))
    return Atom(f"{name}({once}{text}, ',') {order}", "string")


def _total(w: QueryContext, atoms: Sequence[Atom]) -> Atom:
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


def _truth(w: QueryContext, atoms: Sequence[Atom]) -> Atom:
    condition = w.condition(atoms, 1)
    names = ("BOOL_AND", "BOOL_OR") if w.kit.portable else ("BOOL_AND", "BOOL_OR", "EVERY", "SOME")
    return Atom(f"{w.rng.choice(names)}({condition})", "boolean")


def _count(w: QueryContext, atoms: Sequence[Atom]) -> Atom:
    if w.chance(0.2):
        return Atom(f"COUNT_IF({w.condition(atoms, 1)})", "bigint")
    exact = [atom.text for atom in atoms if not atom.loose]
    if exact and w.chance(0.3):
        return Atom(f"COUNT(DISTINCT {w.rng.choice(exact)})", "bigint")
    if len(exact) > 1 and not w.kit.portable and w.chance(0.2):
        once = w.rng.choice(("", "DISTINCT "))
        return Atom(f"COUNT({once}{', '.join(w.rng.sample(exact, 2))})", "bigint")
    counted = w.rng.choice(("*", "1", *(atom.text for atom in atoms)))
    return Atom(f"COUNT({counted})", "bigint")
