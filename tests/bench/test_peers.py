"""The bench of peers, small: what is compared, what is told, and what a peer is given."""

from __future__ import annotations

import json
import subprocess

import pyarrow.parquet as pq
import pytest
from bench.peers import __main__ as peers
from bench.peers.prepare import prepare
from bench.peers.protocol import GROUPS, Task, marks
from bench.tpch import DATA


@pytest.fixture
def run(tmp_path):
    def main(*more: str) -> tuple[int, list[dict[str, object]]]:
        code = peers.main(["--quick", "--results", str(tmp_path), *more])
        return code, json.loads((tmp_path / "peers.json").read_text())

    return main


@pytest.mark.slow
def test_ours_agrees_with_a_recomputation(run):
    code, rows = run("--only", "everview-duckdb")
    assert code == 0
    assert [(r["peer"], r["views"], r["equal"]) for r in rows] == [("everview-duckdb", 3, True)]
    assert set(rows[0]["ms"]) == {"1", "1000"}


@pytest.mark.slow
@pytest.mark.spark
def test_streams_agree_with_a_recomputation(run):
    code, rows = run("--only", "streaming")
    assert code == 0
    assert [(r["views"], r["equal"]) for r in rows] == [(2, True)]


def test_a_wrong_answer_is_told(run, capsys, monkeypatch):
    def answered(command, **options):
        wrong = {"load_ms": 1, "ms": [1, 1, 1, 1], "answers": {"by_customer": [[1, 2, 3]]}}
        Task(peers.Path(command[3])).answer("everview-duckdb").write_text(json.dumps(wrong))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(peers.subprocess, "run", answered)
    code, rows = run("--only", "everview-duckdb")
    assert (code, rows[0]["equal"]) == (1, False)
    assert "everview-duckdb: not what a recomputation answers" in capsys.readouterr().err


def test_a_peer_that_is_not_installed_is_not_run(run, monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "HERE", tmp_path)
    code, rows = run("--only", "flink")
    assert code == 0
    assert rows[0]["not_run"] == "not installed: bench/peers/setup.sh flink"


def test_a_peer_that_stops_is_not_run_and_says_why(run, monkeypatch):
    monkeypatch.setitem(peers.PEERS, "flink", peers.Peer("missing"))
    code, rows = run("--only", "flink")
    assert code == 0
    assert rows[0]["not_run"].startswith("exit 1: ")
    assert "bench.peers.missing" in rows[0]["not_run"]


def test_each_batch_has_its_size_and_ends_with_its_marker(tmp_path):
    task = Task(tmp_path)
    answers = prepare(task, 0.01, {1: 2, 100: 1}, DATA, seed=1)
    assert [batch.rows for batch in task.batches] == [1, 1, 100]
    for batch in task.batches:
        lines = pq.read_table(batch.file)
        gone, come = (batch.lines(weight).num_rows for weight in (-1, 1))
        assert gone + come == lines.num_rows >= batch.rows
        assert lines.column("l_returnflag")[-1].as_py() == f"#{batch.number}"
    for number in range(4):
        for name, group in marks(number).items():
            assert [r[: GROUPS[name]] for r in answers[name]].count(group) == 1
