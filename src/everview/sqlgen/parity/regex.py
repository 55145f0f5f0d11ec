"""Which regular expressions of Java mean the same to DuckDB's RE2, and how they are written there.

Only literal patterns of a small language are translated: characters, classes, groups, choices,
repetitions, and the anchors. The rest differs somewhere: look-around, back references, \\b beside
letters that are not ASCII, letters of either case, empty matches.
"""

from __future__ import annotations

import re
from itertools import pairwise

from everview.sqlgen.parity.entry import Site
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.parity.fragments import raising, string_literal

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\x{0b}\f\r"}
_TOKEN = re.compile(
    r"""(?P<class>\[\^?(?:[^\[\]\\&^-]|\\[dwsntrf.\-/+*?()\[\]\\^$|]|-)+\])
    | \\(?P<short>[dwsDWS])
    | (?P<escaped>\\[ntrf.\-/+*?()\[\]{}\\^$|@_:])
    | (?P<dot>\.)
    | (?P<times>(?: [*+?] | \{\d{1,3}(?:,\d{0,3})?\} )\??)
    | (?P<plain>\(\?: | [^\\\[\]{}.*+?])""",
    re.VERBOSE,
)
_NOTHING_TO_REPEAT = ("", "(", "(?:", "|", "^", "$")


def _tokens(site: Site) -> list[re.Match[str]]:
    """The parts of a pattern; NotAtParity where it says more than both engines read alike."""
    pattern = site.literals[1]
    refusal = NotAtParity(f"{site.name} with the pattern {pattern or 'of a column'!r}")
    if pattern is None or not pattern.isprintable():
        raise refusal
    found: list[re.Match[str]] = []
    while (at := found[-1].end() if found else 0) < len(pattern):
        token = _TOKEN.match(pattern, at)
        last = found[-1] if found else None
        if token is None or re.search(r"\\[dws]-[^]]|-\\[dws]", token["class"] or ""):
            raise refusal
        if token["times"] and (last is None or last["times"] or last[0] in _NOTHING_TO_REPEAT):
            raise refusal
        found.append(token)
    try:
        re.compile(pattern)
    except re.error:
        raise refusal from None
    return found


def _written(token: re.Match[str]) -> str:
    if token["class"]:
        return re.sub(r"\\([dws])", lambda each: _CLASSES[each[1]], token["class"])
    if token["short"]:
        negated = "^" if token["short"].isupper() else ""
        return f"[{negated}{_CLASSES[token['short'].lower()]}]"
    return f"[^{_LINE_ENDS}]" if token["dot"] else token[0]


def matches(site: Site) -> str:
    """x RLIKE pattern."""
    return _spelled(site, _tokens(site), "regexp_matches({0}, {1})", "BOOLEAN")


def replaced(site: Site) -> str:
    """regexp_replace(x, pattern, replacement): $1 is \\1 there."""
    tokens, with_ = _matched(site), site.literals[2]
    used = re.findall(r"\$(\d*)", with_ or "")
    if with_ is None or "\\" in with_ or not all(_is_group(each, site) for each in used):
        raise NotAtParity(f"{site.name} with the replacement {with_ or 'of a column'!r}")
    text = string_literal(re.sub(r"\$(\d)", r"\\\1", with_)).replace("{", "{{").replace("}", "}}")
    return _spelled(site, tokens, f"regexp_replace({{0}}, {{1}}, {text}, 'g')")


def extracted(site: Site) -> str:
    """regexp_extract(x, pattern, group): the first match, or an empty string."""
    tokens, group = _matched(site), site.literals[2]
    if group is None or not (group == "0" or _is_group(group, site)):
        raise NotAtParity(f"{site.name} of the group {group or 'of a column'}")
    return _spelled(site, tokens, f"regexp_extract({{0}}, {{1}}, {group})")


def split(site: Site) -> str:
    """split(x, pattern[, limit]): the parts between the matches, at most so many with the rest."""
    limit = site.literals[2] if len(site.args) == 3 else "-1"
    if limit is None:
        raise NotAtParity(f"{site.name} with the limit of a column")
    if site.literals[1] in ("", "|"):
        return _letters(site, int(limit))
    tokens = _matched(site)
    if int(limit) <= 0:
        return _spelled(site, tokens, "string_split_regex({0}, {1})", "VARCHAR[]")
    if any(token[0] in ("^", "$") for token in tokens):
        raise NotAtParity(
            f"{site.name} with the limit {limit} and the pattern {site.literals[1]!r}"
        )
    return _spelled(site, tokens, _first(int(limit) - 1), "VARCHAR[]")


def _first(count: int) -> str:
    """A template for the first parts and the rest, which begins after them and their separators."""
    parts, between = "string_split_regex({0}, {1})", "regexp_extract_all({0}, {1})"
    if count == 0:
        return "CASE WHEN {0} IS NOT NULL THEN [{0}] END"
    before = f"list_transform({parts}[:{count}] || {between}[:{count}], lambda _e: length(_e))"
    rest = f"substring({{0}}, 1 + CAST(list_sum({before}) AS BIGINT))"
    return (
        f"CASE WHEN len({parts}) > {count} THEN list_append({parts}[:{count}], {rest}) "
        f"ELSE {parts} END"
    )


def _letters(site: Site, limit: int) -> str:
    """split at nothing: Spark cuts letters at '', Java at '|', where an end remains and a letter
    outside the basic plane is two."""
    text = site.args[0]
    letters = f"string_split({text}, '')"
    failure = raising("LETTER_OF_TWO_CHARACTERS", text, "VARCHAR[]")
    beyond = rf"WHEN regexp_matches({text}, '[\x{{10000}}-\x{{10FFFF}}]') THEN {failure}"
    first = f"list_append({letters}[:{limit - 1}], substring({text}, {limit}))"
    cases = (
        f"WHEN {text} IS NULL THEN NULL WHEN {text} = '' THEN [{text}]",
        beyond if site.literals[1] else "",
        f"WHEN length({text}) >= {limit} THEN {first}" if limit > 0 else "",
        f"ELSE list_append({letters}, '')" if site.literals[1] else f"ELSE {letters}",
    )
    return f"CASE {' '.join(cases)} END"


def _is_group(digits: str, site: Site) -> bool:
    groups = re.compile(site.literals[1] or "").groups
    return len(digits) == 1 and 1 <= int(digits) <= groups


def _matched(site: Site) -> list[re.Match[str]]:
    """A pattern whose matches are alike: none is empty, and no group is repeated."""
    tokens = _tokens(site)
    repeated = any(a[0] == ")" and b["times"] for a, b in pairwise(tokens))
    if repeated or re.match(site.literals[1] or "", ""):
        raise NotAtParity(f"{site.name} with the pattern {site.literals[1]!r}")
    return tokens


def _spelled(site: Site, tokens: list[re.Match[str]], template: str, type_: str = "VARCHAR") -> str:
    """Java's $ also stands before a line end that ends the text; there we raise."""
    value = site.args[0]
    found = template.format(value, string_literal("".join(map(_written, tokens))))
    if all(token[0] != "$" for token in tokens):
        return found
    failure = raising("LINE_END_AT_THE_END", value, type_)
    return f"CASE WHEN regexp_matches({value}, '[{_LINE_ENDS}]$') THEN {failure} ELSE {found} END"
