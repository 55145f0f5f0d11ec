"""Queries: a table of productions, nested to a given depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import TypeAlias

from everview.expr.types import INTEGERS, Type, decimal_parts
from everview.lang.sql.parse.functions import Function
from everview_fuzz.generate.aggregates import aggregate
from everview_fuzz.generate.clauses import (
    SUBQUERY_IN_AGGREGATE,
    SUBQUERY_IN_HAVING,
    SUBQUERY_IN_LIST,
    outputs,
    subquery,
    subquery_column,
    where,
)
from everview_fuzz.generate.expressions import SPARK
from everview_fuzz.generate.grouping_sets import grouping_bits, sets_clause
from everview_fuzz.generate.lateral import with_lateral
from everview_fuzz.generate.nested import collected, exploded, regrouped
from everview_fuzz.generate.products import grouped_join
from everview_fuzz.generate.query_context import (
    Field,
    From,
    Query,
    QueryContext,
    Relation,
    atoms_of,
    field_like,
    field_of,
    identifier,
    listed,
)
from everview_fuzz.generate.scalars import Atom, Family, Kit, Scalar
from everview_fuzz.generate.sources import MAX_ROWS, item, join_keyword, mergeable, source
from everview_fuzz.generate.subqueries import OuterRows, outer_rows, subquery_condition
from everview_fuzz.generate.windows import call, first_of_each, first_rows, windowed

BAG_WORDS = ("UNION ALL", "UNION ALL", "INTERSECT ALL", "EXCEPT ALL")
SET_WORDS = ("UNION", "UNION DISTINCT", "INTERSECT", "EXCEPT")
MAX_DEPTH = 4
"""How deep queries nest."""
GROUPED_JOINS = 0.12
"""How many queries are grouped joins: those that policies maintain in ways of their own."""


def query(
    rng: Random, relations: Sequence[Relation], kit: Kit, functions: Sequence[Function] = ()
) -> Query:
    """A query over the relations, of any depth up to the greatest."""
    depth = rng.choice((1, 1, 2, 2, 2, 3, 3, MAX_DEPTH))
    context = QueryContext(rng, relations, PRODUCTIONS, kit, functions)
    drawn = grouped_join(context, 1) if rng.random() < GROUPED_JOINS else context.query(depth)
    return replace(drawn, cost=context.cost)


def recomputed_query(rng: Random, relations: Sequence[Relation]) -> Query:
    """Groups with an aggregate that has no derivative, so that a part is recomputed."""
    w = QueryContext(rng, relations, PRODUCTIONS, SPARK)
    found = source(w, 1, most=1)
    key, value = (w.palette(found.atoms).draw(w.family(found.atoms), 0) for _ in range(2))
    shown = [(key.text, field_of("k1", key))]
    shown.append((f"APPROX_COUNT_DISTINCT({value.text})", Field("a1", "bigint")))
    sql = f"SELECT {listed(shown)} FROM {found.sql}{where(w, found)} GROUP BY k1"
    return Query(sql, tuple(field for _, field in shown), 8.0, w.cost)


def replacement_query(rng: Random, relations: Sequence[Relation], kit: Kit, old: Query) -> Query:
    """Another query with the columns of one that was drawn."""
    w = QueryContext(rng, relations, PRODUCTIONS, kit)
    alias = f"r{w.rng.randint(1, 9)}"
    atoms = atoms_of(Relation(alias, old.fields, old.size))
    inner = f"FROM ({old.sql}) AS {alias} WHERE {w.condition(atoms, 1)}"
    if w.chance(0.3):
        scalar = w.palette(atoms).draw(w.family(atoms), 1)
        fields = (*old.fields, field_of("z9", scalar))
        return Query(f"SELECT {alias}.*, {scalar.text} AS z9 {inner}", fields, old.size)
    again = f"SELECT * {inner}"
    if w.chance(0.3):
        again = f"({old.sql}) UNION ALL ({again})"
    return replace(old, sql=again)


def select(w: QueryContext, depth: int) -> Query:
    """SELECT … FROM … WHERE …."""
    found = with_lateral(w, source(w, depth))
    clause = where(w, found)
    size = max(1.0, found.size / (2 if clause else 1))
    unique = len({name.lower() for name in found.names}) == len(found.names)
    if unique and w.chance(0.1):
        pairs = zip(found.names, found.atoms, strict=True)
        fields = tuple(field_like(name, atom) for name, atom in pairs)
        return Query(f"SELECT * FROM {found.sql}{clause}", fields, size)
    shown = outputs(w, found, strict=False)
    sql = f"SELECT {listed(shown)} FROM {found.sql}{clause}"
    return Query(sql, tuple(field for _, field in shown), size)


def distinct(w: QueryContext, depth: int) -> Query:
    """SELECT DISTINCT."""
    found = with_lateral(w, source(w, depth))
    shown = outputs(w, found, strict=True)
    sql = f"SELECT DISTINCT {listed(shown)} FROM {found.sql}{where(w, found)}"
    return Query(sql, tuple(field for _, field in shown), min(found.size, 50.0))


def grouped(w: QueryContext, depth: int) -> Query:
    """GROUP BY with aggregates, and HAVING now and then; without keys, one row."""
    found = with_lateral(w, source(w, depth))
    palette = w.palette(found.atoms)
    keys = [
        palette.draw(w.family(found.atoms), w.rng.choice((0, 0, 0, 1)))
        for _ in range(w.rng.choice((0, 1, 1, 1, 2, 2, 3)))
    ]
    keys = [key for key in keys if not key.constant]
    if not w.kit.portable and w.chance(0.1) and (added := _sum_of_two(w, found)) is not None:
        keys.append(added)
    sets = len(keys) > 0 and not w.kit.portable and w.chance(0.2) and w.pay(2)
    made = _aggregates(w, found)
    shown = [(key.text, field_of(f"k{n}", key)) for n, key in enumerate(keys, 1) if w.chance(0.9)]
    shown += [(a.text, field_like(f"a{n}", a)) for n, a in enumerate(made, 1)]
    plain = len(shown) == len(keys) + len(made)
    known = tuple(Atom(key.text, key.type, key.wild, key.exact) for key in keys)
    groups = _seen(found, known)
    more = _more_group_columns(w, known, made, groups, sets=sets)
    shown += more
    sql = f"SELECT {listed(shown)} FROM {found.sql}{where(w, found)}"
    if plain and not more and not sets and w.chance(0.2):
        sql += " GROUP BY ALL"
    else:
        sql += sets_clause(w, keys) if sets else _group_clause(w, keys, shown, found.names)
    if w.chance(0.3):
        sql += f" HAVING {_having(w, (*known, *made), groups)}"
    return Query(sql, tuple(field for _, field in shown), 8.0 if keys else 1.0)


def _sum_of_two(w: QueryContext, found: From) -> Scalar | None:
    """A key that may be written the other way round."""
    calm = [a for a in found.atoms if a.type in ("int", "bigint") and not (a.wild or a.loose)]
    if len(calm) < 2:
        return None
    first, second = w.rng.sample(calm, 2)
    type_ = "bigint" if "bigint" in (first.type, second.type) else "int"
    return Scalar(f"({first.text} + {second.text})", type_, wild=False, exact=True, constant=False)


def _more_group_columns(
    w: QueryContext, keys: tuple[Atom, ...], made: Sequence[Atom], groups: OuterRows, *, sets: bool
) -> list[tuple[str, Field]]:
    """Further columns of groups: expressions, subqueries, windows, and what is said of a key."""
    shown: list[tuple[str, Field]] = []
    if w.chance(0.3):
        scalar = w.palette((*keys, *made)).draw(w.rng.choice(w.kit.numbers), 2)
        shown.append((scalar.text, field_of("g1", scalar)))
    if w.may_nest and w.chance(SUBQUERY_IN_LIST):
        shown += subquery_column(w, (*keys, *made), groups, "g2", strict=False)
    if keys and not w.kit.portable and w.chance(0.08):
        key = w.rng.choice(keys)
        text = f"{w.rng.choice(('ANY_VALUE', 'FIRST', 'LAST'))}({key.text})"
        shown.append((text, field_like("g3", key)))
    if sets and w.chance(0.7):
        shown += grouping_bits(w, keys)
    if w.chance(0.08):
        over = call(w, [atom for atom in (*keys, *made) if not atom.loose])
        shown.append((over.text, field_like("g5", over)))
    return shown


def _seen(found: From, keys: Sequence[Atom]) -> OuterRows:
    """What a subquery sees of groups: the keys that are columns."""
    columns = {atom.text for atom in found.atoms}
    return outer_rows([key for key in keys if key.text in columns], 8.0)


def _having(w: QueryContext, atoms: Sequence[Atom], groups: OuterRows) -> str:
    if w.may_nest and w.chance(SUBQUERY_IN_HAVING):
        return subquery_condition(w, atoms, groups)
    return w.condition(atoms, 1)


def _aggregates(w: QueryContext, found: From) -> list[Atom]:
    made = [aggregate(w, found.atoms) for _ in range(w.rng.randint(1, 4))]
    if w.may_nest and w.chance(SUBQUERY_IN_AGGREGATE):
        inner = subquery(w, outer_rows(found.atoms, found.size))
        drawn = (aggregate(w, (inner, *found.atoms[:2])) for _ in range(6))
        made += [each for each in drawn if each.text.count(inner.text) == 1][:1]
    return made


def _group_clause(
    w: QueryContext,
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


def union(w: QueryContext, depth: int) -> Query:
    """UNION, INTERSECT or EXCEPT of two queries made to fit each other."""
    keep_all = w.chance(0.6)
    families = w.families(4)
    left, right = (_fitting(w, depth - 1, families, strict=not keep_all) for _ in range(2))
    fields = tuple(
        Field(a.name, _common(a.type, b.type), a.wild or b.wild, a.exact and b.exact)
        for a, b in zip(left.fields, right.fields, strict=True)
    )
    size = left.size + right.size
    kinds = BAG_WORDS if keep_all else SET_WORDS
    kind = w.rng.choice(kinds if w.pay(1) else kinds[:2])
    return Query(f"{left.sql} {kind} {right.sql}", fields, size if keep_all else min(size, 60.0))


def _fitting(w: QueryContext, depth: int, families: Sequence[Family], *, strict: bool) -> Query:
    """A query with one column of each family."""
    found = with_lateral(w, source(w, depth))
    palette = w.palette(found.atoms)
    shown = []
    for number, family in enumerate(families, 1):
        scalar = palette.draw(family, w.rng.choice((0, 1)))
        shown.append((scalar.text, field_of(f"u{number}", scalar)))
    start = "SELECT DISTINCT" if strict and w.chance(0.2) else "SELECT"
    sql = f"{start} {listed(shown)} FROM {found.sql}{where(w, found)}"
    return Query(sql, tuple(field for _, field in shown), found.size)


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


def common_table(w: QueryContext, depth: int) -> Query:
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


def natural_join(w: QueryContext, depth: int) -> Query:
    """A join by NATURAL or USING, with the columns that the sides share shown once."""
    (left_sql, left), (right_sql, right) = item(w, depth), item(w, depth)
    same = _same_names(left, right)
    fitting = [(a, b) for a, b in same if mergeable(a, b)]
    if not fitting or left.size * right.size > MAX_ROWS:
        return select(w, depth)
    natural = fitting == same and w.chance(0.8)
    chosen = fitting if natural else w.rng.sample(fitting, w.rng.randint(1, len(fitting)))
    shared = [_either(a, b) for a, b in chosen]
    kind = join_keyword(w, semi=False)
    clause = f" USING ({', '.join(identifier(field.name) for field in shared)})"
    sql = f"{left_sql} {'NATURAL ' * natural}{kind}{right_sql}{clause * (not natural)}"
    known = [*shared, *_unshared(left, right)]
    fields = tuple(w.rng.sample(known, w.rng.randint(1, len(known))))
    columns = ", ".join(identifier(field.name) for field in fields)
    return Query(f"SELECT {columns} FROM {sql}", fields, left.size * right.size / 4)


def _same_names(left: Relation, right: Relation) -> list[tuple[Field, Field]]:
    theirs = {field.name.lower(): field for field in right.fields}
    return [(f, theirs[f.name.lower()]) for f in left.fields if f.name.lower() in theirs]


def _unshared(left: Relation, right: Relation) -> list[Field]:
    taken = {mine.name.lower() for mine, _ in _same_names(left, right)}
    return [f for f in (*left.fields, *right.fields) if f.name.lower() not in taken]


def _either(mine: Field, other: Field) -> Field:
    return Field(mine.name, _common(mine.type, other.type), mine.wild or other.wild)


def constants(w: QueryContext, _: int) -> Query:
    """Rows without FROM."""
    palette = w.palette(())
    families = w.families(3)
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


def joined_constants(w: QueryContext, depth: int) -> Query:
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


def parenthesized(w: QueryContext, depth: int) -> Query:
    """A query in parentheses, as one side of a UNION ALL with itself filtered."""
    inner = w.query(depth - 1)
    alias = w.alias()
    atoms = atoms_of(Relation(alias, inner.fields, inner.size))
    again = f"SELECT * FROM ({inner.sql}) AS {alias} WHERE {w.condition(atoms, 1)}"
    if w.chance(0.5):
        return Query(again, inner.fields, inner.size)
    return Query(f"({inner.sql}) UNION ALL ({again})", inner.fields, 2 * inner.size)


Production: TypeAlias = Callable[[QueryContext, int], Query]


def nested(w: QueryContext, depth: int) -> Query:
    """Arrays and structs, of which other engines have other ideas."""
    made = select if w.kit.portable else w.rng.choice((exploded, exploded, regrouped, collected))
    return made(w, depth)


PRODUCTIONS: tuple[Production, ...] = (
    *(select, select, select, grouped, grouped, grouped, distinct, union, union),
    *(common_table, joined_constants, parenthesized, natural_join, windowed, windowed, windowed),
    *(first_rows, first_of_each, nested, nested, grouped_join),
)
"""What a query may be; a further capability is one more function here."""
