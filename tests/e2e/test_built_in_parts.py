"""A relation of many rows is built in parts, and is the same as if it had been built whole."""

from __future__ import annotations

import pytest

import everview as ev
from e2e.every_type import COLUMNS, NAMES, NULLS, ROW
from e2e.shapes import query, shapes_for
from e2e.test_views import World
from everview.engines.duckdb import engine as embedded
from everview.engines.duckdb import evaluator


@pytest.fixture(autouse=True)
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "BUILD_CHUNK_ROWS", 2)
    monkeypatch.setattr(evaluator, "READ_ROWS", 1)


@pytest.mark.parametrize("start", range(4))
def test_every_shape_equals_its_query_after_every_transaction(tmp_path, start):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        world = World(db, seed=start)
        for number in range(3):
            world.transact(4 * number)
        for shape in list(shapes_for("duckdb"))[start::4]:
            world.view(f"v_{shape}", query(shape, "p"))
        world.check()
        for number in range(1, 4):
            world.transact(number)
            world.check()
        queries = world.queries
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        again = World(db, seed=9, declare=False)
        again.queries = queries
        again.transact(1)
        again.check()


def test_rows_are_in_order_over_all_files(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (k STRING, v INT)")
        texts = ["b", None, "é", "a", "", "B", "\U0001f600", "z", None]
        db.insert("t", [(text, number) for number, text in enumerate(texts)])
        db.sql(
            "CREATE MATERIALIZED VIEW v AS SELECT k, COUNT(*) AS n, MAX(v) AS m FROM t GROUP BY k"
        )
        relation = db.store.latest().relations["v"]
        assert len(relation.files) > 1
        assert [file.rows for file in relation.files[:-1]] == [2] * (len(relation.files) - 1)
        (sort,) = {segment.sort_by for segment in relation.segments}
        keys = db.store.read_files(relation.files)[sort[0]].to_pylist()
        assert keys == sorted(keys, key=lambda key: (key is not None, str(key).encode()))
        db.delete("t", [("é", 2), (None, 1)])
        db.insert("t", [("é", 7), ("b", 8)])
        assert db.audit().ok


def test_values_of_every_type_come_through(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(f"CREATE TABLE every (id INT, {COLUMNS})")
        rows = [(number, *(NULLS if number % 3 else ROW)) for number in range(7)]
        db.insert("every", rows)
        db.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id, {NAMES} FROM every")
        expected = db.read("every").rows()
        assert sorted(map(repr, db.read("v").rows())) == sorted(map(repr, expected))
        assert len(db.store.latest().relations["v"].files) > 1
        db.delete("every", rows[:2])
        assert db.audit().ok
