"""Fragments of DuckDB SQL that several families of the parity table share."""

from __future__ import annotations


def raising(problem: str, witness: str, target: str) -> str:
    """An expression of type `target` that raises when it is evaluated.

    DuckDB's own error() counts as volatile, which stops filters from being pushed down and TRY
    from being used; a cast that cannot succeed does neither.
    """
    if target == "VARCHAR":
        return f"CAST({raising(problem, witness, 'INTEGER')} AS VARCHAR)"
    return f"CAST('{problem}: ' || CAST({witness} AS VARCHAR) AS {target})"


def struct_field(sql: str, name: str) -> str:
    """A field of a struct."""
    return f"struct_extract({sql}, '{name}')"


def string_literal(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("'", "''") + "'"
