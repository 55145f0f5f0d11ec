"""On a standalone cluster with two workers: nothing is lost and nothing doubled.

`make test-cluster` runs these. Every case runs undisturbed, with an executor killed while a job
runs, and with the driver killed at a random moment.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.driving import (
    Drivers,
    losing_an_executor,
    losing_the_driver,
    made_store,
    plainly,
)
from cluster.standalone import FOR_PYSPARK, cluster
from cluster.worlds import CASES

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

KILLS = 2
"""How often the driver of a case is killed."""
UNKNOWN_SECONDS = 8.0


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    with cluster(tmp_path_factory.mktemp("cluster"), workers=2) as up:
        made = Drivers(up)
        yield made
        made.close()


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[bool, bool], Path]:
    """One store for each way that cases begin."""
    ways = {(case.filled, case.recursive): case for case in CASES.values()}
    folder = tmp_path_factory.mktemp("stores")
    return {
        way: made_store(folder / str(number), case)
        for number, (way, case) in enumerate(ways.items())
    }


@pytest.fixture(scope="module")
def seconds() -> dict[str, float]:
    """How long cases took undisturbed."""
    return {}


@pytest.fixture
def store(request: pytest.FixtureRequest, stores, tmp_path: Path) -> Path:
    case = CASES[request.getfixturevalue("name")]
    begins = stores[case.filled, case.recursive]
    return Path(shutil.copytree(begins, tmp_path / "store"))


def test_executors_have_what_pyspark_needs_and_nothing_of_ours(drivers):
    ours = ["everview", "everview_fuzz", "duckdb", "sqlglot"]
    theirs = [name for name in ("pyspark", "pyarrow", "pandas", "numpy") if name in FOR_PYSPARK]
    told = drivers.get().ask("imports", names=ours + theirs)
    assert told["places"] == 2
    assert all(not found[name] for found in told["found"] for name in ours)
    assert all(found[name] for found in told["found"] for name in theirs)


@pytest.mark.parametrize("name", CASES)
def test_a_case_runs_on_the_cluster(name, drivers, store, seconds):
    seconds[name] = plainly(drivers, name, store)


@pytest.mark.parametrize("name", CASES)
def test_an_executor_that_is_killed_changes_nothing(name, drivers, store):
    losing_an_executor(drivers, name, store, random.Random(f"executor {name}"))


@pytest.mark.parametrize("kill", range(KILLS))
@pytest.mark.parametrize("name", CASES)
def test_a_driver_that_is_killed_leaves_a_transaction_whole_or_not_at_all(
    name, kill, drivers, store, seconds
):
    chance = random.Random(f"driver {name} {kill}")
    within = seconds.get(name, UNKNOWN_SECONDS)
    losing_the_driver(drivers, name, store, chance, within)
