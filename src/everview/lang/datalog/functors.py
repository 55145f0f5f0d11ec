"""THE FUNCTORS: what each takes and gives, and its meaning as Spark writes it.

Numbers have 32 bits and wrap around, as Soufflé's do: signed ones are INT, unsigned ones BIGINT
from 0 to 2³² − 1. Floats are DOUBLE. Where Soufflé would stop, because a divisor is zero or a text
is no number, a functor that is `partial` gives NULL, and nothing is derived from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from everview.expr.types import Type

NUMBER, UNSIGNED, FLOAT, SYMBOL = "number", "unsigned", "float", "symbol"
SPARK: dict[str, Type] = {NUMBER: "int", UNSIGNED: "bigint", FLOAT: "double", SYMBOL: "string"}
"""The types there are, and how Spark calls them."""
NUMERIC = (NUMBER, UNSIGNED, FLOAT)
INTEGER = (NUMBER, UNSIGNED)
SAME = "same"
"""The type of a functor that takes and gives values of one type, whichever it is."""

_TOP = 2**32
_HALF = 2**31


def wrapped(text: str, type_: str) -> str:
    """A BIGINT as a number of 32 bits."""
    if type_ == UNSIGNED:
        return f"PMOD({text}, {_TOP})"
    return f"CAST(PMOD({text} + {_HALF}, {_TOP}) - {_HALF} AS INT)"


@dataclass(frozen=True, slots=True)
class Functor:
    """A functor: the types of its arguments and its result, and its text over theirs.

    With `among`, the types that `SAME` may be. The last parameter of one with `more` may be
    repeated. `write` is given the type that `SAME` is.
    """

    takes: tuple[str, ...]
    gives: str
    write: Callable[..., str]
    among: tuple[str, ...] = NUMERIC
    more: bool = False
    partial: bool = False

    def parameter(self, index: int) -> str:
        """The type of an argument."""
        return self.takes[min(index, len(self.takes) - 1)]

    def accepts(self, count: int) -> bool:
        """Whether it takes so many arguments."""
        return count >= len(self.takes) if self.more else count == len(self.takes)


def _infix(sign: str) -> Callable[..., str]:
    def write(type_: str, left: str, right: str) -> str:
        plain = f"({left} {sign} {right})"
        return plain if type_ == FLOAT else wrapped(_wide(sign, left, right, type_), type_)

    return write


def _wide(sign: str, left: str, right: str, type_: str) -> str:
    """Two numbers added, subtracted or multiplied as a BIGINT that has their last 32 bits."""
    left, right = f"CAST({left} AS BIGINT)", f"CAST({right} AS BIGINT)"
    if sign == "*" and type_ == UNSIGNED:
        low, high = f"({right} % 65536)", f"({right} DIV 65536)"
        return f"(({left} * {high}) % 65536 * 65536 + {left} * {low})"
    return f"({left} {sign} {right})"


def _negative(type_: str, text: str) -> str:
    return f"(-{text})" if type_ == FLOAT else _infix("-")(type_, "0", text)


def _quotient(type_: str, left: str, right: str) -> str:
    if type_ == FLOAT:
        return f"({left} / NULLIF({right}, 0E0))"
    wide = f"(CAST({left} AS BIGINT) DIV NULLIF(CAST({right} AS BIGINT), 0))"
    return wrapped(wide, type_) if type_ == NUMBER else wide


def _remainder(type_: str, left: str, right: str) -> str:
    return f"({left} % NULLIF({right}, CAST(0 AS {SPARK[type_]})))"


def _power(type_: str, left: str, right: str) -> str:
    plain = f"POWER(CAST({left} AS DOUBLE), CAST({right} AS DOUBLE))"
    if type_ == FLOAT:
        return plain
    return f"CASE WHEN ABS({plain}) < 9E18 THEN {wrapped(f'CAST({plain} AS BIGINT)', type_)} END"


def _bits(sign: str) -> Callable[..., str]:
    return lambda _, left, right: f"({left} {sign} {right})"


def _flipped(type_: str, text: str) -> str:
    return f"(~{text})" if type_ == NUMBER else f"({_TOP - 1} - {text})"


def _left_shift(type_: str, text: str, by: str) -> str:
    moved = f"SHIFTLEFT(CAST({text} AS BIGINT), {_places(by)})"
    return wrapped(moved, type_)


def _right_shift(type_: str, text: str, by: str) -> str:
    return f"SHIFTRIGHT({text}, {_places(by)})"


def _unsigned_shift(type_: str, text: str, by: str) -> str:
    moved = f"SHIFTRIGHT(PMOD(CAST({text} AS BIGINT), {_TOP}), {_places(by)})"
    return wrapped(moved, type_)


def _places(by: str) -> str:
    return f"CAST({by} & 31 AS INT)"


def _logic(form: str) -> Callable[..., str]:
    def write(type_: str, *texts: str) -> str:
        one, zero = (f"CAST({each} AS {SPARK[type_]})" for each in (1, 0))
        tests = (f"({text} <> 0)" for text in texts)
        return f"CASE WHEN {form.format(*tests)} THEN {one} ELSE {zero} END"

    return write


def _call(name: str) -> Callable[..., str]:
    return lambda _, *texts: f"{name}({', '.join(texts)})"


def _cast(to: str, function: str = "CAST") -> Callable[..., str]:
    return lambda _, text: f"{function}({text} AS {SPARK[to].upper()})"


_SPACES = r"\\s*"


def _whole(text: str) -> str:
    """The number that a text begins with, as C++ reads it: NULL where there is none in 64 bits.

    Behind 0b a number of its own begins, in base 2; behind 0x there may be no digits, which is 0.
    """
    return (
        f"CASE WHEN {text} RLIKE '^-?0x' THEN {_digits(text, '-?0x([0-9a-fA-F]*)', 16)} "
        f"WHEN {text} RLIKE '^(0b{_SPACES}[+-]?|-0b)[01]' "
        f"THEN {_digits(text, f'-?0b{_SPACES}[+-]?([01]+)', 2)} "
        f"WHEN {text} RLIKE '^{_SPACES}[+-]?[0-9]' AND NOT {text} RLIKE '^-?0b' "
        f"THEN {_digits(text, f'{_SPACES}[+-]?([0-9]+)', 10)} END"
    )


def _digits(text: str, form: str, base: int) -> str:
    """The digits of a form as a number, with the sign before it; NULL beyond 64 bits."""
    most = {2: 64, 10: 20, 16: 16}[base]
    digits = f"TRIM(LEADING '0' FROM REGEXP_EXTRACT({text}, '^{form}', 1))"
    first = f"SUBSTRING({digits}, 1, {most})"
    decimal = f"CAST(CONCAT('0', {first}) AS DECIMAL(20,0))"
    size = decimal if base == 10 else f"EV_FROM_BASE({first}, {base})"
    signed = f"CASE WHEN {text} RLIKE '^{_SPACES}(0b{_SPACES})?-' THEN -{size} ELSE {size} END"
    return f"CASE WHEN LENGTH({digits}) <= {most} THEN {signed} END"


def _to_number(_: str, text: str) -> str:
    whole = _whole(text)
    return f"CASE WHEN {whole} BETWEEN {-_HALF} AND {_HALF - 1} THEN CAST({whole} AS INT) END"


def _to_unsigned(_: str, text: str) -> str:
    """Of 64 bits the last 32; a text that begins with a minus is none, one behind blanks wraps."""
    whole = _whole(text)
    within = f"{whole} BETWEEN {1 - 2**64} AND {2**64 - 1}"
    low = f"CAST(PMOD({whole}, CAST({_TOP} AS DECIMAL(20,0))) AS BIGINT)"
    return f"CASE WHEN NOT {text} RLIKE '^-' AND {within} THEN {low} END"


def _substring(_: str, text: str, start: str, length: str) -> str:
    """From a place counted from zero; nothing outside the text, and all that is left below zero."""
    rest = f"SUBSTRING({text}, {start} + 1, GREATEST({length}, 0))"
    whole = f"SUBSTRING({text}, {start} + 1, LENGTH({text}))"
    outside = f"{start} < 0 OR {start} > LENGTH({text})"
    return f"CASE WHEN {outside} THEN '' WHEN {length} < 0 THEN {whole} ELSE {rest} END"


def _binary(write: Callable[..., str], among: tuple[str, ...], *, partial: bool = False) -> Functor:
    return Functor((SAME, SAME), SAME, write, among, partial=partial)


FUNCTORS: dict[str, Functor] = {
    "+": _binary(_infix("+"), NUMERIC),
    "-": _binary(_infix("-"), NUMERIC),
    "*": _binary(_infix("*"), NUMERIC),
    "/": _binary(_quotient, NUMERIC, partial=True),
    "%": _binary(_remainder, INTEGER, partial=True),
    "^": _binary(_power, NUMERIC, partial=True),
    "neg": Functor((SAME,), SAME, _negative),
    "band": _binary(_bits("&"), INTEGER),
    "bor": _binary(_bits("|"), INTEGER),
    "bxor": _binary(_bits("^"), INTEGER),
    "bnot": Functor((SAME,), SAME, _flipped, INTEGER),
    "bshl": _binary(_left_shift, INTEGER),
    "bshr": _binary(_right_shift, INTEGER),
    "bshru": _binary(_unsigned_shift, INTEGER),
    "land": _binary(_logic("{} AND {}"), INTEGER),
    "lor": _binary(_logic("{} OR {}"), INTEGER),
    "lxor": _binary(_logic("{} <> {}"), INTEGER),
    "lnot": Functor((SAME,), SAME, _logic("NOT {}"), INTEGER),
    "min": Functor((SAME, SAME), SAME, _call("LEAST"), (*NUMERIC, SYMBOL), more=True),
    "max": Functor((SAME, SAME), SAME, _call("GREATEST"), (*NUMERIC, SYMBOL), more=True),
    "cat": Functor((SYMBOL, SYMBOL), SYMBOL, _call("CONCAT"), more=True),
    "strlen": Functor((SYMBOL,), NUMBER, _call("LENGTH")),
    "substr": Functor((SYMBOL, NUMBER, NUMBER), SYMBOL, _substring),
    "to_string": Functor((SAME,), SYMBOL, _cast(SYMBOL), (*INTEGER, SYMBOL)),
    "to_number": Functor((SYMBOL,), NUMBER, _to_number, partial=True),
    "to_float": Functor((SYMBOL,), FLOAT, _cast(FLOAT, "TRY_CAST"), partial=True),
    "to_unsigned": Functor((SYMBOL,), UNSIGNED, _to_unsigned, partial=True),
    "itof": Functor((NUMBER,), FLOAT, _cast(FLOAT)),
    "utof": Functor((UNSIGNED,), FLOAT, _cast(FLOAT)),
    "itou": Functor((NUMBER,), UNSIGNED, lambda _, text: f"PMOD(CAST({text} AS BIGINT), {_TOP})"),
    "utoi": Functor((UNSIGNED,), NUMBER, lambda _, text: wrapped(text, NUMBER)),
    "ftoi": Functor((FLOAT,), NUMBER, _cast(NUMBER, "TRY_CAST"), partial=True),
    "ftou": Functor(
        (FLOAT,),
        UNSIGNED,
        lambda _, text: f"PMOD(TRY_CAST({text} AS BIGINT), {_TOP})",
        partial=True,
    ),
    "range": Functor((SAME, SAME), SAME, _call("range"), more=True),
}
"""Every functor; `range` stands for several values and is not written as one."""

UNDEFINED = {
    "ord": "the number of a symbol depends on the order of evaluation",
    "autoinc": "a counter depends on the order of evaluation",
}
"""Functors of Soufflé whose value the facts do not determine, and why."""
