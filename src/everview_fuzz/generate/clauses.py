"""SELECT lists and WHERE clauses, with subqueries in them now and then."""

from __future__ import annotations

from collections.abc import Sequence

from everview_fuzz.generate.functions import function_call
from everview_fuzz.generate.query_context import Field, From, QueryContext, field_like, field_of
from everview_fuzz.generate.scalars import Atom
from everview_fuzz.generate.subqueries import (
    OuterRows,
    nested_condition,
    outer_rows,
    predicate,
    subquery_condition,
    using_once,
    value,
)

# How often a clause has a subquery, or a call of a function.
SUBQUERY_IN_WHERE = 0.2
SUBQUERY_IN_LIST = 0.1
SUBQUERY_IN_AGGREGATE = 0.06
SUBQUERY_IN_HAVING = 0.2
FUNCTION_CALL = 0.15


def where(w: QueryContext, found: From) -> str:
    """The WHERE clause: what joins the items, and now and then a condition."""
    parts = [f"({found.where})"] if found.where else []
    if w.chance(0.4):
        parts.append(w.condition(found.atoms, w.rng.choice((0, 1, 1, 2))))
    if w.functions and w.chance(FUNCTION_CALL):
        call = function_call(w, found.atoms)
        seen = (*found.atoms, call)
        parts.append(using_once(w, seen, call, lambda palette: palette.condition(1)))
    if w.may_nest and w.chance(SUBQUERY_IN_WHERE):
        parts.insert(
            w.rng.randint(0, len(parts)),
            subquery_condition(w, found.atoms, outer_rows(found.atoms, found.size)),
        )
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def outputs(w: QueryContext, found: From, *, strict: bool) -> list[tuple[str, Field]]:
    """One to five columns; a `strict` list has no approximate ones, whose rows are compared."""
    palette = w.palette(found.atoms)
    loose = [atom for atom in found.atoms if atom.loose]
    made: list[tuple[str, Field]] = []
    for number in range(1, w.rng.choice((2, 2, 3, 3, 4, 5, 6))):
        if loose and not strict and w.chance(0.3):
            atom = w.rng.choice(loose)
            made.append((atom.text, field_like(f"x{number}", atom)))
            continue
        scalar = palette.draw(w.family(found.atoms), w.rng.choice((0, 0, 1, 2)))
        made.append((scalar.text, field_of(f"x{number}", scalar)))
    if w.functions and w.chance(FUNCTION_CALL):
        call = function_call(w, found.atoms)
        made.append((call.text, field_like(f"x{len(made) + 1}", call)))
    if w.may_nest and w.chance(SUBQUERY_IN_LIST):
        rows = outer_rows(found.atoms, found.size)
        made += subquery_column(w, found.atoms, rows, f"x{len(made) + 1}", strict=strict)
    return made


def subquery_column(
    w: QueryContext, atoms: Sequence[Atom], rows: OuterRows, name: str, *, strict: bool
) -> list[tuple[str, Field]]:
    """A column with a subquery in it, none where it would be approximate in a `strict` list."""
    made = subquery(w, rows)
    if made.loose:
        return [] if strict else [(made.text, field_like(name, made))]
    palette = w.palette((*atoms, made))
    for _ in range(4):
        scalar = palette.draw(w.family((made,)), w.rng.choice((0, 1, 2)))
        if scalar.text.count(made.text) == 1:
            return [(scalar.text, field_of(name, scalar))]
    return [(made.text, field_like(name, made))]


def subquery(w: QueryContext, rows: OuterRows) -> Atom:
    """EXISTS, IN or a value that sees the rows, or a nest of these."""
    if rows.atoms and not w.kit.portable and w.chance(0.25):
        return Atom(nested_condition(w, rows.atoms, rows), "boolean")
    return value(w, rows) if w.chance(0.6) else predicate(w, rows)
