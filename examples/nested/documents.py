"""Documents with sections and comments, which change deep inside."""

from __future__ import annotations

from everview.database.database import Database
from examples.common import DATA, database, facts, proved, run, show

NAME = "documents"


def main(engine: str) -> None:
    """Two documents, a comment that is corrected, one that comes, and a section that goes."""
    with database(engine) as db:
        db.sql(
            "CREATE TABLE documents (id INT PRIMARY KEY, title STRING);"
            "CREATE TABLE sections (id INT PRIMARY KEY, document INT, heading STRING);"
            "CREATE TABLE comments (id INT PRIMARY KEY, section INT, author STRING, said STRING)"
        )
        for table in ("documents", "sections", "comments"):
            db.insert(table, facts(NAME, table))
        print("views:", *db.load_module(DATA / NAME / "program.py"))
        show("outlines:", db.read("outlines").rows())
        show("busy sections:", db.read("busy_sections").rows())
        seen = db.epoch
        db.sql("UPDATE comments SET said = 'Version 3' WHERE id = 101")
        told(db, "a comment is corrected:", seen)
        seen = db.epoch
        db.insert("comments", [(103, 20, "Cem", "And a wrong sum")])
        told(db, "a comment comes:", seen)
        show("busy sections:", db.read("busy_sections").rows())
        db.sql("DELETE FROM sections WHERE id = 10; DELETE FROM comments WHERE section = 10")
        show("without a section:", db.read("outlines").rows())
        show("authors:", db.read("authors").rows())
        stored = sorted(each.name for each in db.status() if each.kind == "view")
        print("stored:", ", ".join(stored))
        proved(db)


def told(db: Database, title: str, seen: int) -> None:
    """Print how many rows a change moved, at each depth."""
    paths = {"documents": None, "sections": "sections", "comments": "sections.comments"}
    feeds = {of: db.changes("outlines", after=seen, path=path) for of, path in paths.items()}
    print(title, ", ".join(f"{len(feed.rows())} of {of}" for of, feed in feeds.items()))


if __name__ == "__main__":
    run(main)
