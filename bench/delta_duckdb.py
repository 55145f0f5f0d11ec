"""The three views kept by hand in DuckDB: tables and views in memory, changes durable as files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from bench.handwritten import Handwritten
from bench.three_views import BY_HAND, with_segments
from bench.tpch import Change


class DeltaDuckDB:
    """One DuckDB connection; customers are joined to their orders once, as they never change."""

    def __init__(self, folder: Path, tables: Mapping[str, pa.Table]) -> None:
        self._kept = Handwritten(folder, with_segments(tables))
        for view in BY_HAND:
            self._kept.create(view)

    def apply(self, change: Change) -> None:
        """One transaction, durable when this returns."""
        self._kept.apply(change)

    def answers(self) -> dict[str, pa.Table]:
        """The views as they are kept."""
        return {view.name: self._kept.value(view) for view in BY_HAND}

    def close(self) -> None:
        """Give the memory back."""
        self._kept.close()
