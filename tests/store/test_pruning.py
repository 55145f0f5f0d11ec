"""Skipping is sound: a file that holds a wanted key is never left out."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from everview.store import segments
from everview.store.bounds import LONGEST_TEXT
from everview.store.filesystem import resolve
from everview.store.manifest import DataFile, Relation, Segment
from store.worlds import files_for

long_text = st.text("a\ud7ff\U0010ffff", min_size=LONGEST_TEXT - 1, max_size=LONGEST_TEXT + 2)
DOMAINS: dict[str, tuple[pa.DataType, st.SearchStrategy[object]]] = {
    "long": (pa.int64(), st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)),
    "byte": (pa.int8(), st.integers(-128, 127)),
    "string": (pa.string(), st.text("ab", max_size=3) | st.text() | long_text),
    "date": (pa.date32(), st.dates()),
    "decimal": (pa.decimal128(12, 2), st.decimals(-50, 50, places=2)),
    "timestamp": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(dt.UTC))),
    "timestamp_ntz": (pa.timestamp("us"), st.datetimes()),
    "double": (pa.float64(), st.floats()),
    "boolean": (pa.bool_(), st.booleans()),
    "binary": (pa.binary(), st.binary(max_size=3)),
}

NEW = segments.NewSegment("r", 1, ("k",), "base")


def surviving(files: tuple[DataFile, ...], keys: pa.Array | None) -> tuple[DataFile, ...]:
    """The files that are left of a segment sorted by the column that is asked for."""
    return files_for(Relation("r", (NEW.of(files),)), "k", keys)


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.DataType, list[list[object]], list[object]]:
    type_, values = draw(st.sampled_from(list(DOMAINS.values())))
    pool = draw(st.lists(st.none() | values, min_size=1, max_size=6))
    some = st.lists(st.sampled_from(pool), max_size=4)
    return type_, draw(st.lists(some, max_size=4)), draw(some)


def same(left: object, right: object) -> bool:
    """Row identity: null-safe, and NaN equals NaN as in Spark."""
    return left == right or (left != left and right != right)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(case=cases())
@example(case=(pa.string(), [["x" * 70]], ["x" * 70]))
@example(case=(pa.float64(), [[1.0, float("nan")]], [float("nan")]))
@example(case=(pa.int64(), [[None]], [None]))
def test_a_file_that_holds_a_key_survives(
    tmp_path: Path, case: tuple[pa.DataType, list[list[object]], list[object]]
) -> None:
    type_, contents, wanted = case
    folder = resolve(tmp_path)
    keys = pa.array(wanted, type_)
    for values in contents:
        written = segments.write(folder, NEW, pa.table({"k": pa.array(values, type_)}))
        holds = any(same(value, key) for value in values for key in keys.to_pylist())
        assert not holds or surviving(written.files, keys) == written.files
        assert (
            not holds or surviving(written.files, pa.chunked_array([keys, keys])) == written.files
        )
        adopted = adopt(folder, values, type_)
        assert not holds or surviving(adopted.files, keys) == adopted.files


def adopt(folder: segments.Folder, values: list[object], type_: pa.DataType) -> Segment:
    """What executors would write: unsorted, and in row groups of two."""
    directory = f"segments/r/{segments.fresh_id(1)}"
    folder.make_folder(directory)
    table = pa.table({"k": pa.array(values, type_)})
    pq.write_table(table, folder.absolute(f"{directory}/part-0.parquet"), row_group_size=2)
    return segments.adopt(folder, NEW, directory)


@pytest.mark.parametrize(
    ("type_", "inside", "outside"),
    [
        (pa.int64(), [1, 5], [0, 6]),
        (pa.string(), ["b", "d"], ["a", "e"]),
        (pa.date32(), [dt.date(2024, 1, 2), dt.date(2024, 1, 4)], [dt.date(2024, 1, 1)]),
        (
            pa.decimal128(12, 2),
            [Decimal("9.50"), Decimal("10.50")],
            [Decimal("9.49"), Decimal("99")],
        ),
        (pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 2)], [dt.datetime(2024, 1, 3)]),
    ],
)
def test_a_file_out_of_range_is_skipped_however_it_was_written(
    tmp_path: Path, type_: pa.DataType, inside: list[object], outside: list[object]
) -> None:
    folder = resolve(tmp_path)
    table = pa.table({"k": pa.array(inside, type_)})
    written = segments.write(folder, NEW, table)
    adopted = adopt(folder, inside, type_)
    for files in (written.files, adopted.files):
        assert surviving(files, pa.array([*outside, None], type_)) == ()
        assert surviving(files, pa.array(outside + inside[:1], type_)) == files
        assert surviving(files, None) == files
        assert surviving(files, pa.array([], type_)) == ()


def test_written_and_adopted_files_have_the_same_bounds(tmp_path: Path) -> None:
    folder, values = resolve(tmp_path), [3, None, 1, 2]
    table = pa.table({"k": pa.array(values, pa.int32())})
    (written,) = segments.write(folder, NEW, table).files
    (adopted,) = adopt(folder, list(values), pa.int32()).files
    assert (written.low, written.high, written.has_null) == (("int", 1), ("int", 3), True)
    assert (adopted.low, adopted.high, adopted.has_null) == (("int", 1), ("int", 3), True)


def test_keys_of_another_type_skip_nothing() -> None:
    file = DataFile("f", 1, 1, "c", ("int", 1), ("int", 2), has_null=False)
    assert surviving((file,), pa.array(["x"])) == (file,)
    assert surviving((file,), pa.array([9.0])) == (file,)


def test_bounds_speak_only_about_the_column_a_segment_is_sorted_by() -> None:
    file = DataFile("f", 1, 1, "c", ("int", 1), ("int", 2), has_null=False)
    relation = Relation("r", (Segment("s", 1, "base", (file,), ("a", "b")),))
    assert files_for(relation, "a", pa.array([9])) == ()
    assert files_for(relation, "b", pa.array([9])) == (file,)
