"""What each part of an organisation comes to, at any depth, while people move."""

from __future__ import annotations

from typing import Any

from everview.database.database import Database
from examples.common import database, facts, program, proved, run, show

NAME = "organisation"


def main(engine: str) -> None:
    """A small firm; then a manager moves with the whole team, and somebody leaves."""
    with database(engine) as db:
        db.datalog(program(NAME), {"employee": facts(NAME, "employee")})
        show("people below, and salaries with one's own:", db.read("team").rows())
        with db.transaction() as tx:
            tx.delete("employee", [("Fay", "Cleo", 410)])
            tx.insert("employee", [("Fay", "Ben", 410)])
        show("when Fay moves to Ben with her team:", _moved(db))
        db.sql("DELETE FROM employee WHERE name = 'Gus'")
        show("when Gus leaves, nobody works for:", db.read("alone").rows())
        proved(db)


def _moved(db: Database) -> list[tuple[Any, ...]]:
    """The rows of the teams that the last epoch brought."""
    rows = db.changes("team", after=db.epoch - 1).rows()
    return [tuple(row) for *row, weight, _ in rows if weight > 0]


if __name__ == "__main__":
    run(main)
