"""Verify names what is damaged; repair builds again what tables tell, and says what is lost."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from click.testing import CliRunner, Result

import everview as ev
from everview.cli.main import main
from everview.errors import UserError
from everview.store.manifest_log import manifest_path
from everview.store.store import Store

ROWS = [(number, number % 7, f"value {number}") for number in range(3_000)]
MORE = [(number, number % 7, "more") for number in range(5_000, 8_000)]
RIGHT = {g: sum(1 for row in (*ROWS, *MORE) if row[1] == g) for g in range(7)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables and three views: epochs 4 and 5 write rows of `t`."""
    at = tmp_path_factory.mktemp("verified") / "shop"
    with ev.open(str(at), engine="duckdb") as db:
        db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, g INT, v STRING)")
        db.sql("CREATE TABLE names (g INT PRIMARY KEY, name STRING)")
        db.insert("names", [(g, f"group {g}") for g in range(7)])
        db.insert("t", ROWS)
        db.insert("t", MORE)
        db.sql("CREATE VIEW n AS SELECT g, COUNT(*) AS n, MIN(v) AS least FROM t GROUP BY g")
        db.sql("CREATE VIEW named AS SELECT a.id, b.name FROM t a JOIN names b ON a.g = b.g")
        db.sql("CREATE VIEW short AS SELECT name FROM names WHERE g < 3")
    return at


@pytest.fixture
def shop(made: Path, tmp_path: Path) -> Path:
    copytree(made, tmp_path / "shop")
    return tmp_path / "shop"


def damage(at: Path, relation: str, which: int = 0) -> str:
    """Flip a bit in a file of a relation of the newest epoch."""
    file = Store.open_existing(at).latest().relations[relation].files[which]
    flip(at / file.path, (file.start or 0) + file.bytes // 2)
    return file.path


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def everview(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def must_be_right(at: Path) -> None:
    with ev.open(str(at), engine="duckdb") as db:
        assert {g: n for g, n, _ in db.read("n").rows()} == RIGHT
        assert len(db.read("named").rows()) == len(ROWS) + len(MORE)
        db.insert("t", [(100_000, 1, "new")])
        assert db.audit().ok


def test_a_whole_store_is_told_to_be_one(shop: Path) -> None:
    found = ev.verify(str(shop))
    assert found.ok
    assert found.last_good == found.newest
    told = everview("verify", shop)
    assert told.exit_code == 0
    assert "everything is as it was written" in told.output
    done = ev.repair(str(shop), engine="duckdb")
    assert (done.ok, done.epoch, done.rebuilt) == (True, None, ())
    assert ev.verify(str(shop)).newest == found.newest


def test_verify_names_files_relations_and_epochs(shop: Path) -> None:
    newest = Store.open_existing(shop).latest().epoch
    path = damage(shop, "t", which=1)
    (found,) = ev.verify(str(shop)).damaged
    assert (found.path, found.relations) == (path, ("t",))
    assert found.epochs == tuple(range(5, newest + 1))
    told = everview("verify", shop, "--json")
    assert told.exit_code == 3
    shown = json.loads(told.stdout)
    assert shown["last_good"] == 4
    assert shown["damaged"][0]["path"] == path
    text = everview("verify", shop)
    assert text.exit_code == 3
    for part in (path, f"5-{newest}", "checksum", "the last good epoch is 4"):
        assert part in text.output


@pytest.mark.parametrize("relation", ["n", "named", "short", "a state"])
def test_what_tables_tell_is_built_again(shop: Path, relation: str) -> None:
    if relation == "a state":
        with ev.open(str(shop), engine="duckdb", read_only=True) as db:
            states = db.catalog.maintenance.states.stored
            filled = db.store.latest().relations
            relation = next(name for name in states if filled[name].files)
    damage(shop, relation)
    assert not ev.verify(str(shop)).ok
    told = everview("repair", shop, "--engine", "duckdb")
    assert told.exit_code == 0, told.output
    assert f"built again {relation}" in told.output
    found = ev.verify(str(shop))
    assert not found.of_epoch(found.newest)
    must_be_right(shop)


def test_what_is_lost_of_a_table_is_told_with_its_rows_and_epochs(shop: Path) -> None:
    path, view = damage(shop, "t", which=1), damage(shop, "short")
    damage(shop, "n")
    before = Store.open_existing(shop).latest().epoch
    done = ev.repair(str(shop), engine="duckdb")
    assert not done.ok
    (lost,) = done.lost
    assert (lost.table, lost.epochs, lost.files) == ("t", (5,), (path,))
    assert 0 < lost.rows <= len(MORE)
    assert "short" in done.rebuilt, "it reads a table that is whole"
    assert view in {each.path for each in done.found.damaged}
    assert "n" in done.waiting
    assert done.epoch == before + 1
    assert done.found.last_good == 4
    told = everview("repair", shop, "--engine", "duckdb")
    assert told.exit_code == 3
    for part in ("lost: up to", "rows of t", "epoch 5", path, "not built: n"):
        assert part in told.output
    with pytest.raises(UserError, match="epoch=4"), ev.open(str(shop), engine="duckdb") as db:
        db.read("t").rows()
    with ev.open(str(shop), engine="duckdb", epoch=4) as db:
        assert sorted(db.read("t").rows()) == ROWS


def test_a_damaged_newest_manifest_leaves_the_epoch_before_it(shop: Path) -> None:
    store = Store.open_existing(shop)
    newest = store.latest().epoch
    path = shop / manifest_path(newest)
    flip(path, path.stat().st_size - 100)
    with pytest.raises(UserError, match=rf"(?s)S002.*epoch={newest - 1}"):
        ev.open(str(shop), engine="duckdb")
    found = ev.verify(str(shop))
    assert [each.epochs for each in found.damaged if not each.relations] == [(newest,)]
    assert found.last_good == newest - 1
    told = everview("repair", shop, "--engine", "duckdb")
    assert told.exit_code == 3
    assert "restore it from a backup" in told.output
    with ev.open(str(shop), engine="duckdb", epoch=newest - 1) as db:
        assert db.epoch == newest - 1
        assert sorted(db.read("t").rows()) == [*ROWS, *MORE]
        assert {g: n for g, n, _ in db.read("n").rows()} == RIGHT
        assert db.audit().ok
        assert db.changes("t").rows()
        with pytest.raises(UserError, match="T009"):
            db.insert("t", [(100_000, 1, "new")])
        with pytest.raises(UserError, match="C002"):
            db.read("short")


COMMANDS: dict[str, tuple[object, ...]] = {
    "status": (),
    "audit": (),
    "explain": ("n",),
    "sql": ("-c", "SELECT COUNT(*) AS n FROM t"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_read_an_earlier_epoch(shop: Path, name: str) -> None:
    newest = Store.open_existing(shop).latest().epoch
    path = shop / manifest_path(newest)
    flip(path, path.stat().st_size - 100)
    args: list[Any] = [name, shop, *COMMANDS[name], "--engine", "duckdb"]
    refused = everview(*args)
    assert refused.exit_code == 1
    assert f"epoch={newest - 1}" in refused.output
    told = everview(*args, "--epoch", newest - 1)
    assert told.exit_code == 0, told.output
    assert everview(*args, "--epoch", newest + 5).exit_code == 1
    if name == "sql":
        assert "6000" in told.output
        changing = everview("sql", shop, "-c", "DELETE FROM t", "--epoch", 4, "--engine", "duckdb")
        assert changing.exit_code == 1
        assert "reading only" in changing.output


def test_a_missing_manifest_between_others_is_told(shop: Path) -> None:
    newest = Store.open_existing(shop).epochs()[-1]
    (shop / manifest_path(3)).unlink()
    (found,) = ev.verify(str(shop)).damaged
    assert found.epochs == tuple(range(3, newest + 1)), "deltas that follow it need it"
    assert found.path == manifest_path(3)
    with pytest.raises(UserError, match=r"(?s)S002.*0003\.json.*missing.*epoch=2"):
        ev.open(str(shop), engine="duckdb")


def test_a_damaged_delta_hides_the_epochs_up_to_the_next_checkpoint(shop: Path) -> None:
    newest = Store.open_existing(shop).epochs()[-1]
    Store.open_existing(shop).make_checkpoint(newest)
    path = shop / manifest_path(3)
    flip(path, path.stat().st_size - 100)
    (found,) = ev.verify(str(shop)).damaged
    assert (found.path, found.epochs) == (manifest_path(3), tuple(range(3, newest)))
    must_be_right(shop)
    path = shop / manifest_path(newest)
    flip(path, path.stat().st_size - 100)
    with pytest.raises(UserError, match=r"(?s)S002.*epoch=2"):
        ev.open(str(shop), engine="duckdb")
    with ev.open(str(shop), engine="duckdb", epoch=2) as db:
        assert db.epoch == 2
    assert [each.epochs for each in ev.verify(str(shop)).damaged] == [
        tuple(range(3, newest)),
        (newest, newest + 1),
    ]


@pytest.mark.spark
def test_on_spark_a_view_is_built_again(shop: Path, spark: Any) -> None:
    damage(shop, "n")
    with pytest.raises(UserError, match="S003"), ev.open(str(shop), spark=spark) as db:
        db.read("n").rows()
    assert ev.repair(str(shop), spark=spark).rebuilt == ("n",)
    with ev.open(str(shop), spark=spark, read_only=True) as db:
        assert {g: n for g, n, _ in db.read("n").rows()} == RIGHT
