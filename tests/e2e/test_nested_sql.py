"""Nested views in SQL: ARRAY(SELECT …) and collected groups, kept inline or element by element."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import everview as ev
from cases import THOROUGH
from everview.database.database import Database
from everview.errors import UserError

if TYPE_CHECKING:
    from conftest import Open

DECLARED = """
CREATE TABLE m (name STRING, gen INT, dir STRING);
CREATE TABLE s (movie STRING, hall INT, hour INT);
"""

MODES = ("auto", "shredded", "inline")

VIEWS = {
    "related": """SELECT m.name, ARRAY(SELECT m2.name FROM m m2 WHERE m2.gen = m.gen) AS related
        FROM m""",
    "not_related": """SELECT m.name, MULTISET(SELECT m2.dir FROM m m2
        WHERE m2.gen IS NULL OR m2.gen > m.gen) AS others FROM m WHERE m.name <> 'c'""",
    "halls": """SELECT DISTINCT_M.gen, ARRAY(SELECT struct(s.hall AS hall, s.hour AS hour)
        FROM s JOIN m ON s.movie = m.name WHERE m.gen <=> DISTINCT_M.gen AND s.hour > 0) AS shows
        FROM (SELECT DISTINCT gen FROM m) DISTINCT_M""",
    "deep": """SELECT g.gen, ARRAY(SELECT struct(m.name AS name, ARRAY(
            SELECT struct(s.hall AS hall, ARRAY(SELECT s2.hour FROM s s2 WHERE s2.hall = s.hall)
            AS hour) FROM s WHERE s.movie = m.name) AS halls)
        FROM m WHERE m.gen <=> g.gen) AS movies, COUNT(*) AS n FROM m g GROUP BY g.gen""",
    "totals": """SELECT m.name, ARRAY(SELECT s.hall, COUNT(*) AS n, SUM(s.hour) AS total FROM s
        WHERE s.movie = m.name GROUP BY s.hall) AS halls FROM m""",
    "whole": "SELECT COUNT(*) AS n, ARRAY(SELECT hour FROM s) AS every FROM m",
    "combined": """SELECT m.name, ARRAY(SELECT hall FROM s WHERE s.movie = m.name
        UNION ALL SELECT gen FROM m m2 WHERE m2.dir = m.dir) AS numbers FROM m""",
    "some_of_them": """SELECT m.name, ARRAY(SELECT s.hour FROM s WHERE s.movie = m.name) AS hour FROM m
        WHERE EXISTS (SELECT 1 FROM s WHERE s.hall = m.gen)""",
}
"""Views that may be kept in each way."""

INLINE = {
    "sized": """SELECT m.name, size(ARRAY(SELECT s.hour FROM s WHERE s.movie = m.name)) AS n
        FROM m""",
    "tested": """SELECT m.name FROM m WHERE ARRAY(SELECT hall FROM s WHERE s.movie = m.name)
        = ARRAY(SELECT hall FROM s WHERE s.movie = m.dir)""",
    "united": """SELECT m.name, ARRAY(SELECT s.hour FROM s WHERE s.movie = m.name) AS hour FROM m
        UNION ALL SELECT 'all', ARRAY(SELECT s.hour FROM s)""",
    "distinct_bags": """SELECT DISTINCT ARRAY(SELECT s.hour FROM s WHERE s.movie = m.name) AS hour
        FROM m""",
    "constant": "SELECT m.name, ARRAY(SELECT c.x FROM VALUES (1), (NULL) AS c(x)) AS xs FROM m",
    "own": """SELECT m.name, ARRAY(SELECT c.x FROM VALUES (1), (2) AS c(x) WHERE c.x > m.gen) AS xs
        FROM m""",
}
"""Views whose collections are arrays in any case."""

COLLECTED = {
    "by_gen": """SELECT gen, collect_list(name) AS names, COUNT(*) AS n,
        collect_list(struct(name, dir)) AS pairs, collect_set(dir) AS dirs FROM m GROUP BY gen""",
    "at_all": "SELECT collect_list(dir) AS dirs, COUNT(*) AS n FROM m WHERE gen > 0",
    "large_groups": """SELECT gen + 1 AS g, collect_list(upper(name)) AS names FROM m GROUP BY gen + 1
        HAVING COUNT(*) > 1""",
}
"""Views of groups, which are shredded where they ask for it."""

NESTED_COLLECTED = {
    "in_array": """SELECT m.name, ARRAY(SELECT struct(s.hall AS hall, collect_list(s.hour) AS hour)
        FROM s WHERE s.movie = m.name GROUP BY s.hall) AS halls FROM m""",
}

ABOVE = {
    "elements": "SELECT name, e FROM related LATERAL VIEW explode(related) r AS e",
    "listed": "SELECT name, explode(related) AS e FROM related WHERE name > 'a'",
    "kept": """SELECT v.name, e FROM related v LATERAL VIEW OUTER explode(v.related) r AS e""",
    "counted": "SELECT e, COUNT(*) AS n FROM related, LATERAL explode(related) r(e) GROUP BY e",
    "fields": """SELECT gen, hall, hour FROM halls LATERAL VIEW inline(shows) r AS hall, hour""",
    "structs": """SELECT gen, e.hall + 1 AS h, e FROM halls
        LATERAL VIEW OUTER explode(shows) r AS e""",
    "twice": """SELECT gen, f.name, h.hall, t FROM deep LATERAL VIEW explode(movies) a AS f
        LATERAL VIEW explode(f.halls) b AS h LATERAL VIEW OUTER explode(h.hour) c AS t""",
    "arrays": "SELECT *, size(related) AS n FROM related",
    "both_ways": "SELECT v.related, e FROM related v LATERAL VIEW explode(v.related) r AS e",
    "padded": """SELECT s.movie, v.related, e FROM s LEFT JOIN related v ON v.name = s.movie
        LATERAL VIEW OUTER explode(v.related) r AS e""",
    "nothing_of_it": "SELECT name FROM related",
    "again": """SELECT v.name, ARRAY(SELECT e FROM related w LATERAL VIEW explode(w.related) r AS e
        WHERE w.name = v.name AND e <> v.name) AS others FROM related v""",
}
"""Views over `related`, `halls` and `deep`."""

UNNESTED = {
    "elements": "SELECT name, unnest(related) AS e FROM related",
    "listed": "SELECT name, unnest(related) AS e FROM related WHERE name > 'a'",
    "kept": "SELECT name, unnest(CASE WHEN len(related) = 0 THEN [NULL] ELSE related END) AS e "
    "FROM related",
    "counted": "SELECT e, COUNT(*) AS n FROM (SELECT unnest(related) AS e FROM related) GROUP BY e",
    "fields": "SELECT gen, e.hall, e.hour FROM (SELECT gen, unnest(shows) AS e FROM halls)",
    "structs": "SELECT gen, e.hall + 1 AS h, e FROM (SELECT gen, unnest(CASE WHEN len(shows) = 0 "
    "THEN [NULL] ELSE shows END) AS e FROM halls)",
    "twice": "SELECT gen, f.name, h.hall, unnest(CASE WHEN len(h.hour) = 0 THEN [NULL] ELSE h.hour "
    "END) AS t FROM (SELECT gen, f, unnest(f.halls) AS h FROM (SELECT gen, unnest(movies) AS f "
    "FROM deep))",
    "arrays": "SELECT *, len(related) AS n FROM related",
    "both_ways": "SELECT related, unnest(related) AS e FROM related",
    "padded": "SELECT movie, related, unnest(CASE WHEN related IS NULL OR len(related) = 0 THEN "
    "[NULL] ELSE related END) AS e FROM s LEFT JOIN related v ON v.name = s.movie",
    "nothing_of_it": "SELECT name FROM related",
    "again": "SELECT v.name, ARRAY(SELECT e FROM (SELECT w.name, unnest(w.related) AS e FROM "
    "related w) w WHERE w.name = v.name AND e <> v.name) AS others FROM related v",
}
"""The same in DuckDB's words."""


def as_duckdb(text: str) -> str:
    """A query of this file in the words of DuckDB, which has ARRAY(SELECT …) of one column."""
    for ours, theirs in (
        ("MULTISET(", "ARRAY("),
        ("<=>", "IS NOT DISTINCT FROM"),
        ("struct(s.hall AS hall, s.hour AS hour)", "{'hall': s.hall, 'hour': s.hour}"),
        ("struct(m.name AS name, ARRAY(", "{'name': m.name, 'halls': ARRAY("),
        ("s.movie = m.name) AS halls)\n        FROM m WHERE", "s.movie = m.name)} FROM m WHERE"),
        ("struct(s.hall AS hall, ARRAY(", "{'hall': s.hall, 'hour': ARRAY("),
        ("s2.hall = s.hall)\n            AS hour) FROM", "s2.hall = s.hall)} FROM"),
        (
            "SELECT s.hall, COUNT(*) AS n, SUM(s.hour) AS total",
            "SELECT {'hall': s.hall, 'n': COUNT(*), 'total': CAST(SUM(s.hour) AS BIGINT)}",
        ),
        ("size(", "len("),
        (
            "struct(s.hall AS hall, collect_list(s.hour) AS hour)",
            "{'hall': s.hall, 'hour': COALESCE(list(s.hour) FILTER (s.hour IS NOT NULL), [])}",
        ),
        ("collect_list(struct(name, dir))", "list({'name': name, 'dir': dir})"),
        ("FROM VALUES (1), (NULL) AS c(x)", "FROM (VALUES (1), (NULL)) AS c(x)"),
        ("FROM VALUES (1), (2) AS c(x)", "FROM (VALUES (1), (2)) AS c(x)"),
    ):
        text = text.replace(ours, theirs)
    for name in ("name", "dir", "upper(name)"):
        known = f"COALESCE(list({{}}{name}) FILTER ({name} IS NOT NULL), [])"
        text = text.replace(f"collect_list({name})", known.format(""))
        text = text.replace(f"collect_set({name})", known.format("DISTINCT "))
    return text


class Oracle:
    """Plain DuckDB over copies of the tables: it knows nothing of views that are maintained."""

    def __init__(self, views: dict[str, str]) -> None:
        self.views = views

    def answers(self, tables: dict[str, list[Any]]) -> dict[str, Counter[Any]]:
        """The rows of each view, with the elements of collections in any order."""
        with duckdb.connect() as plain:
            plain.execute("CREATE TABLE m (name TEXT, gen INT, dir TEXT)")
            plain.execute("CREATE TABLE s (movie TEXT, hall INT, hour INT)")
            for name, rows in tables.items():
                if rows:
                    plain.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
            found = {}
            for name, text in self.views.items():
                plain.execute(f"CREATE VIEW {name} AS {text}")
                found[name] = bag(plain.execute(f"SELECT * FROM {name}").fetchall())
            return found


def bag(rows: list[Any]) -> Counter[Any]:
    return Counter(map(canonical, rows))


def canonical(value: Any) -> Any:
    """A hashable value, in which the order of a list has no part."""
    if isinstance(value, list):
        return ("bag", tuple(sorted(map(canonical, value), key=repr)))
    if isinstance(value, dict):
        return tuple((name, canonical(each)) for name, each in value.items())
    return tuple(map(canonical, value)) if isinstance(value, tuple) else value


def random_row(rng: random.Random, table: str) -> tuple[Any, ...]:
    name = rng.choice(("a", "b", "c", "d", None))
    if table == "m":
        return name, rng.choice((1, 2, 3, None)), rng.choice(("a", "x", None))
    return name, rng.choice((1, 2, None)), rng.choice((0, 7, 8, None))


def random_changes(db: Database, rng: random.Random, tables: dict[str, list[Any]]) -> None:
    """One transaction of rows that come, go and move; now and then a table is emptied."""
    with db.transaction() as tx:
        for name, rows in tables.items():
            rng.shuffle(rows)
            cut = rng.choice((0, 0, 1, 2, 3, len(rows)))
            gone, rows[:] = rows[:cut], rows[cut:]
            come = [random_row(rng, name) for _ in range(rng.choice((0, 1, 2, 5)))]
            rows += come
            tx.delete(name, gone) if gone else None
            tx.insert(name, come) if come else None


def is_ascending(value: Any) -> bool:
    """Whether each list in a value is in ascending order, NULL first."""
    if isinstance(value, dict):
        return all(map(is_ascending, value.values()))
    if not isinstance(value, list | tuple):
        return True
    plain = [each for each in value if not isinstance(each, list | dict)]
    keys = [(each is not None, each or 0) for each in plain if not isinstance(each, str)]
    texts = [each for each in plain if isinstance(each, str)]
    ordered = keys == sorted(keys) and texts == sorted(texts)
    return (isinstance(value, tuple) or ordered) and all(map(is_ascending, value))


def check(db: Database, views: dict[str, str], tables: dict[str, list[Any]]) -> None:
    wanted = Oracle(views).answers(tables)
    for name in views:
        found = db.read(name).rows()
        assert bag(found) == wanted[name], name
        assert all(map(is_ascending, found)), name


def run(db: Database, declared: dict[str, str], plain: dict[str, str], seed: int, n: int) -> None:
    """Declare views over rows that are there, and compare them after each transaction."""
    rng = random.Random(seed)
    db.sql(DECLARED)
    tables: dict[str, list[Any]] = {"m": [], "s": []}
    for _ in range(3):
        random_changes(db, rng, tables)
    db.sql(";\n".join(declared.values()))
    check(db, plain, tables)
    for _ in range(n):
        random_changes(db, rng, tables)
        check(db, plain, tables)
    assert db.audit().ok
    with db.transaction() as tx:
        for name, rows in tables.items():
            tx.delete(name, rows) if rows else None
    check(db, plain, {"m": [], "s": []})
    assert db.audit().ok


def declared_as(mode: str, views: dict[str, str]) -> dict[str, str]:
    option = "" if mode == "auto" else f" WITH (nested = '{mode}')"
    return {name: f"CREATE VIEW {name}{option} AS {text}" for name, text in views.items()}


def in_duckdb(views: dict[str, str]) -> dict[str, str]:
    return {name: as_duckdb(text) for name, text in views.items()}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as opened:
        yield opened


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(6 if THOROUGH else 1))
def test_collections_equal_their_queries_in_each_mode(db: Database, mode: str, seed: int) -> None:
    views = dict(VIEWS)
    if mode != "auto":
        views |= COLLECTED | NESTED_COLLECTED
    if mode != "shredded":
        views |= INLINE
    plain = in_duckdb(views)
    run(db, declared_as(mode, views), plain, seed, 12 if THOROUGH else 6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(6 if THOROUGH else 1))
def test_views_over_nested_views_equal_their_queries(db: Database, mode: str, seed: int) -> None:
    below = {name: VIEWS[name] for name in ("related", "halls", "deep")}
    declared = declared_as(mode, below) | declared_as("auto", ABOVE)
    run(db, declared, in_duckdb(below) | UNNESTED, seed, 12 if THOROUGH else 6)
