"""A made-up shop: its tables at the start, then one day of changes after another.

The same size and seed give the same rows, always. The shop remembers its own rows, so that what
it changes is there to be changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from demo.columns import (
    CANCELLED,
    CATEGORIES,
    OPEN,
    PAID,
    REGIONS,
    RETURNED,
    SHIPPED,
    Columns,
    Numbers,
    arrow_table,
)

FIRST_DAY = 19_723
"""2024-01-01, in days since 1970."""
DAYS = 730
MAX_LINES = 7
"""Orders have one to seven lines, four on average."""
RECENT = 0.05
"""The newest part of the orders, to which most changes go."""


@dataclass(slots=True)
class Changes:
    """What one transaction does, as whole rows by table."""

    inserted: dict[str, pa.Table] = field(default_factory=dict)
    updated: dict[str, pa.Table] = field(default_factory=dict)
    deleted: dict[str, pa.Table] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows are inserted, updated and deleted."""
        parts = (self.inserted, self.updated, self.deleted)
        return sum(rows.num_rows for part in parts for rows in part.values())


class Shop:
    """The rows of the shop as they stand, and the chance that moves them."""

    def __init__(self, lines: int, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._day = FIRST_DAY + DAYS
        self._number = 0
        self.rows: dict[str, Columns] = {}
        self.rows["customers"] = self._customers(max(lines // 20, 20))
        self.rows["products"] = self._products(max(lines // 500, 20))
        counts = self._counts(lines)
        self.rows["orders"] = self._past_orders(len(counts))
        self.rows["lines"] = self._lines(self.rows["orders"]["id"], counts)

    def tables(self) -> dict[str, pa.Table]:
        """All rows there are, by table."""
        return {name: arrow_table(name, columns) for name, columns in self.rows.items()}

    def trade(self, rows: int) -> Changes:
        """The changes of one more day, about so many rows, and the shop as it stands after them."""
        self._number += 1
        self._day += 1
        changes = Changes()
        chosen = self._orders_to_change(max(rows * 24 // 100, 6))
        paid, cancelled, edited = np.split(chosen, [len(chosen) * 5 // 12, len(chosen) * 7 // 12])
        self._cancel(cancelled, changes)
        self._settle(np.concatenate([paid, cancelled]), cancelled, changes)
        self._edit(edited, changes)
        self._sell(max(rows * 11 // 100, 2), changes)
        self._move(max(rows // 200, 1), changes)
        if self._number % 4 == 0:
            self._price(1, changes)
        return changes

    # The start

    def _customers(self, count: int) -> Columns:
        return {
            "id": np.arange(1, count + 1),
            "region": self._random.integers(0, len(REGIONS), count),
            "since": FIRST_DAY + np.sort(self._random.integers(0, DAYS, count)),
        }

    def _products(self, count: int) -> Columns:
        return {
            "id": np.arange(1, count + 1),
            "category": self._random.integers(0, len(CATEGORIES), count),
            "price": self._random.integers(99, 9_999, count),
        }

    def _counts(self, lines: int) -> Numbers:
        """The lines of each order, `lines` together."""
        counts = self._random.integers(1, MAX_LINES + 1, lines)
        ends = np.cumsum(counts)
        orders = int(np.searchsorted(ends, lines)) + 1
        counts[orders - 1] -= ends[orders - 1] - lines
        return counts[:orders]

    def _past_orders(self, count: int) -> Columns:
        recent = np.arange(count) >= count * (1 - RECENT)
        open_or_paid = self._random.integers(OPEN, PAID + 1, count)
        return {
            "id": np.arange(1, count + 1),
            "customer_id": self._some("customers", count),
            "day": FIRST_DAY + np.sort(self._random.integers(0, DAYS, count)),
            "status": np.where(recent, open_or_paid, SHIPPED),
        }

    def _lines(self, orders: Numbers, counts: Numbers) -> Columns:
        """So many lines for each order, one in ten at a tenth off."""
        total = int(counts.sum())
        starts = np.cumsum(counts) - counts
        product = self._some("products", total)
        price = self.rows["products"]["price"][product - 1]
        reduced = self._random.random(total) < 0.1
        return {
            "order_id": np.repeat(orders, counts),
            "line_no": np.arange(total) - np.repeat(starts, counts) + 1,
            "product_id": product,
            "quantity": self._random.integers(1, 10, total),
            "price": np.where(reduced, price * 9 // 10, price),
        }

    def _some(self, table: str, count: int) -> Numbers:
        """Ids of a table whose ids are 1 to n, low ones more often, as some sell and buy more."""
        known = len(self.rows[table]["id"])
        return 1 + (known * self._random.random(count) ** 1.5).astype(np.int64)

    # The days

    def _orders_to_change(self, count: int) -> Numbers:
        """Places of orders not cancelled: four of five recent, the others from any time."""
        alive = np.flatnonzero(self.rows["orders"]["status"] != CANCELLED)
        recent = alive[-max(int(len(alive) * RECENT), count) :]
        old = self._random.choice(alive, count // 5, replace=False)
        new = self._random.choice(recent, count - count // 5, replace=False)
        return self._random.permutation(np.union1d(old, new))

    def _cancel(self, places: Numbers, changes: Changes) -> None:
        """Delete the lines of some orders."""
        lines = self.rows["lines"]
        gone = np.isin(lines["order_id"], self.rows["orders"]["id"][places])
        changes.deleted["lines"] = arrow_table("lines", _at(lines, np.flatnonzero(gone)))
        self.rows["lines"] = _at(lines, np.flatnonzero(~gone))

    def _settle(self, places: Numbers, cancelled: Numbers, changes: Changes) -> None:
        """Move orders on: cancelled, or from open to paid, to shipped, to returned."""
        status = self.rows["orders"]["status"]
        status[places] = np.minimum(status[places] + 1, RETURNED)
        status[cancelled] = CANCELLED
        changes.updated["orders"] = arrow_table("orders", _at(self.rows["orders"], places))

    def _edit(self, places: Numbers, changes: Changes) -> None:
        """Change the quantity of one line of each of some orders."""
        lines = self.rows["lines"]
        found = np.searchsorted(lines["order_id"], self.rows["orders"]["id"][places])
        lines["quantity"][found] = 1 + lines["quantity"][found] % 9
        changes.updated["lines"] = arrow_table("lines", _at(lines, found))

    def _sell(self, count: int, changes: Changes) -> None:
        first = int(self.rows["orders"]["id"][-1]) + 1
        orders = {
            "id": np.arange(first, first + count),
            "customer_id": self._some("customers", count),
            "day": np.full(count, self._day),
            "status": np.full(count, OPEN),
        }
        lines = self._lines(orders["id"], self._random.integers(1, MAX_LINES + 1, count))
        for table, fresh in (("orders", orders), ("lines", lines)):
            changes.inserted[table] = arrow_table(table, fresh)
            self.rows[table] = {
                name: np.concatenate([column, fresh[name]])
                for name, column in self.rows[table].items()
            }

    def _move(self, count: int, changes: Changes) -> None:
        """Some customers move to the next region."""
        customers = self.rows["customers"]
        places = self._random.choice(len(customers["id"]), count, replace=False)
        customers["region"][places] = (customers["region"][places] + 1) % len(REGIONS)
        changes.updated["customers"] = arrow_table("customers", _at(customers, places))

    def _price(self, count: int, changes: Changes) -> None:
        """Some products cost a little more from now on."""
        products = self.rows["products"]
        places = self._random.choice(len(products["id"]), count, replace=False)
        products["price"][places] += 10
        changes.updated["products"] = arrow_table("products", _at(products, places))


def _at(columns: Columns, places: Numbers) -> Columns:
    return {name: column[places] for name, column in columns.items()}
