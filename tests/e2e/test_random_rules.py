"""Random rules over random graphs with cycles: what they mean, after each of fifty transactions."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import everview as ev
from e2e.random_rules import GIVEN, RuleSet, datalog, drawn, drawn_bag, meaning, sql, ways

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from everview.database.database import Database

Edge = tuple[int | None, int | None]
TRANSACTIONS = 50


def follow(db: Database, seed: int, sets: int) -> None:
    """Declare rule sets in either language; after every transaction each is what it means."""
    rng = random.Random(seed)
    nodes, chosen = _chosen(rng, sets)
    db.sql("; ".join(f"CREATE TABLE {name} (a INT, b INT)" for name in GIVEN))
    texts = [_declare(db, made, in_sql, rng) for made, in_sql in chosen]
    graph: dict[str, Counter[Edge]] = {name: Counter() for name in GIVEN}
    for number in range(TRANSACTIONS):
        many = number < TRANSACTIONS - 5
        most = {"e": 2 * nodes, "f": nodes} if many else dict.fromkeys(GIVEN, 4)
        with db.transaction() as tx:
            for name, edges in graph.items():
                gone, came = _change(rng, edges, nodes, most[name])
                tx.delete(name, gone)
                tx.insert(name, came)
        for (made, in_sql), text in zip(chosen, texts, strict=True):
            for name, wanted in _wanted(made, in_sql, graph).items():
                assert Counter(db.read(name).rows()) == wanted, (
                    f"{name} after transaction {number} of seed {seed}\n{text}\n{graph}"
                )
    assert db.audit().ok


def _chosen(rng: random.Random, sets: int) -> tuple[int, list[tuple[RuleSet, bool]]]:
    """How many nodes there are, and rule sets, each with whether it is written in SQL.

    The last one is a bag.
    """
    nodes = rng.randint(6, 9)
    chosen = [(drawn(rng, str(n), nodes), rng.random() < 0.5) for n in range(sets)]
    return nodes, [*chosen, (drawn_bag(rng, "", nodes), True)]


def _wanted(
    made: RuleSet, in_sql: bool, graph: dict[str, Counter[Edge]]
) -> dict[str, Counter[tuple[int | None, ...]]]:
    """What each relation holds."""
    if made.bag:
        return {name: ways(made, graph) for name in made.names}
    found = meaning(made, {n: _facts(edges, in_sql) for n, edges in graph.items()})
    return {name: Counter(found[name]) for name in made.names}


def _declare(db: Database, made: RuleSet, in_sql: bool, rng: random.Random) -> str:
    if not in_sql:
        db.datalog(text := datalog(made))
        return text
    views = [f"CREATE VIEW {name} AS {sql(made, name, rng)}" for name in made.names]
    db.sql(text := ";\n".join(views))
    return text


def _facts(edges: Counter[Edge], in_sql: bool) -> set[Edge]:
    """The edges, once each; to Datalog one without an end is no fact."""
    return {edge for edge in edges if in_sql or None not in edge}


def _change(
    rng: random.Random, edges: Counter[Edge], nodes: int, most: int
) -> tuple[list[Edge], list[Edge]]:
    """Some edges that go and some that come; with more than `most`, many go."""
    surplus = max(0, edges.total() - most)
    gone = rng.sample(sorted(edges.elements(), key=repr), min(edges.total(), surplus + _few(rng)))
    came = [_edge(rng, nodes) for _ in range(_few(rng) + rng.randint(0, 1))] if not surplus else []
    edges.subtract(gone)
    edges.update(came)
    for edge in [edge for edge, weight in edges.items() if not weight]:
        del edges[edge]
    return gone, came


def _few(rng: random.Random) -> int:
    return rng.choice((0, 0, 1, 1, 2))


def _edge(rng: random.Random, nodes: int) -> Edge:
    if rng.random() < 0.05:
        return rng.choice(((None, rng.randrange(nodes)), (rng.randrange(nodes), None)))
    return rng.randrange(nodes), rng.randrange(nodes)


DAILY = {87: 3, 206: 2}
"""How many rule sets are drawn from each of these seeds."""


def test_the_rule_sets_of_every_day_are_of_every_kind() -> None:
    for seed, sets in DAILY.items():
        chosen = _chosen(random.Random(seed), sets)[1]
        assert {in_sql for _, in_sql in chosen} == {True, False}
        kinds = set[str]().union(*(made.kinds for made, _ in chosen))
        assert kinds == {"linear", "non-linear", "mutual", "negation"}


@pytest.mark.parametrize("seed", DAILY)
def test_random_rules_hold_what_they_mean_after_each_of_fifty_transactions(
    tmp_path: Path, seed: int
) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        follow(db, seed, DAILY[seed])


@pytest.mark.spark
def test_random_rules_hold_what_they_mean_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        follow(db, 206, DAILY[206])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_random_rules_hold_what_they_mean(tmp_path: Path, seed: int) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        follow(db, seed, 3)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(200, 204))
def test_many_random_rules_hold_what_they_mean_on_spark(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        follow(db, seed, 3)
