"""What Spark does for us, measured small: rows are whole, and the baseline does what it says."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from bench.baseline import Baseline, as_frames
from bench.driver_rows import Figure, Phase, UnderPolicy, read, table, write
from bench.ours import size_in_bytes
from bench.prepared import prepared
from bench.tables import generated

import everview as ev
from bench import driver


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


def measured(data, out, spark, measure, *more):
    some = ("--measure", measure, "--scale", "0.01", "--views", "q06,q12", "--rounds", "1")
    where = ("--data", str(data), "--out", str(out))
    assert driver.run(driver.parsed([*some, *where, *more]), spark) == []
    return json.loads((out / f"driver-{measure}.json").read_text())


@pytest.mark.slow
@pytest.mark.spark
def test_ten_orders_as_a_frame_are_one_row_with_its_jobs(data, tmp_path, spark, capsys):
    (row,) = measured(data, tmp_path, spark, "frame")
    assert (row["view"], row["rounds"], row["memory"]) == ("three views", 1, "default")
    assert row["jobs"] >= 1
    assert 0 < row["baseline_write_ms"] < row["baseline_ms"]
    assert row["way"] in ("incremental", "recompute")
    assert "| three views |" in capsys.readouterr().out
    assert not [file for file in data.iterdir() if file.name.startswith("run-")]


@pytest.mark.slow
@pytest.mark.spark
def test_a_large_frame_is_measured_for_each_view_and_size(data, tmp_path, spark):
    rows = measured(data, tmp_path, spark, "large", "--changes", "1%,50%")
    assert [(row["change"], row["view"]) for row in rows] == [
        (change, view) for change in ("1%", "50%") for view in ("q06", "q12")
    ]
    assert all(row["way"] in ("incremental", "recompute") for row in rows)


@pytest.mark.slow
@pytest.mark.spark
def test_two_policies_stand_beside_each_other_where_one_is_chosen(data, tmp_path, spark):
    rows = measured(data, tmp_path, spark, "policies")
    assert {(row["change"], row["view"], row["policy"]) for row in rows} == {
        (change, "q12", policy)
        for change in ("0.001%", "1%")
        for policy in ("circuit", "higher-order")
    }
    read = {(row["view"], row["policy"], row["change"]): row["rows_read"] for row in rows}
    assert read["q12", "higher-order", "1%"] < read["q12", "circuit", "1%"]


@pytest.mark.slow
@pytest.mark.spark
def test_with_nothing_held_every_view_is_measured(data, tmp_path, spark):
    rows = measured(data, tmp_path, spark, "unheld")
    assert {(row["change"], row["view"], row["memory"]) for row in rows} == {
        (change, view, "0") for change in ("0.001%", "0.1%") for view in ("q06", "q12")
    }


@pytest.mark.slow
@pytest.mark.spark
def test_the_first_transaction_is_shown_beside_the_next(data, tmp_path, spark):
    (row,) = measured(data, tmp_path, spark, "first")
    assert min(row["open_ms"], row["ours_ms"], row["next_ms"]) > 0


@pytest.mark.slow
@pytest.mark.spark
def test_memory_and_bytes_are_measured_phase_by_phase(data, tmp_path, spark):
    rows = measured(data, tmp_path, spark, "memory", "--transactions", "30")
    phases = ["load", "views", "30 transactions", "compaction", "audit"]
    assert [row["phase"] for row in rows] == phases
    assert all(row["driver_mb"] > 50 for row in rows)
    assert all(row["java_mb"] > 50 for row in rows)
    by_phase = {row["phase"]: row for row in rows}
    assert by_phase["30 transactions"]["bytes_changed"] > 0
    assert by_phase["compaction"]["bytes_compacted"] > 0
    assert by_phase["compaction"]["bytes_changed"] == by_phase["audit"]["bytes_changed"] == 0


@pytest.mark.slow
@pytest.mark.spark
def test_batches_of_a_stream_are_one_row_with_their_jobs(data, tmp_path, spark):
    (row,) = measured(data, tmp_path, spark, "stream")
    assert (row["batches"], row["rows"]) == (1, 1_000)
    assert 1 <= row["jobs"] <= row["most_jobs"] <= 10


@pytest.mark.spark
@pytest.mark.slow
def test_the_baseline_writes_the_change_and_the_views(data, tmp_path, spark):
    plan = prepared(generated(0.01, data), data, ("0.1%",), 1)
    baseline = Baseline(spark, plan, tmp_path)
    spent = baseline.spent(2, {"n": "SELECT COUNT(*) AS n FROM orders"}, 1)
    assert spent.ms == spent.write_ms + spent.views_ms
    expected = plan.load(2)
    for kind, tables in (("gone", expected.gone), ("come", expected.come)):
        for name, rows in tables.items():
            assert pq.read_table(tmp_path / f"{kind}-{name}").num_rows == rows.num_rows
            frames = as_frames(spark, plan, 2)
            assert getattr(frames, kind)[name].count() == rows.num_rows
    assert baseline.answer("n") == [(pq.read_metadata(plan.files / "orders.parquet").num_rows,)]
    baseline.close()


def test_bytes_of_changes_and_of_compaction_are_told_apart(tmp_path):
    with ev.open(str(tmp_path), engine="duckdb") as db:
        db.sql("CREATE TABLE t (a BIGINT)")
        begin = db.epoch
        for number in range(3):
            db.insert("t", [(number,)])
        changed, compacted = driver.written(db.store, begin, db.epoch)
        assert changed > 0
        assert compacted == 0
        db.compact()
        both = driver.written(db.store, begin, db.epoch)
        assert both[0] == changed
        assert both[1] == sum(file.bytes for file in db.store.latest().relations["t"].files)


ONE = Figure(
    measure="large",
    scale=1.0,
    change="10%",
    view="q01",
    memory="default",
    ours_ms=50.0,
    baseline_ms=200.0,
    baseline_write_ms=20.0,
    jobs=7,
    way="incremental",
    gear="large",
    rounds=2,
)


def test_a_later_measurement_takes_the_place_of_an_older_one(tmp_path):
    other = replace(ONE, view="q02", ours_ms=400.0)
    for row in (ONE, other, replace(ONE, ours_ms=100.0)):
        write(tmp_path, row)
    assert read(tmp_path, "large") == [replace(ONE, ours_ms=100.0), other]
    told = table(tmp_path, "large")
    assert "| 1 | 10% | default | **1.00×** of 2 | q02 0.50× | q02 0.50× | 7 |" in told
    assert (tmp_path / "driver-large.md").read_text() == told + "\n"


def test_rows_that_are_not_counted_are_a_dash(tmp_path):
    row = UnderPolicy("policies", 10.0, "1%", "q03", "0", "circuit", 9.0, None, 40, "large", 10**6)
    write(tmp_path, row)
    assert "| 10 | 1% | 0 | q03 | circuit | 9 | – | 40 | large | 1.0 |" in table(
        tmp_path, "policies"
    )
    assert "40 jobs, – rows read" in row.told
    assert "40 jobs, 1,234 rows read" in replace(row, rows_read=1234).told


def test_amplification_is_what_compaction_wrote_over_what_changes_wrote(tmp_path):
    phase = Phase("memory", 3.0, "1GB", "1000 transactions", 9.0, 900, 4000, 10**6, 3 * 10**6, "4g")
    write(tmp_path, phase)
    line = "| 3 | 1GB | 4g | 1000 transactions | 9.0 | 900 | 4,000 | 1.0 | 3.0 | 3.00 |"
    assert line in table(tmp_path, "memory")
    assert replace(phase, bytes_changed=0).amplification is None


def test_sizes_are_read_as_they_are_written():
    found = [size_in_bytes(size) for size in ("1GB", "512MB", "1.5KB", "7", 0)]
    assert found == [1 << 30, 512 << 20, 1536, 7, 0]


@pytest.mark.parametrize(("option", "what"), [("--measure", "measure"), ("--views", "view")])
def test_what_is_unknown_is_refused(option, what, capsys):
    with pytest.raises(SystemExit):
        driver.parsed([option, "q99"])
    assert f"there is no {what} q99" in capsys.readouterr().err
