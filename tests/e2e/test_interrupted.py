"""An exception at any moment of a transaction leaves a handle that works, and views that are right.

What the views must hold is computed here, from the rows of the tables, in plain Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from itertools import cycle
from typing import Any

import pytest

import everview as ev
from e2e.interrupting import raising, recorded
from everview.runtime.generated import evaluator

SETUP = """
CREATE TABLE kind (kind INT PRIMARY KEY, parent INT);
CREATE TABLE item (id INT PRIMARY KEY, kind INT NOT NULL REFERENCES kind ON DELETE CASCADE,
  price INT NOT NULL CHECK (price >= 0));
CREATE ASSERTION few CHECK ((SELECT COUNT(*) FROM item) <= 100);
CREATE VIEW joined AS SELECT i.id, k.parent FROM item i JOIN kind k ON i.kind = k.kind;
CREATE VIEW grouped AS SELECT kind, COUNT(*) AS n, SUM(price) AS s, MAX(price) AS m
  FROM item GROUP BY kind;
CREATE VIEW ranked AS SELECT id, kind, LAG(price) OVER (PARTITION BY kind ORDER BY id) AS prior
  FROM item;
CREATE VIEW above AS WITH RECURSIVE up(kind, parent) AS (
  SELECT kind, parent FROM kind WHERE parent IS NOT NULL
  UNION SELECT up.kind, k.parent FROM up JOIN kind k ON up.parent = k.kind
    WHERE k.parent IS NOT NULL)
  SELECT kind, parent FROM up
"""
ERRORS = (KeyboardInterrupt, MemoryError)
ITEMS, KINDS = 6, 4
PASSING, ITS_ITEM = 9, 90
"""A kind that comes and goes, and the item that goes with it."""


def expected(items: list[Any], kinds: list[Any]) -> dict[str, Counter]:
    """The rows of every view, by the meaning of its query."""
    parents = dict(kinds)
    joined = [(i, parents[k]) for i, k, _ in items if k in parents]
    prices: dict[int, list[int]] = {}
    ranked = []
    for i, k, price in sorted(items):
        before = prices.setdefault(k, [])
        ranked.append((i, k, before[-1] if before else None))
        before.append(price)
    above = set()
    for kind, parent in kinds:
        while parent is not None and (kind, parent) not in above:
            above.add((kind, parent))
            parent = parents.get(parent)
    return {
        "joined": Counter(joined),
        "grouped": Counter((k, len(p), sum(p), max(p)) for k, p in prices.items()),
        "ranked": Counter(ranked),
        "above": Counter(above),
    }


def check(db) -> None:
    """Every view holds what it must, and no row is without the one that it came with."""
    items, kinds = db.read("item").rows(), db.read("kind").rows()
    assert ((PASSING, 0) in kinds) == ((ITS_ITEM, PASSING, 7) in items)
    wanted = expected(items, kinds)
    assert {name: Counter(db.read(name).rows()) for name in wanted} == wanted


class Shop:
    """A store on which one small transaction after the other changes every view."""

    def __init__(self, path, **options: Any) -> None:
        self._path, self._options = str(path), options
        self.db = self.opened()
        self.db.sql(SETUP)
        self.db.insert("kind", [(k, k - 1 if k else None) for k in range(KINDS)])
        self.db.insert("item", [(i, i % KINDS, 10 * i) for i in range(ITEMS)])
        self._steps = 0
        self.step()
        self.step()

    def opened(self):
        return ev.open(self._path, **self._options)

    def step(self) -> None:
        """A row is moved, some go or come, and a link of the recursion is turned."""
        self._steps += 1
        n = self._steps
        last = [row for row in self.db.read("item").rows() if row[0] == ITEMS - 1]
        passing = any(row[0] == PASSING for row in self.db.read("kind").rows())
        with self.db.transaction(id=("shop", n)) as tx:
            assert not tx.repeated
            tx.upsert("item", [(n % (ITEMS - 1), n % 3, n)])
            if passing:
                tx.delete("kind", keys=[PASSING])
            else:
                tx.insert("item", [(ITS_ITEM, PASSING, 7)])
                tx.insert("kind", [(PASSING, 0)])
            if last:
                tx.delete("item", last)
            else:
                tx.insert("item", [(ITEMS - 1, n % KINDS, n)])
            tx.upsert("kind", [(KINDS - 1, n % (KINDS - 1))])

    def again(self) -> None:
        """The same store with another handle."""
        self.db.close()
        self.db = self.opened()


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Small changes are computed by generated code, as far as it knows the plans."""
    monkeypatch.setattr(evaluator, "GENERATE_AFTER", 1)
    shop = Shop(tmp_path / "store", engine="duckdb")
    yield shop
    shop.db.close()


# What is cut short may leave generators and files to the collector, which tells of them.
@pytest.mark.filterwarnings("ignore")
def test_an_exception_at_every_call_of_a_transaction_leaves_the_views_right(shop):
    with recorded() as calls:
        shop.step()
    struck(shop, [(place, 0) for place in dict.fromkeys(calls)])


class EveryLanguage(Shop):
    """The same, under views of every other language too: nested, AGCA and relational algebra."""

    def __init__(self, path, **options: Any) -> None:
        super().__init__(path, **options)
        self.db.nested(
            "for k in kind union sng((kind: k.kind, "
            "prices: for i in item where i.kind == k.kind union sng(i.price)))",
            name="inside",
        )
        self.db.agca("spent[k] := Sum(item(i, k, p) * kind(k, _) * p)")
        self.db.relalg("cheap", "Π[kind](σ[price < 50](item)) ∪ Π[kind](σ[parent = 0](kind))")
        self.step()

    def check(self) -> None:
        """Those views hold what they must."""
        items, kinds = self.db.read("item").rows(), self.db.read("kind").rows()
        inside = {k: Counter(p for _, of, p in items if of == k) for k, _ in kinds}
        found = self.db.read("inside").rows()
        assert {k: Counter(prices) for k, prices in found} == inside
        assert len(found) == len(kinds)
        spent: Counter[int] = Counter()
        for _, k, price in items:
            spent[k] += price
        assert dict(self.db.read("spent").rows()) == dict(spent)
        cheap = {k for _, k, price in items if price < 50} | {k for k, up in kinds if up == 0}
        assert sorted(self.db.read("cheap").rows()) == sorted((k,) for k in cheap)


AT_MOST = 30
"""So many places are tried, spread over a transaction."""


@pytest.mark.filterwarnings("ignore")
def test_an_exception_leaves_views_of_every_language_right(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluator, "GENERATE_AFTER", 1)
    shop = EveryLanguage(tmp_path / "store", engine="duckdb")
    shop.check()
    with recorded() as calls:
        shop.step()
    places = [(place, 0) for place in dict.fromkeys(calls)]
    for start in range(3):
        struck(shop, places[start :: 3 * max(1, len(places) // AT_MOST)])
        shop.check()
    shop.again()
    shop.check()
    assert shop.db.audit().ok
    shop.db.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_exception_at_the_kth_call_leaves_the_views_right_for_every_k(shop):
    with recorded() as calls:
        shop.step()
    struck(shop, range(len(calls)))


OTHERS = {
    "a declaration": """
        CREATE OR REPLACE VIEW fewer AS SELECT kind, MIN(price) AS m FROM item GROUP BY kind;
        DROP VIEW fewer""",
    "statements": """
        BEGIN; UPDATE item SET price = price + 1 WHERE id < 3; DELETE FROM item WHERE id = 5;
        MERGE INTO item USING (SELECT 5 AS id, 1 AS kind, 7 AS price) s ON item.id = s.id
          WHEN NOT MATCHED THEN INSERT *; COMMIT""",
    "a query": "SELECT k.parent, COUNT(*) AS n FROM item i JOIN kind k USING (kind) GROUP BY ALL",
}


@pytest.mark.parametrize("which", [*OTHERS, "compaction", "retention"])
@pytest.mark.filterwarnings("ignore")
def test_an_exception_anywhere_else_leaves_the_views_right(shop, which):
    works = {
        "compaction": lambda: shop.db.compact(),
        "retention": lambda: shop.db.retain(1, grace=0),
    }

    def run() -> None:
        result = shop.db.sql(OTHERS[which])
        if result is not None:
            result.rows()

    work, errors = works.get(which, run), cycle(ERRORS)
    with recorded() as calls:
        work()
    places = [*dict.fromkeys(calls)]
    for place in places[:: max(1, len(places) // 20)]:
        raising(work, next(errors), (place, 0))
        with suppress(ev.UserError):
            shop.db.sql("ROLLBACK")  # the exception may have come after BEGIN
        shop.db.sql("DROP VIEW IF EXISTS fewer")
        shop.step()
    check(shop.db)
    shop.again()
    check(shop.db)
    assert shop.db.audit().ok


@pytest.mark.filterwarnings("ignore")
def test_a_statement_is_in_a_transaction_wholly_or_not_at_all(shop):
    """Two rows change places: were only one of them moved, the sum of prices would change."""
    swap = "UPDATE item SET price = 100 - price WHERE id < 2"
    shop.db.upsert("item", [(0, 0, 40), (1, 0, 60)])
    with recorded() as calls:
        shop.db.sql(f"BEGIN; {swap}; ROLLBACK")
    places = [*dict.fromkeys(calls)]
    for number, place in enumerate(places[:: max(1, len(places) // 20)]):
        shop.db.sql("BEGIN")
        raising(lambda: shop.db.sql(swap), ERRORS[number % 2], (place, 0))
        shop.db.sql("UPDATE item SET kind = kind WHERE id = 0; COMMIT")
        assert shop.db.sql("SELECT SUM(price) AS s FROM item WHERE id < 2").rows() == [(100,)]
    check(shop.db)
    assert shop.db.audit().ok


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore")
def test_an_exception_in_a_transaction_on_spark_leaves_the_views_right(spark, tmp_path):
    shop = Shop(tmp_path / "store", engine="spark", spark=spark)
    with recorded() as calls:
        shop.step()
    places = [(place, 0) for place in dict.fromkeys(calls)]
    struck(shop, places[:: len(places) // 12])
    shop.db.close()


def struck(shop: Shop, places: Iterable[Any]) -> None:
    """Raise at each place of a transaction, and go on; what is wrong in a view would stay so.

    Every second time the next transaction is one that ends early too.
    """
    errors, came = cycle(ERRORS), 0
    for number, place in enumerate(places):
        came += raising(shop.step, next(errors), place)
        if number % 2:
            shop.step()
        if number % 25 == 0:
            check(shop.db)
        if number % 250 == 0:
            assert shop.db.audit().ok
            shop.again()
    assert came > number / 2
    check(shop.db)
    assert shop.db.audit().ok
