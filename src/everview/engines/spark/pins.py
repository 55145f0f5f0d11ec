"""Pins frames: rows computed once and kept on executors, so that no lineage grows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark import actions
from everview.engines.spark.relations import weighted_ddl
from everview.expr.types import Schema
from everview.store.store import Store


class Pins(Protocol):
    """Keeps frames as they are now, on executors."""

    def pin(self, frame: DataFrame, schema: Schema) -> Pinned:
        """Compute a frame once; how many rows it has is counted on the way."""

    def frame(self, pinned: list[Pinned], schema: Schema) -> DataFrame:
        """All rows of some pinned frames, of which there is one at least."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """Rows on executors: in a folder, or a frame without lineage."""

    rows: int
    path: str = ""
    checkpoint: DataFrame | None = None


@dataclass(slots=True)
class PinnedFiles:
    """Pins frames as Parquet files below one folder of a store."""

    session: SparkSession
    store: Store
    folder: str
    _count: int = 0

    def pin(self, frame: DataFrame, schema: Schema) -> Pinned:
        """Write a frame."""
        self._count += 1
        path = self.store.absolute(f"{self.folder}/{self._count}")
        return Pinned(actions.write_sorted(frame, path, ()), path)

    def frame(self, pinned: list[Pinned], schema: Schema) -> DataFrame:
        """One scan of all folders."""
        paths = [each.path for each in pinned]
        return self.session.read.schema(weighted_ddl(schema)).parquet(*paths)


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Pins frames in the memory of executors, until nobody refers to them."""

    def pin(self, frame: DataFrame, schema: Schema) -> Pinned:
        """Checkpoint a frame."""
        checkpoint, rows = actions.checkpointed(frame)
        return Pinned(rows, checkpoint=checkpoint)

    def frame(self, pinned: list[Pinned], schema: Schema) -> DataFrame:
        """The union of all checkpoints."""
        frames = [each.checkpoint for each in pinned if each.checkpoint is not None]
        return reduce(DataFrame.unionByName, frames)


@contextmanager
def scratch_folder(store: Store, epoch: int) -> Iterator[str]:
    """A fresh folder of a store that no manifest names, for the time of the block.

    Retention removes what a crash leaves of it, once the epoch is there.
    """
    path = store.segment_directory("loop iterations", epoch)
    try:
        yield path
    finally:
        if store.folder.exists(path):
            store.folder.remove(path)
