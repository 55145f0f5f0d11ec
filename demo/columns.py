"""Numbers in numpy as the Arrow columns of the shop's tables, without a loop over rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]
Columns = dict[str, Numbers]
"""A table in memory: dates as days since 1970, money in cents, words by their place in a list."""

REGIONS = ("Alps", "Coast", "East", "Highlands", "Islands", "Lakes", "North", "Plains", "South")
CATEGORIES = ("books", "garden", "kitchen", "light", "music", "office", "outdoor", "toys", "travel")
STATUSES = ("open", "paid", "shipped", "returned", "cancelled")
OPEN, PAID, SHIPPED, RETURNED, CANCELLED = range(len(STATUSES))


def arrow_table(name: str, columns: Mapping[str, Numbers]) -> pa.Table:
    """Rows of one of the shop's tables as Arrow."""
    return pa.table({column: make(columns) for column, make in _COLUMNS[name].items()})


Make = Callable[[Mapping[str, Numbers]], pa.Array]


def _number(column: str, type_: pa.DataType | None = None) -> Make:
    return lambda rows: pa.array(rows[column]).cast(type_ or pa.int64())


def _date(column: str) -> Make:
    return lambda rows: pa.array(rows[column].astype(np.int32)).cast(pa.date32())


def _word(column: str, words: Sequence[str]) -> Make:
    return lambda rows: pa.array(words).take(pa.array(rows[column]))


def _title(prefix: str) -> Make:
    return lambda rows: pc.binary_join_element_wise(prefix, pa.array(rows["id"]).cast("string"), "")


def _money(column: str) -> Make:
    """Cents that are not negative are decimals of scale two as they stand, in 16 bytes each."""

    def make(rows: Mapping[str, Numbers]) -> pa.Array:
        cents = rows[column]
        words = np.zeros((len(cents), 2), dtype="<i8")
        words[:, 0] = cents
        return pa.Array.from_buffers(
            pa.decimal128(10, 2), len(cents), [None, pa.py_buffer(words.tobytes())]
        )

    return make


_COLUMNS: dict[str, dict[str, Make]] = {
    "customers": {
        "id": _number("id"),
        "name": _title("Customer "),
        "region": _word("region", REGIONS),
        "since": _date("since"),
    },
    "products": {
        "id": _number("id"),
        "name": _title("Product "),
        "category": _word("category", CATEGORIES),
        "price": _money("price"),
    },
    "orders": {
        "id": _number("id"),
        "customer_id": _number("customer_id"),
        "day": _date("day"),
        "status": _word("status", STATUSES),
    },
    "lines": {
        "order_id": _number("order_id"),
        "line_no": _number("line_no", pa.int32()),
        "product_id": _number("product_id"),
        "quantity": _number("quantity", pa.int32()),
        "price": _money("price"),
    },
}
