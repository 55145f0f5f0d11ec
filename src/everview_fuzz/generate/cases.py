"""A case from two numbers: the same ones always give the same case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from everview.expr.types import is_nested
from everview.lang.sql.parse.functions import Function
from everview.lang.sql.parse.statements import HIGHER_ORDER, POLICIES
from everview_fuzz.case import Case, Compact, Reopen, Step, View, reads
from everview_fuzz.generate.changes import ChangeGenerator
from everview_fuzz.generate.expressions import PORTABLE, SPARK
from everview_fuzz.generate.functions import functions
from everview_fuzz.generate.queries import query, recomputed_query, replacement_query
from everview_fuzz.generate.query_context import Field, Query, Relation
from everview_fuzz.generate.scalars import Kit
from everview_fuzz.generate.schemas import DrawnTable, copy, schema

TABLE_SIZE = 30.0
READABLE_MAX_COST = 12.0
"""Views that cost more are not read by others: the audit inlines them wherever they are read."""
COPY, FUNCTIONS, REPLACE, AUTO = 0.2, 0.4, 0.2, 0.06
"""How often a case copies a table, has functions or replaces a view, and a view may recompute."""
ANOTHER_POLICY = 0.3
"""How often a view that is replaced keeps its query."""
PORTABLE_CASES = 0.55
"""How many cases consist of tables and queries that mean the same in DuckDB's own SQL."""


def generate(seed: int, number: int, policy: str = "") -> Case:
    """Tables, some of them filled, then views and transactions in turn.

    With a `policy`, every view is declared with it, and all else is the same.
    """
    case = _generated(seed, number)
    if not policy:
        return case
    steps = (replace(s, policy=policy) if isinstance(s, View) else s for s in case.steps)
    return replace(case, steps=tuple(steps))


def _generated(seed: int, number: int) -> Case:
    rng = Random(f"everview {seed} {number}")
    kit = PORTABLE if rng.random() < PORTABLE_CASES else SPARK
    tables = list(schema(rng, portable=kit.portable))
    changer = ChangeGenerator(rng, tables)
    steps: list[Step] = [each.table for each in tables]
    steps += [changer.filling(each) for each in tables if rng.random() < 0.7]
    if rng.random() < COPY:
        tables.append(copy(rng, rng.choice(tables), f"t{len(tables) + 1}"))
        changer.create(tables[-1])
        steps.append(tables[-1].table)
    declared = functions(rng) if not kit.portable and rng.random() < FUNCTIONS else ()
    steps += declared
    views = _views(rng, [_relation(each) for each in tables] * 2, kit, declared)
    early = rng.randint(1, len(views))
    steps += (each.view for each in views[:early])
    for _ in range(rng.randint(3, 5)):
        steps.append(changer.transaction())
        steps += _upkeep(rng)
        if rng.random() < REPLACE:
            steps.append(_replacement(rng, views, rng.randrange(early), kit))
        if early < len(views) and rng.random() < 0.6:
            steps.append(views[early].view)
            early += 1
    return Case(seed, number, (*steps, *(each.view for each in views[early:])))


@dataclass(frozen=True, slots=True)
class _DrawnView:
    """A view, its query, and what that may read."""

    view: View
    query: Query
    known: tuple[Relation, ...]


def _views(
    rng: Random, relations: list[Relation], kit: Kit, declared: Sequence[Function]
) -> list[_DrawnView]:
    views = []
    for number in range(1, rng.randint(5, 11)):
        auto = rng.random() < AUTO
        sketch = auto and not kit.portable and rng.random() < 0.2
        made = recomputed_query(rng, relations) if sketch else query(rng, relations, kit, declared)
        refresh: Literal["strict", "auto"] = "auto" if auto else "strict"
        policy = _policy(made.sql)
        view = View(f"v{number}", made.sql, kit.portable, refresh, policy=policy)
        views.append(_DrawnView(view, made, tuple(relations)))
        if made.size <= 2000 and made.cost <= READABLE_MAX_COST:
            relations.append(Relation(f"v{number}", made.fields, made.size, cost=made.cost))
    return views


def _policy(sql: str) -> str:
    """A policy for a query, drawn from its text; often none, so that one is chosen."""
    return Random(sql).choice(("", *POLICIES, HIGHER_ORDER))


def _replacement(rng: Random, views: Sequence[_DrawnView], at: int, kit: Kit) -> View:
    """A view with another policy or query: mostly one that those who read it can bear."""
    old = views[at]
    if rng.random() < ANOTHER_POLICY:
        return replace(old.view, replaces=True, policy=rng.choice(POLICIES))
    bound = any(reads(each.view, old.view.name) for each in views)
    if rng.random() < (0.05 if bound else 0.5):
        made = query(rng, old.known, kit)
    else:
        made = replacement_query(rng, old.known, kit, old.query)
    return replace(old.view, query=made.sql, replaces=True, policy=_policy(made.sql))


def _upkeep(rng: Random) -> list[Step]:
    if rng.random() < 0.15:
        return [Reopen(other=rng.random() < 0.5)]
    return [Compact()] if rng.random() < 0.1 else []


def _relation(drawn: DrawnTable) -> Relation:
    fields = tuple(
        Field(column.name, column.type, wild=domain.wild, loose=is_nested(column.type))
        for column, domain in zip(drawn.table.columns, drawn.domains, strict=True)
    )
    key = drawn.table.key[0] if len(drawn.table.key) == 1 else None
    return Relation(drawn.table.name, fields, TABLE_SIZE, key)
