"""SQL text to statements, before any name is resolved."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import Span, UserError
from everview.expr.dialect import DIALECT
from everview.lang.sql.parse.alter import FORMS, parse_alter, read_alter
from everview.lang.sql.parse.alter_constraints import alter_constraints
from everview.lang.sql.parse.begin import begin
from everview.lang.sql.parse.constraints import read_assertion
from everview.lang.sql.parse.copy import copy_statement
from everview.lang.sql.parse.create import create_function, create_table, create_view, table_name
from everview.lang.sql.parse.ctes import reads_of
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.show import parse_comment, parse_describe, parse_show
from everview.lang.sql.parse.span import span_of
from everview.lang.sql.parse.statements import (
    CreateAssertion,
    Delete,
    Drop,
    Explain,
    ExplainChanges,
    Insert,
    Merge,
    MergeClause,
    OnConflict,
    Query,
    Statement,
    TransactionBracket,
    Truncate,
    Update,
)
from everview.lang.sql.parse.trees import read_tree, read_trees
from everview.lang.sql.parse.versions import refuse_versions


def parse_statements(text: str) -> tuple[Statement, ...]:
    """The statements of a text in Spark's dialect, in order."""
    parts = zip(*read_trees(text), strict=True)
    return tuple(_statement(tree, text, tokens) for tree, tokens in parts)


def parse_query(text: str) -> exp.Expr:
    """The tree of one query."""
    trees, _ = read_trees(text)
    if len(trees) != 1:
        raise UserError("Q001", "one query was expected", remedy="write a single SELECT")
    return trees[0]


@dataclass(frozen=True, slots=True)
class _Source:
    """A statement with its text, its tokens and its place in the text."""

    text: str
    tokens: list[Token]
    span: Span

    @property
    def own_text(self) -> str:
        """The text of this statement alone."""
        return self.text[self.span.start : self.span.stop]


def _statement(tree: exp.Expr, text: str, tokens: list[Token]) -> Statement:
    source = _Source(text, tokens, Span(text, tokens[0].start, tokens[-1].end + 1))
    _must_have_known_parts(tree, source.span)
    parse = _query if isinstance(tree, exp.Query | exp.Values) else _PARSERS.get(type(tree))
    statement = parse(tree, source) if parse is not None else None
    if statement is not None:
        return statement
    _refuse_query_after_as(tree, text, tokens)
    raise UserError(
        "Q003",
        f"not a statement of the language: {source.own_text[:40]!r}",
        span=Span(text, tokens[0].start, tokens[0].end + 1),
        remedy="use CREATE, ALTER or DROP TABLE or VIEW, CREATE or DROP FUNCTION or ASSERTION, "
        "INSERT, DELETE, UPDATE, MERGE, TRUNCATE, COPY, BEGIN, COMMIT, ROLLBACK, EXPLAIN, SHOW, "
        "DESCRIBE, COMMENT or SELECT",
    )


def _create(tree: exp.Expr, source: _Source) -> Statement | None:
    match tree:
        case exp.Create(kind="TABLE"):
            return create_table(tree, source.text, source.tokens, source.span)
        case exp.Create(kind="VIEW"):
            refuse_versions(tree, source.text)
            return create_view(tree, source.text, source.tokens, source.span)
        case exp.Create(kind="FUNCTION"):
            return create_function(tree, source.text, source.span)
        case _:
            return None


def _drop(tree: exp.Expr, source: _Source) -> Statement | None:
    kind = str(tree.args.get("kind") or "").upper()
    if kind not in ("TABLE", "VIEW", "FUNCTION"):
        return None
    if len(tree.args["tables"]) > 1:
        raise _not_in_language("DROP of several names", source.span, "drop one at a time")
    name = table_name(tree.args["tables"][0], source.text)
    cascade = bool(tree.args.get("cascade"))
    if cascade and kind == "FUNCTION":
        raise _not_in_language("DROP FUNCTION … CASCADE", source.span, "leave CASCADE out")
    return Drop(kind.lower(), name, bool(tree.args.get("exists")), source.span, cascade)


def _delete(tree: exp.Expr, source: _Source) -> Statement:
    table, alias = _target(tree.this, source.text)
    elements = tree.args.get("elements")
    named = elements.sql(dialect=QUERIES) if elements is not None else ""
    of = _place_of(tree.this)
    if named and (not of or tree.args.get("where")):
        remedy = "write DELETE FROM table.collection OF key VALUES …, or WHERE"
        raise _not_in_language("this form of DELETE", source.span, remedy)
    return Delete(table, alias, _where(tree), source.span, of, named)


def _update(tree: exp.Expr, source: _Source) -> Statement:
    table, alias = _target(tree.this, source.text)
    pairs = tuple(_assignment(pair, (table, alias), source.span) for pair in tree.expressions)
    if not pairs:
        raise _not_in_language("UPDATE without SET", source.span, "write SET column = value")
    return Update(table, alias, pairs, _where(tree), source.span, _place_of(tree.this))


def _begin(tree: exp.Expr, source: _Source) -> Statement:
    return begin(tree, source.text, source.span)


def _bracket(action: str) -> Callable[[exp.Expr, _Source], Statement]:
    return lambda _, source: TransactionBracket(action, source.span)


def _explain(tree: exp.Expr, source: _Source) -> Statement | None:
    if str(tree.this).upper() != "EXPLAIN" or not tree.expression:
        return None
    what = str(tree.expression.name).strip()
    if (changes := _CHANGES_OF.fullmatch(what)) is not None:
        return ExplainChanges(changes["plain"] or changes["quoted"].replace("``", "`"), source.span)
    return Explain(what, source.span)


_CHANGES_OF = re.compile(
    r"CHANGES\s+OF\s+(?:(?P<plain>\w+)|`(?P<quoted>(?:[^`]|``)+)`)", re.IGNORECASE
)


def _query(tree: exp.Expr, source: _Source) -> Statement:
    return Query(source.own_text, reads_of(tree), source.span)


_KNOWN_PARTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Drop: ("kind", "tables", "exists", "materialized", "cascade", "restrict"),
    exp.Insert: ("this", "expression", "with_", "overwrite", "conflict"),
    exp.Delete: ("this", "where", "elements"),
    exp.Update: ("this", "expressions", "where"),
    exp.Merge: ("this", "using", "on", "whens"),
}
"""The parts that are understood of statements that change something; any other is refused."""


def _must_have_known_parts(tree: exp.Expr, span: Span) -> None:
    known = _KNOWN_PARTS.get(type(tree))
    for part, value in tree.args.items() if known else ():
        if value and part not in (known or ()):
            shown = part.strip("_").replace("_", " ").upper()
            raise _not_in_language(f"{tree.key.upper()} … {shown}", span, "leave that part out")


def _not_in_language(construct: str, span: Span, remedy: str) -> UserError:
    return UserError("Q003", f"{construct} is not part of the language", span=span, remedy=remedy)


def _refuse_query_after_as(tree: exp.Expr, text: str, tokens: list[Token]) -> None:
    """Raise the syntax error of the query of a CREATE that the parser gave up on."""
    kinds = [token.token_type for token in tokens]
    if isinstance(tree, exp.Command) and TokenType.ALIAS in kinds[:-1]:
        read_tree(tokens[kinds.index(TokenType.ALIAS) + 1 :], text)


def _insert(tree: exp.Expr, source: _Source) -> Statement:
    target = tree.this
    columns: tuple[str, ...] = ()
    if isinstance(target, exp.Schema):
        columns = tuple(part.name for part in target.expressions)
        target = target.this
    if tree.args.get("overwrite") or tree.expression is None:
        raise UserError(
            "Q003",
            "this form of INSERT is not part of the language",
            span=source.span,
            remedy="write INSERT INTO table VALUES … or INSERT INTO table SELECT …",
        )
    query = tree.expression
    if tree.args.get("with_"):
        query = query.copy()
        query.set("with_", tree.args["with_"].copy())
    text = query.sql(dialect=QUERIES)
    table, alias = _target(target, source.text)
    conflict, of = _conflict(tree, (table, alias), source), _place_of(target)
    if of and conflict is not None:
        remedy = "leave ON CONFLICT out: elements have no keys"
        raise _not_in_language("INSERT … OF … ON CONFLICT", source.span, remedy)
    return Insert(table, columns, text, source.span, conflict, of)


def _place_of(target: exp.Expr) -> tuple[str, ...]:
    """Where a collection is: the values after OF."""
    return tuple(each.sql(dialect=QUERIES) for each in target.args.get("of") or ())


def _conflict(tree: exp.Expr, own: tuple[str, str], source: _Source) -> OnConflict | None:
    """ON CONFLICT [(columns)] DO NOTHING, or DO UPDATE SET … [WHERE …]."""
    conflict = tree.args.get("conflict")
    if conflict is None:
        return None
    action = conflict.args.get("action")
    does = action.name.upper() if action is not None else ""
    keys: list[exp.Expr] = [key.this for key in conflict.args.get("conflict_keys") or ()]
    known = ("expressions", "action", "conflict_keys", "where")
    odd = any(value for part, value in conflict.args.items() if part not in known)
    plain = all(isinstance(key, exp.Column) and not key.table for key in keys)
    wanted = "DO UPDATE" if conflict.expressions else "DO NOTHING"
    if odd or not plain or does != wanted:
        raise _not_in_language(
            "this form of ON CONFLICT",
            span_of(conflict, source.text) or source.span,
            "write ON CONFLICT (key) DO NOTHING, or DO UPDATE SET column = value",
        )
    pairs = tuple(_assignment(each, own, source.span) for each in conflict.expressions)
    return OnConflict(own[1], tuple(key.name for key in keys), pairs, _where(conflict))


def _merge(tree: exp.Expr, source: _Source) -> Statement:
    text, span = source.text, source.span
    table, alias = _target(tree.this, text)
    own = (table, alias)
    clauses = tuple(_clause(when, own, text, span) for when in tree.args["whens"].expressions)
    using = tree.args["using"].sql(dialect=QUERIES)
    return Merge(table, alias, using, tree.args["on"].sql(dialect=DIALECT), clauses, span)


def _clause(when: exp.When, own: tuple[str, str], text: str, span: Span) -> MergeClause:
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
        case exp.Update() if matched:
            given = then.args["expressions"]
            if isinstance(given, exp.Star) or given == [exp.Star()]:
                return MergeClause(matched, shown, "update", (), ())
            if not isinstance(given, list) or not given:
                raise _not_in_language("UPDATE without SET", span, "write SET column = value")
            pairs = [_assignment(pair, own, span) for pair in given]
            columns, values = zip(*pairs, strict=True)
            return MergeClause(matched, shown, "update", columns, values)
        case exp.Insert() if not matched:
            names, given = then.this, then.expression
            if isinstance(names, exp.Star) or given is None:
                return MergeClause(matched, shown, "insert", (), ())
            if not isinstance(given, exp.Tuple):
                raise _not_in_language("INSERT without VALUES", span, "write VALUES (…)")
            values = tuple(value.sql(dialect=DIALECT) for value in given.expressions)
            columns = tuple(name.name for name in names.expressions) if names else ()
            return MergeClause(matched, shown, "insert", columns, values)
        case exp.Var() if matched and then.name.upper() == "DELETE":
            return MergeClause(matched, shown, "delete", (), ())
        case _:
            word = "MATCHED" if matched else "NOT MATCHED"
            remedy = "update or delete what is matched, insert what is not"
            raise _not_in_language(f"this clause after {word}", span_of(when, text) or span, remedy)


def _assignment(pair: exp.Expr, own: tuple[str, str], span: Span) -> tuple[str, str]:
    """The column of a row that is set, and its value; `own` are the names of its table."""
    column = pair.this
    if not isinstance(pair, exp.EQ) or not isinstance(column, exp.Column):
        raise _not_in_language("this form of SET", span, "write SET column = value")
    if column.table and column.table.lower() not in map(str.lower, own):
        raise UserError(
            "Q006",
            f"{column.table} is not what is changed",
            span=span,
            remedy=f"set columns of {own[0]}",
        )
    return column.name, pair.expression.sql(dialect=DIALECT)


def _where(tree: exp.Expr) -> str | None:
    where = tree.args.get("where")
    return where.this.sql(dialect=DIALECT) if where else None


def _target(node: exp.Expr, text: str) -> tuple[str, str]:
    name = table_name(node, text)
    return name, node.alias or name


def _alter(tree: exp.Expr, source: _Source) -> Statement | None:
    if not isinstance(tree, exp.Alter):
        return None
    of_constraints = alter_constraints(tree, source.text, source.span)
    if of_constraints is not None and tree.args.get("cascade"):
        remedy = "leave CASCADE out: no view breaks by it"
        raise _not_in_language("CASCADE after this form of ALTER TABLE", source.span, remedy)
    return of_constraints or parse_alter(tree, source.tokens, source.text, source.span)


def _command(tree: exp.Expr, source: _Source) -> Statement | None:
    if str(tree.this).upper() == "SHOW":
        return parse_show(tree, source.text, source.span)
    kinds = [token.text.upper() for token in source.tokens[:3]]
    if kinds == ["ALTER", "MATERIALIZED", "VIEW"]:
        plain = read_tree([source.tokens[0], *source.tokens[2:]], source.text)
        return _alter(plain, source)
    if kinds[:2] == ["ALTER", "TABLE"]:
        found = read_alter(source.tokens, source.text)
        if found is None:
            raise _not_in_language("this form of ALTER TABLE", source.span, FORMS)
        return _alter(found, source)
    constraint = read_assertion(source.tokens, source.text, source.span)
    if constraint is not None:
        return CreateAssertion(constraint, source.span)
    return _drop_assertion(source) or _explain(tree, source)


def _drop_assertion(source: _Source) -> Statement | None:
    words = [token.text.upper() for token in source.tokens]
    if words[:2] != ["DROP", "ASSERTION"]:
        return None
    lenient = words[2:4] == ["IF", "EXISTS"]
    named = source.tokens[4:] if lenient else source.tokens[2:]
    if len(named) != 1:
        raise _not_in_language("this DROP", source.span, "write DROP ASSERTION name")
    return Drop("assertion", named[0].text, lenient, source.span)


def _describe(tree: exp.Expr, source: _Source) -> Statement:
    return parse_describe(tree, source.text, source.span)


def _comment(tree: exp.Expr, source: _Source) -> Statement | None:
    return parse_comment(tree, source.text, source.span)


def _truncate(tree: exp.Expr, source: _Source) -> Statement:
    if any(tree.args.get(part) for part in ("partition", "cluster", "is_database", "identity")):
        raise _not_in_language("this form of TRUNCATE", source.span, "write TRUNCATE TABLE name")
    tables = tuple(table_name(t, source.text) for t in tree.expressions)
    cascade = tree.args.get("option") == "CASCADE"
    return Truncate(tables, source.span, bool(tree.args.get("exists")), cascade)


_PARSERS: dict[type[exp.Expr], Callable[[exp.Expr, _Source], Statement | None]] = {
    exp.Create: _create,
    exp.Drop: _drop,
    exp.Alter: _alter,
    exp.TruncateTable: _truncate,
    exp.Insert: _insert,
    exp.Delete: _delete,
    exp.Update: _update,
    exp.Merge: _merge,
    exp.Transaction: _begin,
    exp.Copy: lambda tree, source: copy_statement(tree, source.text, source.span),
    exp.Commit: _bracket("commit"),
    exp.Rollback: _bracket("rollback"),
    exp.Command: _command,
    exp.Describe: _describe,
    exp.Comment: _comment,
}
"""How the tree of each statement but a query is read; None where it is no statement of ours."""
