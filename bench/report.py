"""The rows of a file for people: a Markdown table beside it, and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from pathlib import Path
from statistics import median

from bench import rows as stored
from bench.rows import Measured, geometric_mean

COLUMNS = (
    "engine",
    "change",
    "view",
    "Everview ms",
    "recompute ms",
    "speedup",
    "no view ms",
    "apply ms",
    "rows changed",
    "rows fetched",
    "jobs",
    "MB read",
    "MB written",
    "state MB",
    "peak MB",
    "ms by phase",
)
COLOURS = ("#1b6ca8", "#e0872c", "#b03a48", "#4c8c4a")
LEFT, TOP, STEP, HEIGHT = 60, 40, 26, 260


def write(file: Path, fresh: Sequence[Measured]) -> None:
    """Add rows to a file, and write its table and its plots again."""
    rows = stored.write(file, fresh)
    file.with_suffix(".md").write_text(table(rows))
    for engine in sorted({row.engine for row in rows}):
        chosen = [row for row in rows if row.engine == engine]
        file.with_name(f"{file.stem}-{engine}.svg").write_text(plot(chosen))


def table(rows: Sequence[Measured]) -> str:
    """All rows, and the geometric mean over the views that were alone, as Markdown."""
    lines = [_line(COLUMNS), _line(["---", "---", "---", *["---:"] * (len(COLUMNS) - 4), "---"])]
    lines += [_line(_cells(row)) for row in rows]
    first = rows[0]
    return (
        f"# TPC-H, scale {first.scale:g}, deletes of {first.deletes} orders\n\n"
        f"{first.cores} cores, {first.memory_gb} GB of memory. A change is a part of the orders, "
        "half of it new and half of it deleted, with their lines.\n\n"
        + "\n".join([*_summary(rows), "", *lines])
        + "\n"
    )


def _summary(rows: Sequence[Measured]) -> list[str]:
    """For each engine and size: the mean of the views alone, and what an added view costs."""
    head = (
        "engine",
        "change",
        "mean speedup alone",
        "slowest",
        "ms by number of views",
        "ms a view",
    )
    lines = [_line(head), _line(["---", "---", "---:", "---:", "---", "---:"])]
    for engine, change in dict.fromkeys((row.engine, row.change) for row in rows):
        chosen = [row for row in rows if (row.engine, row.change) == (engine, change)]
        alone = [row for row in chosen if row.views == 1]
        if not alone:
            continue
        worst = min(alone, key=lambda row: row.speedup)
        counts = {1: median(row.ours_ms for row in alone)}
        counts |= {row.views: row.ours_ms for row in chosen if row.views > 1}
        most = max(counts)
        added = f"{(counts[most] - counts[1]) / (most - 1):,.1f}" if most > 1 else ""
        cells = (
            f"**{geometric_mean(row.speedup for row in alone):.2f}** of {len(alone)}",
            f"{worst.view} {worst.speedup:.2f}",
            ", ".join(f"{views}: {counts[views]:,.1f}" for views in sorted(counts)),
            added,
        )
        lines.append(_line([engine, change, *cells]))
    return lines


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cells(row: Measured) -> list[str]:
    return [
        row.engine,
        row.change,
        row.view,
        f"{row.ours_ms:,.1f}",
        f"{row.recompute_ms:,.1f}",
        f"{row.speedup:.2f}",
        f"{row.tables_ms:,.1f}",
        "" if row.apply_ms is None else f"{row.apply_ms:,.1f}",
        f"{row.rows_changed:,}",
        f"{row.rows_fetched:,}",
        str(row.jobs),
        *(f"{size / 1e6:,.2f}" for size in (row.bytes_read, row.bytes_written, row.state_bytes)),
        f"{row.peak_mb:,.0f}",
        ", ".join(f"{phase} {ms:,.0f}" for phase, ms in row.phases.items()),
    ]


def plot(rows: Sequence[Measured]) -> str:
    """The speedup of each view, a colour for each size of change, on a logarithmic scale."""
    views = list(dict.fromkeys(row.view for row in rows))
    changes = sorted({row.change for row in rows}, key=lambda change: float(change.rstrip("%")))
    low = min(0, floor(log10(min(row.speedup for row in rows))))
    high = max(1, ceil(log10(max(row.speedup for row in rows))))
    width = LEFT + STEP * (len(views) + 1)

    def down(power: float) -> float:
        return TOP + HEIGHT * (high - power) / (high - low)

    shapes = [_text(LEFT, 18, f"speedup over recomputing, {rows[0].engine}", "start")]
    for power in range(low, high + 1):
        colour = "#222" if power == 0 else "#ccc"
        shapes.append(
            f'<line x1="{LEFT}" x2="{width}" y1="{down(power):.1f}" y2="{down(power):.1f}" '
            f'stroke="{colour}"/>'
        )
        shapes.append(_text(LEFT - 8, down(power) + 4, f"{10.0**power:g}×", "end"))
    for place, view in enumerate(views):
        across = LEFT + STEP * (place + 1)
        turned = f'transform="rotate(-60 {across} {TOP + HEIGHT + 18})"'
        shapes.append(_text(across, TOP + HEIGHT + 18, view, "end", turned))
    for row in rows:
        across = LEFT + STEP * (views.index(row.view) + 1)
        colour = COLOURS[changes.index(row.change) % len(COLOURS)]
        shapes.append(
            f'<circle cx="{across}" cy="{down(log10(row.speedup)):.1f}" r="4" fill="{colour}"/>'
        )
    for place, change in enumerate(changes):
        colour = COLOURS[place % len(COLOURS)]
        shapes.append(f'<circle cx="{LEFT + 90 * place + 5}" cy="30" r="4" fill="{colour}"/>')
        shapes.append(_text(LEFT + 90 * place + 14, 34, change, "start"))
    size = f'width="{width + 20}" height="{TOP + HEIGHT + 60}"'
    style = 'font-family="sans-serif" font-size="11"'
    body = "\n".join(shapes)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{body}\n</svg>\n'


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{text}</text>'
