"""The same three views and batches on Everview and on its peers, each in a process of its own.

python -m bench.peers [--scale S] [--transactions N] [--only PEER,...] [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from bench.peers.prepare import Answers, prepare
from bench.peers.protocol import Task
from bench.rows import RESULTS
from bench.tpch import DATA

HERE = Path(__file__).parent
PATIENCE = 3600


@dataclass(frozen=True)
class Peer:
    """A module, what it is given, and the environment that it runs in."""

    module: str
    arguments: tuple[str, ...] = ()
    environment: str = ""
    durable: str = "no"

    @property
    def python(self) -> Path:
        """The interpreter that has what the peer needs."""
        own = HERE / f".venv-{self.environment}" / "bin" / "python"
        return own if self.environment else Path(sys.executable)


PEERS = {
    "everview-duckdb": Peer("everview", ("duckdb",), durable="yes"),
    "everview-spark": Peer("everview", ("spark",), durable="yes"),
    "pathway": Peer("pathway", environment="pathway"),
    "flink": Peer("flink", environment="flink"),
    "streaming": Peer("streaming", durable="state"),
}


@dataclass(frozen=True)
class Result:
    """What a peer did, or why it did not."""

    peer: str
    scale: float
    durable: str
    views: int = 0
    load_ms: float | None = None
    ms: dict[str, float] | None = None
    equal: bool | None = None
    not_run: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every peer, compare, print and write; 1 when an answer is wrong."""
    options = _options(arguments)
    with TemporaryDirectory(prefix="everview-peers-") as scratch:
        task = Task(Path(scratch))
        counts = dict.fromkeys(options.rows, options.warm_up + options.transactions)
        wanted = prepare(task, options.scale, counts, options.data, options.seed)
        results = [_run(name, task, wanted, options) for name in options.only]
    text = markdown(results, options)
    print(text)
    options.results.mkdir(parents=True, exist_ok=True)
    rows = json.dumps([asdict(result) for result in results], indent=1)
    (options.results / "peers.json").write_text(rows + "\n", encoding="utf-8")
    (options.results / "peers.md").write_text(text + "\n", encoding="utf-8")
    wrong = [result.peer for result in results if result.equal is False]
    for peer in wrong:
        print(f"{peer}: not what a recomputation answers", file=sys.stderr)
    return 1 if wrong else 0


def _run(name: str, task: Task, wanted: Answers, options: argparse.Namespace) -> Result:
    peer = PEERS[name]
    why = _reason(name, peer, task)
    if why:
        return Result(name, options.scale, peer.durable, not_run=why)
    made = json.loads(task.answer(name).read_text(encoding="utf-8"))
    found = {view: sorted(map(tuple, rows)) for view, rows in made["answers"].items()}
    return Result(
        name,
        options.scale,
        peer.durable,
        len(found),
        round(made["load_ms"], 1),
        _medians(made["ms"], task, options.warm_up),
        bool(found) and all(rows == wanted[view] for view, rows in found.items()),
    )


def _reason(name: str, peer: Peer, task: Task) -> str:
    """Run a peer; why it did not, or nothing."""
    if not peer.python.exists():
        return f"not installed: bench/peers/setup.sh {peer.environment}"
    printed, told = (task.folder / f"{name}.{kind}" for kind in ("out", "err"))
    command = [str(peer.python), "-m", f"bench.peers.{peer.module}", str(task.folder)]
    with open(printed, "w") as out, open(told, "w") as err:
        try:
            code = subprocess.run(
                [*command, *peer.arguments],
                cwd=HERE.parents[1],
                env=_environment(peer),
                stdout=out,
                stderr=err,
                timeout=PATIENCE,
            ).returncode
        except subprocess.TimeoutExpired:
            return f"not through after {PATIENCE} seconds"
    if code or not task.answer(name).exists():
        lines = told.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"exit {code}: {lines[-1] if lines else 'no message'}"
    return ""


def _environment(peer: Peer) -> dict[str, str]:
    """Ours is found by the interpreter it runs in; nothing of ours is seen by the others."""
    kept = dict(os.environ)
    if peer.environment:
        kept.pop("PYTHONPATH", None)
    return kept


def _medians(times: list[float], task: Task, warm_up: int) -> dict[str, float]:
    taken: dict[int, list[float]] = {}
    for batch, ms in zip(task.batches, times, strict=True):
        taken.setdefault(batch.rows, []).append(ms)
    return {str(rows): round(median(ms[warm_up:]), 2) for rows, ms in taken.items()}


def markdown(results: Sequence[Result], options: argparse.Namespace) -> str:
    """A line a peer."""
    sizes = [str(rows) for rows in options.rows]
    titles = " | ".join(f"{rows:,} changed" for rows in options.rows)
    lines = [
        f"Milliseconds, scale {options.scale:g}, median of {options.transactions} batches.",
        "",
        f"| | views | durable | load | {titles} | answers |",
        "|---|---:|---|---:" + "|---:" * len(sizes) + "|---|",
    ]
    for each in results:
        if each.not_run or each.ms is None:
            lines.append(f"| {each.peer} | | | | {'| ' * len(sizes)}| not run: {each.not_run} |")
            continue
        times = " | ".join(f"{each.ms[size]:,.1f}" for size in sizes)
        lines.append(
            f"| {each.peer} | {each.views} | {each.durable} | {each.load_ms:,.0f} | {times} | "
            f"{'equal' if each.equal else 'WRONG'} |"
        )
    return "\n".join(lines)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.peers", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1, help="the TPC-H scale factor")
    parser.add_argument("--transactions", type=int, default=3, help="how many of each size")
    parser.add_argument("--only", type=_peers, default=tuple(PEERS), help="some of the peers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, default=DATA, help="where tables are kept")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where figures go")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works")
    options: Any = parser.parse_args(arguments)
    options.warm_up, options.rows = 1, (1, 1000, 60_000)
    if options.quick:
        options.scale, options.rows, options.transactions = 0.01, (1, 1000), 1
    return options


def _peers(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    for each in chosen:
        if each not in PEERS:
            raise argparse.ArgumentTypeError(f"{each} is none of {', '.join(PEERS)}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
