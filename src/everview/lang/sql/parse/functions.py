"""Functions that a user declares in SQL: their record, and whether a declaration is valid."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from everview.arguments import named
from everview.errors import Span, UserError
from everview.expr.dialect import DIALECT
from everview.expr.quoting import spark_type
from everview.expr.scalar import is_volatile
from everview.expr.types import PLAIN_NAME, Schema, Type, names, unusable_name
from everview.lang.sql.parse.trees import read_trees


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function: its parameters, the type of its result, and its body."""

    name: str
    takes: Schema
    gives: Type
    body: str

    @property
    def probe(self) -> str:
        """A query that is valid if the body is, over a relation `given` of the parameters."""
        return f"SELECT CAST({self.body} AS {spark_type(self.gives)}) AS result FROM given"


Functions = Mapping[str, Function]
"""The functions there are, by lower-case name."""


PARSED_FUNCTIONS = frozenset(name.lower() for name in DIALECT.Parser.FUNCTIONS)
"""The names of functions that the parser knows, to suggest one for a misspelled name."""


def check_function(function: Function, span: Span) -> None:
    """Refuse a name that Spark uses, and a body that is not an expression over the parameters."""
    known = {name.lower() for name in names(function.takes)}
    problem = None
    if len(known) < len(function.takes):
        problem = "two arguments have one name"
    must_be_free(function.name, span)
    for node in body_tree(function.body).walk():
        if isinstance(node, exp.Query | exp.AggFunc | exp.Window):
            problem = "its body holds a query, an aggregate or a window"
        elif is_volatile(node):
            problem = "its body gives another answer every time"
        elif isinstance(node, exp.Column) and node.find_ancestor(exp.Lambda):
            # What stands for the argument could have a name that the lambda gives.
            problem = "its body uses an argument inside a lambda"
        elif isinstance(node, exp.Column) and node.name.lower() not in known:
            problem = f"its body names {node.name}, which it does not take"
    if problem is not None:
        raise UserError(
            "Q022",
            f"{function.name} cannot be a function: {problem}",
            span=span,
            remedy="write an expression over the arguments, under a name of its own",
        )


def must_be_free(name: str, span: Span | None = None) -> None:
    """Refuse a name that is no plain name, or one that calls a function of Spark's own."""
    if problem := unusable_name(name):
        raise UserError("Q011", problem, span=span, remedy=PLAIN_NAME)
    plain = re.fullmatch(r"[A-Za-z_]\w*", name) is not None
    if not plain or not _is_unknown(f"{name}(1)"):
        raise UserError(
            "Q022",
            f"{named(name)} cannot be a function: "
            + ("Spark has one of that name" if plain else "it is not a plain name"),
            span=span,
            remedy="choose another name",
        )


def _is_unknown(call: str) -> bool:
    """Whether a call is that of a function that the parser does not know."""
    try:
        trees, _ = read_trees(call)
    except UserError:
        return False
    return isinstance(trees[0], exp.Anonymous)


def body_tree(body: str) -> exp.Expr:
    """The tree of the body of a function."""
    (tree,), _ = read_trees(body)
    return tree
