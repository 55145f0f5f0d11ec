"""VERSION AS OF and TIMESTAMP AS OF: tables and views as an earlier epoch has them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

import everview as ev


@pytest.fixture
def db(tmp_path, open_db):
    with open_db(tmp_path / "s") as db:
        db.sql("CREATE TABLE t (id INT, v INT)")
        db.sql("CREATE VIEW sums AS SELECT v, COUNT(*) AS n FROM t GROUP BY v")
        yield db


def bag(result):
    return Counter(result.rows())


def test_every_epoch_is_read_as_it_was(db):
    tables, views = {}, {}
    for statement in (
        "INSERT INTO t VALUES (1, 1), (1, 1), (2, NULL)",
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t VALUES (3, 1)",
        "UPDATE t SET v = NULL WHERE id = 3",
        "DELETE FROM t",
    ):
        db.sql(statement)
        tables[db.epoch], views[db.epoch] = bag(db.read("t")), bag(db.read("sums"))
    for epoch in tables:
        assert bag(db.sql(f"SELECT * FROM t VERSION AS OF {epoch}")) == tables[epoch]
        assert bag(db.sql(f"SELECT s.v, s.n FROM sums VERSION AS OF {epoch} AS s")) == views[epoch]
        assert bag(db.sql("SELECT * FROM t VERSION AS OF :e", {"e": epoch})) == tables[epoch]
    first, *_, last = tables
    both = f"SELECT * FROM t VERSION AS OF {first} EXCEPT ALL SELECT * FROM t VERSION AS OF {last}"
    assert bag(db.sql(both)) == tables[first]
    joined = (
        f"SELECT t.id, n FROM t VERSION AS OF {first} JOIN sums VERSION AS OF {first} USING (v)"
    )
    assert bag(db.sql(joined)) == Counter({(1, 2): 2})
    assert db.sql(f"SELECT COUNT(*) AS n FROM t VERSION AS OF {first}, t AS now").rows() == [(0,)]


def test_a_moment_is_the_newest_epoch_before_it(db):
    moments = {}
    for n in range(4):
        db.insert("t", [(n, n)])
        moments[datetime.fromisoformat(db.store.latest().created)] = n + 1
    for moment, rows in moments.items():
        for asked in (moment, moment + timedelta(microseconds=1)):
            text = f"SELECT COUNT(*) AS n FROM t TIMESTAMP AS OF '{asked.isoformat(' ')}'"
            assert db.sql(text).rows() == [(rows,)]
            standard = text.replace("TIMESTAMP AS OF", "FOR SYSTEM_TIME AS OF")
            assert db.sql(standard).rows() == [(rows,)]
    later = datetime.now(UTC) + timedelta(days=1)
    assert db.sql("SELECT COUNT(*) AS n FROM t TIMESTAMP AS OF ?", [later]).rows() == [(4,)]
    before = min(moments).replace(tzinfo=None) - timedelta(days=400)
    with pytest.raises(ev.UserError, match="ask for a moment from"):
        db.sql(f"SELECT * FROM t TIMESTAMP AS OF '{before}'")


def test_an_old_epoch_does_not_see_the_open_transaction_and_can_be_brought_back(db):
    db.sql("INSERT INTO t VALUES (1, 1), (1, 1), (2, NULL)")
    epoch = db.epoch
    db.sql("BEGIN; DELETE FROM t")
    assert db.sql("SELECT COUNT(*) AS n FROM t").rows() == [(0,)]
    assert len(db.sql(f"SELECT * FROM t VERSION AS OF {epoch}")) == 3
    assert db.sql(f"INSERT INTO t SELECT * FROM t VERSION AS OF {epoch} WHERE id = 1").changed == 2
    db.sql("COMMIT")
    assert bag(db.read("t")) == Counter({(1, 1): 2})
    assert bag(db.read("sums")) == Counter({(1, 2): 1})
    db.sql(f"CREATE TABLE old AS SELECT id FROM t VERSION AS OF {epoch}")
    assert bag(db.read("old")) == Counter({(1,): 2, (2,): 1})
    assert db.audit().ok


def test_a_table_has_the_columns_that_it_had(tmp_path):
    with ev.open(tmp_path / "s", engine="duckdb") as db:
        db.sql("CREATE TABLE a (x INT)")
        db.sql("INSERT INTO a VALUES (1)")
        epoch = db.epoch
        db.sql("DROP TABLE a")
        db.sql("CREATE TABLE a (y STRING)")
        assert db.sql(f"SELECT x FROM a VERSION AS OF {epoch}").rows() == [(1,)]
        assert db.sql(f"SELECT * FROM a VERSION AS OF {epoch}").columns == ("x",)
        db.sql("DROP TABLE a")
        assert db.sql(f"SELECT x FROM a VERSION AS OF {epoch}").rows() == [(1,)]


def test_a_nested_view_has_the_collections_that_it_had(db):
    db.sql("CREATE TABLE b (id INT, w STRING); CREATE TABLE c (w STRING, n INT)")
    inner = "ARRAY(SELECT c.n FROM c WHERE c.w = b.w) AS ns"
    db.sql(f"""CREATE VIEW nested AS
        SELECT t.id, ARRAY(SELECT b.w, {inner} FROM b WHERE b.id = t.id) AS words FROM t""")
    asked = {
        "SELECT * FROM nested {}": "SELECT * FROM nested",
        "SELECT id, size(n.words) AS k FROM nested {} AS n WHERE size(words) > 0": (
            "SELECT id, size(words) AS k FROM nested WHERE size(words) > 0"
        ),
        "SELECT id, x.w, y FROM nested {} LATERAL VIEW explode(words) e AS x "
        "LATERAL VIEW explode(x.ns) f AS y": "SELECT id, x.w, y FROM nested "
        "LATERAL VIEW explode(words) e AS x LATERAL VIEW explode(x.ns) f AS y",
    }
    seen = {}
    for statement in (
        "INSERT INTO t VALUES (1, 1), (1, 1), (2, NULL)",
        "INSERT INTO b VALUES (1, 'x'), (1, 'y'), (1, 'y'); INSERT INTO c VALUES ('y', 7)",
        "DELETE FROM c; INSERT INTO c VALUES ('x', 1), ('x', NULL)",
        "DELETE FROM t WHERE id = 1",
    ):
        db.sql(statement)
        seen[db.epoch] = {each: in_order(db.sql(now)) for each, now in asked.items()}
    for epoch, answers in seen.items():
        for each, wanted in answers.items():
            assert in_order(db.sql(each.format(f"VERSION AS OF {epoch}"))) == wanted, each
        now = in_order(db.sql(f"SELECT * FROM nested VERSION AS OF {epoch}"))
        assert in_order(db.read("nested", epoch=epoch)) == now


def in_order(result):
    return sorted(map(repr, result.rows()))


BAD = [
    ("SELECT * FROM t VERSION AS OF 99", "99"),
    ("SELECT * FROM t VERSION AS OF 0", "epoch 0 has no table or view t"),
    ("SELECT * FROM nope VERSION AS OF 1", "has no table or view nope"),
    ("SELECT * FROM t VERSION AS OF -1", ""),
    ("SELECT * FROM t VERSION AS OF 'x'", "takes the number of an epoch"),
    ("SELECT * FROM t VERSION AS OF id", "takes the number of an epoch"),
    ("SELECT * FROM t TIMESTAMP AS OF 'yesterday'", "takes a moment"),
    ("SELECT * FROM t TIMESTAMP AS OF 5", "takes a moment"),
    ("WITH w AS (SELECT 1 AS a) SELECT * FROM w VERSION AS OF 1", "is a name of WITH"),
    ("CREATE VIEW v AS SELECT * FROM t VERSION AS OF 2", "cannot stand in a view"),
    (
        "CREATE VIEW v WITH (refresh = 'auto') AS SELECT * FROM t VERSION AS OF 2",
        "cannot stand in a view",
    ),
    (
        "CREATE VIEW v AS SELECT 1 AS a WHERE 1 IN (SELECT id FROM t TIMESTAMP AS OF '2024-01-01')",
        "cannot stand in a view",
    ),
]


@pytest.mark.parametrize(("text", "problem"), BAD)
def test_what_is_no_epoch_is_refused(tmp_path, text, problem):
    with ev.open(tmp_path / "s", engine="duckdb") as db:
        db.sql("CREATE TABLE t (id INT, v INT)")
        before = db.epoch
        with pytest.raises(ev.UserError) as caught:
            db.sql(text)
        assert problem in caught.value.problem
        assert caught.value.remedy
        assert db.epoch == before


def test_an_epoch_that_retention_removed_is_refused_by_name(tmp_path):
    with ev.open(tmp_path / "s", engine="duckdb") as db:
        db.sql("CREATE TABLE t (id INT, v INT)")
        for n in range(5):
            db.insert("t", [(n, n)])
        reading = db.sql("SELECT * FROM t VERSION AS OF 2")
        assert len(reading) == 1
        db.sql("DELETE FROM t")
        db.compact()
        db.retain(1, grace=0)
        with pytest.raises(ev.UserError, match="retain"):
            db.sql("SELECT * FROM t VERSION AS OF 3")
        with pytest.raises(ev.UserError, match="has been removed meanwhile"):
            reading.rows()
