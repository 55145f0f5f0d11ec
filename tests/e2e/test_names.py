"""A name may hold anything: it works as any other does, or is refused, and nothing else happens.

Each name stands in turn for a table, a column, an alias, a CTE, a function, a parameter, a window,
a field, in every kind of statement and call. What should come of it is told by a plain name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import everview as ev

TELLING = (
    *("a b", "a.b", "a`b", 'a"b', "a'b", "a\nb", "t.id AS id, t.v AS v FROM t --", "/*", "select"),
    *(
        "_w",
        "__n",
        "all",
        "t",
        "change weight",
        "everview_1",
        "Δt",
        "🙂",
        "a" * 300,
        " a",
        "",
        "v/1",
    ),
)
HOSTILE = (
    *TELLING,
    *("`", '"', "'", "``", "a\tb", "a\\", "\\'", "a\0b", "--", "a -- b", "*/", "/* a */", ";"),
    *(
        "a; DROP TABLE t",
        "from",
        "order",
        "table",
        "null",
        "true",
        "current_user",
        "values",
        "with",
    ),
    *("_W", "_epoch", "_rows", "_copy", "__rows", "q", "l", "r", "hot t", "few t", "iteration/"),
    *("begun/", "results", "everview with 0", "everview", "ΔT", "é", "İ", "ß", "名前", "a\u200bb"),
    *("\ufeffa", "a\u00a0b", "a ", " ", "1", "1a", "-1", "*", "%", "?", ":p", "${x}", "$1", "@@x"),
    *("{0}", "{t}", "%s", "v__part__1", "main", "rows to pivot", "mark1", "1^t1.c1", "a/λ", "../a"),
)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


Use = Callable[[Any, str], Any]
"""What is done with a name; what it gives must be the same for every name."""


def rows(result: Any) -> list[Any]:
    return sorted(result.rows(), key=repr)


def table(db: Any, name: str) -> Any:
    db.sql(f"CREATE TABLE {quoted(name)} (id BIGINT PRIMARY KEY, v STRING)")
    try:
        db.insert(name, [(1, "a"), (2, "b"), (3, "c")])
        db.sql(f"INSERT INTO {quoted(name)} SELECT id + 10, v FROM {quoted(name)}")
        db.sql(f"CREATE VIEW of_name AS SELECT v, COUNT(*) AS n FROM {quoted(name)} GROUP BY v")
        db.sql(f"UPDATE {quoted(name)} SET v = 'z' WHERE {quoted(name)}.id = 1")
        db.sql(f"DELETE FROM {quoted(name)} WHERE id = 2")
        db.delete(name, [(3, "c")])
        db.upsert(name, [(4, "d")])
        db.sql(
            f"MERGE INTO {quoted(name)} USING t AS s ON {quoted(name)}.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id + 20, 'm')"
        )
        found = (rows(db.read(name)), rows(db.read("of_name")), len(db.changes(name).rows()))
        asked = rows(db.sql(f"SELECT {quoted(name)}.id FROM {quoted(name)} WHERE v > 'a'"))
        return found, asked, db.audit().ok
    finally:
        db.sql(f"DROP VIEW IF EXISTS of_name; DROP TABLE {quoted(name)}")


def view(db: Any, name: str) -> Any:
    db.sql(f"CREATE VIEW {quoted(name)} AS SELECT id, v FROM t WHERE id > 1")
    try:
        db.sql(f"CREATE VIEW of_name AS SELECT COUNT(*) AS n FROM {quoted(name)}")
        db.sql(f"CREATE OR REPLACE VIEW {quoted(name)} AS SELECT id, v FROM t WHERE id > 0")
        found = rows(db.read(name)), rows(db.sql(f"SELECT * FROM {quoted(name)}"))
        assert db.explain(name)
        return found, rows(db.read("of_name")), db.audit(name).ok
    finally:
        db.sql(f"DROP VIEW IF EXISTS of_name; DROP VIEW {quoted(name)}")


def column(db: Any, name: str) -> Any:
    c = quoted(name)
    db.sql(f"CREATE TABLE u ({c} BIGINT PRIMARY KEY, other STRING, arr ARRAY<INT>)")
    try:
        db.insert("u", [{name: 1, "other": "a", "arr": [1]}, {name: 2, "other": "b", "arr": []}])
        db.sql(f"INSERT INTO u ({c}, other) VALUES (3, 'c')")
        db.sql(
            f"CREATE VIEW one AS SELECT u.{c}, SUM(u.{c}) OVER (ORDER BY u.{c}) AS s FROM u;"
            f"CREATE VIEW two AS SELECT a.{c} AS x FROM u AS a JOIN u AS b ON a.{c} = b.{c};"
            f"CREATE VIEW three AS SELECT {c}, x FROM u LATERAL VIEW explode(arr) e AS x;"
            f"CREATE VIEW four AS SELECT MIN({c}) AS m, other FROM u GROUP BY other;"
            f"CREATE VIEW five AS SELECT {c} FROM u ORDER BY {c} DESC LIMIT 2"
        )
        db.sql(f"UPDATE u SET {c} = {c} + 10 WHERE u.{c} = 1")
        db.sql(f"DELETE FROM u WHERE {c} = 2")
        db.sql(
            f"MERGE INTO u USING t AS s ON u.{c} = s.id "
            f"WHEN MATCHED THEN UPDATE SET {c} = s.id + 50 "
            f"WHEN NOT MATCHED THEN INSERT ({c}, other) VALUES (s.id + 100, s.v)"
        )
        views = [rows(db.read(each)) for each in ("u", "one", "two", "three", "four", "five")]
        return views, rows(db.sql(f"SELECT {c} AS x FROM u ORDER BY {c}")), db.audit().ok
    finally:
        db.sql(
            "".join(f"DROP VIEW IF EXISTS {v};" for v in ("one", "two", "three", "four", "five"))
        )
        db.sql("DROP TABLE u")


def alias(db: Any, name: str) -> Any:
    a = quoted(name)
    found = [
        rows(db.sql(f"SELECT {a}.id FROM t AS {a} WHERE {a}.v = 'a'")),
        rows(db.sql(f"SELECT {a}.x FROM (SELECT id AS x FROM t) AS {a}")),
        rows(db.sql(f"SELECT {a}.y FROM VALUES (1), (2) AS {a}(y)")),
        rows(db.sql(f"SELECT x FROM (SELECT id AS {a} FROM t) AS q(x)")),
        rows(db.sql(f"SELECT y FROM t LATERAL VIEW explode(array(1, 2)) {a} AS y")),
    ]
    before = rows(db.read("t"))
    tx = db.sql("BEGIN")
    assert tx is None
    try:
        db.sql(f"DELETE FROM t AS {a} WHERE {a}.id = 1")
        db.sql(f"UPDATE t AS {a} SET v = 'z' WHERE {a}.id = 2")
        db.sql(
            f"MERGE INTO t AS {a} USING (SELECT 3 AS k) AS s ON {a}.id = s.k "
            "WHEN MATCHED THEN DELETE"
        )
        found.append(rows(db.sql("SELECT * FROM t")))
        db.sql(
            f"MERGE INTO t USING (SELECT 8 AS id, 'n' AS v) AS {a} ON t.id = {a}.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        found.append(rows(db.sql("SELECT * FROM t")))
    finally:
        db.sql("ROLLBACK")
    assert rows(db.read("t")) == before
    return found


def cte(db: Any, name: str) -> Any:
    c = quoted(name)
    asked = (
        f"WITH {c} AS (SELECT id FROM t) SELECT COUNT(*) AS n FROM {c}",
        f"WITH {c}(x) AS (SELECT id FROM t) SELECT {c}.x FROM {c}",
        f"WITH RECURSIVE {c}(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM {c} WHERE n < 3) "
        f"SELECT n FROM {c}",
    )
    return [rows(db.sql(each)) for each in asked]


def function(db: Any, name: str) -> Any:
    db.sql(f"CREATE FUNCTION {quoted(name)}(x BIGINT) RETURNS BIGINT RETURN x + 1")
    try:
        return rows(db.sql(f"SELECT {quoted(name)}(id) AS y FROM t"))
    finally:
        db.sql(f"DROP FUNCTION {quoted(name)}")


def parameter(db: Any, name: str) -> Any:
    p = quoted(name)
    db.sql(f"CREATE FUNCTION plus({p} BIGINT) RETURNS BIGINT RETURN {p} + 1")
    try:
        return rows(db.sql("SELECT plus(id) AS y FROM t"))
    finally:
        db.sql("DROP FUNCTION plus")


def window(db: Any, name: str) -> Any:
    w = quoted(name)
    return rows(db.sql(f"SELECT SUM(id) OVER {w} AS s FROM t WINDOW {w} AS (ORDER BY id)"))


def field(db: Any, name: str) -> Any:
    f = quoted(name)
    db.sql(f"CREATE TABLE u (id BIGINT, s STRUCT<{f}: INT, other: INT>)")
    try:
        db.insert("u", [{"id": 1, "s": {name: 7, "other": 8}}])
        return rows(db.sql(f"SELECT s.{f} AS x FROM u"))
    finally:
        db.sql("DROP TABLE u")


def lambda_name(db: Any, name: str) -> Any:
    x = quoted(name)
    return rows(db.sql(f"SELECT transform(array(1, 2), {x} -> {x} + 1) AS y"))


def in_python(db: Any, name: str) -> Any:
    from everview.plan.nodes import Filter

    db.view(name, Filter(db.source("t"), "`id` > 1"))
    try:
        return rows(db.read(name)), db.audit(name).ok
    finally:
        db.sql(f"DROP VIEW {quoted(name)}")


def dropped(db: Any, *declared: str) -> None:
    """Drop what is there of what may have been declared."""
    for each in declared:
        with suppress(ev.UserError):
            db.sql(f"DROP {each}")


def renamed(db: Any, name: str) -> Any:
    """A table and a column that are called so by ALTER, and back again."""
    n = quoted(name)
    db.sql("CREATE TABLE u (id BIGINT PRIMARY KEY, c STRING); INSERT INTO u VALUES (1, 'x')")
    held = "u"
    try:
        db.sql("CREATE VIEW of_u AS SELECT id, c AS x FROM u WHERE c <> 'y'")
        db.sql(f"ALTER TABLE u RENAME COLUMN c TO {n}")
        db.sql(f"ALTER TABLE u ADD COLUMN more INT DEFAULT 7; UPDATE u SET {n} = 'z'")
        db.sql(f"ALTER TABLE u RENAME TO {n}")
        held = name
        found = rows(db.read(name)), rows(db.read("of_u")), db.audit("of_u").ok
        db.sql(f"DROP VIEW of_u; ALTER TABLE {n} DROP COLUMN {n}")
        return found, rows(db.read(name))
    finally:
        db.sql(f"DROP VIEW IF EXISTS of_u; DROP TABLE {quoted(held)}")


def constraint(db: Any, name: str) -> Any:
    """A constraint, an assertion, and a key of a column that is called so."""
    n = quoted(name)
    db.sql(
        f"CREATE TABLE u ({n} BIGINT PRIMARY KEY, v INT, CONSTRAINT {n} CHECK ({n} > 0));"
        f"CREATE TABLE w (k BIGINT REFERENCES u ({n}) ON DELETE CASCADE)"
    )
    try:
        db.sql("INSERT INTO u VALUES (1, 2); INSERT INTO w VALUES (1)")
        refused = []
        for bad in ("INSERT INTO u VALUES (-1, 2)", "INSERT INTO w VALUES (5)"):
            try:
                db.sql(bad)
            except ev.UserError as problem:
                refused.append(problem.code)
        db.sql(f"ALTER TABLE u DROP CONSTRAINT {n}")
        db.sql(f"CREATE ASSERTION {n} CHECK (NOT EXISTS (SELECT 1 FROM u WHERE u.{n} > 9))")
        try:
            db.sql("INSERT INTO u VALUES (10, 2)")
        except ev.UserError as problem:
            refused.append(problem.code)
        db.sql(f"DROP ASSERTION {n}; DELETE FROM u WHERE {n} = 1")
        return refused, rows(db.read("w"))
    finally:
        dropped(db, f"ASSERTION {n}", "TABLE w", "TABLE u")


def calculus(db: Any, name: str) -> Any:
    """A view, a table and a variable of AGCA."""
    n = quoted(name)
    db.sql(f"CREATE TABLE {n} ({n} BIGINT, v INT)")
    try:
        db.insert(name, [(1, 2), (1, 3)])
        db.agca(f"made[{n}] := Sum({n}({n}, v) * v)")
        found = [tuple(row) for row in db.read("made").rows()], db.audit("made").ok
        assert db.explain("made", "agca")
        return found
    finally:
        dropped(db, "VIEW made", f"TABLE {n}")


def algebra(db: Any, name: str) -> Any:
    """A table, a column and a view of relational algebra, and of the nested calculus."""
    n = quoted(name)
    db.sql(f"CREATE TABLE u ({n} BIGINT, v INT)")
    try:
        db.insert("u", [(1, 2), (1, 3)])
        db.relalg(name, f"Π[{n} AS x](σ[{n} > 0](u)) ∪ Π[id AS x](t)")
        db.nested(f"for {n} in u union sng((a: {n}.{n}, b: {n}.v))", name="made")
        return rows(db.read(name)), rows(db.read("made")), db.audit().ok
    finally:
        dropped(db, "VIEW made", f"VIEW {n}", "TABLE u")


def triggers(db: Any, name: str) -> Any:
    n = quoted(name)
    of_sql = ev.triggers(
        f"CREATE TABLE {n} ({n} BIGINT, v INT);"
        f"CREATE VIEW made AS SELECT {n}, SUM(v) AS s FROM {n} WHERE {n} > 0 GROUP BY {n}"
    )
    of_calculus = ev.triggers(f"made[{n}] := Sum({n}({n}, v) * v)")
    for each in (of_sql, of_calculus):
        each.insert(name, [(1, 2)])
        each.insert(name, [(1, 3), (2, 4)])
        each.delete(name, [(2, 4)])
        each.restore(each.snapshot())
    return sorted(of_sql.result()), sorted(of_calculus.result())


def copied(db: Any, name: str) -> Any:
    """A table and a column that a file is copied into and from."""
    n = quoted(name)
    with (
        TemporaryDirectory() as folder,
        ev.open(f"{folder}/store", engine="duckdb", allow=[f"files:{folder}"]) as other,
    ):
        other.sql(f"CREATE TABLE {n} ({n} BIGINT, v INT); INSERT INTO {n} VALUES (1, 2), (1, 3)")
        other.sql(f"COPY (SELECT * FROM {n}) TO '{folder}/a.csv'")
        other.sql(f"COPY INTO {n} ({n}, v) FROM '{folder}/a.csv'")
        return rows(other.read(name))


USES: tuple[Use, ...] = (
    *(table, view, column, alias, cte, function, parameter, window, field, lambda_name, in_python),
    *(renamed, constraint, calculus, algebra, triggers, copied),
)


@pytest.fixture(scope="module")
def db(open_db: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_db(tmp_path_factory.mktemp("names") / "store") as opened:
        yield filled(opened)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with ev.open(str(tmp_path_factory.mktemp("names") / "store"), engine="duckdb") as opened:
        yield filled(opened)


def filled(db: Any) -> Any:
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v STRING)")
    db.insert("t", [(1, "a"), (2, "b"), (3, "c")])
    db.sql("CREATE VIEW kept AS SELECT v, COUNT(*) AS n FROM t GROUP BY v")
    return db


def state(db: Any) -> Any:
    declared = db.catalog.to_json()
    return declared, rows(db.read("t")), rows(db.read("kept"))


def must_work_or_be_refused(db: Any, use: Use, names: Iterable[str]) -> int:
    """How many of the names work; then they do as a plain one does."""
    wanted, before, worked = use(db, "plain"), state(db), 0
    wrong: dict[str, object] = {}
    for name in names:
        try:
            found = use(db, name)
            worked += 1
            if found != wanted:
                wrong[name] = found
        except ev.UserError:
            pass
        except Exception as problem:
            wrong[name] = problem
        if state(db) != before:
            wrong[name] = "something else is changed"
    assert not wrong
    return worked


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_a_name_may_hold_anything(db, engine, use):
    light = (alias, cte, function, parameter, window, field, lambda_name, triggers)
    heavy = 1 if use in light else 2
    names = {"duckdb": TELLING[::heavy], "spark": TELLING[::7]}[engine]
    worked = must_work_or_be_refused(db, use, names)
    assert worked or use in (function, field)


@pytest.mark.slow
@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_no_name_of_many_does_harm(db, use):
    must_work_or_be_refused(db, use, HOSTILE)


NAMES = st.one_of(
    st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=3).map("".join), st.text(max_size=8)
)


@given(st.lists(NAMES, min_size=15, max_size=15), st.sampled_from((cte, window, lambda_name)))
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_random_name_does_harm(embedded, names, use):
    must_work_or_be_refused(embedded, use, names)


DECLARED = {
    "a table": lambda db, n: db.sql(f"CREATE TABLE {quoted(n)} (a INT)"),
    "a view": lambda db, n: db.sql(f"CREATE VIEW {quoted(n)} AS SELECT id FROM t"),
    "a table made anew": lambda db, n: db.sql(f"CREATE TABLE c AS SELECT id AS {quoted(n)} FROM t"),
    "a column": lambda db, n: db.sql(f"CREATE TABLE c ({quoted(n)} INT)"),
    "a column of a view": lambda db, n: db.sql(f"CREATE VIEW c AS SELECT id AS {quoted(n)} FROM t"),
    "a column that is added": lambda db, n: db.sql(f"ALTER TABLE t ADD COLUMN {quoted(n)} INT"),
    "a column that is renamed": lambda db, n: db.sql(
        f"ALTER TABLE t RENAME COLUMN v TO {quoted(n)}"
    ),
    "a table that is renamed": lambda db, n: db.sql(f"ALTER TABLE t RENAME TO {quoted(n)}"),
    "an assertion": lambda db, n: db.sql(f"CREATE ASSERTION {quoted(n)} CHECK (1 = 1)"),
    "a constraint": lambda db, n: db.sql(
        f"CREATE TABLE c (a INT, CONSTRAINT {quoted(n)} CHECK (a > 0))"
    ),
    "a constraint that is added": lambda db, n: db.sql(
        f"ALTER TABLE t ADD CONSTRAINT {quoted(n)} CHECK (id > 0)"
    ),
    "a function": lambda db, n: db.sql(f"CREATE FUNCTION {quoted(n)}(a INT) RETURNS INT RETURN a"),
    "a function of Python": lambda db, n: db.function(n, len, "int", deterministic=True),
    "a view of relational algebra": lambda db, n: db.relalg(n, "t"),
    "a nested view": lambda db, n: db.nested("for x in t union sng(x.id)", name=n),
}


@pytest.mark.parametrize("name", ["", " ", "_w", "_Epoch", "a/b", "a\nb", 'a"b'])
def test_a_name_that_cannot_be_used_is_refused_in_the_same_words_everywhere(db, name):
    told = set()
    for declare in DECLARED.values():
        with pytest.raises(ev.UserError) as refused:
            declare(db, name)
        told.add((refused.value.code, refused.value.problem, refused.value.remedy))
    assert len(told) == 1, told
