"""What a user would do without us: Spark writes the change as Parquet, and recomputes the views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from bench.compare_answers import Row
from bench.plain import PlainSpark
from bench.prepared import Plan
from bench.refresh import Refresh, files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Spent:
    """Milliseconds to write the change, and to recompute and write the views."""

    write_ms: float
    views_ms: float

    @property
    def ms(self) -> float:
        """Both."""
        return self.write_ms + self.views_ms


class Baseline:
    """Plain Spark over the tables as the transactions of a plan leave them."""

    def __init__(self, session: SparkSession, plan: Plan, scratch: Path) -> None:
        self._plan, self._scratch = plan, scratch
        self._plain = PlainSpark(session, plan.written(), scratch / "answers")
        self._session = session
        self._warm: set[str] = set()

    def warm_up(self, texts: Mapping[str, str]) -> None:
        """Evaluate each query that was not evaluated yet, and keep its answer."""
        for name in texts.keys() - self._warm:
            self._plain.recompute(name, texts[name])
            self._warm.add(name)

    def spent(self, number: int, texts: Mapping[str, str], rounds: int) -> Spent:
        """The median of some rounds: a transaction is written, and the queries are evaluated."""
        change = as_frames(self._session, self._plan, number)
        self.warm_up(texts)
        self._write(change)
        found = [self._once(change, texts) for _ in range(rounds)]
        return sorted(found, key=lambda spent: spent.ms)[(len(found) - 1) // 2]

    def answer(self, name: str) -> list[Row]:
        """The rows of a view as it was last recomputed."""
        return self._plain.answer(name)

    def close(self) -> None:
        """Leave the session to whoever started it."""
        self._plain.close()

    def _once(self, change: Refresh, texts: Mapping[str, str]) -> Spent:
        written = self._write(change)
        return Spent(written, sum(self._plain.recompute(n, text).ms for n, text in texts.items()))

    def _write(self, change: Refresh) -> float:
        began = perf_counter()
        for kind, tables in (("gone", change.gone), ("come", change.come)):
            for name, rows in tables.items():
                frame: Any = rows
                frame.write.mode("overwrite").parquet(str(self._scratch / f"{kind}-{name}"))
        return 1000 * (perf_counter() - began)


def as_frames(session: SparkSession, plan: Plan, number: int) -> Refresh:
    """A transaction as DataFrames over its files."""
    frames = {
        key: session.read.parquet(str(file)) for key, file in files(plan.folder, number).items()
    }
    gone, come = (
        {name: frame for (kind, name), frame in frames.items() if kind == wanted}
        for wanted in ("gone", "come")
    )
    return Refresh(gone, come)  # type: ignore[arg-type]
