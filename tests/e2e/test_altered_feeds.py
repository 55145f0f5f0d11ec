"""The feed of a table goes on through ALTER: rows from before it come with the columns of now."""

from __future__ import annotations

from collections import Counter

import pytest


@pytest.mark.parametrize("after", [0, 2])
def test_the_pair_of_a_feed_has_the_columns_of_now(open_db, tmp_path, after):
    db = open_db(tmp_path / "store")
    db.sql("CREATE TABLE t (a INT PRIMARY KEY, b INT)")
    db.sql("INSERT INTO t VALUES (1, 2), (3, 4)")
    db.sql("DELETE FROM t WHERE a = 1")
    db.sql("ALTER TABLE t ADD COLUMN c INT DEFAULT 7; ALTER TABLE t RENAME COLUMN b TO d")
    db.sql("ALTER TABLE t RENAME TO u")
    db.sql("INSERT INTO u VALUES (9, 9, 9)")
    weights: Counter[tuple[int, ...]] = Counter()
    for *row, weight, _ in db.changes("u", after=after).rows():
        weights[tuple(row)] += weight
    pair = db.changes("u", after=after, pair=True)
    assert set(pair.deleted.rows()) == {row for row, weight in weights.items() if weight < 0}
    assert set(pair.inserted.rows()) == {row for row, weight in weights.items() if weight > 0}
    assert (9, 9, 9) in set(pair.inserted.rows())
    assert ((1, 2, 7) in set(pair.deleted.rows())) == (after == 2)
    db.close()
