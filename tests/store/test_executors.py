"""What executors say they wrote is what the driver sees, or nothing is committed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import everview as ev
from everview.errors import UserError
from everview.store import segments
from everview.store.store import Store
from store.worlds import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_fewer_rows_than_were_written_are_not_taken_in(tmp_path: Path) -> None:
    store = Store.create_or_open(tmp_path / "shop")
    directory = store.segment_directory("orders", 1)
    store.folder.write(f"{directory}/part-0.parquet", segments._parquet(rows((1, "a", 1)), {}))
    assert store.adopt_segment("orders", 1, directory, rows=1).rows == 1
    with pytest.raises(UserError, match=r"S011.*wrote 2 rows.*sees 1") as caught:
        store.adopt_segment("orders", 1, directory, rows=2)
    assert "shared disk" in caught.value.remedy
    with pytest.raises(UserError, match=r"S011.*wrote 2 rows.*sees 0"):
        store.adopt_segment("orders", 1, store.segment_directory("orders", 1), rows=2)


def test_to_register_a_large_file_reads_its_tail_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.create_or_open(tmp_path / "shop")
    directory = store.segment_directory("orders", 1)
    many = rows(*((number, f"value {number}", 1) for number in range(50_000)))
    store.folder.write(f"{directory}/part-0.parquet", segments._parquet(many, {}))
    monkeypatch.setattr("everview.store.checksums._chunks", None)
    (file,) = store.adopt_segment("orders", 1, directory, rows=50_000).files
    assert file.checksum is None
    assert file.tail is not None
    assert file.tail.bytes < file.bytes / 10


@pytest.mark.spark
def test_a_frame_that_executors_wrote_elsewhere_is_an_error(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ev.open(str(tmp_path / "shop"), spark=spark) as db:
        db.sql("CREATE TABLE t (id BIGINT)")
        before = db.epoch
        with monkeypatch.context() as without_a_shared_disk:
            without_a_shared_disk.setattr(segments, "_is_data", lambda _: False)
            with pytest.raises(UserError, match=r"S011.*wrote 10 rows.*sees 0"):
                db.insert("t", spark.range(10))
        assert db.epoch == before
        assert db.read("t").rows() == []
        db.insert("t", spark.range(10))
        assert len(db.read("t").rows()) == 10
