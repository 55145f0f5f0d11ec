"""What one would write by hand in DuckDB for just these views: the measure of our overhead.

Tables and one aggregate table a view are in memory. A transaction joins the changed lines with
their orders once, adds each view's sums in, and is durable when its manifest is there: the change
and the change of every view as Parquet files, synced, and then one small file renamed into place.
As with a primary key, a line to delete must be there and a line to insert must not.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from bench.durable_commit import make_durable
from bench.tpch import Change
from bench.views import View

SIGNED = "SELECT *, 1 AS w FROM inserted UNION ALL SELECT *, -1 AS w FROM deleted"


class Handwritten:
    """Orders, lines and views in one DuckDB connection, durable in a folder."""

    def __init__(self, folder: Path, tables: dict[str, pa.Table]) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        self._epoch = 0
        self._views: list[View] = []
        self._connection = duckdb.connect(config={"threads": 2})
        for name, rows in tables.items():
            self._connection.register("given", rows)
            self._connection.execute(f"CREATE TABLE {name} AS FROM given")
        self._connection.unregister("given")

    def create(self, view: View) -> None:
        """Keep a view from now on."""
        self._connection.execute(f"CREATE TABLE {view.name} AS {view.query}")
        keys = ", ".join(view.keys)
        self._connection.execute(f"ALTER TABLE {view.name} ADD PRIMARY KEY ({keys})")
        self._views.append(view)

    def apply(self, change: Change) -> None:
        """One transaction, durable when this returns."""
        run = self._connection.execute
        self._connection.register("deleted", change.deleted)
        self._connection.register("inserted", change.inserted)
        run("BEGIN")
        try:
            run(
                f"CREATE OR REPLACE TEMP TABLE touched AS SELECT * FROM ({SIGNED}) "
                "JOIN orders ON o_orderkey = l_orderkey"
            )
            written = {"lineitem": self._rows(SIGNED)}
            for view in self._views:
                written[view.name] = self._maintain(view)
            self._change_lines(change)
            self._epoch += 1
            make_durable(self._folder, self._epoch, written)
        except BaseException:
            run("ROLLBACK")
            raise
        run("COMMIT")

    def value(self, view: View) -> pa.Table:
        """The view as it is kept."""
        return self._rows(f"SELECT * FROM {view.name}")

    def recomputed(self, view: View) -> pa.Table:
        """The view's query over the tables as they are now."""
        return self._rows(view.query)

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()

    def _rows(self, sql: str) -> pa.Table:
        return self._connection.sql(sql).to_arrow_table()

    def _maintain(self, view: View) -> pa.Table:
        change = self._rows(change_query(view))
        added = ", ".join(f"{name} = {name} + excluded.{name}" for name in (*view.sums, "n"))
        self._connection.register("change", change)
        self._connection.execute(
            f"INSERT INTO {view.name} FROM change ON CONFLICT DO UPDATE SET {added}"
        )
        self._connection.execute(f"DELETE FROM {view.name} WHERE n = 0")
        return change

    def _change_lines(self, change: Change) -> None:
        if change.deleted.num_rows:
            gone = self._connection.execute(
                "DELETE FROM lineitem USING deleted AS d WHERE lineitem.l_orderkey = d.l_orderkey "
                "AND lineitem.l_linenumber = d.l_linenumber"
            ).fetchall()
            assert gone == [(change.deleted.num_rows,)], "a line to delete is not there"
        if change.inserted.num_rows:
            there = self._connection.execute(
                "SELECT COUNT(*) FROM lineitem SEMI JOIN inserted USING (l_orderkey, l_linenumber)"
            ).fetchall()
            assert there == [(0,)], "a line to insert is there already"
            self._connection.execute("INSERT INTO lineitem FROM inserted")


def change_query(view: View) -> str:
    """What the signed lines in `touched`, joined with their orders, add to a view."""
    keys = ", ".join(f"{text} AS {name}" for name, text in view.keys.items())
    sums = ", ".join(f"SUM(w * {text}) AS {name}" for name, text in view.sums.items())
    return f"SELECT {keys}, {sums}, SUM(w)::BIGINT AS n FROM touched{view.ending}"
