"""The parity table's rows for strings."""

from __future__ import annotations

from collections.abc import Callable

from everview.emit.entry import Entry, Site
from everview.emit.kinds import NotEqual


def _like(site: Site) -> str:
    """LIKE with a literal pattern. Spark raises on an escape before an ordinary character."""
    pattern, escape = site.literals[1], site.value or "\\"
    if pattern is None or len(escape) != 1 or not _well_escaped(pattern, escape):
        raise NotEqual(f"{site.name} with this pattern", "escapes differ")
    escaped = f" ESCAPE '{escape.replace(chr(39), chr(39) * 2)}'" if escape in pattern else ""
    return f"({site.args[0]} {site.name.upper()} {site.args[1]}{escaped})"


def _well_escaped(pattern: str, escape: str) -> bool:
    rest = iter(pattern)
    return all(next(rest, "") in ("%", "_", escape) for char in rest if char == escape)


def _concat(site: Site) -> str:
    return f"({' || '.join(site.args)})" if site.args else "''"


def _substring(site: Site) -> str:
    """Spark counts a start beyond the left end as if the string began there."""
    string, start, *length = site.args
    if not length:
        return f"substring({string}, {start})"
    if all(literal is not None and int(literal) > 0 for literal in site.literals[1:]):
        return f"substring({string}, {start}, {length[0]})"
    begin = (
        f"CASE WHEN {start} > 0 THEN {start} - 1::BIGINT "
        f"WHEN {start} < 0 THEN length({string}) + {start} ELSE 0 END"
    )
    count = f"greatest({begin} + {length[0]} - greatest({begin}, 0), 0)"
    taken = f"substring({string}, greatest({begin}, 0) + 1, {count})"
    return f"CASE WHEN {start} IS NULL OR {length[0]} IS NULL THEN NULL ELSE {taken} END"


def _end(name: str) -> str:
    return (
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL "
        f"WHEN {{1}} <= 0 THEN '' ELSE {name}({{0}}, {{1}}) END"
    )


def _pad(name: str) -> Callable[[Site], str]:
    """An empty pad leaves the string, cut to the length."""

    def spell(site: Site) -> str:
        string, length, *pad = site.args
        fill = pad[0] if pad else "' '"
        if not pad or site.literals[2]:
            return f"{name}({string}, {length}, {fill})"
        cut = f"CASE WHEN {length} <= 0 THEN left({string}, 0) ELSE left({string}, {length}) END"
        return f"CASE WHEN {fill} = '' THEN {cut} ELSE {name}({string}, {length}, {fill}) END"

    return spell


_LOCATE_FROM = (
    "CASE WHEN {2} IS NULL THEN 0 WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN {2} < 1 THEN 0 "
    "WHEN {0} = '' THEN 1 WHEN strpos(substring({1}, {2}), {0}) = 0 THEN 0 "
    "ELSE CAST(strpos(substring({1}, {2}), {0}) + {2} - 1 AS INTEGER) END"
)

_SUBSTRING_INDEX = (
    "CASE WHEN {2} > 0 THEN array_to_string(string_split({0}, {1})[1:{2}], {1}) "
    "WHEN {2} < 0 THEN array_to_string("
    "string_split({0}, {1})[greatest(len(string_split({0}, {1})) + {2} + 1, 1):], {1}) ELSE '' END"
)


def _split_part(site: Site) -> str:
    """Only for a literal, non-empty delimiter and a literal position that is not zero."""
    if not site.literals[1] or site.literals[2] in (None, "0"):
        raise NotEqual("split_part with these arguments", "the edge cases differ")
    return f"split_part({', '.join(site.args)})"


ENTRIES: tuple[Entry, ...] = (
    Entry("length", "string", "CAST(length({0}) AS INTEGER)"),
    Entry("octet_length", "string", "CAST(strlen({0}) AS INTEGER)"),
    Entry("bit_length", "string", "CAST(bit_length({0}) AS INTEGER)"),
    Entry("concat", "string*", _concat),
    Entry("concat_ws", "string string string*", lambda s: f"concat_ws({', '.join(s.args)})"),
    Entry("substring", "string int", _substring),
    Entry("substring", "string int int", _substring),
    Entry("left", "string int", _end("left")),
    Entry("right", "string int", _end("right")),
    *(Entry(name, "string", f"{name}({{0}})") for name in ("trim", "ltrim", "rtrim")),
    *(Entry(name, "string string", f"{name}({{0}}, {{1}})") for name in ("trim", "ltrim", "rtrim")),
    Entry("btrim", "string", "trim({0})"),
    Entry("btrim", "string string", "trim({0}, {1})"),
    Entry("replace", "string string", "replace({0}, {1}, '')"),
    Entry("replace", "string string string", "replace({0}, {1}, {2})"),
    Entry("translate", "string string string", "translate({0}, {1}, {2})"),
    Entry("startswith", "string string", "starts_with({0}, {1})"),
    Entry("endswith", "string string", "ends_with({0}, {1})"),
    Entry("contains", "string string", "contains({0}, {1})"),
    Entry("locate", "string string", "CAST(strpos({1}, {0}) AS INTEGER)"),
    Entry("locate", "string string int", _LOCATE_FROM),
    *(Entry("lpad", kinds, _pad("lpad")) for kinds in ("string int", "string int string")),
    *(Entry("rpad", kinds, _pad("rpad")) for kinds in ("string int", "string int string")),
    Entry("reverse", "string", "array_to_string(list_reverse(string_split({0}, '')), '')"),
    Entry("repeat", "string int", "repeat({0}, {1})"),
    Entry("ascii", "string", "ascii({0})"),
    Entry("md5", "string", "md5({0})"),
    Entry("sha", "string", "sha1({0})"),
    Entry("split_part", "string string int", _split_part),
    Entry("like", "string string", _like),
    Entry("not like", "string string", _like),
)
