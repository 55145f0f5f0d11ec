"""The condition of a selection: read as SQL at its place in the text, and bound to columns."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr import scalar
from everview.expr.types import Schema, names
from everview.lang.relalg.tokenize import syntax_error
from everview.lang.sql.bind.refuse import must_be_plain
from everview.lang.sql.bind.resolve import resolve
from everview.lang.sql.bind.scope import Item, Scope
from everview.lang.sql.lower.conditions import as_boolean
from everview.lang.sql.lower.context import Analyze, LoweringContext
from everview.lang.sql.parse.span import span_of
from everview.lang.sql.parse.trees import read_trees


def condition_tree(span: Span) -> exp.Expr:
    """The condition that stands in brackets, its parts with their places in the whole text.

    It is read in parentheses where the brackets are, so that no place has to be moved.
    """
    written = span.text[span.start : span.stop]
    try:
        trees, _ = read_trees(f"{' ' * (span.start - 1)}({written}\n)")
    except UserError as problem:
        raise _at_its_place(problem, span) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Paren):
        raise syntax_error("this is no condition", span, _REMEDY)
    condition: exp.Expr = trees[0].this
    return condition


_REMEDY = "write a condition of SQL over the columns of the relation"


def _at_its_place(problem: UserError, span: Span) -> UserError:
    """An error of SQL shown in the whole text; what lies behind the condition is its end."""
    if problem.span is None or problem.span.start >= span.stop:
        place = Span(span.text, max(span.stop - 1, 0), span.stop)
        return syntax_error("something is missing at the end of the condition", place, _REMEDY)
    place = Span(span.text, problem.span.start, min(problem.span.stop, span.stop))
    return UserError(problem.code, problem.problem, span=place, remedy=problem.remedy)


def bound_condition(condition: str, span: Span | None, schema: Schema, analyze: Analyze) -> str:
    """The condition over the columns of a relation, boolean by Spark's rules."""
    tree = scalar.parse(condition) if span is None else condition_tree(span)
    text = condition if span is None else span.text
    if (query := tree.find(exp.Query)) is not None:
        raise UserError(
            "R003",
            "a condition is about one row, and cannot hold a subquery",
            span=span_of(query, text) or span,
            remedy="join with ⋈, or take rows away with −",
        )
    item = Item("", tuple((name, name) for name in names(schema)))
    try:
        resolved = resolve(tree, Scope(text, None, [item], list(item.columns)))
    except UserError as problem:
        if problem.code != _UNKNOWN_TABLE:
            raise
        listed = ", ".join(names(schema))
        remedy = f"name a column without its relation: the columns here are {listed}"
        raise UserError(
            "R003", "a name before a dot is no column here", span=problem.span, remedy=remedy
        ) from None
    must_be_plain(resolved, "σ", text)
    return as_boolean(LoweringContext(text, {}, analyze, _no_query), resolved, schema, "σ")


_UNKNOWN_TABLE = "Q006"


def _no_query(*_: object, **__: object) -> NoReturn:
    raise AssertionError("a condition has no subquery")
