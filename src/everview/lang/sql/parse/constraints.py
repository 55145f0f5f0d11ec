"""Constraints as they are declared: their record, and the parser of each form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from everview.errors import Span, UserError
from everview.expr.quoting import spark_name
from everview.expr.types import PLAIN_NAME, unusable_name
from everview.lang.sql.parse.grammar import NOT_ENFORCED, QUERIES
from everview.lang.sql.parse.span import span_of
from everview.lang.sql.parse.trees import read_tree
from everview.lang.sql.parse.versions import refuse_versions

CHECK, UNIQUE, FOREIGN_KEY, ASSERTION = "check", "unique", "foreign key", "assertion"
"""The kinds of constraints; an assertion belongs to no table."""

NO_ACTION, RESTRICT, CASCADE, SET_NULL = "NO ACTION", "RESTRICT", "CASCADE", "SET NULL"
"""What a foreign key does when a row that is referred to goes."""
_ACTIONS = (NO_ACTION, RESTRICT, CASCADE, SET_NULL)
_UNENFORCED = "NOT ENFORCED"


@dataclass(frozen=True, slots=True)
class Reference:
    """What a foreign key refers to; without columns, to the primary key."""

    table: str
    columns: tuple[str, ...] = ()
    on_delete: str = NO_ACTION


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition that must hold after every transaction.

    `condition` is the text inside CHECK (…); `columns` are those of a key, or the one at which a
    CHECK is declared. The functions that the condition `calls` are written out in it. One that is
    not `enforced` is a view of the rows that violate it.
    """

    kind: str
    name: str = ""
    table: str = ""
    columns: tuple[str, ...] = ()
    condition: str = ""
    references: Reference | None = None
    enforced: bool = True
    calls: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The constraint in SQL.

        >>> Constraint(UNIQUE, "k", "t", ("a", "b")).text
        'UNIQUE (`a`, `b`)'
        """
        if self.kind in (CHECK, ASSERTION):
            text = f"CHECK ({self.condition})"
        else:
            text = f"{self.kind.upper()} ({_listed(self.columns)})"
        if self.references is not None:
            to = self.references
            columns = f" ({_listed(to.columns)})" if to.columns else ""
            action = f" ON DELETE {to.on_delete}" if to.on_delete != NO_ACTION else ""
            text += f" REFERENCES {spark_name(to.table)}{columns}{action}"
        return text if self.enforced else f"{text} {_UNENFORCED}"


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(spark_name, columns))


def declared_constraint(
    rule: exp.Expr, name: str, column: str, text: str, span: Span
) -> Constraint | None:
    """A constraint of a table, or of one `column` of it; None where it is none of ours."""
    place = span_of(rule, text) or span
    match rule:
        case exp.CheckColumnConstraint():
            enforced = NOT_ENFORCED not in rule.meta
            condition = rule.this.sql(dialect=QUERIES)
            at = (column,) if column else ()
            return Constraint(CHECK, name, "", at, condition, enforced=enforced)
        case exp.UniqueColumnConstraint():
            columns = tuple(part.name for part in _inner(rule.this)) or (column,)
            if rule.args.get("nulls") or rule.args.get("on_conflict"):
                raise _refused("this form of UNIQUE", place, "write UNIQUE (column, …)")
            enforced, _ = _options(rule.args.get("options"), place)
            return Constraint(UNIQUE, name, columns=columns, enforced=enforced)
        case exp.ForeignKey():
            columns = tuple(part.name for part in rule.expressions)
            given = [f"ON {kind} {rule.args[kind]}" for kind in _EVENTS if rule.args.get(kind)]
            options = [*given, *(rule.args.get("options") or ())]
            return _foreign_key(name, columns, rule.args.get("reference"), options, place)
        case exp.Reference():
            return _foreign_key(name, (column,), rule, (), place)
        case _:
            return None


_EVENTS = ("delete", "update")


def _inner(schema: exp.Expr | None) -> Sequence[exp.Expr]:
    return schema.expressions if isinstance(schema, exp.Schema) else ()


def _foreign_key(
    name: str,
    columns: tuple[str, ...],
    reference: exp.Expr | None,
    options: Sequence[str],
    place: Span,
) -> Constraint:
    target = reference.this if isinstance(reference, exp.Reference) else None
    table = target.this if isinstance(target, exp.Schema) else target
    if not isinstance(table, exp.Table) or not table.name or table.db:
        raise _refused("a foreign key without REFERENCES", place, "write REFERENCES table (column)")
    assert reference is not None
    to = tuple(part.name for part in _inner(target))
    enforced, on_delete = _options([*(reference.args.get("options") or ()), *options], place)
    if not enforced and on_delete not in (NO_ACTION, RESTRICT):
        raise _refused(f"ON DELETE {on_delete} {_UNENFORCED}", place, "leave out one of them")
    references = Reference(table.name, to, on_delete)
    return Constraint(FOREIGN_KEY, name, columns=columns, references=references, enforced=enforced)


def _options(options: Sequence[object] | None, place: Span) -> tuple[bool, str]:
    """Whether a key is enforced, and what it does when a row that is referred to goes.

    A key is verified at commit, so it may be called deferred.
    """
    enforced, on_delete = True, NO_ACTION
    for option in options or ():
        words = str(getattr(option, "name", option)).upper()
        action = words.removeprefix("ON DELETE ")
        if words == _UNENFORCED:
            enforced = False
        elif words.startswith("ON DELETE ") and action in _ACTIONS:
            on_delete = action
        elif words not in _WITHOUT_EFFECT:
            remedy = "write ON DELETE NO ACTION, RESTRICT, CASCADE or SET NULL"
            raise _refused(f"{words} of a key", place, remedy)
    return enforced, on_delete


_WITHOUT_EFFECT = (
    *("ENFORCED", "MATCH SIMPLE", "DEFERRABLE", "INITIALLY DEFERRED"),
    *("ON UPDATE NO ACTION", "ON UPDATE RESTRICT"),
)


def must_be_enforced(key: exp.Expr, text: str, span: Span) -> None:
    """Refuse a primary key that is not enforced: views rely on it."""
    place = span_of(key, text) or span
    enforced, _ = _options(key.args.get("options"), place)
    if not enforced:
        raise _refused(f"PRIMARY KEY {_UNENFORCED}", place, f"write UNIQUE … {_UNENFORCED}")


def computed_value(rule: exp.Expr, text: str, span: Span) -> str | None:
    """The expression of DEFAULT or GENERATED ALWAYS AS (…); None for any other rule."""
    match rule:
        case exp.DefaultColumnConstraint():
            return str(rule.this.unnest().sql(dialect=QUERIES))
        case exp.GeneratedAsIdentityColumnConstraint():
            expression = rule.args.get("expression")
            if expression is None or not rule.this:
                remedy = "write GENERATED ALWAYS AS (expression)"
                raise _refused("a column that counts", span_of(rule, text) or span, remedy)
            return str(expression.unnest().sql(dialect=QUERIES))
        case exp.ComputedColumnConstraint():
            return str(rule.this.unnest().sql(dialect=QUERIES))
        case _:
            return None


def read_assertion(tokens: list[Token], text: str, span: Span) -> Constraint | None:
    """CREATE ASSERTION name CHECK (condition); None for the tokens of another statement."""
    words = [token.text.upper() for token in tokens]
    if words[:2] != ["CREATE", "ASSERTION"]:
        return None
    remedy = "write CREATE ASSERTION name CHECK (condition)"
    enforced, body = _enforced(tokens[4:])
    kinds = [token.token_type for token in body]
    if len(tokens) > 2 and (problem := unusable_name(tokens[2].text)):
        raise UserError("Q011", problem, span=span, remedy=PLAIN_NAME)
    if words[3:4] != ["CHECK"] or not _is_wrapped(kinds):
        raise UserError("Q001", "syntax error in CREATE ASSERTION", span=span, remedy=remedy)
    inner = body[1:-1]
    tree = read_tree(inner, text)
    value = isinstance(tree, exp.Subquery) and not tree.alias
    if not value and (not isinstance(tree, exp.Condition) or isinstance(tree, exp.Query)):
        place = Span(text, inner[0].start, inner[-1].end + 1)
        remedy = "write a condition, such as NOT EXISTS (SELECT …)"
        raise UserError("Q001", "an assertion needs a condition", span=place, remedy=remedy)
    refuse_versions(tree, text)
    condition = text[inner[0].start : inner[-1].end + 1]
    return Constraint(ASSERTION, tokens[2].text, condition=condition, enforced=enforced)


def _enforced(tokens: list[Token]) -> tuple[bool, list[Token]]:
    """Whether an assertion is enforced, and its tokens before the words that say so.

    An assertion is verified at commit, so it may be called deferred.
    """
    words = [token.text.upper() for token in tokens]
    if words[-2:] == ["NOT", "ENFORCED"]:
        return False, tokens[:-2]
    for ending in (["ENFORCED"], ["INITIALLY", "DEFERRED"], ["DEFERRABLE"]):
        if words[-len(ending) :] == ending:
            tokens, words = tokens[: -len(ending)], words[: -len(ending)]
    return True, tokens


def _is_wrapped(kinds: Sequence[TokenType]) -> bool:
    """Whether one pair of parentheses, with something in it, holds all tokens."""
    if len(kinds) < 3 or kinds[0] is not TokenType.L_PAREN:
        return False
    depth = 0
    for at, kind in enumerate(kinds):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0)
        if not depth:
            return at == len(kinds) - 1
    return False


def _refused(construct: str, place: Span, remedy: str) -> UserError:
    return UserError("Q004", f"{construct} is not supported", span=place, remedy=remedy)
