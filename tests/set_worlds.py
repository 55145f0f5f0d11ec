"""Random small worlds of sets: queries, states, and transactions on them; early ones are smaller.

A thousand cases of each law have to be quick, so they are drawn by plain random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

from everview.lang.relalg.nodes import (
    Difference,
    Expression,
    Intersection,
    NaturalJoin,
    Product,
    Project,
    Relation,
    Select,
    Union,
)
from set_evaluation import Names, Row, Rows, State

VALUES = (None, 0, 1)
COLUMNS: dict[str, Names] = {"r": ("a", "b"), "s": ("a", "b"), "u": ("b", "c")}
EVERY_ROW = tuple(product(VALUES, repeat=2))
CONDITIONS = ("`{0}` = 0", "`{0}` IS NULL", "NOT `{0}` = 1 OR `{1}` IS NULL", "`{0}` < `{1}`")

A, B, AB, BC, ABC = ("a",), ("b",), ("a", "b"), ("b", "c"), ("a", "b", "c")
LEAVES: dict[Names, tuple[Expression, ...]] = {
    A: (Project(Relation("r"), (("a", "a"),)), Project(Relation("s"), (("b", "a"),))),
    B: (Project(Relation("u"), (("b", "b"),)), Project(Relation("r"), (("b", "b"),))),
    AB: (Relation("r"), Relation("s")),
    BC: (Relation("u"),),
    ABC: (NaturalJoin(Relation("r"), Relation("u")),),
}
FACTORS: dict[Names, tuple[tuple[Names, Names], ...]] = {AB: ((A, B),), ABC: ((A, BC),)}
"""The columns of two sides whose product has some columns."""
JOINED: dict[Names, tuple[tuple[Names, Names], ...]] = {
    A: ((A, A),),
    B: ((B, B),),
    AB: ((AB, B), (A, AB), (AB, AB)),
    BC: ((B, BC),),
    ABC: ((AB, BC), (AB, ABC)),
}
"""The same for the natural join."""
SET_OPERATIONS = (Union, Intersection, Difference)
KINDS = ("leaf", "select", "project", "product", "join", *SET_OPERATIONS, *SET_OPERATIONS)


def drawn_query(rng: Random, columns: Names, depth: int) -> Expression:
    """A query over r, s and u, with the columns that are asked for."""
    kind = rng.choice(KINDS) if depth else "leaf"
    if kind == "leaf" or (kind == "product" and columns not in FACTORS):
        return rng.choice(LEAVES[columns])
    if kind == "select":
        condition = rng.choice(CONDITIONS).format(columns[0], columns[-1])
        return Select(drawn_query(rng, columns, depth - 1), condition)
    if kind == "project":
        below = rng.choice([AB, BC, ABC])
        pairs = tuple((rng.choice(below), name) for name in columns)
        return Project(drawn_query(rng, below, depth - 1), pairs)
    sides = {"product": FACTORS, "join": JOINED}.get(str(kind), {}).get(columns)
    left, right = rng.choice(sides) if sides else (columns, columns)
    pair = drawn_query(rng, left, depth - 1), drawn_query(rng, right, depth - 1)
    if kind == "product":
        return Product(*pair)
    return NaturalJoin(*pair) if isinstance(kind, str) else kind(*pair)


def some(rng: Random, rows: list[Row], most: int = 4) -> Rows:
    """Some rows of a list."""
    return frozenset(rng.sample(rows, rng.randint(0, min(most, len(rows)))))


def drawn_state(rng: Random, *, minimal: bool) -> State:
    """Relations and a transaction on some: minimal, or of any rows, be they there or not."""
    rows, gone, come = {}, {}, {}
    for name in COLUMNS:
        rows[name] = some(rng, [*EVERY_ROW])
        absent = [row for row in EVERY_ROW if row not in rows[name]]
        gone[name] = some(rng, sorted(rows[name], key=repr) if minimal else [*EVERY_ROW])
        come[name] = some(rng, absent if minimal else [*EVERY_ROW])
    return State(COLUMNS, rows, gone, come)


def cases(*, minimal: bool, number: int = 1000) -> Iterator[tuple[Expression, State]]:
    """Queries, each with a state and a transaction."""
    for seed in range(number):
        rng = Random(seed)
        query = drawn_query(rng, rng.choice([A, AB, ABC]), 1 + 3 * seed // number)
        yield query, drawn_state(rng, minimal=minimal)
