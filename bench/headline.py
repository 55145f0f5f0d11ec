"""The table in README, from the results that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench import rows as stored
from bench.rows import ALL, Measured, geometric_mean

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
_HEAD = (
    "| Engine | Scale | Change | Deletes | Each view alone, mean | Slowest view | All together |",
    "|---|---:|---:|---|---:|---:|---:|",
)


def write(results: Path, readme: Path = README) -> None:
    """Put the table between its two marks."""
    rows = [row for file in sorted(results.glob("tpch-scale-*.json")) for row in stored.read(file)]
    before, _, rest = readme.read_text().partition(BEGIN)
    _, mark, after = rest.partition(END)
    assert mark, f"{readme.name} has no place for the table"
    readme.write_text(f"{before}{BEGIN}\n{headline(rows)}\n{END}{after}")


def headline(rows: Sequence[Measured]) -> str:
    """One line for each engine, scale, size of change and kind of deletes."""
    kinds = {(row.engine, row.scale, row.deletes, float(row.change.rstrip("%"))) for row in rows}
    lines = [
        _line([row for row in rows if (*row.key[:3], row.key[4]) == kind])
        for kind in sorted(kinds, key=lambda kind: (kind[2], kind[0], kind[1], kind[3]))
    ]
    machines = sorted({(row.cores, row.memory_gb) for row in rows})
    told = " and ".join(f"{cores} cores and {memory} GB" for cores, memory in machines)
    return "\n".join([f"Measured with {told} of memory.", "", *_HEAD, *lines])


def _line(rows: Sequence[Measured]) -> str:
    alone = [row for row in rows if row.views == 1]
    cells = [rows[0].engine, f"{rows[0].scale:g}", rows[0].change, rows[0].deletes]
    if alone:
        worst = min(alone, key=lambda row: row.speedup)
        mean = geometric_mean(row.speedup for row in alone)
        cells += [f"{_times(mean)} ({len(alone)} views)", f"{worst.view}: {_times(worst.speedup)}"]
    else:
        cells += ["", ""]
    cells += [_times(row.speedup) for row in rows if row.view == ALL] or [""]
    return f"| {' | '.join(cells)} |"


def _times(ratio: float) -> str:
    return f"{ratio:.0f}×" if ratio >= 20 else f"{ratio:.1f}×" if ratio >= 2 else f"{ratio:.2f}×"
