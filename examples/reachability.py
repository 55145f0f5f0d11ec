"""Which cities can be reached, with how many flights at least, while flights come and go."""

from __future__ import annotations

from typing import Any

from everview.database.database import Database
from examples.common import database, facts, program, proved, run, show

NAME = "reachability"


def main(engine: str) -> None:
    """Open a network of flights, add a flight, and cancel one that closes a circle."""
    with database(engine) as db:
        db.datalog(program(NAME), {"flight": facts(NAME, "flight")})
        show("from Vienna:", (row[1:] for row in db.read("hops").rows() if row[0] == "Vienna"))
        epoch = db.insert("flight", [("Vienna", "Lisbon")])
        show("with a flight from Vienna to Lisbon:", _changes(db, epoch))
        epoch = db.delete("flight", [("Porto", "Vienna")])
        print("without the flight from Porto to Vienna:")
        print(f"  {len(db.changes('reach', after=epoch - 1).rows())} pairs are out of reach")
        show("from Lisbon:", (row[1:] for row in db.read("hops").rows() if row[0] == "Lisbon"))
        proved(db)


def _changes(db: Database, epoch: int) -> list[tuple[Any, ...]]:
    """What an epoch did to the number of flights: the sign, then the row."""
    rows = db.changes("hops", after=epoch - 1).rows()
    return [("+" if weight > 0 else "-", *row) for *row, weight, _ in rows]


if __name__ == "__main__":
    run(main)
