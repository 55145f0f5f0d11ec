"""SQL text to statements: what the user asked for, before any name is looked up."""

from __future__ import annotations

import logging
import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import Span, UserError
from everview.lang.sql.create import (
    create_function,
    create_table,
    create_view,
    reads_of,
    table_name,
)
from everview.lang.sql.place import span_of
from everview.lang.sql.statements import (
    Delete,
    Drop,
    Explain,
    Insert,
    Merge,
    MergeClause,
    Query,
    Statement,
    Transaction,
    Update,
)
from everview.plan.dialect import DIALECT

logging.getLogger("sqlglot").setLevel(logging.ERROR)


def parse_statements(text: str, dialect: str | None = None) -> tuple[Statement, ...]:
    """The statements of a text, in order. Another dialect is first turned into Spark's."""
    if dialect is not None and dialect.lower() != "spark":
        text = _translate(text, dialect)
    return tuple(_statement(tree, text, tokens) for tree, tokens in zip(*_trees(text), strict=True))


def parse_query(text: str) -> exp.Expr:
    """The tree of one query."""
    trees, _ = _trees(text)
    if len(trees) != 1:
        raise UserError("Q001", "one query was expected", remedy="write a single SELECT")
    return trees[0]


def _trees(text: str) -> tuple[list[exp.Expr], list[list[Token]]]:
    try:
        tokens = DIALECT().tokenize(text)
        parts = [part for part in _split(tokens) if part]
        trees = [DIALECT().parser().parse(part, text)[0] for part in parts]
    except ParseError as problem:
        raise _syntax_error(problem, text) from None
    except TokenError as problem:
        raise UserError(
            "Q001",
            f"the text cannot be read: {problem}",
            span=Span(text, 0, len(text)),
            remedy="close the quote or comment that is open",
        ) from None
    return [tree for tree in trees if tree is not None], parts


def _split(tokens: list[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _syntax_error(problem: ParseError, text: str) -> UserError:
    detail = problem.errors[0]
    lines = text.split("\n")
    highlight = detail.get("highlight") or ""
    line = int(detail.get("line") or 1)
    stop = sum(len(each) + 1 for each in lines[: line - 1]) + int(detail.get("col") or 1)
    start = max(stop - max(len(highlight), 1), 0)
    message = str(detail.get("description") or "the text is not SQL").rstrip(".")
    message = re.sub(r"<Token .*?text: (.*?), line.*?>", r"\1", message)
    return UserError(
        "Q001",
        f"syntax error: {message[:1].lower()}{message[1:]}",
        span=Span(text, start, max(stop, start + 1)),
        remedy="correct the text at the place shown; Spark's dialect is expected",
    )


def _translate(text: str, dialect: str) -> str:
    try:
        parts = sqlglot.transpile(text, read=dialect, write=DIALECT)
    except ParseError as problem:
        raise _syntax_error(problem, text) from None
    except ValueError as problem:
        raise UserError("Q002", str(problem), remedy="name a dialect that sqlglot knows") from None
    return ";\n".join(parts)


def _statement(tree: exp.Expr, text: str, tokens: list[Token]) -> Statement:
    span = Span(text, tokens[0].start, tokens[-1].end + 1)
    match tree:
        case exp.Create(kind="TABLE"):
            return create_table(tree, text, tokens, span)
        case exp.Create(kind="VIEW"):
            return create_view(tree, text, tokens, span)
        case exp.Create(kind="FUNCTION"):
            return create_function(tree, text, span)
        case exp.Drop(kind="TABLE" | "VIEW" | "FUNCTION"):
            name = table_name(tree.args["tables"][0], text)
            return Drop(str(tree.args["kind"]).lower(), name, bool(tree.args.get("exists")), span)
        case exp.Insert():
            return _insert(tree, text, span)
        case exp.Delete():
            table, alias = _target(tree.this, text)
            return Delete(table, alias, _where(tree), span)
        case exp.Update():
            table, alias = _target(tree.this, text)
            pairs = tuple(_assignment(pair) for pair in tree.expressions)
            return Update(table, alias, pairs, _where(tree), span)
        case exp.Merge():
            return _merge(tree, text, span)
        case exp.Transaction():
            return Transaction("begin", span)
        case exp.Commit():
            return Transaction("commit", span)
        case exp.Rollback():
            return Transaction("rollback", span)
        case exp.Command() if str(tree.this).upper() == "EXPLAIN":
            return Explain(str(tree.expression.name).strip(), span)
        case exp.Query() | exp.Values():
            return Query(text[span.start : span.stop], reads_of(tree), span)
        case _:
            raise UserError(
                "Q003",
                f"not a statement of the language: {text[span.start : span.stop][:40]!r}",
                span=Span(text, tokens[0].start, tokens[0].end + 1),
                remedy="use CREATE or DROP TABLE, VIEW or FUNCTION, INSERT, DELETE, UPDATE, MERGE, "
                "BEGIN, COMMIT, ROLLBACK, EXPLAIN or SELECT",
            )


def _insert(tree: exp.Insert, text: str, span: Span) -> Insert:
    target = tree.this
    columns: tuple[str, ...] = ()
    if isinstance(target, exp.Schema):
        columns = tuple(part.name for part in target.expressions)
        target = target.this
    if tree.args.get("overwrite") or tree.expression is None:
        raise UserError(
            "Q003",
            "this form of INSERT is not part of the language",
            span=span,
            remedy="write INSERT INTO table VALUES … or INSERT INTO table SELECT …",
        )
    query = tree.expression
    if tree.args.get("with_"):
        query = query.copy()
        query.set("with_", tree.args["with_"].copy())
    return Insert(table_name(target, text), columns, query.sql(dialect=DIALECT), span)


def _merge(tree: exp.Merge, text: str, span: Span) -> Merge:
    table, alias = _target(tree.this, text)
    clauses = tuple(_clause(when, text, span) for when in tree.args["whens"].expressions)
    source = tree.args["using"].sql(dialect=DIALECT)
    return Merge(table, alias, source, tree.args["on"].sql(dialect=DIALECT), clauses, span)


def _clause(when: exp.When, text: str, span: Span) -> MergeClause:
    condition = when.args.get("condition")
    shown = condition.sql(dialect=DIALECT) if condition else None
    matched, then = bool(when.args.get("matched")), when.args["then"]
    if when.args.get("source"):
        raise UserError(
            "Q003",
            "WHEN NOT MATCHED BY SOURCE is not part of the language",
            span=span_of(when, text) or span,
            remedy="delete or update those rows in a statement of their own",
        )
    match then:
        case exp.Update():
            pairs = [_assignment(pair) for pair in then.expressions]
            if not pairs:
                return MergeClause(matched, shown, "update", (), ())
            columns, values = zip(*pairs, strict=True)
            return MergeClause(matched, shown, "update", columns, values)
        case exp.Insert():
            names, given = then.this, then.expression
            if isinstance(names, exp.Star) or given is None:
                return MergeClause(matched, shown, "insert", (), ())
            values = tuple(value.sql(dialect=DIALECT) for value in given.expressions)
            columns = tuple(name.name for name in names.expressions) if names else ()
            return MergeClause(matched, shown, "insert", columns, values)
        case _:
            return MergeClause(matched, shown, "delete", (), ())


def _assignment(pair: exp.Expr) -> tuple[str, str]:
    return pair.this.name, pair.expression.sql(dialect=DIALECT)


def _where(tree: exp.Expr) -> str | None:
    where = tree.args.get("where")
    return where.this.sql(dialect=DIALECT) if where else None


def _target(node: exp.Expr, text: str) -> tuple[str, str]:
    name = table_name(node, text)
    return name, node.alias or name
