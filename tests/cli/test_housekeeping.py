"""`everview compact` and `everview retain`: fewer segments and fewer epochs, the same answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.shop import SHOP
from everview.cli.retain import GRACE_SECONDS
from everview.database import database

DUCKDB = ("--engine", "duckdb")


@pytest.fixture
def store(run, tmp_path) -> Path:
    """A store with one table and one view, at epoch 6."""
    path = tmp_path / "shop"
    more = ";".join(f"INSERT INTO orders VALUES ({n}, 7, 1.00, NULL)" for n in range(100, 103))
    assert run("sql", path, "-c", f"{SHOP};{more}", *DUCKDB).exit_code == 0
    return path


def answers(run, store: Path, *more: str) -> str:
    """What the view holds, as the command line shows it."""
    query = "SELECT * FROM revenue ORDER BY customer"
    done = run("sql", store, "-c", query, "--json", *more, *DUCKDB)
    assert done.exit_code == 0, done.output
    return done.stdout


def status(run, store: Path) -> dict:
    return json.loads(run("status", store, "--json", *DUCKDB).stdout)


def test_compacting_leaves_one_segment_for_each_relation_and_the_same_answers(run, store):
    before, epoch = answers(run, store), status(run, store)["epoch"]
    done = run("compact", store, "--json", *DUCKDB)
    assert done.exit_code == 0, done.output
    shown, now = json.loads(done.stdout), status(run, store)
    assert shown["epoch"] == now["epoch"] == epoch + 1
    assert {each["segments"] for each in now["relations"]} == {1}
    assert shown["segments_after"] == len(now["relations"]) < shown["segments_before"]
    assert answers(run, store) == answers(run, store, "--epoch", str(epoch)) == before


def test_compacting_says_how_many_segments_there_were_and_are(run, store):
    relations = status(run, store)["relations"]
    done = run("compact", store, *DUCKDB)
    before = sum(each["segments"] for each in relations)
    assert done.stdout == f"{before} segments before, {len(relations)} after\n"


def test_retaining_deletes_older_epochs_and_no_answer(run, store):
    before, epoch = answers(run, store), status(run, store)["epoch"]
    done = run("retain", store, "--keep", 2, "--grace", 0, "--json", *DUCKDB)
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert (shown["oldest"], shown["newest"]) == (epoch - 1, epoch)
    assert shown["deleted"]
    assert not any((store / path).exists() for path in shown["deleted"])
    assert answers(run, store) == before
    gone = run("sql", store, "-c", "SELECT 1 AS one", "--epoch", epoch - 2, *DUCKDB)
    assert gone.exit_code == 1
    assert run("verify", store).exit_code == 0


def test_what_was_the_newest_epoch_within_the_grace_is_kept(run, store):
    done = run("retain", store, "--keep", 1, *DUCKDB)
    epoch = status(run, store)["epoch"]
    assert done.stdout == f"epochs 0 to {epoch} are kept, 0 files deleted\n"


def test_the_grace_is_that_of_the_database():
    assert GRACE_SECONDS == database.GRACE_SECONDS


@pytest.mark.parametrize("command", [("compact",), ("retain", "--keep", 1)])
def test_neither_makes_a_store(run, tmp_path, command):
    name, *options = command
    done = run(name, tmp_path / "nowhere", *options, *DUCKDB)
    assert done.exit_code == 1
    assert done.stderr.startswith("error[S004]")
    assert not (tmp_path / "nowhere").exists()


def test_how_many_epochs_stay_must_be_said(run, store):
    assert run("retain", store, *DUCKDB).exit_code == 2
    assert run("retain", store, "--keep", 0, *DUCKDB).exit_code == 2
