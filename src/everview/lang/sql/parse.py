"""SQL text to statements: what the user asked for, before any name is looked up."""

from __future__ import annotations

import logging
import re
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import Span, UserError
from everview.lang.sql.place import span_of
from everview.lang.sql.statements import (
    CreateTable,
    CreateView,
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
from everview.plan.types import Column, is_nested, storable_type, unusable_name

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
            return _create_table(tree, text, span)
        case exp.Create(kind="VIEW"):
            return _create_view(tree, text, tokens, span)
        case exp.Drop(kind="TABLE" | "VIEW"):
            name = _table_name(tree.args["tables"][0], text)
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
            return Query(text[span.start : span.stop], _reads(tree), span)
        case _:
            raise UserError(
                "Q003",
                f"not a statement of the language: {text[span.start : span.stop][:40]!r}",
                span=Span(text, tokens[0].start, tokens[0].end + 1),
                remedy="use CREATE or DROP TABLE or VIEW, INSERT, DELETE, UPDATE, MERGE, "
                "BEGIN, COMMIT, ROLLBACK, EXPLAIN or SELECT",
            )


def _create_table(tree: exp.Create, text: str, span: Span) -> CreateTable:
    schema = tree.this
    if not isinstance(schema, exp.Schema):
        raise UserError(
            "Q004",
            "a table needs its columns",
            span=span,
            remedy="write CREATE TABLE name (column type, …), then INSERT … SELECT",
        )
    columns: list[Column] = []
    key: tuple[str, ...] = ()
    not_null: list[str] = []
    for part in schema.expressions:
        match part:
            case exp.ColumnDef():
                columns.append(Column(part.name, _column_type(part, text)))
                kinds = [constraint.args["kind"] for constraint in part.args["constraints"]]
                for kind in kinds:
                    match kind:
                        case exp.PrimaryKeyColumnConstraint():
                            key = (part.name,)
                        case exp.NotNullColumnConstraint():
                            if not kind.args.get("allow_null"):
                                not_null.append(part.name)
                        case exp.CommentColumnConstraint():
                            pass
                        case _:
                            raise _not_in_table(kind, text, span)
            case exp.PrimaryKey():
                key = tuple(name.name for name in part.expressions)
            case _:
                raise _not_in_table(part, text, span)
    _check_columns(columns, key, schema, text)
    name = _table_name(schema.this, text)
    required = tuple(dict.fromkeys((*key, *not_null)))
    return CreateTable(name, tuple(columns), key, required, bool(tree.args.get("exists")), span)


def _not_in_table(part: exp.Expr, text: str, span: Span) -> UserError:
    return UserError(
        "Q004",
        f"this part of CREATE TABLE is not supported: {part.sql(dialect=DIALECT)}",
        span=span_of(part, text) or span,
        remedy="declare columns, NOT NULL and PRIMARY KEY",
    )


def _check_columns(
    columns: list[Column], key: tuple[str, ...], schema: exp.Schema, text: str
) -> None:
    seen: set[str] = set()
    for column in columns:
        unusable = unusable_name(column.name)
        if column.name.lower() in seen or unusable:
            raise UserError(
                "Q004",
                unusable or f"two columns are called {column.name}",
                span=span_of(schema, text),
                remedy="give every column a plain name of its own, other than _w and _epoch",
            )
        seen.add(column.name.lower())
    nested = {column.name.lower(): column.type for column in columns if is_nested(column.type)}
    for name in key:
        if name.lower() in nested:
            raise UserError(
                "Q004",
                f"the primary key has a column of type {nested[name.lower()].upper()}",
                span=span_of(schema, text),
                remedy="identify rows by plain values",
            )
        if name.lower() not in seen:
            raise UserError(
                "Q006",
                f"the primary key names an unknown column: {name}",
                span=span_of(schema, text),
                remedy=f"choose among {', '.join(column.name for column in columns)}",
            )


def _column_type(column: exp.ColumnDef, text: str) -> str:
    kind = column.args.get("kind")
    declared = kind.sql(dialect=DIALECT) if kind is not None else "nothing"
    found = storable_type(declared)
    if found is None:
        raise UserError(
            "Q005",
            f"the column {column.name} has a type that is not supported: {declared}",
            span=span_of(column, text),
            remedy="use BOOLEAN, TINYINT … BIGINT, FLOAT, DOUBLE, DECIMAL(p,s), STRING, BINARY, "
            "DATE, TIMESTAMP or TIMESTAMP_NTZ, and ARRAY<…>, STRUCT<…> or MAP<…> of them",
        )
    return found


def _create_view(tree: exp.Create, text: str, tokens: list[Token], span: Span) -> CreateView:
    target = tree.this
    columns: tuple[str, ...] = ()
    if isinstance(target, exp.Schema):
        columns = tuple(part.name for part in target.expressions)
        target = target.this
    if tree.args.get("replace"):
        raise UserError(
            "Q003",
            "CREATE OR REPLACE VIEW is not part of the language yet",
            span=span,
            remedy="DROP VIEW first, then CREATE VIEW",
        )
    properties = tree.args.get("properties")
    for part in properties.expressions if properties else ():
        if not isinstance(part, exp.MaterializedProperty):
            raise UserError(
                "Q003",
                f"this option is not part of the language yet: {part.sql(dialect=DIALECT)}",
                span=span_of(part, text) or span,
                remedy="leave it out",
            )
    start = next(
        after.start for before, after in pairwise(tokens) if before.token_type == TokenType.ALIAS
    )
    query = text[start : span.stop]
    return CreateView(
        _table_name(target, text), query, columns, bool(tree.args.get("exists")), span
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
    return Insert(_table_name(target, text), columns, query.sql(dialect=DIALECT), span)


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
    name = _table_name(node, text)
    return name, node.alias or name


def _table_name(node: exp.Expr, text: str) -> str:
    if not isinstance(node, exp.Table) or node.args.get("db") or unusable_name(node.name):
        raise UserError(
            "Q006",
            f"{node.sql(dialect=DIALECT)} is not a table's name",
            span=span_of(node, text),
            remedy="a store has one namespace: use a plain name",
        )
    return node.name


def _reads(tree: exp.Expr) -> tuple[str, ...]:
    """The tables a query names, those it defines itself left out."""
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    named = (table.name for table in tree.find_all(exp.Table) if table.name)
    return tuple(dict.fromkeys(name for name in named if name.lower() not in own))
