"""Files of sqllogictest: what is read, what is right, and that a wrong answer is reported."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from conformance.sqllogic_file import Hashed, MalformedError, Query, Statement, digest, parse

import everview as ev
from conformance import sqllogic
from everview.database.database import Database

FILES = sorted(Path(__file__).parent.glob("*.test"))
TABLE = """statement ok
CREATE TABLE t(a INTEGER, b TEXT)

statement ok
INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'y'), (4, NULL)
"""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as opened:
        yield opened


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_query_of_a_file_is_answered_as_recorded(path: Path, db: Database) -> None:
    records = sqllogic.read(path)
    result = sqllogic.run(records, db)
    assert (result.wrong, result.refused) == ([], [])
    answered = [r for r in records if isinstance(r, Query) or not r.ok]
    assert result.right == len(answered) > 4


@pytest.mark.spark
def test_a_file_is_answered_on_spark_too(tmp_path: Path, spark: object) -> None:
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        result = sqllogic.run(sqllogic.read(FILES[0]), db)
    assert (result.wrong, result.refused) == ([], [])


def test_a_wrong_value_is_reported_with_its_line(db: Database) -> None:
    text = TABLE + "\nquery IT rowsort\nSELECT a, b FROM t WHERE a > 2\n----\n3\ny\n4\nz\n"
    result = sqllogic.run(list(parse(text)), db)
    assert result.right == 0
    ((line, fault),) = result.wrong
    assert text.splitlines()[line - 1] == "query IT rowsort"
    assert fault == "missing [('4', 'z')], surplus [(4, None)]"


def test_a_row_too_few_and_a_row_too_many_are_reported(db: Database) -> None:
    text = TABLE + "\nquery T\nSELECT b FROM t\n----\nx\ny\nNULL\n"
    text += "\nquery T\nSELECT DISTINCT b FROM t\n----\nx\ny\ny\nNULL\n"
    result = sqllogic.run(list(parse(text)), db)
    assert [fault for _, fault in result.wrong] == [
        "missing [], surplus [('y',)]",
        "missing [('y',)], surplus []",
    ]


@pytest.mark.parametrize("sort", ["nosort", "rowsort", "valuesort"])
def test_a_wrong_hash_is_reported_and_the_right_one_is_not(sort: str, db: Database) -> None:
    rows = [("3", "y"), ("2", "y"), ("1", "x")]
    values = [value for row in (sorted(rows) if sort == "rowsort" else rows) for value in row]
    values = sorted(values) if sort == "valuesort" else values
    right = hashlib.md5("".join(f"{value}\n" for value in values).encode()).hexdigest()
    query = f"\nquery IT {sort}\nSELECT a, b FROM t WHERE a < 4 ORDER BY a DESC\n----\n"
    text = TABLE + "".join(
        f"{query}6 values hashing to {md5}\n" for md5 in (right, right[:-1] + "g", right[::-1])
    ).replace("g\n", "0\n" if right[-1] != "0" else "1\n")
    result = sqllogic.run(list(parse(text)), db)
    assert (result.right, len(result.wrong)) == (1, 2)


def test_a_statement_that_must_fail_and_does_not_is_wrong(db: Database) -> None:
    text = TABLE + "\nstatement error\nINSERT INTO t VALUES (5, 'z')\n"
    result = sqllogic.run(list(parse(text)), db)
    assert [fault for _, fault in result.wrong] == ["a statement that must fail was carried out"]


def test_what_everview_refuses_is_refused_and_not_wrong(db: Database) -> None:
    text = TABLE + "\nquery I\nSELECT random() FROM t\n----\n1\n"
    result = sqllogic.run(list(parse(text)), db)
    assert (result.right, result.wrong) == (0, [])
    assert len(result.refused) == 1


def test_a_view_that_forgets_a_row_is_found(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TABLE + "\nquery I\nSELECT a FROM t\n----\n1\n2\n3\n4\n"
    monkeypatch.setattr(Database, "insert", lambda *_: 0)
    result = sqllogic.run(list(parse(text)), db)
    assert len(result.wrong) == 1


def test_records_for_others_and_after_halt_are_skipped() -> None:
    text = """# a comment
onlyif mysql
statement ok
FIRST

skipif everview
statement ok
SECOND

skipif mysql
hash-threshold 3
statement error
THIRD

halt

statement ok
FOURTH
"""
    assert list(parse(text)) == [Statement(12, "THIRD", ok=False)]


def test_rows_and_values_are_read_alike() -> None:
    by_row, by_tab, by_value = (
        next(iter(parse(f"query IT\nSELECT 1\n----\n{lines}\n")))
        for lines in ("1 a\n2 b", "1\ta\n2\tb", "1\na\n2\nb")
    )
    assert by_row.expected == by_tab.expected == by_value.expected == (("1", "a"), ("2", "b"))


def test_a_hash_depends_on_every_value() -> None:
    query = Query(1, "", "IR", "rowsort", ())
    made = digest([(2, 0.5), (1, None)], query)
    assert made == Hashed(4, hashlib.md5(b"1\nNULL\n2\n0.500\n").hexdigest())
    assert digest([(2, 0.501), (1, None)], query) != made


@pytest.mark.parametrize("text", ["nonsense\n", "query II\nSELECT 1\n----\n1\n2\n3\n"])
def test_a_file_that_is_not_in_the_format_is_refused(text: str) -> None:
    with pytest.raises(MalformedError, match="line 1"):
        list(parse(text))
