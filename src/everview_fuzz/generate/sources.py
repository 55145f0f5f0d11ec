"""FROM: tables, views, subqueries and constant rows, joined in every way there is."""

from __future__ import annotations

from dataclasses import replace

from everview.expr.type_inference import type_of
from everview_fuzz.generate.pivot import pivoted
from everview_fuzz.generate.query_context import (
    Field,
    From,
    Query,
    QueryContext,
    Relation,
    atoms_of,
    comparable,
    identifier,
    names_of,
)
from everview_fuzz.generate.recursion import recursive_source
from everview_fuzz.generate.scalars import Atom
from everview_fuzz.generate.values import literal

SEMI = ("LEFT SEMI JOIN ", "LEFT ANTI JOIN ", "SEMI JOIN ", "ANTI JOIN ")
"""Joins that show no column of their right side."""
INNER = ("JOIN ", "JOIN ", "INNER JOIN ", "INNER JOIN ")
LEFT = ("LEFT JOIN ", "LEFT OUTER JOIN ")
OUTER = (*LEFT, "RIGHT JOIN ", "FULL JOIN ", "FULL OUTER JOIN ")
MAX_ROWS = 3000
"""A join expected to have more rows than this is not drawn."""


def join_keyword(w: QueryContext, *, semi: bool = True, left: bool = False) -> str:
    """A kind of join, with or without those that only ask, or with none but those of the left."""
    outer = LEFT if left else OUTER
    found = w.rng.choice((*INNER, *outer, *(SEMI if semi else ())))
    cost = 0 if found in INNER else 2 if found in OUTER else 1
    return found if w.pay(cost) else w.rng.choice(INNER)


def item(w: QueryContext, depth: int) -> tuple[str, Relation]:
    """A table, view, common table expression, subquery or VALUES, with its alias."""
    alias = w.alias()
    if w.chance(0.04):
        return _values(w, alias)
    if w.chance(0.05) and (found := recursive_source(w, alias)) is not None:
        return found
    if depth > 1 and w.chance(0.35):
        inner = w.query(depth - 1)
        # Spark alone has NULL for a count of no rows, so others do not mean the same.
        made = pivoted(w, inner, alias) if not w.kit.portable and w.chance(0.15) else None
        return made or _derived(w, inner, alias)
    known = w.relation()
    return f"{identifier(known.name)} AS {alias}", replace(known, name=alias)


def _derived(w: QueryContext, inner: Query, alias: str) -> tuple[str, Relation]:
    if not w.chance(0.2):
        return f"({inner.sql}) AS {alias}", Relation(alias, inner.fields, inner.size)
    renamed = [f"r{n}" for n in range(1, len(inner.fields) + 1)]
    fields = tuple(
        replace(field, name=name) for field, name in zip(inner.fields, renamed, strict=True)
    )
    text = f"({inner.sql}) AS {alias}({', '.join(renamed)})"
    return text, Relation(alias, fields, inner.size)


def _values(w: QueryContext, alias: str) -> tuple[str, Relation]:
    families = w.families(3)
    rows = [[literal(w.rng, family) for family in families] for _ in range(w.rng.randint(1, 4))]
    for row in rows[1:]:
        if w.chance(0.3):
            row[w.rng.randrange(len(row))] = "NULL"
    fields = []
    for number, cells in enumerate(zip(*rows, strict=True), 1):
        type_ = type_of(f"COALESCE({', '.join(cells)})", ())
        assert type_ is not None, cells
        fields.append(Field(f"r{number}", type_))
    shown = ", ".join(f"({', '.join(row)})" for row in rows)
    text = f"(VALUES {shown}) AS {alias}({', '.join(field.name for field in fields)})"
    return text, Relation(alias, tuple(fields), float(len(rows)))


def source(w: QueryContext, depth: int, most: int = 3) -> From:
    """One item, or several joined."""
    text, first = item(w, depth)
    own = atoms_of(first)
    found = From(text, own, names_of(first), first.size, own)
    for _ in range(min(most, w.rng.choice((0, 0, 0, 1, 1, 1, 2, 3)))):
        found = _joined(w, found, depth)
    return found


def _joined(w: QueryContext, left: From, depth: int) -> From:
    """One more item, unless the rows would be too many."""
    text, right = item(w, depth)
    own = atoms_of(right)
    comma = w.chance(0.25)
    pairs = w.comparable_pairs(left.atoms if comma else left.near, own)
    product = left.size * right.size
    if product > MAX_ROWS * (4 if pairs else 1):
        return left
    made = From(
        left.sql,
        left.atoms + own,
        left.names + names_of(right),
        max(1.0, product / 4),
        own if comma else left.near + own,
        left.where,
    )
    free = not pairs or (product <= MAX_ROWS and w.chance(0.3))
    if free:
        made = replace(made, size=product)
    if comma:
        return _listed(w, made, text, None if free else _equality(w, pairs))
    # Where JOIN follows a comma, Spark joins from left to right and others join the last item.
    after_comma = len(left.near) < len(left.atoms)
    shared = [] if after_comma else _shared(left, right)
    if shared and w.chance(0.3):
        return _join_using(w, left, made, text, shared)
    if free and w.chance(0.2):
        return replace(made, sql=f"{left.sql} CROSS JOIN {text}")
    condition = _equality(w, pairs) if not free else _apart(w, pairs, made)
    if not free and w.chance(0.25):
        condition += f" AND {w.condition(made.near, 1)}"
    kind = join_keyword(w, left=after_comma and w.kit.portable)
    sql = f"{left.sql} {kind}{text} ON {condition}"
    return replace(left if kind in SEMI else made, sql=sql)


def _apart(w: QueryContext, pairs: list[tuple[Atom, Atom]], made: From) -> str:
    """A condition other than equality: mostly that a column is in a range of the other side."""
    if not pairs or w.chance(0.4):
        return w.condition(made.near, 1)
    mine, other = w.rng.choice(pairs)
    bounds = [b.text for a, b in pairs if a is mine and b is not other]
    if bounds and w.chance(0.5):
        return f"{mine.text} BETWEEN {other.text} AND {w.rng.choice(bounds)}"
    return f"{mine.text} {w.rng.choice(('<', '<=', '>', '>=', '<>'))} {other.text}"


def _listed(w: QueryContext, made: From, text: str, equality: str | None) -> From:
    """An item after a comma; what joins it stands in WHERE."""
    made = replace(made, sql=f"{made.sql}, {text}")
    if equality is None:
        return made
    if w.chance(0.25):
        equality += f" AND {w.condition(made.atoms, 1)}"
    return replace(made, where=f"{made.where} AND {equality}" if made.where else equality)


def _join_using(w: QueryContext, left: From, made: From, text: str, shared: list[str]) -> From:
    """USING some of the names that both sides have.

    Spark shows these columns first, after a semi join too. There DuckDB keeps the order of the left
    side, so where both are asked the join is another one.
    """
    kind = join_keyword(w, semi=not w.kit.portable)
    some = w.rng.sample(shared, w.rng.randint(1, len(shared)))
    sql = f"{left.sql} {kind}{text} USING ({', '.join(map(identifier, some))})"
    return replace(left if kind in SEMI else made, sql=sql)


def _shared(left: From, right: Relation) -> list[str]:
    """The names that each side has once, for columns worth joining."""
    nearby = [name.lower() for name in left.names[-len(left.near) :]]
    types = dict(zip(nearby, left.near, strict=True))
    return [
        field.name
        for field in right.fields
        if nearby.count(field.name.lower()) == 1 and mergeable(types[field.name.lower()], field)
    ]


def mergeable(a: Atom | Field, b: Atom | Field) -> bool:
    """Whether USING may make one column of two."""
    return not (a.loose or b.loose) and comparable(a.type, b.type)


def _equality(w: QueryContext, pairs: list[tuple[Atom, Atom]]) -> str:
    chosen = w.rng.sample(pairs, min(len(pairs), w.rng.choice((1, 1, 1, 2))))
    shown = [
        f"{a.text} = {b.text}" if w.chance(0.9) else f"{b.text} <=> {a.text}" for a, b in chosen
    ]
    return " AND ".join(shown)
