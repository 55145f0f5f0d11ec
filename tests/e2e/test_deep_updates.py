"""Tables with collections: stored shredded, changed inside, and read as they are declared."""

# ruff: noqa: C416

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import everview as ev
from everview.database.collections.changes import RelationChange
from everview.database.database import Database
from everview.errors import UserError
from everview.runtime.arrow_types import arrow_schema
from everview_fuzz.nested.collections import Schema, in_order, quoted, random_call
from everview_fuzz.nested.comprehensions import defined

if TYPE_CHECKING:
    from conftest import Open

DAY, NEXT = date(2026, 1, 1), date(2026, 1, 2)
MOVIES = """CREATE TABLE movies (name STRING PRIMARY KEY, gen STRING,
    showtimes BAG<STRUCT<cinema: STRING, day: DATE, seats: BAG<INT>>>, tags ARRAY<STRING>)"""
ROWS: list[tuple[Any, ...]] = [
    ("Drive", "Drama", [("Rex", DAY, [1, 2, 2]), ("Roxy", DAY, [])], ["b", "a"]),
    ("Rush", "Action", [], None),
]
VIEWS = {
    "seats": """SELECT m.name, s.cinema, seat FROM movies m LATERAL VIEW explode(m.showtimes) t AS s
        LATERAL VIEW explode(s.seats) u AS seat""",
    "cinemas": "SELECT cinema, COUNT(*) AS n FROM `movies.showtimes` GROUP BY cinema",
    "all_of_them": """SELECT m.name, t.s.cinema, seat FROM movies AS m
        LATERAL VIEW OUTER explode(showtimes) t AS s LATERAL VIEW OUTER explode(s.seats) AS seat""",
}


def programme(movies: Any) -> Any:
    return [
        (m.name, [(s.cinema, len(s.seats), [x for x in s.seats]) for s in m.showtimes])
        for m in movies
    ]


def rows_of(db: Database, name: str, **options: Any) -> str:
    return in_order(db.read(name, **options).rows())


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as opened:
        opened.sql(MOVIES)
        opened.insert("movies", ROWS)
        yield opened


def test_a_collection_is_changed_inside_its_row_and_views_follow(
    open_db: Open, tmp_path: Path
) -> None:
    with open_db(tmp_path / "s") as db:
        db.sql(MOVIES)
        db.insert("movies", ROWS)
        db.nested(programme)
        db.sql(f"CREATE VIEW seats AS {VIEWS['seats']}; CREATE VIEW cinemas AS {VIEWS['cinemas']}")
        seen = db.epoch
        with db.transaction() as tx:
            tx.update_inner("movies", "Rush", "showtimes", insert=[("Rex", NEXT, [7])])
            tx.update_inner(
                "movies", "Drive", ["showtimes", ("Rex", DAY), "seats"], insert=[3], delete=[2]
            )
            tx.update_inner("movies", "Drive", "showtimes", delete=[("Roxy", DAY, [])])
        db.sql(
            "INSERT INTO movies.showtimes.seats OF 'Rush', ('Rex', DATE '2026-01-02') VALUES (8)"
        )
        want = [
            ("Drive", "Drama", [("Rex", DAY, [1, 2, 3])], ["b", "a"]),
            ("Rush", "Action", [("Rex", NEXT, [7, 8])], None),
        ]
        assert rows_of(db, "movies") == in_order(want)
        assert db.read("movies", nested=False).to_arrow().column_names == ["name", "gen", "tags"]
        programmes = [("Drive", [("Rex", 3, [1, 2, 3])]), ("Rush", [("Rex", 2, [7, 8])])]
        assert rows_of(db, "programme") == in_order(programmes)
        assert sorted(db.read("cinemas").rows()) == [("Rex", 2)]
        flat = [("Drive", "Rex", 1), ("Drive", "Rex", 2), ("Drive", "Rex", 3)]
        assert sorted(db.read("seats").rows()) == [*flat, ("Rush", "Rex", 7), ("Rush", "Rex", 8)]
        assert db.changes("movies", after=seen).rows() == []
        fed = [
            (r[0], r[1], r[-2]) for r in db.changes("movies", after=seen, path="showtimes").rows()
        ]
        assert sorted(fed) == [("Drive", "Roxy", -1), ("Rush", "Rex", 1)]
        deep = db.changes("movies", after=seen, path="showtimes.seats").rows()
        assert sorted((r[-3], r[-2]) for r in deep) == [(2, -1), (3, 1), (7, 1), (8, 1)]
        assert db.audit().ok
        assert len(db.read("movies", epoch=seen).rows()) == 2
        if db.engine.name == "spark":
            frame = db.read("movies").to_spark()
            assert dict(frame.dtypes)["showtimes"].startswith("array<struct<cinema:string")
        db.delete("movies", keys=["Rush"])
    with open_db(tmp_path / "s") as db:
        assert rows_of(db, "movies") == in_order(want[:1])
        db.upsert("movies", [{"name": "Drive", "showtimes": [("Roxy", None, [4])]}])
        assert sorted(db.read("seats").rows()) == [("Drive", "Roxy", 4)]
        assert sorted(db.read("cinemas").rows()) == [("Roxy", 1)]
        assert db.audit().ok


def check_random_deep_updates(path: Path, seed: int, transactions: int) -> None:
    rng = random.Random(seed)
    schema = Schema(rng)
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    functions = [*schema.functions()]
    with ev.open(str(path), engine="duckdb") as db:
        db.sql(schema.declared)
        meant = {
            f"f{n}": defined(f"def query(T):\n    return {text}")
            for n, text in enumerate(functions)
        }
        for name, function in meant.items():
            db.nested(function, name=name, tables={"T": schema.name})
        shown = f"SELECT * FROM {quoted(schema.name)}"
        db.sql(f"CREATE VIEW shown AS {shown}")
        db.sql(f"CREATE VIEW arrays WITH (nested = 'inline') AS {shown}")

        for _ in range(transactions):
            trial = copy.deepcopy(rows)
            with db.transaction() as tx:
                for _ in range(rng.randint(1, 3)):
                    call = random_call(schema, trial)
                    with pytest.raises(UserError) if call.error else nullcontext() as refused:
                        getattr(tx, call.method)(*call.args, **call.options)
                    assert refused is None or refused.value.code == call.error
                assert in_order(tx.read(schema.name).rows()) == in_order(
                    [tuple(row.values()) for row in trial.values()]
                )
                if rng.random() < 0.15:
                    tx.rollback()
                    trial = rows
            rows = trial
            assert rows_of(db, schema.name) == in_order([tuple(r.values()) for r in rows.values()])
            for name, function in meant.items():
                assert rows_of(db, name) == in_order(function([*rows.values()])), functions
            whole = in_order([tuple(row.values()) for row in rows.values()])
            assert in_order(db.sql(shown).rows()) == rows_of(db, "shown") == whole
            assert rows_of(db, "arrays") == whole
            must_be_consistent(db, schema.name)
        assert db.audit().ok


def must_be_consistent(db: Database, name: str) -> None:
    """Every label of an element has its support, and stands for one collection (Def. 1)."""
    for top in db.catalog.tables[name].dictionaries:
        for each in top.walk():
            above = each.relation.removesuffix(f".{each.column}")
            support = db.sql(f"SELECT {listed(each.above)} FROM {quoted(above)}").rows()
            labels = [column.name for column in each.labels]
            used = db.sql(f"SELECT {listed(labels)} FROM {quoted(each.relation)}").rows()
            assert len({*support}) == len(support)
            assert {*used} <= {*support}
            states = {status.name: status.rows for status in db.status()}
            assert states[db.catalog.lookup_state(each.relation)] == states[each.relation]


def listed(names: Any) -> str:
    return ", ".join(map(quoted, names))


@pytest.mark.parametrize("seed", range(3))
def test_random_deep_updates_equal_plain_lists(tmp_path: Path, seed: int) -> None:
    check_random_deep_updates(tmp_path / "s", seed, transactions=4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_random_deep_updates_equal_plain_lists(tmp_path: Path, seed: int) -> None:
    check_random_deep_updates(tmp_path / "s", seed, transactions=15)


@pytest.mark.parametrize("name", [*VIEWS])
def test_exploded_collections_equal_their_queries_over_lists(db: Database, name: str) -> None:
    db.sql(f"CREATE VIEW {name} AS {VIEWS[name]}")
    db.sql("INSERT INTO movies.showtimes OF 'Drive' VALUES ('Rex', NULL, ARRAY(1, 9))")
    db.sql("DELETE FROM movies.showtimes.seats OF 'Drive', ('Rex', DATE '2026-01-01') VALUES (2)")
    db.sql("DELETE FROM movies.showtimes OF 'Drive' AS s WHERE s.cinema = 'Roxy'")
    showtimes = [("Drive", s) for s in (("Rex", DAY, [1, 2]), ("Rex", None, [1, 9]))]
    seats = [(title, s[0], seat) for title, s in showtimes for seat in s[2]]
    assert rows_of(db, "movies") == in_order(
        [("Drive", "Drama", [s for _, s in showtimes], ["b", "a"]), ("Rush", "Action", [], None)]
    )
    want = {
        "seats": seats,
        "cinemas": [("Rex", 2)],
        "all_of_them": [*seats, ("Rush", None, None)],
    }
    assert rows_of(db, name) == in_order(want[name])
    assert db.audit().ok


READS: dict[str, Any] = {
    "SELECT * FROM movies": lambda rows: rows,
    "SELECT m.showtimes AS s, m.name FROM movies m WHERE gen = 'Drama'": lambda rows: [
        (r[2], r[0]) for r in rows if r[1] == "Drama"
    ],
    "SELECT *, size(showtimes) AS n FROM movies": lambda rows: [(*r, len(r[2])) for r in rows],
    "SELECT name FROM movies WHERE cardinality(showtimes) > 1": lambda rows: [
        (r[0],) for r in rows if len(r[2]) > 1
    ],
    "SELECT showtimes, COUNT(*) AS n FROM movies GROUP BY showtimes": lambda rows: [
        (r[2], 1) for r in rows
    ],
    "SELECT a.name, b.showtimes FROM movies a LEFT JOIN movies b ON a.name <> b.name AND "
    "size(b.showtimes) = 0": lambda rows: [
        (r[0], found)
        for r in rows
        for found in [o[2] for o in rows if o[0] != r[0] and not o[2]] or [None]
    ],
    "WITH movies AS (SELECT * FROM movies) SELECT showtimes FROM movies": lambda rows: [
        (r[2],) for r in rows
    ],
    "SELECT name, s.cinema, s.seats FROM movies LATERAL VIEW OUTER explode(showtimes) e AS s": (
        lambda rows: [(r[0], s and s[0], s and s[2]) for r in rows for s in (r[2] or [None])]
    ),
    "SELECT s FROM movies LATERAL VIEW explode(showtimes) e AS s WHERE size(s.seats) > 0": (
        lambda rows: [(s,) for r in rows for s in r[2] if s[2]]
    ),
    "SELECT * FROM movies LATERAL VIEW explode(showtimes) e AS s": lambda rows: [
        (*r, s) for r in rows for s in r[2]
    ],
    "SELECT name, c, seats, x FROM movies LATERAL VIEW inline(showtimes) e AS c, d, seats "
    "LATERAL VIEW explode(seats) f AS x": lambda rows: [
        (r[0], s[0], s[2], x) for r in rows for s in r[2] for x in s[2]
    ],
    "SELECT m.name, ARRAY(SELECT o.showtimes FROM movies o WHERE o.name <> m.name) AS others "
    "FROM movies m": lambda rows: [(r[0], [o[2] for o in rows if o[0] != r[0]]) for r in rows],
    "SELECT name FROM movies WHERE EXISTS (SELECT 1 FROM movies o WHERE o.name <> movies.name AND "
    "size(o.showtimes) > 1)": lambda rows: [
        (r[0],) for r in rows if any(o[0] != r[0] and len(o[2]) > 1 for o in rows)
    ],
    "SELECT gen, max(showtimes) AS m FROM movies GROUP BY gen": lambda rows: [
        (r[1], r[2]) for r in rows
    ],
}
"""Queries that name collections as values, and what CPython makes of the rows."""


EXPLODED = [
    "SELECT t.a, x.k, p.n FROM t, LATERAL explode(b) AS f(x) LEFT JOIN p ON p.k = x.k",
    "SELECT t.a, x.k, p.n FROM t CROSS JOIN LATERAL explode(b) AS f(x) FULL JOIN p ON p.k = t.a",
    "SELECT t.a, x.k, p.n FROM t CROSS JOIN LATERAL explode(b) AS f(x) RIGHT JOIN p ON p.k = x.k",
    "SELECT t.a, x.k, p.n FROM t LEFT JOIN p ON p.k = t.a CROSS JOIN LATERAL explode(b) AS f(x)",
    "SELECT t.a, x.k FROM t LEFT JOIN LATERAL explode(b) AS f(x) ON TRUE",
    "SELECT t.a, x.k FROM t JOIN LATERAL explode(b) AS f(x) ON x.k > 1",
    "SELECT a, x.k, y FROM t, LATERAL explode(b) AS f(x) "
    "LEFT JOIN LATERAL explode(x.low) AS g(y) ON TRUE",
    "SELECT p.n, x FROM p LEFT JOIN t ON t.a = p.k LATERAL VIEW OUTER explode(s) f AS x",
    "SELECT a, e, e IS NULL AS none FROM t LATERAL VIEW OUTER explode(b) f AS e",
    "SELECT a FROM t LATERAL VIEW OUTER explode(b) f AS e WHERE e IS NULL",
    "SELECT a, e FROM t LATERAL VIEW OUTER explode(b) f AS e "
    "WHERE (SELECT COUNT(*) FROM p WHERE e IS NULL OR k = e.k) > 0",
    "SELECT * FROM t LATERAL VIEW OUTER explode(b) f AS e",
    "SELECT a, e, x FROM t LATERAL VIEW OUTER inline(b) f AS e, x WHERE x IS NULL OR e > 1",
    "SELECT * FROM t, LATERAL explode(s) AS f(x), p",
    "SELECT * FROM p, t, LATERAL inline(b) AS f(x, y)",
    "SELECT a, e.k, ARRAY(SELECT o.a FROM t o WHERE o.v <=> e.k) AS n FROM t "
    "LATERAL VIEW explode(b) f AS e",
    "SELECT a, e FROM t LATERAL VIEW explode(s) f AS e WHERE e IN (SELECT o.v + e FROM t o)",
    "SELECT a, e.k FROM t LATERAL VIEW explode(b) f AS e "
    "WHERE (SELECT COUNT(*) FROM t o WHERE o.v < e.k AND size(e.low) > 0) > 1",
    "SELECT a, e.k FROM t LATERAL VIEW explode(b) f AS e "
    "WHERE EXISTS (SELECT 1 FROM t o LATERAL VIEW explode(o.s) g AS y WHERE y = e.k)",
    "SELECT a, e.k FROM t LATERAL VIEW explode(b) f AS e "
    "WHERE EXISTS (SELECT 1 FROM explode(e.low) AS g(y) WHERE y > 1)",
    "SELECT a, x FROM t LATERAL VIEW inline(b) f AS x, low "
    "WHERE EXISTS (SELECT 1 FROM p WHERE k = x)",
    "SELECT a, e.k, ARRAY(SELECT e.k + o.a FROM t o LATERAL VIEW explode(o.b) g AS e) AS n FROM t "
    "LATERAL VIEW explode(b) f AS e",
]
"""Explosions among joins and around subqueries, of collections and of arrays."""


def test_explode_of_a_collection_means_what_it_means_of_an_array(tmp_path: Path) -> None:
    rows = [(1, 0, [(1, [1, 2]), (2, [])], [1]), (2, 7, [(7, [9])], [2, 2]), (3, 1, [], [])]
    rows += [(4, None, [(None, [2]), (2, [])], [None, 7])]
    with embedded(tmp_path / "s") as db:
        for name, word in (("t", "BAG"), ("u", "ARRAY")):
            inner = f"{word}<STRUCT<k: INT, low: {word}<INT>>>"
            db.sql(f"CREATE TABLE {name} (a INT PRIMARY KEY, v INT, b {inner}, s {word}<INT>)")
        db.sql("CREATE TABLE p (k INT, n INT)")
        both = [(text, re.sub(r"\bt\b", "u", text)) for text in EXPLODED]
        for number, (text, of_arrays) in enumerate(both):
            db.sql(f"CREATE VIEW w{number} AS {text}")
            db.sql(f"CREATE VIEW x{number} AS {of_arrays}")

        def check() -> None:
            for number, (text, of_arrays) in enumerate(both):
                want = in_order(db.sql(of_arrays).rows())
                assert in_order(db.sql(text).rows()) == want, text
                assert rows_of(db, f"w{number}") == rows_of(db, f"x{number}") == want, text

        db.insert("p", [(1, 10), (7, 70)])
        for change in (rows[:2], rows[2:]):
            db.insert("t", change)
            db.insert("u", change)
            check()
        with db.transaction() as tx:
            tx.update_inner("t", 3, "b", insert=[(7, [1])])
            tx.update_inner("t", 2, "b", delete=[(7, [9])])
            tx.update_inner("t", 1, ["b", (1,), "low"], delete=[1])
            tx.delete("p", [(7, 70)])
            tx.upsert("u", [(3, 1, [(7, [1])], []), (2, 7, [], [2, 2])])
            tx.upsert("u", [(1, 0, [(1, [2]), (2, [])], [1])])
        check()
        assert db.audit().ok
        for text in (
            "SELECT a FROM t RIGHT JOIN LATERAL explode(b) AS f(x) ON TRUE",
            "SELECT a FROM t JOIN LATERAL explode_outer(b) AS f(x) ON x.k > 1",
        ):
            with pytest.raises(UserError, match="Q020"):
                db.sql(text)


def ordered(value: Any) -> Any:
    """A value in which structs are tuples, and collections have an order."""
    if isinstance(value, dict):
        return tuple(ordered(each) for each in value.values())
    if isinstance(value, list):
        return sorted((ordered(each) for each in value), key=repr)
    return tuple(ordered(each) for each in value) if isinstance(value, tuple) else value


def check_reads(open_db: Open, path: Path, queries: list[str]) -> None:
    """Queries and views of them, before and after deep updates, equal what CPython answers."""
    rows = copy.deepcopy(ROWS)
    with open_db(path) as db:
        db.sql(MOVIES)
        db.insert("movies", ROWS)
        for number, query in enumerate(queries):
            db.sql(f"CREATE VIEW v{number} AS {query}")

        def check() -> None:
            for number, query in enumerate(queries):
                want = ordered(READS[query](rows))
                assert ordered(db.sql(query).rows()) == want, query
                assert ordered(db.read(f"v{number}").rows()) == want, query
                assert ordered(db.sql(f"SELECT * FROM v{number}").rows()) == want, query

        check()
        with db.transaction() as tx:
            tx.update_inner("movies", "Rush", "showtimes", insert=[("Rex", NEXT, [7])])
            tx.update_inner("movies", "Drive", "showtimes", delete=[("Roxy", DAY, [])])
            where = ["showtimes", ("Rex", DAY), "seats"]
            tx.update_inner("movies", "Drive", where, insert=[3], delete=[2])
        rows[0][2][:] = [("Rex", DAY, [1, 2, 3])]
        rows[1][2][:] = [("Rex", NEXT, [7])]
        check()
        assert db.audit().ok


def embedded(path: Path, **options: Any) -> Database:
    return ev.open(str(path), engine="duckdb", **options)


def test_a_collection_is_an_array_where_sql_names_it_as_a_value(tmp_path: Path) -> None:
    check_reads(embedded, tmp_path / "s", [*READS])


def test_a_collection_is_an_array_on_each_engine_too(open_db: Open, tmp_path: Path) -> None:
    few = [query for query in READS if query.startswith(("SELECT *", "SELECT name, s", "SELECT g"))]
    check_reads(open_db, tmp_path / "s", few)


def test_a_view_that_shows_a_collection_follows_it_by_elements(db: Database) -> None:
    db.sql("CREATE VIEW shown AS SELECT name, showtimes AS s FROM movies WHERE gen = 'Drama'")
    db.sql("CREATE TABLE copied AS SELECT name, showtimes FROM movies")
    assert rows_of(db, "copied") == in_order([(r[0], r[2]) for r in ROWS])
    seen = db.epoch
    db.sql("INSERT INTO movies.showtimes OF 'Drive' VALUES ('Rex', NULL, ARRAY(1, 9))")
    assert db.changes("shown", after=seen).rows() == []
    (change,) = db.changes("shown", after=seen, path="s").rows()
    assert change[0] == "Drive"
    assert "Rex" in change
    assert len(db.sql(f"SELECT showtimes FROM movies VERSION AS OF {seen}").rows()) == 2
    before = db.sql(f"SELECT size(showtimes) AS n FROM movies VERSION AS OF {seen}").rows()
    assert sorted(before) == [(0,), (2,)]
    assert sorted(db.sql("SELECT size(showtimes) AS n FROM movies").rows()) == [(0,), (3,)]
    assert db.audit().ok


def planted(db: Database, relation: str, rows: list[tuple[Any, ...]]) -> None:
    """Add rows with their weights to a stored relation, whatever they do to the others."""
    schema = arrow_schema(db.catalog.tables[relation].columns)
    columns = zip(*rows, strict=True)
    arrays = [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
    with db.transaction() as tx:
        tx.add_deep([RelationChange(relation, pa.table(arrays, schema=schema), True)])


def test_an_audit_finds_labels_that_are_missing_dangling_or_shared(db: Database) -> None:
    assert db.audit().ok
    assert [each.view for each in db.audit("movies")] == [
        "movies.showtimes",
        "movies.showtimes.seats",
    ]
    planted(db, "movies.showtimes", [("Up", "Rex", None, None, 1, 1)])  # no movie, no label
    (label, *_), *_ = db.sql("SELECT label FROM `movies.showtimes.seats`").rows()
    planted(db, "movies.showtimes", [("Rush", "Rex", None, label, 2, 1)])  # a label of another
    planted(db, "movies.showtimes.seats", [(-7, 5, 3, 1)])  # a label that nothing has
    for audit in (db.audit(), db.audit("movies")):
        found = {each.view: each for each in audit}
        assert not audit.ok
        assert found["movies.showtimes"].surplus == (("Up", "Rex", None, None, 1),)
        assert found["movies.showtimes"].missing == ()
        assert found["movies.showtimes.seats"].surplus == ((-7, 5, 3),)
        assert sorted(found["movies.showtimes.seats"].missing, key=repr) == [(label,), (None,)]
    assert found["movies.showtimes.seats"].rows == 4


def work_of(path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Rows looked up, read and written by deep updates of a collection of some size."""
    found: list[tuple[int, ...]] = []
    with ev.open(str(path), engine="duckdb") as db:
        db.sql(MOVIES)
        many = [(f"c{number}", DAY, [1]) for number in range(size)]
        db.insert(
            "movies", [("wide", "x", many, None), ("long", "x", [("c", DAY, [*range(size)])], None)]
        )
        db.nested(programme)
        db.sql(f"CREATE VIEW seats AS {VIEWS['seats']}; CREATE VIEW cinemas AS {VIEWS['cinemas']}")
        looked_up = [0]
        lookup = type(db.engine).lookup

        def counted(*given: Any) -> Any:
            rows = lookup(*given)
            looked_up[0] += rows.num_rows
            return rows

        monkeypatch.setattr(type(db.engine), "lookup", counted)
        for key, where, change in (
            ("wide", "showtimes", {"insert": [("new", DAY, [5])]}),
            ("wide", "showtimes", {"delete": [("c3", DAY, [1])]}),
            ("long", ["showtimes", ("c", DAY), "seats"], {"insert": [-1], "delete": [5]}),
            ("wide", ["showtimes", ("c4", DAY), "seats"], {"insert": [7]}),
        ):
            looked_up[0], seen = 0, db.epoch
            with db.transaction() as tx:
                tx.update_inner("movies", key, where, **change)
            whole = next(e for e in db.history(1) if e.view is None)
            feeds = len(db.changes("seats", after=seen).rows())
            found.append((looked_up[0], whole.rows_read, whole.rows_in, whole.rows_out, feeds))
        assert db.audit().ok
        monkeypatch.undo()
    return found


def test_the_work_of_a_deep_update_does_not_grow_with_the_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = (work_of(tmp_path / str(n), n, monkeypatch) for n in (10, 10_000))
    assert small == large
    assert max(max(each) for each in small) < 20


@pytest.mark.parametrize(
    ("key", "path", "change", "code"),
    [
        ("Up", "showtimes", {"insert": [("Rex", DAY, [])]}, "T011"),
        ("Drive", "show", {"insert": [("Rex", DAY, [])]}, "N008"),
        ("Drive", "tags", {"insert": ["c"]}, "N008"),
        ("Drive", ["showtimes", ("Odeon", DAY), "seats"], {"insert": [1]}, "T011"),
        ("Drive", ["showtimes", {"day": DAY}, "seats"], {"insert": [1]}, "T017"),
        ("Drive", ["showtimes", ("Rex", DAY), "cinema"], {"insert": [1]}, "N008"),
        ("Drive", ["showtimes", ("Rex", DAY)], {"insert": [1]}, "X002"),
        ("Drive", ["showtimes", {}, "seats"], {"insert": [1]}, "T011"),
        ("Drive", "showtimes.seats", {"insert": [1]}, "N008"),
        ("Drive", "showtimes", {"insert": [("Rex", "never", [])]}, "T001"),
        ("Drive", "showtimes", {"insert": [("Rex", DAY)]}, "T001"),
        ("Drive", "showtimes", {"insert": [("Rex", DAY, None)]}, "T012"),
        ("Drive", "showtimes", {"delete": [("Rex", DAY, [1, 2])]}, "T011"),
        ("Drive", ["showtimes", ("Rex", DAY), "seats"], {"delete": [1, 1]}, "T011"),
        ("Drive", ["showtimes", ("Rex", DAY), "seats"], {"insert": ["x"]}, "T001"),
        (None, "showtimes", {"insert": [("Rex", DAY, [])]}, "T011"),
    ],
)
def test_a_deep_update_that_cannot_be_made_changes_nothing(
    db: Database, key: Any, path: Any, change: dict[str, Any], code: str
) -> None:
    epoch = db.epoch
    with pytest.raises(UserError) as refused, db.transaction() as tx:
        tx.update_inner("movies", key, path, **change)
    assert refused.value.code == code
    assert refused.value.remedy
    assert db.epoch == epoch
    assert rows_of(db, "movies") == in_order(ROWS)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE TABLE t (a INT, b BAG<INT>)", "Q004"),
        ("CREATE TABLE t (a DOUBLE PRIMARY KEY, b BAG<INT>)", "Q004"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b ARRAY<STRUCT<c: BAG<INT>>>)", "Q005"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b ARRAY<INT>) WITH (nested = 'so')", "Q003"),
        ("CREATE TABLE t (a INT PRIMARY KEY DEFAULT 1, b BAG<INT>)", "Q004"),
        ("ALTER TABLE movies ADD COLUMN x INT", "C009"),
        ("ALTER TABLE movies RENAME TO films", "C009"),
        ("DROP TABLE `movies.showtimes`", "C009"),
        ("INSERT INTO `movies.showtimes` VALUES ('Drive', 'Rex', NULL, 1, 1)", "C004"),
        ("UPDATE movies SET name = 'x'", "C009"),
        ("UPDATE movies SET showtimes = NULL", "T012"),
        ("UPDATE movies SET showtimes = ARRAY(), Showtimes = ARRAY()", "Q008"),
        ("UPDATE movies SET nothing = ARRAY()", "Q007"),
        ("INSERT INTO movies (name) VALUES ('Up') ON CONFLICT (gen) DO NOTHING", "T004"),
        (
            "INSERT INTO movies (name, gen) VALUES ('Drive', 'a'), ('Drive', 'b') "
            "ON CONFLICT DO NOTHING",
            "T006",
        ),
        (
            "INSERT INTO movies (name) VALUES ('Drive') ON CONFLICT DO UPDATE SET name = 'x'",
            "C009",
        ),
        (
            "INSERT INTO movies (name) VALUES ('Drive') ON CONFLICT DO UPDATE SET showtimes = NULL",
            "T012",
        ),
        (
            "MERGE INTO movies USING movies m ON m.name = movies.name WHEN MATCHED THEN DELETE",
            "C009",
        ),
        ("INSERT INTO movies OF 'Drive' VALUES (1)", "N008"),
        ("INSERT INTO movies.shows OF 'Drive' VALUES (1)", "N008"),
        ("INSERT INTO movies.showtimes.seats OF 'Drive' VALUES (1)", "Q009"),
        ("INSERT INTO movies.showtimes OF 'Up' VALUES ('Rex', NULL, ARRAY())", "T011"),
        ("DELETE FROM movies.showtimes OF 'Drive' VALUES ('Odeon', NULL, ARRAY())", "T011"),
        (
            "SELECT * FROM movies NATURAL JOIN movies n LATERAL VIEW explode(showtimes) t AS s",
            "Q020",
        ),
        ("SELECT name, posexplode(showtimes) FROM movies", "Q020"),
        ("INSERT INTO movies (name) VALUES ('Drive')", "T010"),
        ("UPDATE movies.showtimes OF 'Drive' SET seats = ARRAY()", "C009"),
        ("UPDATE movies.showtimes OF 'Drive' SET name = 'x'", "Q007"),
        ("UPDATE movies.showtimes OF 'Drive' SET day = NULL, Day = NULL", "Q008"),
        ("UPDATE movies.showtimes OF 'Up' SET day = NULL", "T011"),
        ("UPDATE movies.showtimes.seats OF 'Drive' SET element = 1", "Q009"),
    ],
)
def test_a_statement_that_cannot_be_made_changes_nothing(
    db: Database, text: str, code: str
) -> None:
    epoch = db.epoch
    with pytest.raises(UserError) as refused:
        db.sql(text)
    assert (refused.value.code, db.epoch) == (code, epoch), refused.value
    assert rows_of(db, "movies") == in_order(ROWS)


def test_a_part_of_an_element_is_updated_and_what_is_inside_it_stays(db: Database) -> None:
    db.nested(programme)
    db.sql(f"CREATE VIEW seats AS {VIEWS['seats']}")
    seen = db.epoch
    db.sql(
        "UPDATE movies.showtimes OF 'Drive' AS s SET cinema = upper(s.cinema) WHERE day IS NOT NULL"
    )
    db.sql(
        "UPDATE movies.showtimes.seats OF 'Drive', ('REX', DATE '2026-01-01') "
        "SET element = element + 10 WHERE element = 2"
    )
    db.sql("UPDATE movies.showtimes OF 'Drive' SET day = NULL WHERE cinema = 'nowhere'")
    showtimes = [("REX", DAY, [1, 12, 12]), ("ROXY", DAY, [])]
    assert rows_of(db, "movies") == in_order(
        [("Drive", "Drama", showtimes, ["b", "a"]), ("Rush", "Action", [], None)]
    )
    assert sorted(db.read("seats").rows()) == [
        ("Drive", "REX", 1),
        ("Drive", "REX", 12),
        ("Drive", "REX", 12),
    ]
    programmes = [("Drive", [("REX", 3, [1, 12, 12]), ("ROXY", 0, [])]), ("Rush", [])]
    assert rows_of(db, "programme") == in_order(programmes)
    assert db.changes("movies", after=seen).rows() == []
    deep = db.changes("movies", after=seen, path="showtimes.seats").rows()
    assert sorted((r[-3], r[-2]) for r in deep) == [(2, -2), (12, 2)]
    with db.transaction() as tx:
        tx.update_inner("movies", "Drive", "showtimes", delete=[("REX", DAY)])
    assert db.audit().ok
    must_be_consistent(db, "movies")


Boxes = dict[int, tuple[int, list[tuple[int, list[int]]]]]
"""By key, a value, and a collection of numbers with a collection each."""

BOXES: Boxes = {
    1: (0, [(1, [1, 2]), (2, [])]),
    2: (5, [(7, [9]), (7, [9]), (7, [])]),
    3: (0, []),
}
CONDITIONS: dict[str, Any] = {
    "DELETE FROM t WHERE size(b) > 1": lambda old: {k: r for k, r in old.items() if len(r[1]) < 2},
    "DELETE FROM t AS u WHERE EXISTS (SELECT 1 FROM explode(u.b) AS e(x) WHERE x.k = v + 2)": (
        lambda old: {k: r for k, r in old.items() if all(x[0] != r[0] + 2 for x in r[1])}
    ),
    "DELETE FROM t WHERE v + 1 IN (SELECT e.k FROM t o LATERAL VIEW explode(o.b) f AS e)": (
        lambda old: {
            k: r
            for k, r in old.items()
            if all(x[0] != r[0] + 1 for other in old.values() for x in other[1])
        }
    ),
    "UPDATE t SET v = (SELECT SUM(x.k) FROM explode(b) AS e(x)) WHERE size(b) > 0": lambda old: {
        k: (sum(x[0] for x in r[1]) if r[1] else r[0], r[1]) for k, r in old.items()
    },
    "DELETE FROM t.b OF 2 WHERE size(low) > 0": lambda old: {
        k: (r[0], [x for x in r[1] if k != 2 or not x[1]]) for k, r in old.items()
    },
    "DELETE FROM t.b OF 2 AS x WHERE NOT EXISTS (SELECT 1 FROM explode(x.low) AS e(y))": (
        lambda old: {k: (r[0], [x for x in r[1] if k != 2 or x[1]]) for k, r in old.items()}
    ),
    "UPDATE t.b OF 2 SET k = size(low) WHERE k IN (SELECT n + 6 FROM place)": lambda old: {
        k: (r[0], [(len(x[1]) if k == 2 else x[0], x[1]) for x in r[1]]) for k, r in old.items()
    },
}
"""Statements whose conditions and values name collections, and what they make of the rows."""


def check_conditions(open_db: Open, path: Path, statements: list[str]) -> None:
    """Statements leave the rows that CPython leaves, in a transaction that changes others too."""
    low = "BAG<STRUCT<k: INT, low: BAG<INT>>>"
    with open_db(path) as db:
        db.sql(f"CREATE TABLE t (a INT PRIMARY KEY, v INT, b {low}); CREATE TABLE place (n INT)")
        db.sql("CREATE VIEW wide AS SELECT a, size(b) AS n FROM t WHERE size(b) > 0")
        db.sql("CREATE TABLE sizes (a INT PRIMARY KEY, n INT)")
        for text in statements:
            with db.transaction() as tx:
                tx.sql("DELETE FROM t; DELETE FROM sizes; DELETE FROM place")
                tx.insert("t", [(k, v, b) for k, (v, b) in BOXES.items()])
                tx.insert("place", [(1,)])
                tx.insert("sizes", [(1, 0), (4, 0)])
                tx.sql(text)
                tx.sql("""MERGE INTO sizes USING t ON t.a = sizes.a
                    WHEN MATCHED THEN UPDATE SET n = size(t.b)
                    WHEN NOT MATCHED THEN INSERT (a, n) VALUES (t.a, size(t.b))""")
            want = CONDITIONS[text](copy.deepcopy(BOXES))
            assert rows_of(db, "t") == in_order([(k, *row) for k, row in want.items()]), text
            wide = [(k, len(b)) for k, (_, b) in want.items()]
            assert sorted(db.read("wide").rows()) == sorted(row for row in wide if row[1])
            sizes = {1: 0, 4: 0, **dict(wide)}
            assert sorted(db.read("sizes").rows()) == sorted(sizes.items())
        assert db.audit().ok
        must_be_consistent(db, "t")


def test_conditions_and_values_of_statements_name_collections(tmp_path: Path) -> None:
    check_conditions(embedded, tmp_path / "s", [*CONDITIONS])


def test_conditions_name_collections_on_each_engine_too(open_db: Open, tmp_path: Path) -> None:
    check_conditions(open_db, tmp_path / "s", [*CONDITIONS][-3:-1])


def test_update_and_on_conflict_replace_collections(open_db: Open, tmp_path: Path) -> None:
    low = "BAG<STRUCT<k: INT, low: BAG<INT>>>"
    with open_db(tmp_path / "s") as db:
        db.sql(f"CREATE TABLE t (a INT, c STRING, v INT, b {low}, s BAG<INT>, PRIMARY KEY (a, c))")
        db.sql(
            "CREATE VIEW lows AS SELECT a, e.k, y FROM t LATERAL VIEW explode(b) f AS e "
            "LATERAL VIEW explode(e.low) g AS y"
        )
        rows = {
            (1, "x"): [0, [(1, [1, 2]), (2, [])], [1]],
            (2, "x"): [5, [(7, [9])], [2, 2, 3]],
            (3, "y"): [0, [], []],
        }

        def check() -> None:
            assert rows_of(db, "t") == in_order([(*key, *row) for key, row in rows.items()])
            lows = [(a, e[0], y) for (a, _), r in rows.items() for e in r[1] for y in e[1]]
            assert sorted(db.read("lows").rows()) == sorted(lows)
            must_be_consistent(db, "t")

        db.insert("t", [(*key, *row) for key, row in rows.items()])
        check()
        seen = db.epoch
        one = "ARRAY(named_struct('k', v + 1, 'low', s))"
        assert (
            db.sql(f"UPDATE t SET b = {one}, s = ARRAY(2, v), V = 9 WHERE size(s) > 1").changed == 1
        )
        rows[2, "x"] = [9, [(6, [2, 2, 3])], [2, 5]]
        check()
        fed = db.changes("t", after=seen, path="s").rows()
        assert sorted((row[-3], row[-2]) for row in fed) == [(2, -1), (3, -1), (5, 1)]
        assert db.sql("UPDATE t SET s = ARRAY() WHERE a > 7").changed == 0
        fresh = "(4, 'x', 4, ARRAY(), ARRAY(4))"
        given = f"(1, 'x', 1, ARRAY(), ARRAY(8)), {fresh}, {fresh}"
        assert db.sql(f"INSERT INTO t VALUES {given} ON CONFLICT DO NOTHING").changed == 1
        rows[4, "x"] = [4, [], [4]]
        check()
        update = "DO UPDATE SET s = excluded.s, v = t.v + excluded.v WHERE size(t.s) < 2"
        given = "(1, 'x', 2, ARRAY(), ARRAY(8)), (2, 'x', 1, ARRAY(), ARRAY(8))"
        given += ", (5, 'x', 4, ARRAY(), ARRAY())"
        assert db.sql(f"INSERT INTO t VALUES {given} ON CONFLICT (c, a) {update}").changed == 2
        rows[1, "x"][0], rows[1, "x"][2], rows[5, "x"] = 2, [8], [4, [], []]
        check()
        with db.transaction() as tx:
            tx.update_inner("t", (1, "x"), ["b", (2,), "low"], insert=[4])
            tx.sql("UPDATE t SET b = filter(b, e -> size(e.low) <> 2) WHERE c = 'x'")
            tx.insert("t", [(6, "x", 1, [], [])])
            own = "INSERT INTO t (a, c, v) VALUES (6, 'x', 5)"
            tx.sql(f"{own} ON CONFLICT DO UPDATE SET v = excluded.v")
        rows[1, "x"][1], rows[6, "x"] = [(2, [4])], [5, [], []]
        check()
        db.update("t", keys=[(1, "x"), (2, "x")], set={"S": [3, 3]})
        db.update("t", [{"a": 3, "c": "y", "v": 8, "b": [(1, [1])]}])
        db.update("t", {(4, "x"): {"v": None}, (5, "x"): {"v": 1}})
        rows[1, "x"][2] = rows[2, "x"][2] = [3, 3]
        rows[3, "y"], rows[4, "x"][0], rows[5, "x"][0] = [8, [(1, [1])], []], None, 1
        check()
        for keys, values, code in (
            ((9, "x"), {"s": []}, "T011"),
            ((1, "x"), {"s": None}, "T012"),
            ((1, "x"), {"s": ["x"]}, "T001"),
        ):
            with pytest.raises(UserError, match=code):
                db.update("t", keys=[keys], set=values)
        check()
        assert db.audit().ok


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_are_copied_into_a_table_with_collections(
    open_db: Open, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "files").mkdir()
    file = tmp_path / "files" / f"movies.{kind}"
    with embedded(tmp_path / "e", allow=[f"files:{tmp_path}/files"]) as db:
        db.sql(MOVIES)
        db.insert("movies", ROWS)
        assert db.sql(f"COPY (SELECT * FROM movies) TO '{file}'").changed == 2
    allow = [f"files:{tmp_path}/files", "files:s3://bucket"]
    with open_db(tmp_path / "s", allow=allow) as db:
        db.sql(MOVIES)
        db.sql(f"CREATE VIEW seats AS {VIEWS['seats']}")
        db.insert("movies", ROWS)
        db.sql("DELETE FROM movies")
        assert db.sql(f"COPY INTO movies FROM '{file}'").changed == 2
        assert rows_of(db, "movies") == in_order(ROWS)
        assert len(db.read("seats").rows()) == 3
        with pytest.raises(UserError, match="T010"):
            db.sql(f"COPY INTO movies FROM '{file}'")
        db.sql("DELETE FROM movies")
        assert db.read("seats").rows() == []
        db.insert("movies", file)
        assert rows_of(db, "movies") == in_order(ROWS)
        assert db.audit().ok
        with pytest.raises(UserError, match="C009"):
            db.sql("COPY INTO movies FROM 's3://bucket/movies.parquet'")


def test_an_assertion_over_collections_is_verified_on_the_change(
    open_db: Open, tmp_path: Path
) -> None:
    with open_db(tmp_path / "s") as db:
        db.sql(MOVIES)
        db.insert("movies", ROWS)
        few = "NOT EXISTS (SELECT m.name FROM movies m WHERE size(m.showtimes) > 2)"
        low = """NOT EXISTS (SELECT name, seat FROM movies LATERAL VIEW explode(showtimes) t AS s
            LATERAL VIEW explode(s.seats) u AS seat WHERE seat > 100)"""
        total = "(SELECT COUNT(*) FROM movies LATERAL VIEW explode(showtimes) t AS s) < 5"
        for number, each in enumerate((few, low, total)):
            db.sql(f"CREATE ASSERTION a{number} CHECK ({each})")
        with pytest.raises(UserError, match="a3 is violated"):
            db.sql(f"CREATE ASSERTION a3 CHECK ({few.replace('> 2', '> 1')})")
        place = f"'Drive', ('Rex', DATE '{DAY}')"
        showtime = f"struct('x' AS cinema, DATE '{DAY}' AS day, ARRAY(300) AS seats)"
        for change, name in (
            ("INSERT INTO movies.showtimes OF 'Drive' VALUES ('Odeon', NULL, ARRAY())", "a0"),
            (f"INSERT INTO movies.showtimes.seats OF {place} VALUES (101)", "a1"),
            (f"UPDATE movies.showtimes.seats OF {place} SET element = 200", "a1"),
            (f"INSERT INTO movies (name, showtimes) SELECT 'Up', ARRAY({showtime})", "a1"),
        ):
            seen = db.epoch
            with pytest.raises(UserError) as refused:
                db.sql(change)
            assert (refused.value.code, db.epoch) == ("T014", seen), refused.value
            assert f"{name} is violated: CHECK (" in refused.value.problem
            assert rows_of(db, "movies") == in_order(ROWS)
        with db.transaction() as tx:
            many = [(cinema, None, [100]) for cinema in "ab"]
            tx.update_inner("movies", "Rush", "showtimes", insert=many)
            tx.delete("movies", keys=["Drive"])
        assert db.audit().ok
    with open_db(tmp_path / "s") as db, pytest.raises(UserError, match="a0 is violated"):
        db.sql("INSERT INTO movies.showtimes OF 'Rush' VALUES ('d', NULL, ARRAY())")


def test_a_collection_three_levels_down_is_changed(tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "s"), engine="duckdb") as db:
        low, mid = "BAG<STRUCT<k: INT, v: INT>>", "BAG<STRUCT<k: STRING, low: {}>>"
        top = f"BAG<STRUCT<k: INT, mid: {mid.format(low)}>>"
        db.sql(f"CREATE TABLE t (a INT, b STRING, top {top}, PRIMARY KEY (a, b))")
        db.insert("t", [(1, "x", [(1, [("p", [(1, 10)]), ("q", [])]), (2, [])]), (2, "y", [])])
        db.sql("""
            CREATE VIEW lows AS SELECT t.a, o.k, m.k AS mk, l.v FROM t
            LATERAL VIEW explode(top) e AS o
            LATERAL VIEW explode(o.mid) f AS m LATERAL VIEW explode(m.low) g AS l
        """)
        seen = db.epoch
        with db.transaction() as tx:
            way = ["top", (1,), "mid", {"k": "p"}, "low"]
            tx.update_inner("t", (1, "x"), way, insert=[(2, 20)], delete=[(1, 10)])
        db.sql("INSERT INTO t.top.mid.low OF (1, 'x'), (1), ('q') VALUES (3, 30)")
        db.sql("UPDATE t.top.mid.low OF (1, 'x'), (1), ('q') SET v = v + 1")
        db.sql(
            "INSERT INTO t.top.mid OF (1, 'x'), (2) VALUES ('r', ARRAY(struct(4 AS k, 40 AS v)))"
        )
        mids = [("p", [(2, 20)]), ("q", [(3, 31)])]
        want = [(1, "x", [(1, mids), (2, [("r", [(4, 40)])])]), (2, "y", [])]
        assert rows_of(db, "t") == in_order(want)
        lows = [(1, 1, "p", 20), (1, 1, "q", 31), (1, 2, "r", 40)]
        assert sorted(db.read("lows").rows()) == lows
        fed = db.changes("lows", after=seen).rows()
        assert sum(row[-2] for row in fed) == 2
        assert db.audit().ok


def test_a_row_with_arrays_beside_its_collections_is_known_by_a_key_of_several_columns(
    open_db: Open, tmp_path: Path
) -> None:
    low = "BAG<STRUCT<z: ARRAY<STRING>>>"
    with open_db(tmp_path / "s") as db:
        db.sql(f"""CREATE TABLE t (a INT, b STRING, tags ARRAY<STRING>, m MAP<STRING, INT>,
            s STRUCT<x: INT, y: ARRAY<INT>>, l BAG<STRUCT<k: INT, w: ARRAY<INT>, low: {low}>>,
            PRIMARY KEY (a, b))""")
        db.sql("CREATE VIEW shown AS SELECT a, b, tags, e.w FROM t LATERAL VIEW explode(l) f AS e")
        others = (["p"], {"a": 1}, {"x": 1, "y": [2]})
        db.insert("t", [(1, "x", *others, [(1, [1, 2], [(["u"],)])])])
        db.insert("t", [(1, "y", None, None, None, []), (2, "x", *others, [(1, None, [])])])
        with db.transaction() as tx:
            tx.update_inner("t", (1, "x"), "l", insert=[(2, [3], [])])
            way = ["l", (1, [1, 2]), "low"]
            tx.update_inner("t", (1, "x"), way, insert=[(["v"],)], delete=[(["u"],)])
        want = [(1, [1, 2], [(["v"],)]), (2, [3], [])]
        shown = [(1, "x", ["p"], [1, 2]), (1, "x", ["p"], [3]), (2, "x", ["p"], None)]
        assert rows_of(db, "shown") == in_order(shown)
        db.delete("t", [(1, "x", *others, want), (1, "y", None, None, None, [])])
        assert rows_of(db, "t") == in_order([(2, "x", *others, [(1, None, [])])])
        db.upsert("t", [(2, "x", ["q"], None, None, [(5, [6], [])])])
        assert rows_of(db, "shown") == in_order([(2, "x", ["q"], [6])])
        db.delete("t", keys=[(2, "x")])
        assert db.read("t").rows() == db.read("shown").rows() == []
        assert db.audit().ok


def test_a_row_takes_what_is_inside_it_along(db: Database) -> None:
    db.sql("DELETE FROM movies WHERE gen = 'Drama'")
    assert rows_of(db, "movies") == in_order(ROWS[1:])
    assert not any(status.rows for status in db.status() if status.name != "movies")
    (created,) = db.sql("SHOW CREATE TABLE movies").rows()[0]
    db.sql("DROP TABLE movies")
    assert not db.catalog.tables
    db.sql(created)
    db.insert("movies", db_rows := [row for row in ROWS])
    assert rows_of(db, "movies") == in_order(db_rows)
    db.compact()
    db.retain(1, grace=0)
    assert rows_of(db, "movies") == in_order(ROWS)


HALVES = {
    "ON CONFLICT": lambda tx: tx.sql(
        "INSERT INTO v VALUES ('a', 'y', ARRAY(5)), ('b', 'too long', ARRAY(2)) "
        "ON CONFLICT (name) DO UPDATE SET t = excluded.t"
    ),
    "a value": lambda tx: tx.apply("v", deleted=[A_ROW], inserted=[("b", "too long", [2])]),
    "an element": lambda tx: tx.apply("v", deleted=[A_ROW], inserted=[("b", "y", ["no"])]),
}
A_ROW = ("a", "x", [1])


@pytest.mark.parametrize("half", HALVES)
def test_a_call_that_fails_half_way_leaves_nothing_in_its_transaction(tmp_path, half):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE v (name STRING PRIMARY KEY, t VARCHAR(2), shows BAG<INT>)")
        db.insert("v", [A_ROW, ("c", "z", [])])
        with db.transaction() as tx:
            tx.delete("v", keys=["c"])
            with pytest.raises(UserError, match="T001"):
                HALVES[half](tx)
            assert tx.read("v").rows() == [A_ROW]
        assert db.read("v").rows() == [A_ROW]
