"""On a standalone cluster with one worker: some of what `make test-cluster` does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.driving import Drivers, losing_an_executor, losing_the_driver, made_store, plainly
from cluster.standalone import cluster
from cluster.worlds import CASES
from conftest import GENERATING

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    with cluster(tmp_path_factory.mktemp("cluster"), workers=1) as up:
        made = Drivers(up, GENERATING)
        yield made
        made.close()


@pytest.mark.slow
def test_nothing_of_ours_can_be_imported_inside_a_task(drivers):
    told = drivers.get().ask("imports", names=["everview", "pyarrow"])
    assert all(found == {"everview": False, "pyarrow": True} for found in told["found"])


@pytest.mark.slow
def test_slices_are_fetched_by_executors_that_know_nothing_of_us(drivers, tmp_path):
    name = "slices fetched by jobs"
    plainly(drivers, name, made_store(tmp_path / "store", CASES[name]))


def test_an_executor_that_is_killed_under_a_large_change_changes_nothing(drivers, tmp_path):
    name = "large gear"
    store = made_store(tmp_path / "store", CASES[name])
    losing_an_executor(drivers, name, store, random.Random(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.forced])
def test_executors_do_all_that_they_may(drivers, tmp_path, name):
    plainly(drivers, name, made_store(tmp_path / "store", CASES[name]))


@pytest.mark.slow
def test_a_driver_that_is_killed_under_an_upsert_leaves_it_whole_or_not_at_all(
    drivers, tmp_path: Path
):
    name = "upsert"
    store = made_store(tmp_path / "store", CASES[name])
    losing_the_driver(drivers, name, store, random.Random(2), 2.0)
