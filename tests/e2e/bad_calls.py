"""Bad arguments of every public call: the product of calls, parameters and values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import everview as ev
from everview.database.database import Database
from everview.database.transaction import Transaction
from everview.runtime.results import Result

SETUP = """
CREATE TABLE t (k INT, v INT, s STRING);
CREATE TABLE u (k INT PRIMARY KEY, v INT NOT NULL);
CREATE TABLE m (k INT PRIMARY KEY, parts BAG<STRUCT<name: STRING, ids: BAG<INT>>>);
CREATE VIEW sums AS SELECT k, SUM(v) AS total FROM u GROUP BY k;
INSERT INTO u VALUES (1, 2), (3, 4);
INSERT INTO m VALUES (1, array(named_struct('name', 'a', 'ids', array(1, 2))));
INSERT INTO t VALUES (1, 2, 'a'), (NULL, 3, NULL)
"""


@dataclass(frozen=True)
class World:
    """What a bad call is tried on."""

    db: Database
    folder: Path
    engine: str


@dataclass(frozen=True)
class Bad:
    """One bad call; what is a matter of taste `may_work`."""

    label: str
    run: Callable[[World], Any]
    may_work: bool = False
    given: str = ""


class Hostile:
    """An object that fails whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __str__ = __repr__


NO_TEXTS: tuple[Any, ...] = (
    *(None, 1, 1.5, True, b"t", bytearray(b"t"), ["t"], ("t",), {"t": 1}, {"t"}, object()),
    *(float("nan"), Decimal(1), date(2024, 1, 1), int, len, Ellipsis, pa.array(["t"])),
    *(pa.scalar("t"), np.array(["t"]), range(3), iter(["t"]), Hostile(), 10**400),
)
NO_NAMES: tuple[Any, ...] = (
    *("", " ", "\n", "nowhere", "tt", "t\0", "\ud800", "t\udfff", "a/b", "`t`", '"t"', "t;", "t--"),
    *("t u", "t.k", "db.t", "*", "x" * 10_000, "T\u0300", "ｔ", "\u202et", "'", "SELECT", "../t"),
    *("_w", "__n", "{t}", "%s", "\\", "\x7f", "\u2028"),
)
NO_COUNTS: tuple[Any, ...] = (
    *("1", "", "newest", b"1", 1.0, 1.5, -1, -(10**30), True, False, float("nan")),
    *(float("inf"), Decimal(1), [1], (1,), {1: 1}, object(), len, np.float64(1), Hostile()),
    *(np.array([1, 2]), 1j, "\ud800"),
)
NO_FLAGS: tuple[Any, ...] = (
    None,
    0,
    1,
    2,
    -1,
    "",
    "yes",
    "False",
    [],
    [1],
    object(),
    1.0,
    Hostile(),
)
NO_CALLABLES: tuple[Any, ...] = (None, 1, "f", b"f", [], {}, object(), Hostile())
NO_TYPES: tuple[Any, ...] = (
    *NO_TEXTS,
    "",
    "nope",
    "int; DROP",
    "decimal(50,2)",
    "\ud800",
    "a" * 999,
)
NO_MAPPINGS: tuple[Any, ...] = (1, 1.5, "t", b"t", [1], object(), len, {1: 2}, {"x": 1}, True)
NO_ROWS: tuple[Any, ...] = (
    *(None, 1, 1.5, True, "abc", b"abc", {"k": 1}, {1, 2}, object(), len, int, Hostile(), Ellipsis),
    *([1], [None], ["ab"], [b"ab"], [object()], [()], [(1,)], [(1, 2, 3, 4)], [{"nope": 1}], [{1}]),
    *([{None: 1}], [{"k": 1, "K": 2}], [[[]]], [(1, 2), 3], [Hostile()], ((1,),), "\ud800"),
    *(np.array([[1, 2]]), np.array(1), pa.array([1]), pa.scalar(1), float("nan")),
    *(pa.chunked_array([[1], [2]]), pa.schema([("k", pa.int32())]), range(2), [{}, 1]),
)
NO_KEYS: tuple[Any, ...] = (
    *(
        None,
        1,
        1.5,
        True,
        "abc",
        b"abc",
        {"k": 1},
        object(),
        len,
        int,
        Hostile(),
        Ellipsis,
        10**400,
    ),
    *([None], ["ab"], [b"ab"], [object()], [()], [(1, 2)], [{"nope": 1}], [Hostile()], [10**400]),
    *([99], [1.5], [True], [[1, 2]], pa.array(["t"]), pa.scalar("t"), np.array(["t"])),
)
NO_LOCATIONS: tuple[Any, ...] = (
    *(None, 1, 1.5, True, b"x", ["x"], {"x": 1}, object(), len, Ellipsis, Hostile(), 10**400),
    *("", "\0", "a\0b", "\ud800", "nope://x", "s3a://bucket/x", "http://x/y", "ftp://x", "://"),
    *("s3://", "gs://", "hdfs://", "file://\0", "://x", "x" * 5000, "a/" * 3000, "/dev/null"),
    *("/dev/null/x", "/proc/nope", "mock://x", "abfs://x", "hdfs://nowhere:1/x", "1://x"),
)
"""A relative path may be right; these are not."""
NO_ENGINES: tuple[Any, ...] = (*NO_TEXTS, "", "sparc", "Spark", "postgres", "\ud800", "duck db")
NO_SIZES: tuple[Any, ...] = (
    *(-1, -(10**30), 1.5, True, float("nan"), float("inf"), b"1GB", ["1GB"], {"1GB": 1}, object()),
    *(
        "",
        " ",
        "-1",
        "GB",
        "1.5",
        "2 gigs",
        "1e9",
        "1GBB",
        "\ud800",
        "1\0",
        "x" * 10_000,
        "9" * 500,
    ),
    *(len, Hostile(), Decimal(1), 1j, "½GB", "٣GB"),
)
NO_IDS: tuple[Any, ...] = (
    *(1, 1.5, True, b"t", ["t"], ("t",), {"t": 1}, object(), "\ud800", "x" * 201, Hostile()),
    *((), ("w", 1, 2), ("w", "1"), ("w", -1), ("w", 1.0), ("w", True), ("w", None), ("w", 1 << 62)),
    *((1, "w"), (None, 1), ("", 1), ("x" * 999, 1), ("\ud800", 1), ("w", Hostile()), ["w", 1]),
)
NO_CHANGES: tuple[Any, ...] = (
    *(None, 1, 1.5, True, "abc", b"abc", {"u": 1}, object(), len, int, Hostile(), Ellipsis),
    *(
        [1],
        [None],
        ["abc"],
        [("u",)],
        [("u", (5, 6))],
        [("u", (5, 6), 1, 1)],
        [("u", (5, 6), None)],
    ),
    *([("u", (5, 6), "1")], [("u", (5, 6), 1.0)], [("u", (5, 6), True)], [("u", (5, 6), 10**12)]),
    *([("nope", (5, 6), 1)], [(None, (5, 6), 1)], [(["u"], (5, 6), 1)], [("u", None, 1)]),
    *(
        [("u", 7, 1)],
        [("u", "ab", 1)],
        [("u", (5,), 1)],
        [("u", (5.5, 6), 1)],
        [("u", (5, "x"), 1)],
    ),
    *([("u", (5, Hostile()), 1)], [("u", (5, "\ud800"), 1)], [Hostile()], [{1: 2, 3: 4, 5: 6}]),
    *([("u", (5, float("nan")), 1)], [("u", (5, Decimal("NaN")), 1)], [("u", (5, [6]), 1)]),
)
NO_SNAPSHOTS: tuple[Any, ...] = (
    *NO_TEXTS,
    *("", "x", "{}", "[]", "null", "1", '{"version": 1}', "[" * 99_999, "\0", "\ud800"),
    *('{"version": 1, "program": "", "maps": {}}', '{"version": [], "program": 1, "maps": 1}'),
)
NO_TRIGGERS: tuple[Any, ...] = (
    *NO_TEXTS,
    *(
        "",
        " ",
        "nope",
        "q",
        "q[]",
        "q[] :=",
        "q[a] := Sum(R(b))",
        "q[] := Sum(R(a)) / 2",
        "\0",
        "\ud800",
    ),
    *("q[] := R(a) R(b)", "q[] := Sum(R(a) * R(a, b))", "q[] := Sum(R(a)); q[] := Sum(R(a))"),
    *(
        "SELECT 1",
        "CREATE",
        "CREATE TABLE",
        "CREATE TABLE t (a INT)",
        "CREATE VIEW v AS SELECT 1 AS a",
    ),
    *(
        "CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t",
        "(" * 3000,
        "q[] := " + "(" * 3000,
    ),
    *(
        "CREATE TABLE t (a INT); CREATE VIEW v AS SELECT MAX(a) AS m FROM t",
        "q[] := 'x",
        "q[] := `",
    ),
    *("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT SUM(b) AS m FROM t", "q[] := Sum(R(a) * $)"),
    *(
        "CREATE TABLE t (a DOUBLE); CREATE VIEW v AS SELECT SUM(a) AS m FROM t",
        "q[x] := Sum(R(x) * y)",
    ),
    *("CREATE TABLE t (a INT); CREATE TABLE t (b INT)", "CREATE TABLE t (`_w` INT); SELECT 1"),
    "CREATE TABLE t (a INT); CREATE VIEW v AS SELECT SUM(reflect('x', a)) AS m FROM t",
)
NO_PATHS: tuple[Any, ...] = (
    *NO_TEXTS,
    *("", "nope", "parts.ids", "\ud800", [], ["parts", "ids"], ["nope"]),
    *(
        ["parts", None, "ids"],
        ["parts", Hostile(), "ids"],
        [None],
        [["parts"]],
        ["parts", ("a", [1, 2])],
    ),
)
NO_ELEMENTS: tuple[Any, ...] = (
    *(1, 1.5, True, "abc", b"abc", object(), len, int, Hostile(), Ellipsis, [1], [None], ["ab"]),
    *([()], [(1, 2, 3)], [{"nope": 1}], [Hostile()], [("a", 1)], [("a", ["x"])]),
    *([(1, [1])], [("\ud800", [1])], [("a", [2**40])], [{"name": "a", "NAME": "b"}], "\ud800"),
)
NO_PREVIEWS: tuple[Any, ...] = (
    *(1, 1.5, True, b"t", {"t": 1}, object(), len, Ellipsis, Hostile(), ["t", 1], [None], [[]]),
    *(["nowhere"], ("t", "nowhere"), {"nowhere"}, pa.array(["t"]), np.array(["t"]), iter(["t"])),
)
NO_SESSIONS: tuple[Any, ...] = (1, "x", object(), len, [], {}, True, Hostile())
NO_DIALECTS: tuple[Any, ...] = (
    *(1, 1.5, True, b"spark", ["spark"], {"x": 1}, object(), len, Hostile(), ("spark", "duckdb")),
    *("", " ", "nope", "postgress", "spark, x=1", "spark, normalize", "\ud800", "sparc", "x" * 500),
    *("duckdb\0", "my sql", "Dialect", "None", "spark;", "../x", "presto,,", "a=b"),
)
NO_STATEMENTS: tuple[Any, ...] = (
    *(None, 1, 1.5, True, b"SELECT 1", ["SELECT 1"], object(), len, Hostile(), Ellipsis),
    *("\0", "SELECT '\ud800' AS x", "\ud800", "SELEC", "SELECT", "SELECT (", "?", "%", "\ufeff;"),
)
NO_PROGRAMS: tuple[Any, ...] = (
    *(None, 1, 1.5, True, b".decl a(x: number)", [".decl"], object(), len, Hostile(), Ellipsis),
    *(
        "\0",
        "\ud800",
        ".decl",
        "a(x)",
        "a(1).",
        ".decl a(x: nope)",
        ".input a",
        '.decl a(x:symbol) a("',
    ),
)
NO_PLANS: tuple[Any, ...] = (None, 1, "SELECT 1", b"x", [], object(), int, len, Hostile(), {"a": 1})
NO_STAGES: tuple[Any, ...] = (*NO_TEXTS, "", "plans", "SQL", "\ud800", "operator")
NO_FUNCTIONS: tuple[Any, ...] = (
    *(1, "f", b"f", [], [1], object(), len, {1: (len, "int")}, {"f": 1}, {"f": len}, Hostile()),
    *({"f": (len,)}, {"f": (len, "nope")}, {"f": ("int", len)}, {"f": (len, "int", 1)}, {"f": ()}),
    *({"upper": (len, "int")}, {"": (len, "int")}, {"a b": (len, "int")}, {"\ud800": (len, "int")}),
    *({None: (len, "int")}, {"f": (1, "int")}, {"f": (len, None)}, {"f": None}, True),
)

VALUES: Mapping[str, tuple[Any, ...]] = {
    "name": (*NO_TEXTS, *NO_NAMES),
    "table": (*NO_TEXTS, *NO_NAMES),
    "view": (*NO_TEXTS, *NO_NAMES),
    "epoch": (*NO_COUNTS, 10**30, 2**63, 99),
    "after": NO_COUNTS,
    "grace": NO_COUNTS,
    "epochs": (None, 0, *NO_COUNTS),
    "limit": NO_COUNTS,
    "rows": NO_ROWS,
    "keys": NO_KEYS,
    "function": NO_CALLABLES,
    "functions": NO_FUNCTIONS,
    "gives": NO_TYPES,
    "deterministic": NO_FLAGS,
    "read_only": NO_FLAGS,
    "create": NO_FLAGS,
    "location": NO_LOCATIONS,
    "engine": NO_ENGINES,
    "memory": NO_SIZES,
    "spark": NO_SESSIONS,
    "dialect": NO_DIALECTS,
    "facts": NO_MAPPINGS,
    "plan": NO_PLANS,
    "stage": NO_STAGES,
    "statements": (None, 1, "SELECT 1", [1], [None], ["SELECT 1"], object(), Hostile()),
    "text": NO_STATEMENTS,
    "id": NO_IDS,
    "nested": NO_FLAGS,
    "replace": NO_FLAGS,
    "module": (None, 1, "", b"x", "nowhere.py", ".", "\0", "\ud800", object(), Hostile()),
    "pair": NO_FLAGS,
    "minimal": NO_FLAGS,
    "deleted": NO_ROWS,
    "inserted": NO_ROWS,
    "names": (*NO_PREVIEWS, *NO_NAMES),
}
"""What is bad for a parameter, whichever call it belongs to."""

NO_EXPRESSIONS: tuple[Any, ...] = (
    *NO_TEXTS,
    *("t ∪", "∪ t", "t t", "(t", "t)", "σ(t)", "σ[k > 1]", "σ[k >](t)", "σ[k > 1)(t", "σ[](t)"),
    *("Π(t)", "Π[](t)", "Π[k,](t)", "Π[k + 1](t)", "Π[k AS](t)", "Π[nope](t)", "Π[k, v AS K](t)"),
    *("nope", "t ∪ u", "t × u", "t ∩ Π[k AS v, v AS k](u)", "t ⋈ Π[k, v AS s](u)", "t -- ∪ t\n u"),
    *("σ[nope = 1](t)", "σ[t.k = 1](t)", "σ[k](t)", "σ[k = 'x' AND](t)", "σ[SUM(k) > 1](t)"),
    *("σ[k IN (SELECT k FROM u)](t)", "σ[RAND() > 0](t)", "σ[ROW_NUMBER() OVER () = 1](t)"),
    *("σ[k = 1; DROP TABLE t](t)", "SELECT * FROM t", "t; DROP TABLE t", "σ['](t)", "`t", "/* t"),
    *("Π[k AS _w](t)", "Π[k AS `a/b`](t)", "(" * 3000 + "t" + ")" * 3000, "t" + " ∪ t" * 3000),
    *("∇t", "Δt", "mod(t)", "∅", "σ[reflect('java.lang.System', 'exit') = 1](t)", "σ[k = 1, v](t)"),
)
"""Texts that are no views of relational algebra."""

VALUES = {
    **VALUES,
    "relation": (*NO_TEXTS, *NO_NAMES),
    "changes": NO_CHANGES,
    "snapshot": NO_SNAPSHOTS,
    "path": NO_PATHS,
    "insert": NO_ELEMENTS,
    "delete": NO_ELEMENTS,
    # A number is a key, and so is a dict.
    "key": (
        *(each for each in NO_KEYS if type(each) not in (int, dict)),
        *(10**400, (1, 2), [], (None,), ("x",), (99,), {"nope": 1}),
    ),
}

GOOD: Mapping[str, Any] = {
    "name": "t",
    "table": "u",
    "view": "sums",
    "rows": [(5, 6)],
    "function": len,
    "gives": "int",
    "text": "SELECT 1 AS x",
    "epochs": 3,
    "query": "for x in t union sng(1)",
    "statements": (),
    "module": "views.py",
    "key": (1,),
    "path": "parts",
    "relation": "u",
    "changes": [("u", (5, 6), 1)],
    "snapshot": "",
}
HARMLESS = frozenset(
    [
        ("Database.audit", "view", None),
        ("Database.read", "epoch", None),
        ("Database.changes", "path", None),
        ("Database.sql", "params", None),
        ("Database.datalog", "facts", None),
        ("Database.transaction", "id", None),
        ("Triggers.result", "view", None),
        ("SqlTriggers.result", "view", None),
        ("SqlTriggers.to_arrow", "view", None),
    ]
)
"""Values of that list which mean something in that place."""

MAY_WORK = (
    "ev.open(location)",
    "Database.view(name)",
    "Database.nested(name)",
    "Database.relalg(name)",
    "Result.batches(rows)",
)
"""A path may be there, a view may have a name that looks odd, and a row is a number there."""

SKIPPED = frozenset(
    (
        *(
            "Database.close",
            "Transaction.add_weighted",
            "Transaction.add_deep",
            "Transaction.gather",
        ),
        *("Transaction.pending_of", "Transaction.taken", "Transaction.weighted_preview"),
        *("Transaction.commit", "Transaction.rollback", "Transaction.run", "Transaction.wait"),
        "Result.within",
    )
)
"""Inner calls, and calls without arguments that end something."""


TRIGGERS = {
    "Triggers": "q[k] := Sum(u(k, v) * v * (v < 9))",
    "SqlTriggers": "CREATE TABLE u (k INT PRIMARY KEY, v DECIMAL(5,2));"
    "CREATE VIEW q AS SELECT k, SUM(v) AS s FROM u GROUP BY k",
}


def _kept(given: str) -> tuple[type, Callable[[World], Any]]:
    return type(ev.triggers(given)), lambda _: ev.triggers(given)


def calls() -> Iterator[Bad]:
    """Every public call with one bad argument."""
    yield from _product("ev.open", inspect.signature(ev.open), _opening)
    triggers = inspect.signature(ev.triggers)
    yield from _product("ev.triggers", triggers, lambda _, given: ev.triggers(**given))
    for kind, target in (
        *map(_kept, TRIGGERS.values()),
        (Database, lambda world: world.db),
        (Transaction, lambda world: world.db.transaction()),
        (Result, lambda world: world.db.read("t")),
    ):
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            label = f"{kind.__name__}.{name}"
            if not name.startswith("_") and label not in SKIPPED:
                yield from _product(label, inspect.signature(method), _method(name, target))


Apply = Callable[[World, dict[str, Any]], Any]


def _opening(world: World, given: dict[str, Any]) -> Any:
    given = {"location": str(world.folder / "other"), "engine": "duckdb"} | given
    opened = ev.open(**given)
    opened.close()
    return opened


def _method(name: str, target: Callable[[World], Any]) -> Apply:
    def apply(world: World, given: dict[str, Any]) -> Any:
        return _drained(getattr(target(world), name)(**given))

    return apply


def _drained(found: Any) -> Any:
    """Read what is only read when asked for."""
    if isinstance(found, Result):
        return found.rows()
    return list(found) if inspect.isgenerator(found) else found


def _product(label: str, signature: inspect.Signature, apply: Apply) -> Iterator[Bad]:
    parameters = [each for each in signature.parameters.values() if each.name != "self"]
    needed = [p.name for p in parameters if p.default is p.empty and label != "ev.open"]
    good = {name: _good(label, name) for name in needed}
    for parameter in parameters:
        values = VALUES.get(parameter.name, NO_TEXTS)
        if label == "ev.triggers":
            values = NO_TRIGGERS
        if label in ("Database.datalog", "Database.agca") and parameter.name == "text":
            values = NO_PROGRAMS
        if label == "Database.relalg" and parameter.name == "text":
            values = NO_EXPRESSIONS
        for number, value in enumerate(values):
            if any(_is(label, parameter.name, value, each) for each in HARMLESS):
                continue
            others = {name: each for name, each in good.items() if name != parameter.name}
            run = _bound(apply, others, parameter.name, value)
            kind = f"{label}({parameter.name})"
            given = value if isinstance(value, str) else ""
            yield Bad(f"{kind} #{number}", run, kind in MAY_WORK, given)


def _bound(apply: Apply, given: dict[str, Any], name: str, value: Any) -> Callable[[World], Any]:
    def run(world: World) -> Any:
        filled = {n: v(world) if n == "plan" else v for n, v in given.items()}
        return apply(world, filled | {name: value})

    return run


def _good(label: str, name: str) -> Any:
    if label == "Transaction.update_inner" and name == "table":
        return "m"
    if name == "plan":
        return lambda world: world.db.source("t")
    if label == "Database.datalog" and name == "text":
        return ".decl e(x: number)\n.input e\n"
    if label in ("Database.view", "Database.relalg") and name == "name":
        return "fresh"
    if label == "Database.relalg" and name == "text":
        return "t"
    return GOOD[name]


def _is(label: str, name: str, value: Any, harmless: tuple[str, str, Any]) -> bool:
    return harmless[:2] == (label, name) and value is harmless[2]
