"""The texts that stand for values of each type in CSV and JSON files, on every engine.

A text is of a type if it is written in its form and keeps its value: no digit is cut off, no day is
moved, and nothing is trimmed. Engines check the form first and then cast.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from everview.expr.types import FLOATS, INTEGERS, Type, decimal_parts
from everview.runtime.arrow_types import arrow_type

_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT = _DAY + r"[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
_ZONE = "(Z|[+-][0-9]{2}:[0-9]{2})"
ZONED = rf"{_ZONE}\z"
"""The end of a moment that names its zone; others are in UTC."""
_NUMBER = r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
INFINITE = r"[-+]?[Ii]nf(inity)?"


def text_form(type_: Type) -> str | None:
    """The pattern of the texts of a type, for RE2 and Java; None where any text is one.

    >>> text_form("decimal(10,2)")
    '-?([0-9]+([.][0-9]{0,2}0*)?|[.][0-9]{1,2}0*)'
    """
    if parts := decimal_parts(type_):
        scale = parts[1]
        below_one = rf"|[.][0-9]{{1,{scale}}}0*" if scale else ""
        return rf"-?([0-9]+([.][0-9]{{0,{scale}}}0*)?{below_one})"
    if type_ in INTEGERS:
        return "-?[0-9]{1,19}"
    if type_ in FLOATS:
        return f"{_NUMBER}|[Nn]a[Nn]|{INFINITE}"
    return {
        "boolean": "[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]",
        "date": _DAY,
        "timestamp_ntz": _MOMENT,
        "timestamp": f"{_MOMENT}{_ZONE}?",
    }.get(type_)


def whole(pattern: str) -> str:
    """A pattern that a text has to match from its beginning to its end."""
    return rf"\A(?:{pattern})\z"


def from_text(texts: pa.Array, type_: Type) -> tuple[pa.Array | None, int]:
    """Texts as values of a type; the place of the first that is none, with None."""
    pattern = text_form(type_)
    if pattern is None:
        return texts.cast(arrow_type(type_)), -1
    fits = pc.fill_null(pc.match_substring_regex(texts, whole(pattern)), True)
    if not pc.all(fits, min_count=0).as_py():
        return None, pc.index(fits, False).as_py()
    if type_ == "timestamp":
        zoned = pc.match_substring_regex(texts, ZONED)
        texts = pc.if_else(zoned, texts, pc.binary_join_element_wise(texts, "Z", ""))
    try:
        values = texts.cast(arrow_type(type_))
    except pa.ArrowInvalid:
        return None, _first_bad(texts, type_)
    if type_ in FLOATS:
        beyond = pc.and_(pc.is_inf(values), pc.invert(pc.match_substring_regex(texts, INFINITE)))
        beyond = pc.fill_null(beyond, False)
        if pc.any(beyond, min_count=0).as_py():
            return None, pc.index(beyond, True).as_py()
    if type_ in _CALENDAR:
        kept = pc.is_in(pc.fill_null(pc.year(values), 1), value_set=_YEARS)
        if not pc.all(kept, min_count=0).as_py():
            return None, pc.index(kept, False).as_py()
    return values, -1


_CALENDAR, _YEARS = ("date", "timestamp", "timestamp_ntz"), pa.array(range(1, 10_000), pa.int64())


def _first_bad(texts: pa.Array, type_: Type) -> int:
    """The place of the first text that cannot be cast, by halving."""
    low, high = 0, len(texts)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            texts[low:middle].cast(arrow_type(type_))
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low
