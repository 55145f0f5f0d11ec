"""Nested views: comprehensions compiled from their source, maintained, rebuilt as they are read."""

# Tables are called as the paper calls them.
# ruff: noqa: N803, C408, C416, RUF017

from __future__ import annotations

import inspect
import random
import textwrap
from collections import Counter, namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import everview as ev
from cases import THOROUGH, check_each
from everview.database.database import Database
from everview.database.handle import Handle
from everview.engines.spark.engine import SparkEngine
from everview.errors import UserError
from everview.lang.sql.parse.statements import NESTED_MODES
from everview.store.store import Store
from everview_fuzz.nested.comprehensions import (
    DECLARED,
    TABLES,
    Generator,
    answered,
    canonical,
    defined,
    expected,
    random_row,
)

if TYPE_CHECKING:
    from conftest import Open

MOVIES = [
    ("Drive", "Drama", "Refn"),
    ("Skyfall", "Action", "Mendes"),
    ("Rush", "Action", "Howard"),
]
JARHEAD = ("Jarhead", "Drama", "Mendes")
BEFORE = {"Drive": [], "Skyfall": ["Rush"], "Rush": ["Skyfall"]}
AFTER = {
    "Drive": ["Jarhead"],
    "Skyfall": ["Jarhead", "Rush"],
    "Rush": ["Skyfall"],
    "Jarhead": ["Drive", "Skyfall"],
}


def is_related(m: Any, m2: Any) -> Any:
    return m.name != m2.name and (m.gen == m2.gen or m.dir == m2.dir)


def related(M: Any) -> Any:
    return [(m.name, [m2.name for m2 in M if is_related(m, m2)]) for m in M]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as opened:
        yield opened


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_related_gives_the_tables_of_the_paper(open_db: Open, tmp_path: Path, key: str) -> None:
    """Example 1 of nested-collections, with the deep feed of section 2.2."""
    with open_db(tmp_path / "store") as db:
        db.sql(f"CREATE TABLE movies (name STRING {key}, gen STRING, dir STRING)")
        db.insert("movies", MOVIES)
        assert db.nested(related, tables={"M": "movies"}) is related
        assert dict(db.read("related").rows()) == BEFORE
        before = db.epoch
        db.insert("movies", [JARHEAD])
        assert dict(db.read("related").rows()) == AFTER
        assert db.audit().ok
        assert [row[0] for row in db.changes("related", after=before).rows()] == ["Jarhead"]
        deep = [(row[0], *row[3:]) for row in db.changes("related", after=before, path="_2").rows()]
        assert sorted(deep) == [
            ("Drive", "Jarhead", 1, before + 1),
            ("Jarhead", "Drive", 1, before + 1),
            ("Jarhead", "Skyfall", 1, before + 1),
            ("Skyfall", "Jarhead", 1, before + 1),
        ]
        assert dict(db.read("related", epoch=before).rows()) == BEFORE
        db.delete("movies", [JARHEAD])
        assert dict(db.read("related").rows()) == BEFORE
        assert db.read("related", nested=False).to_arrow().column_names == [
            "_1",
            "_2#m.name",
            "_2#m.gen",
            "_2#m.dir",
        ]
        assert len(db.sql("SELECT * FROM `related._2`").rows()) == 2
        assert db.audit("related").ok
        if db.engine.name == "spark":
            frame = db.read("related").to_spark()
            assert dict(frame.dtypes)["_2"] == "array<string>"
            assert {row._1: row._2 for row in frame.collect()} == BEFORE


def test_a_nested_view_is_there_when_the_store_is_opened_again(tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "s"), engine="duckdb") as db:
        db.sql("CREATE TABLE M (name STRING, gen STRING, dir STRING)")
        db.nested(related)
    with ev.open(str(tmp_path / "s"), engine="duckdb") as db:
        db.insert("M", [*MOVIES, JARHEAD])
        assert dict(db.read("related").rows()) == AFTER
        assert "def " not in str(db.catalog.to_json()), "the store holds NRC, no Python"
        db.sql("DROP VIEW related")
        assert not db.catalog.views


def follow(
    db: Database,
    texts: tuple[str, ...],
    rng: random.Random,
    turns: int,
    modes: tuple[Any, ...] = (),
) -> None:
    """Declare functions, change their tables, and compare with CPython after every change."""
    for level, text in enumerate(texts):
        under = {"v": f"v{level - 1}"} if level else {}
        mode = modes[level] if modes else "auto"
        db.nested(defined(text), name=f"v{level}", tables=under, nested=mode)
    tables: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
    for turn in range(turns):
        with db.transaction() as tx:
            for name, rows in tables.items():
                leave = 1.0 if turn == 2 else 0.4
                gone = [row for row in rows if rng.random() < leave]
                come = [random_row(rng, name) for _ in range(rng.randint(0, 3))]
                for row in gone:
                    rows.remove(row)
                rows += come
                tx.insert(name, come) if come else None
                tx.delete(name, gone) if gone else None
        for level, text in enumerate(texts):
            wanted = expected(texts[0], tables, None, *texts[1 : level + 1])
            assert answered(db.read(f"v{level}").rows(), text) == wanted, (texts, tables)
    assert db.audit().ok
    assert db.audit(f"v{len(texts) - 1}").ok


def test_random_functions_are_what_cpython_makes_of_them(tmp_path: Path) -> None:
    def check(seed: int) -> None:
        rng = random.Random(f"embedded {seed}")
        with ev.open(str(tmp_path / f"s{seed}"), engine="duckdb") as db:
            db.sql(DECLARED)
            follow(db, Generator(rng).functions(1 + seed % 3), rng, turns=4)

    check_each(range(200 if THOROUGH else 9), check)


@pytest.mark.spark
def test_random_functions_are_what_cpython_makes_of_them_on_spark(
    spark: Any, tmp_path: Path
) -> None:
    def check(seed: int) -> None:
        rng = random.Random(f"spark {seed}")
        with ev.open(str(tmp_path / f"s{seed}"), spark=spark) as db:
            db.sql(DECLARED)
            follow(db, Generator(rng).functions(2), rng, turns=2)

    check_each(range(20 if THOROUGH else 2), check)


# The language


@dataclass
class Person:
    name: str
    age: int


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass(kw_only=True)
class Priced:
    price: int = 3
    name: str
    note: str = "-"


class Spot(NamedTuple):
    place: Any
    size: int = 7


Span = namedtuple("Span", ["low", "high"], defaults=(LIMIT := 2,))
CHOSEN = ("x", "y")


def initials(t: Any) -> Any:
    """A helper, with names of its own."""
    word = t.upper()
    return word + "!"


def constants(A: Any) -> Any:
    return [a.a for a in A if a.c >= LIMIT and a.b in CHOSEN]


def records(A: Any) -> Any:
    return [dict(key=a.a, person=Person(name=a.b, age=a.c), pair=Pair(1, a.c)) for a in A]


def record_read_back(A: Any) -> Any:
    people = [Person(a.b, a.c) for a in A]
    return [(p.name, [q.age for q in people if q.name == p.name]) for p in people]


def unnamed(A: Any) -> Any:
    return [a.a for a in A if a.b is None] + [-a.a for a in A if a.b is not None]


def several(A: Any, B: Any) -> Any:
    return [(a.a, b.d) for a in A for b in B if a.a == b.a if b.e > 0]


def unpacked(A: Any) -> Any:
    pairs = [(a.a, (a.b, a.c)) for a in A]
    return [(x, z) for x, (y, z) in pairs if y != "x"]


def helped(A: Any) -> Any:
    return [initials(a.b) for a in A]


def plus(x: Any, y: Any = LIMIT, /, *, z: Any = 4) -> Any:
    return x + y * 10 + z


def defaults(A: Any) -> Any:
    return [
        (
            Spot(a.b),
            Spot(size=1, place=a.c),
            Span(a.a),
            Span(high=a.c, low=1),
            Priced(name=a.b),
            Priced(note="x", price=a.a, name="y"),
            (plus(a.a), plus(a.a, 1), plus(a.a, z=1)),
        )
        for a in A
        if a.a is not None and a.c is not None
    ]


def shadowed(A: Any) -> Any:
    def more(x: Any, by: Any = LIMIT) -> Any:
        return x + by + LIMIT

    return [(more(a.a), more(LIMIT, by=a.a)) for a in A for LIMIT in [10, 20]]


def local_helper(A: Any) -> Any:
    def same(a: Any) -> Any:
        return [b.c for b in A if b.a == a.a]

    return [(a.a, same(a), len(same(a))) for a in A]


def floors(A: Any) -> Any:
    return [(a.a - 1) // (a.c + 2) + (a.a - 1) % -3 for a in A]


def texts(A: Any) -> Any:
    return [f"{a.b}-{a.b}" for a in A if a.b.startswith("x") or "y" in a.b or (1 < len(a.b) <= 3)]


def trimmed(A: Any) -> Any:
    return [
        (str(a.a), f"{a.a}:{a.b.strip()}", a.b.lstrip(), a.b.rstrip() + "|")
        for a in A
        if a.b != None  # noqa: E711
    ]


def flattened(A: Any, B: Any) -> Any:
    return [x for x in flatten([[b.e for b in B if b.a == a.a] for a in A])]  # noqa: F821


def summed(A: Any, B: Any) -> Any:
    return sum([[b.e for b in B if b.a == a.a] for a in A], [])


def whole_rows(A: Any, B: Any) -> Any:
    return [(a, [b for b in B if b.a == a.a]) for a in A]


def deep(A: Any, B: Any) -> Any:
    return [
        (a.a, sorted((b.d, [c.c for c in A if c.a == b.a and c.b == a.b]) for b in B)) for a in A
    ]


def deeper(A: Any, B: Any) -> Any:
    return [[[(a.a, b.a, c.a) for c in A] for b in B if b.a == a.a] for a in A]


def two_branches(A: Any, B: Any) -> Any:
    return [(a.b, [b.a for b in B if b.a == a.a]) for a in A] + [
        (b.d, [a.c for a in A] + [b.e]) for b in B
    ]


def constant_inner(A: Any) -> Any:
    return [(a.a, [1, 2, 2], []) if a.a == 1 else (a.a, [], [a.c]) for a in A]


def without_tables(A: Any) -> Any:
    return [(1, [2, 3]), (4, [])]


def counted(A: Any, B: Any) -> Any:
    return [
        (a.a, len(B), sum(b.e for b in B if b.a == a.a), max([b.e for b in B], default=None))
        for a in A
        if len([b for b in B if b.a == a.a]) > 0 or all(b.e > 0 for b in B)
    ]


def member(A: Any, B: Any) -> Any:
    return [a.a for a in A if a.a in [b.a for b in B] and (a.a, a.b) != (2, "x")]


def decided(A: Any) -> Any:
    yes = [(a.a > 1 if a.b == "x" else None, a.c > 0) for a in A]
    return [(x and y, x or y, not x, y and x, y or x, (x or y) == x) for x, y in yes]


def tuples_listed(A: Any, B: Any) -> Any:
    near = [(b.a, b.d) for b in B]
    return [a.c for a in A if (a.a, a.b) in ((1, "x"), (0, None)) or (a.a, a.b) not in near]


def guarded(A: Any, B: Any) -> Any:
    return [
        (
            a.c != 0 and 10 // a.c > 1,
            a.c == 0 or 10 // a.c > 1,
            [b.e for b in B if a.c == 0 or b.e // a.c > 0],
            any(b.e != 0 and a.c // b.e > 0 for b in B),
        )
        for a in A
        if a.a == 0 or 5 // a.a > 0
        if a.c == 0 or 5 % a.c >= 0
    ]


FUNCTIONS = [
    decided,
    tuples_listed,
    guarded,
    constants,
    records,
    record_read_back,
    several,
    unpacked,
    floors,
    summed,
    whole_rows,
    deep,
    deeper,
    two_branches,
    constant_inner,
    without_tables,
    counted,
    member,
    local_helper,
    defaults,
    shadowed,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_the_language_means_what_cpython_makes_of_it(db: Database, function: Any) -> None:
    text = textwrap.dedent(inspect.getsource(function))
    names = {**function.__globals__}
    db.sql(DECLARED)
    db.nested(function)
    rng = random.Random(function.__name__)
    tables: dict[str, list[tuple[Any, ...]]] = {"A": [], "B": []}
    called = text.replace(f"def {function.__name__}(A: Any)", "def query(A: Any, B: Any)")
    called = called.replace(f"def {function.__name__}(", "def query(")
    for _ in range(5):
        with db.transaction() as tx:
            for name, rows in tables.items():
                gone = [row for row in rows if rng.random() < 0.4]
                come = [known_row(rng) for _ in range(3)]
                for row in gone:
                    rows.remove(row)
                rows += come
                tx.insert(name, come)
                tx.delete(name, gone) if gone else None
        wanted = expected(called, tables, names)
        found = db.read(function.__name__).rows()
        alone = db.catalog.schema(function.__name__)[0].name.startswith("element")
        assert canonical([row[0] if alone else row for row in found]) == wanted
    assert db.audit().ok


def known_row(rng: random.Random) -> tuple[Any, ...]:
    """A row in which a function in Python finds no null to stumble over, but in the text."""
    return rng.choice((0, 1, 2)), rng.choice((None, "x", "y")), rng.choice((0, 1, 5))


def test_texts_and_helpers_follow_null_through(db: Database) -> None:
    db.sql(DECLARED)
    db.nested(helped)
    db.nested(texts)
    db.nested(flattened)
    db.nested(unnamed)
    db.insert("A", [(1, "xa", 1), (1, None, 2), (2, "zzzz", 3), (3, "y", 4)])
    db.insert("B", [(1, "x", 7), (1, "x", None)])
    assert Counter(db.read("helped").rows()) == Counter([("XA!",), (None,), ("ZZZZ!",), ("Y!",)])
    assert Counter(db.read("unnamed").rows()) == Counter([(1,), (-1,), (-2,), (-3,)])
    assert Counter(db.read("texts").rows()) == Counter([("xa-xa",), ("y-y",)])
    assert Counter(db.read("flattened").rows()) == Counter([(7,), (7,), (None,), (None,)])


def test_texts_are_trimmed_and_made_of_numbers_as_in_python(db: Database) -> None:
    db.sql(DECLARED)
    db.nested(trimmed)
    rows = [(-1, "  x y ", 0), (2, "\t\n\x0bz\u2003\xa0", 0), (3, "", 0), (4, "\u200bq", 0)]
    db.insert("A", [*rows, (None, " n", 0), (5, None, 0)])
    known = trimmed([SimpleNamespace(a=a, b=b) for a, b, _ in rows])
    assert Counter(db.read("trimmed").rows()) == Counter([*known, (None, None, "n", " n|")])
    assert db.audit().ok


def test_arrays_and_structs_of_tables_are_iterated(db: Database) -> None:
    db.sql(
        "CREATE TABLE A (a INT, tags ARRAY<STRING>, at STRUCT<x: INT, ys: ARRAY<STRUCT<z: INT>>>)"
    )

    def tags(A: Any) -> Any:
        return [(a.a, [t for t in a.tags if t != "no"], [y.z for y in a.at.ys]) for a in A]

    db.nested(tags)
    db.insert("A", [(1, ["p", "no", "p"], {"x": 1, "ys": [{"z": 4}]}), (2, None, None)])
    assert sorted(db.read("tags").rows()) == [(1, ["p", "p"], [4]), (2, [], [])]
    db.sql("DELETE FROM A WHERE a = 1")
    assert db.read("tags").rows() == [(2, [], [])]
    assert db.audit().ok


ARRAYS = {
    "(c.tags + c.tags, ['z'] + c.tags, len(c.tags + ['z']))": [
        (["a", "a", "b", "b"], ["a", "b", "z"], 3),
        ([], ["z"], 1),
    ],
    "(c.tags if c.a == 1 else [], [c.tags] + [['z']])": [
        (["a", "b"], [["a", "b"], ["z"]]),
        ([], [[], ["z"]]),
    ],
    "(sorted(c.tags), [t for t in (c.tags if c.a == 1 else ['q'])])": [
        (["a", "b"], ["a", "b"]),
        ([], ["q"]),
    ],
    "[x for x in c.xs] + [dict(p=c.a, qs=[0])]": [
        ([{"p": 1, "qs": [0]}, {"p": 5, "qs": [2, 1]}],),
        ([{"p": 2, "qs": [0]}],),
    ],
}
"""Bodies over arrays of a table, and what they give for two rows."""


@pytest.mark.parametrize("mode", NESTED_MODES)
def test_arrays_of_tables_are_collections_to_operators(db: Database, mode: Any) -> None:
    db.sql("CREATE TABLE C (a INT, tags ARRAY<STRING>, xs ARRAY<STRUCT<p: INT, qs: ARRAY<INT>>>)")
    for number, body in enumerate(ARRAYS):
        text = f"def query(C):\n    return [{body} for c in C]\n"
        db.nested(defined(text), name=f"v{number}", nested=mode)
    db.insert("C", [(1, ["b", "a"], [(5, [2, 1])]), (2, None, [])])
    for number, wanted in enumerate(ARRAYS.values()):
        found = db.read(f"v{number}").rows()
        assert canonical(found) == canonical(wanted), [*ARRAYS][number]
        assert "-- cost" in db.explain(f"v{number}", "shredded")
        if number == 2:
            assert ("a", "b") in [(*each[0],) for each in found], "sorted gives an order"
    assert db.audit().ok


def test_a_list_of_constants_may_be_long(db: Database) -> None:
    db.sql(DECLARED)
    around = {"MANY": [*range(2, 302)]}
    text = "def query(A):\n    return [a.a for a in A if a.a in MANY]\n"
    db.nested(defined(text, **around))
    db.insert("A", [(1, "x", 1), (301, "x", 1), (None, "x", 1)])
    assert db.read("query").rows() == [(301,)]


def test_a_text_of_the_calculus_is_a_view_and_views_read_views(db: Database) -> None:
    db.sql("CREATE TABLE M (name STRING, gen STRING, dir STRING)")
    db.nested("for m in M where m.gen == 'Drama' union sng(⟨name: m.name⟩)", name="dramas")
    db.sql("CREATE VIEW loud AS SELECT upper(name) AS name FROM dramas")

    @db.nested
    def pairs(loud: Any, M: Any) -> Any:
        return [(x.name, [m.dir for m in M if m.name.upper() == x.name]) for x in loud]

    db.insert("M", [*MOVIES, JARHEAD])
    assert sorted(db.read("pairs").rows()) == [("DRIVE", ["Refn"]), ("JARHEAD", ["Mendes"])]
    with pytest.raises(UserError, match="C003"):
        db.sql("DROP VIEW loud")
    with pytest.raises(UserError, match="C009"):
        db.sql("DROP VIEW `pairs._2`")
    with pytest.raises(UserError, match="C009"):
        db.sql("CREATE OR REPLACE VIEW pairs AS SELECT 1 AS a")
    for name in ("pairs", "`pairs._2`"):
        with pytest.raises(UserError, match="C009"):
            db.sql(f"ALTER VIEW {name} RENAME TO other")
    with pytest.raises(UserError, match="N008"):
        db.changes("pairs", path="_3")
    assert db.audit().ok


def test_a_nested_view_is_read_by_another_with_its_collections(db: Database) -> None:
    db.sql("CREATE TABLE M (name STRING, gen STRING, dir STRING)")
    db.nested(related)

    @db.nested
    def popular(related: Any, M: Any) -> Any:
        return [
            (name, [[m.dir for m in M if m.name == other] for other in others])
            for name, others in related
            if len(others) > 1
        ]

    db.nested("for m in related union sng(len(m._2))", name="counts")
    db.insert("M", [*MOVIES, JARHEAD])
    assert sorted(db.read("popular").rows()) == [
        ("Jarhead", [["Mendes"], ["Refn"]]),
        ("Skyfall", [["Howard"], ["Mendes"]]),
    ]
    assert sorted(db.read("counts").rows()) == [(1,), (1,), (2,), (2,)]
    db.delete("M", [JARHEAD])
    assert db.read("popular").rows() == []
    assert db.audit().ok


def test_names_that_differ_in_case_alone_are_kept_apart(db: Database) -> None:
    db.sql(DECLARED)

    def query(A: Any, B: Any) -> Any:
        return [(x.a, [X.a for X in B if X.a != x.a]) for x in A]

    db.nested(query)
    db.insert("A", [(1, "x", 1)])
    db.insert("B", [(2, "x", 1), (1, "x", 1)])
    assert db.read("query").rows() == [(1, [2])]
    assert db.audit().ok


def test_a_long_condition_reads_back_from_the_catalog(db: Database) -> None:
    db.sql(DECLARED)
    tests = " and ".join(f"a.a != {n}" for n in range(3, 60))
    db.nested(defined(f"def query(A):\n    return [a.a for a in A if {tests}]\n"))
    db.insert("A", [(2, "x", 1), (3, "x", 1)])
    assert db.read("query").rows() == [(2,)]


def test_the_shredded_stage_shows_each_relation(db: Database) -> None:
    db.sql("CREATE TABLE M (name STRING PRIMARY KEY, gen STRING, dir STRING)")
    db.nested(related)
    text = db.explain("related", "shredded")
    assert "for m in M union sng" in text
    assert "related (flat, degree 1)" in text
    assert "related._2 (dictionary, degree 2)" in text
    with pytest.raises(UserError, match="X001"):
        db.explain("related._2", "shredded")


@pytest.mark.spark
@pytest.mark.parametrize("gear", [{"large_rows": -1}, {"driver_bytes": -1, "memory": 0}], ids=str)
def test_every_gear_keeps_the_dictionaries(spark: Any, tmp_path: Path, gear: Any) -> None:
    store = Store.create_or_open(str(tmp_path))
    handle = Handle(store, SparkEngine(spark, **gear), store.writer_lock())
    with Database(handle) as db:
        db.sql("CREATE TABLE M (name STRING, gen STRING, dir STRING)")
        db.insert("M", MOVIES)
        db.nested(related)
        with db.transaction() as tx:
            tx.insert("M", [JARHEAD])
            tx.delete("M", MOVIES[2:])
        wanted = {"Drive": ["Jarhead"], "Skyfall": ["Jarhead"], "Jarhead": ["Drive", "Skyfall"]}
        assert dict(db.read("related").rows()) == wanted


DAY, PRICE = date(2020, 1, 1), Decimal("1.50")


def typed(T: Any) -> Any:
    return [
        (
            x.i,
            [y.d + PRICE for y in T if y.b],
            [y.t for y in T if y.t >= DAY],
            sum(y.d for y in T if not y.b),
            [y.f / 2 for y in T if y.i == x.i],
            [x.i, 2.5],
            all(y.b for y in T),
        )
        for x in T
    ]


def test_values_of_every_kind_keep_spark_s_types(db: Database) -> None:
    db.sql("CREATE TABLE T (b BOOLEAN, d DECIMAL(10,2), t DATE, f DOUBLE, i INT)")
    db.nested(typed)
    first = (True, "1.25", date(2020, 5, 1), 1.5, 1)
    db.insert("T", [first, (False, "2.25", date(2019, 5, 1), None, -2), (None, None, None, 2.0, 3)])
    days, sums = [date(2020, 5, 1)], Decimal("2.25")
    assert sorted(db.read("typed").rows()) == [
        (-2, [Decimal("2.75")], days, sums, [None], [-2.0, 2.5], False),
        (1, [Decimal("2.75")], days, sums, [0.75], [1.0, 2.5], False),
        (3, [Decimal("2.75")], days, sums, [1.0], [2.5, 3.0], False),
    ]
    db.sql("DELETE FROM T WHERE i <> 1")
    assert db.read("typed").rows() == [
        (1, [Decimal("2.75")], days, Decimal(0), [0.75], [1.0, 2.5], True)
    ]
    types = [str(each) for each in db.read("typed").to_arrow().schema.types]
    assert types[1] == "list<item: decimal128(11, 2)>"
    assert types[3] == "decimal128(20, 2)"
    assert db.audit().ok


def test_what_satisfies_both_sides_of_a_disjunction_counts_once(
    open_db: Open, tmp_path: Path
) -> None:
    """Disjoint joins: a pair with the same genre and the same director is in one of them."""
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE M (name STRING, gen STRING, dir STRING)")
        db.nested(related)
        rows = [("a", "x", "p"), ("b", "x", "p"), ("c", None, "p"), ("d", None, None)]
        db.insert("M", rows)
        assert dict(db.read("related").rows()) == {
            "a": ["b", "c"],
            "b": ["a", "c"],
            "c": ["a", "b", "d"],
            "d": ["c"],
        }
        db.delete("M", rows[1:2])
        assert dict(db.read("related").rows())["a"] == ["c"]


NESTED = """for m in M union sng(⟨name: m.name,
    others: for x in M where x.gen == m.gen and x.name != m.name union sng(⟨name: x.name,
        same: for y in M where y.dir == x.dir union sng(y.name)⟩)⟩)"""
OVER_NESTED = {
    "passed": "for r in related where r.name != 'Rush' union sng(⟨title: r.name, rel: r.others⟩)",
    "passed_again": "for r in passed union sng(⟨twice: sng(⟨r: r.rel⟩), rel: r.rel⟩)",
    "from_inside": "for r in passed union for o in r.rel union sng(⟨t: r.title, same: o.same⟩)",
    "whole": "for r in related union sng(⟨r: r⟩)",
    "both": "(for r in related union sng(r.others)) ⊎ (for r in passed union sng(r.rel))",
    "written_out": "for r in related union sng(⟨every: for o in r.others union sng(o)⟩)",
}


def test_a_view_over_a_nested_view_shares_its_dictionaries(open_db: Open, tmp_path: Path) -> None:
    """No dictionary is stored twice; what a view adds itself, and a sum of bags, is its own."""
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE M (name STRING PRIMARY KEY, gen STRING, dir STRING)")
        db.insert("M", MOVIES)
        db.nested(NESTED, name="related")
        for name, text in OVER_NESTED.items():
            db.nested(text, name=name)
        db.nested("for r in related union sng(⟨a: r.others ⊎ r.others⟩)", name="copied")
        stored = [each.name for each in db.status() if each.kind == "view"]
        assert [each for each in stored if "." in each] == [
            "related.others",
            "related.others.same",
            "passed_again.twice",
            "copied.a",
        ]
        before = db.epoch
        db.insert("M", [JARHEAD])
        db.sql("DELETE FROM M WHERE name = 'Rush'")
        rows = {
            "Drive": [{"name": "Jarhead", "same": ["Jarhead", "Skyfall"]}],
            "Skyfall": [],
            "Jarhead": [{"name": "Drive", "same": ["Drive"]}],
        }
        assert dict(db.read("related").rows()) == rows
        assert dict(db.read("passed").rows()) == rows
        shared = db.changes("related", after=before, path="others").rows()
        assert shared
        assert db.changes("passed", after=before, path="rel").rows() == shared
        assert db.changes("passed_again", after=before, path="twice.r.same").rows() == (
            db.changes("related", after=before, path="others.same").rows()
        )
        assert len(db.changes("passed", after=before, path="rel", pair=True).inserted.rows()) == 2
        wanted = [([{"r": others}], others) for others in rows.values()]
        assert canonical(db.read("passed_again").rows()) == canonical(wanted)
        inside = [(name, o["same"]) for name, others in rows.items() for o in others]
        assert canonical(db.read("from_inside").rows()) == canonical(inside)
        assert {r["name"]: r["others"] for (r,) in db.read("whole").rows()} == rows
        assert canonical(db.read("both").rows()) == canonical([(o,) for o in rows.values()] * 2)
        assert canonical(db.read("written_out").rows()) == canonical([(o,) for o in rows.values()])
        copied = [(others * 2,) for others in rows.values()]
        assert canonical(db.read("copied").rows()) == canonical(copied)
        assert db.audit().ok
        assert all(db.audit(view).ok for view in ("passed_again", "from_inside", "both", "copied"))
        for name in ("related", "passed"):
            with pytest.raises(UserError, match="C003"):
                db.sql(f"DROP VIEW {name}")
        for name in ("copied", *reversed(OVER_NESTED), "related"):
            db.sql(f"DROP VIEW {name}")
        assert not db.catalog.views


INLINE = """def query(A, C):
    return [(a.a, [1, 2, 2], [a.b, "x"], [(c.a, c.xs, [a.a, c.a]) for c in C if c.a == a.a])
        for a in A]
"""
OVER_INLINE = (
    """def query(v):
    return [(x[0], x[1], [t.upper() for t in x[2]], [(y[1], len(y[2])) for y in x[3]], x[3],
        sum(x[1])) for x in v]
""",
    """def query(v):
    return [(x[0], x[1], y[1], y[2]) for x in v for y in x[4] if any(n == 1 for n in x[1])]
""",
)
KEPT = [(below, mode) for below in NESTED_MODES for mode in NESTED_MODES]
FEW = [("auto", "auto"), ("auto", "inline"), ("inline", "shredded")]


@pytest.mark.parametrize(("below", "mode"), KEPT if THOROUGH else FEW)
def test_a_view_over_arrays_sees_collections(db: Database, below: str, mode: str) -> None:
    """Lists that a view keeps as arrays are collections to the views that read it, at any depth."""
    db.sql(DECLARED)
    follow(db, (INLINE, *OVER_INLINE), random.Random(below + mode), 4, (below, mode, mode))
    own = [path for path in ("_2", "_4", "_4._2", "_4._3") if f"v0.{path}" in db.catalog.views]
    assert own == {"auto": ["_4"], "shredded": ["_2", "_4", "_4._2", "_4._3"], "inline": []}[below]
    shared = [name for name in db.catalog.inside("v1") if name.startswith("v0.")]
    assert bool(shared) == (below != "inline")
    copied = mode == "shredded" and below != "shredded"
    assert ("v1._2" in db.catalog.views) == copied


@pytest.mark.parametrize("seed", range(1, 40 if THOROUGH else 3))
def test_views_over_views_are_those_of_cpython_however_they_are_kept(
    db: Database, seed: int
) -> None:
    db.sql(DECLARED)
    rng = random.Random(f"kept {seed}")
    texts = Generator(rng).functions(3)
    follow(db, texts, rng, 4, tuple(rng.choice(NESTED_MODES) for _ in texts))


def test_a_view_shares_dictionaries_after_the_store_is_opened_again(tmp_path: Path) -> None:
    location = str(tmp_path / "s")
    with ev.open(location, engine="duckdb") as db:
        db.sql("CREATE TABLE M (name STRING PRIMARY KEY, gen STRING, dir STRING)")
        db.nested(NESTED, name="related")
        db.nested(OVER_NESTED["passed"], name="passed")
    with ev.open(location, engine="duckdb") as db:
        db.insert("M", [*MOVIES, JARHEAD])
        assert [row[0] for row in db.read("passed").rows() if not row[1]] == []
        assert db.audit().ok
    with ev.open(location, engine="duckdb", read_only=True) as db:
        assert len(db.read("passed").rows()) == 3


def test_a_collection_that_nobody_reads_is_never_joined(db: Database) -> None:
    """A column that a view drops costs it nothing, and SQL reads the flat relation alone."""
    db.sql("CREATE TABLE M (name STRING PRIMARY KEY, gen STRING, dir STRING)")
    db.insert("M", MOVIES)
    db.nested(NESTED, name="related")
    db.nested("for r in related union sng(⟨title: r.name⟩)", name="titles")
    db.nested("for r in related union sng(⟨a: r.name, b: r.others⟩)", name="passed")
    db.nested("for p in passed union sng(⟨title: p.a⟩)", name="dropped")
    db.insert("M", [JARHEAD])
    costs = {each.view: each for each in db.history(1)}
    for view in ("titles", "passed", "dropped"):
        assert (costs[view].rows_read, costs[view].rows_out) == (0, 1)
    found = db.sql("SELECT name FROM related")
    assert found is not None
    assert sorted(found.rows()) == [("Drive",), ("Jarhead",), ("Rush",), ("Skyfall",)]
    for view in ("titles", "passed", "dropped"):
        assert db.explain(view).startswith(f"-- {view}: reads nothing but the change")


def test_the_shredded_stage_estimates_costs_and_marks_collections(db: Database) -> None:
    """The costs of Example 6 and of section 2.2: |M|(1+|M|) for the view, linear for a change."""
    db.sql("CREATE TABLE M (name STRING PRIMARY KEY, gen STRING, dir STRING)")
    db.insert("M", [(f"m{n}", f"g{n % 3}", f"d{n % 7}") for n in range(50)])
    db.nested(related)
    text = db.explain("related", "shredded")
    assert "-- cost: 2750\n-- cost of a change of one row of M: 105\n" in text
    assert "-- cost: 50{⟨1, ⟨1, 1, 1, 1⟩⟩} = 250" in text
    assert "-- input-dependent: shredded\n-- cost: 50 labels × 50{⟨1⟩} = 2500" in text
    assert "warning" not in text

    def told(related: Any, M: Any) -> Any:
        return [(name, others, [1, 2], len(M)) for name, others in related]

    db.nested(told, nested="shredded")
    text = db.explain("told", "shredded")
    assert "\n-- constant\n" in text.partition("told._3 (dictionary")[2]
    assert "related._2 (dictionary, shared)" in text
    assert "-- warning: a change of M has no delta in IncNRC⁺ (Theorem 4)" in text
    db.sql("CREATE TABLE nobody (a INT)")
    db.nested("for x in nobody union sng(x.a)", name="empty")
    warned = "-- warning: this is no less than the view (Theorem 4): nobody has no more rows"
    assert warned in db.explain("empty", "shredded")
