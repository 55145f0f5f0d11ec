"""A first transaction waits for nothing to be loaded: it fetches, and loading goes on beside."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import everview as ev
from e2e.shapes import query
from e2e.test_views import World
from everview.runtime.cache import loader
from everview.runtime.cache.loader import Loader
from everview.runtime.cache.relation_cache import RelationCache
from everview.store import segments

SHAPES = ("join", "three_tables", "union", "average", "global", "doubles", "distinct")


@pytest.fixture
def nothing_at_once(monkeypatch: pytest.MonkeyPatch, own_files: None) -> None:
    """Every relation counts as large, and is in files of its own."""
    monkeypatch.setattr(loader, "AT_ONCE_ROWS", -1)
    monkeypatch.setattr(loader, "AT_ONCE_SHARE", -1)
    monkeypatch.setattr(segments, "KEYED_ROW_GROUP_ROWS", 5)


def ways(db: Any) -> set[str]:
    return set(db.store.latest().note["ways"].values())


def shop(db: Any, rows: int = 60) -> None:
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, g INT, v BIGINT)")
    db.sql("CREATE VIEW s AS SELECT g, SUM(v) AS s, COUNT(*) AS n FROM t GROUP BY g")
    db.insert("t", [(n, n % 7 if n % 5 else None, n) for n in range(rows)])


def change(db: Any, number: int) -> None:
    with db.transaction() as tx:
        tx.insert("t", [(1000 + number, number % 7, 1), (2000 + number, None, 2)])
    db.upsert("t", [(number, 3, -number)])


def wait(db: Any) -> None:
    db.engine.local.wait()


@pytest.mark.usefixtures("nothing_at_once")
def test_what_is_not_loaded_is_read_from_files(
    open_db: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Loader, "start", lambda self: None)
    with open_db(tmp_path) as db:
        world = World(db, seed=5)
        world.transact(0)
        for shape in SHAPES:
            world.view(f"v_{shape}", query(shape, "p"))
        for number in range(1, 4):
            world.transact(number)
            assert "driver" in ways(db)
            world.check()
        db.compact()
        world.transact(4)
        world.check()


@pytest.mark.usefixtures("nothing_at_once")
def test_what_was_fetched_once_is_in_memory_later(
    open_db: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_db(tmp_path) as db:
        shop(db)
    with open_db(tmp_path) as db:
        change(db, 1)
        assert ways(db) <= {"driver", "unasked"}
        change(db, 2)
        wait(db)
        change(db, 3)
        wait(db)
        assert db.audit().ok
    with open_db(tmp_path) as db:
        change(db, 4)
        wait(db)
        monkeypatch.setattr(loader, "AT_ONCE_SHARE", 1.0)
        change(db, 5)
        assert ways(db) <= {"memory", "unasked"}
        assert db.audit().ok


def test_a_copy_is_brought_up_to_what_came_while_it_was_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_files: None
) -> None:
    monkeypatch.setattr(loader, "AT_ONCE_ROWS", 30)
    going, loading = threading.Event(), threading.Event()
    plain = RelationCache.load

    def slow(self: Any, name: str, snapshot: Any) -> None:
        loading.set()
        assert going.wait(20)
        plain(self, name, snapshot)

    monkeypatch.setattr(RelationCache, "load", slow)
    with ev.open(str(tmp_path), engine="duckdb") as db:
        shop(db)
    with ev.open(str(tmp_path), engine="duckdb") as db:
        change(db, 1)
        assert loading.wait(20)
        change(db, 2)
        assert "driver" in ways(db)
        db.sql("DELETE FROM t WHERE id = 7")
        going.set()
        wait(db)
        change(db, 3)
        assert ways(db) <= {"memory", "unasked"}
        assert db.audit().ok
        rows = sorted(db.read("t").rows(), key=repr)
    with ev.open(str(tmp_path), engine="duckdb") as db:
        assert sorted(db.read("t").rows(), key=repr) == rows


@pytest.mark.parametrize("when", ["compacted", "dropped", "forgotten", "closed"])
def test_what_is_loaded_while_the_relation_changes_is_right_or_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_files: None, when: str
) -> None:
    monkeypatch.setattr(loader, "AT_ONCE_ROWS", 30)
    going, loading = threading.Event(), threading.Event()
    plain = RelationCache.load

    def slow(self: Any, name: str, snapshot: Any) -> None:
        loading.set()
        assert going.wait(20)
        plain(self, name, snapshot)

    monkeypatch.setattr(RelationCache, "load", slow)
    with ev.open(str(tmp_path), engine="duckdb") as db:
        shop(db)
        db.engine.local.loader.stop()
        going.set()
    going.clear()
    loading.clear()
    with ev.open(str(tmp_path), engine="duckdb") as db:
        change(db, 1)
        assert loading.wait(20)
        thread = db.engine.local.loader._thread
        if when == "compacted":
            db.compact()
        elif when == "dropped":
            db.sql("DROP VIEW s; DROP TABLE t")
            shop(db, rows=90)
        elif when == "forgotten":
            db.engine.local.forget()
        else:
            db.close()
            going.set()
            thread.join(20)
            assert not thread.is_alive()
            return
        going.set()
        thread.join(20)
        for number in (2, 3, 4):
            change(db, number)
            wait(db)
        assert db.audit().ok


def test_damage_that_is_met_while_loading_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "AT_ONCE_ROWS", 30)
    monkeypatch.setattr(segments, "KEYED_ROW_GROUP_ROWS", 500)
    monkeypatch.setattr(segments, "_parts", lambda rows: [rows] if rows.num_rows else [])
    with ev.open(str(tmp_path), engine="duckdb") as db:
        db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, v STRING)")
        db.sql("CREATE VIEW n AS SELECT COUNT(*) AS n FROM t")
        db.insert("t", pa.table({"id": range(5_000), "v": [f"text {n}" for n in range(5_000)]}))
    (path,) = tmp_path.glob("segments/t/*.parquet")
    last = pq.read_metadata(path).row_group(9)
    at = last.column(1).data_page_offset + last.column(1).total_compressed_size // 2
    whole = bytearray(path.read_bytes())
    whole[at] ^= 1
    path.write_bytes(whole)
    with ev.open(str(tmp_path), engine="duckdb") as db:
        for number in (1, 2):
            db.upsert("t", [(number, "other")])
            wait(db)
            assert ways(db) <= {"driver", "unasked", "memory"}
        with pytest.raises(ev.UserError, match="S003"):
            db.upsert("t", [(4_990, "other")])


def test_a_program_that_forgets_to_close_ends(tmp_path: Path) -> None:
    """What is still wanted when it ends is not loaded."""
    with ev.open(str(tmp_path / "shop"), engine="duckdb") as db:
        shop(db)
    code = f"""
import time, everview as ev
from everview.runtime.cache import loader
from everview.runtime.cache.relation_cache import RelationCache
loader.AT_ONCE_ROWS, plain = 1, RelationCache._load
def slow(*given):
    time.sleep(1)
    return plain(*given)
RelationCache._load = slow
db = ev.open({str(tmp_path / "shop")!r}, engine="duckdb")
db.upsert("t", [(1, 1, 1)])
assert db.engine.local.loader._thread is not None
print("done")
"""
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert (shown.stdout.strip(), shown.stderr) == ("done", "")
