"""Revenue by day and the best sellers, while orders come in, come back and are corrected."""

from __future__ import annotations

from typing import Any

from everview.database.database import Database
from examples.common import database, facts, program, proved, run, show

NAME = "sales_dashboard"


def main(engine: str) -> None:
    """A week of orders; then a day's business, and a correction that comes days late."""
    with database(engine) as db:
        db.sql(program(NAME))
        with db.transaction() as tx:
            for table in ("orders", "returns"):
                tx.insert(table, facts(NAME, table))
        show("day, revenue, last three days:", _plain(db.read("trend").rows()))
        show("best sellers:", _plain(db.read("best_sellers").rows()))

        with db.transaction() as tx:
            tx.insert("orders", [(9, "2026-03-08", "chair", "89.00")])
            tx.insert("returns", [(8, "2026-03-08", "45.50")])
        show("after an order and a return, best sellers:", _plain(db.read("best_sellers").rows()))

        epoch = db.epoch
        db.sql("UPDATE orders SET amount = 35.00 WHERE id = 1")
        show("a correction of March 1 changes three days of the trend:", _changes(db, epoch))
        for each in db.status():
            if each.kind == "view":
                print(f"{each.name}: {each.rows} rows, {each.refresh}")
        proved(db)


def _changes(db: Database, after: int) -> list[tuple[Any, ...]]:
    """What happened to the trend after an epoch: the day, the sign, and the row's figures."""
    rows = db.changes("trend", after=after).rows()
    return _plain([(day, "+" if w > 0 else "-", *figures) for day, *figures, w, _ in rows])


def _plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows whose values print alike on every engine."""
    return [tuple(map(str, row)) for row in rows]


if __name__ == "__main__":
    run(main)
