"""Searches for nested views that differ from what CPython makes of their functions."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias

import everview
from everview.errors import UserError
from everview_fuzz.nested.comprehensions import (
    DECLARED,
    TABLES,
    Generator,
    answered,
    defined,
    expected,
    random_row,
)
from everview_fuzz.temporary_folder import temporary_folder

Rows: TypeAlias = dict[str, list[tuple[Any, ...]]]
Engine: TypeAlias = Literal["duckdb", "spark", "both"]
LEVELS_MAX, TURNS = 3, 4
SPARK_EVERY = 8
"""Where both engines are searched, one case in this many runs on Spark, which takes longer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A case that fails: its functions, each over the one before, the changes, and the reason."""

    seed: int
    number: int
    engine: str
    functions: tuple[str, ...]
    changes: tuple[tuple[Rows, Rows], ...]
    reason: str

    @property
    def text(self) -> str:
        """The failure as Python: comments that say what it shows, then what leads to it."""
        again = f"everview fuzz --nested --engine {self.engine} --seed {self.seed}"
        lines = [
            f"# seed {self.seed}, case {self.number}: {self.reason}".replace("\n", "\n# "),
            f"# find it again:  {again} --case {self.number}",
            "",
            *self.functions,
            f'db.sql("{DECLARED}")',
        ]
        for come, gone in self.changes:
            lines += [f"# comes: {come}", f"# goes:  {gone}"]
        return "\n".join(lines)


@dataclass(slots=True)
class Report:
    """What was searched and what was found."""

    cases: int = 0
    views: int = 0
    transactions: int = 0
    refused: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The counts of a search."""
        return (
            f"{self.cases} cases, {self.views} nested views, {self.transactions} transactions in "
            f"{self.seconds:.0f} s\nviews refused: {self.refused}\nfailures: {len(self.findings)}"
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """What to search: where, how long, from which numbers."""

    engine: Engine
    seed: int
    seconds: float = 60.0
    cases: int | None = None
    first: int = 0
    keep_going: bool = False

    def engine_of(self, number: int) -> str:
        """The engine that a case runs on."""
        on_spark = self.engine == "spark" or number % SPARK_EVERY == SPARK_EVERY - 1
        return "spark" if on_spark and self.engine != "duckdb" else "duckdb"


def search(settings: Settings, progress: Callable[[Report], None] = lambda _: None) -> Report:
    """Run cases until the time or the number is reached, or something is found."""
    report, began = Report(), time.monotonic()
    for number in count(settings.first):
        over = time.monotonic() - began >= settings.seconds
        if over or report.cases == settings.cases:
            break
        found = run_number(settings.seed, number, settings.engine_of(number), report)
        report.seconds = time.monotonic() - began
        report.findings += [] if found is None else [found]
        progress(report)
        if found is not None and not settings.keep_going:
            break
    return report


def run_number(seed: int, number: int, engine: str, report: Report) -> Finding | None:
    """Run one case in a folder of its own: views over views, compared after each transaction."""
    rng = random.Random(f"{seed} {number}")
    functions = Generator(rng).functions(rng.randint(1, LEVELS_MAX))
    changes: list[tuple[Rows, Rows]] = []
    report.cases += 1
    with temporary_folder() as folder:
        try:
            for problem in _compared(functions, rng, engine, folder, changes, report):
                return Finding(seed, number, engine, functions, tuple(changes), problem)
        except UserError as problem:
            report.refused += 1
            if changes:
                why = f"a transaction is refused: {problem.problem}"
                return Finding(seed, number, engine, functions, tuple(changes), why)
        except Exception:
            why = traceback.format_exc(limit=-4)
            return Finding(seed, number, engine, functions, tuple(changes), why)
    return None


def _compared(
    functions: tuple[str, ...],
    rng: random.Random,
    engine: str,
    folder: Path,
    changes: list[tuple[Rows, Rows]],
    report: Report,
) -> Iterator[str]:
    """What differs, after each transaction."""
    with everview.open(str(folder / "store"), engine=engine) as db:
        db.sql(DECLARED)
        for level, text in enumerate(functions):
            under = {"v": f"v{level - 1}"} if level else {}
            db.nested(defined(text), name=f"v{level}", tables=under)
            report.views += 1
        tables: Rows = {name: [] for name in TABLES}
        for turn in range(TURNS):
            come, gone = _change(tables, rng, everything=turn == TURNS - 2)
            changes.append((come, gone))
            with db.transaction() as tx:
                for name in tables:
                    if come[name]:
                        tx.insert(name, come[name])
                    if gone[name]:
                        tx.delete(name, gone[name])
            report.transactions += 1
            for level, text in enumerate(functions):
                wanted = expected(functions[0], tables, None, *functions[1 : level + 1])
                found = answered(db.read(f"v{level}").rows(), text)
                if found != wanted:
                    yield f"v{level} is {found}, and CPython makes {wanted}"
        for each in db.audit():
            if not each.ok:
                yield f"{each.view} differs from its query"


def _change(tables: Rows, rng: random.Random, *, everything: bool) -> tuple[Rows, Rows]:
    """Rows that come and rows that go; a table loses all of them now and then."""
    come: Rows = {}
    gone: Rows = {}
    for name, rows in tables.items():
        gone[name] = [row for row in rows if everything or rng.random() < 0.4]
        come[name] = [random_row(rng, name) for _ in range(rng.randint(0, 3))]
        for row in gone[name]:
            rows.remove(row)
        rows += come[name]
    return come, gone
