"""Statements in which the functions of a user are written out."""

from __future__ import annotations

from dataclasses import replace

from everview.errors import UserError
from everview.lang.sql.bind.user_functions import Functions, inlined
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.statement import parse_query
from everview.lang.sql.parse.statements import (
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


def written_out(statement: Statement, functions: Functions) -> Statement:
    """The statement with bodies in the place of calls; a text without calls stays as it is."""
    if not functions:
        return statement

    def text(each: str) -> str:
        return calls_in(each, functions)[0]

    def maybe(each: str | None) -> str | None:
        return None if each is None else text(each)

    def query(each: Query) -> Query:
        return replace(each, text=text(each.text))

    def clause(each: MergeClause) -> MergeClause:
        values = tuple(map(text, each.values))
        return replace(each, condition=maybe(each.condition), values=values)

    match statement:
        case Query():
            return query(statement)
        case CreateTable() if statement.query is not None:
            return replace(statement, query=query(statement.query))
        case CreateView():
            made, calls = calls_in(statement.query, functions)
            return replace(statement, query=made, calls=calls)
        case Insert():
            return replace(statement, query=text(statement.query))
        case Delete():
            return replace(statement, where=maybe(statement.where))
        case Update():
            pairs = tuple((name, text(value)) for name, value in statement.assignments)
            return replace(statement, assignments=pairs, where=maybe(statement.where))
        case Merge():
            clauses = tuple(map(clause, statement.clauses))
            return replace(statement, on=text(statement.on), clauses=clauses)
        case Explain() if not statement.name.isidentifier():
            return replace(statement, name=text(statement.name))
        case _:
            return statement


def calls_in(text: str, functions: Functions) -> tuple[str, tuple[str, ...]]:
    """A query or expression with calls written out, and the functions it calls."""
    try:
        tree, calls = inlined(parse_query(text), functions)
    except UserError as problem:
        if problem.code == "Q001":
            return text, ()
        raise
    return (tree.sql(dialect=QUERIES), calls) if calls else (text, ())
