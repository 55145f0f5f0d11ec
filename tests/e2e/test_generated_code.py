"""Generated Python leaves what vector operators leave, states and feeds included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import everview as ev
from e2e.constructs import CONSTRUCTS
from e2e.shapes import SHAPES, query
from e2e.test_policies import QUERIES, TABLES, Shop, declare
from e2e.test_views import World
from everview.program.policy import POLICIES
from everview.runtime import workspace
from everview.runtime.generated import evaluator
from everview.runtime.workspace import Evaluator, Workspace

FORBIDDEN = -1
"""As many rows as this no change has."""


@pytest.fixture
def computed(monkeypatch) -> Counter[Evaluator]:
    """Plans are generated at once; how many steps each evaluator computed."""
    monkeypatch.setattr(evaluator, "GENERATE_AFTER", 1)
    by: Counter[Evaluator] = Counter()
    compute = Workspace.compute

    def counted(self, step):
        found = compute(self, step)
        by[found] += 1
        return found

    monkeypatch.setattr(Workspace, "compute", counted)
    return by


def segments(db: ev.Database) -> dict[str, list[Counter]]:
    """The weighted rows of every segment of every relation, states and feeds included."""
    snapshot, found = db.handle.snapshot(), {}
    for name, relation in snapshot.manifest.relations.items():
        if name not in snapshot.stored:
            continue
        schema = snapshot.stored[name].arrow()
        read = (db.store.rows_of(each, schema) for each in (*relation.segments, *relation.feed))
        found[name] = [Counter(map(repr, rows.to_pylist())) for rows in read]
    return found


def both(tmp_path: Path, work: Callable[[ev.Database], Callable[[int], None]], times: int) -> None:
    """The same transactions by generated code and without it, compared after each."""
    with (
        ev.open(str(tmp_path / "generated"), engine="duckdb") as ours,
        ev.open(str(tmp_path / "vector"), engine="duckdb") as theirs,
    ):
        steps = []
        for db in (ours, theirs):
            steps.append(work(db))
        for number in range(times):
            steps[0](number)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(workspace, "GENERATED_MAX_ROWS", FORBIDDEN)
                steps[1](number)
            assert segments(ours) == segments(theirs)
        assert ours.audit().ok


@pytest.mark.parametrize("policy", POLICIES)
def test_grouped_joins_are_alike_in_every_segment(tmp_path, computed, policy):
    def work(db: ev.Database) -> Callable[[int], None]:
        db.sql(TABLES)
        declare(db, policy, QUERIES, "_v")
        return Shop(db, seed=3).transact

    both(tmp_path, work, 5)
    assert computed[Evaluator.GENERATED] > computed[Evaluator.VECTOR] / 2


@pytest.mark.parametrize("texts", ["shapes", "constructs"])
def test_views_are_alike_in_every_segment(tmp_path, computed, texts):
    shapes = {name: query(name, "p") for name in SHAPES if name != "spark_only"}
    every = shapes if texts == "shapes" else CONSTRUCTS
    some = list(every)[:: max(1, len(every) // 12)]

    def work(db: ev.Database) -> Callable[[int], None]:
        world = World(db, seed=4)
        for name in some:
            world.view(f"v_{name}", every[name])
        return world.transact

    both(tmp_path, work, 4)
    assert computed[Evaluator.GENERATED]


def test_what_generated_code_cannot_compute_is_computed_or_refused_as_ever(tmp_path, computed):
    """A sum that overflows is refused, changes nothing, and the next change is right again."""
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, k INT, n BIGINT, x DOUBLE, d DATE)")
        db.sql(
            "CREATE VIEW sums AS SELECT k, SUM(n) AS s, COUNT(*) AS m FROM t GROUP BY k;"
            "CREATE VIEW added AS SELECT id, n + 1 AS n, x FROM t;"
            "CREATE VIEW years AS SELECT YEAR(d) AS y, COUNT(x) AS m FROM t GROUP BY YEAR(d)"
        )
        most = 2**63 - 2
        db.insert("t", [(1, 1, most, 0.0, "0001-01-01"), (2, None, None, None, None)])
        epoch = db.epoch
        for refused in ((3, 1, most, -0.0, None), (3, 2, most + 1, None, None)):
            with pytest.raises(ev.UserError):
                db.insert("t", [refused])
            assert db.epoch == epoch
        with db.transaction() as tx:
            tx.delete("t", keys=[1])
            tx.insert("t", [(3, 1, 5, float("nan"), "9999-12-31")])
        assert sorted(db.read("sums").rows(), key=repr) == [(1, 5, 1), (None, None, 1)]
        assert db.audit().ok
    assert computed[Evaluator.GENERATED] > computed[Evaluator.SQL]
