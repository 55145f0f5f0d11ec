"""Only row groups that may hold a wanted key are read, and no wanted row is missed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from everview.errors import UserError
from everview.store import group_reader, segments
from everview.store.footers import CHUNK_BYTES, Footer, Footers
from everview.store.group_reader import KeyTest
from everview.store.manifest import Segment
from everview.store.pruning import Probe
from everview.store.reader import TooManyRows
from everview.store.store import Store
from store.test_flips import flips, unless_damaged

TYPES: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "bigint": (pa.int64(), lambda n: n - 20),
    "tinyint": (pa.int8(), lambda n: n % 100),
    "string": (pa.string(), lambda n: f"é{n:03d}"),
    "decimal": (pa.decimal128(12, 2), lambda n: Decimal(n) / 4),
    "date": (pa.date32(), lambda n: date(2026, 1, 1 + n % 28)),
    "timestamp": (pa.timestamp("us", "UTC"), lambda n: datetime(2026, 1, 1 + n % 28, tzinfo=UTC)),
    "timestamp_ntz": (pa.timestamp("us"), lambda n: datetime(2026, 1, 1 + n % 28)),
    "binary": (pa.binary(), lambda n: bytes([n % 256])),
    "boolean": (pa.bool_(), lambda n: n % 2 == 0),
}


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "KEYED_ROW_GROUP_ROWS", 7)
    monkeypatch.setattr(group_reader, "CHUNK_ROWS", 20)


def written(store: Store, table: pa.Table, sort: tuple[str, ...] = ("k",)) -> Segment:
    return store.write_segment("t", 1, table, sort, kind="base")


def sliced(store: Store, segment: Segment, schema: pa.Schema, keys: pa.Table) -> pa.Table:
    probe = Probe(keys.column_names[0], keys.column(0))
    found = store.row_groups(probe.files_of(segment), schema, probe)
    return store.read_groups(found, schema, KeyTest(keys))


def counted(rows: pa.Table) -> list[Any]:
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("written_by", ["us", "others", "others, without statistics"])
def test_exactly_the_rows_with_wanted_keys_are_read(
    tmp_path: Path, name: str, written_by: str
) -> None:
    chance, (type_, value) = Random(name), TYPES[name]
    for trial in range(8):
        some = [None if chance.random() < 0.1 else value(chance.randrange(60)) for _ in range(90)]
        table = pa.table({"k": pa.array(some[: chance.choice([0, 1, 90])], type_)})
        table = table.append_column("v", pa.array([f"v{n}" for n in range(len(table))]))
        table = table.append_column("_w", pa.array([1] * len(table), pa.int64()))
        store = Store.create_or_open(tmp_path / f"shop{trial}")
        if written_by == "us":
            segment = written(store, table)
        else:
            directory = store.segment_directory("t", 1)
            how = {"write_statistics": written_by == "others"}
            ordered = segments.in_order(table, ("k",))
            store.folder.write(f"{directory}/part-0.parquet", segments._parquet(ordered, how))
            segment = store.adopt_segment("t", 1, directory, ("k",), kind="base")
        asked = [value(chance.randrange(60)) for _ in range(chance.choice([0, 1, 4]))]
        asked += [None] * chance.choice([0, 1])
        keys = pa.table({"k": pa.array(asked, type_)})
        expected = [row for row in table.to_pylist() if row["k"] in asked]
        assert counted(sliced(store, segment, table.schema, keys)) == sorted(map(repr, expected))


def test_keys_of_several_columns_are_compared_by_all_of_them(tmp_path: Path) -> None:
    chance = Random(5)

    def column(type_: pa.DataType) -> pa.Array:
        return pa.array([chance.choice([None, *range(4)]) for _ in range(200)], pa.int64()).cast(
            type_
        )

    table = pa.table({"k": column(pa.int32()), "s": column(pa.string()), "d": column(pa.int64())})
    table = table.append_column("_w", pa.array([1] * 200, pa.int64()))
    store = Store.create_or_open(tmp_path / "shop")
    segment = written(store, table, ("k", "s"))
    for _ in range(20):
        keys = table.select(["k", "s", "d"]).take([chance.randrange(200) for _ in range(3)])
        asked = [tuple(row.values()) for row in keys.to_pylist()]
        expected = [r for r in table.to_pylist() if (r["k"], r["s"], r["d"]) in asked]
        assert counted(sliced(store, segment, table.schema, keys)) == sorted(map(repr, expected))


def test_few_keys_decode_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million rows: a hundred random keys decode no more row groups than there are keys."""
    group, count, asked = 2_048, 1_000_000, 100
    monkeypatch.setattr(segments, "KEYED_ROW_GROUP_ROWS", group)
    table = pa.table({"k": range(0, 2 * count, 2), "v": range(count), "_w": [1] * count})
    store = Store.create_or_open(tmp_path / "shop")
    segment = written(store, table)
    decoded: dict[str, int] = {}
    plain = pq.ParquetFile.read_row_groups

    def counting(self: Any, groups: Any, columns: Any, **how: Any) -> pa.Table:
        rows = plain(self, groups, columns=columns, **how)
        for name in columns:
            decoded[name] = decoded.get(name, 0) + rows.num_rows
        return rows

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", counting)
    there = [2 * place for place in Random(1).sample(range(count), asked)]
    rows = sliced(store, segment, table.schema, pa.table({"k": there}))
    assert sorted(rows["k"].to_pylist()) == sorted(there)
    assert max(decoded.values()) <= group * asked
    decoded.clear()
    missing = pa.table({"k": [key + 1 for key in there]})
    assert not sliced(store, segment, table.schema, missing).num_rows
    assert decoded.keys() == {"k"}, "without a wanted row, only keys are decoded"


def test_a_footer_is_parsed_once_and_the_file_is_looked_at_each_time(tmp_path: Path) -> None:
    table = pa.table({"k": range(50), "_w": [1] * 50})
    store = Store.create_or_open(tmp_path / "shop")
    segment = written(store, table)
    keys = pa.table({"k": [3, 40]})
    assert sliced(store, segment, table.schema, keys).num_rows == 2
    path = Path(store.absolute(segment.files[0].path))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(UserError, match="S003"):
        sliced(store, segment, table.schema, keys)
    path.unlink()
    with pytest.raises(UserError, match=r"S003.*missing"):
        sliced(store, segment, table.schema, keys)
    path.write_bytes(whole)
    assert sliced(store, segment, table.schema, keys).num_rows == 2


def test_a_flipped_bit_is_found_or_harmless_in_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "_parts", lambda rows: [rows])
    table = pa.table({"k": range(60), "v": [f"value {n % 9}" for n in range(60)], "_w": [1] * 60})
    store = Store.create_or_open(tmp_path / "shop")
    segment = written(store, table)
    keys = pa.table({"k": [3, 31, 32, 59]})
    right = table.take([3, 31, 32, 59])
    (file,) = segment.files
    path, told, warm = Path(store.absolute(file.path)), 0, 0
    for at in flips(path, 5):
        again = Store.open_existing(store.folder.root)
        rows = unless_damaged(partial(sliced, again, segment, table.schema, keys))
        assert rows is None or rows.equals(right), at
        told += rows is None
        rows = unless_damaged(partial(sliced, store, segment, table.schema, keys))
        assert rows is None or rows.equals(right), at
        warm += rows is None
    assert told > file.tail.bytes / 5 if file.tail else 0
    assert warm > 5, "pages are verified when the footer is known already"


def test_more_rows_than_wanted_are_not_read_to_the_end(tmp_path: Path) -> None:
    table = pa.table({"k": range(500), "_w": [1] * 500})
    store = Store.create_or_open(tmp_path / "shop")
    segment = written(store, table)
    found = store.row_groups(segment.files, table.schema, None)
    assert store.read_groups(found, table.schema, None, 500).num_rows == 500
    with pytest.raises(TooManyRows):
        store.read_groups(found, table.schema, None, 499)


def test_footers_are_kept_within_a_bound(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1]}), tmp_path / "one.parquet")
    metadata = pq.read_metadata(tmp_path / "one.parquet")
    kept, parsed = Footers(max_bytes=2 * CHUNK_BYTES), []

    def ask(name: str) -> None:
        kept.get(name, lambda: parsed.append(name) or Footer(metadata))  # type: ignore[func-returns-value]

    for name in ("a", "b", "a", "c", "a", "b"):
        ask(name)
    assert parsed == ["a", "b", "c", "b"]


def test_floats_are_not_compared_by_their_bits() -> None:
    with pytest.raises(AssertionError):
        KeyTest(pa.table({"k": [0.0]}))
