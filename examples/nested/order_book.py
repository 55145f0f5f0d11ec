"""An order book for each instrument: orders come, are filled in part, and are taken back."""

from __future__ import annotations

from examples.common import DATA, database, facts, proved, run, show

NAME = "order_book"


def main(engine: str) -> None:
    """Three books, one of which is crossed for a moment."""
    with database(engine) as db:
        db.sql(
            "CREATE TABLE instruments (symbol STRING PRIMARY KEY);"
            "CREATE TABLE orders (number INT PRIMARY KEY, symbol STRING, kind STRING, "
            "price INT, quantity INT)"
        )
        for table in ("instruments", "orders"):
            db.insert(table, facts(NAME, table))
        print("views:", *db.load_module(DATA / NAME / "program.py"))
        show("symbol, bids, asks:", db.read("books").rows())
        show("symbol, bid, ask, bought, sold:", db.read("quotes").rows())
        seen = db.epoch
        db.insert("orders", [(5, "ACME", "sell", 99, 30)])
        came = db.changes("books", after=seen, path="asks").to_arrow().to_pylist()
        show("added to asks:", [(row["price"], row["quantity"], row["_w"]) for row in came])
        show("crossed:", db.read("crossed").rows())
        db.sql(
            "DELETE FROM orders WHERE number = 1; UPDATE orders SET quantity = 20 WHERE number = 5"
        )
        show("crossed after a trade:", db.read("crossed").rows())
        show("symbol, bid, ask, bought, sold:", db.read("quotes").rows())
        stored = sorted(each.name for each in db.status() if each.kind == "view")
        print("stored:", ", ".join(stored))
        proved(db)


if __name__ == "__main__":
    run(main)
