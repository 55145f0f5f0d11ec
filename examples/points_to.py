"""What each variable may point to, while the program that is analysed is edited."""

from __future__ import annotations

from examples.common import database, facts, program, proved, run, show

NAME = "points_to"
RELATIONS = ("new", "assign", "store", "load")


def main(engine: str) -> None:
    """A program of eleven statements; one is deleted, one is added, and the analysis follows."""
    with database(engine) as db:
        db.datalog(program(NAME), {name: facts(NAME, name) for name in RELATIONS})
        show("points to:", db.read("points").rows())
        show("aliases:", db.read("alias").rows())
        db.delete("assign", [("d", "a")])
        show("without d = a:", db.read("points").rows())
        db.insert("assign", [("e", "c")])
        show("with e = c:", db.read("points").rows())
        proved(db)


if __name__ == "__main__":
    run(main)
