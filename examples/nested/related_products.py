"""Products with lists of what is similar to them and what is bought with them."""

from __future__ import annotations

from examples.common import DATA, database, facts, proved, run, show

NAME = "related_products"


def main(engine: str) -> None:
    """A small shop, a new product, and a basket that is taken back."""
    with database(engine) as db:
        db.sql(
            "CREATE TABLE products (id INT PRIMARY KEY, name STRING, kind STRING, maker STRING);"
            "CREATE TABLE lines (basket INT, product INT)"
        )
        db.insert("products", facts(NAME, "products"))
        db.insert("lines", facts(NAME, "lines"))
        print("views:", *db.load_module(DATA / NAME / "program.py"))
        show("name, similar, bought together, sold:", db.read(NAME).rows())
        seen = db.epoch
        db.insert("products", [(5, "kettle", "kitchen", "Acme"), (6, "rug", "floor", "Dunn")])
        added = db.changes(NAME, after=seen, path="similar").to_arrow().select(["element", "_w"])
        show(
            "what a kettle adds to lists:",
            map(tuple, zip(*added.to_pydict().values(), strict=True)),
        )
        db.sql("DELETE FROM lines WHERE basket = 101; INSERT INTO lines VALUES (100, 6)")
        show("without basket 101:", db.read(NAME).rows())
        show("alone:", db.read("alone").rows())
        proved(db)


if __name__ == "__main__":
    run(main)
