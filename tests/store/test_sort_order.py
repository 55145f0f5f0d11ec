"""Rows that are in order are known to be, and no others are."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from everview.store.sort_order import ascends, in_order
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


def test_many_rows_are_written_as_what_takes_least(store: Store) -> None:
    count = 20_000
    columns = {
        "k": pa.array(range(count)),
        "few": pa.array(["x", "y"] * (count // 2)),
        "many": pa.array([f"the row of {number}" for number in range(count)]),
        "price": pa.array([Decimal(number) for number in range(count)], pa.decimal128(15, 2)),
        "large": pa.array(range(count)).cast(pa.decimal128(38, 2)),
        "day": pa.array(range(count), pa.int32()).cast(pa.date32()),
        "_w": pa.array([1] * count),
    }
    flat = pa.table(columns)
    nested = flat.append_column("list", pa.array([[number, None] for number in range(count)]))
    for table in (flat, nested):
        (quick,) = store.write_segment("orders", 1, table, ("k",)).files
        (dense,) = store.write_segment("orders", 1, table, ("k",), dense=True).files
        assert dense.bytes < quick.bytes
        assert (dense.low, dense.high) == (quick.low, quick.high) == (("int", 0), ("int", 19_999))
        assert store.read_files((quick,)) == store.read_files((dense,)) == table
        group = pq.read_metadata(store.absolute(quick.path)).row_group(0)
        used = {group.column(at).path_in_schema: group.column(at) for at in range(7)}
        assert [name for name in used if used[name].has_dictionary_page] == ["few", "_w"]
        near = [name for name in used if "DELTA_BINARY_PACKED" in used[name].encodings]
        assert near == ["k", "price", "day"]
        assert used["k"].statistics.max >= 16_383
