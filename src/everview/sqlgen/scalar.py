"""A scalar expression as SQL for DuckDB and for Spark."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from everview.errors import UserError
from everview.expr.coercion import common
from everview.expr.quoting import duckdb_name as quoted
from everview.expr.scalar import parse, text
from everview.expr.signatures import TRY_OPERATORS
from everview.expr.type_inference import Typed, annotate
from everview.expr.types import Schema, Type, decimal_parts, is_exact
from everview.sqlgen import averages
from everview.sqlgen.parity.casts import cast, literal_cast
from everview.sqlgen.parity.decimals import require_fit
from everview.sqlgen.parity.entry import Site
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.parity.fragments import string_literal
from everview.sqlgen.parity.table import entry_for, is_null_by_an_argument
from everview.sqlgen.types import spark_type_to_duckdb


def to_duckdb(text_: str, schema: Schema) -> str:
    """DuckDB SQL with exactly Spark's value, type and errors; NotAtParity where none is known.

    >>> from everview.expr.types import Column
    >>> to_duckdb("`n` + 1", (Column("n", "bigint"),))
    '("n" + CAST(1 AS BIGINT))'
    """
    return typed_to_duckdb(annotate(text_, schema))


@lru_cache(maxsize=8192)
def to_spark(text_: str) -> str:
    """Spark SQL: the text as we write it, but for the functions that only we know.

    >>> to_spark("`a` + 1 -- and more")
    '`a` + 1'
    """
    tree = parse(text_)
    if tree.find(exp.Query, exp.Table, exp.Command, exp.Placeholder, exp.Parameter):
        raise UserError(
            "Q023",
            f"{text_} is more than an expression",
            remedy="write an expression over columns",
        )
    if any(name in text_.lower() for name in ("ev_avg_", "ev_single", "ev_from_base")):
        tree = tree.transform(_own_functions_to_spark)
    return text(tree)


def typed_to_duckdb(node: Typed) -> str:
    """DuckDB SQL of a typed expression."""
    if node.type is None:
        raise NotAtParity(_unknown(node), "its type is not known without asking Spark")
    match node.name:
        case "column" | "variable":
            return quoted(node.value or "")
        case "index":
            return f"CAST({quoted(node.value or '')} - 1 AS INTEGER)"
        case "lambda":
            parameters = ", ".join(map(quoted, (node.value or "").split("\n")))
            return f"lambda {parameters}: {typed_to_duckdb(node.args[0])}"
        case "literal":
            return _literal(node.value or "", node.type)
        case "cast" | "try_cast":
            return _cast(node.args[0], node.type, safe=node.name == "try_cast")
        case name if name in TRY_OPERATORS:
            _refuse_hidden_errors(name, *node.args)
            if name == "try_divide" and decimal_parts(node.operands[0]):
                require_fit(node.operands, node.type)
            return f"TRY({_applied(replace(node, name=TRY_OPERATORS[name]), node.type)})"
        case _:
            return _applied(node, node.type)


def _unknown(node: Typed) -> str:
    """The innermost construct without a type, with the types of its arguments."""
    for arg in node.args:
        if arg.type is None:
            return _unknown(arg)
    if node.name == "column":
        return f"the column {node.value}"
    return f"{node.name}({', '.join(arg.type or '' for arg in node.args)})"


def _refuse_hidden_errors(name: str, *args: Typed) -> None:
    if not all(map(_has_a_value, args)):
        raise NotAtParity(f"{name} of an expression", "DuckDB's TRY would hide its errors too")


def _has_a_value(node: Typed) -> bool:
    """Whether no row is an error: a column, a literal, or one of these as a wider exact number."""
    if node.name != "cast":
        return node.name in ("column", "literal")
    (value,) = node.args
    types = (value.type or "", node.type or "")
    return all(map(is_exact, types)) and common(*types) == node.type and _has_a_value(value)


def _applied(node: Typed, result: Type) -> str:
    entry = entry_for(node.name, node.operands)
    if is_null_by_an_argument(node):
        return f"CAST(NULL AS {spark_type_to_duckdb(result)})"
    args = tuple(_cast(arg, to) for arg, to in zip(node.args, node.operands, strict=True))
    return entry.spell(Site(node.name, args, node.operands, result, node.literals, node.value))


def _cast(node: Typed, target: Type, *, safe: bool = False) -> str:
    if node.type == "string" and node.literal is not None:
        direct = literal_cast(node.literal, target)
        if direct is not None:
            return direct
    if safe:
        _refuse_hidden_errors("try_cast", node)
    return cast(typed_to_duckdb(node), node.type or "", target, safe=safe)


def _literal(value: str, type_: Type) -> str:
    """A literal of exactly Spark's type; DuckDB reads the smallest int as a bigint."""
    if type_ == "string":
        if "\0" in value:
            raise NotAtParity("a string with the character 0", "DuckDB does not read it")
        return string_literal(value)
    if type_ == "binary":
        return f"unhex('{'0' * (len(value) % 2)}{value}')"
    if type_ in ("void", "boolean"):
        return value
    if type_ == "int" and not value.startswith("-"):
        return value
    return f"CAST('{value}' AS {spark_type_to_duckdb(type_)})"


def _own_functions_to_spark(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Anonymous):
        return node
    args = [text(arg.transform(_own_functions_to_spark)) for arg in node.expressions]
    match node.name.lower():
        case "ev_avg_double":
            return _paren(averages.average_double_spark(args[0], args[1]))
        case "ev_avg_decimal":
            precision, scale = int(args[2]), int(args[3])
            return _paren(averages.average_decimal_spark(args[0], args[1], precision, scale))
        case "ev_single":
            error = "raise_error('a subquery used as a value has several rows')"
            return _paren(f"CASE WHEN {args[0]} > 1 THEN {error} ELSE {args[1]} END")
        case "ev_from_base":
            return _paren(f"CAST(CONV(CONCAT('0', {args[0]}), {args[1]}, 10) AS DECIMAL(20,0))")
        case _:
            return node


def _paren(sql: str) -> exp.Expr:
    return exp.Paren(this=parse(sql).copy())
