"""LATERAL: a subquery in FROM that reads the items before it."""

from __future__ import annotations

from everview_fuzz.generate.aggregates import aggregate
from everview_fuzz.generate.clauses import outputs
from everview_fuzz.generate.query_context import (
    Field,
    From,
    QueryContext,
    Relation,
    atoms_of,
    field_like,
    listed,
    names_of,
)
from everview_fuzz.generate.sources import MAX_ROWS, item
from everview_fuzz.generate.subqueries import Body, from_and_where, nested_condition, outer_rows

LATERAL_SUBQUERY = 0.06
JOIN_WITH_SUBQUERY = 0.04


def with_lateral(w: QueryContext, found: From) -> From:
    """The items, now and then with a LATERAL subquery, or a join with a subquery in ON."""
    if w.may_nest and w.chance(JOIN_WITH_SUBQUERY):
        return _join_with_subquery(w, found)
    if not (w.may_nest and w.chance(LATERAL_SUBQUERY)):
        return found
    with w.nested():
        inner = from_and_where(w, outer_rows(found.atoms, found.size))
        query, fields, count = _query(w, inner)
    size = found.size * count
    if size > MAX_ROWS:
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


def _join_with_subquery(w: QueryContext, found: From) -> From:
    """An inner join with subqueries in its condition."""
    text, right = item(w, 1)
    own = atoms_of(right)
    near = found.near + own
    pairs = w.comparable_pairs(found.near, own)
    if not pairs or found.size * right.size > MAX_ROWS:
        return found
    mine, other = w.rng.choice(pairs)
    asked = nested_condition(w, near, outer_rows(near, found.size * right.size / 4))
    sql = f"{found.sql} JOIN {text} ON {mine.text} = {other.text} AND {asked}"
    size = max(1.0, found.size * right.size / 4)
    names = found.names + names_of(right)
    return From(sql, found.atoms + own, names, size, near, found.where)


def _query(w: QueryContext, inner: Body) -> tuple[str, tuple[Field, ...], float]:
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
