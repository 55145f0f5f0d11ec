"""Evolution: the layouts that a table had before it was altered, so that its files are still read.

A column is known by a number for as long as it exists, whatever it is called. A column that is
dropped and added again has another number, so values of the first are never taken for its own.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from everview.expr.types import Column, Schema, names
from everview.runtime.protocol import FormerLayout
from everview.store.layouts import unpacked_value


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of files that were written before the epoch `until`, and their numbers."""

    until: int
    columns: Schema
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Evolution:
    """The numbers of a table's columns, and its former layouts; the first has the number 0.

    Without numbers the columns are counted from 0. `fills` are, by number, the values of rows that
    were written before a column was added, if they are not NULL.
    """

    numbers: tuple[int, ...] = ()
    layouts: tuple[Layout, ...] = ()
    fills: tuple[tuple[int, bytes], ...] = ()

    def numbered(self, columns: Schema) -> dict[str, int]:
        """The number of each column."""
        return dict(zip(names(columns), self.numbers or range(len(columns)), strict=True))

    def next_number(self, columns: Schema) -> int:
        """A number that no column has had."""
        former = (number for layout in self.layouts for number in layout.numbers)
        return max((*self.numbered(columns).values(), *former)) + 1

    def followed_by(
        self, columns: Schema, numbers: tuple[int, ...], fills: Mapping[int, bytes], epoch: int
    ) -> Evolution:
        """The evolution after an epoch that alters a table with these `columns`."""
        left = Layout(epoch, columns, tuple(self.numbered(columns).values()))
        kept = {number: fill for number, fill in self.fills if number in numbers}
        return Evolution(numbers, (*self.layouts, left), tuple((kept | dict(fills)).items()))

    def former(self, columns: Schema) -> tuple[FormerLayout, ...]:
        """What each column was in each former layout."""
        now = self.numbered(columns)
        return tuple(_former(layout, now) for layout in self.layouts)

    def fills_of(self, columns: Schema) -> tuple[tuple[str, bytes], ...]:
        """By column, the value in rows of files that lack it."""
        known = dict(self.fills)
        now = self.numbered(columns)
        return tuple((name, known[number]) for name, number in now.items() if number in known)

    def layout_at(self, epoch: int) -> int | None:
        """The layout in which an epoch wrote, None for that of now."""
        return next((at for at, each in enumerate(self.layouts) if epoch < each.until), None)


UNALTERED = Evolution()


def _former(layout: Layout, now: Mapping[str, int]) -> FormerLayout:
    then = dict(zip(layout.numbers, layout.columns, strict=True))
    found = ((name, then.get(number)) for name, number in now.items())
    return FormerLayout(tuple((name, column) for name, column in found if column is not None))


def evolution_from(raw: Mapping[str, Any]) -> Evolution:
    """An evolution as `evolution_json` wrote it; a version before wrote nothing."""
    layouts = tuple(
        Layout(
            int(each["until"]),
            tuple(Column(name, type_) for name, type_ in each["columns"]),
            tuple(map(int, each["numbers"])),
        )
        for each in raw.get("layouts", ())
    )
    fills = tuple((int(number), b64decode(fill)) for number, fill in raw.get("fills", ()))
    return Evolution(tuple(map(int, raw.get("numbers", ()))), layouts, fills)


def evolution_json(evolution: Evolution) -> dict[str, Any]:
    """An evolution, as JSON."""
    layouts = [
        {
            "until": each.until,
            "columns": [[column.name, column.type] for column in each.columns],
            "numbers": list(each.numbers),
        }
        for each in evolution.layouts
    ]
    fills = [[number, b64encode(fill).decode()] for number, fill in evolution.fills]
    return {"numbers": list(evolution.numbers), "layouts": layouts, "fills": fills}


def evolution_problems(evolution: Evolution, columns: Schema) -> Iterator[str]:
    """Why an evolution cannot be that of a table with these columns."""
    for numbers, schema in (
        (evolution.numbers or tuple(range(len(columns))), columns),
        *((layout.numbers, layout.columns) for layout in evolution.layouts),
    ):
        if len(numbers) != len(schema) or len({*numbers}) != len(numbers):
            yield "a layout does not number its columns"
    for _, fill in evolution.fills:
        try:
            unpacked_value(fill)
        except (pa.ArrowException, KeyError, IndexError, OSError) as wrong:
            yield f"a column has no readable value: {wrong!s:.60}"
