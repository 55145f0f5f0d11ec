"""How many of each part a product needs, and what it costs, while the design changes."""

from __future__ import annotations

from examples.common import database, facts, program, proved, run, show

NAME = "bill_of_materials"


def main(engine: str) -> None:
    """A bicycle, then one with another hub, then with cheaper spokes."""
    with database(engine) as db:
        db.sql(program(NAME))
        with db.transaction() as tx:
            for table in ("uses", "price"):
                tx.insert(table, facts(NAME, table))
        show(
            "a bicycle needs:", (row[1:] for row in db.read("needs").rows() if row[0] == "bicycle")
        )
        show("cost in cents:", db.read("cost").rows())
        db.sql("UPDATE uses SET quantity = 5 WHERE assembly = 'hub' AND part = 'bolt'")
        bolts = [row[2] for row in db.read("needs").rows() if row[:2] == ("bicycle", "bolt")]
        print("with five bolts a hub, the bicycle has", *bolts)
        db.sql("DELETE FROM uses WHERE assembly = 'wheel' AND part = 'hub'")
        show(
            "without hubs, wheels need:",
            (r[1:] for r in db.read("needs").rows() if r[0] == "wheel"),
        )
        db.upsert("price", [("spoke", 10)])
        show("with cheaper spokes:", db.read("cost").rows())
        proved(db)


if __name__ == "__main__":
    run(main)
