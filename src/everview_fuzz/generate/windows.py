"""Queries that look at the place of a row among others: window functions, QUALIFY, LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from everview.expr.aggregates import result_type
from everview.expr.types import FLOATS, Type, decimal_parts
from everview_fuzz.generate.aggregates import spread
from everview_fuzz.generate.clauses import outputs, where
from everview_fuzz.generate.query_context import Query, QueryContext, field_like, listed
from everview_fuzz.generate.scalars import Atom, Scalar
from everview_fuzz.generate.sources import source

SUMMED_MAX_DIGITS = 28
"""Decimals with more digits are not added up."""
RANKS = ("RANK", "DENSE_RANK")
"""Functions that give rows that tie the same value."""
SHARES = ("PERCENT_RANK", "CUME_DIST")
"""The same, as a share of the rows."""
PLACES = (
    *("ROW_NUMBER()", "NTILE(3)", "LAG({})", "LEAD({}, 2)", "LAG({0}, 2, {0})", "FIRST_VALUE({})"),
    *("LAG({}) IGNORE NULLS", "LEAD({}) IGNORE NULLS", "LEAD({}) RESPECT NULLS"),
)
"""Functions of one row's place, where rows that tie are put in an order of our own."""
ENDS = ("FIRST_VALUE({})", "LAST_VALUE({})", "NTH_VALUE({}, 2)")
"""Functions of one row of a frame; NTH_VALUE takes no FILTER."""
NULLS = ("", "", " IGNORE NULLS", " RESPECT NULLS")
STARTS = ("UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING")
STOPS = ("1 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "2 FOLLOWING", "UNBOUNDED FOLLOWING")
SHORT = ("ROWS UNBOUNDED PRECEDING", "ROWS 2 PRECEDING", "ROWS CURRENT ROW")
"""Frames of rows that end at the current one, as they may be written."""
BY_VALUE = (
    *("RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "RANGE UNBOUNDED PRECEDING"),
    *("RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "RANGE CURRENT ROW"),
)
LIMITS = (" LIMIT 1", " LIMIT 3", " LIMIT 5 OFFSET 2", " LIMIT 2 OFFSET 1", " OFFSET 2")
WHOLE = "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
DISTANCES: dict[Type, str] = {
    **dict.fromkeys(("int", "bigint"), "{}"),
    "date": "INTERVAL '{}' DAY",
    **dict.fromkeys(("timestamp", "timestamp_ntz"), "INTERVAL '{}' HOUR"),
}
"""How far apart rows are that are ordered by a type."""


def windowed(w: QueryContext, depth: int) -> Query:
    """Columns beside window functions over them; QUALIFY keeps some of the rows."""
    found = source(w, depth, most=1)
    calm = [atom for atom in found.atoms if not atom.loose]
    named = w.alias() if w.chance(0.15) else None
    made = [call(w, calm, named) for _ in range(w.rng.randint(1, 3))]
    kept = w.rng.sample(calm, min(len(calm), w.rng.randint(1, 3)))
    columns = [(atom.text, field_like(f"x{n}", atom)) for n, atom in enumerate(kept, 1)]
    columns += [(atom.text, field_like(f"w{n}", atom)) for n, atom in enumerate(made, 1)]
    sql = f"SELECT {listed(columns)} FROM {found.sql}{where(w, found)}"
    if named:
        sql += f" WINDOW {named} AS ({_keys(w, calm)}{_order(w, calm)})"
    elif w.chance(0.3):
        sql += f" QUALIFY {_rank(w, calm).text} <= {w.rng.randint(1, 3)}"
    return Query(sql, tuple(field for _, field in columns), found.size)


def first_of_each(w: QueryContext, depth: int) -> Query:
    """The first row of every group, as others write DISTINCT ON."""
    found = source(w, depth, most=1)
    calm = [atom for atom in found.atoms if not atom.loose]
    if not calm or len(calm) < len(found.atoms):
        return first_rows(w, depth)
    # Where every column is in the order, rows that tie are equal.
    by = w.rng.sample(calm, len(calm) if w.kit.portable else w.rng.randint(1, len(calm)))
    order = f"ORDER BY {', '.join(_direction(w, atom.text) for atom in by)}"
    number = f"ROW_NUMBER() OVER ({_keys(w, calm)}{order})"
    kept = w.rng.sample(calm, min(len(calm), w.rng.randint(1, 3)))
    columns = [(atom.text, field_like(f"x{n}", atom)) for n, atom in enumerate(kept, 1)]
    fields = tuple(field for _, field in columns)
    if w.chance(0.5):
        sql = f"SELECT {listed(columns)} FROM {found.sql}{where(w, found)} QUALIFY {number} = 1"
        return Query(sql, fields, 8.0)
    alias = w.alias()
    names = ", ".join(f"{alias}.{field.name}" for field in fields)
    inner = f"SELECT {listed(columns)}, {number} AS rn FROM {found.sql}{where(w, found)}"
    test = w.rng.choice(("= 1", "<= 2", "BETWEEN 2 AND 3"))
    return Query(f"SELECT {names} FROM ({inner}) AS {alias} WHERE {alias}.rn {test}", fields, 8.0)


def first_rows(w: QueryContext, depth: int) -> Query:
    """ORDER BY with LIMIT or OFFSET; all columns are sorted by where a tie would show."""
    found = source(w, depth, most=1)
    shown = outputs(w, found, strict=True)
    names = [field.name for _, field in shown]
    by = w.rng.sample(names, len(names) if w.kit.portable else w.rng.randint(1, len(names)))
    sql = f"SELECT {listed(shown)} FROM {found.sql}{where(w, found)}"
    if w.chance(0.2):
        by = [str(names.index(name) + 1) for name in by]
    sql += f" ORDER BY {', '.join(_direction(w, name) for name in by)}{w.rng.choice(LIMITS)}"
    return Query(sql, tuple(field for _, field in shown), 4.0)


def _direction(w: QueryContext, text: str) -> str:
    return f"{text}{w.rng.choice(('', '', ' DESC', ' ASC NULLS LAST', ' DESC NULLS FIRST'))}"


def call(w: QueryContext, atoms: Sequence[Atom], named: str | None = None) -> Atom:
    """A window function over rows with these columns, or over a window that has a name."""
    choice = w.rng.random()
    if choice < 0.3:
        return _rank(w, atoms, named)
    if choice < 0.38:
        text = f"{w.rng.choice(SHARES)}() OVER {_ordered(w, atoms, named)}"
        return Atom(text, "double", exact=False, loose=w.kit.portable)
    if choice < 0.6 and not w.kit.portable and atoms:
        return _place(w, atoms, named)
    return _total(w, atoms, named)


def _ordered(w: QueryContext, atoms: Sequence[Atom], named: str | None) -> str:
    return named or f"({_keys(w, atoms)}{_order(w, atoms)})"


def _rank(w: QueryContext, atoms: Sequence[Atom], named: str | None = None) -> Atom:
    return Atom(f"{w.rng.choice(RANKS)}() OVER {_ordered(w, atoms, named)}", "int")


def _rows_frame(w: QueryContext) -> str:
    """A frame of rows, from any bound to any later one."""
    if w.chance(0.25):
        return w.rng.choice(SHORT)
    start = w.rng.choice(STARTS)
    later = [stop for stop in STOPS if _at(stop) >= _at(start)]
    return f"ROWS BETWEEN {start} AND {w.rng.choice(later)}"


def _at(bound: str) -> float:
    """The place of a bound, counted from the current row."""
    if bound == "CURRENT ROW":
        return 0
    far, way = bound.split()
    distance = inf if far == "UNBOUNDED" else int(far)
    return -distance if way == "PRECEDING" else distance


def _place(w: QueryContext, atoms: Sequence[Atom], named: str | None) -> Atom:
    read = w.rng.choice(atoms)
    if named is None and w.chance(0.5):
        frame = w.rng.choice((_rows_frame(w), _rows_frame(w), WHOLE))
        over = f"({_keys(w, atoms)}{_order(w, atoms)} {frame})"
        form = w.rng.choice(ENDS)
        if not form.startswith("NTH") and w.chance(0.3):
            form += f" FILTER (WHERE {_plain_condition(w, atoms)})"
        else:
            form += w.rng.choice(NULLS)
    else:
        over, form = _ordered(w, atoms, named), w.rng.choice(PLACES)
    if "{" not in form:
        return Atom(f"{form} OVER {over}", "int")
    return Atom(f"{form.format(read.text)} OVER {over}", read.type, read.wild, read.exact)


def _total(w: QueryContext, atoms: Sequence[Atom], named: str | None) -> Atom:
    """An aggregate of the group, of the rows up to this one, or of a frame."""
    over = named or f"({_framed(w, atoms)})"
    if w.chance(0.2):
        return _over_condition(w, atoms, over)
    if w.chance(0.15) and (made := spread(w, atoms)) is not None:
        return Atom(f"{made.text} OVER {over}", made.type, exact=made.exact, loose=made.loose)
    scalar = w.palette(atoms).draw(w.rng.choice(w.kit.numbers), w.rng.choice((0, 0, 1)))
    names = ("sum", "min", "max") if w.kit.portable else ("sum", "avg", "min", "max")
    function = w.rng.choice(names)
    type_ = result_type(function, scalar.type)
    if type_ is None or scalar.constant or not _summable(scalar):
        counted = w.rng.choice(("*", *(atom.text for atom in atoms)))
        which = f" FILTER (WHERE {w.condition(atoms, 1)})" if w.chance(0.25) else ""
        return Atom(f"COUNT({counted}){which} OVER {over}", "bigint")
    loose = scalar.type in FLOATS and function in ("sum", "avg")
    which = f" FILTER (WHERE {w.condition(atoms, 1)})" if w.chance(0.25) else ""
    text = f"{function.upper()}({scalar.text}){which} OVER {over}"
    return Atom(text, type_, exact=function != "avg", loose=loose)


def _framed(w: QueryContext, atoms: Sequence[Atom]) -> str:
    over = _keys(w, atoms)
    if not w.chance(0.6):
        return over
    apart = [atom for atom in atoms if atom.type in DISTANCES and not atom.wild]
    if apart and not w.kit.portable and w.chance(0.4):
        by = w.rng.choice(apart)
        near, far = (DISTANCES[by.type].format(n) for n in (w.rng.randint(0, 1), 2))
        ends = (f"{far} PRECEDING AND {near} FOLLOWING", f"{far} PRECEDING AND {near} PRECEDING")
        return f"{over}ORDER BY {by.text} RANGE BETWEEN {w.rng.choice(ends)}"
    frames = (WHOLE,) if w.kit.portable else (WHOLE, *BY_VALUE, *(_rows_frame(w) for _ in range(4)))
    return over + _order(w, atoms) + (f" {w.rng.choice(frames)}" if w.chance(0.5) else "")


def _over_condition(w: QueryContext, atoms: Sequence[Atom], over: str) -> Atom:
    condition = w.condition(atoms, 1)
    function = w.rng.choice(("BOOL_AND", "BOOL_OR", "COUNT_IF"))
    type_ = "bigint" if function == "COUNT_IF" else "boolean"
    return Atom(f"{function}({condition}) OVER {over}", type_)


def _plain_condition(w: QueryContext, atoms: Sequence[Atom]) -> str:
    """A condition without braces, which a form may hold."""
    text = w.condition(atoms, 1)
    return text if "{" not in text else "TRUE"


def _summable(scalar: Scalar) -> bool:
    return not scalar.wild and (decimal_parts(scalar.type) or (0, 0))[0] < SUMMED_MAX_DIGITS


def _keys(w: QueryContext, atoms: Sequence[Atom]) -> str:
    if not atoms or w.chance(0.2):
        return ""
    chosen = w.rng.sample(list(atoms), min(len(atoms), w.rng.choice((1, 1, 2))))
    return f"PARTITION BY {', '.join(atom.text for atom in chosen)} "


def _order(w: QueryContext, atoms: Sequence[Atom]) -> str:
    if not atoms:
        return "ORDER BY 1"
    if w.chance(0.5):
        # Where every column is in the order, rows that tie are equal, and one answer is right.
        everything = w.rng.sample(list(atoms), len(atoms))
        return f"ORDER BY {', '.join(_direction(w, atom.text) for atom in everything)}"
    chosen = w.rng.sample(list(atoms), min(len(atoms), w.rng.choice((1, 1, 2))))
    return f"ORDER BY {', '.join(_direction(w, atom.text) for atom in chosen)}"
