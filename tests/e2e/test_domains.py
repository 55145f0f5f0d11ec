"""Domains put to use: new values of correlated subqueries, from totals and not from tables."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import pytest

import everview as ev

BIDS = "CREATE TABLE bids (broker INT, price {price}, volume {volume})"
TOTAL = "(SELECT SUM(volume) FROM bids)"
VIEWS = {
    "vwap": f"""SELECT SUM(price * volume) AS v FROM bids b1 WHERE 0.25 * {TOTAL} >
                (SELECT SUM(volume) FROM bids b2 WHERE b2.price > b1.price)""",
    "counted": """SELECT COUNT(*) AS n, COUNT(volume) AS k FROM bids b1 WHERE
                  (SELECT SUM(volume) FROM bids b2 WHERE b2.price < b1.price) >= 3""",
    "by_broker": """SELECT broker, SUM(volume) AS v, AVG(volume) AS a FROM bids b1 WHERE
                    (SELECT COUNT(*) FROM bids b2 WHERE b2.price <= b1.price) > 2
                    GROUP BY broker""",
    "higher": """SELECT price, (SELECT SUM(price * volume) FROM bids b2 WHERE
                 b2.price > b1.price) AS s FROM bids b1""",
}


def total(values):
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def times(left, right):
    return None if left is None or right is None else left * right


def over(left, right):
    return left is not None and right is not None and left > right


def meaning(rows):
    """The four views, by definition."""

    def kept(condition):
        return [row for row in rows if condition(row)]

    whole = total(v for _, _, v in rows)
    found = kept(
        lambda b: over(times(whole, Decimal("0.25")), total(v for _, p, v in rows if over(p, b[1])))
    )
    yield "vwap", [(total(times(p, v) for _, p, v in found),)]
    found = kept(lambda b: over(total(v for _, p, v in rows if over(b[1], p)), 2))
    yield "counted", [(len(found), sum(v is not None for _, _, v in found))]
    found = kept(
        lambda b: sum(p is not None and b[1] is not None and p <= b[1] for _, p, _ in rows) > 2
    )
    groups = {b: [v for c, _, v in found if c == b] for b, _, _ in found}
    yield (
        "by_broker",
        [
            (
                b,
                total(vs),
                None if total(vs) is None else total(vs) / sum(v is not None for v in vs),
            )
            for b, vs in groups.items()
        ],
    )
    yield (
        "higher",
        [(p, total(times(q, v) for _, q, v in rows if over(q, p))) for _, p, _ in rows],
    )


@pytest.mark.parametrize(("price", "volume"), [("INT", "BIGINT"), ("DECIMAL(6,2)", "INT")])
def test_views_with_compared_subqueries_are_as_recomputed(price, volume, tmp_path):
    """NULLs, duplicates, prices that come and go, and several changes of one price at once."""
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(BIDS.format(price=price, volume=volume))
        for name, text in VIEWS.items():
            db.sql(f"CREATE VIEW {name} AS {text}")
        draw, rows = random.Random(price), []
        for step in range(6):
            with db.transaction() as tx:
                gone = [row for row in rows if draw.random() < (1.0 if step == 4 else 0.3)]
                more = [
                    (
                        draw.choice([None, 1, 2]),
                        draw.choice([None, 1, 2, 2, 3, 9]),
                        draw.choice([None, -1, 1, 2, 5]),
                    )
                    for _ in range(draw.randrange(1, 6))
                ]
                if gone:
                    tx.delete("bids", gone)
                if more:
                    tx.insert("bids", more)
            rows = list((Counter(rows) - Counter(gone)).elements()) + more
            for name, expected in meaning(rows):
                assert Counter(db.read(name).rows()) == Counter(expected), (step, name)
        assert all(db.audit(name).ok for name in VIEWS)


@pytest.mark.spark
def test_they_are_so_on_spark(open_db, tmp_path):
    with open_db(tmp_path / "store") as db:
        db.sql(BIDS.format(price="INT", volume="BIGINT"))
        for name in ("vwap", "by_broker"):
            db.sql(f"CREATE VIEW {name} AS {VIEWS[name]}")
        bids = [(1, 1, 5), (1, 2, 5), (2, 2, None), (None, 3, 1), (2, None, 7), (2, 9, 1)]
        db.insert("bids", bids)
        db.insert("bids", [(1, 4, 2), (1, 2, 5), (2, 4, 1)])
        db.delete("bids", bids[1:3])
        rows = [*bids[:1], *bids[3:], (1, 4, 2), (1, 2, 5), (2, 4, 1)]
        expected = dict(meaning(rows))
        for name in ("vwap", "by_broker"):
            assert Counter(db.read(name).rows()) == Counter(expected[name]), name
        assert db.audit().ok


@pytest.fixture
def auction(tmp_path):
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE bids (id INT PRIMARY KEY, price BIGINT, volume BIGINT)")
        db.sql(f"CREATE VIEW vwap AS {VIEWS['vwap']}")
        yield db


def last(db):
    """The last transaction, with what was read for the view."""
    return next(each for each in reversed(list(db.history())) if each.view == "vwap")


def test_a_new_price_reads_totals_and_no_bids(auction):
    auction.insert("bids", [(i, i % 20, 1 + i % 3) for i in range(200)])
    auction.insert("bids", [(1000, 500, 1)])
    few = last(auction)
    auction.insert("bids", [(2000 + i, i % 20, 1 + i % 3) for i in range(3000)])
    auction.insert("bids", [(9000, 501, 1)])
    many = last(auction)
    assert "bids whole" not in many.fetches
    # A few rows of each of the 20 prices; there are 3,000 bids more than before.
    assert few.rows_read < 300
    assert many.rows_read < 300
    assert auction.audit("vwap").ok


def test_a_price_that_enters_with_other_changes_of_it_is_counted_once(auction):
    """The initial value of a new entry is not added to what the same transaction changes of it."""
    auction.insert("bids", [(1, 10, 5), (2, 20, 5)])
    with auction.transaction() as tx:
        tx.insert("bids", [(3, 15, 1), (4, 15, 2), (5, 17, 100), (6, 12, 1), (9, 99, 1)])
        tx.delete("bids", keys=[(2,)])
    # All volume is 110; above 17 there is 1, and above 15 there are 101.
    assert auction.read("vwap").rows() == [(17 * 100,)]
    assert auction.audit("vwap").ok
    with auction.transaction() as tx:
        tx.delete("bids", keys=[(5,), (3,)])
        tx.insert("bids", [(7, 17, 1)])
    # All volume is 10; above 17 there is 1, above 15 there are 2, and above 12 there are 4.
    assert auction.read("vwap").rows() == [(17 * 1 + 15 * 2,)]
    assert auction.audit("vwap").ok


def entries(db):
    line = db.explain("vwap", "domains").splitlines()[-1]
    return int(line.split()[0])


def test_a_price_without_bids_leaves_and_the_states_are_as_large_as_before(auction):
    auction.insert("bids", [(i, i % 5, 1) for i in range(20)])
    before = {each.name: each.rows for each in auction.status()}
    assert entries(auction) == 5
    auction.insert("bids", [(100 + i, 50 + i, 1) for i in range(30)])
    assert entries(auction) == 35
    auction.delete("bids", keys=[(100 + i,) for i in range(30)])
    assert entries(auction) == 5
    assert {each.name: each.rows for each in auction.status()} == before
    assert auction.audit("vwap").ok


def test_a_product_that_overflows_is_an_error_where_it_counts_only(auction):
    """Totals are kept of all bids; one that the condition leaves out must not be refused."""
    auction.insert("bids", [(1, 2**40, 100), (2, 2**41, 100), (9, 2**62, 1)])
    auction.insert("bids", [(3, -(2**62), 4), (4, -(2**62), 4)])
    assert auction.read("vwap").rows() == [(2**41 * 100,)]
    with pytest.raises(ev.UserError, match=r"(?i)overflow|range"):
        auction.insert("bids", [(5, 2**61, 4)])
    assert auction.read("vwap").rows() == [(2**41 * 100,)]
    assert auction.audit("vwap").ok


def test_the_domains_of_a_view_are_shown(auction):
    auction.insert("bids", [(i, i % 5, 1) for i in range(20)])
    text, given, gives, kept = auction.explain("vwap", stage="domains").splitlines()
    assert text == "SELECT SUM(volume) FROM bids AS b2 WHERE b2.price > b1.price"
    assert given.strip() == "input b1.price, from bids.price"
    assert gives.strip() == "output sum(volume)"
    assert kept.strip().startswith("5 entries in bids__")
    auction.sql("CREATE VIEW plain AS SELECT SUM(volume) AS v FROM bids")
    assert auction.explain("plain", "domains") == "no subquery reads the query around it"
    auction.agca("few[p] := Sum(bids(_, p, v) * (Sum(bids(_, q, w) * (q > p) * w) < 10))")
    text, given, gives, kept = auction.explain("few", stage="domains").splitlines()
    assert text == "Sum(bids(_, q, w) * (q > p) * w)"
    assert given.strip() == "input p, from bids.price"
    assert kept.strip().startswith("5 entries in bids__")
    auction.sql(
        "CREATE VIEW near AS SELECT b.id, n.p FROM bids b JOIN LATERAL (SELECT MAX(c.price) AS p "
        "FROM bids c WHERE c.price < b.price AND c.volume = b.volume) n"
    )
    lines = auction.explain("near", stage="domains").splitlines()
    assert [each.strip() for each in lines[1:4]] == [
        "input b.price, from bids.price",
        "input b.volume, from bids.volume",
        "output p",
    ]
