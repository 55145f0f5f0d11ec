"""`status` shows how many rows a relation has, whatever its segments hold."""

from __future__ import annotations

import json

from everview.store import manifest_codec


def rows_of(db) -> dict[str, int | None]:
    return {each.name: each.rows for each in db.status() if each.kind in ("table", "view", "part")}


def counted(db, *names: str) -> dict[str, int]:
    return {name: len(db.read(name).rows()) for name in names}


def test_rows_are_those_of_the_relation_and_not_of_its_segments(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql(
            "CREATE TABLE t (k INT PRIMARY KEY, v INT); CREATE TABLE bag (k INT);"
            "CREATE VIEW low AS SELECT k FROM t WHERE v < 5;"
            "CREATE VIEW sums AS SELECT v, COUNT(*) AS n FROM t GROUP BY v"
        )
        names = ("t", "bag", "low", "sums")
        assert rows_of(db) == dict.fromkeys(names, 0)
        db.insert("t", [(k, k % 3) for k in range(10)])
        db.insert("bag", [(1,), (1,), (2,)])
        assert rows_of(db) == counted(db, *names)
        for k in range(5):
            db.upsert("t", [(k, 9)])
        db.delete("bag", [(1,)])
        db.sql("DELETE FROM t WHERE k = 7; INSERT INTO bag SELECT k FROM bag")
        assert rows_of(db) == counted(db, *names) == {"t": 9, "bag": 4, "low": 4, "sums": 3}
        db.compact()
        assert rows_of(db) == counted(db, *names)
    with open_db(tmp_path / "store", read_only=True) as db:
        assert rows_of(db) == counted(db, *names)


def test_large_relations_are_counted_too(open_db, tmp_path, own_files):
    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE t (k INT)")
        db.insert("t", [(k,) for k in range(3000)])
        db.delete("t", [(k,) for k in range(1000)])
        assert rows_of(db) == {"t": 2000}


def test_rows_of_a_store_that_does_not_tell_are_not_known(open_db, tmp_path, monkeypatch):
    plain = manifest_codec._file

    def untold(file):
        return {key: value for key, value in plain(file).items() if key != "weight"}

    with open_db(tmp_path / "store") as db:
        db.sql("CREATE TABLE t (k INT)")
        monkeypatch.setattr(manifest_codec, "_file", untold)
        db.insert("t", [(1,), (2,)])
        monkeypatch.undo()
    with open_db(tmp_path / "store") as db:
        assert rows_of(db) == {"t": None}
        assert json.dumps(rows_of(db)) == '{"t": null}'
        db.insert("t", [(3,)])
        assert rows_of(db) == {"t": None}
        db.compact()
        assert rows_of(db) == {"t": 3}
