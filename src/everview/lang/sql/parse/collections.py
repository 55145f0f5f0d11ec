"""Collections in CREATE TABLE: BAG<…> columns, and WITH (nested = 'shredded')."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import Span, UserError
from everview.expr.dialect import DIALECT
from everview.lang.sql.parse.span import span_of

_BAG, ELEMENT = "BAG", "element"
NESTED_OPTION, _SHREDDED, _INLINE = "nested", "shredded", "inline"


def without_bags(tokens: list[Token]) -> list[Token]:
    """The tokens of a statement that creates a table, with ARRAY in the place of each BAG."""
    words = [token.text.upper() for token in tokens[:2]]
    if words != ["CREATE", "TABLE"] or not any(_bags(tokens)):
        return tokens
    found = [*tokens]
    for at, is_bag in enumerate(_bags(tokens)):
        if is_bag:
            old = tokens[at]
            place = (old.line, old.col, old.start, old.end)
            found[at] = Token(TokenType.ARRAY, "ARRAY", *place, old.comments)
    return found


def _bags(tokens: Sequence[Token]) -> Iterator[bool]:
    for each, after in pairwise(tokens):
        bag = each.token_type == TokenType.VAR and each.text.upper() == _BAG
        yield bag and after.token_type == TokenType.LT


def collections_of(
    tree: exp.Create, tokens: Sequence[Token], text: str, span: Span
) -> tuple[str, ...]:
    """The paths of the arrays that are stored as dictionaries, each after what it is inside of."""
    schema = tree.this
    if not isinstance(schema, exp.Schema):
        return ()
    columns = [each for each in schema.expressions if isinstance(each, exp.ColumnDef)]
    arrays = [node for each in columns for node in _arrays(each.args.get("kind"))]
    marked = [
        each.text.upper() == _BAG
        for each, after in pairwise(tokens)
        if after.token_type == TokenType.LT
        and (each.token_type == TokenType.ARRAY or each.text.upper() == _BAG)
    ]
    bags = {id(node) for node, bag in zip(arrays, marked, strict=False) if bag}
    every = _is_shredded(tree, text, span)
    found: dict[str, exp.Expr] = {}
    for column in columns:
        found |= _within(column.name, column.args.get("kind"), bags, every=every)
    if len(bags - {id(node) for node in found.values()}):
        lost = next(n for n in arrays if id(n) in bags and all(n is not f for f in found.values()))
        raise UserError(
            "Q005",
            f"a BAG stands inside what is stored as one value: {lost.sql(dialect=DIALECT)}",
            span=span_of(schema, text) or span,
            remedy="a BAG is a column, an element of a BAG, or a field of a STRUCT in a BAG",
        )
    return tuple(found)


def _within(
    path: str, kind: exp.Expr | None, bags: set[int], *, every: bool
) -> Iterator[tuple[str, exp.Expr]]:
    """The collection that a column or field is, and those inside it."""
    if not _is_array(kind) or kind is None or not (every or id(kind) in bags):
        return
    yield path, kind
    (element,) = kind.expressions
    if isinstance(element, exp.DataType) and element.this == exp.DataType.Type.STRUCT:
        for field in element.expressions:
            inner = field.args.get("kind")
            yield from _within(f"{path}.{field.name}", inner, bags, every=every)
    else:
        yield from _within(f"{path}.{ELEMENT}", element, bags, every=every)


def _is_array(kind: exp.Expr | None) -> bool:
    array = isinstance(kind, exp.DataType) and kind.this == exp.DataType.Type.ARRAY
    return array and kind is not None and len(kind.expressions) == 1


def _arrays(kind: exp.Expr | None) -> list[exp.Expr]:
    """The arrays in a type, in the order in which they are written."""
    walked = kind.walk(bfs=False) if kind is not None else ()
    return [node for node in walked if _is_array(node)]


def _is_shredded(tree: exp.Create, text: str, span: Span) -> bool:
    """Whether WITH (nested = 'shredded') says that every array is a collection."""
    properties = tree.args.get("properties")
    given = [
        part
        for part in (properties.expressions if properties else ())
        if type(part) is exp.Property and part.this.name.lower() == NESTED_OPTION
    ]
    for part in given:
        if part.args["value"].name.lower() not in (_SHREDDED, _INLINE) or len(given) > 1:
            raise UserError(
                "Q003",
                f"this option is not part of the language: {part.sql(dialect=DIALECT)}",
                span=span_of(part, text) or span,
                remedy=f"leave it out, or write WITH ({NESTED_OPTION} = '{_SHREDDED}')",
            )
    return any(part.args["value"].name.lower() == _SHREDDED for part in given)
