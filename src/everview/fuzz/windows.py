"""Queries that look at the place of a row among others: window functions, QUALIFY, LIMIT."""

from __future__ import annotations

from collections.abc import Sequence

from everview.fuzz.aggregates import spread
from everview.fuzz.clauses import outputs, where
from everview.fuzz.scalars import Atom, Scalar
from everview.fuzz.sources import source
from everview.fuzz.writer import Query, Writer, field_like, listed
from everview.plan.aggregates import result_type
from everview.plan.types import FLOATS, decimal_parts

WIDEST_TOTAL = 28
"""Decimals with more digits are not added up."""
RANKS = ("RANK", "DENSE_RANK")
"""Functions that give rows that tie the same value."""
PLACES = (
    *("ROW_NUMBER()", "NTILE(3)", "LAG({})", "LEAD({}, 2)", "FIRST_VALUE({})"),
    *("LAG({}) IGNORE NULLS", "LEAD({}) IGNORE NULLS"),
)
"""Functions of one row's place, where rows that tie are put in an order of our own."""
FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)
WHOLE = "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def windowed(w: Writer, depth: int) -> Query:
    """Columns beside window functions over them; QUALIFY keeps some of the rows."""
    found = source(w, depth, most=1)
    calm = [atom for atom in found.atoms if not atom.loose]
    made = [_call(w, calm) for _ in range(w.rng.randint(1, 3))]
    kept = w.rng.sample(calm, min(len(calm), w.rng.randint(1, 3)))
    columns = [(atom.text, field_like(f"x{n}", atom)) for n, atom in enumerate(kept, 1)]
    columns += [(atom.text, field_like(f"w{n}", atom)) for n, atom in enumerate(made, 1)]
    sql = f"SELECT {listed(columns)} FROM {found.sql}{where(w, found)}"
    if w.chance(0.3):
        sql += f" QUALIFY {_rank(w, calm).text} <= {w.rng.randint(1, 3)}"
    return Query(sql, tuple(field for _, field in columns), found.size)


def first_rows(w: Writer, depth: int) -> Query:
    """ORDER BY with LIMIT or OFFSET; all columns are sorted by where a tie would show."""
    found = source(w, depth, most=1)
    shown = outputs(w, found, strict=True)
    names = [field.name for _, field in shown]
    by = w.rng.sample(names, len(names) if w.kit.portable else w.rng.randint(1, len(names)))
    sql = f"SELECT {listed(shown)} FROM {found.sql}{where(w, found)}"
    sql += f" ORDER BY {', '.join(_direction(w, name) for name in by)}"
    sql += w.rng.choice((" LIMIT 1", " LIMIT 3", " LIMIT 5 OFFSET 2", " LIMIT 2 OFFSET 1"))
    return Query(sql, tuple(field for _, field in shown), 4.0)


def _direction(w: Writer, text: str) -> str:
    return f"{text}{w.rng.choice(('', '', ' DESC', ' ASC NULLS LAST', ' DESC NULLS FIRST'))}"


def _call(w: Writer, atoms: Sequence[Atom]) -> Atom:
    """A window function over rows with these columns."""
    choice = w.rng.random()
    if choice < 0.3:
        return _rank(w, atoms)
    if choice < 0.5 and not w.kit.portable and atoms:
        return _place(w, atoms)
    return _total(w, atoms)


def _rank(w: Writer, atoms: Sequence[Atom]) -> Atom:
    return Atom(f"{w.rng.choice(RANKS)}() OVER ({_keys(w, atoms)}{_order(w, atoms)})", "int")


def _place(w: Writer, atoms: Sequence[Atom]) -> Atom:
    form, read = w.rng.choice(PLACES), w.rng.choice(atoms)
    over = f"OVER ({_keys(w, atoms)}{_order(w, atoms)})"
    if "{}" not in form:
        return Atom(f"{form} {over}", "int")
    return Atom(f"{form.format(read.text)} {over}", read.type, read.wild, read.exact)


def _total(w: Writer, atoms: Sequence[Atom]) -> Atom:
    """An aggregate of the group, of the rows up to this one, or of a frame."""
    over = _keys(w, atoms)
    if w.chance(0.6):
        over += _order(w, atoms)
        frames = (WHOLE,) if w.kit.portable else (WHOLE, *FRAMES)
        over += f" {w.rng.choice(frames)}" if w.chance(0.5) else ""
    if w.chance(0.2):
        return _over_condition(w, atoms, over)
    if w.chance(0.15) and (made := spread(w, atoms)) is not None:
        return Atom(f"{made.text} OVER ({over})", made.type, exact=made.exact, loose=made.loose)
    scalar = w.palette(atoms).draw(w.rng.choice(w.kit.numbers), w.rng.choice((0, 0, 1)))
    names = ("sum", "min", "max") if w.kit.portable else ("sum", "avg", "min", "max")
    function = w.rng.choice(names)
    type_ = result_type(function, scalar.type)
    if type_ is None or scalar.constant or not _summable(scalar):
        return Atom(f"COUNT(*) OVER ({over})", "bigint")
    loose = scalar.type in FLOATS and function in ("sum", "avg")
    text = f"{function.upper()}({scalar.text}) OVER ({over})"
    return Atom(text, type_, exact=function != "avg", loose=loose)


def _over_condition(w: Writer, atoms: Sequence[Atom], over: str) -> Atom:
    condition = w.condition(atoms, 1)
    function = w.rng.choice(("BOOL_AND", "BOOL_OR", "COUNT_IF"))
    type_ = "bigint" if function == "COUNT_IF" else "boolean"
    return Atom(f"{function}({condition}) OVER ({over})", type_)


def _summable(scalar: Scalar) -> bool:
    return not scalar.wild and (decimal_parts(scalar.type) or (0, 0))[0] < WIDEST_TOTAL


def _keys(w: Writer, atoms: Sequence[Atom]) -> str:
    if not atoms or w.chance(0.2):
        return ""
    chosen = w.rng.sample(list(atoms), min(len(atoms), w.rng.choice((1, 1, 2))))
    return f"PARTITION BY {', '.join(atom.text for atom in chosen)} "


def _order(w: Writer, atoms: Sequence[Atom]) -> str:
    if not atoms:
        return "ORDER BY 1"
    chosen = w.rng.sample(list(atoms), min(len(atoms), w.rng.choice((1, 1, 2))))
    return f"ORDER BY {', '.join(_direction(w, atom.text) for atom in chosen)}"
