"""Nested views in SQL: ARRAY(SELECT …) and collected groups, kept inline or element by element."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import everview as ev
from cases import THOROUGH
from everview.database.database import Database
from everview.errors import UserError

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
    "halls_of": """SELECT m.gen, ARRAY(SELECT struct(s.hall AS hall, ARRAY(SELECT s2.hour FROM s s2
            WHERE s2.hall = s.hall) AS hour) FROM s WHERE s.movie = m.name) AS halls FROM m""",
    "totals": """SELECT m.name, ARRAY(SELECT s.hall, COUNT(*) AS n, SUM(s.hour) AS total FROM s
        WHERE s.movie = m.name GROUP BY s.hall) AS halls FROM m""",
    "whole": "SELECT COUNT(*) AS n, ARRAY(SELECT hour FROM s) AS every FROM m",
    "combined": """SELECT m.name, ARRAY(SELECT hall FROM s WHERE s.movie = m.name
        UNION ALL SELECT gen FROM m m2 WHERE m2.dir = m.dir) AS numbers FROM m""",
    "some_of_them": """SELECT m.name, ARRAY(SELECT s.hour FROM s WHERE s.movie = m.name) AS hour
        FROM m WHERE EXISTS (SELECT 1 FROM s WHERE s.hall = m.gen)""",
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
    "large_groups": """SELECT gen + 1 AS g, collect_list(upper(name)) AS names FROM m
        GROUP BY gen + 1 HAVING COUNT(*) > 1""",
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
        ("s2\n            WHERE s2.hall = s.hall) AS hour)", "s2 WHERE s2.hall = s.hall)}"),
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


SOME = {
    "auto": ("related", "halls", "deep", "combined", "sized", "own"),
    "shredded": ("not_related", "totals", *COLLECTED, *NESTED_COLLECTED),
    "inline": ("whole", "some_of_them", "united", "tested", "large_groups"),
}
"""The views of each mode that are tried where not all of them are."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(6 if THOROUGH else 1))
def test_collections_equal_their_queries_in_each_mode(db: Database, mode: str, seed: int) -> None:
    views = dict(VIEWS)
    if mode != "auto":
        views |= COLLECTED | NESTED_COLLECTED
    if mode != "shredded":
        views |= INLINE
    if not THOROUGH:
        views = {name: views[name] for name in SOME[mode]}
    plain = in_duckdb(views)
    run(db, declared_as(mode, views), plain, seed, 12 if THOROUGH else 2)


@pytest.mark.parametrize("mode", MODES if THOROUGH else MODES[:1])
@pytest.mark.parametrize("seed", range(6 if THOROUGH else 1))
def test_views_over_nested_views_equal_their_queries(db: Database, mode: str, seed: int) -> None:
    below = {name: VIEWS[name] for name in ("related", "halls", "deep")}
    declared = declared_as(mode, below) | declared_as("auto", ABOVE)
    run(db, declared, in_duckdb(below) | UNNESTED, seed, 12 if THOROUGH else 2)


def test_each_relation_of_a_view_is_audited_by_name(db: Database) -> None:
    db.sql(DECLARED)
    below = {name: VIEWS[name] for name in ("related", "deep")}
    db.sql(";\n".join((declared_as("auto", below | {"twice": ABOVE["twice"]})).values()))
    db.insert("m", [("a", 1, "x"), ("b", 1, None)])
    db.insert("s", [("a", 2, 3)])
    inside = ["deep", "deep.movies", "deep.movies.halls", "deep.movies.halls.hour"]
    for name, found in (("deep", inside), (inside[2], inside[2:3]), ("twice", ["twice"])):
        audit = db.audit(name)
        assert audit.ok
        assert [each.view for each in audit] == found


def test_an_element_is_a_change_of_its_collection_alone(db: Database) -> None:
    """What is read and fed does not depend on how many elements there are already."""
    db.sql("CREATE TABLE docs (id INT PRIMARY KEY, title STRING)")
    db.sql("CREATE TABLE notes (id INT, doc INT, word STRING)")
    listed = (
        "SELECT d.title, ARRAY(SELECT word FROM notes n WHERE n.doc = d.id) AS words FROM docs d"
    )
    db.sql(f"CREATE VIEW listed AS {listed}")
    grouped = "SELECT doc, collect_list(struct(id, word)) AS words FROM notes GROUP BY doc"
    db.sql(f"CREATE VIEW grouped WITH (nested = 'shredded') AS {grouped}")
    db.sql("CREATE VIEW words AS SELECT title, w FROM listed LATERAL VIEW explode(words) x AS w")
    db.insert("docs", [(1, "small"), (2, "large")])
    rows = [(n, 1, "w") for n in range(10)] + [(n, 2, "w") for n in range(10, 2_010)]
    db.insert("notes", rows)
    read, fed = {}, {}
    for doc in (1, 2):
        seen = db.epoch
        db.insert("notes", [(0, doc, "new")])
        db.delete("notes", [(5 * doc, doc, "w")])
        entries = [each for each in db.history() if each.epoch > seen]
        read[doc] = sorted((each.view or "", each.rows_read) for each in entries)
        fed[doc] = sorted((each.view or "", each.rows_out) for each in entries)
        title = {1: "small", 2: "large"}[doc]
        deep = db.changes("listed", after=seen, path="words").rows()
        assert [row[:3] for row in deep] == [(doc, "new", 1), (doc, "w", -1)]
        assert db.changes("listed", after=seen).rows() == []
        deep = db.changes("grouped", after=seen, path="words").rows()
        assert [row[:4] for row in deep] == [(doc, 0, "new", 1), (doc, 5 * doc, "w", -1)]
        assert db.changes("grouped", after=seen).rows() == []
        above = db.changes("words", after=seen).rows()
        assert [row[:3] for row in above] == [(title, "new", 1), (title, "w", -1)]
    assert read[1] == read[2]
    assert fed[1] == fed[2]
    assert max(rows for _, rows in read[2]) < 30


def test_a_store_is_opened_again_and_shows_how_it_was_declared(tmp_path: Path) -> None:
    location, statements = str(tmp_path / "store"), {}
    with ev.open(location, engine="duckdb") as db:
        db.sql(DECLARED)
        for mode in MODES:
            option = f"WITH (nested = '{mode}')"
            db.sql(f"CREATE VIEW {mode}_ COMMENT 'told' {option} AS {VIEWS['halls_of']}")
            statements[mode] = db.sql(f"SHOW CREATE TABLE {mode}_").rows()[0][0]
        assert [mode for mode in MODES if option_of(mode) in statements[mode]] == [*MODES]
        db.insert("m", [("a", 1, "x"), ("b", 1, None)])
        db.insert("s", [("a", 1, 7), ("a", 1, 8)])
        db.sql("DROP VIEW auto_; DROP VIEW shredded_; DROP VIEW inline_")
        assert not db.catalog.views
        for text in statements.values():
            db.sql(text)
    with ev.open(location, engine="duckdb") as db:
        db.sql("DELETE FROM s WHERE hour = 7")
        for mode in MODES:
            found = sorted(db.read(f"{mode}_").rows(), key=repr)
            assert found == [(1, []), (1, [{"hall": 1, "hour": [8]}])]
        assert db.catalog.dictionaries("inline_") == ()
        inside = ("halls", "halls.hour")
        assert db.catalog.dictionaries("auto_") == tuple(f"auto_.{each}" for each in inside)
        assert "auto_.halls (dictionary" in db.explain("auto_", "shredded")
        assert db.audit().ok


def option_of(mode: str) -> str:
    return "AS SELECT" if mode == "auto" else f"WITH (nested = '{mode}') AS"


def test_a_transaction_and_statements_read_collections_as_arrays(db: Database) -> None:
    db.sql(DECLARED + f"CREATE VIEW related AS {VIEWS['related']}")
    db.sql("CREATE TABLE kept AS SELECT name, related AS names FROM related")
    db.sql("BEGIN; INSERT INTO m VALUES ('a', 1, 'x'), ('b', 1, 'x')")
    wanted = [("a", ["a", "b"]), ("b", ["a", "b"])]
    assert sorted(db.sql("SELECT * FROM related").rows()) == wanted
    found = db.sql("SELECT name, explode(related) AS e FROM related ORDER BY name, e").rows()
    assert found == [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")]
    assert db.read("related").rows() == []
    db.sql("COMMIT")
    db.sql("INSERT INTO kept SELECT name, related FROM related WHERE size(related) > 1")
    assert sorted(db.read("kept").rows()) == wanted
    assert db.sql("SELECT ARRAY(SELECT name FROM m) AS names").rows() == [(["a", "b"],)]
    labels = db.read("related", nested=False).rows()
    assert sorted(labels) == [("a", 1), ("b", 1)]
    assert sorted(db.sql("SELECT * FROM `related.related`").rows()) == [(1, "a"), (1, "b")]


REFUSED = {
    "SELECT ARRAY(SELECT name FROM m ORDER BY name) AS x FROM m": ("Q020", "ascending order"),
    "SELECT ARRAY(SELECT name FROM m ORDER BY 1 LIMIT 2) AS x FROM m": ("Q020", "leave it out"),
    "SELECT size(ARRAY(SELECT name FROM m LIMIT 2)) AS x FROM m": ("Q020", "ROW_NUMBER"),
    "SELECT ARRAY(SELECT nothing FROM m) AS x FROM m": ("Q007", "name, gen, dir"),
    "SELECT ARRAY(SELECT name AS a, gen AS a FROM m) AS x FROM m": ("N006", "AS"),
    "SELECT ARRAY(SELECT name FROM m) AS `a b` FROM m": ("N006", "AS"),
    "SELECT ARRAY(SELECT name AS _w, gen FROM m) AS x FROM m": ("N006", "AS"),
    "SELECT name, ARRAY(SELECT dir AS _w FROM m) AS x FROM m": ("N006", "AS"),
    "SELECT name, ARRAY(SELECT dir FROM m) AS _epoch FROM m": ("N006", "AS"),
    "SELECT name AS `a.b`, ARRAY(SELECT name FROM m) AS x FROM m": ("N006", "AS"),
}
"""What no view may say, with a word of the remedy."""
NOT_SHREDDED = {
    "SELECT name FROM m": "leave",
    "SELECT size(ARRAY(SELECT name FROM m)) AS n FROM m": "auto",
    "SELECT name FROM m WHERE ARRAY(SELECT hall FROM s) = ARRAY(SELECT gen FROM m)": "auto",
    "SELECT DISTINCT ARRAY(SELECT name FROM m) AS x FROM m": "auto",
    "SELECT ARRAY(SELECT name FROM m) AS x FROM m UNION ALL SELECT ARRAY(SELECT 'a')": "auto",
    "SELECT x FROM (SELECT ARRAY(SELECT name FROM m) AS x FROM m)": "auto",
    "SELECT name, ARRAY(SELECT name FROM m) AS x FROM m ORDER BY name LIMIT 1": "auto",
    "SELECT collect_list(name) AS x FROM m GROUP BY ROLLUP (gen)": "auto",
    "SELECT ARRAY(SELECT 1 AS a, size(ARRAY(SELECT hall FROM s)) AS b) AS x FROM m": "auto",
}
"""What a view may not say if all of its collections are shredded."""


def refusal(db: Database, text: str) -> UserError:
    """The error of a statement, which has a place in it and changes nothing."""
    before = db.epoch
    with pytest.raises(UserError) as caught:
        db.sql(text)
    assert caught.value.span is not None, text
    assert db.epoch == before
    assert not db.catalog.views
    return caught.value


def test_what_cannot_be_kept_is_refused_with_its_place_and_a_remedy(db: Database) -> None:
    db.sql(DECLARED)
    for query, (code, remedy) in REFUSED.items():
        found = refusal(db, f"CREATE VIEW v AS {query}")
        assert found.code == code, (query, found)
        assert remedy in (found.remedy or ""), (query, found)
    for query, remedy in NOT_SHREDDED.items():
        found = refusal(db, f"CREATE VIEW v WITH (nested = 'shredded') AS {query}")
        assert found.code == "N012", (query, found)
        assert remedy in (found.remedy or ""), (query, found)
    query = "SELECT name, ARRAY(SELECT name FROM m) AS x FROM m"
    assert refusal(db, f"CREATE VIEW v (a, b) AS {query}").code == "N014"
    assert refusal(db, f"CREATE VIEW v WITH (nested = 'deep') AS {query}").code == "Q003"


def test_a_view_with_dictionaries_is_replaced_and_dropped_as_a_whole(db: Database) -> None:
    db.sql(DECLARED)
    query = "SELECT name, ARRAY(SELECT name FROM m) AS x FROM m"
    db.sql(f"CREATE VIEW v AS {query}; CREATE VIEW plain AS SELECT name FROM m")
    db.sql(f"CREATE VIEW IF NOT EXISTS v AS {query}")
    for statement, code in (
        (f"CREATE VIEW v AS {query}", "C001"),
        (f"CREATE OR REPLACE VIEW v AS {query}", "C009"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1 AS a", "C009"),
        (f"CREATE OR REPLACE VIEW plain AS {query}", "C009"),
        ("DROP VIEW `v.x`", "C009"),
        ("ALTER VIEW v RENAME TO w", "C009"),
    ):
        with pytest.raises(UserError, match=code):
            db.sql(statement)
    db.sql(f"CREATE OR REPLACE VIEW plain WITH (nested = 'inline') AS {query}")
    db.sql("CREATE VIEW above AS SELECT e FROM v LATERAL VIEW explode(x) t AS e")
    with pytest.raises(UserError, match="C003"):
        db.sql("DROP VIEW v")
    db.sql("DROP VIEW above; DROP VIEW v; DROP VIEW plain")
    assert not db.catalog.views


def test_functions_see_no_labels_of_a_view_in_sql(db: Database) -> None:
    db.sql(DECLARED + f"CREATE VIEW related AS {VIEWS['related']}")
    with pytest.raises(UserError, match="N013"):
        db.nested("for r in related union sng(r.name)", name="names")


def kept(A: Any) -> Any:  # noqa: N803
    return [
        (
            x.a,
            [x.a, 7],
            [t for t in x.tags if t != x.b],
            [(y.b, [y.a, x.a], [z.b for z in A if z.a == y.a]) for y in A if y.a == x.a],
        )
        for x in A
    ]


INSIDE = {"auto": ["_4", "_4._3"], "shredded": ["_2", "_3", "_4", "_4._2", "_4._3"], "inline": []}


def test_a_comprehension_keeps_inline_what_reads_no_table(db: Database) -> None:
    db.sql("CREATE TABLE A (a INT, b STRING, tags ARRAY<STRING>)")
    db.insert("A", [(2, "z", None), (None, None, [])])
    for mode, paths in INSIDE.items():
        db.nested(kept, name=mode, nested=mode)  # type: ignore[arg-type]
        assert db.catalog.dictionaries(mode) == tuple(f"{mode}.{path}" for path in paths)
    same = (1, [1, 7], ["y"], [{"_1": "x", "_2": [1, 1], "_3": ["x", "x"]}] * 2)
    two = (2, [2, 7], [], [{"_1": "z", "_2": [2, 2], "_3": ["z"]}])
    none = (None, [None, 7], [], [{"_1": None, "_2": [None, None], "_3": [None]}])
    row = (1, "x", ["x", "y"])
    for come, gone, wanted in (
        ([row, row], [], [same, same, two, none]),
        ([(2, "z", [])], [row, row, (2, "z", None)], [two, none]),
    ):
        with db.transaction() as tx:
            tx.insert("A", come)
            tx.delete("A", gone)
        for mode in INSIDE:
            found = db.read(mode).rows()
            assert sorted(found, key=repr) == sorted(wanted, key=repr), mode
        assert db.audit().ok
    with pytest.raises(UserError, match="X002"):
        db.nested(kept, name="other", nested="deep")  # type: ignore[arg-type]


@pytest.mark.spark
def test_collections_are_kept_on_spark(spark: Any, tmp_path: Path) -> None:
    below, above = {"related": VIEWS["related"]}, {"elements": ABOVE["elements"]}
    groups = {"by_gen": COLLECTED["by_gen"]}
    rng = random.Random(3)
    tables: dict[str, list[Any]] = {"m": [], "s": []}
    with ev.open(str(tmp_path / "store"), engine="spark", spark=spark) as db:
        db.sql(DECLARED)
        random_changes(db, rng, tables)
        declared = declared_as("auto", below | above) | declared_as("shredded", groups)
        db.sql(";\n".join(declared.values()))
        plain = in_duckdb(below | groups) | {"elements": UNNESTED["elements"]}
        for _ in range(2):
            random_changes(db, rng, tables)
            check(db, plain, tables)
        found = bag(db.sql("SELECT name, explode(related) AS e FROM related").rows())
        assert found == bag(db.read("elements").rows())
        assert db.audit().ok


def test_sql_reads_what_programs_and_tables_with_collections_store(db: Database) -> None:
    """A view in SQL over a comprehension that is replaced, and over the BAG of a table."""
    db.sql(DECLARED)
    db.sql("CREATE TABLE films (name STRING PRIMARY KEY, halls BAG<STRUCT<hall: INT, hour: INT>>)")
    db.insert("m", [("a", 1, "p"), ("b", 1, "q")])
    db.insert("films", [("a", [(1, 2), (1, 2)]), ("z", [])])

    def base(m: Any) -> Any:
        return [{"name": x.name, "gen": x.gen, "own": [x.gen, 7]} for x in m]

    db.nested(base)
    db.nested("for x in base union sng(⟨name: x.name, own: x.own⟩)", name="over", nested="inline")
    db.sql("""CREATE VIEW dirs AS SELECT v.name, ARRAY(SELECT m.dir FROM m WHERE m.gen = v.gen)
        AS dirs FROM base v""")
    db.sql("""CREATE VIEW hours AS SELECT m.name, ARRAY(SELECT s.hour FROM films f
        LATERAL VIEW explode(f.halls) t AS s WHERE f.name = m.name) AS hours FROM m""")
    db.nested(
        "for x in m where x.name != 'b' union sng(⟨name: x.name, gen: x.gen, own:"
        " for y in m where y.gen == x.gen union sng(y.gen)⟩)",
        name="base",
        replace=True,
    )
    before = db.epoch
    with db.transaction() as tx:
        tx.insert("m", [("z", 1, None)])
        tx.update_inner("films", "a", "halls", insert=[(3, None)], delete=[(1, 2)])
        tx.update_inner("films", "z", "halls", insert=[(4, 5)])
    assert sorted(db.read("over").rows()) == [("a", [1, 1, 1]), ("z", [1, 1, 1])]
    assert sorted(db.read("dirs").rows()) == [("a", [None, "p", "q"]), ("z", [None, "p", "q"])]
    assert sorted(db.read("hours").rows()) == [("a", [None, 2]), ("b", []), ("z", [5])]
    deep = [row[1:3] for row in db.changes("hours", after=before, path="hours").rows()]
    assert sorted(deep, key=repr) == [(2, -1), (5, 1), (None, 1)]
    kept = {name: db.catalog.views[name].query.split("] ")[0] for name in ("base", "over", "dirs")}
    assert kept == {"base": "base := [auto", "over": "over := [inline", "dirs": "dirs := [sql auto"}
    with pytest.raises(UserError, match="N013"):
        db.nested("for x in dirs union sng(x.name)", name="wrong")
    db.nested("for x in m union sng(x.name)", name="dirs", replace=True)
    assert sorted(db.read("dirs").rows()) == [("a",), ("b",), ("z",)]
    assert db.audit().ok
