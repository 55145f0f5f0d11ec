"""Random rows of TPC-H whose values are those that its queries ask for, and a stream of events."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from bench.tables import queries

COLUMNS = {
    "region": "r_regionkey INT, r_name STRING, r_comment STRING",
    "nation": "n_nationkey INT, n_name STRING, n_regionkey INT, n_comment STRING",
    "part": "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, "
    "p_size INT, p_container STRING, p_retailprice DECIMAL(15,2), p_comment STRING",
    "supplier": "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey INT, "
    "s_phone STRING, s_acctbal DECIMAL(15,2), s_comment STRING",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, "
    "ps_supplycost DECIMAL(15,2), ps_comment STRING",
    "customer": "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey INT, "
    "c_phone STRING, c_acctbal DECIMAL(15,2), c_mktsegment STRING, c_comment STRING",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, "
    "o_totalprice DECIMAL(15,2), o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, "
    "o_shippriority INT, o_comment STRING",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, "
    "l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), "
    "l_tax DECIMAL(15,2), l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, "
    "l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING, "
    "l_comment STRING",
}
KEYS = {
    "region": "r_regionkey",
    "nation": "n_nationkey",
    "part": "p_partkey",
    "supplier": "s_suppkey",
    "partsupp": "ps_partkey, ps_suppkey",
    "customer": "c_custkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey, l_linenumber",
}
CONSTANT_WORK = ("01", "03", "05", "06", "07", "08", "09", "10", "12", "14", "19")
NATIONS = ("FRANCE", "GERMANY", "BRAZIL", "CHINA")


def declarations(*, nulls: bool) -> str:
    """The eight tables; with `nulls`, only their keys are NOT NULL."""
    made = []
    for name, columns in COLUMNS.items():
        listed = [each if nulls else f"{each} NOT NULL" for each in columns.split(", ")]
        made.append(f"CREATE TABLE {name} ({', '.join(listed)}, PRIMARY KEY ({KEYS[name]}));\n")
    return "".join(made)


def views(names: tuple[str, ...] = CONSTANT_WORK) -> dict[str, str]:
    """The queries of TPC-H that compile to constant work, by the name of a view."""
    texts = queries()
    return {f"q{name}": texts[f"q{name}"] for name in names}


class Events:
    """Rows of the small tables, and a stream of orders and lines that come and go."""

    def __init__(self, seed: int, *, nulls: bool) -> None:
        self.random = Random(seed)
        self.nulls = nulls
        self.alive: dict[str, dict[Any, tuple[Any, ...]]] = {"orders": {}, "lineitem": {}}
        self.next = 1

    def dimensions(self) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of the six tables that lines and orders refer to."""
        one = self._one
        money = self._money
        return {
            "region": [(0, "ASIA", ""), (1, "AMERICA", None if self.nulls else "")],
            "nation": [(n, name, one([0, 1]), "") for n, name in enumerate(NATIONS)],
            "part": [
                (
                    *(n, one(["dark green mug", "red mug"]), "m"),
                    one(["Brand#12", "Brand#23", "Brand#34"]),
                    one(["ECONOMY ANODIZED STEEL", "PROMO BRASS"]),
                    one([3, 8, 12]),
                    one(["SM CASE", "MED BOX", "LG PKG"]),
                    *(money(), ""),
                )
                for n in range(8)
            ],
            "supplier": [(n, f"s{n}", "a", one(range(4)), "p", money(), "") for n in range(6)],
            "partsupp": [(p, s, 1, money(), "") for p in range(8) for s in range(6)],
            "customer": [
                (n, f"c{n}", "a", one(range(4)), "p", money(), one(["BUILDING", "X"]), "")
                for n in range(10)
            ],
        }

    def stream(self, number: int) -> Iterator[tuple[str, tuple[Any, ...], int]]:
        """Events: an order with its lines comes, line by line, or one of these rows goes."""
        made = 0
        while made < number:
            if self.alive["lineitem"] and self.random.random() < 0.45:
                relation = self.random.choice(["orders", "lineitem", "lineitem", "lineitem"])
                rows = self.alive[relation]
                if rows:
                    row = rows.pop(self.random.choice(list(rows)))
                    yield relation, row, -1
                    made += 1
                continue
            order = self._order()
            arriving = [("orders", order), *(("lineitem", line) for line in self._lines(order))]
            self.random.shuffle(arriving)
            for relation, row in arriving:
                key = row[0] if relation == "orders" else (row[0], row[3])
                self.alive[relation][key] = row
                yield relation, row, 1
                made += 1

    def _order(self) -> tuple[Any, ...]:
        key, self.next = self.next, self.next + 1
        day = self._day(date(1993, 9, 1), 900)
        priority = self._one(["1-URGENT", "2-HIGH", "3-MEDIUM"])
        return (
            *(key, self._one(range(11)), "O", self._money(), day),
            *(priority, "c", self._one([0, 1]), ""),
        )

    def _lines(self, order: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return [
            (
                *(order[0], self._one(range(9)), self._one(range(6)), number),
                Decimal(self.random.choice([5, 15, 23, 30])).quantize(Decimal("0.01")),
                *(self._money(), self._percent(), self._percent()),
                *(self._one("RAN"), self._one("OF")),
                *(self._day(date(1994, 1, 1), 900) for _ in range(3)),
                self._one(["DELIVER IN PERSON", "NONE"]),
                self._one(["AIR", "MAIL", "SHIP"]),
                "",
            )
            for number in range(self.random.randint(0, 5))
        ]

    def _one(self, choices: Any) -> Any:
        return None if self._is_null() else self.random.choice(choices)

    def _is_null(self) -> bool:
        return self.nulls and self.random.random() < 0.08

    def _money(self) -> Decimal | None:
        return None if self._is_null() else Decimal(self.random.randint(100, 99999)).scaleb(-2)

    def _percent(self) -> Decimal | None:
        return None if self._is_null() else Decimal(self.random.randint(4, 8)).scaleb(-2)

    def _day(self, start: date, days: int) -> date | None:
        return None if self._is_null() else start + timedelta(self.random.randrange(days))
