"""Names in SQL text: each in the quotes of its dialect, whatever characters it has."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp


@lru_cache(maxsize=8192)
def spark_name(name: str) -> str:
    """A name as Spark reads it.

    >>> spark_name("a`b")
    '`a``b`'
    """
    return _quoted(name, "spark")


@lru_cache(maxsize=8192)
def duckdb_name(name: str) -> str:
    """A name as DuckDB reads it.

    >>> duckdb_name('a"b')
    '"a""b"'
    """
    return _quoted(name, "duckdb")


def _quoted(name: str, dialect: str) -> str:
    return exp.Identifier(this=name, quoted=True).sql(dialect=dialect)
