"""What is done on a cluster, step by step, and what each step must make of the tables.

A step acts on the database, in the driver, and says in SQL what becomes of plain tables in DuckDB.
The same text makes the same rows on both: Spark's executors and the tests both have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.database.database import Database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 200_000
DECLARATIONS = {
    "customers": "id BIGINT PRIMARY KEY, region STRING",
    "orders": "id BIGINT PRIMARY KEY, customer BIGINT, amount DECIMAL(12,2)",
    "staged": "id BIGINT PRIMARY KEY, customer BIGINT, amount DECIMAL(12,2)",
    "edges": "src BIGINT, dst BIGINT",
}
VIEWS = {
    "by_region": "SELECT c.region, SUM(o.amount) AS total, COUNT(*) AS n FROM orders AS o "
    "JOIN customers AS c ON c.id = o.customer GROUP BY c.region",
    "largest": "SELECT id, customer, amount FROM orders WHERE amount IS NOT NULL "
    "ORDER BY amount DESC, id LIMIT 50",
    "amounts": "SELECT DISTINCT customer, amount FROM orders WHERE customer < 500",
}
RECURSIVE = {
    "reach": "WITH RECURSIVE reach(src, dst) AS (SELECT src, dst FROM edges UNION "
    "SELECT reach.src, edges.dst FROM reach JOIN edges ON edges.src = reach.dst) "
    "SELECT src, dst FROM reach",
}


def orders(numbers: str, cents: str = "id % 997") -> str:
    """Orders whose keys are those of a query `numbers` with a column `id`; some amounts NULL."""
    amount = f"CAST(({cents}) * 0.01 AS DECIMAL(12,2))"
    return (
        "SELECT CAST(id AS BIGINT) AS id, CAST(id % 1000 AS BIGINT) AS customer, "
        f"CASE WHEN id % 101 = 0 THEN NULL ELSE {amount} END AS amount FROM ({numbers}) AS numbers"
    )


def numbers(first: int, stop: int, step: int = 1) -> str:
    """The numbers from `first` to `stop`, as both engines spell them."""
    return f"SELECT id FROM range({first}, {stop}, {step}) AS t(id)"


FILLED = {
    "customers": "SELECT CAST(id AS BIGINT) AS id, CASE WHEN id % 50 = 0 THEN NULL "
    f"ELSE CONCAT('region ', CAST(id % 20 AS STRING)) END AS region FROM ({numbers(0, 1000)}) AS n",
    "orders": orders(numbers(0, ROWS)),
    "staged": orders(numbers(0, 2 * ROWS, 80), "id % 499"),
    "edges": "SELECT CAST(id AS BIGINT) AS src, CAST(FLOOR(id / 3) AS BIGINT) AS dst "
    f"FROM ({numbers(1, 1500)}) AS n",
}

Act = Callable[[Database, "SparkSession"], object]


@dataclass(frozen=True)
class Step:
    """One transaction or piece of upkeep, and the same to plain tables, as SQL."""

    act: Act
    model: str = ""


@dataclass(frozen=True)
class Case:
    """Steps over tables, in one gear; None lets the engine choose."""

    steps: tuple[Step, ...]
    gear: str | None = None
    filled: bool = True
    recursive: bool = False
    forced: bool = False
    """Whether everything that executors may do is left to them, however few the rows."""

    @property
    def views(self) -> dict[str, str]:
        """The views of the store that it runs on."""
        return RECURSIVE if self.recursive else VIEWS


def _load(db: Database, spark: SparkSession) -> None:
    with db.transaction() as tx:
        for name, rows in FILLED.items():
            tx.insert(name, spark.sql(rows))


def _inserted(rows: str, table: str = "orders") -> Step:
    return Step(lambda db, spark: db.insert(table, spark.sql(rows)), f"INSERT INTO {table} {rows}")


def _deleted(rows: str, table: str = "orders") -> Step:
    gone = f"DELETE FROM {table} AS t USING ({rows}) AS g WHERE t.id = g.id"
    return Step(lambda db, spark: db.delete(table, spark.sql(rows)), gone)


def _upserted(rows: str) -> Step:
    replaced = f"INSERT OR REPLACE INTO orders {rows}"
    return Step(lambda db, spark: db.upsert("orders", spark.sql(rows)), replaced)


def _by_hand(number: int) -> Step:
    """Few rows, as tuples: a hundred come, fifty of the step before go, fifty are replaced."""
    first = 10_000_000 + 1000 * number
    come = [(first + i, i % 1000, None if i % 10 == 0 else "12.50") for i in range(100)]
    gone = [(first - 1000 + i, i % 1000, "12.50") for i in range(1, 100, 2)] if number else []
    changed = [(3 * i, 7, "999.99") for i in range(50 * number, 50 * number + 50)]

    def act(db: Database, _: SparkSession) -> None:
        with db.transaction() as tx:
            tx.insert("orders", come)
            tx.delete("orders", gone)
            tx.upsert("orders", changed)

    values = ", ".join(f"({i}, {c}, {'NULL' if a is None else a})" for i, c, a in come)
    replaced = ", ".join(f"({i}, {c}, {a})" for i, c, a in changed)
    keys = ", ".join(str(row[0]) for row in gone) or "NULL"
    return Step(
        act,
        f"INSERT INTO orders VALUES {values}; DELETE FROM orders WHERE id IN ({keys});"
        f"INSERT OR REPLACE INTO orders VALUES {replaced}",
    )


def _statement(text: str, model: str = "") -> Step:
    return Step(lambda db, _: db.sql(text), model or text)


def _audited(db: Database, _: SparkSession) -> None:
    assert db.audit().ok, "a view is not its query"


def _retained(db: Database, _: SparkSession) -> None:
    db.retain(1, grace=0)
    assert len(db.store.epochs()) == 1, "old epochs are there"


def _followed(come: str, gone: str) -> Step:
    """Edges come and go in one transaction."""

    def act(db: Database, spark: SparkSession) -> None:
        with db.transaction() as tx:
            tx.insert("edges", spark.sql(come))
            tx.delete("edges", spark.sql(gone))

    removed = f"DELETE FROM edges AS t USING ({gone}) AS g WHERE t.src = g.src AND t.dst = g.dst"
    return Step(act, f"INSERT INTO edges {come}; {removed}")


def _edges(first: int, stop: int) -> str:
    return (
        "SELECT CAST(id AS BIGINT) AS src, CAST(FLOOR(id / 3) AS BIGINT) AS dst "
        f"FROM ({numbers(first, stop)}) AS n"
    )


_BACK = "SELECT CAST(0 AS BIGINT) AS src, CAST(1499 AS BIGINT) AS dst"
"""From the root of the tree down to a leaf, which closes a cycle."""
_GRAPH = (
    _followed(f"{_edges(1500, 1700)} UNION ALL {_BACK}", _edges(900, 950)),
    _followed(_edges(900, 920), f"{_edges(1600, 1700)} UNION ALL {_BACK}"),
)
_NEW = orders(numbers(ROWS, ROWS + 30_000))
_GONE = orders(numbers(3, ROWS, 10))
_OTHER = orders(numbers(5, 2 * ROWS, 15), "id % 463")
_FEW_NEW = orders(numbers(ROWS, ROWS + 500))
_FEW_GONE = orders(numbers(3, ROWS, 990))
_FEW_OTHER = orders(numbers(5, 2 * ROWS, 1501), "id % 463")
_MERGE = Step(
    lambda db, _: db.sql(
        "MERGE INTO orders AS t USING staged AS s ON t.id = s.id "
        "WHEN MATCHED AND s.amount IS NULL THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET amount = s.amount "
        "WHEN NOT MATCHED THEN INSERT (id, customer, amount) VALUES (s.id, s.customer, s.amount)"
    ),
    "CREATE TEMP TABLE added AS SELECT * FROM staged ANTI JOIN orders USING (id);"
    "DELETE FROM orders USING staged AS s WHERE orders.id = s.id AND s.amount IS NULL;"
    "UPDATE orders SET amount = s.amount FROM staged AS s WHERE orders.id = s.id;"
    "INSERT INTO orders FROM added; DROP TABLE added",
)
_COPIED = _statement(
    f"INSERT INTO orders SELECT id + {4 * ROWS} AS id, customer, amount FROM orders "
    "WHERE customer < 300"
)
LARGE, BY_JOBS = "Spark SQL throughout", "slices fetched by Spark jobs"
"""Gears, by the names that the tests of gears have for them."""

CASES = {
    "load": Case(
        (Step(_load, "; ".join(f"INSERT INTO {n} {r}" for n, r in FILLED.items())),), filled=False
    ),
    "small gear": Case(tuple(map(_by_hand, range(4)))),
    "large gear": Case((_inserted(_NEW), _deleted(_GONE)), LARGE),
    "slices fetched by jobs": Case(tuple(map(_by_hand, range(3))), BY_JOBS),
    "frames, slices fetched by jobs": Case((_inserted(_FEW_NEW), _deleted(_FEW_GONE)), BY_JOBS),
    "upsert": Case((_upserted(_FEW_OTHER), _upserted(_OTHER))),
    "upsert, large gear": Case((_upserted(_OTHER),), LARGE),
    "delete": Case((_deleted(_FEW_GONE), _deleted(orders(numbers(4, ROWS, 10))))),
    "merge": Case((_MERGE,)),
    "merge, large gear": Case((_MERGE,), LARGE),
    "insert select": Case((_COPIED,)),
    "insert select, large gear": Case((_COPIED,), LARGE),
    "recursion": Case(_GRAPH, recursive=True),
    "recursion, large gear": Case(_GRAPH, LARGE, recursive=True),
    "recursion, iterations on executors": Case(_GRAPH[:1], LARGE, recursive=True, forced=True),
    "large changes on executors": Case(
        (_inserted(_NEW), _deleted(_GONE), _upserted(_FEW_OTHER), Step(lambda db, _: db.compact())),
        LARGE,
        forced=True,
    ),
    "compaction": Case(
        (_by_hand(0), _inserted(_FEW_NEW), Step(lambda db, _: db.compact()), _by_hand(1))
    ),
    "audit": Case((_inserted(_FEW_NEW), Step(_audited), _deleted(_FEW_GONE), Step(_audited))),
    "retention": Case(
        (_by_hand(0), _inserted(_FEW_NEW), Step(_retained), _by_hand(1), Step(_retained))
    ),
}
