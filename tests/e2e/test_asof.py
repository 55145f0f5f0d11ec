"""ASOF JOIN against its definition: of the rows that match, the nearest."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import everview as ev

VIEWS = {
    "latest": ("ASOF JOIN q MATCH_CONDITION (t.at >= q.seen) ON t.k = q.k", False, 1, True),
    "before": ("LEFT ASOF JOIN q MATCH_CONDITION (t.at > q.seen) ON t.k = q.k", True, 1, False),
    "next": ("ASOF JOIN q MATCH_CONDITION (t.at <= q.seen) ON t.k = q.k", False, -1, True),
    "turned": ("LEFT ASOF JOIN q MATCH_CONDITION (q.seen > t.at) USING (k)", True, -1, False),
}
"""What is written; whether rows without a partner stay; the direction; whether equal is near."""


def nearest(
    t: list[Any], q: list[Any], *, left: bool, sign: int, equal: bool
) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for at, k in t:
        matching = [
            (seen, p)
            for seen, key, p in q
            if None not in (at, seen, k)
            and key == k
            and (sign * seen < sign * at or (equal and seen == at))
        ]
        if matching:
            seen, p = max(matching, key=lambda row: sign * row[0])
            found[(at, k, seen, p)] += 1
        elif left:
            found[(at, k, None, None)] += 1
    return found


@pytest.mark.parametrize("seed", range(3))
def test_each_row_has_the_nearest_of_the_rows_that_match(tmp_path, seed: int) -> None:
    random = Random(seed)
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (at INT, k INT); CREATE TABLE q (seen INT, k INT, p INT)")
        for name, (written, *_) in VIEWS.items():
            db.sql(f"CREATE VIEW {name} AS SELECT t.at, t.k, q.seen, q.p FROM t {written}")
        t: list[Any] = []
        q: list[Any] = []
        for _ in range(6):
            gone_t, gone_q = random.sample(t, len(t) // 3), random.sample(q, len(q) // 2)
            new_t = [(random.choice([None, 1, 2, 3, 4, 5]), random.choice([1, 2, None]))] * 2
            # One price for each moment and key: which of two that tie is the nearest is open.
            taken = {(row[0], row[1]) for row in q if row not in gone_q}
            wanted = {(random.choice([None, 0, 1, 3, 5, 6]), random.choice([1, 2])) for _ in "abc"}
            new_q = [(seen, k, random.randrange(9)) for seen, k in wanted - taken]
            with db.transaction() as tx:
                tx.delete("t", gone_t)
                tx.delete("q", gone_q)
                tx.insert("t", new_t)
                tx.insert("q", new_q)
            for row in gone_t:
                t.remove(row)
            t, q = t + new_t, [row for row in q if row not in gone_q] + new_q
            for name, (_, left, sign, equal) in VIEWS.items():
                expected = nearest(t, q, left=left, sign=sign, equal=equal)
                assert Counter(db.read(name).rows()) == expected, name
        assert db.audit().ok


def test_using_shows_its_column_once_and_on_both(tmp_path) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (at INT, k INT); CREATE TABLE q (seen INT, k INT)")
        asof = "ASOF JOIN q MATCH_CONDITION (at >= seen)"
        db.sql(f"CREATE VIEW v AS SELECT * FROM t {asof} USING (k)")
        db.sql(f"CREATE VIEW w (a, b, c, d) AS SELECT * FROM t {asof} ON t.k = q.k")
        assert db.read("v").to_arrow().column_names == ["k", "at", "seen"]


@pytest.mark.parametrize(
    "join",
    [
        "ASOF JOIN q ON t.k = q.k",
        "ASOF JOIN q MATCH_CONDITION (t.at = q.seen) ON t.k = q.k",
        "ASOF JOIN q MATCH_CONDITION (t.at + q.seen >= q.seen) ON t.k = q.k",
        "ASOF JOIN q MATCH_CONDITION ((t.at, t.k) >= (q.seen, q.k)) ON t.k = q.k",
    ],
)
def test_what_has_no_nearest_row_is_refused(tmp_path, join: str) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (at INT, k INT); CREATE TABLE q (seen INT, k INT)")
        with pytest.raises(ev.UserError) as problem:
            db.sql(f"CREATE VIEW v AS SELECT t.at FROM t {join}")
        assert problem.value.code in ("Q001", "Q020")


def test_the_words_of_an_asof_join_are_names_elsewhere(tmp_path) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE match_condition (asof INT)")
        db.sql("CREATE VIEW v AS SELECT asof AS match_condition FROM match_condition")
        db.sql("INSERT INTO match_condition VALUES (1)")
        assert db.read("v").rows() == [(1,)]
