"""Queries: a table of productions, nested to a given depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias

from everview.fuzz.scalars import ARITHMETIC, FAMILIES, Atom, Family, Palette, Scalar
from everview.fuzz.writer import Field, Query, Relation, Writer, atoms_of, field_of, listed
from everview.lang.sql.aggregates import result_type
from everview.plan.types import FLOATS, INTEGERS, Type, decimal_parts

BAG_WORDS = ("UNION ALL", "UNION ALL", "INTERSECT ALL", "EXCEPT ALL")
SET_WORDS = ("UNION", "UNION DISTINCT", "INTERSECT", "EXCEPT")
DEPTH = 4
"""How deep queries nest."""


def query(rng: Random, relations: Sequence[Relation]) -> Query:
    """A query over the relations, of any depth up to the greatest."""
    depth = rng.choice((1, 1, 2, 2, 2, 3, 3, DEPTH))
    return Writer(rng, relations, PRODUCTIONS).query(depth)


def select(w: Writer, depth: int) -> Query:
    """SELECT … FROM … WHERE …."""
    found = w.source(depth)
    where = w.where(found)
    size = max(1.0, found.size / (2 if where else 1))
    unique = len({name.lower() for name in found.names}) == len(found.names)
    if unique and w.chance(0.1):
        fields = tuple(
            Field(name, atom.type, atom.wild, atom.exact, atom.loose)
            for name, atom in zip(found.names, found.atoms, strict=True)
        )
        return Query(f"SELECT * FROM {found.sql}{where}", fields, size)
    outputs = w.outputs(found.atoms, strict=False)
    sql = f"SELECT {listed(outputs)} FROM {found.sql}{where}"
    return Query(sql, tuple(field for _, field in outputs), size)


def distinct(w: Writer, depth: int) -> Query:
    """SELECT DISTINCT."""
    found = w.source(depth)
    outputs = w.outputs(found.atoms, strict=True)
    sql = f"SELECT DISTINCT {listed(outputs)} FROM {found.sql}{w.where(found)}"
    return Query(sql, tuple(field for _, field in outputs), min(found.size, 50.0))


def grouped(w: Writer, depth: int) -> Query:
    """GROUP BY with aggregates, and HAVING now and then; without keys, one row."""
    found = w.source(depth)
    palette = Palette(w.rng, found.atoms)
    keys = [
        palette.draw(w.family(found.atoms), w.rng.choice((0, 0, 0, 1)))
        for _ in range(w.rng.choice((0, 1, 1, 1, 2, 2, 3)))
    ]
    keys = [key for key in keys if not key.constant]
    made = [_aggregate(w, found.atoms) for _ in range(w.rng.randint(1, 4))]
    shown = [(key.text, field_of(f"k{n}", key)) for n, key in enumerate(keys, 1) if w.chance(0.9)]
    shown += [
        (a.text, Field(f"a{n}", a.type, a.wild, a.exact, a.loose)) for n, a in enumerate(made, 1)
    ]
    over = _over_groups(w, keys, made)
    if w.chance(0.3):
        scalar = over.draw(w.rng.choice(ARITHMETIC), 2)
        shown.append((scalar.text, field_of("g1", scalar)))
    sql = f"SELECT {listed(shown)} FROM {found.sql}{w.where(found)}"
    sql += _group_clause(w, keys, shown, found.names)
    if w.chance(0.3):
        sql += f" HAVING {over.rendered(over.condition(1))}"
    return Query(sql, tuple(field for _, field in shown), 8.0 if keys else 1.0)


def _over_groups(w: Writer, keys: Sequence[Scalar], aggregates: Sequence[Atom]) -> Palette:
    known = [Atom(key.text, key.type, key.wild, key.exact) for key in keys]
    return Palette(w.rng, (*known, *aggregates))


def _group_clause(
    w: Writer,
    keys: Sequence[Scalar],
    shown: Sequence[tuple[str, Field]],
    taken: Sequence[str],
) -> str:
    """Keys by expression, by position, or by an alias that no column has for its name."""
    if not keys:
        return ""
    written = {
        text: (str(n), text if field.name in taken else field.name)
        for n, (text, field) in enumerate(shown, 1)
    }
    forms = [w.rng.choice((key.text, key.text, *written.get(key.text, ()))) for key in keys]
    return f" GROUP BY {', '.join(forms)}"


def _aggregate(w: Writer, atoms: Sequence[Atom]) -> Atom:
    function = w.rng.choice(("count", "sum", "sum", "avg"))
    if function == "count":
        return _count(w, atoms)
    palette = Palette(w.rng, atoms)
    for _ in range(5):
        scalar = palette.draw(w.rng.choice(ARITHMETIC), w.rng.choice((0, 0, 1, 2)))
        type_ = result_type(function, scalar.type)
        if type_ is not None and not scalar.constant and _summable(scalar):
            inexact = scalar.type in FLOATS and not scalar.exact
            exact = function == "sum" and not inexact
            text = f"{function.upper()}({scalar.text})"
            return Atom(text, type_, False, exact, inexact)
    return _count(w, atoms)


def _summable(scalar: Scalar) -> bool:
    """Whether the sum of a group is likely to fit its type."""
    parts = decimal_parts(scalar.type)
    if scalar.wild and (parts or scalar.type == "bigint"):
        return False
    return not parts or parts[0] < 38 or not scalar.wild


def _count(w: Writer, atoms: Sequence[Atom]) -> Atom:
    counted = w.rng.choice(("*", "1", *(atom.text for atom in atoms)))
    return Atom(f"COUNT({counted})", "bigint")


def union(w: Writer, depth: int) -> Query:
    """UNION, INTERSECT or EXCEPT of two queries made to fit each other."""
    keep_all = w.chance(0.6)
    count = w.rng.randint(1, 4)
    families = [w.rng.choice(FAMILIES[:10]) for _ in range(count)]
    left, right = (_fitting(w, depth - 1, families, strict=not keep_all) for _ in range(2))
    fields = tuple(
        Field(a.name, _common(a.type, b.type), a.wild or b.wild, a.exact and b.exact)
        for a, b in zip(left.fields, right.fields, strict=True)
    )
    size = left.size + right.size
    word = w.rng.choice(BAG_WORDS if keep_all else SET_WORDS)
    return Query(f"{left.sql} {word} {right.sql}", fields, size if keep_all else min(size, 60.0))


def _fitting(w: Writer, depth: int, families: Sequence[Family], *, strict: bool) -> Query:
    """A query with one column of each family."""
    found = w.source(depth)
    palette = Palette(w.rng, found.atoms)
    outputs = []
    for number, family in enumerate(families, 1):
        scalar = palette.draw(family, w.rng.choice((0, 1)))
        outputs.append((scalar.text, field_of(f"u{number}", scalar)))
    word = "SELECT DISTINCT" if strict and w.chance(0.2) else "SELECT"
    sql = f"{word} {listed(outputs)} FROM {found.sql}{w.where(found)}"
    return Query(sql, tuple(field for _, field in outputs), found.size)


def _common(a: Type, b: Type) -> Type:
    """A type of the family both are of; only the family and its width matter here."""
    if a == b:
        return a
    if a in INTEGERS and b in INTEGERS:
        return max(a, b, key=INTEGERS.index)
    if decimal_parts(a):
        (p, s), (q, t) = decimal_parts(a) or (38, 0), decimal_parts(b) or (38, 0)
        scale = max(s, t)
        return f"decimal({min(38, max(p - s, q - t) + scale)},{scale})"
    return "double"


def common_table(w: Writer, depth: int) -> Query:
    """WITH one or two names, read once or more."""
    outer = list(w.relations)
    parts = []
    for _ in range(w.rng.choice((1, 1, 2))):
        inner, name = w.query(depth - 1), w.alias()
        parts.append(f"{name} AS ({inner.sql})")
        w.relations += [Relation(name, inner.fields, inner.size)] * 3
    body = w.query(depth - 1)
    w.relations = outer
    if body.sql.startswith("WITH "):
        alias = w.alias()
        body = replace(body, sql=f"SELECT * FROM ({body.sql}) AS {alias}")
    return replace(body, sql=f"WITH {', '.join(parts)} {body.sql}")


def constants(w: Writer, _: int) -> Query:
    """Rows without FROM."""
    palette = Palette(w.rng, ())
    families = [w.rng.choice(FAMILIES[:10]) for _ in range(w.rng.randint(1, 3))]
    rows = []
    for _ in range(w.rng.randint(1, 3)):
        scalars = [palette.draw(family, 0) for family in families]
        rows.append([(s.text, field_of(f"v{n}", s)) for n, s in enumerate(scalars, 1)])
    fields = [field for _, field in rows[0]]
    for row in rows[1:]:
        pairs = zip(fields, row, strict=True)
        fields = [replace(a, type=_common(a.type, b.type)) for a, (_, b) in pairs]
    sql = " UNION ALL ".join(f"SELECT {listed(row)}" for row in rows)
    return Query(sql, tuple(fields), float(len(rows)))


def beside_constants(w: Writer, depth: int) -> Query:
    """A query joined with constant rows."""
    found, rows = w.query(depth - 1), constants(w, depth)
    a, b = w.alias(), w.alias()
    if {f.name for f in found.fields} & {f.name for f in rows.fields}:
        return found
    condition = w.condition(
        (*atoms_of(Relation(a, found.fields, 1)), *atoms_of(Relation(b, rows.fields, 1))), 1
    )
    sql = f"SELECT * FROM ({found.sql}) AS {a} JOIN ({rows.sql}) AS {b} ON {condition}"
    return Query(sql, found.fields + rows.fields, found.size * rows.size)


def in_parentheses(w: Writer, depth: int) -> Query:
    """A query in parentheses, as one side of a UNION ALL with itself filtered."""
    inner = w.query(depth - 1)
    alias = w.alias()
    atoms = atoms_of(Relation(alias, inner.fields, inner.size))
    again = f"SELECT * FROM ({inner.sql}) AS {alias} WHERE {w.condition(atoms, 1)}"
    if w.chance(0.5):
        return Query(again, inner.fields, inner.size)
    return Query(f"({inner.sql}) UNION ALL ({again})", inner.fields, 2 * inner.size)


Production: TypeAlias = Callable[[Writer, int], Query]

PRODUCTIONS: tuple[Production, ...] = (
    *(select, select, select, grouped, grouped, grouped, distinct, union, union),
    *(common_table, beside_constants, in_parentheses),
)
"""What a query may be; a further capability is one more function here."""
