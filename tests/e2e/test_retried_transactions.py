"""A transaction that is delivered again changes nothing, however late, and says so."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from e2e.interrupting import raising, recorded

SETUP = """
CREATE TABLE item (id INT, kind INT);
CREATE TABLE log (batch INT PRIMARY KEY);
CREATE VIEW kinds AS SELECT kind, COUNT(*) AS n FROM item GROUP BY kind;
CREATE VIEW total AS SELECT COUNT(*) AS n FROM item
"""
FIXTURES = Path(__file__).parents[1] / "store" / "fixtures"


@pytest.fixture
def db(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql(SETUP)
        yield db


def deliver(db, id_, rows) -> bool:
    """Send rows; whether they were in already."""
    with db.transaction(id=id_) as tx:
        tx.insert("item", rows)
    return tx.repeated


def check(db, expected: Counter) -> None:
    """The table and its views hold exactly these rows."""
    assert Counter(db.read("item").rows()) == expected
    by_kind = Counter(kind for _, kind in expected.elements())
    assert dict(db.read("kinds").rows()) == dict(by_kind)
    assert db.read("total").rows() == [(sum(expected.values()),)]


def test_a_batch_counts_once_however_often_it_comes(db):
    assert not deliver(db, ("stream", 0), [(1, 1)])
    assert not deliver(db, ("stream", 5), [(2, 1)])
    epoch = db.epoch
    for number in (5, 3, 0):
        assert deliver(db, ("stream", number), [(9, 9)])
    assert db.epoch == epoch
    check(db, Counter({(1, 1): 1, (2, 1): 1}))
    assert not deliver(db, ("another", 0), [(3, 2)])
    assert not deliver(db, ("stream", 6), [(1, 1)])
    check(db, Counter({(1, 1): 2, (2, 1): 1, (3, 2): 1}))
    assert db.audit().ok


def test_what_a_repeated_transaction_is_given_is_not_even_looked_at(db):
    """The rows may be gone that it deletes, and the table that it changes."""
    db.insert("log", [(1,)])
    with db.transaction(id=("stream", 1)) as tx:
        tx.delete("log", keys=[1])
    epoch = db.epoch
    with db.transaction(id=("stream", 1)) as tx:
        assert tx.repeated
        tx.delete("log", keys=[1])
        tx.insert("gone", [object()])
        tx.upsert("log", [(7,)])
        assert tx.pending == {}
    assert db.epoch == epoch
    assert db.read("log").rows() == []
    with pytest.raises(ev.UserError, match="T003"):
        tx.insert("item", [(1, 1)])


def test_a_commit_returns_the_epoch_in_which_the_batch_can_be_seen(db):
    with db.transaction(id="load") as tx:
        tx.insert("item", [(1, 1)])
        loaded = tx.commit()
    with db.transaction(id=("stream", 1)) as tx:
        first = tx.commit()
    with db.transaction(id=("stream", 2)) as tx:
        second = tx.commit()
    assert (loaded, first, second) == (2, 3, 4)
    db.insert("item", [(5, 5)])
    for id_, epoch in (("load", loaded), (("stream", 2), second), (("stream", 1), second)):
        with db.transaction(id=id_) as tx:
            assert tx.commit() == epoch


def test_a_transaction_that_changed_nothing_is_remembered(db):
    """The same statement would change something, were it run later."""
    for rows in ([], [(1, 1)]):
        with db.transaction(id=("cleaner", 1)) as tx:
            tx.gather(lambda: None)
            for row in rows:
                tx.delete("item", [row])
        db.insert("item", [(1, 1)])
    with db.transaction(id="cancelled") as tx:
        tx.insert("item", [(8, 8)])
        tx.delete("item", [(8, 8)])
    with db.transaction(id="cancelled") as tx:
        tx.insert("item", [(8, 8)])
    check(db, Counter({(1, 1): 2}))
    assert db.audit().ok


def test_a_transaction_that_failed_or_was_rolled_back_is_not_remembered(db):
    db.insert("log", [(1,)])
    tx = db.transaction(id=("stream", 1))
    tx.insert("item", [(1, 1)])
    tx.insert("log", [(1,)])
    with pytest.raises(ev.UserError, match="T010"):
        tx.commit()
    with suppress(ZeroDivisionError), db.transaction(id=("stream", 1)) as tx:
        tx.insert("item", [(1, 1)])
        raise ZeroDivisionError
    db.transaction(id="text").rollback()
    assert not deliver(db, ("stream", 1), [(1, 1)])
    assert not deliver(db, "text", [(1, 1)])
    check(db, Counter({(1, 1): 2}))


def test_statements_carry_an_id_too(db):
    send = "BEGIN WITH (writer = 'shell', number = {}); INSERT INTO item VALUES (1, 1); COMMIT"
    assert db.sql(send.format(7)).rows() == [(2, False)]
    assert db.sql(send.format(7)).rows() == [(2, True)]
    assert db.sql(send.format(8)).rows() == [(3, False)]
    assert db.sql(send.format(6)).rows() == [(3, True)]
    once = "BEGIN TRANSACTION WITH (id = 'it''s'); UPDATE item SET kind = kind + 1; COMMIT"
    assert [db.sql(once).rows() for _ in range(2)] == [[(4, False)], [(4, True)]]
    with db.transaction(id=("shell", 8)) as tx:
        assert tx.repeated
    check(db, Counter({(1, 2): 2}))


def test_the_last_number_outlives_upkeep_and_other_changes(open_db, tmp_path):
    path, when = tmp_path / "store", datetime(2026, 3, 1, tzinfo=UTC)
    with open_db(path) as db:
        db.sql(SETUP)
        db.handle.now = when.isoformat
        assert not deliver(db, ("stream", 3), [(1, 1)])
        assert not deliver(db, "text", [(1, 1)])
        for number in range(40):  # checkpoints come and go
            db.insert("item", [(2, number % 3)])
        db.compact()
        db.sql("CREATE VIEW few AS SELECT id FROM item WHERE id < 2; DROP VIEW total")
        db.retain(1, grace=0)
    with open_db(path) as db:
        assert len(db.store.epochs()) == 1
        assert deliver(db, ("stream", 3), [(9, 9)])
        assert deliver(db, "text", [(9, 9)])
        assert db.read("few").rows() == [(1,), (1,)]
        assert db.audit().ok


def test_the_last_number_outlives_a_repair(tmp_path):
    path = tmp_path / "store"
    with ev.open(str(path), engine="duckdb") as db:
        db.sql(f"{SETUP}; CREATE VIEW every AS SELECT id, kind FROM item")
        assert not deliver(db, ("stream", 3), [(n, n % 5) for n in range(5_000)])
        files = db.store.latest().relations["every"].files
    for file in files:
        (path / file.path).write_bytes(b"damaged")
    assert ev.repair(str(path), engine="duckdb").epoch is not None
    with ev.open(str(path), engine="duckdb") as db:
        assert deliver(db, ("stream", 3), [(9, 9)])
        assert db.audit().ok


def test_a_text_is_known_for_seven_days(open_db, tmp_path):
    now = datetime(2026, 3, 1, tzinfo=UTC)
    with open_db(tmp_path / "store") as db:
        db.sql(SETUP)
        db.handle.now = lambda: now.isoformat()
        assert not deliver(db, "load", [(1, 1)])
        assert not deliver(db, ("stream", 1), [(1, 1)])
        for hours in (1, 7 * 24 - 2):
            now += timedelta(hours=hours)
            assert not deliver(db, f"another {hours}", [(2, 2)])
            assert deliver(db, "load", [(9, 9)])
        now += timedelta(days=3650)
        assert not deliver(db, "later", [(3, 3)])
        assert deliver(db, ("stream", 1), [(9, 9)])
        assert not deliver(db, "load", [(4, 4)])
        check(db, Counter({(1, 1): 2, (2, 2): 2, (3, 3): 1, (4, 4): 1}))


def test_a_store_of_an_older_version_takes_ids(tmp_path):
    with ZipFile(FIXTURES / "store-0.1-duckdb.zip") as packed:
        packed.extractall(tmp_path / "shop")
    for repeated in (False, True):
        with ev.open(str(tmp_path / "shop"), engine="duckdb") as db:
            with db.transaction(id=("stream", 0)) as tx:
                tx.insert("customer", [(999, "new", 1)])
            assert tx.repeated is repeated
            assert db.audit().ok


def test_a_commit_does_not_grow_with_the_number_of_epochs(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(SETUP)
        for number in range(1000, 1020):
            deliver(db, ("stream", number), [(1, 1)])
    told = []
    for manifest in sorted((tmp_path / "store" / "manifests").glob("*.json")):
        body = json.loads(manifest.read_bytes().splitlines()[-1])["body"]
        if "checkpoint" in body:
            told += [number for number, _ in body.get("writers", {}).values()]
    assert told == [*range(1000, 1020)], "each delta tells of one number, and of no other"


DELIVERIES = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 6), st.booleans()), max_size=12
)


@settings(max_examples=15)
@given(deliveries=DELIVERIES, reopened=st.integers(0, 12))
def test_random_deliveries_count_once(tmp_path_factory, deliveries, reopened):
    """Each batch inserts rows of its own and deletes what the batch before it inserted."""
    path = str(tmp_path_factory.mktemp("random") / "store")
    last, expected = {"a": -1, "b": -1}, Counter()
    db = ev.open(path, engine="duckdb")
    db.sql(SETUP)
    for at, (writer, number, by_sql) in enumerate(deliveries):
        if at == reopened:
            db.close()
            db = ev.open(path, engine="duckdb")
        kind = ord(writer)
        if by_sql:
            [(_, repeated)] = db.sql(
                f"BEGIN WITH (writer = '{writer}', number = {number}); "
                f"DELETE FROM item WHERE kind = {kind}; "
                f"INSERT INTO item VALUES ({number}, {kind}); COMMIT"
            ).rows()
        else:
            with db.transaction(id=(writer, number)) as tx:
                tx.delete("item", [row for row in db.read("item").rows() if row[1] == kind])
                tx.insert("item", [(number, kind)])
            repeated = tx.repeated
        assert repeated is (number <= last[writer])
        if not repeated:
            expected -= Counter({(last[writer], kind): 1})
            expected[number, kind] += 1
            last[writer] = number
        check(db, expected)
    assert db.audit().ok
    db.close()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("most", [40, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_batch_sent_again_after_an_exception_at_any_call_counts_once(tmp_path, most):
    """Whether the exception came before the commit or after it cannot be told; nor need it be."""
    db = ev.open(str(tmp_path / "store"), engine="duckdb")
    db.sql(SETUP)

    def send(number: int) -> None:
        with db.transaction(id=("stream", number)) as tx:
            tx.insert("item", [(number, number % 3)])
            tx.insert("log", [(number,)])

    send(0)
    with recorded() as calls:
        send(1)
    number, errors, repeated = 1, cycle((KeyboardInterrupt, MemoryError)), 0
    places = [*dict.fromkeys(calls)]
    for place in places[:: max(1, len(places) // most)]:
        number += 1
        raising(lambda n=number: send(n), next(errors), (place, 0))
        repeated += (number,) in db.read("log").rows()
        send(number)
    check(db, Counter({(n, n % 3): 1 for n in range(number + 1)}))
    assert number > 40
    assert 0 < repeated < number, "the exceptions came on one side of the commit only"
    assert db.audit().ok
    db.close()


BAD_BEGINS = {
    "BEGIN WITH (id = 3)": "id = 3",
    "BEGIN WITH (name = 'x')": "name = 'x'",
    "BEGIN WITH (id = 'x', id = 'y')": "id = 'y'",
    "BEGIN WITH (id = upper('x'))": "id = UPPER('x')",
    "BEGIN WITH (id)": "id",
    "BEGIN WITH (writer = 'w')": "",
    "BEGIN WITH (number = 3)": "",
    "BEGIN WITH (id = 'x', writer = 'w', number = 1)": "",
    "BEGIN WITH (writer = 'w', number = 1.5)": "",
    "BEGIN WITH (writer = 'w', number = -1)": "number = -1",
    f"BEGIN WITH (writer = 'w', number = {'9' * 5000})": "",
    "BEGIN WITH (writer = 'w', number = 99999999999999999999)": "",
    "BEGIN WITH (writer = '', number = 1)": "",
    f"BEGIN WITH (id = '{'x' * 201}')": "",
    "BEGIN WITH ()": "",
    "BEGIN WITH id = 'x'": "",
}


@pytest.mark.parametrize("text", BAD_BEGINS)
def test_an_id_that_cannot_be_is_refused_with_its_place_and_nothing_is_begun(tmp_path, text):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        with pytest.raises(ev.UserError) as refused:
            db.sql(text)
        assert refused.value.span is not None
        assert BAD_BEGINS[text] in refused.value.problem
        assert refused.value.remedy
        with pytest.raises(ev.UserError, match="no transaction is open"):
            db.sql("COMMIT")
