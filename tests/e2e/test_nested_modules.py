"""Python modules as programs of nested views: read as text, declared together, replaced."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

import everview as ev
from everview.database.database import Database
from everview.errors import UserError

PROGRAM = '''
"""Movies: what is related, and what is told of it."""

import datetime
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import everview as ev

LEAST, GENRES = 2 - 1, ["Drama", "Action"]
DAY = datetime.date(2020, 1, 1)
PRICE = Decimal("1.50")
open("/nowhere/at/all")


@dataclass
class Told:
    name: str
    others: list


class Pair(NamedTuple):
    first: str
    second: str


def is_related(m, m2):
    return m.name != m2.name and (m.gen == m2.gen or m.dir == m2.dir)


@ev.nested
def popular(related):
    return [Told(m.name, m.others) for m in related if len(m.others) > LEAST]


@ev.nested
def related(M):
    LEAST = 0
    return [
        Told(m.name, [m2.name for m2 in M if is_related(m, m2)])
        for m in M
        if m.gen in GENRES and len(M) > LEAST
    ]


@ev.nested
def constants(M):
    return [(Pair(m.name, m.dir), DAY, PRICE) for m in M]
'''
MOVIES = [("Drive", "Drama", "Refn"), ("Skyfall", "Action", "Mendes"), ("Rush", "Action", "Howard")]
JARHEAD = ("Jarhead", "Drama", "Mendes")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as opened:
        opened.sql("CREATE TABLE M (name STRING, gen STRING, dir STRING)")
        opened.insert("M", MOVIES)
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "movies.py"


def test_a_module_is_read_as_text_and_its_views_are_one_epoch(db: Database, file: Path) -> None:
    file.write_text(PROGRAM)
    before = db.epoch
    assert db.load_module(file) == ("popular", "related", "constants")
    assert db.epoch == before + 1
    assert dict(db.read("related").rows()) == {
        "Drive": [],
        "Skyfall": ["Rush"],
        "Rush": ["Skyfall"],
    }
    assert db.read("popular").rows() == []
    db.insert("M", [JARHEAD])
    assert sorted(db.read("popular").rows()) == [
        ("Jarhead", ["Drive", "Skyfall"]),
        ("Skyfall", ["Jarhead", "Rush"]),
    ]
    row = db.read("constants").to_arrow().slice(0, 1).to_pylist()[0]
    assert set(row["_1"]) == {"first", "second"}
    assert str(row["_2"]) == "2020-01-01"
    assert str(row["_3"]) == "1.50"
    assert db.audit().ok


def test_a_module_that_is_loaded_again_changes_what_has_changed(db: Database, file: Path) -> None:
    file.write_text(PROGRAM)
    db.load_module(str(file))
    db.sql("CREATE VIEW names AS SELECT name FROM popular")
    db.nested("for p in popular union sng(⟨n: len(p.others)⟩)", name="counts")
    unchanged = db.epoch
    assert db.load_module(str(file)) == ("popular", "related", "constants")
    assert db.epoch == unchanged, "what says the same makes no epoch"
    seen = {each.name: each.segments for each in db.status()}
    file.write_text(PROGRAM.replace("= 2 - 1,", "= 0,"))
    db.load_module(str(file))
    assert db.epoch == unchanged + 1
    assert len(db.read("popular").rows()) == 2
    assert sorted(db.sql("SELECT * FROM names").rows()) == [("Rush",), ("Skyfall",)]
    assert db.read("counts").rows() == [(1,), (1,)]
    now = {each.name: each.segments for each in db.status()}
    assert now["related"] == seen["related"], "a view that says the same is not written"
    assert [row[0] for row in db.changes("popular", after=unchanged).rows()] != []
    db.insert("M", [JARHEAD])
    assert len(db.read("popular").rows()) == 4
    assert db.audit().ok


def test_a_module_that_reads_other_columns_is_refused_for_its_readers(
    db: Database, file: Path
) -> None:
    file.write_text(PROGRAM)
    db.load_module(file)
    db.sql("CREATE VIEW names AS SELECT name FROM popular")
    before, epoch = db.catalog.to_json(), db.epoch
    file.write_text(
        PROGRAM.replace("    name: str", "    title: str").replace("(m.name, m.o", "(m.title, m.o")
    )
    with pytest.raises(UserError, match="C008"):
        db.load_module(file)
    assert (db.catalog.to_json(), db.epoch) == (before, epoch)


def test_an_imported_module_is_read_from_its_file(db: Database, file: Path) -> None:
    file.write_text(PROGRAM.replace('open("/nowhere/at/all")', ""))
    spec = importlib.util.spec_from_file_location("movies", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.related.__name__ == "related", "the mark leaves the function as it is"
    assert db.load_module(module) == ("popular", "related", "constants")
    assert db.audit().ok


def test_a_nested_view_is_replaced_where_that_is_asked_for(db: Database) -> None:
    db.nested("for m in M union sng(⟨a: m.name, b: for x in M union sng(x.gen)⟩)", name="v")
    db.nested("for m in v union sng(⟨a: m.a, b: m.b⟩)", name="w")
    text = "for m in M where m.gen == 'Drama' union sng(⟨a: m.name, b: sng(m.dir)⟩)"
    with pytest.raises(UserError, match="C001"):
        db.nested(text, name="v")
    db.nested(text, name="V", replace=True)
    assert db.read("w").rows() == [("Drive", ["Refn"])]
    db.insert("M", [JARHEAD])
    assert sorted(db.read("w").rows()) == [("Drive", ["Refn"]), ("Jarhead", ["Mendes"])]
    db.sql("CREATE VIEW s AS SELECT name FROM M")
    for name in ("s", "M"):
        with pytest.raises(UserError, match="C001"):
            db.nested(text, name=name, replace=True)
    with pytest.raises(UserError, match="C007"):
        db.nested("for x in w union sng(⟨a: x.a, b: x.b⟩)", name="v", replace=True)
    with pytest.raises(UserError, match="C008"):
        db.nested("for m in M union sng(⟨a: m.name⟩)", name="v", replace=True)
    assert db.audit().ok


BAD = {
    "no text of Python": ("def (", "N001", 2),
    "nothing is marked": ("def f(M):\n    return [m.name for m in M]", "N010", None),
    "star": (
        "from x import *\n@ev.nested\ndef f(M):\n    return [m.name for m in M]",
        "N010",
        None,
    ),
    "no such table": ("@ev.nested\ndef f(Nowhere):\n    return [1 for m in Nowhere]", "C002", 3),
    "ill-typed": ("@ev.nested\ndef f(M):\n    return [m.name + 1 for m in M]", "N003", 4),
    "mutation": ("@ev.nested\ndef f(M):\n    x = []\n    x.append(1)\n    return x", "N010", 5),
    "recursion": ("@ev.nested\ndef f(f):\n    return [m.name for m in f]", "C007", None),
    "recursion of two": (
        "@ev.nested\ndef f(g):\n    return [x for x in g]\n"
        "@ev.nested\ndef g(f):\n    return [x for x in f]",
        "C007",
        None,
    ),
    "recursive helper": (
        "def h(x):\n    return h(x)\n@ev.nested\ndef f(M):\n    return [h(m.name) for m in M]",
        "N010",
        3,
    ),
    "computed constant": (
        "import os\nX = os.getcwd()\n@ev.nested\ndef f(M):\n    return [X for m in M]",
        "N004",
        6,
    ),
    "constant twice": ("X = 1\nX = 2\n@ev.nested\ndef f(M):\n    return [X for m in M]", "N004", 6),
    "constant in a branch": (
        "X = 1\nif True:\n    X = 2\n@ev.nested\ndef f(M):\n    return [X for m in M]",
        "N004",
        7,
    ),
    "changed constant": (
        "X = [1]\nX.append(2)\n@ev.nested\ndef f(M):\n    return [m.name for m in M if 1 in X]",
        "N004",
        6,
    ),
    "global constant": (
        "X = 1\ndef h():\n    global X\n    X = 2\n"
        "@ev.nested\ndef f(M):\n    return [X for m in M]",
        "N004",
        8,
    ),
    "other module": (
        "from json import dumps\n@ev.nested\ndef f(M):\n    return [dumps(m.name) for m in M]",
        "N004",
        5,
    ),
    "part of another module": (
        "import json\n@ev.nested\ndef f(M):\n    return [json.dumps(m.name) for m in M]",
        "N004",
        5,
    ),
    "name that a module has not": (
        "from math import nothing\n@ev.nested\ndef f(M):\n    return [nothing for m in M]",
        "N004",
        5,
    ),
    "what a module needs itself": (
        "import datetime as d\n@ev.nested\ndef f(M):\n    return [d.sys.executable for m in M]",
        "N010",
        5,
    ),
    "file of a module": (
        "from math import __name__ as n\nimport decimal as d\n"
        "@ev.nested\ndef f(M):\n    return [d.__file__ for m in M]",
        "N010",
        6,
    ),
    "nested too deep": (
        f"@ev.nested\ndef f(M):\n    return [{'-' * 900}1 for m in M]",
        "N010",
        4,
    ),
    "decorated": ("@ev.nested\n@cache\ndef f(M):\n    return [m.name for m in M]", "N010", 4),
    "decorated helper": (
        "@cache\ndef h(x):\n    return x\n@ev.nested\ndef f(M):\n    return [h(m.name) for m in M]",
        "N004",
        7,
    ),
    "names that differ in case": (
        "@ev.nested\ndef f(M):\n    return [m.name for m in M]\n"
        "@ev.nested\ndef F(M):\n    return [1 for m in M]",
        "C001",
        6,
    ),
    "a table's name": ("@ev.nested\ndef M(M):\n    return [m.name for m in M]", "C001", None),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_module_is_refused_with_its_place(db: Database, file: Path, case: str) -> None:
    text, code, line = BAD[case]
    good = "\n@ev.nested\ndef good(M):\n    return [m.name for m in M]\n"
    good = "" if case == "nothing is marked" else good
    file.write_text(f"import everview as ev\n{text}{good}")
    before, epoch = db.catalog.to_json(), db.epoch
    with pytest.raises(UserError) as refused:
        db.load_module(file)
    assert refused.value.code == code, refused.value
    assert refused.value.remedy
    if line is not None:
        assert f"{file}:{line}: " in refused.value.problem
    assert (db.catalog.to_json(), db.epoch) == (before, epoch)


def test_what_is_no_module_is_refused(db: Database, tmp_path: Path) -> None:
    for given in (3, None, tmp_path / "nowhere.py", tmp_path, importlib, __import__("sys")):
        if given is not importlib:
            with pytest.raises(UserError):
                db.load_module(given)  # type: ignore[arg-type]
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="N010"):
        db.load_module(tmp_path / "binary.py")


RECORDS = """
import collections
from collections import namedtuple
from dataclasses import dataclass, field
from datetime import date
from typing import ClassVar, NamedTuple

import everview as ev

DAY = date(2020, 1, 1)


@dataclass(frozen=True, kw_only=True)
class Told:
    day: date = DAY
    name: str
    many: int = field(default=1 + 1)


class Spot(NamedTuple):
    x: str
    y: int = 7


Pair = namedtuple("Pair", "one two", defaults=["none"])
Other = collections.namedtuple("Other", ("one",))


def shown(name, *, mark="!", many=DAY):
    return (name + mark, many)


@ev.nested
def all_of_them(M):
    return [
        (Told(name=m.name), Spot(m.gen), Spot(y=1, x="a"), Pair(m.dir), Other(m.gen),
         shown(m.name), shown(m.gen, mark="?", many=1))
        for m in M
    ]
"""


def test_records_and_functions_of_a_module_have_defaults(db: Database, file: Path) -> None:
    file.write_text(RECORDS)
    db.load_module(file)
    db.delete("M", [MOVIES[1], MOVIES[2]])
    day = date(2020, 1, 1)
    (row,) = db.read("all_of_them").to_arrow().to_pylist()
    assert [tuple(each.values()) for each in row.values()] == [
        (day, "Drive", 2),
        ("Drama", 7),
        ("a", 1),
        ("Refn", "none"),
        ("Drama",),
        ("Drive!", day),
        ("Drama?", 1),
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    y: int = 7", "    y: int = open('x')"),
        ("    many: int = field(default=1 + 1)", "    many: int = field(default_factory=int)"),
        ("    many: int = field(default=1 + 1)", "    many: int = field(init=False, default=1)"),
        ("    name: str\n", "    name: str\n    own: ClassVar[int] = 1\n"),
        ("    name: str\n", "    name: str\n    def __post_init__(self): pass\n"),
        ("(frozen=True,", "(init=False,"),
        ('"one two"', "open('x')"),
        ("    x: str\n", "    x: str = 'a'\n    z: int\n"),
        ("many=DAY", "many=open('x')"),
    ],
)
def test_what_a_module_computes_of_records_is_refused(
    db: Database, file: Path, old: str, new: str
) -> None:
    assert old in RECORDS
    file.write_text(RECORDS.replace(old, new))
    with pytest.raises(UserError) as refused:
        db.load_module(file)
    assert refused.value.code in ("N004", "N010")
    assert refused.value.remedy
    assert not db.catalog.views
