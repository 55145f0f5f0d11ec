"""Nested views: one movie under `related`, and one element into a collection of any size.

python -m bench.nested [--engine duckdb|spark] [--movies N] [--quick]
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

Movie: TypeAlias = tuple[str, str, str]
Milliseconds: TypeAlias = float

GENRES, DIRECTORS = 200, 20_000
BAGS = (10, 1_000, 100_000)

JOINED = """SELECT m.name, coalesce(others, {empty}) AS others FROM M m LEFT JOIN (
    SELECT name, {collect}(other) AS others FROM (
        SELECT m.name, o.name AS other FROM M m JOIN M o ON m.gen = o.gen AND m.name <> o.name
        UNION ALL
        SELECT m.name, o.name FROM M m JOIN M o ON m.dir = o.dir AND m.gen <> o.gen
    ) GROUP BY name
) USING (name)"""
"""The disjunction of `related` as disjoint joins by keys; no name, genre or director is NULL."""
GROUPED = """SELECT m.name, {concat}({filter_g}, {filter_d}) AS others FROM M m
    JOIN (SELECT gen, {collect}(name) AS names FROM M GROUP BY gen) g USING (gen)
    JOIN (SELECT dir, {collect}({struct}) AS films FROM M GROUP BY dir) d USING (dir)"""
"""The same from one list for each genre and director, so that no pair of movies is joined."""

WORDS = {
    "duckdb": {
        "empty": "[]",
        "collect": "list",
        "concat": "list_concat",
        "filter_g": "list_filter(names, lambda x: x <> m.name)",
        "filter_d": "list_transform(list_filter(films, lambda x: x.gen <> m.gen), "
        "lambda x: x.name)",
        "struct": "{'name': name, 'gen': gen}",
    },
    "spark": {
        "empty": "array()",
        "collect": "collect_list",
        "concat": "concat",
        "filter_g": "filter(names, x -> x <> m.name)",
        "filter_d": "transform(filter(films, x -> x.gen <> m.gen), x -> x.name)",
        "struct": "named_struct('name', name, 'gen', gen)",
    },
}


def related(M: Any) -> Any:  # noqa: N803  (as the paper calls it)
    """Each movie with those of its genre or director."""
    return [
        (m.name, [o.name for o in M if o.name != m.name and (o.gen == m.gen or o.dir == m.dir)])
        for m in M
    ]


def bags(owners: Any, items: Any) -> Any:
    """Each owner with its items."""
    return [(o.id, [i.item for i in items if i.owner == o.id]) for o in owners]


@dataclass(frozen=True)
class Cell:
    """One kind of change: medians, and the better recomputation where there is one.

    `elements` is how many rows of the dictionary change, `flat` how many of the flat relation.
    """

    engine: str
    view: str
    change: str
    ours_ms: float
    worst_ms: float
    recomputed_ms: float | None
    speedup: float | None
    rows_read: int | None
    flat: int
    elements: int
    declared_ms: float
    view_rows: int


@dataclass(frozen=True)
class Sent:
    """One transaction: its time, the rows that it read, and those that it wrote."""

    ms: float
    read: int | None
    flat: int
    elements: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; an error when a view differs from its query."""
    options = _options(arguments)
    cells: list[Cell] = []
    with TemporaryDirectory(prefix="everview-nested-") as scratch, ExitStack() as stack:
        opened = opening(options.engine, Path(scratch), stack)
        for measure in (_bags, _related):
            for cell in measure(opened, Path(scratch), options):
                print(f"{cell.view}, {cell.change}: {cell.ours_ms:.1f} ms", file=sys.stderr)
                cells.append(cell)
    tell(
        options.results / f"nested-{options.engine}",
        (asdict(cell) for cell in cells),
        markdown(cells, options),
    )
    return 0


def _related(opened: Opened, scratch: Path, options: argparse.Namespace) -> Iterator[Cell]:
    """Movies that come and go, one in a transaction, against recomputation of the whole."""
    dice = random.Random(options.seed)
    movies = [_movie(n, dice, options) for n in range(options.movies)]
    coming = [_movie(options.movies + n, dice, options) for n in range(options.rounds + 1)]
    going = dice.sample(movies, options.rounds + 1)
    with opened(scratch / "related") as db:
        db.sql("CREATE TABLE M (name STRING PRIMARY KEY, gen STRING, dir STRING)")
        db.insert("M", _table(movies))
        began = perf_counter()
        db.nested(related)
        declared = 1000 * (perf_counter() - began)
        came = [_sent(db, "related", lambda m=m: db.insert("M", [m])) for m in coming]
        gone = [_sent(db, "related", lambda m=m: db.delete("M", [m])) for m in going]
        left = sorted({*movies, *coming} - {*going})
        recomputed, elements = _recomputed(db, left, scratch, options)
        kept = _rows(db, "SELECT COUNT(*) AS n FROM `related._2`")[0][0]
        if kept != elements:
            raise SystemExit(f"related has {kept} elements, and its query {elements}")
        _must_equal(db, left, dice.sample(left, min(10, len(left))))
        for change, sent in (("a movie comes", came), ("a movie goes", gone)):
            yield _cell(options, "related", change, sent, declared, kept, recomputed)


def _bags(opened: Opened, scratch: Path, options: argparse.Namespace) -> Iterator[Cell]:
    """One element into collections of different sizes, which take turns, and out of them again."""
    with opened(scratch / "bags") as db:
        db.sql(
            "CREATE TABLE owners (id INT PRIMARY KEY);"
            "CREATE TABLE items (owner INT, item INT, PRIMARY KEY (owner, item))"
        )
        db.insert("owners", [(size,) for size in options.bags])
        pairs = [(size, item) for size in options.bags for item in range(size)]
        owner, item = zip(*pairs, strict=True)
        db.insert("items", pa.table({"owner": pa.array(owner, pa.int32()), "item": list(item)}))
        began = perf_counter()
        db.nested(bags)
        declared = 1000 * (perf_counter() - began)
        came: dict[int, list[Sent]] = {size: [] for size in options.bags}
        gone: dict[int, list[Sent]] = {size: [] for size in options.bags}
        for turn in range(options.rounds + 1):
            for size in options.bags:
                row = [(size, size + turn)]
                came[size].append(_sent(db, "bags", lambda r=row: db.insert("items", r)))
                gone[size].append(_sent(db, "bags", lambda r=row: db.delete("items", r)))
        kept = {key: len(found) for key, found in db.read("bags").rows()}
        if kept != {size: size for size in options.bags}:
            raise SystemExit("bags differs from its query")
        for size in options.bags:
            into, out = f"one into a bag of {size:,}", f"one out of a bag of {size:,}"
            yield _cell(options, "bags", into, came[size], declared, sum(options.bags))
            yield _cell(options, "bags", out, gone[size], declared, sum(options.bags))


def _movie(number: int, dice: random.Random, options: argparse.Namespace) -> Movie:
    genre, director = dice.randrange(options.genres), dice.randrange(options.directors)
    return f"m{number}", f"g{genre}", f"d{director}"


def _table(movies: Sequence[Movie]) -> pa.Table:
    names, genres, directors = (list(column) for column in zip(*movies, strict=True))
    return pa.table({"name": names, "gen": genres, "dir": directors})


def _sent(db: Database, view: str, change: Callable[[], int]) -> Sent:
    """Send a change, and look up what it read and wrote."""
    began = perf_counter()
    epoch = change()
    taken = 1000 * (perf_counter() - began)
    note: Any = db.store.read(epoch).note
    read = db.history(1)[0].rows_read
    written = note.get("written", {})
    return Sent(taken, read, written.get(view, 0), written.get(f"{view}._2", 0))


def _cell(
    options: argparse.Namespace,
    view: str,
    change: str,
    sent: Sequence[Sent],
    declared: Milliseconds,
    rows: int,
    recomputed: Milliseconds | None = None,
) -> Cell:
    """The medians of some transactions; the first warms up."""
    warm = sent[1:] or sent
    ours = median(each.ms for each in warm)
    reads = [each.read for each in warm if each.read is not None]
    return Cell(
        options.engine,
        view,
        change,
        round(ours, 2),
        round(max(each.ms for each in warm), 2),
        None if recomputed is None else round(recomputed, 2),
        None if recomputed is None else round(recomputed / ours, 2),
        int(median(reads)) if reads else None,
        int(median(each.flat for each in warm)),
        int(median(each.elements for each in warm)),
        round(declared, 2),
        rows,
    )


def _recomputed(
    db: Database, movies: Sequence[Movie], scratch: Path, options: argparse.Namespace
) -> tuple[Milliseconds, int]:
    """The better of two ways to recompute `related`, and how many elements it has."""
    words = WORDS[options.engine]
    texts = [text.format(**words) for text in (JOINED, GROUPED)]
    by = _by_duckdb if options.engine == "duckdb" else _by_spark
    taken, counts = by(db, _table(movies), texts, scratch, options.recomputations)
    if len({*counts}) != 1:
        raise SystemExit(f"the two ways to recompute differ: {counts}")
    for text, each in zip(("joined", "grouped"), taken, strict=True):
        print(f"recomputed, {text}: {each:.0f} ms", file=sys.stderr)
    return min(taken), counts[0]


def _by_duckdb(
    _: Database, rows: pa.Table, texts: Sequence[str], scratch: Path, rounds: int
) -> tuple[list[Milliseconds], list[int]]:
    """From a native table of a database file into another, warm."""
    with duckdb.connect(str(scratch / "plain.duckdb")) as plain:
        plain.register("rows", rows)
        plain.execute("CREATE TABLE M AS FROM rows")
        taken, counts = [], []
        for text in texts:
            build = f"CREATE OR REPLACE TABLE scratch AS {text}"
            taken.append(_timed(lambda build=build: plain.execute(build), rounds))
            found = plain.execute("SELECT SUM(len(others)) FROM scratch").fetchone()
            counts.append(int(found[0]) if found else 0)
            plain.execute("DROP TABLE scratch")
        return taken, counts


def _by_spark(
    db: Database, rows: pa.Table, texts: Sequence[str], scratch: Path, rounds: int
) -> tuple[list[Milliseconds], list[int]]:
    """From Parquet files into Parquet files, warm, with eight shuffle partitions."""
    engine: Any = db.engine
    session = engine.session.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "8")
    source, target = str(scratch / "movies"), str(scratch / "recomputed")
    session.createDataFrame(rows.to_pandas()).write.parquet(source)
    session.read.parquet(source).createOrReplaceTempView("M")
    taken, counts = [], []
    for text in texts:

        def build(text: str = text) -> None:
            session.sql(text).write.mode("overwrite").parquet(target)

        taken.append(_timed(build, rounds))
        read = session.read.parquet(target)
        counts.append(read.selectExpr("SUM(size(others)) AS n").collect()[0].n)
    return taken, counts


def _timed(evaluate: Callable[[], object], rounds: int) -> Milliseconds:
    """The median of some evaluations after one that warms up."""
    taken = []
    for _ in range(rounds + 1):
        began = perf_counter()
        evaluate()
        taken.append(1000 * (perf_counter() - began))
    return median(taken[1:])


def _rows(db: Database, text: str, params: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
    found = db.sql(text, None if params is None else list(params))
    assert found is not None
    return found.rows()


def _must_equal(db: Database, movies: Sequence[Movie], sample: Sequence[Movie]) -> None:
    """The lists of some movies are what Python makes of them."""
    for name, genre, director in sample:
        text = "SELECT element FROM `related._2` WHERE `_2#m.name` = ?"
        kept = sorted(element for (element,) in _rows(db, text, [name]))
        wanted = (n for n, g, d in movies if n != name and (g == genre or d == director))
        if kept != sorted(wanted):
            raise SystemExit(f"{name} has other movies than its query gives")


def markdown(cells: Sequence[Cell], options: argparse.Namespace) -> str:
    """A line for each kind of change."""
    lines = [
        f"Nested views in milliseconds, engine {options.engine}, median of {options.rounds}: "
        f"`related` over {options.movies:,} movies, {options.genres:,} genres and "
        f"{options.directors:,} directors, and `bags`.",
        "Recomputed: the better of two queries, by disjoint joins and by lists for each genre and "
        "director, into arrays; warm.",
        "Declared: what the view and its state took us.",
        "",
        "| view | change | ours | worst | recomputed | speedup | rows read | flat rows written | "
        "elements written | declared | elements of the view |",
        f"|---|---|{'---:|' * 9}",
    ]
    lines += [
        f"| {c.view} | {c.change} | {c.ours_ms:.1f} | {c.worst_ms:.1f} | "
        f"{_told(c.recomputed_ms, ',.0f')} | {_told(c.speedup, '.1f', '×')} | "
        f"{_told(c.rows_read, ',')} | {c.flat:,} | {c.elements:,} | {c.declared_ms:,.0f} | "
        f"{c.view_rows:,} |"
        for c in cells
    ]
    return "\n".join(lines)


def _told(figure: float | None, form: str, unit: str = "") -> str:
    return "–" if figure is None else f"{figure:{form}}{unit}"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.nested", description=__doc__)
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--movies", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15, help="how many come, and how many go")
    parser.add_argument("--recomputations", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS, help="where figures go")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works")
    options = parser.parse_args(arguments)
    options.genres, options.directors, options.bags = GENRES, DIRECTORS, BAGS
    if options.quick:
        options.movies, options.rounds, options.recomputations = 300, 3, 1
        options.genres, options.directors, options.bags = 10, 60, (5, 50)
    elif options.movies < DIRECTORS:
        options.genres = max(1, GENRES * options.movies // 100_000)
        options.directors = max(1, DIRECTORS * options.movies // 100_000)
    return options


if __name__ == "__main__":
    sys.exit(main())
