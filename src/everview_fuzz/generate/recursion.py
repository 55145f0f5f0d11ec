"""WITH RECURSIVE as an item of FROM: the transitive closure of a relation."""

from __future__ import annotations

from everview_fuzz.generate.query_context import Field, QueryContext, Relation, identifier

MAX_ROWS = 60
"""A relation expected to have more rows is not recursed over."""
MAX_LEVELS = 2
"""How many levels a recursion with UNION ALL has."""


def recursive_source(w: QueryContext, alias: str) -> tuple[str, Relation] | None:
    """Pairs of values that a path of rows connects, None where no two columns are comparable.

    UNION ends by itself. UNION ALL counts its levels.
    """
    found = w.relation()
    plain = [field for field in found.fields if _followed(field)]
    pairs = [(a, b) for a in plain for b in plain if a.type == b.type]
    if not pairs or found.size > MAX_ROWS or not w.pay(2):
        return None
    start, end = w.rng.choice(pairs)
    name, steps = w.alias(), w.alias()
    rows, a, b = identifier(found.name), identifier(start.name), identifier(end.name)
    once = w.kit.portable and w.chance(0.5)
    level, next_, limit = (
        ("", "", "") if once else (", 0", f", {name}.d + 1", f" AND {name}.d < {MAX_LEVELS}")
    )
    first = f"SELECT {a}, {b}{level} FROM {rows}"
    then = f"SELECT {name}.x, {steps}.{b}{next_} FROM {name} JOIN {rows} AS {steps}"
    step = f"{then} ON {name}.y = {steps}.{a}{limit}"
    if once and w.chance(0.4):
        step += _exists_condition(w, w.rng.choice([(f"{name}.x", start), (f"{steps}.{b}", end)]))
    columns = "x, y" if once else "x, y, d"
    word = "UNION" if once else "UNION ALL"
    text = f"WITH RECURSIVE {name}({columns}) AS ({first} {word} {step}) SELECT * FROM {name}"
    fields = [Field("x", start.type, start.wild), Field("y", end.type, end.wild)]
    fields += [] if once else [Field("d", "int")]
    return f"({text}) AS {alias}", Relation(alias, tuple(fields), 2 * found.size)


def _exists_condition(w: QueryContext, given: tuple[str, Field]) -> str:
    """A condition that a row of another relation equals a value, or that none does."""
    text, field = given
    found, other = w.relation(), w.alias()
    same = [each for each in found.fields if _followed(each) and each.type == field.type]
    if not same:
        return ""
    word = w.rng.choice(("EXISTS", "NOT EXISTS"))
    column = f"{other}.{identifier(w.rng.choice(same).name)}"
    rows = f"SELECT 1 FROM {identifier(found.name)} AS {other}"
    return f" WHERE {word} ({rows} WHERE {column} = {text})"


def _followed(field: Field) -> bool:
    exact = field.exact and not field.loose
    return exact and field.type in ("int", "bigint", "string", "date")
