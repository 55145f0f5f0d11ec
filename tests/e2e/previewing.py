"""Random transactions over a few tables and views, each previewed and then committed.

`Previewed.step` compares, for every view: the pair that was previewed with the difference of the
values before and after; the value that `tx.read` and a SELECT gave with the value after the commit;
and the pair with the feed. All as bags of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

TABLES = """
CREATE TABLE item (id INT PRIMARY KEY, kind INT, price INT);
CREATE TABLE kind (kind INT, parent INT)
"""
VIEWS = {
    "joined": "SELECT i.id, k.parent FROM item i JOIN kind k ON i.kind = k.kind",
    "left_joined": "SELECT i.id, k.parent FROM item i LEFT JOIN kind k ON i.kind = k.kind",
    "grouped": "SELECT kind, COUNT(*) AS n, SUM(price) AS s, MAX(price) AS m "
    "FROM item GROUP BY kind",
    "kinds": "SELECT DISTINCT kind FROM item",
    "both": "SELECT kind FROM item UNION SELECT parent FROM kind",
    "neither": "SELECT kind FROM kind EXCEPT SELECT kind FROM item",
    "ranked": "SELECT id, kind, ROW_NUMBER() OVER (PARTITION BY kind ORDER BY price, id) AS n "
    "FROM item",
    "best": "SELECT id, price FROM item ORDER BY price DESC, id LIMIT 2",
    "above": "WITH RECURSIVE up(kind, parent) AS (SELECT kind, parent FROM kind "
    "UNION SELECT up.kind, k.parent FROM up JOIN kind k ON up.parent = k.kind) "
    "SELECT kind, parent FROM up",
    "per_count": "SELECT n, COUNT(*) AS groups FROM grouped GROUP BY n",
}
SKETCH = {"sketch": "SELECT kind, approx_count_distinct(price) AS z FROM item GROUP BY kind"}
"""A view that only Spark answers, by recomputing it."""
SETS = ("grouped", "kinds", "both", "neither", "ranked", "best", "above", "per_count", "sketch")
"""Views of which no row is there twice."""
VALUES = (None, 0, 1, 2)


def bag(result: Any) -> Counter:
    """The rows of a result."""
    return Counter(result.rows())


class Previewed:
    """A database on which one random transaction after the other is previewed and committed."""

    def __init__(self, db: Any, seed: int, views: Mapping[str, str] = VIEWS) -> None:
        self.db, self.chance = db, Random(seed)
        declared = (f"CREATE VIEW {n} WITH (refresh = 'auto') AS {q}" for n, q in views.items())
        db.sql(";".join((TABLES, *declared)))
        self.views = [*db.catalog.views]
        self.folder = Path(db.store.absolute(""))

    def step(self, *, writes_nothing: bool = True) -> None:
        """One transaction: look after each part of it, then commit and look again."""
        db, before = self.db, self._values()
        epoch, files = db.epoch, self._files()
        db.sql("BEGIN")
        tx = db.handle.thread.transaction
        for _ in range(self.chance.randint(0, 3)):
            self._change(tx)
            self._look(tx, before)
        pairs = tx.preview()
        assert db.epoch == epoch
        assert not writes_nothing or self._files() == files, "a preview has written"
        values = {name: bag(tx.read(name)) for name in (*self.views, "item", "kind")}
        db.sql("COMMIT")
        after = self._values()
        assert after == values
        for name in self.views:
            deleted, inserted = map(bag, pairs[name])
            self._must_be_minimal(name, before[name], deleted, inserted)
            assert before[name] - deleted + inserted == after[name], name
            fed = Counter()
            for *row, weight, _ in db.changes(name, after=epoch).rows():
                fed[tuple(row)] += weight
            assert {row: w for row, w in fed.items() if w} == signed(deleted, inserted), name
            assert [*map(bag, db.changes(name, after=epoch, pair=True))] == [deleted, inserted]

    def _look(self, tx: Any, before: dict[str, Counter]) -> None:
        """A view or two at a moment in the middle of a transaction."""
        name = self.chance.choice(self.views)
        deleted, inserted = map(bag, tx.preview(name))
        value = before[name] - deleted + inserted
        self._must_be_minimal(name, before[name], deleted, inserted)
        assert bag(self.db.sql(f"SELECT * FROM {name}")) == value, name
        told = {tuple(r): w for *r, w in self.db.sql(f"EXPLAIN CHANGES OF {name}").rows()}
        assert told == signed(deleted, inserted)

    def _must_be_minimal(
        self, name: str, old: Counter, deleted: Counter, inserted: Counter
    ) -> None:
        """∇V ⊆ V, and ΔV ∩ V = ∅ where V is a set; for bags, no row both leaves and comes."""
        assert deleted <= old, name
        assert not deleted & inserted, name
        if name in SETS:
            assert not old & inserted, name
            assert max((old - deleted + inserted).values(), default=1) == 1, name

    def _change(self, tx: Any) -> None:
        chance, items = self.chance, tx.read("item").rows()
        free = [n for n in range(8) if n not in {row[0] for row in items}]
        row = (chance.choice(free or [0]), chance.choice(VALUES), chance.choice(VALUES))
        which = chance.randrange(6)
        if which == 0 and items:
            tx.delete("item", [chance.choice(items)])
        elif which == 1 and items:
            self.db.sql(f"UPDATE item SET price = id WHERE id >= {chance.randrange(8)}")
        elif which == 2:
            tx.insert("kind", [(chance.choice(VALUES), chance.choice(VALUES)) for _ in range(2)])
        elif which == 3:
            self.db.sql(f"DELETE FROM kind WHERE kind = {chance.randrange(3)}")
        elif which == 4:
            self.db.sql("INSERT INTO kind SELECT kind, 1 FROM grouped WHERE kind > 0")
        elif free:
            tx.upsert("item", [row])

    def _values(self) -> dict[str, Counter]:
        return {name: bag(self.db.read(name)) for name in (*self.views, "item", "kind")}

    def _files(self) -> set[Path]:
        return {path for path in self.folder.rglob("*") if path.is_file()}


def signed(deleted: Counter, inserted: Counter) -> dict[Any, int]:
    """A pair as rows with weights."""
    return {**{row: -n for row, n in deleted.items()}, **inserted}
