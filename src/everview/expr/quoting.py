"""Names and types in SQL text: names are quoted, whatever characters or meaning they have."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from everview.expr.types import Type, fields_of, parts_of


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


def spark_type(type_: Type) -> str:
    """A type as Spark reads it; the name of a field may be a reserved word.

    >>> spark_type("array<struct<select:int,b:map<string,decimal(3,1)>>>")
    'array<struct<`select`:int,`b`:map<string,decimal(3,1)>>>'
    """
    outer, inner = parts_of(type_)
    if not inner:
        return type_
    if outer == "struct":
        parts = [f"{spark_name(name)}:{spark_type(part)}" for name, part in fields_of(type_)]
    else:
        parts = list(map(spark_type, inner))
    return f"{outer}<{','.join(parts)}>"


def _quoted(name: str, dialect: str) -> str:
    return exp.Identifier(this=name, quoted=True).sql(dialect=dialect)
