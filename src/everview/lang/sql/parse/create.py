"""The parser of CREATE TABLE, VIEW and FUNCTION."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import Span, UserError
from everview.expr.dialect import DIALECT
from everview.expr.types import PLAIN_NAME, Column, is_nested, storable_type, unusable_name
from everview.lang.sql.parse.collections import collections_of
from everview.lang.sql.parse.constraints import (
    Constraint,
    computed_value,
    declared_constraint,
    must_be_enforced,
)
from everview.lang.sql.parse.ctes import reads_of
from everview.lang.sql.parse.functions import Function, check_function
from everview.lang.sql.parse.span import span_of
from everview.lang.sql.parse.statements import (
    AUTO,
    NESTED_MODES,
    POLICIES,
    STRICT,
    CreateFunction,
    CreateTable,
    CreateView,
    Query,
)


def create_table(tree: exp.Create, text: str, tokens: list[Token], span: Span) -> CreateTable:
    """CREATE TABLE with columns, or AS a query."""
    schema, query = tree.this, tree.args.get("expression")
    if tree.args.get("replace") or tree.find(exp.TemporaryProperty):
        raise UserError(
            "Q003",
            "a table is neither replaced nor temporary",
            span=span,
            remedy="DROP TABLE first, then CREATE TABLE",
        )
    elsewhere = tree.find(exp.LocationProperty, exp.OptionsProperty)
    if elsewhere is not None:
        raise _not_in_table(elsewhere, text, span)
    lenient, is_set = bool(tree.args.get("exists")), _is_set(tree, text, span)
    if query is not None and is_set:
        raise UserError(
            "Q004",
            "a set cannot be created AS a query",
            span=span,
            remedy="create it with its columns, then INSERT INTO it",
        )
    if query is not None and isinstance(schema, exp.Table):
        start = _query_start(tokens, query, span)
        as_query = Query(text[start : span.stop], reads_of(query), Span(text, start, span.stop))
        return CreateTable(table_name(schema, text), (), (), (), lenient, span, as_query)
    if query is not None or not isinstance(schema, exp.Schema):
        raise UserError(
            "Q004",
            "a table needs either its columns or a query",
            span=span,
            remedy="write CREATE TABLE name (column type, …) or CREATE TABLE name AS SELECT …",
        )
    declared = _with_columns(schema, text, span, lenient=lenient)
    collections = collections_of(tree, tokens, text, span)
    return replace(declared, comment=_said_of(tree), is_set=is_set, collections=collections)


def _is_set(tree: exp.Create, text: str, span: Span) -> bool:
    """Whether WITH (kind = 'set') says that no row is there twice."""
    kinds = [
        part
        for part in (tree.args["properties"].expressions if tree.args.get("properties") else ())
        if type(part) is exp.Property and part.this.name.lower() == "kind"
    ]
    for part in kinds:
        if part.args["value"].name.lower() not in ("set", "bag") or len(kinds) > 1:
            raise UserError(
                "Q003",
                f"this option is not part of the language: {part.sql(dialect=DIALECT)}",
                span=span_of(part, text) or span,
                remedy="leave it out, or write WITH (kind = 'set')",
            )
    return any(part.args["value"].name.lower() == "set" for part in kinds)


def _with_columns(schema: exp.Schema, text: str, span: Span, *, lenient: bool) -> CreateTable:
    columns: list[Column] = []
    keys: list[tuple[str, ...]] = []
    not_null: list[str] = []
    lengths: list[tuple[str, int]] = []
    constraints: list[Constraint] = []
    computed: dict[type[exp.Expr], list[tuple[str, str]]] = {}
    comments: list[tuple[str, str]] = []
    for part in schema.expressions:
        column = part.name if isinstance(part, exp.ColumnDef) else ""
        if isinstance(part, exp.ColumnDef):
            columns.append(Column(part.name, _column_type(part, text, limited=True)))
            lengths += _length(part)
        for name, rule in named_rules(part, text):
            match rule:
                case exp.PrimaryKey():
                    must_be_enforced(rule, text, span)
                    keys.append(tuple(name.name for name in rule.expressions))
                case exp.PrimaryKeyColumnConstraint():
                    must_be_enforced(rule, text, span)
                    keys.append((part.name,))
                case exp.NotNullColumnConstraint():
                    not_null += [] if rule.args.get("allow_null") else [part.name]
                case exp.CommentColumnConstraint():
                    comments += [(part.name, rule.this.name)]
                case _ if column and (value := computed_value(rule, text, span)) is not None:
                    computed.setdefault(type(rule), []).append((column, value))
                case _:
                    constraint = declared_constraint(rule, name, column, text, span)
                    if constraint is None:
                        raise _not_in_table(rule, text, span)
                    constraints.append(constraint)
    if not columns:
        raise UserError(
            "Q004",
            "a table needs a column",
            span=span,
            remedy="write CREATE TABLE name (column type, …)",
        )
    key = _one_key(keys, span)
    _check_columns(columns, key, schema, text)
    spelled = {column.name.lower(): column.name for column in columns}
    key = tuple(spelled[each.lower()] for each in key)
    name = table_name(schema.this, text)
    required = tuple(dict.fromkeys((*key, *not_null)))
    defaults = tuple(computed.pop(exp.DefaultColumnConstraint, ()))
    generated = tuple(each for values in computed.values() for each in values)
    must_have_one_value((*defaults, *generated), span)
    made = CreateTable(name, tuple(columns), key, required, lenient, span, None, tuple(lengths))
    return replace(
        made,
        column_comments=tuple(comments),
        constraints=tuple(constraints),
        defaults=defaults,
        generated=generated,
    )


def named_rules(part: exp.Expr, text: str) -> list[tuple[str, exp.Expr]]:
    """The rules of a column, or those that stand in place of one, each with its name if given."""
    if isinstance(part, exp.ColumnDef):
        found = (
            each for each in part.args["constraints"] if isinstance(each, exp.ColumnConstraint)
        )
        return [(_name(each.args.get("this"), text), each.args["kind"]) for each in found]
    if isinstance(part, exp.Constraint):
        return [(_name(part.args.get("this"), text), rule) for rule in part.expressions]
    return [("", part)]


def _name(node: exp.Expr | None, text: str) -> str:
    if node is not None and (problem := unusable_name(node.name)):
        raise UserError("Q011", problem, span=span_of(node, text), remedy=PLAIN_NAME)
    return node.name if node is not None else ""


def must_have_one_value(computed: tuple[tuple[str, str], ...], span: Span) -> None:
    """Refuse a column with two values for rows that do not give one."""
    named = [name for name, _ in computed]
    if len({*named}) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        problem = f"{twice} has two values for rows that do not give one"
        remedy = "keep one DEFAULT or GENERATED ALWAYS AS"
        raise UserError("Q004", problem, span=span, remedy=remedy)


def _said_of(tree: exp.Create) -> str:
    """The comment on a table or view, empty where there is none."""
    said = tree.args["properties"].find(exp.SchemaCommentProperty) if _options(tree) else None
    return said.this.name if said is not None else ""


def _options(tree: exp.Create) -> list[exp.Expr]:
    properties = tree.args.get("properties")
    return list(properties.expressions) if properties else []


def _length(column: exp.ColumnDef) -> list[tuple[str, int]]:
    """The length n of a VARCHAR(n) column."""
    kind = column.args.get("kind")
    if not isinstance(kind, exp.DataType) or kind.this not in _LIMITED or not kind.expressions:
        return []
    return [(column.name, int(kind.expressions[0].name))]


_LIMITED = (exp.DataType.Type.VARCHAR, exp.DataType.Type.NVARCHAR)
_PADDED = (exp.DataType.Type.CHAR, exp.DataType.Type.NCHAR, exp.DataType.Type.BPCHAR)


def _must_not_be_padded(
    kind: exp.Expr | None, what: str, node: exp.Expr, text: str, *, limited: bool
) -> None:
    """Refuse CHAR, which Spark pads with blanks, and VARCHAR(n) where no length is checked."""
    for each in kind.find_all(exp.DataType) if kind is not None else ():
        length = each.this in _LIMITED and each.expressions and not (limited and each is kind)
        if not length and each.this not in _PADDED and _is_a_length(each):
            continue
        raise UserError(
            "Q005",
            f"{what} has a type that is not supported: {each.sql(dialect=DIALECT)}",
            span=span_of(node, text),
            remedy="use STRING, or VARCHAR(n) for a column of texts of limited length",
        )


def _is_a_length(kind: exp.DataType) -> bool:
    """Whether what a VARCHAR has in brackets is a number of characters, or it has none."""
    given = [each.name for each in kind.expressions] if kind.this in _LIMITED else []
    return all(each.isdecimal() and 0 < int(each) <= _LENGTH_MAX for each in given)


_LENGTH_MAX = 2**31 - 1
"""Spark has no longer texts."""


def _one_key(keys: list[tuple[str, ...]], span: Span) -> tuple[str, ...]:
    if len(keys) > 1:
        raise UserError(
            "Q004",
            "a table has one primary key",
            span=span,
            remedy="write PRIMARY KEY (a, b) for a key of several columns",
        )
    return keys[0] if keys else ()


def _not_in_table(part: exp.Expr, text: str, span: Span) -> UserError:
    return UserError(
        "Q004",
        f"this part of CREATE TABLE is not supported: {part.sql(dialect=DIALECT)}",
        span=span_of(part, text) or span,
        remedy="declare columns, NOT NULL, DEFAULT, GENERATED ALWAYS AS, PRIMARY KEY, UNIQUE, "
        "CHECK and REFERENCES",
    )


def _check_columns(
    columns: list[Column], key: tuple[str, ...], schema: exp.Schema, text: str
) -> None:
    seen: set[str] = set()
    for column in columns:
        if problem := unusable_name(column.name):
            raise UserError("Q011", problem, span=span_of(schema, text), remedy=PLAIN_NAME)
        if column.name.lower() in seen:
            raise UserError(
                "Q004",
                f"two columns are called {column.name}",
                span=span_of(schema, text),
                remedy="give every column a name of its own",
            )
        seen.add(column.name.lower())
    nested = {column.name.lower(): column.type for column in columns if is_nested(column.type)}
    if len({name.lower() for name in key}) < len(key):
        raise UserError(
            "Q004",
            "the primary key names a column twice",
            span=span_of(schema, text),
            remedy="name every column of it once",
        )
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


def column_of(declared: exp.ColumnDef, text: str) -> tuple[Column, int | None]:
    """One declared column, and how long its texts may be if that is limited."""
    column = Column(declared.name, _column_type(declared, text, limited=True))
    if problem := unusable_name(column.name):
        raise UserError("Q011", problem, span=span_of(declared, text), remedy=PLAIN_NAME)
    return column, dict(_length(declared)).get(column.name)


def _column_type(column: exp.ColumnDef, text: str, *, limited: bool = False) -> str:
    what = f"the column {column.name}"
    return _stored_type(column.args.get("kind"), what, column, text, limited=limited)


def _stored_type(
    kind: exp.Expr | None, what: str, node: exp.Expr, text: str, *, limited: bool = False
) -> str:
    _must_not_be_padded(kind, what, node, text, limited=limited)
    declared = kind.sql(dialect=DIALECT) if kind is not None else "nothing"
    stored = storable_type(declared)
    if stored is None:
        raise UserError(
            "Q005",
            f"{what} has a type that is not supported: {declared}",
            span=span_of(node, text),
            remedy="use BOOLEAN, TINYINT … BIGINT, FLOAT, DOUBLE, DECIMAL(p,s), STRING, BINARY, "
            "DATE, TIMESTAMP or TIMESTAMP_NTZ, and ARRAY<…>, STRUCT<…> or MAP<…> of them",
        )
    return stored


def create_view(tree: exp.Create, text: str, tokens: list[Token], span: Span) -> CreateView:
    """CREATE VIEW with its options; the query stays text."""
    target = tree.this
    columns: tuple[str, ...] = ()
    if isinstance(target, exp.Schema):
        columns = tuple(part.name for part in target.expressions)
        target = target.this
    replaces, lenient = bool(tree.args.get("replace")), bool(tree.args.get("exists"))
    if replaces and lenient:
        raise UserError(
            "Q003",
            "OR REPLACE and IF NOT EXISTS cannot both hold",
            span=span,
            remedy="leave one of them out",
        )
    query = text[_query_start(tokens, tree.args.get("expression"), span) : span.stop]
    name, options = table_name(target, text), _view_options(tree, text, span)
    made = CreateView(name, query, columns, lenient, span, replaces, options["refresh"])
    policy, nested = options["policy"], options["nested"]
    return replace(made, comment=_said_of(tree), policy=policy, nested=nested)


def _query_start(tokens: list[Token], query: exp.Expr | None, span: Span) -> int:
    """Where the query after the first AS begins."""
    for before, after in pairwise(tokens):
        if before.token_type == TokenType.SELECT or not isinstance(query, exp.Query | exp.Values):
            break
        if before.token_type == TokenType.ALIAS:
            return after.start
    raise UserError(
        "Q001",
        "syntax error: a query was expected after AS",
        span=span,
        remedy="write AS SELECT …",
    )


def _view_options(tree: exp.Create, text: str, span: Span) -> dict[str, str]:
    """The refresh mode, the policy and how collections are kept, of WITH (…) or TBLPROPERTIES."""
    given = {"refresh": STRICT, "policy": "", "nested": AUTO}
    known = {"refresh": (STRICT, AUTO), "policy": POLICIES, "nested": NESTED_MODES}
    properties = tree.args.get("properties")
    for part in properties.expressions if properties else ():
        if isinstance(part, exp.MaterializedProperty | exp.SchemaCommentProperty):
            continue
        name = part.this.name.lower() if type(part) is exp.Property else ""
        value = part.args["value"].name.lower() if name in known else ""
        if value not in known.get(name, ()):
            either = (
                f"{each} = {' or '.join(map(repr, values))}" for each, values in known.items()
            )
            raise UserError(
                "Q003",
                f"this option is not part of the language: {part.sql(dialect=DIALECT)}",
                span=span_of(part, text) or span,
                remedy=f"leave it out, or write WITH ({'), or WITH ('.join(either)})",
            )
        given[name] = value
    return given


def create_function(tree: exp.Create, text: str, span: Span) -> CreateFunction:
    """CREATE FUNCTION with an expression as its body."""
    declared, body = tree.this, tree.expression
    properties = tree.args.get("properties")
    parts = properties.expressions if properties else []
    returns = [p for p in parts if isinstance(p, exp.ReturnsProperty) and not p.args["is_table"]]
    others = [p for p in parts if not isinstance(p, exp.ReturnsProperty | exp.StabilityProperty)]
    taken = declared.expressions if isinstance(declared, exp.UserDefinedFunction) else []
    plain = all(isinstance(each, exp.ColumnDef) and not each.args["constraints"] for each in taken)
    if not isinstance(body, exp.Return) or len(returns) != 1 or others or not plain:
        raise UserError(
            "Q003",
            "this form of CREATE FUNCTION is not part of the language",
            span=span,
            remedy="write CREATE FUNCTION name(argument type, …) RETURNS type RETURN expression",
        )
    takes = tuple(Column(each.name, _column_type(each, text)) for each in taken)
    gives = _stored_type(returns[0].this, "the result", returns[0], text)
    name = table_name(declared.this, text)
    function = Function(name, takes, gives, body.this.sql(dialect=DIALECT))
    check_function(function, span)
    replaces, lenient = bool(tree.args.get("replace")), bool(tree.args.get("exists"))
    return CreateFunction(function, lenient, replaces, span)


def table_name(node: exp.Expr, text: str) -> str:
    """The plain name of a table or view."""
    plain = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
    more = plain and any(v for part, v in node.args.items() if part not in ("this", "alias", "of"))
    if plain and not more and (problem := unusable_name(node.name)):
        raise UserError("Q011", problem, span=span_of(node, text), remedy=PLAIN_NAME)
    if not plain or more:
        known = isinstance(node, exp.Expr)
        raise UserError(
            "Q006",
            f"{node.sql(dialect=DIALECT) if known else 'this'} is not a table's name",
            span=span_of(node, text) if known else Span(text, 0, len(text)),
            remedy="a store has one namespace: use a plain name",
        )
    return node.name
