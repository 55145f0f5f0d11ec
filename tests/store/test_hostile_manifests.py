"""A store may come from anybody: what its manifest says is refused with a remedy, or harmless.

Manifests are changed in their structure, with a checksum that is right again. Whoever wrote one
may leave rows out, which no reader can know; but nothing is read twice or outside the store, and
nothing fails in words of ours.
"""

from __future__ import annotations

import json
import os
import random
import struct
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

import everview as ev
from cases import check_each
from everview.errors import UserError
from everview.store.lock import WriterLock
from everview.store.manifest import FORMAT
from everview.store.manifest_codec import sealed
from everview.store.manifest_log import manifest_path
from everview.store.store import Store

ROWS = [(number, number % 3, f"value {number}") for number in range(2_500)]
MORE = [(number, number % 3, None) for number in range(9_000, 9_005)]
DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]
VALUES: list[Any] = [
    *(None, True, -1, 0, 1, 10**30, 1.5, "", "x", "\0", "../x", "/etc/passwd", [], {}),
    *(DEEP, [None], {"": None}, "segments/../../x.parquet", "a`\"'; DROP TABLE t --", "\ud800"),
    *("segments/t/../t/1.parquet", "s3://bucket/x.parquet", "changes/x.arrow", "segments/t/x.txt"),
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows in files of their own and in pieces, views over both."""
    at = tmp_path_factory.mktemp("hostile") / "shop"
    with ev.open(str(at), engine="duckdb") as db:
        db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, g INT NOT NULL, v STRING)")
        db.sql("CREATE VIEW n AS SELECT g, COUNT(*) AS n, MIN(v) AS least FROM t GROUP BY g")
        db.sql("CREATE VIEW pairs AS SELECT a.id, b.v FROM t a JOIN t b ON a.id = b.id")
        db.insert("t", ROWS)
        db.insert("t", MORE)
    return at


def newest(at: Path) -> Path:
    return at / manifest_path(Store.open_existing(at).epochs()[-1])


@pytest.fixture(scope="module", params=["a checkpoint", "a delta"])
def either(
    shop: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The store, its newest manifest whole or what differs from the one before."""
    at = tmp_path_factory.mktemp("either") / "shop"
    copytree(shop, at)
    if request.param == "a checkpoint":
        whole(at)
    return at


def whole(at: Path) -> Path:
    """Make the newest manifest a checkpoint, whose body says all."""
    path = newest(at)
    Store.open_existing(at).make_checkpoint(int(path.stem))
    return path


def body_of(path: Path) -> Any:
    return json.loads(path.read_bytes().splitlines()[-1])["body"]


def put(path: Path, body: Any, format_: int = FORMAT) -> None:
    """Write a manifest in the place of another, with the checksum that it should have."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    path.write_bytes(sealed(text, format_))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value: what holds it, and by which key."""
    found = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(found):
        yield value, key
        if isinstance(inner, dict | list):
            yield from places(inner)


def changed(body: Any, chance: random.Random) -> None:
    """One change of a manifest's structure."""
    every = list(places(body))
    holder, key = chance.choice(every)
    match chance.randrange(6):
        case 0:
            del holder[key]
        case 1:
            other, at = chance.choice(every)
            holder[key] = json.loads(json.dumps(other[at]))
        case 2 if isinstance(holder, list):
            holder.append(json.loads(json.dumps(holder[key])))
        case 3 if isinstance(holder, dict):
            holder[chance.choice(("", "t", "../x", str(key) + "x"))] = holder.pop(key)
        case 4 if type(holder[key]) is int:
            holder[key] += chance.choice((-1, 1, -(10**6), 10**12))
        case _:
            holder[key] = chance.choice(VALUES)


def test_no_change_of_a_manifest_is_anything_but_refused_or_a_manifest(
    either: Path, tmp_path: Path
) -> None:
    at = tmp_path / "shop"
    copytree(either, at)
    path, chance, refused = newest(at), random.Random(23), 0
    right, log = body_of(path), Store.open_existing(at).log
    before = log.read(int(path.stem) - 1)
    for _ in range(1_500):
        body = json.loads(json.dumps(right))
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            changed(body, chance)
        put(path, body)
        try:
            manifest = log.read(int(path.stem), before).manifest
        except UserError as problem:
            if problem.code != "S002":
                raise
            refused += 1
            continue
        named = [(f.path, f.start) for r in manifest.relations.values() for f in r.files]
        assert len(named) == len(set(named))
        for file in manifest.files:
            inside = os.path.normpath(at / file.path)
            assert inside.startswith(str(at) + os.sep)
    assert refused > 500


def used(at: Path) -> Counter[Any]:
    """All that a user does with a store; the rows of its table."""
    with ev.open(str(at), engine="duckdb", read_only=True) as db:
        rows = Counter(db.read("t").rows())
        for each in db.status():
            if each.kind != "state":
                db.read(each.name).rows()
                db.changes(each.name).rows()
        db.sql("SELECT g, COUNT(*) FROM t GROUP BY g").rows()
        db.history()
        db.audit()
    with ev.open(str(at), engine="duckdb") as db:
        db.insert("t", [(100_000, 1, "new")])
        db.retain(2, grace=0)
    return rows


@pytest.mark.parametrize("times", [40, pytest.param(600, marks=pytest.mark.slow)])
def test_whatever_a_manifest_says_nothing_fails_in_our_words(
    either: Path, tmp_path: Path, times: int
) -> None:
    chance, right, refused = random.Random(times), Counter([*ROWS, *MORE]), 0
    untouched = body_of(newest(either))
    for number in range(times):
        at = tmp_path / str(number)
        copytree(either, at)
        body = json.loads(json.dumps(untouched))
        changed(body, chance)
        put(newest(at), body)
        try:
            rows = used(at)
        except UserError as problem:
            assert problem.remedy  # noqa: PT017
            refused += 1
        else:
            assert rows <= right, body
    assert times / 4 < refused < times


TEXTS = {
    "no JSON": b"{",
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a huge number": b'{"epoch":' + b"9" * 10_000 + b"}",
    "no number": b'{"epoch":NaN}',
    "no text": b"\xff\xfe",
    "a list": b"[]",
    "nothing": b"null",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_is_no_manifest_is_damaged(shop: Path, tmp_path: Path, text: bytes) -> None:
    copytree(shop, tmp_path / "shop")
    put(newest(tmp_path / "shop"), text)
    with pytest.raises(UserError, match="S002") as caught:
        ev.open(str(tmp_path / "shop"), engine="duckdb", read_only=True)
    assert "epoch=" in caught.value.remedy


def test_an_unknown_format_asks_for_an_upgrade(shop: Path, tmp_path: Path) -> None:
    copytree(shop, tmp_path / "shop")
    path = newest(tmp_path / "shop")
    put(path, body_of(path), format_=FORMAT + 1)
    with pytest.raises(UserError, match=r"(?s)S001.*upgrade"):
        ev.open(str(tmp_path / "shop"), engine="duckdb")


def edited(name: str) -> Callable[[Any], Any]:
    return lambda body: body["relations"].pop(name)


def column_type(body: Any) -> None:
    body["catalog"]["tables"][0]["columns"][2][1] = "STRING) FROM x --"


def twice(body: Any) -> None:
    segments = body["relations"]["t"]["segments"]
    segments.append({**segments[0], "id": "another"})


def of_another(body: Any) -> None:
    relations = body["relations"]
    relations["n"]["segments"][0]["files"] = relations["t"]["segments"][0]["files"]


def outside(body: Any) -> None:
    body["relations"]["t"]["segments"][0]["files"][0]["path"] = "../other/segments/t/1.parquet"


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a table without rows": (edited("t"), "S013.*no rows of 't'"),
    "a view without rows": (edited("n"), "S013.*no rows of 'n'"),
    "a type that is SQL": (column_type, "S013.*type"),
    "a file named twice": (twice, "S002.*twice"),
    "a file of another relation": (of_another, "S002.*twice"),
    "a file outside the store": (outside, r"S002.*\.\./other"),
    "a state over tables without a name": (
        lambda body: body["catalog"].update(known={"views": {}, "states": {"s": [{}]}}),
        "S013",
    ),
    "no tables": (lambda body: body["catalog"].update(tables=7), "S013"),
    "another epoch": (lambda body: body.update(epoch=99, parent=98), "S002.*epoch 99"),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_refused_by_name(
    shop: Path, tmp_path: Path, change: Callable[[Any], Any], message: str
) -> None:
    copytree(shop, tmp_path / "shop")
    path = whole(tmp_path / "shop")
    body = body_of(path)
    change(body)
    put(path, body)
    for read_only in (True, False):
        with pytest.raises(UserError, match=message):
            ev.open(str(tmp_path / "shop"), engine="duckdb", read_only=read_only)


@pytest.fixture(scope="module")
def constrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with constraints, a table that was altered, and one with collections."""
    at = tmp_path_factory.mktemp("constrained") / "shop"
    with ev.open(str(at), engine="duckdb") as db:
        db.sql("""
            CREATE TABLE kind (id INT PRIMARY KEY, name VARCHAR(5), UNIQUE (name));
            CREATE TABLE item (id INT PRIMARY KEY, kind INT REFERENCES kind ON DELETE CASCADE,
                CONSTRAINT positive CHECK (id > 0));
            CREATE ASSERTION few CHECK ((SELECT COUNT(*) FROM item) <= 9);
            CREATE TABLE box (id INT PRIMARY KEY, things BAG<STRUCT<x: INT, y: STRING>>)
        """)
        db.insert("kind", [(1, "a")])
        db.sql("ALTER TABLE kind ADD COLUMN more STRING DEFAULT 'x'")
    whole(at)
    return at


def of_table(name: str, **told: Any) -> Callable[[Any], None]:
    def change(body: Any) -> None:
        [table] = (each for each in body["catalog"]["tables"] if each["name"] == name)
        table.update(told)

    return change


def of_constraint(kind: str, **told: Any) -> Callable[[Any], None]:
    def change(body: Any) -> None:
        [found] = (each for each in body["catalog"]["constraints"] if each["kind"] == kind)
        found.update(told)

    return change


def no_such_table(name: str) -> Callable[[Any], None]:
    def change(body: Any) -> None:
        tables = body["catalog"]["tables"]
        body["catalog"]["tables"] = [each for each in tables if each["name"] != name]

    return change


def damaged_fill(body: Any) -> None:
    """A default whose text would begin beyond the bytes that are there."""
    evolution = next(e["evolution"] for e in body["catalog"]["tables"] if e["name"] == "kind")
    [[number, fill]] = evolution["fills"]
    content = b64decode(fill)
    at = content.rindex(struct.pack("<ii", 0, 1))
    changed = content[:at] + struct.pack("<ii", 10**9, 1) + content[at + 8 :]
    evolution["fills"] = [[number, b64encode(changed).decode()]]


THINGS = [["id", "int"], ["things", "array<struct<x:int,y:string>>"]]
UNDECLARED: dict[str, Callable[[Any], None]] = {
    "a key that names a column twice": of_table("kind", key=["id", "id"]),
    "a length of a number": of_table("kind", lengths=[["id", 5]]),
    "a length of nothing": of_table("kind", lengths=[["name", 0]]),
    "a default that is no value": damaged_fill,
    "a foreign key of another number of columns": of_constraint(
        "foreign key", references=["kind", ["id", "id"], "cascade"]
    ),
    "a foreign key of no column": of_constraint("foreign key", columns=["nope"]),
    "a foreign key to no key": of_constraint("foreign key", references=["box", ["nope"], ""]),
    "a check of no column": of_constraint("check", condition="nope > 1"),
    "an assertion without a text": of_constraint("assertion", condition=""),
    "an assertion of two texts": of_constraint("assertion", condition="1 = 1; 2 = 2"),
    "collections without their table": no_such_table("box.things"),
    "a table of collections without them": no_such_table("box"),
    "a collection of another table": of_table("box.things", inside="kind"),
    "a collection inside a list": of_table("box.things", inside=["box"]),
    "a collection with other columns": of_table("box.things", columns=[["box_id", "int"]]),
    "a collection that is none": of_table(
        "box", collections={"columns": THINGS, "paths": ["id", "things"]}
    ),
    "a collection that is not there": of_table(
        "box", collections={"columns": THINGS, "paths": ["things", "others"]}
    ),
}


def test_what_no_declaration_makes_is_refused(constrained: Path, tmp_path: Path) -> None:
    path = newest(constrained)
    right = body_of(path)

    def check(name: str) -> None:
        at = tmp_path / name.replace(" ", "-")
        copytree(constrained, at)
        body = json.loads(json.dumps(right))
        UNDECLARED[name](body)
        put(newest(at), body)
        with pytest.raises(UserError, match="S013"):
            ev.open(str(at), engine="duckdb", read_only=True)

    with ev.open(str(constrained), engine="duckdb", read_only=True) as db:
        assert db.audit().ok
    check_each(UNDECLARED, check)


def refers_to(epoch: int) -> Callable[[Any], Any]:
    return lambda body: body.update(checkpoint=epoch)


def added_again(body: Any) -> None:
    body["relations"]["t"]["added"] *= 2


def added_of_before(body: Any) -> None:
    body["relations"]["t"]["added"][0]["files"] = body["relations"]["n"]["added"][0]["files"]


def removed(body: Any) -> None:
    body["relations"]["t"]["removed"] = ["0000000001-00ff00ff00ff00ff"]


def unknown(body: Any) -> None:
    body["relations"]["x"] = {"added": body["relations"]["t"]["added"]}


CONTRADICTIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "its own checkpoint": (refers_to(5), "S002.*not before it"),
    "a younger checkpoint": (refers_to(99), "S002.*not before it"),
    "a checkpoint that is a delta": (refers_to(4), "S002.*0005.*epoch 4, which is no checkpoint"),
    "a file added twice": (added_again, "S002.*twice"),
    "a file of another relation": (added_of_before, "S002.*twice"),
    "a segment that is not there": (removed, "S002.*not there"),
    "a relation that is not there": (unknown, "S002.*'x', which is not there"),
    "a relation dropped that is not there": (
        lambda body: body.update(dropped=["x"]),
        "S002.*'x', which is not there",
    ),
    "another epoch": (lambda body: body.update(epoch=4), "S002.*epoch 4"),
    "a feed that was not added": (
        lambda body: body["relations"]["t"].update(feed=["x"]),
        "S002.*KeyError",
    ),
    "a note that was not there": (
        lambda body: body.update(same_notes=[["x", "y"]]),
        "S002.*note before",
    ),
}


@pytest.mark.parametrize(("change", "message"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_delta_that_contradicts_the_epoch_before_is_refused(
    shop: Path, tmp_path: Path, change: Callable[[Any], Any], message: str
) -> None:
    copytree(shop, tmp_path / "shop")
    path = newest(tmp_path / "shop")
    assert int(path.stem) == 5
    body = body_of(path)
    change(body)
    put(path, body)
    with pytest.raises(UserError, match=message) as caught:
        ev.open(str(tmp_path / "shop"), engine="duckdb")
    assert "epoch=4" in caught.value.remedy
    (found,) = ev.verify(str(tmp_path / "shop")).damaged
    assert (found.path, found.epochs) == (manifest_path(5), (5,))


def test_a_checkpoint_that_is_missing_is_named(shop: Path, tmp_path: Path) -> None:
    copytree(shop, tmp_path / "shop")
    (tmp_path / "shop" / manifest_path(0)).unlink()
    with pytest.raises(UserError, match=r"S002.*0000\.json.*missing"):
        ev.open(str(tmp_path / "shop"), engine="duckdb")


def linked(at: Path, name: str) -> Path:
    """Move a part of a store elsewhere, and leave a link to it."""
    aside = at.parent / "aside" / name
    aside.parent.mkdir(parents=True, exist_ok=True)
    (at / name).rename(aside)
    (at / name).symlink_to(aside)
    return aside


@pytest.mark.parametrize("name", ["segments", "segments/t", "changes", "manifests"])
def test_no_folder_of_a_store_is_a_link(shop: Path, tmp_path: Path, name: str) -> None:
    copytree(shop, tmp_path / "shop")
    aside = linked(tmp_path / "shop", name)
    before = sorted(aside.rglob("*"))
    with (
        pytest.raises(UserError, match="S012"),
        ev.open(str(tmp_path / "shop"), engine="duckdb") as db,
    ):
        db.insert("t", MORE[:1])
    with (
        pytest.raises(UserError, match=r"S0(12|03)"),
        ev.open(str(tmp_path / "shop"), engine="duckdb", read_only=True) as db,
    ):
        db.read("t").rows()
    assert sorted(aside.rglob("*")) == before


def test_a_file_behind_a_link_is_not_read(shop: Path, tmp_path: Path) -> None:
    copytree(shop, tmp_path / "shop")
    store = Store.open_existing(tmp_path / "shop")
    file = next(f for f in store.latest().relations["t"].files if f.start is None)
    linked(tmp_path / "shop", file.path)
    with pytest.raises(UserError, match=r"S012"):
        store.read_files([file])
    with pytest.raises(UserError, match=r"S012"):
        store.require_sound([file], pages=True)
    assert "link" in store.verify(store.latest())[file.path]


def test_retention_follows_no_link(shop: Path, tmp_path: Path) -> None:
    at = tmp_path / "shop"
    copytree(shop, at)
    with ev.open(str(at), engine="duckdb") as db:
        aside = tmp_path / "aside"
        aside.mkdir()
        theirs = [aside / name for name in ("0000000001-00ff00ff00ff00ff.parquet", "notes.txt")]
        for each in theirs:
            each.write_text("theirs")
        (at / "segments/t/0000000001-11ff00ff00ff00ff").symlink_to(aside)
        (at / "segments/t/0000000001-22ff00ff00ff00ff.parquet").symlink_to(theirs[0])
        (at / "manifests/.no number.tmp").write_text("")
        db.retain(1, grace=0)
        assert all(each.read_text() == "theirs" for each in theirs)
        (at / "segments/other").symlink_to(aside)
        with pytest.raises(UserError, match="S012"):
            db.retain(1, grace=0)
    assert all(each.read_text() == "theirs" for each in theirs)


def test_the_lock_follows_no_link(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    (tmp_path / "lock").symlink_to(theirs)
    with pytest.raises(UserError, match="S012"):
        WriterLock(str(tmp_path / "lock"), "shop")
    assert theirs.read_text() == "theirs"
    (tmp_path / "lock").unlink()
    os.mkfifo(tmp_path / "lock")
    with pytest.raises(UserError, match="S005"):
        WriterLock(str(tmp_path / "lock"), "shop")
