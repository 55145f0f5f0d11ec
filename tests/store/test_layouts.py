"""Files of former layouts: every reader gives the columns of now."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.errors import UserError
from everview.store.group_reader import SliceReader, packed
from everview.store.layouts import fitted, packed_value, unpacked_value, with_former
from everview.store.pruning import Probe
from everview.store.store import Store

NOW = pa.schema(
    [
        with_former(pa.field("key", pa.int64()), ["id"]),
        with_former(pa.field("id", pa.string()), [None], packed_value(pa.scalar("new"))),
        with_former(pa.field("none", pa.date32()), [None]),
        with_former(pa.field("_w", pa.int64()), ["_w"]),
    ]
)
OLD = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "gone": ["a", "b", "c"],
        "_w": pa.array([1, 1, 2], pa.int64()),
    }
)
FITTED = {"key": [1, 2, 3], "id": ["new"] * 3, "none": [None] * 3, "_w": [1, 1, 2]}


@pytest.fixture
def stamped(tmp_path):
    """A store, and a file of the layout 0 in it."""
    store = Store.create_or_open(str(tmp_path / "store"))
    segment = store.write_segment("t", 1, OLD, ["id"])
    file = segment.files[0]
    return store, type(file)(**{n: getattr(file, n) for n in file.__slots__} | {"layout": 0})


def test_every_reader_fits_the_rows_of_a_former_layout(stamped):
    store, file = stamped
    assert store.read_files([file], schema=NOW).to_pydict() == FITTED
    assert pa.concat_tables(store.batches(file, NOW, 2)).to_pydict() == FITTED
    groups = store.row_groups([file], NOW, Probe("key", pa.array([2], pa.int64())))
    assert store.read_groups(groups, NOW, None).to_pydict() == FITTED
    keys = packed(pa.table({"key": pa.array([2], pa.int64()), "id": ["new"]}))
    reader = SliceReader([keys], [NOW.serialize().to_pybytes()], 10, 1 << 20)
    [(_, rows)] = reader.read([(0, store.absolute(file.path), 0, [0])])
    assert pa.ipc.open_stream(rows).read_all().to_pydict() == {
        name: values[1:2] for name, values in FITTED.items()
    }


def test_a_name_that_another_column_had_prunes_nothing(stamped):
    store, file = stamped
    found = store.row_groups([file], NOW, Probe("id", pa.array(["new"])))
    assert [each.groups for each in found] == [(0,)]


def test_a_layout_that_never_was_is_refused(stamped):
    store, file = stamped
    wrong = type(file)(**{n: getattr(file, n) for n in file.__slots__} | {"layout": 7})
    with pytest.raises(UserError, match="never had the layout 7"):
        store.read_files([wrong], schema=NOW)


@given(st.lists(st.integers(-(2**31), 2**31 - 1) | st.none()))
def test_fitting_keeps_every_value(values):
    rows = pa.table({"id": pa.array(values, pa.int32())})
    assert fitted(rows, pa.schema([NOW.field("key")]), 0)["key"].to_pylist() == values


@given(st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary() | st.lists(st.integers(0, 9)))
def test_a_packed_value_is_unpacked_with_its_type(value):
    scalar = pa.scalar(value)
    assert unpacked_value(packed_value(scalar)).equals(scalar)
