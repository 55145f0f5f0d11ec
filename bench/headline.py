"""The table in README, from the results that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench import driver_rows
from bench import rows as stored
from bench.driver_rows import Figure
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
    figures = [row for kind in _KINDS for row in driver_rows.read(results, kind)]
    whole = headline(rows) + on_executors([row for row in figures if isinstance(row, Figure)])
    readme.write_text(f"{before}{BEGIN}\n{whole}\n{END}{after}")


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


_KINDS = {
    "frame": "a DataFrame of ten orders",
    "large": "a DataFrame",
    "unheld": "Arrow, nothing held",
}
"""What comes, by the measures of `bench.driver` that stand in the second table."""


def on_executors(rows: Sequence[Figure]) -> str:
    """One line for each measure, scale and size of change; nothing without rows."""
    if not rows:
        return ""
    lines = []
    for key in dict.fromkeys((row.measure, row.scale, row.change, row.memory) for row in rows):
        chosen = [r for r in rows if (r.measure, r.scale, r.change, r.memory) == key]
        measure, scale, change, memory = key
        worst = min(chosen, key=lambda row: row.ratio)
        mean = geometric_mean(row.ratio for row in chosen)
        many = len(chosen) > 1
        views = f"{len(chosen)} views, each alone" if many else chosen[0].view
        lost = sum(row.ratio < 1 for row in chosen)
        cells = [
            _KINDS[measure],
            f"{scale:g}",
            f"{float(change.rstrip('%')):.2g}%",
            memory,
            views,
            _times(mean),
        ]
        cells += [f"{worst.view}: {_times(worst.ratio)}" if many else "", str(lost)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(["", "", *_EXECUTORS_HEAD, *lines])


_EXECUTORS_HEAD = (
    "On Spark, beside plain Spark that writes the same change as Parquet, recomputes the views and "
    "writes them:",
    "",
    "| The change comes as | Scale | Change | `memory` | Views | Mean | Slowest | Slower |",
    "|---|---:|---:|---|---|---:|---:|---:|",
)


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
