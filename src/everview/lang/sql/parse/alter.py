"""The parser of ALTER TABLE and ALTER VIEW."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import Span, UserError
from everview.expr.dialect import DIALECT
from everview.expr.types import PLAIN_NAME, unusable_name
from everview.lang.sql.parse.alterations import (
    Action,
    AddColumn,
    DropColumn,
    RenameColumn,
    RenameTo,
    SetComment,
    SetDefault,
    SetType,
)
from everview.lang.sql.parse.constraints import Constraint, declared_constraint
from everview.lang.sql.parse.create import column_of, named_rules, table_name
from everview.lang.sql.parse.span import span_of
from everview.lang.sql.parse.statements import Alter
from everview.lang.sql.parse.trees import read_tree

FORMS = (
    "write ADD, DROP or RENAME COLUMN with a type that there is, ALTER COLUMN … TYPE, SET or DROP "
    "DEFAULT, or RENAME TO; constraints and NOT NULL are altered in a statement of their own"
)
"""What ALTER can say."""


def parse_alter(tree: exp.Alter, tokens: list[Token], text: str, span: Span) -> Alter | None:
    """An ALTER of a table or a view; None where it alters something else."""
    _must_not_limit_texts(tree, tokens, text)
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


def read_alter(tokens: list[Token], text: str) -> exp.Alter | None:
    """An ALTER that sqlglot does not read as a whole: with CASCADE or RESTRICT at its end, or with
    actions of several kinds.
    """
    if (last := tokens[-1].text.upper()) not in ("CASCADE", "RESTRICT"):
        return _merged_alter(tokens, text)
    tree = read_tree(tokens[:-1], text)
    found = tree if isinstance(tree, exp.Alter) else _merged_alter(tokens[:-1], text)
    if found is not None:
        found.set("cascade", last == "CASCADE")
    return found


def _merged_alter(tokens: list[Token], text: str) -> exp.Alter | None:
    """The actions between commas, each read by itself."""
    words = [token.text.upper() for token in tokens]
    first = 5 if words[2:4] == ["IF", "EXISTS"] else 3
    ends = [at for at in range(first, len(words)) if words[at] in _VERBS and words[at - 1] == ","]
    if not ends:
        return None
    parts = zip((first, *ends), (*(end - 1 for end in ends), len(tokens)), strict=True)
    trees = [read_tree([*tokens[:first], *tokens[start:stop]], text) for start, stop in parts]
    alters = [tree for tree in trees if isinstance(tree, exp.Alter)]
    if len(alters) < len(trees):
        return None
    merged = alters[0]
    for other in alters[1:]:
        merged.args["actions"] += other.args["actions"]
    return merged


_VERBS = ("ADD", "DROP", "RENAME", "ALTER")


def _must_not_limit_texts(tree: exp.Alter, tokens: list[Token], text: str) -> None:
    """Refuse VARCHAR(n) as the new type of a column: sqlglot reads STRING instead."""
    limited = [token for token in tokens if token.token_type in _TEXTS]
    if limited and any(isinstance(each, exp.AlterColumn) for each in tree.args["actions"]):
        raise UserError(
            "Q005",
            f"the type of a column cannot become {limited[0].text.upper()}",
            span=Span(text, limited[0].start, limited[0].end + 1),
            remedy="write TYPE STRING, which has no limit",
        )


_TEXTS = (TokenType.VARCHAR, TokenType.NVARCHAR, TokenType.CHAR, TokenType.NCHAR, TokenType.BPCHAR)


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
                place = span_of(node.args["to"], text) or span
                raise UserError("Q011", problem, span=place, remedy=PLAIN_NAME)
            yield RenameColumn(
                _plain_column(node.this, text, span), to, span_of(node, text) or span
            )
        case exp.AlterColumn() if node.args.get("dtype") and not _more(node, "dtype"):
            declared = exp.ColumnDef(this=node.this.copy(), kind=node.args["dtype"].copy())
            declared.this.meta.update(node.this.meta)
            yield SetType(column_of(declared, text)[0], span_of(node, text) or span)
        case exp.AlterColumn() if node.args.get("default") and not _more(node, "default"):
            place = span_of(node, text) or span
            _must_be_constant(node.args["default"], text, place)
            yield SetDefault(node.name, node.args["default"].unnest().sql(dialect=DIALECT), place)
        case exp.AlterColumn() if node.args.get("drop") and not _more(node, "drop"):
            yield SetDefault(node.name, None, span_of(node, text) or span)
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
    constraints: list[Constraint] = []
    for name, rule in named_rules(node, text) if node.args.get("constraints") else ():
        match rule:
            case exp.DefaultColumnConstraint():
                _must_be_constant(rule.this, text, place)
                default = rule.this.unnest().sql(dialect=DIALECT)
            case exp.NotNullColumnConstraint():
                required = not rule.args.get("allow_null")
            case exp.CommentColumnConstraint():
                comment = rule.this.name
            case exp.GeneratedAsIdentityColumnConstraint() | exp.ComputedColumnConstraint():
                problem = "a generated column cannot be added to a table that is there"
                remedy = "add a column, UPDATE it, or CREATE another table with INSERT … SELECT"
                raise UserError("Q003", problem, span=place, remedy=remedy)
            case _:
                added = declared_constraint(rule, name, column.name, text, span)
                if added is None:
                    raise _not_in_language(rule, text, place)
                constraints.append(added)
    if node.args.get("position"):
        remedy = "leave FIRST and AFTER out: a column is added as the last one"
        raise UserError("Q003", "a column has no place of its own", span=place, remedy=remedy)
    lenient = bool(node.args.get("exists"))
    declared = tuple(constraints)
    return AddColumn(column, length, default, required, comment, lenient, place, declared)


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
        remedy=FORMS,
    )
