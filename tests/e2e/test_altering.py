"""ALTER TABLE at random beside changes, compaction and reopening, against a plain model."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from e2e.altered_worlds import AlteredWorld
from everview.database.database import Database
from everview.database.handle import Handle
from everview.engines.spark.engine import SparkEngine
from everview.store.store import Store

CHANGES = ("insert", "insert", "insert", "delete", "update")
ALTERS = ("add", "drop", "rename", "widen", "retable", "review")
OTHERS = ("compact", "reopen", "truncate")
ACTIONS = st.tuples(
    st.sampled_from(CHANGES + ALTERS + OTHERS), st.integers(0, 3), st.integers(0, 9)
)


def embedded(**options):
    """Opens a store embedded."""
    return lambda path: ev.open(path, engine="duckdb", **options)


@settings(max_examples=5)
@given(st.lists(ACTIONS, min_size=4, max_size=14), st.sampled_from([{}, {"memory": 0}]))
def test_an_altered_table_and_its_views_hold_what_a_plain_model_does(actions, options):
    with TemporaryDirectory() as path:
        world = AlteredWorld(f"{path}/store", embedded(**options))
        try:
            for action in (("insert", 0, 1), ("insert", 1, 2), ("insert", 3, 3), *actions):
                world.apply(action)
                world.check()
            world.check_past()
        finally:
            world.db.close()


@pytest.mark.parametrize("memory", [{}, {"memory": 0}])
def test_a_column_that_is_dropped_and_added_again_has_none_of_its_old_values(tmp_path, memory):
    world = AlteredWorld(str(tmp_path / "store"), embedded(**memory))
    for number in range(4):
        world.apply(("insert", number, number))
    for round_ in ("piece", "parquet"):
        world.apply(("add", 0, 5))
        world.apply(("insert", 1, 8))
        if round_ == "parquet":
            world.apply(("compact", 0, 0))
        world.apply(("drop", 0, 0))
        world.apply(("add", 1, 0))
        assert world.names()[3] == "a"
        world.check()
        world.apply(("drop", 0, 0))
    world.check_past()
    world.db.close()


def on_spark(spark, **settings):
    """Opens a store on Spark, in a gear of its own."""

    def opened(path: str) -> Database:
        store = Store.create_or_open(path)
        return Database(Handle(store, SparkEngine(spark, **settings), store.writer_lock()))

    return opened


@pytest.mark.spark
def test_engines_take_turns_on_an_altered_table(spark, tmp_path):
    world = AlteredWorld(str(tmp_path / "store"), on_spark(spark, memory=0))
    script = "insert compact add rename widen add insert reopen drop retable insert"
    for number, kind in enumerate(script.split()):
        if kind == "reopen":
            asked = world.db.sql(f"SELECT * FROM {world.table}")
            assert sorted(asked.rows(), key=repr) == sorted(map(tuple, world.rows), key=repr)
            world.opened = embedded()
        world.apply((kind, number % 3, number))
    world.check()
    world.opened = on_spark(spark)
    world.apply(("reopen", 0, 0))
    world.apply(("compact", 0, 0))
    world.check()
    world.db.close()


@pytest.mark.spark
@pytest.mark.parametrize(
    "gear",
    [
        {"driver_bytes": -1, "memory": 0},
        pytest.param({"large_rows": -1}, marks=pytest.mark.slow),
    ],
)
def test_executors_read_files_of_former_layouts(spark, tmp_path, own_files, gear):
    world = AlteredWorld(str(tmp_path / "store"), on_spark(spark, **gear))
    script = "insert insert add rename update delete"
    for number, kind in enumerate(script.split()):
        world.apply((kind, number % 4, number))
    world.check()
    world.db.close()
