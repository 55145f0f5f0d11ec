"""Views against plain Spark SQL over the tables: as bags, both ways, all in one query."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from everview.database.database import Database
from everview.expr.types import names
from everview_fuzz.check.oracle import Claim
from plain_spark import Digests

RECORDED = Path(__file__).with_name("answers.json")

PLAIN = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # For a handful of rows, compiling code costs more than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


def differences(db: Database, queries: dict[str, str]) -> list[tuple[str, str, int]]:
    """(view, row, weight) for every row that a view lacks (+) or has too many (−).

    `queries` are the views' texts in order of declaration. The tables are read back row by row
    and given to Spark afresh, so nothing of the store is used to compute what is expected. Without
    Spark, the database's own audit answers, and what Spark was seen to answer to the same texts
    over the same rows.
    """
    if db.engine.name != "spark":
        denied = digests().denied(claims(db, queries))
        return [(view, "not what Spark answered", 0) for view in denied] + [
            (view.view, str(row), weight)
            for view in db.audit()
            for rows, weight in ((view.missing, 1), (view.surplus, -1))
            for row in rows
        ]
    session = db.engine.session.newSession()
    for key, value in PLAIN.items():
        session.conf.set(key, value)
    made = []
    try:
        for table in db.catalog.tables:
            rows = session.createDataFrame(db.read(table).to_arrow())
            rows.createOrReplaceTempView(table)
            made.append(table)
        parts = []
        for view, text in queries.items():
            expected = session.sql(text)
            expected.createOrReplaceTempView(view)
            made.append(view)
            stored = session.createDataFrame(db.read(view).to_arrow())
            stored.createOrReplaceTempView(f"stored_{view}")
            made.append(f"stored_{view}")
            columns = ", ".join(f"`{name}`" for name in names(db.catalog.schema(view)))
            for source, sign in ((view, 1), (f"stored_{view}", -1)):
                row = f"to_json(struct({columns}), map('ignoreNullFields', 'false'))"
                parts.append(f"SELECT '{view}' AS view, {row} AS r, {sign} AS w FROM {source}")
        found = session.sql(
            f"SELECT view, r, SUM(w) AS w FROM ({' UNION ALL '.join(parts)}) "
            "GROUP BY view, r HAVING SUM(w) <> 0"
        )
        return [(row.view, row.r, row.w) for row in found.collect()]
    finally:
        for name in made:
            session.catalog.dropTempView(name)


@lru_cache(maxsize=1)
def digests() -> Digests:
    """The answers of Spark that are on record."""
    return Digests(RECORDED)


def claims(db: Database, queries: dict[str, str]) -> list[Claim]:
    """What each view holds, over what it names."""
    held = {name: db.read(name).to_arrow() for name in (*db.catalog.tables, *queries)}
    return [
        Claim(
            step=0,
            engine=db.engine.name,
            view=view,
            query=text,
            schema=db.catalog.schema(view),
            rows=held[view],
            relations={
                name: rows
                for name, rows in held.items()
                if name != view and re.search(rf"\b{name}\b", text)
            },
        )
        for view, text in queries.items()
    ]
