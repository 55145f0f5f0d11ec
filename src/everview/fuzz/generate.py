"""A case from two numbers: the same ones always give the same case."""

from __future__ import annotations

from random import Random

from everview.fuzz.case import Case, Compact, Reopen, Step, View
from everview.fuzz.changes import Changer
from everview.fuzz.expressions import PORTABLE, SPARK
from everview.fuzz.queries import query
from everview.fuzz.scalars import Kit
from everview.fuzz.schemas import Drawn, schema
from everview.fuzz.writer import Field, Relation

TABLE_SIZE = 30.0
DEAREST = 12.0
"""Views that cost more are not read by others: the audit writes them out wherever they are."""
PORTABLE_CASES = 0.6
"""How many cases consist of tables and queries that mean the same in DuckDB's own SQL."""


def generate(seed: int, number: int) -> Case:
    """Tables, some of them filled, then views and transactions in turn."""
    rng = Random(f"everview {seed} {number}")
    kit = PORTABLE if rng.random() < PORTABLE_CASES else SPARK
    tables = schema(rng, portable=kit.portable)
    changer = Changer(rng, tables)
    steps: list[Step] = [each.table for each in tables]
    steps += [changer.filling(each) for each in tables if rng.random() < 0.7]
    relations = [_relation(each) for each in tables] * 2
    views = _views(rng, relations, kit)
    early = rng.randint(1, len(views))
    steps += views[:early]
    late = views[early:]
    for _ in range(rng.randint(3, 5)):
        steps.append(changer.transaction())
        steps += _upkeep(rng)
        if late and rng.random() < 0.6:
            steps.append(late.pop(0))
    return Case(seed, number, (*steps, *late))


def _views(rng: Random, relations: list[Relation], kit: Kit) -> list[View]:
    views = []
    for number in range(1, rng.randint(5, 11)):
        drawn = query(rng, relations, kit)
        views.append(View(f"v{number}", drawn.sql, portable=kit.portable))
        if drawn.size <= 2000 and drawn.cost <= DEAREST:
            relations.append(Relation(f"v{number}", drawn.fields, drawn.size, cost=drawn.cost))
    return views


def _upkeep(rng: Random) -> list[Step]:
    if rng.random() < 0.15:
        return [Reopen(other=rng.random() < 0.5)]
    return [Compact()] if rng.random() < 0.1 else []


def _relation(drawn: Drawn) -> Relation:
    fields = tuple(
        Field(column.name, column.type, wild=domain.wild)
        for column, domain in zip(drawn.table.columns, drawn.domains, strict=True)
    )
    key = drawn.table.key[0] if len(drawn.table.key) == 1 else None
    return Relation(drawn.table.name, fields, TABLE_SIZE, key)
