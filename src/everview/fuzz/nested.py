"""Arrays and structs: made of columns, grouped, collected, and taken apart again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everview.fuzz.clauses import where
from everview.fuzz.scalars import Atom
from everview.fuzz.sources import source
from everview.fuzz.writer import Field, From, Query, Writer, listed

_FORMS = ("ARRAY({0}, {1})", "ARRAY({0})", "CASE WHEN {0} IS NOT NULL THEN ARRAY({1}, {0}) END")


def lateral(w: Writer, found: From) -> From:
    """The rows of a FROM clause, once for each element of an array of their columns."""
    drawn = _array(w, found.atoms)
    if drawn is None:
        return found
    text, element = drawn
    alias = w.alias()
    place, name = f"p{alias[1:]}", f"e{alias[1:]}"
    outer, counted = w.rng.choice(("", "OUTER ")), w.chance(0.4)
    call, names = ("POSEXPLODE", f"{place}, {name}") if counted else ("EXPLODE", name)
    atoms = [replace(element, text=f"{alias}.{name}")]
    shown = [name]
    if counted:
        atoms.insert(0, Atom(f"{alias}.{place}", "int"))
        shown.insert(0, place)
    return replace(
        found,
        sql=f"{found.sql} LATERAL VIEW {outer}{call}({text}) {alias} AS {names}",
        atoms=(*found.atoms, *atoms),
        names=(*found.names, *shown),
        size=found.size * 2,
        near=(*found.near, *atoms),
    )


def exploded(w: Writer, depth: int) -> Query:
    """A query over rows with the elements of an array beside them, or made of the array alone."""
    found = source(w, depth, most=1)
    drawn = _array(w, found.atoms)
    if drawn is None or w.chance(0.5):
        found = lateral(w, found)
        shown = [(a.text, _field(f"x{n}", a)) for n, a in enumerate(_some(w, found.atoms), 1)]
        sql = f"SELECT {listed(shown)} FROM {found.sql}{where(w, found)}"
        return Query(sql, tuple(field for _, field in shown), found.size)
    text, element = drawn
    start = w.rng.choice(("SELECT", "SELECT DISTINCT"))
    call = w.rng.choice(("EXPLODE", "EXPLODE_OUTER"))
    sql = f"{start} {call}({text}) AS x1 FROM {found.sql}{where(w, found)}"
    return Query(sql, (_field("x1", element),), found.size * 2)


def regrouped(w: Writer, depth: int) -> Query:
    """Groups or distinct rows of arrays and structs, and plain values taken from those."""
    found = source(w, depth, most=1)
    drawn = _array(w, found.atoms)
    if drawn is None:
        return exploded(w, depth)
    text, element = drawn
    first = w.rng.choice([atom for atom in found.atoms if not atom.loose])
    alias = w.alias()
    inner = f"{text} AS y, STRUCT({first.text} AS f) AS z"
    shown = [
        (f"GET({alias}.y, 0)", _field("x1", element)),
        (f"{alias}.z.f", _field("x2", first)),
        (f"SIZE({alias}.y)", Field("x3", "int")),
    ]
    if w.chance(0.5):
        rows = f"SELECT DISTINCT {inner} FROM {found.sql}{where(w, found)}"
    else:
        rows = f"SELECT {inner} FROM {found.sql}{where(w, found)}"
        grouped = w.alias()
        rows = (
            f"SELECT {grouped}.y, {grouped}.z, COUNT(*) AS n FROM ({rows}) AS {grouped} "
            f"GROUP BY {grouped}.y, {grouped}.z"
        )
        shown.append((f"{alias}.n", Field("x4", "bigint")))
    sql = f"SELECT {listed(shown)} FROM ({rows}) AS {alias}"
    return Query(sql, tuple(field for _, field in shown), min(found.size, 60.0))


def collected(w: Writer, depth: int) -> Query:
    """Groups with the values of a column as an array, and its elements or what they add up to."""
    found = source(w, depth, most=1)
    usable = [atom for atom in found.atoms if not atom.loose and atom.exact]
    if not usable:
        return exploded(w, depth)
    key, value = w.rng.choice(usable), w.rng.choice(usable)
    call = w.rng.choice(("COLLECT_LIST({})", "COLLECT_SET({})", "ARRAY_AGG(DISTINCT {})"))
    made = f"SORT_ARRAY({call.format(value.text)})"
    shown = [(key.text, _field("x1", key))]
    if w.chance(0.4):
        shown.append((f"EXPLODE({made})", _field("x2", value)))
    else:
        shown.append((f"GET({made}, 0)", _field("x2", value)))
        shown.append((f"SIZE({made})", Field("x3", "int")))
    sql = f"SELECT {listed(shown)} FROM {found.sql}{where(w, found)} GROUP BY {key.text}"
    return Query(sql, tuple(field for _, field in shown), 16.0)


def _array(w: Writer, atoms: Sequence[Atom]) -> tuple[str, Atom] | None:
    """An array of columns of one type, and its element."""
    usable = [atom for atom in atoms if not atom.loose]
    if not usable:
        return None
    first = w.rng.choice(usable)
    second = w.rng.choice([atom for atom in usable if atom.type == first.type])
    text = w.rng.choice(_FORMS).format(first.text, second.text)
    element = Atom(
        "", first.type, first.wild or second.wild, first.exact and second.exact, loose=False
    )
    return text, element


def _some(w: Writer, atoms: Sequence[Atom]) -> list[Atom]:
    """The last column, which is an element, and some of the others."""
    return [*w.rng.sample(atoms[:-1], min(2, len(atoms) - 1)), atoms[-1]]


def _field(name: str, atom: Atom) -> Field:
    return Field(name, atom.type, atom.wild, atom.exact, atom.loose)
