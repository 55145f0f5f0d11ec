"""The views that both sides keep: each joins orders with lines, and groups."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """A grouped join: its keys, its sums, and the lines it is about."""

    name: str
    keys: dict[str, str]
    sums: dict[str, str]
    where: str = ""

    @property
    def query(self) -> str:
        """The view as Spark SQL."""
        keys = ", ".join(f"{text} AS {name}" for name, text in self.keys.items())
        sums = ", ".join(f"SUM({text}) AS {name}" for name, text in self.sums.items())
        return (
            f"SELECT {keys}, {sums}, COUNT(*) AS n "
            f"FROM orders JOIN lineitem ON o_orderkey = l_orderkey{self.ending}"
        )

    @property
    def ending(self) -> str:
        """Which lines, in which groups."""
        where = f" WHERE {self.where}" if self.where else ""
        return f"{where} GROUP BY {', '.join(self.keys.values())}"


VIEWS = (
    View(
        "revenue_by_customer",
        {"customer": "o_custkey"},
        {"revenue": "l_extendedprice * (1 - l_discount)"},
    ),
    View(
        "sales_by_month",
        {
            "sales_year": "YEAR(o_orderdate)",
            "sales_month": "MONTH(o_orderdate)",
            "priority": "o_orderpriority",
        },
        {"quantity": "l_quantity", "sales": "l_extendedprice"},
    ),
    View(
        "late_shipping_by_mode",
        {"mode": "l_shipmode", "status": "o_orderstatus"},
        {"price": "l_extendedprice", "tax": "l_extendedprice * l_tax"},
        "l_shipdate >= DATE '1995-03-15' AND l_discount >= 0.02",
    ),
)
