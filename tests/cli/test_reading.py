"""The commands that look into a store."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

import everview
from cli.shop import SHOP, lines

pytestmark = pytest.mark.spark

SPARKLESS = """
from everview.cli.main import main
main({args}, standalone_mode=False)
from pyspark import SparkContext
assert SparkContext._gateway is None, "Spark was started"
"""


def test_status_lists_tables_views_and_states(run, shop):
    [found] = lines(run("status", shop, "--json"))
    assert found["epoch"] == 3
    assert [r["kind"] for r in found["relations"]] == ["table", "view", "state"]
    orders, revenue, _ = found["relations"]
    assert (orders["name"], orders["rows"], orders["segments"]) == ("orders", 3, 2)
    assert (revenue["name"], revenue["reads"]) == ("revenue", ["orders"])


def test_status_shows_sizes_for_people(run, shop):
    shown = run("status", shop).stdout
    assert shown.startswith("epoch 3\n")
    assert "KiB" in shown


@pytest.mark.parametrize("stage", ["operators", "plan", "derivative", "program", "sql"])
def test_explain_shows_each_stage(run, shop, stage):
    text = run("explain", shop, "revenue", "--stage", stage)
    assert text.exit_code == 0
    [found] = lines(run("explain", shop, "revenue", "--stage", stage, "--json"))
    assert found == {"view": "revenue", "stage": stage, "text": text.stdout.removesuffix("\n")}


def test_explain_shows_each_operator_unless_asked_otherwise(run, shop):
    shown = run("explain", shop, "revenue").stdout
    assert shown.startswith("-- revenue: ")
    assert "threshold: Δ(γ T) = " in shown


def test_changes_are_the_rows_that_came_and_left(run, shop):
    [found] = lines(run("changes", shop, "revenue", "--json"))
    assert found["more"] == 0
    assert found["rows"] == [
        {"customer": 7, "total": "15.50", "n": 2, "_w": 1, "_epoch": 2},
        {"customer": 8, "total": "1.25", "n": 1, "_w": 1, "_epoch": 3},
    ]


def test_changes_begin_after_an_epoch_and_end_at_a_limit(run, shop):
    [later] = lines(run("changes", shop, "revenue", "--after", 2, "--json"))
    assert [row["_epoch"] for row in later["rows"]] == [3]
    [first] = lines(run("changes", shop, "revenue", "--limit", 1, "--json"))
    assert [row["_epoch"] for row in first["rows"]] == [2]
    assert first["more"] == 1
    assert "1 more row" in run("changes", shop, "revenue", "--limit", 1).stdout


@pytest.mark.parametrize("command", ["status", "changes", "explain"])
def test_looking_at_plain_views_starts_no_spark(shop, command):
    args = [command, str(shop), *(["revenue"] if command != "status" else [])]
    code = SPARKLESS.format(args=args)
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_audit_finds_nothing_where_the_law_holds(run, shop):
    done = run("audit", shop)
    assert done.exit_code == 0
    assert "equal" in done.stdout
    [found] = lines(run("audit", shop, "revenue", "--json"))
    assert found["ok"] is True
    assert found["views"][0]["rows"] == 2
    assert (found["views"][0]["read_by"], found["views"][0]["why"]) == ("spark", None)


def test_audit_shows_a_planted_difference_with_exit_code_3(run, spark, tmp_path):
    store = tmp_path / "store"
    with everview.open(str(store)) as db:
        db.sql(SHOP)
        _plant(db)
    done = run("audit", store)
    assert done.exit_code == 3
    assert "DIFFERENT" in done.stdout
    assert "surplus" in done.stdout
    assert "66.00" in done.stdout
    done = run("audit", store, "--json")
    assert done.exit_code == 3
    [view] = lines(done)[0]["views"]
    assert (view["ok"], view["missing"], view["surplus"]) == (False, 0, 1)
    assert view["first_surplus"] == [{"customer": 66, "total": "66.00", "n": 6}]


def _plant(db):
    """A row in the view that its query does not give."""
    schema = db.changes("revenue").to_arrow().drop_columns(["_epoch"]).schema
    row = pa.table({"customer": [66], "total": ["66.00"], "n": [6], "_w": [1]}).cast(schema)
    latest = db.store.latest()
    segment = db.store.write_segment("revenue", latest.epoch + 1, row)
    changes = {"revenue": segment}
    db.store.commit(latest.advance(epoch=latest.epoch + 1, created="", changes=changes))


def test_names_are_those_of_the_store_and_unknown_ones_are_refused(run, shop):
    for command in ("explain", "audit", "changes"):
        done = run(command, shop, "nowhere")
        assert done.exit_code == 1
        assert "error[C002]" in done.stderr
