"""FIRST_VALUE and LAST_VALUE of the rows that FILTER keeps, and what takes no FILTER."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import everview as ev
from e2e.checking import differences

ROWS = ((1, "a", 10), (2, "b", 20), (3, "a", 30), (4, "b", 40))
SO_FAR = "ORDER BY o ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"

FRAMES: dict[str, Callable[[int, int], range]] = {
    "UNBOUNDED PRECEDING AND CURRENT ROW": lambda at, size: range(at + 1),
    "UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING": lambda at, size: range(size),
    "CURRENT ROW AND UNBOUNDED FOLLOWING": lambda at, size: range(at, size),
    "1 PRECEDING AND 1 FOLLOWING": lambda at, size: range(max(at - 1, 0), min(at + 2, size)),
    "2 PRECEDING AND 1 PRECEDING": lambda at, size: range(max(at - 2, 0), max(at, 0)),
    "1 FOLLOWING AND 2 FOLLOWING": lambda at, size: range(at + 1, min(at + 3, size)),
}


@pytest.fixture
def db(open_db, tmp_path):
    with open_db(tmp_path / "store") as opened:
        opened.sql("CREATE TABLE t (o INT PRIMARY KEY, c STRING, v INT)")
        yield opened


def column(db, call: str) -> list[object]:
    db.sql(f"CREATE OR REPLACE VIEW x AS SELECT o, {call} AS v FROM t")
    db.sql("DELETE FROM t WHERE TRUE")
    db.insert("t", ROWS)
    return [value for _, value in sorted(db.read("x").rows())]


def test_the_last_value_is_that_of_the_last_row_kept(db):
    call = f"last_value(v) FILTER (WHERE c = 'a') OVER ({SO_FAR})"
    assert column(db, call) == [10, 10, 30, 30]


def test_the_first_value_is_that_of_the_first_row_kept(db):
    call = f"first_value(v) FILTER (WHERE c = 'b') OVER ({SO_FAR})"
    assert column(db, call) == [None, 20, 20, 20]


def test_a_null_that_is_kept_is_a_value_unless_nulls_are_ignored(db):
    kept = "last_value(nullif(v, 30)) FILTER (WHERE c = 'a')"
    assert column(db, f"{kept} OVER ({SO_FAR})") == [10, 10, None, None]
    assert column(db, f"{kept} IGNORE NULLS OVER ({SO_FAR})") == [10, 10, 10, 10]
    told = "last_value(nullif(v, 30), true) FILTER (WHERE c = 'a')"
    assert column(db, f"{told} OVER ({SO_FAR})") == [10, 10, 10, 10]


@pytest.mark.parametrize(
    "call",
    [
        *("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(2)"),
        *("lag(v)", "lead(v)", "nth_value(v, 2)"),
    ],
)
def test_a_function_of_places_takes_no_filter(db, call):
    for said in (f"{call} FILTER (WHERE c = 'a')", f"{call} FILTER (WHERE c = 'a') IGNORE NULLS"):
        with pytest.raises(ev.UserError) as caught:
            db.sql(f"CREATE VIEW y AS SELECT o, {said} OVER (ORDER BY o) AS v FROM t")
        assert caught.value.code == "Q009"
        assert caught.value.span is not None
        assert call.partition("(")[0] in caught.value.problem.lower()


def test_only_values_may_ignore_nulls(db):
    with pytest.raises(ev.UserError) as caught:
        db.sql("CREATE VIEW y AS SELECT row_number() IGNORE NULLS OVER (ORDER BY o) AS v FROM t")
    assert (caught.value.code, caught.value.span is not None) == ("Q009", True)


def test_every_frame_has_the_first_and_last_of_the_rows_kept(db, engine):
    calls: dict[str, tuple[str, str, bool]] = {}
    for frame in FRAMES:
        for function in ("first_value", "last_value"):
            for ignored in (False, True):
                calls[f"v{len(calls)}"] = (function, frame, ignored)
    shown = ", ".join(
        f"{function}(v) FILTER (WHERE c <> 'b'){' IGNORE NULLS' * ignored} "
        f"OVER (PARTITION BY o % 2 ORDER BY o DESC ROWS BETWEEN {frame}) AS {name}"
        for name, (function, frame, ignored) in calls.items()
    )
    db.sql(f"CREATE VIEW w AS SELECT o, {shown} FROM t")
    pick = random.Random(4)
    for _ in range(5):
        rows = sorted(db.read("t").rows())
        with db.transaction() as tx:
            tx.delete("t", pick.sample(rows, len(rows) // 3))
            fresh = [
                (pick.choice((None, "a", "b", "c")), pick.choice((None, 1, 2))) for _ in range(5)
            ]
            tx.upsert(
                "t", [(o, *each) for o, each in zip(pick.sample(range(12), 5), fresh, strict=True)]
            )
        assert {row[0]: row[1:] for row in db.read("w").rows()} == expected(db, calls)
    if engine == "spark":
        # Spark's own FIRST_VALUE forgets FILTER where a frame begins with the partition.
        right = {
            name: f"""SELECT o, {function}(v) FILTER (WHERE c <> 'b'){" IGNORE NULLS" * ignored}
                OVER (PARTITION BY o % 2 ORDER BY o DESC ROWS BETWEEN {frame}) AS v FROM t"""
            for name, (function, frame, ignored) in calls.items()
            if function == "last_value" or not frame.startswith("UNBOUNDED")
        }
        for name, query in right.items():
            db.sql(f"CREATE VIEW {name} AS {query}")
        assert differences(db, right) == []


def expected(db, calls) -> dict[int, tuple[object, ...]]:
    """What the calls are for each row, by the meaning of frames."""
    told: dict[int, tuple[object, ...]] = {}
    for parity in (0, 1):
        rows = sorted((r for r in db.read("t").rows() if r[0] % 2 == parity), reverse=True)
        for at, (o, _, _) in enumerate(rows):
            found = []
            for function, frame, ignored in calls.values():
                inside = [rows[i] for i in FRAMES[frame](at, len(rows))]
                values = [v for _, c, v in inside if c is not None and c != "b"]
                values = [v for v in values if v is not None] if ignored else values
                found.append((values or [None])[0 if function == "first_value" else -1])
            told[o] = tuple(found)
    return told
