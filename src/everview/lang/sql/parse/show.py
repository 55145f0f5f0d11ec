"""The parser of SHOW, DESCRIBE and COMMENT ON."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import Span, UserError
from everview.lang.sql.parse.create import table_name
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.statements import Comment, Show

_FORMS = "SHOW TABLES, SHOW VIEWS, SHOW COLUMNS IN name, SHOW CREATE TABLE name, or DESCRIBE name"


def parse_show(tree: exp.Expr, text: str, span: Span) -> Show:
    """SHOW of what is declared; sqlglot reads no more of it than its first word."""
    tokens = list(QUERIES().tokenize(tree.expression.name if tree.expression else ""))
    words = [token.text.lower() for token in tokens]
    match words:
        case ["tables" | "views" as what]:
            return Show(what, None, span)
        case ["columns", "in" | "from", _]:
            return Show("columns", _name(tokens[2], span), span)
        case ["create", "table" | "view", _]:
            return Show("create", _name(tokens[2], span), span)
        case _:
            shown = text[span.start : span.stop][:40]
            problem = f"this form of SHOW is not part of the language: {shown!r}"
            raise UserError("Q003", problem, span=span, remedy=f"write {_FORMS}")


def _name(token: Token, span: Span) -> str:
    if token.token_type is TokenType.STRING or not token.text:
        raise UserError("Q006", f"{token.text!r} is not a name", span=span, remedy="use a name")
    return token.text


def parse_describe(tree: exp.Expr, text: str, span: Span) -> Show:
    """DESCRIBE of a table or view, which shows its columns."""
    known = ("this", "kind")
    if any(value for part, value in tree.args.items() if part not in known):
        problem = "this form of DESCRIBE is not part of the language"
        raise UserError("Q003", problem, span=span, remedy="write DESCRIBE name")
    return Show("columns", table_name(tree.this, text), span)


def parse_comment(tree: exp.Expr, text: str, span: Span) -> Comment | None:
    """COMMENT ON a table, a view, or a column of one."""
    kind, target = str(tree.args.get("kind") or "").lower(), tree.this
    if kind not in ("table", "view", "column"):
        return None
    said = tree.expression.name
    if kind != "column":
        return Comment(table_name(target, text), None, said, span, kind)
    parts = [part.name for part in target.parts] if isinstance(target, exp.Column) else []
    if len(parts) != 2:
        problem, remedy = "a column is named with its table", "write COMMENT ON COLUMN t.c IS …"
        raise UserError("Q006", problem, span=span, remedy=remedy)
    return Comment(parts[0], parts[1], said, span, kind)
