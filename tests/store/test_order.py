"""Rows that are in order are known to be, and no others are."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from everview.store.order import ascends, in_order
from everview.store.store import Store

VALUES = st.none() | st.integers(-2, 2)
TEXTS = st.none() | st.sampled_from(["", "a", "b"])


def place(row: tuple) -> tuple:
    return tuple((value is not None, value if value is not None else 0) for value in row)


@given(rows=st.lists(st.tuples(VALUES, TEXTS), max_size=6), cut=st.integers(0, 6))
def test_rows_ascend_if_each_is_above_the_one_before(rows, cut):
    whole = pa.table([[r[0] for r in rows], [r[1] for r in rows]], ["k", "l"])
    whole = whole.cast(pa.schema([("k", pa.int64()), ("l", pa.string())]))
    table = pa.concat_tables([whole[:cut], whole[cut:]])
    filled = all(value is not None for row in rows for value in row)
    above = filled and all(a < b for a, b in pairwise(rows))
    assert ascends(table, ["k", "l"]) == above
    ordered = in_order(table, ["k", "l"])
    assert list(zip(*ordered.to_pydict().values(), strict=True)) == sorted(rows, key=place)


def test_a_nan_has_no_place():
    table = pa.table({"k": [1.0, float("nan"), 2.0]})
    assert not ascends(table, ["k"])
    assert not ascends(table, [])


def test_many_rows_are_written_with_dictionaries_where_values_repeat(store: Store) -> None:
    count = 20_000
    table = pa.table(
        {"k": range(count), "few": ["x", "y"] * (count // 2), "_w": pa.array([1] * count)}
    )
    (quick,) = store.write_segment("orders", 1, table, ("k",)).files
    (lasting,) = store.write_segment("orders", 1, table, ("k",), lasting=True).files
    assert lasting.bytes < quick.bytes
    assert (lasting.low, lasting.high) == (quick.low, quick.high) == (("int", 0), ("int", 19_999))
    assert pq.read_table(store.absolute(quick.path)) == pq.read_table(store.absolute(lasting.path))
    columns = pq.read_metadata(store.absolute(quick.path)).row_group(0)
    used = {columns.column(at).path_in_schema: columns.column(at) for at in range(3)}
    assert [used[name].has_dictionary_page for name in ("k", "few", "_w")] == [False, True, True]
    assert used["k"].statistics.max >= 16_383
