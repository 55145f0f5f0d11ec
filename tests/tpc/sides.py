"""A benchmark's tables and queries twice: as a store with views, and as plain tables beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from bench.compare_answers import Row, unequal

from everview.database.database import Database

Keys = Mapping[str, tuple[str, ...]]

PLAIN = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
}
UNCOMPILED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For a handful of rows, compiling code costs more than running it."""
FEW = 5000
TYPES = {"int64": "BIGINT", "int32": "INT", "date32[day]": "DATE", "double": "DOUBLE"}


@dataclass
class Change:
    """What a transaction takes from tables and gives to them; an update does both."""

    gone: dict[str, pa.Table] = field(default_factory=dict)
    come: dict[str, pa.Table] = field(default_factory=dict)


def queries(folder: str) -> dict[str, str]:
    """The texts of a folder beside this file, by name."""
    files = sorted((Path(__file__).parent / folder).glob("*.sql"))
    return {file.stem: file.read_text() for file in files}


class Plain:
    """The tables in a DuckDB of their own, changed by plain statements."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        spark_order = "nulls_first_on_asc_last_on_desc"
        self._connection = duckdb.connect(config={"default_null_order": spark_order})
        self.names = tuple(tables)
        for name, rows in tables.items():
            self._connection.register("given", rows)
            self._connection.execute(f"CREATE TABLE {name} AS FROM given")

    def apply(self, change: Change) -> None:
        """Change the tables: each row that goes is taken away once."""
        for name, rows in change.gone.items():
            self._connection.register("given", rows)
            self._connection.execute(
                f"CREATE OR REPLACE TABLE {name} AS FROM {name} EXCEPT ALL FROM given"
            )
        for name, rows in change.come.items():
            self._connection.register("given", rows)
            self._connection.execute(f"INSERT INTO {name} FROM given")

    def table(self, name: str) -> pa.Table:
        """A table as it is now."""
        return self.arrow(f"FROM {name}")

    def arrow(self, sql: str) -> pa.Table:
        """The answer of a query."""
        return self._connection.sql(sql).to_arrow_table()

    def answers(self, texts: Mapping[str, str]) -> dict[str, list[Row]]:
        """What DuckDB says to the texts as they are written."""
        return {name: self._connection.sql(text).fetchall() for name, text in texts.items()}

    def answers_of_spark(self, session: Any, texts: Mapping[str, str]) -> dict[str, list[Row]]:
        """What Spark says to the texts over these tables."""
        session = session.newSession()
        few = all(self.table(name).num_rows < FEW for name in self.names)
        for key, value in (PLAIN | (UNCOMPILED if few else {})).items():
            session.conf.set(key, value)
        with TemporaryDirectory() as folder:
            for name in self.names:
                file = f"{folder}/{name}.parquet"
                pq.write_table(self.table(name), file)
                session.read.parquet(file).createOrReplaceTempView(name)
            return {n: [tuple(r) for r in session.sql(t).collect()] for n, t in texts.items()}


class Kept:
    """The same tables in a store, and a view for each query."""

    def __init__(
        self, db: Database, tables: Mapping[str, pa.Table], keys: Keys, texts: Mapping[str, str]
    ) -> None:
        self.db = db
        self.texts = texts
        self.plain = Plain(tables)
        for name, rows in tables.items():
            columns = [f"{f.name} {_type(f.type)}" for f in rows.schema]
            if name in keys:
                columns.append(f"PRIMARY KEY ({', '.join(keys[name])})")
            db.sql(f"CREATE TABLE {name} ({', '.join(columns)})")
        with db.transaction() as tx:
            for name, rows in tables.items():
                tx.insert(name, rows)
        for name, text in texts.items():
            db.sql(f"CREATE MATERIALIZED VIEW {name} AS {text}")

    def apply(self, change: Change) -> None:
        """One transaction, on both sides."""
        with self.db.transaction() as tx:
            for name, rows in change.gone.items():
                tx.delete(name, rows)
            for name, rows in change.come.items():
                tx.insert(name, rows)
        self.plain.apply(change)

    def differences(self) -> dict[str, tuple[list[Row], list[Row]]]:
        """For every view that is not its query's answer: the rows it lacks, and its surplus."""
        if self.db.engine.name == "spark":
            expected = self.plain.answers_of_spark(self.db.engine.session, self.texts)
        else:
            expected = self.plain.answers(self.texts)
        both = {name: unequal(rows, self.db.read(name).rows()) for name, rows in expected.items()}
        return {name: found for name, found in both.items() if any(found)}


def _type(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    return TYPES.get(str(type_), "STRING")
