"""The benchmark over TPC-H, small: its transactions are what they say, its rows are whole."""

from __future__ import annotations

import doctest
import json
import shutil
from dataclasses import replace

import duckdb
import pytest
from bench.driver_rows import Figure
from bench.measure import together
from bench.ours import template
from bench.plain import PlainDuckDB
from bench.prepared import prepared
from bench.refresh import Refreshes
from bench.rows import ALL, Measured, geometric_mean, read, write
from bench.tables import KEYS, generated, queries
from bench.view_sets import Turn, Turns

import everview as ev
from bench import __main__ as command
from bench import compare_answers, driver_rows, headline, measure, ours, report, resource_usage

CHANGES = ("0.001%", "10%")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def tables(data):
    return generated(0.01, data)


def refreshes(tables, folder, *percents, **options):
    made = Refreshes(tables, folder / "changes", **options)
    made.make(percents)
    return made, [made.load(number) for number in range(made.count)]


def keys(rows, name):
    return list(zip(*(rows.column(key).to_pylist() for key in KEYS[name]), strict=True))


def stored(tables, name):
    return duckdb.execute(f"FROM '{tables / name}.parquet'").fetchall()


def as_rows(table):
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_half_of_a_change_is_new_orders_and_half_is_old_ones(tables, tmp_path):
    made, found = refreshes(tables, tmp_path, 10, 0.1, 0.001)
    assert made.orders == 15_000
    sizes = [(f.come["orders"].num_rows, f.gone["orders"].num_rows) for f in found]
    assert sizes == [(750, 750), (8, 7), (1, 1)]


def test_orders_go_and_come_with_all_their_lines(tables, tmp_path):
    _, (found,) = refreshes(tables, tmp_path, 1)
    lines = stored(tables, "lineitem")
    gone = {key for (key,) in keys(found.gone["orders"], "orders")}
    assert sorted(as_rows(found.gone["lineitem"])) == sorted(r for r in lines if r[0] in gone)
    come = {key for (key,) in keys(found.come["orders"], "orders")}
    assert {key for key, _ in keys(found.come["lineitem"], "lineitem")} == come


@pytest.mark.parametrize("deletes", ["random", "recent"])
def test_what_is_deleted_is_there_and_no_key_is_touched_twice(tables, tmp_path, deletes):
    _, found = refreshes(tables, tmp_path, 1, 1, 1, deletes=deletes)
    for name in ("orders", "lineitem"):
        there = set(stored(tables, name))
        assert all(row in there for f in found for row in as_rows(f.gone[name]))
        touched = [
            key for f in found for side in (f.gone, f.come) for key in keys(side[name], name)
        ]
        assert len(touched) == len(set(touched))
        old = {row[: len(KEYS[name])] if name == "orders" else (row[0], row[3]) for row in there}
        assert not old & {key for f in found for key in keys(f.come[name], name)}


def test_recent_orders_are_those_with_the_highest_keys(tables, tmp_path):
    _, found = refreshes(tables, tmp_path, 1, deletes="recent")
    highest = sorted((row[0] for row in stored(tables, "orders")), reverse=True)[:75]
    assert sorted(keys(found[0].gone["orders"], "orders")) == sorted((key,) for key in highest)
    _, found = refreshes(tables, tmp_path / "random", 1)
    assert min(key for (key,) in keys(found[0].gone["orders"], "orders")) < 6_000


def test_the_tables_after_are_those_before_with_every_change(tables, tmp_path):
    made, found = refreshes(tables, tmp_path, 1, 0.1)
    made.tables_after(tmp_path / "after.duckdb")
    with duckdb.connect(str(tmp_path / "after.duckdb")) as after:
        for name in KEYS:
            expected = set(stored(tables, name))
            for f in found if name in ("orders", "lineitem") else ():
                expected -= set(as_rows(f.gone[name]))
                expected |= set(as_rows(f.come[name]))
            rows = after.execute(f"FROM {name}").fetchall()
            assert len(rows) == len(expected)
            assert set(rows) == expected
            if name in ("orders", "lineitem"):
                listed = after.execute(f"SELECT {', '.join(KEYS[name])} FROM {name}").fetchall()
                assert listed == sorted(listed)


@pytest.fixture(scope="module")
def plan(data, tables):
    return prepared(tables, data, ("0.1%",), 2)


def test_transactions_are_made_once_and_their_numbers_follow(data, tables, plan):
    assert plan.numbers == {"0.1%": (2, 3)}
    assert prepared(tables, data, ("0.1%",), 2) == plan
    both = prepared(tables, data, CHANGES, None)
    assert both.numbers == {"0.001%": tuple(range(2, 17)), "10%": (18, 19, 20)}
    made = {file.name.partition("-")[0] for file in both.folder.glob("*-gone-orders.parquet")}
    assert made == {str(number) for number in range(21)}


def test_views_that_take_turns_find_the_same_tables(data, tables, plan, tmp_path):
    store = template(data, tables, "duckdb", None, fresh=False)
    turns = Turns(store, tmp_path / "store", "duckdb", None, plan)
    seen: list[tuple[object, ...]] = []
    by_view: dict[str, list[list[int]]] = {}
    for view in ("q03", "q13", "q03"):
        with turns.turn() as turn:
            db = turn.ours.db
            segments = {n: r.segments for n, r in db.store.latest().relations.items()}
            seen.append(
                (segments, [s.name for s in db.status()], sorted(db.engine.local.cache._held))
            )
            turn.ours.create({view: queries()[view]})
            fetched = [cost.rows_fetched for cost in turn.apply(*range(4))]
            by_view.setdefault(view, []).append(fetched)
            assert db.audit(view).ok
            assert db.store.latest().relations["orders"].segments != segments["orders"]
    assert seen[0][:2] == seen[1][:2] == seen[2][:2]
    assert [held for *_, held in seen] == [[], *[["lineitem", "orders"]] * 2]
    assert by_view["q03"][0] == by_view["q03"][1]
    assert len(db.store.epochs()) == 1
    turns.close()
    assert not (tmp_path / "store").exists()


@pytest.mark.slow
def test_tables_of_very_many_rows_are_taken_over(tables, plan, tmp_path, monkeypatch):
    monkeypatch.setattr(ours, "ADOPTED_MIN_ROWS", 0)
    monkeypatch.setattr(ours, "ROWS_PER_FILE", 10_000)
    store = template(tmp_path, tables, "duckdb", None, fresh=False)
    turns = Turns(store, tmp_path / "store", "duckdb", None, plan)
    with turns.turn() as turn:
        db = turn.ours.db
        files = {name: len(r.files) for name, r in db.store.latest().relations.items()}
        assert (files["lineitem"], files["orders"], files["nation"]) == (7, 2, 1)
        for name in KEYS:
            assert sorted(db.read(name).rows()) == sorted(stored(tables, name))
        turn.ours.create({"q03": queries()["q03"]})
        for number in range(4):
            turn.apply(number)
        assert db.audit().ok
        with pytest.raises(ev.UserError, match="o_orderkey"):
            db.insert("orders", plan.load(0).come["orders"])
    turns.close()


def test_tables_of_which_much_was_changed_are_loaded_anew(data, tables, tmp_path):
    much = prepared(tables, data, ("10%",), 1)
    store = template(data, tables, "duckdb", None, fresh=False)
    turns = Turns(store, tmp_path / "store", "duckdb", None, much)
    found = []
    for _ in range(2):
        with turns.turn() as turn:
            found.append((turn.ours, turn.ours.db.epoch))
            turn.apply(0)
    assert found[0][0] is not found[1][0]
    assert found[0][1] == found[1][1]


@pytest.mark.slow
def test_plain_duckdb_commits_a_transaction_and_is_as_before(plan, tmp_path):
    copy = shutil.copy(plan.database, tmp_path / "applied.duckdb")
    plain = PlainDuckDB(copy)
    assert plain.apply(plan, 2) > 0
    assert resource_usage.peak_mb(plain.apart) < resource_usage.peak_mb()
    plain.recompute("answers", "SELECT count(*) FROM orders")
    assert plain.answer("answers") == [(15_004,)]
    with pytest.raises(duckdb.CatalogException):
        plain.answer("nothing")
    plain.close()
    with duckdb.connect(copy) as found, duckdb.connect(str(plan.database)) as wanted:
        for name in KEYS:
            rows = (sorted(each.execute(f"FROM {name}").fetchall()) for each in (found, wanted))
            assert next(rows) == next(rows)
        assert found.execute("SHOW TABLES").fetchall() == wanted.execute("SHOW TABLES").fetchall()


def run(data, out, *more):
    some = ("--engine", "duckdb", "--scale", "0.01", "--views", "q06,q13", "--rounds", "1")
    where = ("--changes", ",".join(CHANGES), "--data", str(data), "--out", str(out))
    return command.main([*some, *where, *more])


def test_a_run_writes_whole_rows_a_table_and_a_plot(data, tables, tmp_path, capsys):
    assert run(data, tmp_path) == 0
    rows = json.loads((tmp_path / "tpch-scale-0.01.json").read_text())
    views = ("2 views", "q06", "q13")
    assert [(row["view"], row["change"]) for row in rows] == [
        (v, c) for v in views for c in CHANGES
    ]
    for row in rows:
        assert (row["engine"], row["scale"], row["deletes"]) == ("duckdb", 0.01, "random")
        assert row["jobs"] == 0
        assert row["speedup"] == pytest.approx(row["recompute_ms"] / row["ours_ms"], rel=0.01)
        positive = ("tables_ms", "apply_ms", "rows_fetched", "bytes_written", "state_bytes")
        assert min(row[name] for name in positive) > 0
        assert row["peak_mb"] > 50
        assert 0 < row["phases"]["compute"] <= sum(row["phases"].values()) <= row["ours_ms"]
    changed = {row["change"]: row["rows_changed"] for row in rows}
    assert changed["0.001%"] < 20 < 7_000 < changed["10%"]
    assert "| no view ms | apply ms |" in (tmp_path / "tpch-scale-0.01.md").read_text()
    assert "| duckdb | 10% | q13 |" in (tmp_path / "tpch-scale-0.01.md").read_text()
    assert (tmp_path / "tpch-scale-0.01-duckdb.svg").read_text().count("<circle") == 6 + 2
    assert not [file for file in data.iterdir() if file.name.startswith("run-")]
    assert "about 0 min left" in capsys.readouterr().err


def test_transactions_are_followed_by_recomputing_the_same_views(
    data, tables, tmp_path, monkeypatch
):
    seen = []
    sound, applied = PlainDuckDB.recompute, Turn.apply

    def recompute(plain, name, text):
        seen.append(name)
        return sound(plain, name, text)

    def apply(turn, *numbers):
        seen.extend(numbers)
        return applied(turn, *numbers)

    monkeypatch.setattr(PlainDuckDB, "recompute", recompute)
    monkeypatch.setattr(Turn, "apply", apply)
    monkeypatch.setattr(measure, "RECOMPUTED", {"duckdb": (None, 1)})
    assert run(data, tmp_path, "--changes", "0.1%", "--rounds", "2") == 0
    without, alone, many = [0, 1, 2, 3], [0, 1, 2, 3, "{}", "{}"], [0, 1, 2, 3, "q06", "q13"]
    each = [view if step == "{}" else step for view in ("q06", "q13") for step in ("{}", *alone)]
    assert seen == [*without, *each, *many]


def test_a_view_that_differs_is_told(data, tables, tmp_path, capsys, monkeypatch):
    sound = PlainDuckDB.answer

    def faulty(plain, name):
        return [(None,)] if name == "q06" else sound(plain, name)

    monkeypatch.setattr(PlainDuckDB, "answer", faulty)
    assert run(data, tmp_path, "--alone") == 1
    assert "duckdb, q06: q06 is not what recomputation says" in capsys.readouterr().err
    assert {row.view for row in read(tmp_path / "tpch-scale-0.01.json")} == {"q13"}


def test_an_unknown_view_is_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["--views", "q23"])
    assert "there is no view q23" in capsys.readouterr().err


ONE = Measured(
    engine="spark",
    scale=1.0,
    change="0.1%",
    view="q01",
    views=1,
    deletes="random",
    ours_ms=50.0,
    recompute_ms=200.0,
    speedup=4.0,
    tables_ms=20.0,
    rows_changed=10,
    rows_fetched=20,
    jobs=1,
    bytes_read=1,
    bytes_written=1,
    recompute_bytes_read=1,
    state_bytes=1,
    peak_mb=100.0,
    phases={"fetch": 30.0},
    rounds=3,
    cores=2,
    memory_gb=16,
)


def test_a_later_measurement_takes_the_place_of_an_older_one(tmp_path):
    file = tmp_path / "tpch-scale-1.json"
    other = replace(ONE, view="q02")
    write(file, [ONE, other])
    better = replace(ONE, ours_ms=10.0)
    assert write(file, [better]) == read(file) == [better, other]


def test_views_together_are_five_and_all():
    texts = queries()
    sets = together(texts, len(texts))
    assert {label: len(chosen) for label, chosen in sets.items()} == {"5 views": 5, ALL: 22}
    assert together({"q01": ""}, len(texts)) == {}


def test_a_loss_weighs_as_much_as_a_win():
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)


def test_the_headline_shows_means_losses_and_all_together(tmp_path):
    rows = [
        ONE,
        replace(ONE, view="q02", speedup=0.25),
        replace(ONE, view=ALL, views=22, speedup=31.4),
    ]
    write(tmp_path / "tpch-scale-1.json", rows)
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{headline.BEGIN}\nold\n{headline.END}\nafter\n")
    for _ in range(2):
        headline.write(tmp_path, readme)
    told = readme.read_text()
    assert told.startswith("before\n")
    assert told.endswith("\nafter\n")
    assert "old" not in told
    assert "2 cores and 16 GB of memory" in told
    assert "| spark | 1 | 0.1% | random | 1.00× (2 views) | q02: 0.25× | 31× |" in told


def test_the_headline_shows_what_executors_do_beside_what_is_held(tmp_path):
    figure = Figure("unheld", 1.0, "0.1%", "q01", "0", 10, 20, 5, 1, "incremental", "small", 1)
    for row in (figure, replace(figure, view="q02", ours_ms=40)):
        driver_rows.write(tmp_path, row)
    readme = tmp_path / "README.md"
    readme.write_text(f"{headline.BEGIN}{headline.END}")
    write(tmp_path / "tpch-scale-1.json", [ONE])
    headline.write(tmp_path, readme)
    line = "| Arrow, nothing held | 1 | 0.1% | 0 | 2 views, each alone | 1.00× | q02: 0.50× | 1 |"
    assert line in readme.read_text()


def test_the_table_tells_what_an_added_view_costs():
    rows = [ONE, replace(ONE, view=ALL, views=22, ours_ms=260.0, speedup=10.0)]
    assert (
        "| spark | 0.1% | **4.00** of 1 | q01 4.00 | 1: 50.0, 22: 260.0 | 10.0 |"
        in report.table(rows)
    )


def test_answers_are_compared_as_they_say():
    assert doctest.testmod(compare_answers).failed == 0
    assert compare_answers.unequal([(1,), (1,)], [(1,)]) == ([(1,)], [])
