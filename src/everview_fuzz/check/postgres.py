"""A third opinion: what PostgreSQL answers to a text over the same rows."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from sqlglot import exp, parse_one

from everview.expr.dialect import DIALECT
from everview.expr.types import Schema, Type, decimal_parts
from everview.runtime.arrow_types import arrow_schema
from everview_fuzz.check.reference import Unanswered

PROGRAM_PATHS = (
    "/usr/lib/postgresql/*/bin/{}",
    "/usr/local/bin/{}",
    "/opt/homebrew/opt/postgresql*/bin/{}",
)
OTHER_USERS = ("postgres", "nobody")
"""PostgreSQL does not run as root; then it runs as one of these."""
TIMEOUT_SECONDS = 60
"""How long a start or an answer may take."""
TYPES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.date32(): "date",
    pa.string(): 'text COLLATE "C"',
    pa.timestamp("us"): "timestamp",
}


@lru_cache(maxsize=1)
def programs() -> Mapping[str, str]:
    """Where `initdb` and `postgres` are; empty where one of them is not installed."""
    found = {}
    for name in ("initdb", "postgres"):
        path = shutil.which(name) or next(_installed(name), None)
        if path is None:
            return {}
        found[name] = path
    return found


def _installed(name: str) -> Iterator[str]:
    for place in PROGRAM_PATHS:
        folder, _, rest = place.format(name).partition("*")
        if not rest:
            yield from (str(p) for p in (Path(folder),) if p.exists())
        elif Path(folder).parent.exists():
            pattern = f"{Path(folder).name}*{rest}"
            yield from (str(p) for p in sorted(Path(folder).parent.glob(pattern), reverse=True))


class Postgres:
    """A database of its own in a folder, read by a process for each question.

    It runs in PostgreSQL's mode for a single user: there is no server, no socket and no port, and
    the process ends with its input.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._user = folder, _user()
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._run(
            [programs()["initdb"], "-D", str(folder / "data"), "-E", "UTF8", "-N", "-A", "trust"]
        )

    def answer(self, query: str, schema: Schema, relations: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a query, with the names and types of `schema`."""
        target = self._folder / "answer.txt"
        target.unlink(missing_ok=True)
        lines = [line for name, rows in relations.items() for line in _table(name, rows)]
        names = ", ".join(f"c{number}" for number in range(len(schema)))
        lines.append(f"COPY (SELECT * FROM ({in_postgres(query)}) AS asked({names})) TO '{target}'")
        drops = [f"DROP TABLE IF EXISTS {_quoted(name)}" for name in relations]
        # A line is a statement here.
        script = "".join(f"{' '.join(line.splitlines())}\n" for line in (*drops, *lines))
        told = self._run(
            [programs()["postgres"], "--single", "-D", str(self._folder / "data"), "postgres"],
            script,
        )
        if not target.exists():
            errors = [line for line in told.splitlines() if "ERROR" in line]
            raise Unanswered(errors[-1].partition("ERROR:")[2].strip() if errors else "no answer")
        return _read(target.read_text(encoding="utf-8"), schema)

    def _run(self, command: Sequence[str], given: str = "") -> str:
        try:
            done = subprocess.run(
                command,
                input=given,
                user=self._user,
                cwd=self._folder,
                env={**os.environ, "LC_ALL": "C.UTF-8", "PGTZ": "UTC", "TZ": "UTC"},
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise Unanswered(str(problem)) from problem
        if done.returncode:
            raise Unanswered(done.stderr.strip()[-300:])
        return done.stderr


def _user() -> str | None:
    """The user to run as, where we are root."""
    if os.geteuid():
        return None
    for name in OTHER_USERS:
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise Unanswered("PostgreSQL does not run as root, and there is no other user")


@contextmanager
def third_opinion() -> Iterator[Postgres | None]:
    """PostgreSQL for as long as the block runs; nothing where it is not installed."""
    if not programs():
        yield None
        return
    with TemporaryDirectory(prefix="everview-postgres-", ignore_cleanup_errors=True) as folder:
        try:
            asked = Postgres(Path(folder))
        except Unanswered:
            yield None
            return
        yield asked


def in_postgres(query: str) -> str:
    """A query of Spark's dialect in PostgreSQL's.

    >>> in_postgres("SELECT `a` <=> 1 AS `x y` FROM t")
    'SELECT "a" IS NOT DISTINCT FROM 1 AS "x y" FROM t'
    """
    tree = parse_one(query, read=DIALECT)
    if not isinstance(tree, exp.Expr):
        raise Unanswered("the query cannot be written in PostgreSQL's dialect")
    return tree.sql(dialect="postgres", comments=False)


def _table(name: str, rows: pa.Table) -> Iterator[str]:
    columns = ", ".join(f"{_quoted(field.name)} {_type(field.type)}" for field in rows.schema)
    yield f"CREATE TABLE {_quoted(name)} ({columns})"
    values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    listed = [", ".join(map(_constant, row)) for row in values]
    if listed:
        yield f"INSERT INTO {_quoted(name)} VALUES {', '.join(f'({row})' for row in listed)}"


def _type(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"numeric({type_.precision},{type_.scale})"
    if type_ not in TYPES:
        raise Unanswered(f"no type of PostgreSQL's means {type_} here")
    return TYPES[type_]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _constant(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | Decimal():
            return str(value)
        case _:
            shown = str(value).replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
            return f"E'{shown}'"


def _read(text: str, schema: Schema) -> pa.Table:
    rows = [line.split("\t") for line in text.splitlines()]
    fields = list(arrow_schema(schema))[:-1]
    arrays = [
        pa.array([_value(row[place], schema[place].type) for row in rows], field.type)
        for place, field in enumerate(fields)
    ]
    return pa.table(arrays, names=[field.name for field in fields])


def _value(text: str, type_: Type) -> Any:
    if text == "\\N":
        return None
    parts = decimal_parts(type_)
    if parts:
        return Decimal(text).quantize(Decimal(1).scaleb(-parts[1]))
    match type_:
        case "boolean":
            return text == "t"
        case "date":
            return date.fromisoformat(text)
        case "timestamp_ntz":
            return datetime.fromisoformat(text)
        case "float" | "double":
            return float(text)
        case "string":
            return (
                text.encode().decode("unicode_escape").encode("latin-1").decode()
                if "\\" in text
                else text
            )
        case _:
            return int(Decimal(text))
