"""Reductions of a query: texts that are a little simpler, whether or not they still make sense."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.parser import parse_query
from everview_fuzz.case import View

_CLAUSES = ("where", "having", "distinct", "group", "with_")
_LISTS = ("joins", "expressions")
_MIN_LENGTH = {"expressions": 1, "joins": 0}


def reductions(query: str) -> Iterator[str]:
    """Simpler queries, the much simpler ones first."""
    tree = parse_query(query)
    seen = {query}
    for candidate in (*_inner(tree), *_edited(tree)):
        text = candidate.sql(dialect=QUERIES)
        if text not in seen:
            seen.add(text)
            yield text


def inlined(query: str, view: View) -> str:
    """The query with a view's own query in its place."""
    tree = parse_query(query)
    for table in list(tree.find_all(exp.Table)):
        if table.name == view.name:
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(view.name))
            table.replace(exp.Subquery(this=parse_query(view.query), alias=alias))
    return tree.sql(dialect=QUERIES)


def _inner(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The queries inside, alone, and those in WITH written where they are read."""
    for node in tree.walk():
        if isinstance(node, exp.Query) and node is not tree and not isinstance(node, exp.Subquery):
            yield node


def _edited(tree: exp.Expr) -> Iterator[exp.Expr]:
    for position, node in enumerate(tree.walk()):
        for edit in _edits(node):
            copy = tree.copy()
            yield _at(copy, position, edit)


def _at(tree: exp.Expr, position: int, edit: _Edit) -> exp.Expr:
    node = next(each for i, each in enumerate(tree.walk()) if i == position)
    kind, part, index = edit
    match kind:
        case "drop":
            node.set(part, None)
        case "shorten":
            listed = list(node.args[part])
            del listed[index]
            node.set(part, listed)
        case "child":
            child = node.args[part]
            chosen: exp.Expr = child[index] if isinstance(child, list) else child
            if node is tree:
                return chosen.copy()
            node.replace(chosen.copy())
        case _:
            node.replace(exp.Boolean(this=True))
    return tree


_Edit = tuple[str, str, int]


def _edits(node: exp.Expr) -> Iterator[_Edit]:
    """What can be taken away from a node."""
    if isinstance(node, exp.SetOperation):
        yield from (("child", side, 0) for side in ("this", "expression"))
    if isinstance(node, exp.Select):
        yield from (("drop", clause, 0) for clause in _CLAUSES if node.args.get(clause))
    if isinstance(node, exp.Select | exp.Group | exp.In | exp.With):
        for part in _LISTS:
            count = len(node.args.get(part) or ())
            if count > _MIN_LENGTH[part]:
                yield from (("shorten", part, index) for index in range(count))
    if isinstance(node, exp.Predicate | exp.Connector | exp.Not):
        yield "true", "", 0
    if _is_scalar(node):
        for part, value in node.args.items():
            if isinstance(value, list):
                scalars = (i for i, each in enumerate(value) if _is_scalar(each))
                yield from (("child", part, index) for index in scalars)
            elif _is_scalar(value):
                yield "child", part, 0


def _is_scalar(node: object) -> bool:
    kinds = (exp.Binary, exp.Unary, exp.Func, exp.Column, exp.Literal, exp.Between, exp.In)
    return isinstance(node, (*kinds, exp.Boolean, exp.If)) and not isinstance(node, exp.Query)
