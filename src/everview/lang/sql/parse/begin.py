"""BEGIN and its options: the id of the transaction, by which it can be sent again."""

from __future__ import annotations

from sqlglot import exp

from everview import arguments
from everview.errors import Span, UserError
from everview.expr.dialect import DIALECT
from everview.lang.sql.parse.span import span_of
from everview.lang.sql.parse.statements import TransactionBracket

_OPTIONS = {"id": True, "writer": True, "number": False}
"""The options, and whether the value of each is a text."""
_NUMBER_MAX_DIGITS = 30
_REMEDY = "write BEGIN WITH (writer = 'name', number = 1) or BEGIN WITH (id = 'text')"


def begin(tree: exp.Expr, text: str, span: Span) -> TransactionBracket:
    """BEGIN [WITH (writer = 'name', number = n) | WITH (id = 'text')]."""
    if tree.args.get("modes"):
        raise UserError(
            "Q003",
            f"{', '.join(tree.args['modes'])} after BEGIN is not part of the language",
            span=span,
            remedy="leave it out: transactions are serializable",
        )
    if tree.args.get("options") is None:
        return TransactionBracket("begin", span)
    given: dict[str, str] = {}
    for each in tree.args["options"]:
        name, value = each.this, each.args.get("expression")
        known = isinstance(name, exp.Column) and _OPTIONS.get(name.name.lower())
        literal = isinstance(each, exp.EQ) and isinstance(value, exp.Literal)
        if not literal or known is not value.is_string or name.name.lower() in given:
            raise _refused(f"the option {each.sql(dialect=DIALECT)}", span_of(each, text) or span)
        given[name.name.lower()] = value.name
    match given:
        case {"id": id_, **others} if not others:
            return TransactionBracket("begin", span, _checked(id_, span))
        case {"writer": writer, "number": number, **others} if not others and _is_count(number):
            return TransactionBracket("begin", span, _checked((writer, int(number)), span))
        case _:
            raise _refused("this form of BEGIN", span)


def _is_count(number: str) -> bool:
    return number.isascii() and number.isdecimal() and len(number) <= _NUMBER_MAX_DIGITS


def _checked(id_: object, span: Span) -> str | tuple[str, int]:
    try:
        return arguments.transaction_id(id_)
    except UserError as problem:
        raise UserError(problem.code, problem.problem, span=span, remedy=problem.remedy) from None


def _refused(construct: str, span: Span) -> UserError:
    return UserError("Q003", f"{construct} is not part of the language", span=span, remedy=_REMEDY)
