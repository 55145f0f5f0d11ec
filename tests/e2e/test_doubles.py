"""Sums of doubles stay equal to recomputation: nothing is left behind by what came and went."""

from __future__ import annotations

import math
import random
from collections import defaultdict

import pytest

import everview as ev

UPDATES = 10_000
AT_ONCE = 500


def test_ten_thousand_updates_of_doubles_leave_no_drift(tmp_path):
    """Numbers of very different size come and go: a running total would keep their rounding."""
    rng = random.Random(3)
    rows = {number: (number % 7, _number(rng)) for number in range(1000)}
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, g INT, x DOUBLE, y FLOAT)")
        db.sql(
            "CREATE VIEW v AS SELECT g, SUM(x) AS total, AVG(x) AS mean, SUM(y) AS small, "
            "COUNT(*) AS n FROM t GROUP BY g"
        )
        db.insert("t", [(i, g, x, 0.1) for i, (g, x) in rows.items()])
        for _ in range(UPDATES // AT_ONCE):
            changed = {i: (rows[i][0], _number(rng)) for i in rng.sample(sorted(rows), AT_ONCE)}
            rows |= changed
            db.upsert("t", [(i, g, x, 0.1) for i, (g, x) in changed.items()])
        # Only small numbers are left in the end, so what the large ones left behind would show.
        rows = {i: (g, i / 7) for i, (g, _) in rows.items()}
        db.upsert("t", [(i, g, x, 0.1) for i, (g, x) in rows.items()])
        expected = defaultdict(list)
        for g, x in rows.values():
            expected[g].append(x)
        found = {g: (total, mean, small, n) for g, total, mean, small, n in db.read("v").rows()}
        assert found.keys() == expected.keys()
        for g, values in expected.items():
            total, mean, small, n = found[g]
            assert n == len(values)
            assert total == pytest.approx(math.fsum(values), rel=1e-9)
            assert mean == pytest.approx(math.fsum(values) / n, rel=1e-9)
            assert small == pytest.approx(n * 0.1, rel=1e-6)
        assert db.audit().ok


def _number(rng: random.Random) -> float:
    return rng.uniform(-1, 1) * 10.0 ** rng.randint(-10, 15)


@pytest.mark.parametrize("type_", ["FLOAT", "DOUBLE"])
def test_nan_is_greater_than_all_others_in_what_is_stored_by_it(tmp_path, type_):
    """A condition that holds for all other rows says nothing about it."""
    nan = float("nan")
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(f"CREATE TABLE t (c DECIMAL(10,2), x {type_})")
        db.sql(f"INSERT INTO t VALUES (1, CAST('NaN' AS {type_})), (NULL, 0.5)")
        db.sql("CREATE VIEW by_x AS SELECT x, SUM(DISTINCT c) AS s FROM t GROUP BY x")
        views = {
            "below": ("SELECT x FROM t WHERE 1 >= x", [0.5]),
            "above": ("SELECT x FROM t WHERE x > 1", [nan]),
            "groups_below": (
                "SELECT x, SUM(DISTINCT c) AS s FROM t GROUP BY x HAVING x <= 1",
                [0.5],
            ),
            "groups_above": ("SELECT x FROM by_x WHERE x <> 0.5", [nan]),
        }
        for name, (query, rows) in views.items():
            db.sql(f"CREATE VIEW {name} AS {query}")
            assert [str(row[0]) for row in db.read(name).rows()] == list(map(str, rows)), name
        assert db.audit().ok
