"""A query in SQL as Spark is given it: over frames, each word checked."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from everview.engines.spark.door import allowed_frame, ask, callable_in
from everview.engines.spark.errors import not_accepted
from everview.engines.spark.relations import Relations
from everview.lang.sql.allowlist.allow import NOTHING, Allow
from everview.lang.sql.allowlist.checked_text import checked_text, outside, spelled
from everview.lang.sql.bind.nested_types import with_sorted_lists
from everview.lang.sql.parse.parser import parse_query


def over(
    session: SparkSession, sql: str, frames: Mapping[str, DataFrame], allow: Allow = NOTHING
) -> DataFrame:
    """A query in which each frame has the name of a table; beside them it reads what is allowed."""
    with Relations(session) as relations:
        for name, frame in frames.items():
            relations.give(name, frame)
        known = {name.lower(): view for name, view in relations.names.items()}
        tree, written = with_sorted_lists(parse_query(sql)), ""
        callable_ = callable_in(session) | allow.functions
        try:
            for table in outside(tree, known):
                found = allowed_frame(session, table, allow)
                if found is not None:
                    relations.give(spelled(table), found)
                    known[spelled(table)] = relations.names[spelled(table)]
            written = checked_text(tree, known, callable_, sql)
            return ask(session, written, callable_)
        except PySparkException as problem:
            raise not_accepted(problem, written, sql) from None
