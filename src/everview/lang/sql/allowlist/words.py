"""The words of a text for Spark, checked against a list of allowed words.

A text of ours holds names in backquotes, strings, numbers, marks, and words of the language. Spark
reads exactly these tokens: what hides from a parser of another make cannot hide from it here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from everview.lang.sql.bind.pure_functions import PURE

_SYNTAX = """\
all and anti any as asc asof at between both by case cast cluster collate cross cube current desc
distinct distribute div else end escape except exclude exists extract false first following for
from full group grouping having ignore ilike in include inner intersect interval is join last
lateral leading left level like limit max minus natural not null nulls offset on or order outer
over partition percent pivot preceding qualify range recursion recursive repeatable respect right
rlike rollup row rows select semi sets some sort tablesample then to trailing true try_cast
unbounded union unknown unpivot using values view when where window with within zone"""
_UNITS = """\
year years quarter quarters month months week weeks day days dayofyear hour hours minute minutes
second seconds millisecond milliseconds microsecond microseconds nanosecond nanoseconds y yr yrs
qtr mon mons w d h hr hrs m min mins s sec secs dow doy dow_iso dayofweek dayofweek_iso
yearofweek"""
_TYPES = """\
array bigint binary boolean byte char character date dec decimal double float int integer long map
numeric real short smallint string struct time timestamp timestamp_ltz timestamp_ntz tinyint
varchar variant void"""
_OWN = "_copy _one _rows _w c e k key l q r step t value x"
"""Names that our own SQL uses without quotes."""

_WORDS = frozenset(f"{_SYNTAX} {_UNITS} {_TYPES} {_OWN}".split())
_OPENERS = """\
all and any array as between by case cast char character cube dec decimal distinct div else except
exists extract filter from group having ilike in inner intersect interval join lateral like limit
map match_condition minus not nulls numeric offset on or over pivot qualify recursive rlike rollup
select sets some struct tablesample then time try_cast union unpivot using values varchar view
when where with within"""
_OPENING = frozenset(_OPENERS.split())
"""Words of the language that a parenthesis may follow; before any other it is a call."""

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<name>`(?:[^`]|``)*`)
    |(?P<string>'(?:[^'\\]|\\.)*')
    |(?P<hex>[xX]'[0-9A-Fa-f]*')
    |(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDFlsydf])?(?![A-Za-z_\d]))
    |(?P<word>[A-Za-z_][A-Za-z_0-9]*)
    |(?P<mark>->|=>|<=>|<>|<=|>=|!=|\|\||::|-(?!-)|/(?!\*)|[(),.\[\]+*%=<>&|^~:])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_RELATION = re.compile(r"everview_\d+", re.ASCII)


class Word(NamedTuple):
    """A token: what kind it is, and its text."""

    kind: str
    text: str


def stranger(text: str, functions: frozenset[str] = frozenset()) -> str | None:
    """The first token that is not a quoted name, a literal, a symbol or an allowed word.

    >>> stranger("SELECT UPPER(`a`) FROM `t` WHERE `b` = 'it\\\\'s'")
    >>> stranger("SELECT reflect('java.lang.System', 'exit')")
    'reflect'
    >>> stranger("SELECT TRANSFORM(`a`) USING 'sh'")
    'USING'
    """
    tokens = [Word("start", ""), *_tokens(text), Word("end", "")]
    for at, token in enumerate(tokens[1:-1], 1):
        before, after = tokens[at - 1], tokens[at + 1]
        known = token.kind != "other"
        if token.kind == "word":
            known = _known(token, before, after, functions)
        elif token.kind == "name" and after.text == "(":
            known = before.text.lower() in _NAMING or _names_columns(tokens, at)
        if not known:
            return token.text
    return None


def _known(token: Word, before: Word, after: Word, functions: frozenset[str]) -> bool:
    word = token.text.lower()
    if (word == "using" and after.text != "(") or (word == "r" and after.kind == "string"):
        # The program that TRANSFORM and MAP would start, or a string that ends elsewhere.
        return False
    if after.text == "(":
        # After a dot it would be a function of a catalog.
        plain = before.text != "."
        return plain and (word in _OPENING or word in PURE or word in functions)
    return word in _WORDS or word in _BARE or _RELATION.fullmatch(word) is not None


_NAMING = ("as", "with", "recursive")
"""Words before a name that names its columns after it; elsewhere that would be a call."""


def _names_columns(tokens: list[Word], at: int) -> bool:
    """Whether a name is one of several of WITH, so that names of columns and a query follow."""
    place = at + 2
    while tokens[place].kind == "name" and tokens[place + 1].text == ",":
        place += 2
    if tokens[at - 1].text != "," or tokens[place].kind != "name":
        return False
    after = [token.text.lower() for token in tokens[place + 1 : place + 9]]
    if after[:4] == [")", "max", "recursion", "level"]:
        after = [")", *after[5:]]
    return after[:3] == [")", "as", "("] and after[3:4] in (["select"], ["with"], ["values"], ["("])


_BARE = frozenset(("current_date", "current_timestamp", "current_user"))
"""Functions that are called without parentheses."""


def _tokens(text: str) -> Iterator[Word]:
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            yield Word("other", text[place])
            return
        if match.lastgroup != "space":
            yield Word(str(match.lastgroup), match[0])
        place = match.end()
