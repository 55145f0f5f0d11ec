"""Recursive views: one edge that comes or goes, against evaluation from scratch.

python -m bench.recursion [--engine duckdb|spark] [--graphs reach] [--edges N] [--quick]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, TypeAlias

import duckdb
import pyarrow as pa

from bench.growth import Opened, opening
from bench.rows import RESULTS, tell
from everview.database.database import Database

Edge: TypeAlias = tuple[int, int]

CLOSURE = (
    "WITH RECURSIVE r(a, b) AS (SELECT a, b FROM e UNION "
    "SELECT r.a, e.b FROM r JOIN e ON r.b = e.a) SELECT a, b FROM r"
)
REACH = (
    "WITH RECURSIVE r(n) AS (SELECT n FROM s UNION "
    "SELECT e.b FROM r JOIN e ON r.n = e.a) SELECT n FROM r"
)
SOURCES = 10


@dataclass(frozen=True)
class Graph:
    """A graph of so many nodes and the view over it; without `edges`, chains of `nodes`."""

    told: str
    view: str
    nodes: int
    edges: int = 0
    chains: int = 0

    def made(self, dice: random.Random) -> set[Edge]:
        """Its edges."""
        if self.chains:
            starts = range(0, self.chains * self.nodes, self.nodes)
            return {(n, n + 1) for start in starts for n in range(start, start + self.nodes - 1)}
        found: set[Edge] = set()
        while len(found) < self.edges:
            found.add(self.edge(dice))
        return found

    def edge(self, dice: random.Random) -> Edge:
        """Any edge between two nodes."""
        count = self.nodes * (self.chains or 1)
        return dice.randrange(count), dice.randrange(count)


GRAPHS = {
    "closure": Graph("closure of 20,000 nodes, 18,000 edges", CLOSURE, 20_000, 18_000),
    "chains": Graph("closure of 100 chains of 100 nodes", CLOSURE, 100, chains=100),
    "reach": Graph("from 10 of 200,000 nodes, 400,000 edges", REACH, 200_000, 400_000),
}
QUICK = {
    "closure": Graph("closure of 200 nodes, 180 edges", CLOSURE, 200, 180),
    "chains": Graph("closure of 5 chains of 10 nodes", CLOSURE, 10, chains=5),
    "reach": Graph("from 10 of 200 nodes, 400 edges", REACH, 200, 400),
}


@dataclass(frozen=True)
class Cell:
    """One kind of change of one graph: the median transaction, and two evaluations from scratch.

    `evaluated_ms` is ours, which keeps nothing, and `database_ms` is DuckDB's own recursion, which
    there is on the embedded engine alone. Each has its speedup.
    """

    engine: str
    graph: str
    change: str
    ours_ms: float
    worst_ms: float
    evaluated_ms: float
    speedup: float
    database_ms: float | None
    database_speedup: float | None
    declared_ms: float
    rows_fetched: int | None
    iterations: int
    view_rows: int
    state_bytes: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; 1 when a view differs from its query."""
    options = _options(arguments)
    graphs = QUICK if options.quick else GRAPHS
    cells: list[Cell] = []
    with TemporaryDirectory(prefix="everview-recursion-") as scratch, ExitStack() as stack:
        opened = opening(options.engine, Path(scratch), stack)
        for name in options.graphs:
            found = list(_measured(graphs[name], Path(scratch) / name, opened, options))
            for cell in found:
                print(f"{name}, {cell.change}: {cell.ours_ms:.1f} ms", file=sys.stderr)
            cells += found
    tell(
        options.results / f"recursion-{options.engine}",
        (asdict(cell) for cell in cells),
        markdown(cells, options),
    )
    return 0


def _measured(
    graph: Graph, folder: Path, opened: Opened, options: argparse.Namespace
) -> Iterator[Cell]:
    dice = random.Random(options.seed)
    edges = graph.made(dice)
    with opened(folder) as db:
        declared = _load(db, graph, edges, dice)
        evaluated = _timed(lambda: _evaluate(db, graph), options.rounds)
        database = _by_database(db, graph, options) if options.engine == "duckdb" else None
        coming = _coming(graph, edges, options.edges, dice)
        going = _going(edges, options.edges, dice)
        for kind, change, picked in (
            ("inserted", db.insert, coming),
            ("deleted", db.delete, going),
        ):
            taken, fetched, iterations = [], [], []
            for edge in picked:
                began = perf_counter()
                epoch = change("e", [edge])
                taken.append(1000 * (perf_counter() - began))
                note: Any = db.store.read(epoch).note
                fetched.append(sum(note.get("fetched", {}).values()))
                iterations.append(max(note.get("iterations", {}).values(), default=0))
            ours = median(taken[1:] or taken)
            yield Cell(
                options.engine,
                graph.told,
                kind,
                round(ours, 2),
                round(max(taken), 2),
                round(evaluated, 2),
                round(evaluated / ours, 2),
                None if database is None else round(database, 2),
                None if database is None else round(database / ours, 2),
                round(declared, 2),
                int(median(fetched)),
                int(median(iterations)),
                db.read("kept").to_arrow().num_rows,
                db.history()[-1].state_bytes,
            )
        _must_equal(db, graph)


def _load(db: Database, graph: Graph, edges: set[Edge], dice: random.Random) -> float:
    """Declare tables and view; how long the view took, which we evaluate from scratch."""
    db.sql("CREATE TABLE e (a INT, b INT, PRIMARY KEY (a, b)); CREATE TABLE s (n INT)")
    db.insert("e", _table(edges))
    count = graph.nodes * (graph.chains or 1)
    sources = pa.table({"n": pa.array(dice.sample(range(count), SOURCES), pa.int32())})
    db.insert("s", sources)
    began = perf_counter()
    db.sql(f"CREATE MATERIALIZED VIEW kept AS {graph.view}")
    return 1000 * (perf_counter() - began)


def _table(edges: set[Edge]) -> pa.Table:
    listed = sorted(edges)
    return pa.table(
        {
            "a": pa.array([a for a, _ in listed], pa.int32()),
            "b": pa.array([b for _, b in listed], pa.int32()),
        }
    )


def _coming(graph: Graph, edges: set[Edge], count: int, dice: random.Random) -> list[Edge]:
    """Edges that are not there, each once."""
    found: dict[Edge, None] = {}
    while len(found) < count:
        if (edge := graph.edge(dice)) not in edges:
            found[edge] = None
    edges |= found.keys()
    return list(found)


def _going(edges: set[Edge], count: int, dice: random.Random) -> list[Edge]:
    """Edges that are there, each once."""
    found = dice.sample(sorted(edges), count)
    edges -= set(found)
    return found


def _evaluate(db: Database, graph: Graph) -> None:
    """Our own evaluation of the view's text from scratch, as a query that is asked once."""
    result = db.sql(graph.view)
    assert result is not None
    result.to_arrow()


def _by_database(db: Database, graph: Graph, options: argparse.Namespace) -> float:
    """DuckDB's own recursion over its own tables."""
    with duckdb.connect() as plain:
        _copied(db, plain)
        text = f"CREATE OR REPLACE TABLE scratch AS {graph.view}"
        return _timed(lambda: plain.execute(text), options.rounds)


def _timed(evaluate: Callable[[], object], rounds: int) -> float:
    """The median of some evaluations, in milliseconds."""
    taken = []
    for _ in range(rounds):
        began = perf_counter()
        evaluate()
        taken.append(1000 * (perf_counter() - began))
    return median(taken)


def _copied(db: Database, plain: duckdb.DuckDBPyConnection) -> None:
    for name in ("e", "s"):
        plain.register("rows", db.read(name).to_arrow())
        plain.execute(f"CREATE OR REPLACE TABLE {name} AS FROM rows")


def _must_equal(db: Database, graph: Graph) -> None:
    """The view is what DuckDB's own recursion says of the same edges."""
    with duckdb.connect() as plain:
        _copied(db, plain)
        plain.register("kept", db.read("kept").to_arrow())
        plain.execute(f"CREATE TABLE scratch AS {graph.view}")
        for one, other in (("kept", "scratch"), ("scratch", "kept")):
            found = plain.execute(f"SELECT COUNT(*) FROM (FROM {one} EXCEPT ALL FROM {other})")
            row = found.fetchone()
            if row is None or row[0]:
                raise SystemExit(f"{graph.told}: the view differs from its query")


def markdown(cells: Sequence[Cell], options: argparse.Namespace) -> str:
    """A line for each graph and kind of change."""
    lines = [
        f"One edge in milliseconds, engine {options.engine}, median of {options.edges}.",
        "Evaluated: Everview's own evaluation of the view's text from scratch, nothing kept.",
        "DuckDB: its own recursion over its tables, where the engine is DuckDB.",
        "Declared: what the view and its state took us.",
        "",
        "| graph | edge | ours | worst | evaluated | against evaluated | DuckDB | against DuckDB | "
        "declared | rows fetched | iterations | rows of the view | state, KB |",
        f"|---|---|{'---:|' * 11}",
    ]
    lines += [
        f"| {c.graph} | {c.change} | {c.ours_ms:.1f} | {c.worst_ms:.1f} | {c.evaluated_ms:.0f} | "
        f"{c.speedup:.1f}× | {_told(c.database_ms, '.0f')} | "
        f"{_told(c.database_speedup, '.1f', '×')} | "
        f"{c.declared_ms:.0f} | {c.rows_fetched:,} | {c.iterations} | "
        f"{c.view_rows:,} | {c.state_bytes / 1000:,.0f} |"
        for c in cells
    ]
    return "\n".join(lines)


def _told(figure: float | None, form: str, unit: str = "") -> str:
    return "–" if figure is None else f"{figure:{form}}{unit}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.recursion", description=__doc__)
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--graphs", type=_names, default=tuple(GRAPHS))
    parser.add_argument("--edges", type=int, default=50, help="how many come, and how many go")
    parser.add_argument("--rounds", type=int, default=3, help="evaluations from scratch")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS, help="where figures go")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works")
    options = parser.parse_args(arguments)
    if options.quick:
        options.edges = 5
    return options


def _names(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    for each in chosen:
        if each not in GRAPHS:
            raise argparse.ArgumentTypeError(f"{each} is none of {', '.join(GRAPHS)}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
