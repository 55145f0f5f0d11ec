"""Searches for failures: runs case after case until the time is over, and shrinks what fails."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal, TypeAlias

import everview
from everview.database.database import Database
from everview.errors import UserError
from everview_fuzz.case import Case, View, reads
from everview_fuzz.check.oracle import Claim, Oracle, Tally, postgres_opinion, spark_oracle
from everview_fuzz.check.postgres import third_opinion
from everview_fuzz.check.reference import Reference
from everview_fuzz.check.run import Failure, Outcome, judge, run
from everview_fuzz.generate.cases import generate
from everview_fuzz.script import script
from everview_fuzz.shrink.shrink import shrink
from everview_fuzz.temporary_folder import temporary_folder

Engine: TypeAlias = Literal["duckdb", "spark", "both"]
EMBEDDED: tuple[str, ...] = ("duckdb",)
ENGINES: dict[str, tuple[str, ...]] = {"duckdb": EMBEDDED, "spark": ("spark", "duckdb")}
SPARK_CASE_EVERY = 8
"""Where both engines are searched, one case in this many runs on Spark, which takes longer."""
QUEUED_CASES_PER_JOB = 12
"""How many cases are queued per worker."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to search: where, how long, from which numbers."""

    engine: Engine
    seed: int
    seconds: float = 60.0
    cases: int | None = None
    first: int = 0
    shrinking: float = 120.0
    oracle: bool = False
    jobs: int = 1
    keep_going: bool = False
    policy: str = ""

    def engines(self, number: int) -> tuple[str, ...]:
        """The engines that a case runs on."""
        if self.engine == "both":
            return ENGINES[
                "spark" if number % SPARK_CASE_EVERY == SPARK_CASE_EVERY - 1 else "duckdb"
            ]
        return ENGINES[self.engine]


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure, the smallest case found for it, and whether its script shows it too.

    Where the view and Spark differ, `third` says with whom PostgreSQL agrees. The `policy` is the
    one that all views were declared with.
    """

    case: Case
    failure: Failure
    engines: tuple[str, ...]
    confirmed: bool
    third: str = ""
    policy: str = ""


@dataclass(slots=True)
class Report:
    """What was searched and what was found."""

    cases: int = 0
    views: int = 0
    transactions: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    dependent: int = 0
    stopped: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    unanswered: Counter[str] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Count one case."""
        self.cases += 1
        self.views += outcome.views
        self.transactions += outcome.transactions
        self.refused.update(text for text in outcome.refused.values() if text)
        self.dependent += sum(not text for text in outcome.refused.values())
        self.asked += outcome.asked
        self.unanswered.update(outcome.unanswered)
        self.tally += outcome.tally
        if outcome.stopped:
            self.stopped[outcome.stopped] += 1


Progress: TypeAlias = Callable[[Report, str], None]


def search(settings: Settings, progress: Progress) -> Report:
    """Run cases until the time or the number is reached, or something is found."""
    report, began = Report(), time.monotonic()
    with _spark(settings) as oracle:
        for number, outcome in _outcomes(settings, began):
            if oracle is not None:
                judge(outcome, oracle)
            report.add(outcome)
            report.seconds = time.monotonic() - began
            progress(report, f"seed {settings.seed}, case {number}")
            if outcome.failure is not None:
                progress(report, f"seed {settings.seed}, case {number}: making it smaller")
                report.findings.append(_finding(settings, number, outcome.failure, oracle))
                progress(report, f"seed {settings.seed}, case {number}")
                if not settings.keep_going:
                    break
    return report


def run_number(settings: Settings, number: int) -> tuple[int, Outcome]:
    """Run one case in a folder of its own."""
    case = generate(settings.seed, number, settings.policy)
    with temporary_folder() as folder:
        return number, run(case, settings.engines(number), folder)


def reproduces(case: Case, engine: str, oracle: Oracle | None = None) -> bool:
    """Whether the script of a case ends in a view that differs from its query, or in a crash."""
    with temporary_folder() as folder, everview.open(str(folder / "store"), engine=engine) as db:
        try:
            db.sql(script(case))
            if not db.audit().ok or _differs_from_duckdb(db, case):
                return True
            return oracle is not None and _differs_from_spark(db, case, oracle)
        except UserError:
            return False
        except Exception:
            return True


def _differs_from_spark(db: Database, case: Case, oracle: Oracle) -> bool:
    """Whether plain Spark denies what a view holds."""
    known = [each.name for each in case.tables] + [each.name for each in case.views]
    relations = {name: db.read(name).to_arrow() for name in known}
    claims = [
        Claim(
            step=0,
            engine=db.engine.name,
            view=view.name,
            query=view.query,
            schema=db.catalog.schema(view.name),
            rows=relations[view.name],
            relations={name: relations[name] for name in known if reads(view, name)},
        )
        for view in case.views
    ]
    return any(verdict.word in ("wrong", "types") for verdict in oracle.judge(claims))


def _differs_from_duckdb(db: Database, case: Case) -> bool:
    """Whether a portable view differs from what DuckDB answers to its text."""
    views = {view.name: view for view in case.views}
    known = [each.name for each in case.tables] + list(views)
    relations = {name: db.read(name).to_arrow() for name in known}
    with closing(Reference()) as reference:
        return any(
            not reference.wrong(
                view, db.catalog.schema(view.name), relations[view.name], relations
            ).ok
            for view in views.values()
            if view.portable
        )


def _finding(settings: Settings, number: int, failure: Failure, oracle: Oracle | None) -> Finding:
    engines = settings.engines(number)

    def fails(case: Case) -> Failure | None:
        with temporary_folder() as folder:
            outcome = run(case, engines, folder, stop_at_refusal=True)
        if oracle is not None and failure.kind == "spark":
            judge(outcome, oracle)
        return outcome.failure

    case = generate(settings.seed, number, settings.policy)
    smallest, found = shrink(
        _without_refused_views(case, engines), failure, fails, settings.shrinking
    )
    confirmed = reproduces(smallest, found.engine or engines[0], oracle)
    third = _postgres_opinion(smallest, engines, oracle) if oracle and found.kind == "spark" else ""
    return Finding(smallest, found, engines, confirmed, third, settings.policy)


def _postgres_opinion(case: Case, engines: tuple[str, ...], oracle: Oracle) -> str:
    """With whom PostgreSQL agrees on the first answer that Spark denies."""
    with temporary_folder() as folder:
        claims = run(case, engines, folder).claims
    denied = (verdict for verdict in oracle.judge(claims) if verdict.word == "wrong")
    with third_opinion() as postgres:
        return next((postgres_opinion(verdict, postgres) for verdict in denied), "")


def _without_refused_views(case: Case, engines: tuple[str, ...]) -> Case:
    """The case without the views that are refused, so that each one left matters."""
    with temporary_folder() as folder:
        refused = run(case, engines, folder).undefined
    kept = [s for s in case.steps if not (isinstance(s, View) and s.name in refused)]
    return replace(case, steps=tuple(kept))


def _outcomes(settings: Settings, began: float) -> Iterator[tuple[int, Outcome]]:
    """The cases that run on Spark here, the others in processes of their own."""
    numbers = count(settings.first)

    def due() -> bool:
        over = time.monotonic() - began >= settings.seconds
        done = settings.cases is not None and given >= settings.cases
        return not over and not done

    given = 0
    if settings.jobs == 1:
        while due():
            number, given = next(numbers), given + 1
            yield run_number(settings, number)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(settings.jobs, mp_context=context) as pool:
        waiting: set[Future[tuple[int, Outcome]]] = set()
        try:
            while due() or waiting:
                while due() and len(waiting) < QUEUED_CASES_PER_JOB * settings.jobs:
                    number, given = next(numbers), given + 1
                    if settings.engines(number) == EMBEDDED:
                        waiting.add(pool.submit(run_number, settings, number))
                    else:
                        yield run_number(settings, number)
                if not due():
                    waiting = {each for each in waiting if not each.cancel()}
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for each in finished:
                    yield each.result()
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def _spark(settings: Settings) -> Iterator[Oracle | None]:
    """One Spark for all cases, where one is needed, and what it is asked as it is."""
    with nullcontext() if settings.engine == "duckdb" else _spark_session():
        if not settings.oracle:
            yield None
            return
        with spark_oracle() as oracle:
            yield oracle


@contextmanager
def _spark_session() -> Iterator[None]:
    with temporary_folder() as folder, everview.open(str(folder / "kept"), engine="spark"):
        yield


def processors() -> int:
    """How many cases can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
