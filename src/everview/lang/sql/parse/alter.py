"""The parser of ALTER TABLE and ALTER VIEW."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr.dialect import DIALECT
from everview.expr.types import unusable_name
from everview.lang.sql.parse.alterations import (
    Action,
    AddColumn,
    Alter,
    DropColumn,
    RenameColumn,
    RenameTo,
    SetComment,
    SetType,
)
from everview.lang.sql.parse.create import column_of, table_name
from everview.lang.sql.parse.span import span_of


def parse_alter(tree: exp.Alter, text: str, span: Span) -> Alter | None:
    """An ALTER of a table or a view; None where it alters something else."""
    kind = str(tree.args.get("kind") or "").lower()
    if kind not in ("table", "view"):
        return None
    _must_have_known_parts(tree, text, span)
    actions = tuple(found for each in tree.args["actions"] for found in _actions(each, text, span))
    if kind == "view" and not all(isinstance(each, RenameTo) for each in actions):
        remedy = "write ALTER VIEW name RENAME TO other, or CREATE OR REPLACE VIEW"
        raise UserError("Q003", "a view can only be renamed", span=span, remedy=remedy)
    if len(actions) > 1 and any(isinstance(each, RenameTo) for each in actions):
        remedy = "write RENAME TO in a statement of its own"
        raise UserError("Q003", "RENAME TO stands alone", span=span, remedy=remedy)
    dropped = [each for each in tree.args["actions"] if isinstance(each, exp.Drop)]
    cascade = bool(tree.args.get("cascade")) or any(each.args.get("cascade") for each in dropped)
    name = table_name(tree.this, text)
    return Alter(kind, name, actions, bool(tree.args.get("exists")), cascade, span)


def _must_have_known_parts(tree: exp.Alter, text: str, span: Span) -> None:
    known = ("this", "kind", "exists", "actions", "cascade")
    if any(value for part, value in tree.args.items() if part not in known):
        raise _not_in_language(tree, text, span)


def _actions(node: exp.Expr, text: str, span: Span) -> Iterator[Action]:
    """The actions of one part between commas; ADD COLUMNS and DROP COLUMNS have several."""
    match node:
        case exp.ColumnDef():
            yield _added(node, text, span)
        case exp.Schema() if node.this is None:
            for each in node.expressions:
                yield from _actions(each, text, span)
        case exp.Drop() if str(node.args.get("kind")).upper() in ("COLUMN", "COLUMNS"):
            yield from _dropped(node, text, span)
        case exp.RenameColumn():
            to = _plain_column(node.args["to"], text, span)
            if problem := unusable_name(to):
                remedy = "choose a plain name, other than _w and _epoch"
                place = span_of(node.args["to"], text) or span
                raise UserError("Q004", problem, span=place, remedy=remedy)
            yield RenameColumn(
                _plain_column(node.this, text, span), to, span_of(node, text) or span
            )
        case exp.AlterColumn() if node.args.get("dtype") and not _more(node, "dtype"):
            declared = exp.ColumnDef(this=node.this.copy(), kind=node.args["dtype"].copy())
            declared.this.meta.update(node.this.meta)
            yield SetType(*column_of(declared, text), span_of(node, text) or span)
        case exp.AlterColumn() if node.args.get("comment") and not _more(node, "comment"):
            yield SetComment(node.name, node.args["comment"].name, span_of(node, text) or span)
        case exp.AlterRename():
            yield RenameTo(table_name(node.this, text), span_of(node, text) or span)
        case _:
            raise _not_in_language(node, text, span)


def _more(node: exp.Expr, known: str) -> bool:
    return any(value for part, value in node.args.items() if part not in ("this", known))


def _added(node: exp.ColumnDef, text: str, span: Span) -> AddColumn:
    place = span_of(node, text) or span
    column, length = column_of(node, text)
    default: str | None = None
    required, comment = False, ""
    for rule in (each.args["kind"] for each in node.args.get("constraints") or ()):
        match rule:
            case exp.DefaultColumnConstraint():
                _must_be_constant(rule.this, text, place)
                default = rule.this.sql(dialect=DIALECT)
            case exp.NotNullColumnConstraint():
                required = not rule.args.get("allow_null")
            case exp.CommentColumnConstraint():
                comment = rule.this.name
            case _:
                raise _not_in_language(rule, text, place)
    if node.args.get("position"):
        remedy = "leave FIRST and AFTER out: a column is added as the last one"
        raise UserError("Q003", "a column has no place of its own", span=place, remedy=remedy)
    lenient = bool(node.args.get("exists"))
    return AddColumn(column, length, default, required, comment, lenient, place)


def _must_be_constant(default: exp.Expr, text: str, place: Span) -> None:
    if default.find(exp.Column, exp.Query, exp.AggFunc) is not None:
        raise UserError(
            "Q004",
            "a default is a constant",
            span=span_of(default, text) or place,
            remedy="give a value that reads no column and no table",
        )


def _dropped(node: exp.Drop, text: str, span: Span) -> Iterator[DropColumn]:
    for each in node.args["tables"]:
        for column in each.expressions if isinstance(each, exp.Schema) else [each]:
            place = span_of(column, text) or span
            name = _plain_column(column, text, span)
            yield DropColumn(name, bool(node.args.get("exists")), place)


def _plain_column(node: exp.Expr, text: str, span: Span) -> str:
    if isinstance(node, exp.Column) and (node.table or not isinstance(node.this, exp.Identifier)):
        raise UserError(
            "Q006",
            f"{node.sql(dialect=DIALECT)} is not a column's name",
            span=span_of(node, text) or span,
            remedy="name the column alone, without its table",
        )
    return node.name


def _not_in_language(node: exp.Expr, text: str, span: Span) -> UserError:
    return UserError(
        "Q003",
        f"this form of ALTER is not part of the language: {node.sql(dialect=DIALECT)[:60]}",
        span=span_of(node, text) or span,
        remedy="write ADD, DROP or RENAME COLUMN, ALTER COLUMN … TYPE, or RENAME TO",
    )
