"""What a programmer would write for three queries of TPC-H, with dicts, one row at a time."""

from __future__ import annotations

from datetime import date
from decimal import Context, Decimal, setcontext
from typing import Any

_Q1_UNTIL = date(1998, 9, 2)
_Q3_DAY = date(1995, 3, 15)
_Q6 = (date(1994, 1, 1), date(1995, 1, 1), Decimal("0.05"), Decimal("0.07"), Decimal(24))


class Q1:
    """Sums and a count for each flag and status."""

    keys = 2
    shown = slice(2, 6)

    def __init__(self) -> None:
        setcontext(Context(prec=60))
        self.groups: dict[tuple[str, str], list[Any]] = {}

    def change(self, relation: str, row: tuple[Any, ...], sign: int) -> None:
        """One row comes or goes."""
        if relation != "lineitem":
            return
        quantity, price, discount, tax = row[4:8]
        if row[10] > _Q1_UNTIL:
            return
        key = (row[8], row[9])
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = [0, 0, 0, 0, 0, 0]
        discounted = price * (1 - discount)
        group[0] += sign * quantity
        group[1] += sign * price
        group[2] += sign * discounted
        group[3] += sign * discounted * (1 + tax)
        group[4] += sign * discount
        group[5] += sign
        if not group[5]:
            del self.groups[key]

    def result(self) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """The sums of each group."""
        return {key: tuple(group[:4]) for key, group in self.groups.items()}


class Q3:
    """Revenue of each order of a segment: orders that wait for lines, and lines for orders."""

    keys = 0
    shown = slice(0, 0)

    def __init__(self) -> None:
        setcontext(Context(prec=60))
        self.customers: dict[int, bool] = {}
        self.orders: dict[int, tuple[date, int]] = {}
        self.lines: dict[int, list[Any]] = {}
        self.revenue: dict[tuple[int, date, int], list[Any]] = {}

    def change(self, relation: str, row: tuple[Any, ...], sign: int) -> None:
        """One row comes or goes; customers come before orders."""
        if relation == "lineitem":
            if row[10] <= _Q3_DAY:
                return
            value = sign * row[5] * (1 - row[6])
            self._add(self.lines, row[0], value, sign)
            order = self.orders.get(row[0])
            if order is not None:
                self._add(self.revenue, (row[0], *order), value, sign)
        elif relation == "orders":
            if row[4] >= _Q3_DAY or not self.customers.get(row[1]):
                return
            lines = self.lines.get(row[0])
            if lines is not None:
                self._add(self.revenue, (row[0], row[4], row[7]), sign * lines[0], sign * lines[1])
            if sign > 0:
                self.orders[row[0]] = (row[4], row[7])
            else:
                del self.orders[row[0]]
        elif relation == "customer" and row[6] == "BUILDING":
            self.customers[row[0]] = sign > 0

    @staticmethod
    def _add(groups: dict[Any, list[Any]], key: Any, value: Any, count: int) -> None:
        group = groups.get(key)
        if group is None:
            group = groups[key] = [0, 0]
        group[0] += value
        group[1] += count
        if not group[1]:
            del groups[key]

    def result(self) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """Nothing: which ten orders are first is not kept."""
        return {(): ()} if self.revenue else {}


class Q6:
    """One sum."""

    keys = 0
    shown = slice(0, 1)

    def __init__(self) -> None:
        setcontext(Context(prec=60))
        self.total: Any = 0
        self.count = 0

    def change(self, relation: str, row: tuple[Any, ...], sign: int) -> None:
        """One row comes or goes."""
        if relation != "lineitem":
            return
        start, end, low, high, most = _Q6
        if start <= row[10] < end and low <= row[6] <= high and row[4] < most:
            self.total += sign * row[5] * row[6]
            self.count += sign

    def result(self) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """The sum, None without rows."""
        return {(): (self.total if self.count else None,)}


BY_HAND = {"q01": Q1, "q03": Q3, "q06": Q6}
