"""PIVOT and UNPIVOT as items of FROM."""

from __future__ import annotations

from collections import defaultdict

from everview_fuzz.generate.aggregates import aggregate
from everview_fuzz.generate.query_context import (
    Field,
    Query,
    QueryContext,
    Relation,
    field_like,
    identifier,
)
from everview_fuzz.generate.scalars import Atom, family_of
from everview_fuzz.generate.values import literal


def pivoted(w: QueryContext, inner: Query, alias: str) -> tuple[str, Relation] | None:
    """A query under PIVOT or UNPIVOT; None where its columns do not allow it."""
    plain = [field for field in inner.fields if not field.loose]
    if len({field.name.lower() for field in plain}) != len(inner.fields):
        return None
    return w.rng.choice((_pivot, _unpivot))(w, inner, alias)


def _pivot(w: QueryContext, inner: Query, alias: str) -> tuple[str, Relation] | None:
    pivot, *rest = w.rng.sample(inner.fields, len(inner.fields))
    if not rest or pivot.type in ("float", "double"):
        return None
    measured = rest[: w.rng.randint(1, len(rest))]
    atoms = tuple(Atom(identifier(f.name), f.type, f.wild, f.exact) for f in measured)
    asked = [aggregate(w, atoms) for _ in range(w.rng.choice((1, 1, 2)))]
    spoken = " ".join((pivot.name, *(each.text for each in asked)))
    keys = [field for field in inner.fields if field is not pivot and field not in measured]
    keys += [field for field in measured if identifier(field.name) not in spoken]
    family = family_of(pivot.type)
    listed, made = [], [field for field in inner.fields if field in keys]
    for number in range(1, w.rng.choice((2, 3, 4))):
        listed.append(f"{literal(w.rng, family)} AS w{number}")
        for place, each in enumerate(asked, 1):
            name = f"w{number}" if len(asked) == 1 else f"w{number}_p{place}"
            made.append(field_like(name, each))
    totals = ", ".join(f"{each.text} AS p{place}" for place, each in enumerate(asked, 1))
    turn = f"PIVOT ({totals} FOR {identifier(pivot.name)} IN ({', '.join(listed)}))"
    return f"({inner.sql}) {turn} AS {alias}", Relation(alias, tuple(made), min(inner.size, 20.0))


def _unpivot(w: QueryContext, inner: Query, alias: str) -> tuple[str, Relation] | None:
    alike: dict[str, list[Field]] = defaultdict(list)
    for field in inner.fields:
        alike[field.type].append(field)
    columns = max(alike.values(), key=len)
    kept = [field for field in inner.fields if field not in columns]
    names = {field.name.lower() for field in kept}
    if len(columns) < 2 or names & {"n1", "n2"}:
        return None
    listed = [
        identifier(field.name) + w.rng.choice(("", f" AS `as {field.name}`")) for field in columns
    ]
    nulls = w.rng.choice(("", "", " INCLUDE NULLS", " EXCLUDE NULLS"))
    turn = f"UNPIVOT{nulls} (n2 FOR n1 IN ({', '.join(listed)}))"
    exact = all(field.exact for field in columns)
    wild = any(field.wild for field in columns)
    made = (*kept, Field("n1", "string"), Field("n2", columns[0].type, wild, exact))
    return f"({inner.sql}) {turn} AS {alias}", Relation(alias, made, inner.size * len(columns))
