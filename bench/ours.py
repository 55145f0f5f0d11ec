"""The tables in a store, views over them, and what one transaction costs there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow.parquet as pq

import everview as ev
from bench.compare_answers import Row
from bench.refresh import CHANGED, MEMORY, Refresh
from bench.tables import KEYS, declaration
from everview.database.commit import install
from everview.database.compaction import compact_relations
from everview.database.database import Database
from everview.database.ddl import CatalogChange
from everview.expr.types import WEIGHT
from everview.runtime.cache.sorted_run import PackedRun
from everview.runtime.protocol import Snapshot
from everview.store.compaction_policy import Policy
from everview.store.manifest import Manifest, Segment
from everview.store.segments import (
    KEYED_ROW_GROUP_ROWS,
    NewSegment,
    adopt,
    folder_of,
    fresh_id,
)
from everview.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATAFRAME_MIN_ROWS = 500_000
"""A table of more rows is given to Spark as a DataFrame."""
FOLD_CHANGES = Policy(changes=0, least_rows=sys.maxsize, growth=float("inf"))
"""Fold all changes of a relation into one; its base stays."""
ADOPTED_MIN_ROWS = 20_000_000
"""With more lines, the tables are not inserted: files of theirs are written and taken over."""
PAGE = 4096
ROWS_PER_FILE = 8_000_000
"""About how many rows a file has."""


@dataclass(frozen=True)
class Cost:
    """What one transaction took, compaction included when it was due."""

    ms: float
    rows_changed: int
    rows_fetched: int
    jobs: int
    bytes_written: int
    phases: Mapping[str, float]
    """Milliseconds by kind of work, as the store's own history tells them."""


@dataclass(frozen=True)
class Committed:
    """A transaction that was timed, and the epochs before and after it."""

    ms: float
    jobs: int
    tables: tuple[str, ...]
    before: Manifest
    after: Manifest


class Ours:
    """A store with all tables and some views, and the engine that keeps it."""

    def __init__(
        self,
        folder: Path,
        engine: str,
        session: SparkSession | None,
        memory: int | str | None = None,
    ) -> None:
        self._session = session
        self.db: Database = _opened(folder, engine, session, memory)

    def load(self, tables: Path) -> None:
        """Declare and fill the tables."""
        self.db.sql(";".join(declaration(name, tables / f"{name}.parquet") for name in KEYS))
        if _rows(tables / "lineitem.parquet") > ADOPTED_MIN_ROWS:
            stored, store = self.db.catalog.stored(), self.db.store
            taken = {n: _taken_over(store, n, tables, stored[n].sort) for n in KEYS}
            handle = self.db.handle
            change = CatalogChange(self.db.catalog, taken)
            handle.exclusively(lambda: install(handle, change))
            return
        for name in KEYS:
            self.db.insert(name, self._rows(tables / f"{name}.parquet"))

    def create(self, views: Mapping[str, str], policy: str | None = None) -> None:
        """Declare views over what there is, all together; without a policy one is chosen."""
        under = "" if policy is None else f"WITH (policy = '{policy}') "
        declared = (f"{name} {under}AS {text}" for name, text in views.items())
        self.db.sql(";".join(f"CREATE MATERIALIZED VIEW {each}" for each in declared))

    def apply(self, refresh: Refresh) -> Cost:
        """Commit one transaction, and tell its cost."""
        return self.cost(self.commit(refresh))

    def commit(self, refresh: Refresh) -> Committed:
        """Commit one transaction; what it cost is told later, so that the next can follow."""
        before, jobs = self.db.store.latest(), self.jobs
        began = perf_counter()
        self._commit(refresh)
        taken = perf_counter() - began
        tables = tuple(refresh.gone)
        return Committed(1000 * taken, self.jobs - jobs, tables, before, self.db.store.latest())

    def cost(self, done: Committed) -> Cost:
        """What a transaction took; the epochs that it made must still be there."""
        before, after = done.before, done.after
        note, *later = (self._note(epoch) for epoch in range(before.epoch + 1, after.epoch + 1))
        compaction = sum(each["milliseconds"] for each in later)
        return Cost(
            ms=done.ms,
            rows_changed=sum(note["written"][name] for name in done.tables),
            rows_fetched=sum(note["fetched"].values()),
            jobs=done.jobs,
            bytes_written=_bytes_added(before, after),
            phases=note["phases"] | ({"compaction": compaction} if later else {}),
        )

    def touch(self) -> None:
        """Look at all that is held in memory, as an evaluation looks at all of its tables.

        What is still being loaded is waited for. The host of a virtual machine may have taken back
        what nobody has looked at for a minute.
        """
        engine: Any = self.db.engine
        engine.local.wait()
        for run in (run for held in engine.local.cache._held.values() for run in held.runs):
            columns = (chunk for column in run.rows.columns for chunk in column.chunks)
            parts = [buffer for chunk in columns for buffer in chunk.buffers() if buffer]
            if isinstance(run, PackedRun):
                parts.append(run.packed.records)
            for part in parts:
                np.frombuffer(part, np.uint8)[::PAGE].max(initial=0)

    def put_back(self, applied: Iterable[Refresh]) -> None:
        """Drop all views, undo transactions, and let go of what neither needs any more.

        The tables are in the files that they were in, and in memory are those that change. What
        was added to those in memory makes nothing, so it is dropped unread.
        """
        dropped = ";".join(f"DROP VIEW {name}" for name in self.db.catalog.views)
        if dropped:
            self.db.sql(dropped)
        for refresh in applied:
            self._commit(refresh.inverse)
        compact_relations(self.db.handle, CHANGED, FOLD_CHANGES)
        stored, latest = self.db.catalog.stored(), self.db.store.latest()
        changing = {name: stored[name] for name in CHANGED}
        self.db.engine.local.on_compacted(Snapshot(self.db.store, latest, changing), latest)
        engine: Any = self.db.engine
        for name, held in tuple(engine.local.cache._held.items()):
            assert len(latest.relations[name].segments) == 1, f"{name} has changes"
            engine.local.cache._held[name] = replace(held, later=())
        self.db.retain(1, grace=0)

    def _commit(self, refresh: Refresh) -> None:
        with self.db.transaction() as tx:
            for name, rows in refresh.gone.items():
                tx.delete(name, rows)
            for name, rows in refresh.come.items():
                tx.insert(name, rows)

    @property
    def rows(self) -> int:
        """How many rows the tables have that transactions change."""
        return sum(each.rows for each in self.db.status() if each.name in CHANGED)

    def state_bytes(self) -> int:
        """What is stored beside the tables: views, and states for them."""
        return sum(each.bytes for each in self.db.status() if each.kind != "table")

    def policy(self, view: str) -> str:
        """The policy of a view, without the reason for it."""
        return next(e.policy for e in self.db.status() if e.name == view).split()[0]

    def answer(self, view: str) -> list[Row]:
        """The rows of a view."""
        return self.db.read(view).rows()

    def close(self) -> None:
        """Release the store; Spark stays."""
        self.db.close()

    def _note(self, epoch: int) -> Any:
        return self.db.store.read(epoch).note

    def _rows(self, file: Path) -> Any:
        """A table as a user of the engine would hand it over."""
        if self._session is not None and _rows(file) > DATAFRAME_MIN_ROWS:
            return self._session.read.parquet(str(file))
        return pq.read_table(file)

    @property
    def jobs(self) -> int:
        """How many jobs Spark has begun."""
        if self._session is None:
            return 0
        return int(self._session.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def _opened(
    folder: Path, engine: str, session: SparkSession | None, memory: int | str | None
) -> Database:
    """The store in a folder, with a bound for what the driver holds; None for the default."""
    return ev.open(str(folder), engine=engine, spark=session, memory=memory)


def size_in_bytes(size: int | str) -> int:
    """A size as a number: `"1GB"`, `"512MB"`, or bytes."""
    text = str(size).upper()
    for unit, factor in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if text.endswith(unit):
            return int(float(text.removesuffix(unit)) * factor)
    return int(text)


def template(
    data: Path, tables: Path, engine: str, session: SparkSession | None, *, fresh: bool
) -> Path:
    """A store with all tables, loaded once for each engine and scale unless `fresh`."""
    kept = data / f"store-{engine}-{tables.name}"
    if fresh:
        shutil.rmtree(kept, ignore_errors=True)
    if not kept.exists():
        half = kept.with_name(f"{kept.name}.half")
        shutil.rmtree(half, ignore_errors=True)
        ours = Ours(half, engine, session)
        ours.load(tables)
        ours.close()
        half.rename(kept)
    return kept


def _taken_over(store: Store, name: str, tables: Path, sort: tuple[str, ...]) -> Segment:
    """Files that DuckDB writes, each with a range of keys, as the base of a table.

    Their row groups are as large as those that a store writes itself.
    """
    epoch, source, key = store.latest().epoch + 1, tables / f"{name}.parquet", sort[0]
    directory = f"{folder_of(name)}/{fresh_id(epoch)}"
    store.folder.make_folder(directory)
    with duckdb.connect(config={"memory_limit": MEMORY}) as connection:
        found = connection.execute(f"SELECT min({key}), max({key}) FROM '{source}'").fetchall()
        low, high = found[0]
        width = (high - low) // ceil(_rows(source) / ROWS_PER_FILE) + 1
        for first in range(low, high + 1, width):
            rows = (
                f"SELECT *, CAST(1 AS BIGINT) AS {WEIGHT} FROM '{source}' "
                f"WHERE {key} >= {first} AND {key} < {first + width} ORDER BY {', '.join(sort)}"
            )
            into = store.absolute(f"{directory}/{first - low:012}.parquet")
            sizes = f"ROW_GROUP_SIZE {KEYED_ROW_GROUP_ROWS}"
            connection.execute(f"COPY ({rows}) TO '{into}' (FORMAT parquet, {sizes})")
    return adopt(store.folder, NewSegment(name, epoch, sort, "base"), directory)


def _rows(file: Path) -> int:
    return int(pq.read_metadata(file).num_rows)


def copied(store: Path, into: Path) -> Path:
    """A store that shares its files, which nobody changes, with another."""
    shutil.copytree(store, into, copy_function=os.link, ignore=shutil.ignore_patterns("lock"))
    return into


def _bytes_added(before: Manifest, after: Manifest) -> int:
    known = {file.path for file in before.files}
    return _size(file for file in after.files if file.path not in known)


def _size(files: Iterable[Any]) -> int:
    return sum(file.bytes for file in files)
