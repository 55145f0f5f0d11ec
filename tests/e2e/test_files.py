"""COPY and files as rows: every format, every type, bad files, and what may be reached."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview.database.values import convert
from everview.runtime.files import spool
from everview.runtime.files.text_values import from_text

COLUMNS = (
    "id INT, big BIGINT, name STRING, cents DECIMAL(10,2), at TIMESTAMP, there TIMESTAMP_NTZ, "
    "yes BOOLEAN, x DOUBLE, y FLOAT, day DATE"
)
ROWS = [
    (
        *(1, 2**62, 'a,"b"\nc\\', Decimal("-1.50"), datetime(2024, 1, 1, 1, 2, 3, 456789, UTC)),
        *(datetime(1999, 12, 31, 23, 59, 59), True, 0.1, 0.5, date(2024, 2, 29)),
    ),
    (2, -5, "", Decimal("0.00"), None, None, False, float("inf"), 1e10, date(1, 1, 1)),
    (2, -5, "", Decimal("0.00"), None, None, False, float("inf"), 1e10, date(1, 1, 1)),
    (3, None, "null é😀 ' ; ", None, None, None, None, -0.0, None, None),
    (None,) * 10,
]
FORMATS = ("csv", "json", "parquet", "arrow")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


@pytest.fixture
def db(tmp_path, folder, open_db):
    with open_db(tmp_path / "s", allow=[f"files:{folder}"]) as db:
        db.sql(f"CREATE TABLE t ({COLUMNS})")
        db.sql("CREATE VIEW ids AS SELECT id, COUNT(*) AS n FROM t GROUP BY id")
        yield db


@pytest.fixture
def embedded(tmp_path, folder):
    with ev.open(tmp_path / "e", engine="duckdb", allow=[f"files:{folder}"]) as db:
        db.sql("CREATE TABLE t (id INT, name STRING, cents DECIMAL(10,2))")
        db.sql("CREATE VIEW ids AS SELECT id, COUNT(*) AS n FROM t GROUP BY id")
        yield db


def bag(result):
    return Counter(result.rows())


def test_what_is_copied_out_comes_back_in(db, folder):
    db.insert("t", ROWS)
    for format_ in FORMATS:
        path = folder / f"out.{format_}"
        assert db.sql(f"COPY (SELECT * FROM t) TO '{path}'").changed == len(ROWS)
        assert [each.name for each in folder.iterdir() if each.name.startswith(".")] == []
        db.sql(f"CREATE TABLE back_{format_} ({COLUMNS})")
        assert db.sql(f"COPY INTO back_{format_} FROM '{path}'").changed == len(ROWS)
        assert bag(db.read(f"back_{format_}")) == bag(db.read("t")), format_
        db.insert(f"back_{format_}", path)
        assert len(db.read(f"back_{format_}")) == 2 * len(ROWS)
    db.sql(f"COPY INTO t FROM '{folder}/out.json'")
    assert bag(db.read("ids")) == Counter({(1, 2): 1, (2, 4): 1, (3, 2): 1, (None, 2): 1})
    assert db.audit().ok


BAD_TEXTS = {
    "id": ["x", "1.5", " 1", "+1", "99999999999", ""],
    "big": ["99999999999999999999"],
    "cents": ["1.005", "1e3", "123456789.00"],
    "x": ["1e999", "1,5"],
    "y": ["1e39"],
    "day": ["2024-02-30", "2024-2-3"],
    "yes": ["1", "yes"],
    "at": ["2024-01-01", "2024-01-01 25:00:00", "2024-01-01 10:00", "2024-01-01 10:00:00.1234567"],
    "there": ["2024-01-01 10:00:00Z"],
}
GOOD_TEXTS = {
    "id": "007",
    "big": "-9223372036854775808",
    "cents": "-.5000",
    "x": "-1.5E-3",
    "y": "inf",
    "day": "2024-02-29",
    "yes": "TRUE",
    "at": "2024-01-01 10:00:00+05:30",
    "there": "2024-01-01T10:00:00.5",
}
GOOD = (
    *(7, -(2**63), None, Decimal("-0.50"), datetime(2024, 1, 1, 4, 30, tzinfo=UTC)),
    *(datetime(2024, 1, 1, 10, 0, 0, 500_000), True, -0.0015, float("inf"), date(2024, 2, 29)),
)


def test_every_engine_takes_and_refuses_the_same_texts(db, folder, engine):
    path = folder / "texts.csv"
    path.write_text(f"{','.join(GOOD_TEXTS)}\n{','.join(GOOD_TEXTS.values())}\n")
    db.sql(f"COPY INTO t FROM '{path}'")
    assert db.read("t").rows() == [GOOD]
    few = 1 if engine == "spark" else 9
    before = db.epoch
    for column, texts in BAD_TEXTS.items():
        for text in texts[-few:]:
            path.write_text(f'name,{column}\n,\na,"{text}"\n')
            with pytest.raises(ev.UserError) as caught:
                db.sql(f"COPY INTO t FROM '{path}'")
            assert caught.value.code == "F005"
            assert "texts.csv" in caught.value.problem
            assert text in caught.value.problem
            assert column in caught.value.problem
    assert db.epoch == before


numbers = st.from_regex(r"\A-?[0-9]{1,12}(\.[0-9]{0,4})?\Z") | st.decimals(
    allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9
).map(str)


@given(numbers | st.sampled_from(["", " ", "1e3", "0x1", "--1", ".", "-", "1_0", "１"]))
@settings(max_examples=150)
def test_a_text_that_is_taken_has_the_value_that_an_inserted_row_has(text):
    for type_ in ("int", "bigint", "decimal(10,2)", "decimal(9,0)", "double"):
        values, _ = from_text(pa.array([text]), type_)
        if values is not None:
            assert values[0].as_py() == convert(Decimal(text) if type_ == "double" else text, type_)


def test_columns_are_found_by_name_and_missing_ones_are_null(db, folder):
    (folder / "a.csv").write_text("NAME,id\nx,1\n")
    (folder / "a.json").write_text('{"id": 2}\n\n{"Name": "y", "cents": 1.50}\n')
    db.sql(f"COPY INTO t FROM '{folder}/a.csv'")
    db.sql(f"COPY INTO t FROM '{folder}/a.json' (FORMAT json)")
    (folder / "b.csv").write_text("3;z\n")
    db.sql(f"COPY INTO t (id, name) FROM '{folder}/b.csv' (HEADER false, DELIMITER ';')")
    found = db.sql("SELECT id, name, cents FROM t").rows()
    assert Counter(found) == Counter(
        [(1, "x", None), (2, None, None), (None, "y", Decimal("1.50")), (3, "z", None)]
    )


def test_a_csv_file_of_names_alone_has_no_rows(db, folder):
    for n, text in enumerate(("", "id", "id\n", "id,name\n\n\n")):
        (folder / f"{n}.csv").write_text(text)
        assert db.sql(f"COPY INTO t FROM '{folder}/{n}.csv'").changed == 0
    (folder / "9.csv").write_text("id\n7\n")
    assert db.sql(f"COPY INTO t FROM '{folder}/?.csv'").changed == 1


def test_a_day_beyond_the_calendar_is_named(tmp_path, folder):
    (folder / "day.csv").write_text("id,day\n1,2024-01-01\n2,0000-01-01\n")
    (folder / "zone.csv").write_text("id,at\n1,9999-12-31 23:00:00-05:00\n")
    with ev.open(tmp_path / "e", engine="duckdb") as db:
        db.sql("CREATE TABLE t (id INT, day DATE, at TIMESTAMP)")
        for name, problem in {"day": "row 2 has '0000-01-01' in day", "zone": "in at"}.items():
            with pytest.raises(ev.UserError, match=rf"{name}.csv: .*{problem}"):
                db.insert("t", folder / f"{name}.csv")


def test_folders_patterns_and_compressed_files_are_read(db, folder):
    (folder / "in").mkdir()
    for n in range(3):
        (folder / "in" / f"{n}.csv").write_text(f"id\n{n}\n")
    (folder / "in" / "_SUCCESS").write_text("")
    (folder / "in" / ".hidden.csv").write_text("nonsense")
    (folder / "in" / "_temporary.csv").write_text("nonsense")
    (folder / "in" / "3.csv.gz").write_bytes(gzip.compress(b"id\n3\n"))
    assert db.sql(f"COPY INTO t FROM '{folder}/in'").changed == 4
    assert db.sql(f"COPY INTO t FROM '{folder}/in/*.csv'").changed == 3
    with pytest.raises(ev.UserError, match="F004"):
        db.sql(f"COPY INTO t FROM '{folder}/in/_temporary.csv'")
    assert db.sql("SELECT COUNT(*) AS n FROM t WHERE id < 3").rows() == [(6,)]


def test_a_copy_belongs_to_the_transaction_around_it(embedded, folder):
    (folder / "a.csv").write_text("id\n1\n")
    embedded.sql(f"BEGIN; COPY INTO t FROM '{folder}/a.csv'")
    assert len(embedded.sql("SELECT * FROM t")) == 1
    embedded.sql("ROLLBACK")
    assert len(embedded.read("t")) == 0


def arrow_file(path):
    pa.feather.write_feather(pa.table({"id": [7]}), str(path))


def arrow_stream(path):
    table = pa.table({"id": [7]})
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("write", [arrow_file, arrow_stream])
def test_arrow_comes_as_a_file_or_a_stream(embedded, folder, write):
    write(folder / "a.arrow")
    embedded.insert("t", folder / "a.arrow")
    assert embedded.read("t").rows() == [(7, None, None)]


def batches(count=3):
    for n in range(count):
        yield pa.record_batch({"id": pa.array([n, n], pa.int64()), "name": ["a", None]})


def test_rows_come_as_batches_readers_and_lazy_frames(embedded, monkeypatch):
    monkeypatch.setattr(spool, "SPOOL_BYTES", 10)
    embedded.insert("t", batches())
    reader = pa.RecordBatchReader.from_batches(next(batches()).schema, batches())
    embedded.insert("t", reader)
    wanted = {(n, name, None): 2 for n in range(3) for name in ("a", None)}
    assert bag(embedded.read("t")) == Counter(wanted)
    with embedded.transaction() as tx:
        tx.delete("t", batches())
    assert len(embedded.read("t")) == 6
    assert bag(embedded.read("ids")) == Counter([(n, 2) for n in range(3)])
    embedded.insert("t", iter([]))
    polars = pytest.importorskip("polars")
    embedded.insert("t", polars.LazyFrame({"id": [9]}).filter(polars.col("id") > 1))
    assert (9, None, None) in embedded.read("t").rows()


def test_batches_with_something_else_between_them_are_refused(embedded):
    before = embedded.epoch
    with pytest.raises(ev.UserError, match="after batches of rows comes"):
        embedded.insert("t", [next(batches()), (1, "a", None)])
    with pytest.raises(ev.UserError, match="unknown column"):
        embedded.insert("t", [next(batches()), pa.record_batch({"nope": [1]})])
    assert embedded.epoch == before


BAD_FILES = {
    "ragged.csv": (b"id,name\n1,a\n2\n", "ragged.csv"),
    "unknown.csv": (b"id,nope\n1,2\n", "unknown column: nope"),
    "twice.csv": (b"id,ID\n1,2\n", "a column twice"),
    "number.csv": (b"id\n1\n2\nx\n", "row 3 has 'x' in id"),
    "digits.csv": (b"id,cents\n1,1.005\n", "row 1 has '1.005' in cents"),
    "bytes.csv": (b"id,name\n1,\xff\xfe\n", "bytes.csv"),
    "no.json": (b'{"id": 1}\n[1]\n', "line 2 is no JSON object"),
    "cut.json": (b'{"id": 1}\n{"id": \n', "line 2 is no JSON object"),
    "nested.json": (b'{"id": 1}\n{"name": {"a": 1}}\n', "line 2 has a list or an object in name"),
    "twice.json": (b'{"id": 1, "ID": 2}\n', "a name occurs twice"),
    "float.json": (b'{"id": 1.5}\n', "row 1 has '1.5' in id"),
    "key.json": (b'{"nope": 1}\n', "unknown column: nope"),
    "not.parquet": (b"PAR1 not", "not.parquet"),
    "empty.parquet": (b"", "empty.parquet"),
    "not.arrow": (b"hello hello hello", "not.arrow"),
    "cut.csv.gz": (gzip.compress(b"id\n1\n" * 9)[:-9], "cut.csv.gz"),
    "names.csv": (b'id,name""\n1,a\n', "names.csv"),
    "open.csv": (b'id,name\n1,"a""b\n2,c\n', "ends inside quotes"),
    "open.csv.gz": (gzip.compress(b'id,name\n1,a\n2,"'), "ends inside quotes"),
    "long.csv": (b"id,name\n1," + b"x" * 9_000_000 + b"\n", "a row is longer than 4 MB"),
}


def test_every_engine_names_the_file_that_it_cannot_read(db, folder):
    before = db.epoch
    for name in ("ragged.csv", "twice.csv", "bytes.csv", "cut.csv.gz", "no.json", "not.parquet"):
        (folder / name).write_bytes(BAD_FILES[name][0])
        with pytest.raises(ev.UserError, match="F005") as caught:
            db.sql(f"COPY INTO t FROM '{folder / name}'")
        assert name in caught.value.problem
    assert db.epoch == before


def test_each_csv_file_of_a_folder_has_its_columns_in_its_own_order(db, folder):
    (folder / "in").mkdir()
    for name, text in {"a": "id,name\n1,x\n", "b": "NAME,id\ny,2\n", "c": ""}.items():
        (folder / "in" / f"{name}.csv").write_text(text)
    assert db.sql(f"COPY INTO t FROM '{folder}/in'").changed == 2
    assert bag(db.sql("SELECT id, name FROM t")) == Counter([(1, "x"), (2, "y")])


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_named_and_nothing_changes(embedded, folder, name):
    content, problem = BAD_FILES[name]
    (folder / name).write_bytes(content)
    before = embedded.epoch
    for take in (
        lambda: embedded.sql(f"COPY INTO t FROM '{folder / name}'"),
        lambda: embedded.insert("t", folder / name),
    ):
        with pytest.raises(ev.UserError) as caught:
            take()
        assert problem in caught.value.problem
        assert name in caught.value.problem
    assert embedded.epoch == before
    assert len(embedded.read("t")) == 0


def test_quotes_that_are_closed_may_end_a_file(embedded, folder):
    values = ["", "a", 'a"', '""', "a\n", "\r\n", 'a"b\n"']
    for number, value in enumerate(values):
        for end in ("", "\n", "\r\n\r\n"):
            quoted = value.replace('"', '""')
            (folder / "one.csv").write_bytes(f'id,name\n{number},"{quoted}"{end}'.encode())
            embedded.sql(f"COPY INTO t FROM '{folder}/one.csv'")
    assert bag(embedded.sql("SELECT id, name FROM t")) == Counter([*enumerate(values)] * 3)


def test_lines_before_the_names_change_no_value(embedded, folder):
    """Arrow passes over empty lines, and what it has no type for it takes for a number."""
    embedded.sql("CREATE TABLE texts (name STRING, code STRING)")
    for number, begin in enumerate(("", "\n", "\r\n\r\n", '\n\n"name",')):
        path = folder / f"{number}.csv"
        end = "code\n007,1.10\n" if begin.endswith(",") else "name,code\n007,1.10\n"
        path.write_text(begin + end, newline="")
        embedded.sql(f"COPY INTO texts FROM '{path}'")
    assert embedded.read("texts").rows() == [("007", "1.10")] * 4
    (folder / "lines.csv").write_text("\n\n")
    assert embedded.sql(f"COPY INTO texts FROM '{folder}/lines.csv'").changed == 0


def test_damaged_buffers_of_an_arrow_file_end_no_process(embedded, folder):
    embedded.sql("CREATE TABLE lists (id INT, l ARRAY<INT>)")
    offsets = pa.array([0, 10**9, 3], pa.int32()).buffers()[1]  # only the last one is looked at
    bad = pa.Array.from_buffers(
        pa.list_(pa.int32()), 2, [None, offsets], children=[pa.array([1, 2, 3], pa.int32())]
    )
    rows = pa.table({"id": pa.array([1, 2], pa.int32()), "l": bad})
    for take in (
        lambda: embedded.insert("lists", rows),
        lambda: embedded.insert("lists", iter([rows, rows])),
        lambda: embedded.delete("lists", keys=rows),
        lambda: embedded.read("lists", epoch=rows),
    ):
        with pytest.raises(ev.UserError):
            take()


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_a_name_that_ends_with_gz_is_that_of_a_packed_file(db, folder, format_):
    db.insert("t", ROWS[1:2])
    path = folder / f"out.{format_}.gz"
    db.sql(f"COPY (SELECT id, name, day FROM t) TO '{path}'")
    files = [path] if path.is_file() else sorted(path.glob("part-*"))
    assert b"".join(gzip.decompress(each.read_bytes()) for each in files)
    db.sql(f"COPY INTO t FROM '{path}'")
    assert db.sql("SELECT id, name, day, COUNT(*) AS n FROM t GROUP BY ALL").rows() == [
        (*ROWS[1][:1], "", date(1, 1, 1), 2)
    ]


def test_digits_of_columns_are_not_lost(embedded, folder):
    pq.write_table(pa.table({"id": [1.5]}), folder / "a.parquet")
    with pytest.raises(ev.UserError, match=r"a\.parquet: t: the column id"):
        embedded.sql(f"COPY INTO t FROM '{folder}/a.parquet'")
    pq.write_table(pa.table({"id": [1], "cents": [1.0]}), folder / "b.parquet")
    with pytest.raises(ev.UserError, match="unknown column: cents"):
        embedded.sql(f"COPY INTO t (id) FROM '{folder}/b.parquet'")


BAD_STATEMENTS = [
    ("COPY INTO t FROM 'nowhere/a.csv'", "F003"),
    ("COPY INTO t FROM '{folder}/none.csv'", "F004"),
    ("COPY INTO t FROM '{folder}/../secret.csv'", "F003"),
    ("COPY INTO t FROM '{folder}x/a.csv'", "F003"),
    ("COPY INTO t FROM 's3://bucket/a.csv'", "F003"),
    ("COPY INTO t FROM '{folder}/link.csv'", "F003"),
    ("COPY INTO t FROM '{folder}/out/secret.csv'", "F003"),
    ("COPY INTO t FROM '{folder}/*.csv'", "F003"),
    ("COPY INTO t FROM '{folder}/a.txt'", "F001"),
    ("COPY INTO t FROM '{folder}/a.txt' (FORMAT xml)", "F001"),
    ("COPY INTO t FROM '{folder}/a.txt' (FORMAT csv, DELIMITER 'ab')", "F001"),
    ("COPY INTO t FROM '{folder}/a.txt' (FORMAT csv, HEADER maybe)", "F001"),
    ("COPY INTO t FROM '{folder}/a.txt' (FORMAT csv, FORMAT csv)", "Q003"),
    ("COPY INTO t FROM '{folder}/a.txt' (NOPE 1)", "Q003"),
    ("COPY INTO t FROM path", "Q003"),
    ("COPY INTO nope FROM '{folder}/a.txt' (FORMAT csv)", "C002"),
    ("COPY INTO ids FROM '{folder}/a.txt' (FORMAT csv)", "C004"),
    ("COPY INTO t (nope) FROM '{folder}/a.txt' (FORMAT csv)", "Q007"),
    ("COPY INTO t (id, ID) FROM '{folder}/a.txt' (FORMAT csv)", "Q007"),
    ("COPY (SELECT 1 AS a) TO '/tmp/everview-not-allowed.csv'", "F003"),
    ("COPY (SELECT 1 AS a) TO '{folder}/out/a.csv'", "F003"),
    ("COPY (SELECT 1 AS a) TO '{folder}/out/*.csv'", "F003"),
    ("COPY (SELECT 1 AS a) TO '{folder}/out/a?.csv'", "F003"),
    ("COPY (SELECT 1 AS a) TO '{folder}/a.parquet.gz'", "F001"),
    ("COPY (SELECT 1 AS a) TO '{folder}/a.txt' (FORMAT csv)", "F004"),
    ("COPY (SELECT 1 AS a) TO '{folder}/none/a.csv'", "F004"),
    ("COPY (SELECT 1 AS a) TO '{folder}/a'", "F001"),
    ("COPY (SELECT nope FROM t) TO '{folder}/a.csv'", "Q007"),
    ("COPY (SELECT CAST(NULL AS INT) AS a) TO '{folder}/a.csv'", "F002"),
    ("COPY (SELECT X'00' AS a, 1 AS b) TO '{folder}/a.csv'", "F002"),
    ("COPY (SELECT array(1) AS a) TO '{folder}/a.json'", "F002"),
    ("COPY nope TO '{folder}/a.csv'", "Q006"),
]


@pytest.mark.parametrize(("text", "code"), BAD_STATEMENTS)
def test_a_bad_copy_is_refused_and_leaves_no_file(embedded, folder, text, code):
    outside = folder.parent / "elsewhere"
    outside.mkdir()
    (outside / "secret.csv").write_text("id\n1\n")
    (folder.parent / "secret.csv").write_text("id\n1\n")
    (folder / "link.csv").symlink_to(outside / "secret.csv")
    (folder / "out").symlink_to(outside)
    (folder / "a.txt").write_text("id\n1\n")
    files = sorted(os.walk(folder.parent / "files"))
    before = embedded.epoch
    with pytest.raises(ev.UserError) as caught:
        embedded.sql(text.format(folder=folder))
    assert caught.value.code == code, caught.value.render()
    assert caught.value.remedy
    assert embedded.epoch == before
    assert sorted(os.walk(folder.parent / "files")) == files
    assert [each.name for each in outside.iterdir()] == ["secret.csv"]
    assert not Path("/tmp/everview-not-allowed.csv").exists()


def test_without_allow_no_statement_reaches_a_file(tmp_path):
    with ev.open(tmp_path / "s", engine="duckdb") as db:
        db.sql("CREATE TABLE t (id INT)")
        (tmp_path / "a.csv").write_text("id\n1\n")
        for text in (f"COPY INTO t FROM '{tmp_path}/a.csv'", f"COPY t TO '{tmp_path}/b.csv'"):
            with pytest.raises(ev.UserError, match="is not allowed"):
                db.sql(text)
    with (
        ev.open(tmp_path / "s", engine="duckdb", allow=[f"files:{tmp_path}"]) as db,
        pytest.raises(ev.UserError, match="lies inside the store"),
    ):
        db.sql(f"COPY t TO '{tmp_path}/s/x.csv'")


def test_a_copy_that_fails_half_way_leaves_no_file(embedded, folder):
    embedded.insert("t", [(n, None, None) for n in range(5)])
    for format_ in FORMATS:
        with pytest.raises(ev.UserError):
            embedded.sql(f"COPY (SELECT 1 / id AS a, id FROM t) TO '{folder}/a.{format_}'")
        assert list(folder.iterdir()) == []


def test_an_interrupted_write_leaves_no_file(embedded, folder, monkeypatch):
    from everview.runtime.files import writing

    def fails(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(writing._JsonWriter, "write_batch", fails)
    embedded.insert("t", [(1, None, None)])
    with pytest.raises(KeyboardInterrupt):
        embedded.sql(f"COPY t TO '{folder}/a.json'")
    assert list(folder.iterdir()) == []


def test_a_number_keeps_its_digits_in_json(embedded, folder):
    embedded.insert("t", [(1, "é", "12345678.90")])
    embedded.sql(f"COPY t TO '{folder}/a.json'")
    text = (folder / "a.json").read_text()
    assert text == '{"id": 1, "name": "é", "cents": 12345678.90}\n'
    assert json.loads(text)["id"] == 1


def test_progress_is_told(embedded, folder):
    (folder / "a.csv").write_text("id\n1\n")
    told: list[str] = []
    embedded.handle.on_progress = told.append
    embedded.sql(f"COPY INTO t FROM '{folder}/a.csv'; COPY t TO '{folder}/b.csv'")
    assert [each for each in told if "reading" in each and "1 rows" in each]
    assert [each for each in told if "writing" in each]
    assert told[-1] == ""


def test_a_file_larger_than_what_is_held_is_mapped(embedded, folder, monkeypatch):
    monkeypatch.setattr(spool, "SPOOL_BYTES", 1000)
    (folder / "a.csv").write_text("id,name\n" + "".join(f"{n},x{n}\n" for n in range(20_000)))
    assert embedded.sql(f"COPY INTO t FROM '{folder}/a.csv'").changed == 20_000
    assert embedded.sql("SELECT SUM(id) AS s FROM t").rows() == [(19_999 * 10_000,)]
