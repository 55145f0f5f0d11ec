"""Nested views as texts in a catalog: the query, and which of its relations a text stands for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from everview.errors import Span, UserError
from everview.lang.nested.from_sql import SqlQuery, read_query
from everview.lang.nested.parse import parse_expr
from everview.lang.nested.syntax import Expr, relations
from everview.lang.nested.text import print_expr, quoted

_MODES = ("auto", "inline")


@dataclass(frozen=True, slots=True)
class Definition:
    """One relation of a nested view: the view, the path of the relation in it, and the query."""

    view: str
    path: str
    query: Expr | SqlQuery
    mode: str = "shredded"

    @property
    def in_sql(self) -> bool:
        """Whether the query is in SQL."""
        return isinstance(self.query, SqlQuery)

    @property
    def expr(self) -> Expr:
        """The query in the calculus; one in SQL has none."""
        if isinstance(self.query, SqlQuery):
            raise UserError(
                "N013",
                f"{self.view} is a nested view in SQL, which a comprehension cannot read",
                remedy="read its tables, or write it as a comprehension too",
            )
        return self.query

    @property
    def relation(self) -> str:
        """The name of the relation."""
        return f"{self.view}.{self.path}" if self.path else self.view

    @property
    def text(self) -> str:
        """The text that a catalog holds of it."""
        place = f"/{self.path}" if self.path else ""
        query = self.query
        marked = "" if self.mode == "shredded" else f"[{self.mode}] "
        text = query.marked if isinstance(query, SqlQuery) else marked + print_expr(query)
        return f"{quoted(self.view)}{place} := {text}"


@lru_cache(maxsize=1024)
def read_definition(text: str) -> Definition:
    """The definition that a text of a catalog holds."""
    head, sign, body = text.partition(" := ")
    # The name of a view may have the sign in it: then it stands in backquotes.
    while head.count("`") % 2 and sign:
        more, sign, body = body.partition(" := ")
        head = f"{head} := {more}"
    name, _, path = head.rpartition("/") if not head.endswith("`") else ("", "", head)
    if not name:
        name, path = path, ""
    if not sign or not name:
        raise UserError(
            "N001",
            "a nested view is written as name := query",
            span=Span(text, 0, len(text)),
            remedy="correct the text",
        )
    plain = name[1:-1].replace("``", "`") if name.startswith("`") else name
    if (in_sql := read_query(body)) is not None:
        return Definition(plain, path, in_sql)
    for mode in _MODES:
        if body.startswith(f"[{mode}] "):
            return Definition(plain, path, parse_expr(body[len(mode) + 3 :]), mode)
    return Definition(plain, path, parse_expr(body))


def reads_of(text: str) -> tuple[str, ...]:
    """The relations that a definition reads; a dictionary reads the relations above it too."""
    found = read_definition(text)
    above: list[str] = []
    if found.path:
        steps = found.path.split(".")
        above = [".".join((found.view, *steps[:count])) for count in range(len(steps))]
    query = found.query
    return (*(query.reads if isinstance(query, SqlQuery) else relations(query)), *above)


def declared_query(text: str) -> tuple[str, str]:
    """The query of a nested view as SQL, and how its collections are kept; empty without SQL."""
    found = read_definition(text)
    if isinstance(found.query, SqlQuery) and not found.path:
        return found.query.text, found.query.mode
    return "", "auto"


def reads_back(expr: Expr) -> bool:
    """Whether the text of a query says the same."""
    try:
        return parse_expr(print_expr(expr)) == expr
    except UserError as problem:
        raise UserError(
            "N010",
            f"the query cannot be written down: {problem.problem}",
            remedy="make a part of it a view of its own",
        ) from None
