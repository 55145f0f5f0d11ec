"""Calls of functions that a user declared in SQL, replaced by the bodies of those functions."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from everview.errors import UserError
from everview.expr.dialect import DIALECT
from everview.expr.quoting import spark_type
from everview.expr.types import names
from everview.lang.sql.parse.constraints import Constraint
from everview.lang.sql.parse.functions import Function, Functions, body_tree
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.statements import (
    AlterConstraints,
    CopyTo,
    CreateAssertion,
    CreateTable,
    CreateView,
    Delete,
    Explain,
    Insert,
    Merge,
    MergeClause,
    Query,
    Statement,
    Update,
)


def inline_calls(statement: Statement, functions: Functions) -> Statement:
    """The statement with calls replaced by bodies; a text without calls is not changed."""
    if not functions:
        return statement

    def text(each: str) -> str:
        return inline_calls_in_text(each, functions)[0]

    def maybe(each: str | None) -> str | None:
        return None if each is None else text(each)

    def query(each: Query) -> Query:
        return replace(each, text=text(each.text))

    def clause(each: MergeClause) -> MergeClause:
        given = tuple(map(text, each.values))
        return replace(each, condition=maybe(each.condition), values=given)

    def constraint(each: Constraint) -> Constraint:
        if not each.condition:
            return each
        condition, calls = inline_calls_in_text(each.condition, functions)
        return replace(each, condition=condition, calls=calls)

    def values(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        return tuple((name, text(value)) for name, value in pairs)

    match statement:
        case Query():
            return query(statement)
        case CreateTable() if statement.query is not None:
            return replace(statement, query=query(statement.query))
        case CreateTable():
            return replace(
                statement,
                constraints=tuple(map(constraint, statement.constraints)),
                defaults=values(statement.defaults),
                generated=values(statement.generated),
            )
        case CreateAssertion():
            return replace(statement, constraint=constraint(statement.constraint))
        case AlterConstraints():
            return replace(statement, added=tuple(map(constraint, statement.added)))
        case CreateView():
            query_text, calls = inline_calls_in_text(statement.query, functions)
            return replace(statement, query=query_text, calls=calls)
        case Insert():
            conflict = statement.conflict and replace(
                statement.conflict,
                assignments=tuple((n, text(value)) for n, value in statement.conflict.assignments),
                where=maybe(statement.conflict.where),
            )
            return replace(statement, query=text(statement.query), conflict=conflict)
        case CopyTo():
            return replace(statement, query=text(statement.query))
        case Delete():
            return replace(statement, where=maybe(statement.where))
        case Update():
            pairs = values(statement.assignments)
            return replace(statement, assignments=pairs, where=maybe(statement.where))
        case Merge():
            clauses = tuple(map(clause, statement.clauses))
            return replace(statement, on=text(statement.on), clauses=clauses)
        case Explain() if not statement.name.isidentifier():
            return replace(statement, name=text(statement.name))
        case _:
            return statement


def inline_calls_in_text(text: str, functions: Functions) -> tuple[str, tuple[str, ...]]:
    """A query or expression with calls inlined, and the functions it calls."""
    try:
        tree, calls = inline_calls_in_tree(parse_query(text), functions)
    except UserError as problem:
        if problem.code == "Q001":
            return text, ()
        raise
    return (tree.sql(dialect=QUERIES), calls) if calls else (text, ())


def inline_calls_in_tree(tree: exp.Expr, functions: Functions) -> tuple[exp.Expr, tuple[str, ...]]:
    """The tree with calls replaced by bodies, and the names of the functions it calls."""
    result = tree.copy()
    called: dict[str, None] = {}
    # Inner calls first: a call may stand inside the argument of another.
    for node in reversed(list(result.walk())):
        function = functions.get(node.name.lower()) if isinstance(node, exp.Anonymous) else None
        if function is None:
            continue
        called[function.name] = None
        applied = _named_as_written(node, _applied(function, node))
        if node is result:
            result = applied
        else:
            node.replace(applied)
    return result, tuple(called)


def _applied(function: Function, call: exp.Expr) -> exp.Expr:
    """The body with each argument, cast to the type of its parameter, in place of its name."""
    if len(call.expressions) != len(function.takes):
        raise UserError(
            "Q012",
            f"{function.name} takes {len(function.takes)} values, not {len(call.expressions)}",
            remedy=f"give {', '.join(names(function.takes)) or 'none'}",
        )
    values = {
        column.name.lower(): exp.cast(value, spark_type(column.type), dialect=DIALECT)
        for column, value in zip(function.takes, call.expressions, strict=True)
    }

    def valued(node: exp.Expr) -> exp.Expr:
        return values[node.name.lower()].copy() if isinstance(node, exp.Column) else node

    body = body_tree(function.body).transform(valued)
    return exp.cast(body, spark_type(function.gives), dialect=DIALECT)


def _named_as_written(call: exp.Expr, applied: exp.Expr) -> exp.Expr:
    """A call that is a column of the result keeps the name it had."""
    if isinstance(call.parent, exp.Select) and call.arg_key == "expressions":
        return exp.alias_(
            applied,
            call.sql(dialect="spark", normalize_functions=False).replace("`", ""),
            quoted=True,
        )
    return applied
