"""What the fetches of a view cost in earlier transactions, in words for `explain`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from everview.database.catalog.catalog import Catalog
from everview.database.introspect.epoch_notes import read_note
from everview.database.introspect.iterations import entries_of, rows_at
from everview.program.steps import fetch_mark
from everview.runtime.report import DRIVER, JOB, LARGE, MEMORY, UNASKED
from everview.store.store import Store

WAYS = {
    MEMORY: "from memory",
    DRIVER: "in the driver",
    JOB: "by a Spark job",
    LARGE: "by Spark SQL",
    UNASKED: "not asked for",
}
"""How rows were fetched, in words."""
SEARCHED_EPOCHS = 20
"""How many epochs back the cost of a fetch is searched for."""


@dataclass(frozen=True, slots=True)
class FetchCost:
    """The rows that a fetch read when a transaction changed `changed` rows of tables, and how.

    Where Spark SQL fetches and computes in one query, the rows are not counted: None.
    """

    rows: int | None
    changed: int
    way: str = ""

    @property
    def per_changed_row(self) -> float | None:
        """Rows read per changed row."""
        return None if self.rows is None else self.rows / max(self.changed, 1)

    @property
    def suffix(self) -> str:
        """How it was fetched, after a comma."""
        return f", {WAYS[self.way]}" if self.way in WAYS else ""


@dataclass(frozen=True, slots=True)
class FetchCosts:
    """The last cost of each fetch, the sizes of relations, and the iterations of recursions."""

    measured: Mapping[str, FetchCost] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    iterations: Mapping[str, int] = field(default_factory=dict)
    rows_at: Callable[[str], Mapping[int, int]] = lambda _: {}
    """How many rows a state of a loop holds per iteration; counted when called."""
    entries: Callable[[str, tuple[str, ...]], int | None] = lambda *_: None
    """How many different values some columns of a state have; counted when called."""

    def of_read(self, relation: str, by: str | None, kept: bool, key: tuple[str, ...]) -> str:
        """What one read of a relation, or of a state that is `kept`, costs."""
        rows = self.sizes.get(relation)
        size = "" if rows is None else f" ({rows} rows stored)"
        what = f"state {relation}{size}" if kept else f"{relation}{size}"
        if by is None:
            return f"reads {what} whole, or not at all"
        cost = self.measured.get(fetch_mark(relation, by))
        if cost is not None and cost.per_changed_row is not None:
            rows_read = f"{cost.per_changed_row:.1f} rows per changed row"
            return f"reads {what} by {by}: {rows_read}, last time{cost.suffix}"
        if cost is not None:
            how = cost.suffix.removeprefix(",")
            return f"reads {what} by {by}: last time{how}, rows not counted"
        if key == (by,):
            return f"reads {what} by {by}: at most one row a key"
        return f"reads {what} by {by}: not measured yet"

    def of_view(self, reads: Collection[tuple[str, str | None]]) -> str:
        """The price of a view: the rows that all its fetches read per changed row."""
        if not reads:
            return "reads nothing but the change"
        costs = [self.measured.get(fetch_mark(*each)) for each in reads]
        rates = [c.per_changed_row for c in costs if c and c.per_changed_row is not None]
        if not rates:
            return "what it reads has not been measured yet"
        return f"{sum(rates):.1f} rows read per changed row, last time"

    def of_fetches(self) -> dict[str, str]:
        """The rows that each fetch read the last time, in words."""
        return {
            mark: f"{'uncounted' if each.rows is None else each.rows} rows last time{each.suffix}"
            for mark, each in self.measured.items()
        }


def measured_costs(store: Store, catalog: Catalog) -> FetchCosts:
    """What each fetch read in the newest transaction that made it, and the sizes of relations."""
    measured: dict[str, FetchCost] = {}
    iterations: dict[str, int] = {}
    recent = [store.read(epoch) for epoch in store.epochs()[-SEARCHED_EPOCHS:]]
    for note in map(read_note, reversed(recent)):
        written, fetched = note.get("written", {}), note.get("fetched", {})
        changed = sum(rows for name, rows in written.items() if name in catalog.tables)
        for mark, way in (dict.fromkeys(fetched, "") | note.get("ways", {})).items():
            measured.setdefault(mark, FetchCost(fetched.get(mark), changed, way))
        iterations = note.get("iterations", {}) | iterations
    sizes = {name: relation.rows for name, relation in store.latest().relations.items()}
    at, entries = partial(rows_at, store), partial(entries_of, store)
    return FetchCosts(measured, sizes, iterations, at, entries)
