"""LATERAL: a subquery in FROM that reads the items before it."""

from __future__ import annotations

from everview.fuzz.clauses import outputs
from everview.fuzz.sources import MOST_ROWS
from everview.fuzz.subqueries import around, rows_and_conditions
from everview.fuzz.writer import From, Relation, Writer, atoms_of, listed, names_of

IN_FROM = 0.05


def beside(w: Writer, found: From) -> From:
    """The items, and now and then a subquery that reads them."""
    if not (w.may_nest and w.chance(IN_FROM)):
        return found
    with w.nested():
        inner = rows_and_conditions(w, around(found.atoms, found.size))
        shown = outputs(w, inner.found, strict=False)
    size = found.size * inner.found.size / 4
    if size > MOST_ROWS:
        return found
    alias = w.alias()
    made = Relation(alias, tuple(field for _, field in shown), size)
    lateral = f"LATERAL (SELECT {listed(shown)} {inner.sql}) AS {alias}"
    atoms = (*found.atoms, *atoms_of(made))
    on = "TRUE" if w.kit.portable else w.condition(atoms, 1)
    join = w.rng.choice((f" CROSS JOIN {lateral}", f" LEFT JOIN {lateral} ON {on}"))
    return From(
        found.sql + join, atoms, found.names + names_of(made), max(1.0, size), atoms, found.where
    )
