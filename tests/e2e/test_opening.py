"""A store that another version wrote keeps other states: what is missing is built on opening."""

from __future__ import annotations

import pytest

import everview as ev
from everview.store.store import Store

QUERY = "SELECT t.k, SUM(t.x + u.x) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.k"


@pytest.fixture
def location(tmp_path):
    """A store without the states of its view, and with one that nothing needs."""
    db = ev.open(str(tmp_path), engine="duckdb")
    db.sql("CREATE TABLE t (k INT, x INT); CREATE TABLE u (k INT, x INT)")
    db.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
    db.insert("t", [(1, 1), (2, 2)])
    db.insert("u", [(1, 10), (1, 20)])
    states = [name for name, stored in db.catalog.stored().items() if stored.ours]
    assert states
    db.close()
    store = Store.open_existing(tmp_path)
    latest = store.latest()
    rows = store.read_files(latest.relations["t"].files)
    old = store.write_segment("other", latest.epoch + 1, rows)
    store.commit(
        latest.advance(epoch=latest.epoch + 1, created="t", bases={"other": old}, dropped=states)
    )
    return str(tmp_path)


def test_missing_states_are_built_and_others_dropped(location):
    db = ev.open(location, engine="duckdb")
    assert db.catalog.stored().keys() == db.store.latest().relations.keys()
    db.insert("t", [(1, 5)])
    db.delete("u", [(1, 10)])
    assert sorted(db.read("v").rows()) == sorted(db.sql(QUERY).rows()) == [(1, 46)]
    db.audit()
    epoch = db.epoch
    db.close()
    again = ev.open(location, engine="duckdb")
    assert again.epoch == epoch, "nothing is built twice"
    again.close()


def test_a_reader_changes_nothing(location):
    db = ev.open(location, engine="duckdb", read_only=True)
    assert "other" in db.store.latest().relations
    assert db.read("v").rows() == [(1, 32)]
    db.close()
