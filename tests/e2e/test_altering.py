"""ALTER TABLE at random beside changes, compaction and reopening, against a plain model."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from e2e.altered_worlds import AlteredWorld

CHANGES = ("insert", "insert", "insert", "delete", "update")
ALTERS = ("add", "drop", "rename", "widen", "retable", "review")
OTHERS = ("compact", "reopen", "truncate")
ACTIONS = st.tuples(
    st.sampled_from(CHANGES + ALTERS + OTHERS), st.integers(0, 3), st.integers(0, 9)
)


@settings(max_examples=5)
@given(st.lists(ACTIONS, min_size=4, max_size=14), st.sampled_from([{}, {"memory": 0}]))
def test_an_altered_table_and_its_views_hold_what_a_plain_model_does(actions, options):
    with TemporaryDirectory() as path:
        world = AlteredWorld(f"{path}/store", {"engine": "duckdb", **options})
        try:
            for action in (("insert", 0, 1), ("insert", 1, 2), ("insert", 3, 3), *actions):
                world.apply(action)
                world.check()
            world.check_past()
        finally:
            world.db.close()


@pytest.mark.parametrize("memory", [{}, {"memory": 0}])
def test_a_column_that_is_dropped_and_added_again_has_none_of_its_old_values(tmp_path, memory):
    world = AlteredWorld(str(tmp_path / "store"), {"engine": "duckdb", **memory})
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
