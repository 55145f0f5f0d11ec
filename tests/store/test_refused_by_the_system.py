"""What the operating system refuses is told with a remedy; store and handle go on after relief."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import everview as ev
from everview.cli.main import main
from everview.database.database import Database
from everview.errors import UserError
from everview.store import filesystem
from everview.store.errors import of_system

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY = [(number, number % 7, f"value {number}") for number in range(3_000)]
REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EMFILE, errno.EROFS, errno.EIO)
ROOT, SOMEBODY = os.getuid() == 0, 65_534


class Refusal:
    """Lets the k-th call of the operating system fail, and all after it until relief."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, number: int) -> None:
        self.calls, self._at, self._number, self._over = 0, at, number, False
        for name in ("open", "fsync", "link", "unlink"):
            monkeypatch.setattr(os, name, self._refusing(getattr(os, name)))
        monkeypatch.setattr(filesystem, "open", self._refusing(open), raising=False)

    def relieve(self) -> None:
        self._over = True

    def _refusing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def refusing(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls >= self._at and not self._over:
                raise OSError(self._number, os.strerror(self._number))
            return call(*args, **kwargs)

        return refusing


FIRST = [(number, number % 7, "old") for number in range(10_000, 10_020)]


def declare(db: Database) -> None:
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, g INT, v STRING)")
    db.sql("CREATE VIEW n AS SELECT g, COUNT(*) AS n, MIN(v) AS least FROM t GROUP BY g")
    db.sql("CREATE VIEW j AS SELECT a.id, b.n FROM t a JOIN n b ON a.g = b.g")
    db.insert("t", FIRST)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("refused") / "shop"
    with ev.open(str(at), engine="duckdb") as db:
        declare(db)
    return at


Step = tuple[Callable[[Database], Any], list[Any]]
STEPS: dict[str, Step] = {
    "few rows": (lambda db: db.insert("t", [(1, 1, "few")]), [*FIRST, (1, 1, "few")]),
    "many rows": (lambda db: db.insert("t", MANY), [*FIRST, *MANY]),
    "a deletion": (lambda db: db.delete("t", FIRST[:1]), FIRST[1:]),
    "a view": (lambda db: db.sql("CREATE VIEW m AS SELECT MAX(id) AS last FROM t"), FIRST),
    "compaction": (lambda db: db.compact(), FIRST),
    "retention": (lambda db: db.retain(2, grace=0), FIRST),
}


def rows(db: Database) -> list[Any]:
    return sorted(db.read("t").rows())


def must_be_whole(db: Database) -> None:
    assert db.audit().ok
    assert not db.store.verify(db.store.latest())


def refused_at(path: Path, at: int, number: int, step: Step) -> bool:
    """Let a call fail within a step; whether the step made so many calls."""
    run, after = step
    with ev.open(str(path), engine="duckdb") as db:
        epoch = db.epoch
        with pytest.MonkeyPatch.context() as monkeypatch:
            refusal = Refusal(monkeypatch, at, number)
            done = _done(lambda: run(db))
            refusal.relieve()
            reached = refusal.calls >= at
        committed = done or db.epoch > epoch
        assert rows(db) == sorted(after if committed else FIRST)
        must_be_whole(db)
        db.insert("t", [(77_777, 3, "after")])
        must_be_whole(db)
        known = rows(db)
    with ev.open(str(path), engine="duckdb") as db:
        assert rows(db) == known
        must_be_whole(db)
    return reached


def _done(run: Callable[[], Any]) -> bool:
    """Whether something is done; if not, it was refused as the system's matter."""
    try:
        run()
    except UserError as problem:
        if problem.code != "S010":
            raise
        return False
    return True


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_whatever_call_is_refused_the_store_is_whole(
    shop: Path, tmp_path: Path, step: Step
) -> None:
    at, reached = 0, True
    while reached:
        at += 1 if at < 4 else 5
        copytree(shop, tmp_path / str(at))
        reached = refused_at(tmp_path / str(at), at, REFUSALS[at % len(REFUSALS)], step)
    assert at > 1


def test_an_epoch_that_is_there_but_perhaps_not_on_disk_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ev.open(str(tmp_path / "shop"), engine="duckdb") as db:
        declare(db)
        linked = os.link

        def link(*args: Any, **kwargs: Any) -> None:
            linked(*args, **kwargs)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        with monkeypatch.context() as within:
            within.setattr(os, "link", link)
            with pytest.raises(UserError, match=r"S010.*is committed"):
                db.insert("t", MANY[:1])
        assert rows(db) == sorted([*FIRST, *MANY[:1]])
        must_be_whole(db)


def test_compaction_that_has_no_room_fails_no_transaction(tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "shop"), engine="duckdb") as db:
        declare(db)
        with pytest.MonkeyPatch.context() as without_room:

            def compact(*_: Any, **__: Any) -> None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            without_room.setattr("everview.database.compaction.fold_all", compact)
            for number in range(20):
                db.insert("t", [(number, 1, "x")])
        assert len(rows(db)) == 20 + len(FIRST)
        must_be_whole(db)


def test_what_engines_say_of_the_system_is_understood() -> None:
    spoken = {
        "IO Error: Could not write file '/tmp/x': No space left on device": "free some room",
        "java.io.IOException: No space left on device\n\tat java.base": "free some room",
        "java.io.FileNotFoundException: /shop (Too many open files)": "ulimit -n",
        "java.io.FileNotFoundException: /shop (Permission denied)": "right to read and write",
        "RuntimeException: Disk quota exceeded": "quota",
    }
    for words, remedy in spoken.items():
        found = of_system(RuntimeError(words), "shop")
        assert found is not None, words
        assert found.code == "S010"
        assert remedy in found.remedy
    assert of_system(RuntimeError("a bug"), "shop") is None
    assert of_system(OSError("Couldn't deserialize thrift"), "shop") is None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of few bytes, where one may be mounted."""
    at = tmp_path / "disk"
    at.mkdir()
    if (
        not ROOT
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(at)], capture_output=True
        ).returncode
    ):
        pytest.skip("no disk can be mounted here")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


def fill(at: Path) -> None:
    (at / "ballast").write_bytes(b"")
    with open(at / "ballast", "ab", buffering=0) as file:
        for size in (65_536, 4_096, 512):
            while True:
                try:
                    if file.write(b"x" * size) < size:
                        break
                except OSError:
                    break


def must_survive_a_full_disk(at: Path, db: Database) -> None:
    declare(db)
    for _ in range(2):
        fill(at)
        for step in (MANY, [(5_000, 1, "few")]):
            with pytest.raises(UserError, match=r"(?s)S010.*No space left.*free some room"):
                db.insert("t", step)
        assert rows(db) == sorted(FIRST)
        (at / "ballast").unlink()
    must_be_whole(db)
    db.insert("t", MANY[:10])
    must_be_whole(db)
    assert rows(db) == sorted([*FIRST, *MANY[:10]])


def test_a_full_disk_is_told_and_survived(small_disk: Path) -> None:
    with ev.open(str(small_disk / "shop"), engine="duckdb") as db:
        must_survive_a_full_disk(small_disk, db)


@pytest.mark.spark
def test_on_spark_a_full_disk_is_told_and_survived(small_disk: Path, spark: SparkSession) -> None:
    with ev.open(str(small_disk / "shop"), spark=spark) as db:
        db.sql("CREATE TABLE t (id BIGINT, g INT, v STRING)")
        db.insert("t", FIRST)
        fill(small_disk)
        frame = spark.range(20_000, 40_000).selectExpr("id", "1 AS g", "uuid() AS v")
        for given in (frame, MANY):
            with pytest.raises(UserError, match=r"(?s)S010.*No space left"):
                db.insert("t", given)
        assert rows(db) == FIRST
        (small_disk / "ballast").unlink()
        db.insert("t", MANY[:10])
        assert rows(db) == sorted([*FIRST, *MANY[:10]])


def command(at: Path, text: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """`everview sql` in a process of its own."""
    args = [sys.executable, "-c", "from everview.cli.main import main; main()"]
    return subprocess.run(
        [*args, "sql", str(at), "--engine", "duckdb", "-c", text],
        capture_output=True,
        text=True,
        timeout=60,
        **how,
    )


def limited(kind: int, to: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (to, to))


INSERT = "INSERT INTO t SELECT id + 100000, g, repeat(v, 400) FROM t"


def test_a_limit_on_the_size_of_files_ends_a_command_with_1(shop: Path, tmp_path: Path) -> None:
    copytree(shop, tmp_path / "shop")
    ended = command(tmp_path / "shop", INSERT, preexec_fn=limited(resource.RLIMIT_FSIZE, 4_096))
    assert (ended.returncode, "File too large" in ended.stderr) == (1, True), ended.stderr
    assert "bug" not in ended.stderr
    assert "ulimit -f" in ended.stderr
    with ev.open(str(tmp_path / "shop"), engine="duckdb") as db:
        assert rows(db) == FIRST
        must_be_whole(db)


def test_too_few_files_end_a_command_with_1(shop: Path, tmp_path: Path) -> None:
    copytree(shop, tmp_path / "shop")
    told = set()
    for most in range(6, 24, 3):
        limit = limited(resource.RLIMIT_NOFILE, most)
        ended = command(tmp_path / "shop", "INSERT INTO t VALUES (1, 1, 'x')", preexec_fn=limit)
        if "everview" in ended.stderr and ended.returncode:
            assert ended.returncode == 1, ended.stderr
            told.add("ulimit -n" in ended.stderr)
        if not ended.returncode:
            break
    assert False not in told
    with ev.open(str(tmp_path / "shop"), engine="duckdb") as db:
        must_be_whole(db)


@contextmanager
def as_somebody() -> Iterator[None]:
    """Without root's rights; other users have none to lose."""
    if not ROOT:
        yield
        return
    os.seteuid(SOMEBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_right_that_was_lost_ends_a_command_with_1(shop: Path) -> None:
    with TemporaryDirectory(dir="/tmp") as folder:
        at = Path(folder) / "shop"
        copytree(shop, at)
        os.chmod(folder, 0o755)
        if ROOT:
            for each in [at, *at.rglob("*")]:
                os.chown(each, SOMEBODY, SOMEBODY)
        run, args = CliRunner(), ["sql", str(at), "--engine", "duckdb", "-c"]
        assert run.invoke(main, [*args, "SELECT 1"]).exit_code == 0  # all is imported now
        for forbidden in ("segments", "changes", "manifests", "lock"):
            mode = (at / forbidden).stat().st_mode
            os.chmod(at / forbidden, 0o000)
            with as_somebody():
                ended = run.invoke(main, [*args, INSERT])
            assert ended.exit_code == 1, ended.output
            assert "Permission denied" in ended.output
            os.chmod(at / forbidden, mode)
        with ev.open(str(at), engine="duckdb") as db:
            assert rows(db) == FIRST
            must_be_whole(db)
