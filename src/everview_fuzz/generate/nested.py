"""Arrays and structs: made of columns, grouped, collected, and taken apart again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from everview.expr.types import Type
from everview_fuzz.generate.clauses import where
from everview_fuzz.generate.query_context import (
    Field,
    From,
    Query,
    QueryContext,
    field_like,
    listed,
)
from everview_fuzz.generate.scalars import Atom
from everview_fuzz.generate.sources import source

_FORMS = ("ARRAY({0}, {1})", "ARRAY({0})", "CASE WHEN {0} IS NOT NULL THEN ARRAY({1}, {0}) END")

ELEMENTS: dict[Type, Type] = {"array<int>": "int", "array<string>": "string"}
"""The arrays that tables hold, and what they consist of."""


@dataclass(frozen=True, slots=True)
class Generator:
    """A call that makes rows, and the columns of these."""

    name: str
    arguments: str
    columns: tuple[Atom, ...]

    @property
    def outer(self) -> str:
        """The call that makes a row of NULLs where there are none; STACK always has some."""
        return self.name if self.name == "STACK" else f"{self.name}_OUTER"


def exploded(w: QueryContext, depth: int) -> Query:
    """A query over rows with those that a generator makes of them beside them."""
    found = source(w, depth, most=1)
    made = _generator(w, found.atoms)
    if made is None:
        return regrouped(w, depth)
    if w.chance(0.6):
        found = w.rng.choice((_lateral_view, _lateral_view, _lateral_function))(w, found, made)
        kept = w.rng.sample(found.atoms[: -len(made.columns)], w.rng.randint(0, 2) and 1)
        atoms = [*kept, *found.atoms[-len(made.columns) :]]
        shown = [(a.text, field_like(f"x{n}", a)) for n, a in enumerate(atoms, 1)]
        sql = f"SELECT {listed(shown)} FROM {found.sql}{where(w, found)}"
        return Query(sql, tuple(field for _, field in shown), found.size)
    return _in_list(w, found, made)


def _in_list(w: QueryContext, found: From, made: Generator) -> Query:
    """A generator in the SELECT list, alone or beside a column."""
    calm = [atom for atom in found.atoms if not atom.loose]
    columns = w.rng.sample(calm, w.rng.randint(0, 1))
    shown = [(atom.text, field_like(f"x{n}", atom)) for n, atom in enumerate(columns, 1)]
    fields = [field_like(f"y{n}", atom) for n, atom in enumerate(made.columns, 1)]
    names = ", ".join(field.name for field in fields)
    text = f"{w.rng.choice((made.name, made.outer))}({made.arguments})"
    text += f" AS {names}" if len(fields) == 1 else f" AS ({names})"
    items = ", ".join([*(f"{column} AS {field.name}" for column, field in shown), text])
    start = w.rng.choice(("SELECT", "SELECT DISTINCT"))
    sql = f"{start} {items} FROM {found.sql}{where(w, found)}"
    return Query(sql, (*(field for _, field in shown), *fields), found.size * 2)


def _lateral_view(w: QueryContext, found: From, made: Generator) -> From:
    alias, names = _named(w, made)
    outer = w.rng.choice(("", "OUTER "))
    call = f"{made.name}({made.arguments}) {alias} AS {', '.join(names)}"
    return _with(found, f" LATERAL VIEW {outer}{call}", alias, names, made)


def _lateral_function(w: QueryContext, found: From, made: Generator) -> From:
    alias, names = _named(w, made)
    call = f"LATERAL {made.name}({made.arguments}) AS {alias}({', '.join(names)})"
    return _with(found, f"{w.rng.choice((', ', ' CROSS JOIN '))}{call}", alias, names, made)


def _named(w: QueryContext, made: Generator) -> tuple[str, list[str]]:
    alias = w.alias()
    return alias, [f"{letter}{alias[1:]}" for letter in "pef"[-len(made.columns) :]]


def _with(found: From, sql: str, alias: str, names: Sequence[str], made: Generator) -> From:
    atoms = tuple(
        replace(column, text=f"{alias}.{name}")
        for column, name in zip(made.columns, names, strict=True)
    )
    return replace(
        found,
        sql=found.sql + sql,
        atoms=(*found.atoms, *atoms),
        names=(*found.names, *names),
        size=found.size * 2,
        near=(*found.near, *atoms),
    )


def _generator(w: QueryContext, atoms: Sequence[Atom]) -> Generator | None:
    """EXPLODE and the like over these columns; None where there are none."""
    drawn = _array(w, atoms)
    if drawn is None:
        return None
    array, element = drawn
    (a, b), both = _alike(w, atoms)
    (c, d), others = _alike(w, atoms)
    made = (
        Generator("EXPLODE", array, (element,)),
        Generator("POSEXPLODE", array, (Atom("", "int"), element)),
        Generator("EXPLODE", f"MAP('k', {a}, 'l', {b})", (Atom("", "string"), both)),
        Generator("STACK", f"2, {a}, {c}, {b}, {d}", (both, others)),
        Generator(
            "INLINE",
            f"ARRAY(STRUCT({a} AS f, {c} AS g), STRUCT({b} AS f, {d} AS g))",
            (both, others),
        ),
    )
    return w.rng.choice((made[0], *made))


def _alike(w: QueryContext, atoms: Sequence[Atom]) -> tuple[tuple[str, str], Atom]:
    """Two columns of one type, and a column that holds values of both."""
    usable = [atom for atom in atoms if not atom.loose]
    first = w.rng.choice(usable)
    second = w.rng.choice([atom for atom in usable if atom.type == first.type])
    both = Atom("", first.type, first.wild or second.wild, first.exact and second.exact)
    return (first.text, second.text), both


def regrouped(w: QueryContext, depth: int) -> Query:
    """Groups or distinct rows of arrays and structs, and plain values taken from those."""
    found = source(w, depth, most=1)
    drawn = _array(w, found.atoms)
    if drawn is None:
        return collected(w, depth)
    text, element = drawn
    first = w.rng.choice([atom for atom in found.atoms if not atom.loose])
    alias = w.alias()
    inner = f"{text} AS y, STRUCT({first.text} AS f) AS z"
    shown = [
        (f"GET({alias}.y, 0)", field_like("x1", element)),
        (f"{alias}.z.f", field_like("x2", first)),
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


def collected(w: QueryContext, depth: int) -> Query:
    """Groups with the values of a column as an array, and its elements or what they add up to."""
    found = source(w, depth, most=1)
    usable = [atom for atom in found.atoms if not atom.loose and atom.exact]
    if not usable:
        return Query(f"SELECT COUNT(*) AS x1 FROM {found.sql}", (Field("x1", "bigint"),), 1.0)
    key, value = w.rng.choice(usable), w.rng.choice(usable)
    call = w.rng.choice(("COLLECT_LIST({})", "COLLECT_SET({})", "ARRAY_AGG(DISTINCT {})"))
    made = f"SORT_ARRAY({call.format(value.text)})"
    shown = [(key.text, field_like("x1", key))]
    if w.chance(0.4):
        shown.append((f"EXPLODE({made})", field_like("x2", value)))
    else:
        shown.append((f"GET({made}, 0)", field_like("x2", value)))
        shown.append((f"SIZE({made})", Field("x3", "int")))
    sql = f"SELECT {listed(shown)} FROM {found.sql}{where(w, found)} GROUP BY {key.text}"
    return Query(sql, tuple(field for _, field in shown), 16.0)


def _array(w: QueryContext, atoms: Sequence[Atom]) -> tuple[str, Atom] | None:
    """An array of columns of one type, and its element; None where no column is plain."""
    if all(atom.loose for atom in atoms):
        return None
    stored = [atom for atom in atoms if atom.type in ELEMENTS]
    if stored and w.chance(0.6):
        found = w.rng.choice(stored)
        return found.text, Atom("", ELEMENTS[found.type])
    (first, second), element = _alike(w, atoms)
    return w.rng.choice(_FORMS).format(first, second), element
