"""LATERAL: a subquery in FROM that reads the items before it."""

from __future__ import annotations

from everview_fuzz.generate.aggregates import aggregate
from everview_fuzz.generate.clauses import outputs
from everview_fuzz.generate.query_context import (
    Field,
    From,
    Relation,
    Writer,
    atoms_of,
    field_like,
    listed,
    names_of,
)
from everview_fuzz.generate.sources import MOST_ROWS, item
from everview_fuzz.generate.subqueries import Body, around, rows_and_conditions, tangled

IN_FROM = 0.06
ASKING = 0.04


def beside(w: Writer, found: From) -> From:
    """The items, and now and then a subquery that reads them, or a join that asks one in ON."""
    if w.may_nest and w.chance(ASKING):
        return _asking(w, found)
    if not (w.may_nest and w.chance(IN_FROM)):
        return found
    with w.nested():
        inner = rows_and_conditions(w, around(found.atoms, found.size))
        query, fields, count = _query(w, inner)
    size = found.size * count
    if size > MOST_ROWS:
        return found
    alias = w.alias()
    made = Relation(alias, fields, size)
    lateral = f"LATERAL ({query}) AS {alias}"
    atoms = (*found.atoms, *atoms_of(made))
    on = "TRUE" if w.kit.portable else w.condition(atoms, 1)
    forms = [f" CROSS JOIN {lateral}", f" LEFT JOIN {lateral} ON {on}", f", {lateral}"]
    return From(
        found.sql + w.rng.choice(forms),
        atoms,
        found.names + names_of(made),
        max(1.0, size),
        atoms,
        found.where,
    )


def _asking(w: Writer, found: From) -> From:
    """An inner join whose condition has memberships in it."""
    text, right = item(w, 1)
    own = atoms_of(right)
    near = found.near + own
    pairs = w.meeting(found.near, own)
    if not pairs or found.size * right.size > MOST_ROWS:
        return found
    mine, other = w.rng.choice(pairs)
    asked = tangled(w, near, around(near, found.size * right.size / 4))
    sql = f"{found.sql} JOIN {text} ON {mine.text} = {other.text} AND {asked}"
    size = max(1.0, found.size * right.size / 4)
    names = found.names + names_of(right)
    return From(sql, found.atoms + own, names, size, near, found.where)


def _query(w: Writer, inner: Body) -> tuple[str, tuple[Field, ...], float]:
    """The rows, what they add up to, or the first of them; and about how many there are."""
    choice = w.rng.random()
    if choice < 0.3:
        totals = [aggregate(w, inner.found.atoms) for _ in range(w.rng.choice((1, 1, 2)))]
        shown = [(each.text, field_like(f"x{n}", each)) for n, each in enumerate(totals, 1)]
        return f"SELECT {listed(shown)} {inner.sql}", tuple(field for _, field in shown), 1.0
    first = choice < 0.5
    shown = outputs(w, inner.found, strict=first)
    fields = tuple(field for _, field in shown)
    query = f"SELECT {listed(shown)} {inner.sql}"
    if first:
        return f"{query} ORDER BY {', '.join(f.name for f in fields)} LIMIT 2", fields, 2.0
    return query, fields, inner.found.size / 4
