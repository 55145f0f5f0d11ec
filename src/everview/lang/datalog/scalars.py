"""Terms as scalar texts, over the columns that hold the values of variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from everview.expr import scalar
from everview.lang.datalog.functors import FLOAT, FUNCTORS, SAME, SPARK, SYMBOL, UNSIGNED
from everview.lang.datalog.syntax import Call, Comparison, Constant, Term, Variable, outside
from everview.lang.datalog.types import VariableTypes

_SIGNS = {"!=": "<>"}


@dataclass(frozen=True, slots=True)
class Scalars:
    """Terms and comparisons as scalar texts over columns."""

    types: VariableTypes
    columns: Mapping[str, str]

    def text(self, term: Term, type_: str) -> str:
        """The text of a term, as a value of a type."""
        return scalar.canonical(self._text(term, type_))

    def condition(self, literal: Comparison) -> str:
        """A comparison of terms that have values."""
        operator = literal.operator
        if operator.lstrip("!") in ("match", "contains"):
            test = self._test(operator.lstrip("!"), literal.left, literal.right)
            return scalar.canonical(f"NOT {test}" if operator.startswith("!") else test)
        sides = (literal.left, literal.right)
        known = (self.types.type_of(each) for each in sides)
        type_ = next((each for each in known if each is not None), "number")
        left, right = (self._text(each, type_) for each in sides)
        return scalar.canonical(f"{left} {_SIGNS.get(operator, operator)} {right}")

    def _test(self, name: str, first: Term, second: Term) -> str:
        text = self._text(second, SYMBOL)
        if name == "contains":
            return f"CONTAINS({text}, {self._text(first, SYMBOL)})"
        if isinstance(first, Constant):
            return f"({text} RLIKE {quoted(f'^(?:{first.value})$')})"
        return f"({text} RLIKE CONCAT('^(?:', {self._text(first, SYMBOL)}, ')$'))"

    def _text(self, term: Term, type_: str) -> str:
        match term:
            case Variable(name):
                return scalar.column(self.columns[name])
            case Constant():
                return literal(term, type_)
            case Call("as", (inner, _)):
                own = self.types.final_type(inner)
                text = self._text(inner, own)
                return text if own == type_ else f"CAST({text} AS {SPARK[type_].upper()})"
            case Call(name, arguments):
                functor = FUNCTORS[name]
                same = type_ if functor.gives == SAME else self._same(term)
                wanted = (functor.parameter(index) for index in range(len(arguments)))
                texts = (
                    self._text(each, same if takes == SAME else takes)
                    for each, takes in zip(arguments, wanted, strict=True)
                )
                return functor.write(same, *texts)
            case _:
                raise AssertionError(term)

    def _same(self, call: Call) -> str:
        known = (self.types.type_of(each) for each in call.arguments)
        return next((each for each in known if each is not None), "number")


def literal(constant: Constant, type_: str) -> str:
    """A constant as a value of a type."""
    value = constant.value
    if isinstance(value, str):
        return quoted(value)
    if type_ == FLOAT:
        return f"{value!r}E0" if "e" not in repr(value) else repr(value)
    if type_ == UNSIGNED:
        return f"CAST({int(value) % 2**32} AS BIGINT)"
    return f"{value}"


def quoted(text: str) -> str:
    """A string of SQL."""
    return scalar.text(exp.Literal.string(text))


def is_partial(term: Term) -> bool:
    """Whether a term may have no value although its variables have one."""
    return any(isinstance(each, Call) and _may_fail(each) for each in outside(term))


def _may_fail(call: Call) -> bool:
    if call.name in ("/", "%") and isinstance(call.arguments[1], Constant):
        return call.arguments[1].value == 0
    return call.name != "as" and FUNCTORS[call.name].partial
