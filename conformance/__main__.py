"""`python -m conformance`: the suites on every engine; exit code 1 when an answer is wrong."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from conformance import datalog, fixtures, golden, openivm, report
from conformance.cache import Verdicts, Worlds
from conformance.cases import Case
from conformance.golden_maintained import maintain_world, only
from conformance.golden_plain import Judged, judge_worlds
from conformance.maintained import REFUSED, Outcome, maintain
from conformance.plain import Plain, judge_all, start

ROOT = Path(__file__).resolve().parents[1]
SUITES = ROOT.parent / "shared" / "suites"
CACHE = ROOT / ".conformance"
PAGE = ROOT / "docs" / "conformance.md"
SAMPLE = 10
"""On Spark, one case in so many is run, unless all are asked for."""
WORKERS = 2
_Case = TypeVar("_Case", Case, datalog.Program, golden.Candidate)
_Work = TypeVar("_Work")
_Found = TypeVar("_Found")

_LOADERS: dict[str, Callable[[Path], list[Case]]] = {
    "openivm": openivm.load,
    "spark_fixtures": fixtures.load,
}
_DATALOG = "souffle"
_GOLDEN = "spark_golden"
_SUITES = (*_LOADERS, _DATALOG, _GOLDEN)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 0 when nothing is wrong."""
    asked = _arguments(arguments)
    folders = [asked.suites / name for name in asked.suite or _SUITES]
    present = [folder for folder in folders if (folder / "cases.jsonl").exists()]
    if not present:
        print(f"No suites in {asked.suites}: nothing was run.")
        return 0
    tallies = _Runner(asked).run(present)
    _show(tallies)
    if asked.whole and len(present) == len(folders):
        asked.page.write_text(report.page(tallies), encoding="utf-8")
    return 1 if report.wrong(tallies) else 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument("--suites", type=Path, default=SUITES, help="the folder of the suites")
    parser.add_argument("--suite", action="append", choices=_SUITES, help="only these suites")
    parser.add_argument("--engine", action="append", choices=("duckdb", "spark"))
    parser.add_argument("--all", action="store_true", help="all cases on Spark, not a sample")
    parser.add_argument("--case", help="only cases with this text in their name")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the document is written")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where answers are kept")
    asked = parser.parse_args(arguments)
    asked.whole = not (asked.suite or asked.engine or asked.all or asked.case)
    asked.engine = asked.engine or ["duckdb", "spark"]
    return asked


class _Runner:
    """Plain Spark first, then each engine; Spark starts only when something needs it."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self._spark: Any = None

    def run(self, folders: Iterable[Path]) -> list[report.Tally]:
        return [tally for folder in folders for tally in self._suite(folder)]

    def _suite(self, folder: Path) -> list[report.Tally]:
        if folder.name == _DATALOG:
            programs = self._chosen(datalog.load(folder))
            return self._tallies(folder, programs, self._programs)
        if folder.name == _GOLDEN:
            worlds = golden.load(folder)
            candidates = self._chosen([each for world in worlds for each in world.candidates])
            judged = self._judged_worlds(folder, worlds, candidates)
            return self._tallies(folder, candidates, partial(self._views, judged))
        cases = self._chosen(_LOADERS[folder.name](folder))
        plain = self._judged(folder, cases)
        return self._tallies(folder, cases, partial(self._outcomes, plain))

    def _chosen(self, cases: list[_Case]) -> list[_Case]:
        return [case for case in cases if (self.asked.case or "") in case.id]

    def _tallies(
        self, folder: Path, chosen: list[_Case], run: Callable[[list[_Case], str], list[Outcome]]
    ) -> list[report.Tally]:
        tallies = []
        for engine in self.asked.engine:
            sampled = engine == "spark" and not (self.asked.all or self.asked.case)
            mine = chosen[::SAMPLE] if sampled else chosen
            _say(f"{folder.name} on {engine}: {len(mine)} cases")
            outcomes = run(mine, engine)
            tallies.append(report.Tally(folder.name, engine, len(chosen), tuple(outcomes)))
        return tallies

    def _judged(self, folder: Path, cases: list[Case]) -> dict[str, Plain]:
        verdicts = Verdicts.of(folder, self.asked.cache)
        missing = verdicts.missing(cases)
        if missing:
            _say(f"{folder.name} on plain Spark: {len(missing)} cases, once")
            judge_all(missing, self.spark(), verdicts.add)
        found = ((case.id, verdicts.get(case)) for case in cases)
        return {name: verdict for name, verdict in found if verdict is not None}

    def _judged_worlds(
        self, folder: Path, worlds: list[golden.World], chosen: list[golden.Candidate]
    ) -> list[Judged]:
        names = {each.id for each in chosen}
        wanted = [world for world in worlds if any(c.id in names for c in world.candidates)]
        kept = Worlds(folder, self.asked.cache)
        missing = kept.missing(wanted)
        if missing:
            _say(f"{folder.name} on plain Spark: {len(missing)} sets of tables, once")
            judge_worlds(missing, self.spark(), kept.add)
        return [kept.get(world) for world in wanted]

    def _views(
        self, judged: list[Judged], candidates: list[golden.Candidate], engine: str
    ) -> list[Outcome]:
        names = {each.id for each in candidates}
        worlds = [world for each in judged if (world := only(each, names)).answers]
        if engine == "spark":
            found = [maintain_world(each, engine, self.spark()) for each in worlds]
        else:
            found = _in_processes(partial(maintain_world, engine=engine), worlds, at_once=1)
        return [outcome for outcomes in found for outcome in outcomes]

    def _outcomes(self, plain: dict[str, Plain], cases: list[Case], engine: str) -> list[Outcome]:
        verdicts = [plain[case.id] for case in cases]
        if engine == "spark":
            return [maintain(each, engine, self.spark()) for each in verdicts]
        return _in_processes(partial(maintain, engine=engine), verdicts)

    def _programs(self, cases: list[datalog.Program], engine: str) -> list[Outcome]:
        if engine == "spark":
            return [datalog.run(each, engine, self.spark()) for each in cases]
        return _in_processes(partial(datalog.run, engine=engine), cases)

    def spark(self) -> Any:
        if self._spark is None:
            self._spark = start()
        return self._spark


def _in_processes(
    work: Callable[[_Work], _Found], cases: Sequence[_Work], *, at_once: int = 4
) -> list[_Found]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        return list(pool.map(work, cases, chunksize=at_once))


def _show(tallies: Sequence[report.Tally]) -> None:
    for tally, outcome in report.wrong(tallies):
        print(f"WRONG {outcome.case} on {tally.engine}: {outcome.reason}")
    for tally in tallies:
        for reason, number, example in report.grouped(tally.those(REFUSED)):
            print(f"{tally.suite} on {tally.engine} refuses {number:>4}  {reason}  ({example})")
    print("\n".join(["", *report.table(tallies)]))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
