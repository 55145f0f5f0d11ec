"""A store that version 0.1 wrote opens, is read at every epoch, and is written on.

`fixtures/make.py` wrote the stores: `duckdb` embedded, `spark` with files of executors. Their
manifests lie behind the rows of their epochs, each whole; `expected.json` says what 0.1 read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from click.testing import CliRunner

import everview as ev
from everview.cli.main import main
from everview.store.manifest import FORMAT
from everview.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from everview.database.database import Database

FIXTURES = Path(__file__).parent / "fixtures"
RELATIONS = ("customer", "orders", "item", "named", "per_customer", "ranked", "above")


def digests(db: Database) -> dict[str, dict[str, str]]:
    """What each relation held at each epoch, as one word each."""
    found: dict[str, dict[str, str]] = {}
    for epoch in db.store.epochs()[1:]:
        rows = {name: sorted(map(repr, db.read(name, epoch=epoch).rows())) for name in RELATIONS}
        found[str(epoch)] = {
            name: f"{len(each)} {blake2b(repr(each).encode(), digest_size=8).hexdigest()}"
            for name, each in rows.items()
        }
    return found


@pytest.fixture(params=["duckdb", "spark"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with ZipFile(FIXTURES / f"store-0.1-{request.param}.zip") as packed:
        packed.extractall(tmp_path / "shop")
    return tmp_path / "shop"


def write_on(db: Database, number: int) -> None:
    with db.transaction() as tx:
        tx.insert("orders", [(20_000 + number, 1 + number % 8, None, 7)])
        tx.insert("customer", [(100 + number, "later", 1)])
    db.sql(f"UPDATE orders SET price = price * 2 WHERE id = {20_000 + number}")
    db.sql(f"DELETE FROM customer WHERE id = {100 + number - 1}")


def use(at: Path, opened: Callable[..., Database]) -> None:
    """All that a user does with an old store."""
    expected = json.loads((FIXTURES / "expected.json").read_text())
    with opened(at, read_only=True) as db:
        assert digests(db) == expected
        assert db.audit().ok
        assert db.changes("orders", after=1).rows()
        assert len(db.history()) > 10
    last = max(map(int, expected))
    with opened(at) as db:
        for number in range(3):
            write_on(db, number)
        assert db.audit().ok
        db.compact()
        db.sql("CREATE MATERIALIZED VIEW added AS SELECT COUNT(*) AS n FROM orders")
        newest = db.read("named").rows()
    with opened(at) as db:
        assert {e: d for e, d in digests(db).items() if int(e) <= last} == expected
        assert db.audit().ok
        assert sorted(db.read("named").rows(), key=repr) == sorted(newest, key=repr)
    ended = CliRunner().invoke(main, ["verify", str(at)])
    assert ended.exit_code == 0, ended.output
    with opened(at) as db:
        db.retain(2, grace=0)
        write_on(db, 9)
        assert db.audit().ok


def test_a_store_of_version_0_1_is_used_on(old: Path) -> None:
    assert Store.open_existing(old).latest().format == 3
    use(old, lambda at, **how: ev.open(str(at), engine="duckdb", **how))
    assert Store.open_existing(old).latest().format == FORMAT


@pytest.mark.spark
def test_a_store_of_version_0_1_is_used_on_by_spark(old: Path, spark: SparkSession) -> None:
    use(old, lambda at, **how: ev.open(str(at), spark=spark, **how))
