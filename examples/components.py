"""A graph whose strongly connected parts break and heal as edges go and come."""

from __future__ import annotations

from examples.common import database, facts, program, proved, run, show

NAME = "components"


def main(engine: str) -> None:
    """A ring with a shortcut and a pair beside it."""
    with database(engine) as db:
        db.datalog(program(NAME), {"edge": facts(NAME, "edge")})
        show("parts and their sizes:", db.read("size").rows())
        db.delete("edge", [(6, 1)])
        show("without 6 → 1, the shortcut holds four together:", db.read("size").rows())
        db.delete("edge", [(4, 1)])
        show("without 4 → 1, the ring has fallen apart:", db.read("size").rows())
        db.insert("edge", [(8, 1)])
        show("with 8 → 1, all are one again:", db.read("size").rows())
        proved(db)


if __name__ == "__main__":
    run(main)
