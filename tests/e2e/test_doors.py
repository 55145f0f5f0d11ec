"""No statement, view or store of others starts a program, calls Java, or reads beside the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import everview as ev
from cases import check_each
from e2e.attacks import HARMLESS, JAVA, QUERIES, STATEMENTS
from everview.engines.duckdb.evaluator import DuckDBEvaluator
from everview.store.manifest_codec import sealed
from everview.store.manifest_log import manifest_path
from everview.store.store import Store

HIDDEN = "hidden words"
WAYS = {
    "asked": "{0}",
    "in a view": "CREATE VIEW made AS {0}",
    "in a view that is recomputed": "CREATE VIEW made WITH (refresh = 'auto') AS {0}",
    "in a table": "CREATE TABLE made AS {0}",
    "inserted": "INSERT INTO t SELECT * FROM ({0}) AS q",
    "inserted as it is": "INSERT INTO t {0}",
    "deleted by": "DELETE FROM t WHERE EXISTS ({0})",
    "updated by": "UPDATE t SET v = 'x' WHERE EXISTS ({0})",
    "merged": "MERGE INTO t USING ({0}) AS s ON FALSE WHEN NOT MATCHED THEN INSERT VALUES (9, 'x')",
    "explained": "EXPLAIN {0}",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("doors")
    (at / "secret").write_text(f"{HIDDEN}\n")
    return at


@pytest.fixture(scope="module")
def catalog(engine: str, place: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """What there is in the user's own session and catalog."""
    if engine != "spark":
        yield
        return
    session = request.getfixturevalue("spark")
    made = session.createDataFrame([(HIDDEN,)], "x string")
    made.createOrReplaceGlobalTempView("hidden")
    made.write.mode("overwrite").option("path", str(place / "table")).saveAsTable("default.hidden")
    yield
    session.sql("DROP TABLE default.hidden")


@pytest.fixture(scope="module")
def db(open_db: Any, place: Path, engine: str, catalog: None) -> Iterator[Any]:
    with open_db(place / f"store {engine}") as opened:
        opened.sql("CREATE TABLE t (id BIGINT, v STRING)")
        opened.insert("t", [(1, "a"), (2, "b")])
        yield opened


def is_kept_out(db: Any, place: Path, do: Callable[[], Any]) -> None:
    """What is done is refused and gives nothing away; nothing is changed by it."""
    before = db.epoch
    with pytest.raises(ev.UserError) as refusal:
        _told(do())
    assert refusal.value.remedy
    assert HIDDEN not in refusal.value.problem
    assert not (place / "marker").exists()
    assert db.epoch == before


def state(db: Any) -> Any:
    return sorted(db.read("t").rows()), db.catalog.to_json()


def _told(given: Any) -> None:
    pytest.fail(f"not refused: {given.rows() if given is not None else 'done'}")


def told(attack: str, place: Path) -> str:
    return attack.replace("SECRET", str(place / "secret")).replace("MARKER", str(place / "marker"))


@pytest.mark.parametrize("way", WAYS)
def test_no_query_reaches_beside_the_store(db, place, way):
    def check(attack: str) -> None:
        text = WAYS[way].replace("{0}", told(attack, place))
        is_kept_out(db, place, lambda: db.sql(text))

    before = state(db)
    check_each(QUERIES, check)
    assert state(db) == before


def test_no_statement_reaches_beside_the_store(db, place):
    before = state(db)
    check_each(
        STATEMENTS, lambda attack: is_kept_out(db, place, lambda: db.sql(told(attack, place)))
    )
    assert state(db) == before


NEVER = (
    *(f"SELECT {call}('java.lang.System', 'exit') AS x FROM t" for call in JAVA),
    "SELECT id FROM t WHERE reflect('java.lang.System', 'exit') = 'x'",
    "SELECT TRANSFORM(id) USING 'sh' AS (x) FROM t",
)


@pytest.mark.parametrize("way", WAYS)
def test_what_nothing_allows_is_not_said_to_be_allowed_somewhere(db, way):
    """`allow` takes no such function, and no other engine calls it."""
    for attack in NEVER:
        with pytest.raises(ev.UserError) as refusal:
            _told(db.sql(WAYS[way].replace("{0}", attack)))
        assert refusal.value.code in ("Q023", "T002"), refusal.value
        assert "allow=" not in refusal.value.remedy
        assert "spark" not in refusal.value.remedy


def test_what_only_looks_like_an_attack_is_answered(db, place):
    def check(text: str) -> None:
        assert sorted(db.sql(told(text, place)).rows()) == HARMLESS[text]

    check_each(HARMLESS, check)


VIEW = {"name": "v", "columns": []}
STORED = {
    "sql": lambda attack: {**VIEW, "query": attack},
    "recomputed": lambda attack: {
        **VIEW,
        "query": attack,
        "refresh": "auto",
        "rest": "SELECT * FROM v__part__1",
        "parts": [
            {"name": "v__part__1", "query": attack, "columns": [["v", "string"]], "reads": ["t"]}
            | {"reason": "it is so"}
        ],
    },
}


@pytest.mark.parametrize("form", STORED)
def test_a_store_of_others_reaches_nothing(open_db, place, engine, form):
    """The text of a view in a manifest is what anybody may have written."""
    at = place / f"foreign {engine} {form}"
    with open_db(at) as made:
        made.sql("CREATE TABLE t (id BIGINT, v STRING); CREATE VIEW v AS SELECT v FROM t")
        made.insert("t", [(1, "a"), (2, "b")])
    store = Store.open_existing(str(at))
    store.make_checkpoint(store.epochs()[-1])
    path = at / manifest_path(store.epochs()[-1])
    original, let_in = path.read_bytes(), {}
    for attack in QUERIES[::3] if form == "recomputed" else QUERIES:
        forge(path, original, STORED[form](told(attack, place)))
        try:
            use(open_db, at)
        except Exception as problem:
            let_in[attack] = problem
        assert not (place / "marker").exists(), attack
    assert not let_in


def use(open_db: Any, at: Path) -> None:
    """Do all that one does with a store: each is done, or refused, and no hidden word is told."""
    with refused(), open_db(at, read_only=True) as db:
        for do in (lambda: db.audit("v"), lambda: db.audit(), lambda: db.explain("v")):
            with refused():
                assert HIDDEN not in str(do())
        with refused():
            assert HIDDEN not in str(db.read("v").rows())


class refused:  # noqa: N801
    """What may be refused, in words of its own."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        # A view that is stored with other types than its forged query has is another matter.
        if isinstance(error, ev.UserError | pa.ArrowInvalid):
            assert HIDDEN not in str(error)
            return True
        return False


def forge(path: Path, original: bytes, view: Any) -> None:
    body = json.loads(original.splitlines()[-1])["body"]
    body["catalog"]["views"] = [view]
    path.write_bytes(sealed(json.dumps(body).encode()))


_KEPT_IN = r"(?i)permission|cannot|disabled|does not exist"


def test_duckdb_opens_no_file_beside_the_store(tmp_path):
    """Whatever text should come to DuckDB."""
    (tmp_path / "secret.csv").write_text("x\nhidden words\n")
    duckdb = DuckDBEvaluator()
    duckdb.confine(str(tmp_path / "store"))
    for text in (
        f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
        f"SELECT * FROM '{tmp_path}/secret.csv'",
        f"SELECT * FROM read_text('{tmp_path}/store/../secret.csv')",
        f"COPY (SELECT 1) TO '{tmp_path}/marker.csv'",
        f"ATTACH '{tmp_path}/marker.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        f"SET allowed_directories = ['{tmp_path}']",
        "RESET allowed_directories",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM tmp_path",
    ):
        with pytest.raises(Exception, match=_KEPT_IN):
            duckdb.execute(text)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["secret.csv"]
    duckdb.close()


@pytest.mark.spark
def test_what_is_allowed_is_reached_by_statements_and_by_no_view(spark, place, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.csv").write_text("7\n")
    spark.range(3).write.mode("overwrite").saveAsTable("default.counted")
    allow = [f"files:{files}", "table:default.counted", "function:from_xml"]
    try:
        with ev.open(str(tmp_path / "store"), spark=spark, allow=allow) as db:
            db.sql("CREATE TABLE t (id BIGINT, v STRING)")
            assert db.sql(f"SELECT _c0 FROM csv.`{files}/a.csv`").rows() == [("7",)]
            assert db.sql("SELECT COUNT(*) AS n FROM default.counted").rows() == [(3,)]
            db.sql("INSERT INTO t SELECT id, 'x' FROM default.counted AS c WHERE c.id > 1")
            db.sql(f"CREATE TABLE made AS SELECT CAST(_c0 AS INT) AS n FROM csv.`{files}`")
            assert db.read("t").rows() == [(2, "x")]
            assert db.read("made").rows() == [(7,)]
            for text in (
                f"SELECT * FROM text.`{place}/secret`",
                f"SELECT * FROM text.`{files}/../secret`",
                f"SELECT * FROM text.`{files}x`",
                "SELECT * FROM counted",
                "CREATE VIEW w AS SELECT id FROM default.counted",
                "CREATE VIEW w WITH (refresh = 'auto') AS SELECT id FROM default.counted",
                f"CREATE VIEW w WITH (refresh = 'auto') AS SELECT _c0 FROM csv.`{files}/a.csv`",
                "CREATE VIEW w WITH (refresh = 'auto') AS SELECT from_xml(v, 'a INT') AS x FROM t",
            ):
                with pytest.raises(ev.UserError):
                    db.sql(text)
        with ev.open(str(tmp_path / "store"), spark=spark) as db, pytest.raises(ev.UserError):
            db.sql("SELECT * FROM default.counted")
    finally:
        spark.sql("DROP TABLE default.counted")


@pytest.mark.parametrize(
    "entry", ["function:reflect", "function:JAVA_METHOD", "files:/", "files:", "table:", "shell:x"]
)
def test_what_cannot_be_allowed_is_refused(tmp_path, entry):
    with pytest.raises(ev.UserError, match="allow cannot hold"):
        ev.open(str(tmp_path / "store"), allow=[entry])


def test_the_embedded_engine_reaches_nothing_else(tmp_path):
    with pytest.raises(ev.UserError, match="nothing beside the store"):
        ev.open(str(tmp_path / "store"), engine="duckdb", allow=["files:/data", "table:a.b"])
    with ev.open(str(tmp_path / "store"), engine="duckdb", allow=["files:/data"]) as db:
        for text in ("SELECT * FROM csv.`/data/a`", "SELECT * FROM a.b", "COPY t TO '/etc/x.csv'"):
            with pytest.raises(ev.UserError):
                db.sql(text)


@pytest.mark.spark
def test_every_pure_function_is_one_of_sparks_own(spark):
    """A name that Spark does not know could be a function of a catalog."""
    from everview.lang.sql.bind.pure_functions import NEVER, PURE

    known = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    # Parsed by Spark's grammar and not by name.
    grammar = {"struct", "timestampadd", "timestampdiff"}
    assert not PURE - known - grammar
    assert not PURE & NEVER
