"""Grouped joins with sums of products of columns of all sides, which split into factors."""

from __future__ import annotations

from collections.abc import Sequence

from everview.expr.aggregates import result_type
from everview.expr.type_inference import type_of
from everview.expr.types import INTEGERS, Column, decimal_parts
from everview_fuzz.generate.aggregates import aggregate
from everview_fuzz.generate.query_context import (
    Query,
    QueryContext,
    Relation,
    atoms_of,
    field_like,
    listed,
)
from everview_fuzz.generate.scalars import Atom
from everview_fuzz.generate.sources import MAX_ROWS, item

FACTOR_MAX_DIGITS = 18
"""Decimals of more digits are no factors: their products would lose some."""


def grouped_join(w: QueryContext, depth: int) -> Query:
    """Two to four items joined by equality and grouped, with sums of products and cases."""
    sources, conditions = _sources(w, depth)
    atoms = [atom for _, relation in sources for atom in atoms_of(relation)]
    for _, relation in sources:
        if w.chance(0.2):
            conditions.append(w.condition(atoms_of(relation), 1))
    if w.chance(0.1):
        conditions.append(w.condition(atoms, 1))
    calm = [atom for atom in atoms if not atom.loose]
    keys = w.rng.sample(calm, min(len(calm), w.rng.choice((0, 1, 1, 2))))
    measures = [_measure(w, sources, atoms) for _ in range(w.rng.randint(1, 4))]
    shown = [(atom.text, field_like(f"k{n}", atom)) for n, atom in enumerate(keys, 1)]
    shown += [(atom.text, field_like(f"a{n}", atom)) for n, atom in enumerate(measures, 1)]
    sql = f"SELECT {listed(shown)} FROM {', '.join(text for text, _ in sources)}"
    sql += f" WHERE {' AND '.join(conditions)}" if conditions else ""
    sql += f" GROUP BY {', '.join(atom.text for atom in keys)}" if keys else ""
    sql += f" HAVING {w.condition((*keys, *measures), 1)}" if w.chance(0.15) else ""
    return Query(sql, tuple(field for _, field in shown), 8.0 if keys else 1.0)


Sources = list[tuple[str, Relation]]


def _sources(w: QueryContext, depth: int) -> tuple[Sources, list[str]]:
    """Items of FROM and the equalities of columns that join each with one before it."""
    sources, conditions = [item(w, depth)], list[str]()
    size = sources[0][1].size
    for _ in range(w.rng.choice((1, 1, 2, 2, 3))):
        text, relation = item(w, depth)
        before = [atom for _, other in sources for atom in atoms_of(other)]
        pairs = w.comparable_pairs(before, atoms_of(relation))
        if not pairs or size * relation.size / 4 > MAX_ROWS:
            continue
        size *= relation.size / 4
        sources.append((text, relation))
        chosen = w.rng.sample(pairs, min(len(pairs), w.rng.choice((1, 1, 1, 2))))
        conditions += [f"{a.text} = {b.text}" for a, b in chosen]
    return sources, conditions


def _measure(w: QueryContext, sources: Sources, atoms: Sequence[Atom]) -> Atom:
    if w.chance(0.1):
        return aggregate(w, atoms)
    if w.chance(0.15):
        return Atom("COUNT(*)", "bigint")
    value = _value(w, sources)
    type_ = _typed(value, atoms)
    summed = result_type("sum", type_) if type_ is not None else None
    if summed is None or w.chance(0.15):
        return Atom(f"COUNT({value})", "bigint")
    if not w.kit.portable and w.chance(0.2):
        return Atom(f"AVG({value})", result_type("avg", type_ or "") or "double", exact=False)
    one = atoms_of(w.rng.choice(sources)[1])
    filtered = f" FILTER (WHERE {w.condition(one, 1)})" if w.chance(0.1) else ""
    return Atom(f"SUM({value}){filtered}", summed)


def _value(w: QueryContext, sources: Sources) -> str:
    """A product of columns of several items, or a sum of two, or cases of them."""
    form = w.rng.random()
    if form < 0.5:
        return _product(w, sources)
    a, b = _product(w, sources), _product(w, sources)
    if form < 0.7:
        return f"{a} {w.rng.choice('+-')} {b}"
    condition = w.condition(atoms_of(w.rng.choice(sources)[1]), 1)
    if form < 0.85 or len(sources) < 2:
        return f"CASE WHEN {condition} THEN {a} ELSE {w.rng.choice((b, '0', '1 - ' + b))} END"
    a, b = _product(w, sources[:1]), _product(w, sources[1:])
    return f"{a} * CASE WHEN {condition} THEN {b} ELSE {w.rng.choice((b, '1', 'NULL'))} END"


def _product(w: QueryContext, sources: Sources) -> str:
    """One column of each of some items; a constant where none of them has a number."""
    some = w.rng.sample(sources, min(len(sources), w.rng.choice((1, 2, 2, 3))))
    factors = [
        w.rng.choice(found).text for _, relation in some if (found := _factors(atoms_of(relation)))
    ]
    if w.chance(0.15):
        factors.append(w.rng.choice(("2", "-1", "3" if w.kit.portable else "0.5")))
    return " * ".join(factors or ["2"])


def _factors(atoms: Sequence[Atom]) -> list[Atom]:
    """The numbers that may be multiplied: exact ones that are not extreme."""
    return [
        atom
        for atom in atoms
        if not (atom.wild or atom.loose)
        and (
            atom.type in INTEGERS[2:]
            or ((parts := decimal_parts(atom.type)) and parts[0] <= FACTOR_MAX_DIGITS)
        )
    ]


def _typed(value: str, atoms: Sequence[Atom]) -> str | None:
    """The type of an expression over columns, by names that the rules of types can read."""
    ordered = sorted(atoms, key=lambda each: -len(each.text))
    for number, atom in enumerate(ordered):
        value = value.replace(atom.text, f"`c{number}`")
    return type_of(value, tuple(Column(f"c{n}", atom.type) for n, atom in enumerate(ordered)))
