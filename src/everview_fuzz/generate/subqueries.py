"""Subqueries in expressions: EXISTS, IN and scalar subqueries, correlated or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from everview_fuzz.generate.aggregates import aggregate, extreme
from everview_fuzz.generate.query_context import From, QueryContext, atoms_of, identifier, names_of
from everview_fuzz.generate.scalars import Atom, Family, Palette, family_of
from everview_fuzz.generate.sources import MAX_ROWS, source

SET_WORDS = (
    *("UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"),
    "UNION DISTINCT",
)
CORRELATIONS = ("=", "=", "=", "=", "<=>", "<=>", "<", "<=", ">", "<>")
"""How a correlated subquery compares its columns with the outer ones."""


@dataclass(frozen=True, slots=True)
class OuterRows:
    """The rows outside a subquery: the columns it may read, and about how many rows there are."""

    atoms: tuple[Atom, ...]
    size: float


@dataclass(frozen=True, slots=True)
class Body:
    """FROM and WHERE of a subquery, and the columns it sees."""

    found: From
    sql: str
    outside: tuple[Atom, ...]


def outer_rows(atoms: Sequence[Atom], size: float) -> OuterRows:
    """Rows with these columns, of which approximate ones cannot be compared."""
    return OuterRows(tuple(atom for atom in atoms if not atom.loose), size)


def subquery_condition(w: QueryContext, atoms: Sequence[Atom], rows: OuterRows) -> str:
    """A condition with a subquery that sees the rows, over columns of them or of groups."""
    if rows.atoms and w.chance(0.5):
        return nested_condition(w, atoms, rows)
    if w.chance(0.3):
        made = value(w, rows)
        if made.loose:
            return f"({made.text} IS NOT NULL)"
        return using_once(w, (*atoms, made), made, lambda palette: palette.condition(1))
    made = predicate(w, rows)
    if w.chance(0.65):
        return f"{w.rng.choice(('', '', 'NOT '))}{made.text}"
    return using_once(w, (*atoms, made), made, lambda palette: palette.condition(2))


def using_once(
    w: QueryContext, atoms: Sequence[Atom], wanted: Atom, draw: Callable[[Palette], str]
) -> str:
    """A condition over the columns that has a given one in it, once."""
    palette = w.palette(atoms)
    for _ in range(8):
        text = palette.rendered(draw(palette))
        if text.count(wanted.text) == 1:
            return text
    return wanted.text if wanted.type == "boolean" else f"({wanted.text} IS NOT NULL)"


def nested_condition(w: QueryContext, atoms: Sequence[Atom], rows: OuterRows) -> str:
    """Memberships under any nesting of NOT, AND, OR and CASE."""
    return _nested_condition(w, atoms, rows, w.rng.choice((1, 2, 2, 3)))


def _nested_condition(w: QueryContext, atoms: Sequence[Atom], rows: OuterRows, depth: int) -> str:
    def part() -> str:
        return _nested_condition(w, atoms, rows, depth - 1)

    if depth <= 0:
        return _leaf(w, atoms, rows)
    choice = w.rng.random()
    if choice < 0.3:
        return f"(NOT {part()})"
    # Where what is not known counts as false at the leaves, CASE shows it and AND and OR do not.
    if choice < 0.4 and not w.kit.portable:
        forms = (
            "(CASE WHEN {} THEN {} ELSE {} END)",
            "(CASE WHEN {} THEN {} END)",
            "IF({}, {}, {})",
        )
        return w.rng.choice(forms).format(part(), part(), part())
    return f"({part()} {w.rng.choice(('AND', 'OR'))} {part()})"


def _leaf(w: QueryContext, atoms: Sequence[Atom], rows: OuterRows) -> str:
    if not rows.atoms or not w.chance(0.7) or not w.pay(2):
        return w.condition(atoms, 1)
    return w.rng.choice(LEAVES)(w, rows)


def _simple(w: QueryContext, rows: OuterRows, families: Sequence[Family]) -> str:
    """Columns of one relation, tied to the rows around now and then."""
    found, alias = w.relation(), w.alias()
    own = atoms_of(replace(found, name=alias))
    shown = [w.palette(own).draw(family, 0).text for family in families]
    sql = f"SELECT {_listed(shown)} FROM {identifier(found.name)} AS {alias}"
    pairs = w.comparable_pairs(own, rows.atoms)
    conditions = []
    if pairs and w.chance(0.4):
        mine, other = w.rng.choice(pairs)
        symbol = w.rng.choice(CORRELATIONS) if rows.size * found.size <= MAX_ROWS else "="
        conditions.append(f"{mine.text} {symbol} {other.text}")
    if w.chance(0.3):
        conditions.append(w.condition(own, 0))
    return sql + (f" WHERE {' AND '.join(conditions)}" if conditions else "")


def _small_in(w: QueryContext, rows: OuterRows) -> str:
    left = w.rng.choice(rows.atoms)
    inner = _simple(w, rows, [family_of(left.type)])
    return f"({left.text} {w.rng.choice(('', 'NOT '))}IN ({inner}))"


def _small_row_in(w: QueryContext, rows: OuterRows) -> str:
    left = [w.rng.choice(rows.atoms) for _ in range(2)]
    inner = _simple(w, rows, [family_of(each.type) for each in left])
    shown = ", ".join(each.text for each in left)
    return f"(({shown}) {w.rng.choice(('', 'NOT '))}IN ({inner}))"


def _small_compared(w: QueryContext, rows: OuterRows) -> str:
    left = w.rng.choice(rows.atoms)
    inner = _simple(w, rows, [family_of(left.type)])
    symbol = w.rng.choice(("=", "<>", "<", ">="))
    return f"({left.text} {symbol} {w.rng.choice(('ALL', 'ANY'))} ({inner}))"


def _small_exists(w: QueryContext, rows: OuterRows) -> str:
    inner = _simple(w, rows, [family_of(w.rng.choice(rows.atoms).type)])
    return f"({w.rng.choice(('', 'NOT '))}EXISTS ({inner}))"


LEAVES = (*(_small_in,) * 4, _small_row_in, _small_compared, _small_exists)
"""Conditions with a subquery that cost little."""


def predicate(w: QueryContext, rows: OuterRows) -> Atom:
    """EXISTS or IN."""
    with w.nested():
        text = w.rng.choice(PREDICATES)(w, rows)
    return Atom(text, "boolean")


def _exists(w: QueryContext, rows: OuterRows) -> str:
    return f"EXISTS ({_query(w, rows, [w.family(rows.atoms)])})"


def _member(w: QueryContext, rows: OuterRows) -> str:
    return _in(w, rows, 1)


def _row_member(w: QueryContext, rows: OuterRows) -> str:
    return _in(w, rows, w.rng.choice((2, 2, 3)))


def _in(w: QueryContext, rows: OuterRows, width: int) -> str:
    palette = w.palette(rows.atoms)
    left = [palette.draw(w.family(rows.atoms), w.rng.choice((0, 0, 1))) for _ in range(width)]
    shown = left[0].text if width == 1 else f"({', '.join(each.text for each in left)})"
    inner = _query(w, rows, [family_of(each.type) for each in left])
    asked = f"({shown} {w.rng.choice(('', '', 'NOT '))}IN ({inner}))"
    # As a value, what is not known is false in Spark and NULL in DuckDB.
    return f"COALESCE({asked}, FALSE)" if w.kit.portable else asked


def _compared(w: QueryContext, rows: OuterRows) -> str:
    left = w.palette(rows.atoms).draw(w.family(rows.atoms), w.rng.choice((0, 0, 1)))
    inner = _query(w, rows, [family_of(left.type)])
    symbol = w.rng.choice(("<", "<=", ">", ">=", "=", "<>"))
    asked = f"({left.text} {symbol} {w.rng.choice(('ALL', 'ANY'))} ({inner}))"
    return f"COALESCE({asked}, FALSE)" if w.kit.portable else asked


PREDICATES = (*(_exists,) * 4, *(_member,) * 6, *(_row_member,) * 2, _compared)
"""What a condition with a subquery may be."""


# Queries with a column of each family


Form: TypeAlias = Callable[[QueryContext, OuterRows, Sequence[Family]], str]


def _query(w: QueryContext, rows: OuterRows, families: Sequence[Family]) -> str:
    return w.rng.choice(FORMS)(w, rows, families)


def _plain(w: QueryContext, rows: OuterRows, families: Sequence[Family]) -> str:
    body = from_and_where(w, rows)
    visible = (*body.found.atoms, *(body.outside if w.chance(0.2) else ()))
    palette = w.palette(visible)
    shown = [palette.draw(family, w.rng.choice((0, 0, 1))).text for family in families]
    return f"SELECT {w.rng.choice(('', '', 'DISTINCT '))}{_listed(shown)} {body.sql}"


def _star(w: QueryContext, rows: OuterRows, families: Sequence[Family]) -> str:
    """The rows of one relation, where only their number matters or their one column fits."""
    fitting = [r for r in w.relations if len(families) == 1 and len(r.fields) == 1]
    if not fitting:
        return _plain(w, rows, families)
    found = w.rng.choice(fitting)
    if w.palette(atoms_of(found)).column(families[0]) is None or found.fields[0].loose:
        return _plain(w, rows, families)
    return f"SELECT * FROM {identifier(found.name)} AS {w.alias()}"


def _grouped(w: QueryContext, rows: OuterRows, families: Sequence[Family]) -> str:
    """Groups, each column a key or an aggregate; HAVING may look at the rows around."""
    body = from_and_where(w, rows)
    keys: list[str] = []
    shown: list[str] = []
    for family in families:
        key = w.palette(body.found.atoms).draw(family, 0)
        if key.constant or w.chance(0.4):
            shown.append(extreme(w, body.found.atoms, family).text)
        else:
            keys.append(key.text)
            shown.append(key.text)
    if not keys and body.found.atoms and w.chance(0.6):
        calm = [atom.text for atom in body.found.atoms if not atom.loose]
        keys += calm[:1]
    sql = f"SELECT {_listed(shown)} {body.sql}"
    if keys:
        sql += f" GROUP BY {', '.join(dict.fromkeys(keys))}"
    return sql + (_having(w, body) if w.chance(0.5) else "")


def _having(w: QueryContext, body: Body) -> str:
    counted = aggregate(w, body.found.atoms)
    return f" HAVING {w.condition((counted, *body.outside), 1)}"


def _combined(w: QueryContext, rows: OuterRows, families: Sequence[Family]) -> str:
    left, right = (_plain(w, rows, families) for _ in range(2))
    return f"{left} {w.rng.choice(SET_WORDS)} {right}"


FORMS: tuple[Form, ...] = (_plain, _plain, _plain, _plain, _star, _grouped, _grouped, _combined)
"""What a subquery may be."""


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(f"{text} AS s{number}" for number, text in enumerate(texts, 1))


# FROM and WHERE


def from_and_where(w: QueryContext, rows: OuterRows) -> Body:
    """FROM and WHERE, mostly with conditions that read the rows around."""
    found = source(w, 2 if w.chance(0.1) else 1, most=1)
    conditions = [f"({found.where})"] if found.where else []
    outside = rows.atoms if rows.size * found.size <= 4 * MAX_ROWS else ()
    pairs = w.comparable_pairs(found.atoms, rows.atoms)
    if pairs and w.chance(0.8):
        for own, other in w.rng.sample(pairs, min(len(pairs), w.rng.choice((1, 1, 1, 2)))):
            symbol = w.rng.choice(CORRELATIONS) if outside else "="
            conditions.append(f"{own.text} {symbol} {other.text}")
        outside = rows.atoms
    elif outside and w.chance(0.4):
        conditions.append(w.condition((*found.atoms, *outside), 1))
    else:
        outside = ()
    if w.chance(0.3):
        conditions.append(w.condition(found.atoms, 1))
    if w.may_nest and w.chance(0.2):
        inner = OuterRows((*found.atoms, *outside), found.size)
        conditions.append(f"{w.rng.choice(('', 'NOT '))}{predicate(w, inner).text}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return Body(found, f"FROM {found.sql}{where}", outside)


# Values


def value(w: QueryContext, rows: OuterRows) -> Atom:
    """A subquery used as a value: it has one row at most, with rare exceptions."""
    with w.nested():
        return w.rng.choice(VALUES)(w, rows)


def _one_total(w: QueryContext, rows: OuterRows) -> Atom:
    """Aggregates of all rows: always one row, or none after HAVING."""
    body = from_and_where(w, rows)
    made = aggregate(w, body.found.atoms)
    having = _having(w, body) if w.chance(0.15) else ""
    if not made.loose and w.chance(0.3):
        scalar = w.palette((made, *body.outside)).draw(w.family((made,)), 1)
        if scalar.text.count(made.text) == 1:
            sql = f"(SELECT {scalar.text} AS s1 {body.sql}{having})"
            return Atom(sql, scalar.type, scalar.wild, scalar.exact)
    sql = f"(SELECT {made.text} AS s1 {body.sql}{having})"
    return Atom(sql, made.type, made.wild, made.exact, made.loose)


def _one_group(w: QueryContext, rows: OuterRows) -> Atom:
    """The one group whose key equals a column around: one row, or none."""
    found = source(w, 1, most=1)
    pairs = w.comparable_pairs(found.atoms, rows.atoms)
    if not pairs or found.where:
        return _one_total(w, rows)
    own, other = w.rng.choice(pairs)
    made = aggregate(w, found.atoms)
    sql = f"(SELECT {made.text} AS s1 FROM {found.sql} WHERE {own.text} = {other.text}"
    return Atom(f"{sql} GROUP BY {own.text})", made.type, made.wild, made.exact, made.loose)


def _by_key(w: QueryContext, rows: OuterRows) -> Atom:
    """A column of the row whose primary key equals a column around."""
    keyed = [relation for relation in w.relations if relation.key is not None]
    if not keyed:
        return _one_group(w, rows)
    found, alias = w.rng.choice(keyed), w.alias()
    atoms = atoms_of(replace(found, name=alias))
    key = names_of(found).index(found.key or "")
    pairs = w.comparable_pairs((atoms[key],), rows.atoms)
    if not pairs:
        return _one_group(w, rows)
    own, other = w.rng.choice(pairs)
    shown = w.rng.choice(atoms)
    sql = f"(SELECT {shown.text} AS s1 FROM {identifier(found.name)} AS {alias}"
    return replace(shown, text=f"{sql} WHERE {own.text} = {other.text})")


def _without_from(w: QueryContext, rows: OuterRows) -> Atom:
    """A row made of outer columns, or none."""
    palette = w.palette(rows.atoms)
    scalar = palette.draw(w.family(rows.atoms), 1)
    sql = f"(SELECT {scalar.text} AS s1 WHERE {w.condition(rows.atoms, 1)})"
    return Atom(sql, scalar.type, scalar.wild, scalar.exact)


def _any_row(w: QueryContext, rows: OuterRows) -> Atom:
    """A column of whatever rows there are: an error when they are two."""
    if not w.chance(0.1):
        return _one_group(w, rows)
    body = from_and_where(w, rows)
    scalar = w.palette(body.found.atoms).draw(w.family(body.found.atoms), 0)
    return Atom(f"(SELECT {scalar.text} AS s1 {body.sql})", scalar.type, scalar.wild, scalar.exact)


VALUES: tuple[Callable[[QueryContext, OuterRows], Atom], ...] = (
    *(_one_total, _one_total, _one_total, _one_total, _one_group, _one_group),
    *(_by_key, _by_key, _without_from, _any_row),
)
"""What a subquery used as a value may be."""
