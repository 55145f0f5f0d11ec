"""Which functions of strings give Spark's answer on DuckDB, and their SQL there."""

from __future__ import annotations

from collections.abc import Callable

from everview.sqlgen.parity import regex
from everview.sqlgen.parity.entry import Entry, Site
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.parity.fragments import raising, string_literal
from everview.sqlgen.types import spark_type_to_duckdb


def _like(site: Site) -> str:
    """LIKE; Spark raises on an escape before an ordinary character, and so do we."""
    pattern, escape = site.literals[1], site.value or "\\"
    name = site.name.removeprefix("not ")
    if len(escape) != 1 or (pattern is not None and not _well_escaped(pattern, escape)):
        raise NotAtParity(f"{name} with the pattern {pattern!r}", "Spark refuses its escapes")
    text, like = map(_LOWER.format, site.args) if name == "ilike" else site.args
    escaped = "" if escape not in (pattern or escape) else f" ESCAPE {string_literal(escape)}"
    found = f"({text} {site.name.upper().replace('ILIKE', 'LIKE')} {like}{escaped})"
    return found if pattern is not None else _if_well_escaped(site, escape, found)


def _if_well_escaped(site: Site, escape: str, found: str) -> str:
    text, pattern = site.args
    if escape != "\\":
        raise NotAtParity(f"{site.name} with a computed pattern and its own escape")
    well = rf"regexp_full_match({pattern}, '(?s)([^\\]|\\[%_\\])*')"
    failure = raising("INVALID_FORMAT", pattern, "BOOLEAN")
    unknown = f"{text} IS NULL OR {pattern} IS NULL"
    return f"CASE WHEN {unknown} THEN NULL WHEN {well} THEN {found} ELSE {failure} END"


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
    "CASE WHEN {0} IS NULL OR {2} IS NULL THEN NULL "
    "WHEN {2} > 0 THEN array_to_string(string_split({0}, {1})[1:{2}], {1}) "
    "WHEN {2} < 0 THEN array_to_string("
    "string_split({0}, {1})[greatest(len(string_split({0}, {1})) + {2} + 1, 1):], {1}) ELSE '' END"
)


def _substring_index(site: Site) -> str:
    if not site.literals[1]:
        raise NotAtParity("substring_index with an empty or computed delimiter")
    return _SUBSTRING_INDEX.format(*site.args)


_FIND_IN_SET = (
    "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN contains({0}, ',') THEN 0 "
    "ELSE COALESCE(CAST(list_position(string_split({1}, ','), {0}) AS INTEGER), 0) END"
)


def _split_part(site: Site) -> str:
    """The position zero is an error; an empty delimiter splits nothing."""
    string, delimiter, position = site.args
    found = f"split_part({', '.join(site.args)})"
    if not site.literals[1]:
        whole = f"CASE WHEN {position} IN (1, -1) THEN {string} ELSE left({string}, 0) END"
        found = f"CASE WHEN {delimiter} = '' THEN {whole} ELSE {found} END"
    if site.literals[2] in (None, "0"):
        given = f"{position} = 0 AND {string} IS NOT NULL AND {delimiter} IS NOT NULL"
        failure = raising("INVALID_INDEX_OF_ZERO", position, "VARCHAR")
        found = f"CASE WHEN {given} THEN {failure} ELSE {found} END"
    return found


_NOT_UPPER = (
    r"[\x{149}\x{19B}\x{1F0}\x{264}\x{390}\x{3B0}\x{587}\x{1C8A}\x{1E96}-\x{1E9A}\x{1F50}-\x{1FFC}"
    r"\x{A7CD}-\x{A7DB}\x{FB00}-\x{FB17}\x{10D70}-\x{10D85}\x{16EBB}-\x{16ED3}]"
)
_NOT_LOWER = r"[\x{3A3}\x{1C89}\x{A7CB}-\x{A7DC}\x{10D50}-\x{10D65}\x{16EA0}-\x{16EB8}]"
_NOT_TITLE = (
    rf"{_NOT_UPPER[:-1]}{_NOT_LOWER[1:-1]}\x{{DF}}\x{{130}}\x{{1C4}}-\x{{1CC}}\x{{1F1}}-\x{{1F3}}"
    r"\x{3F4}\x{10D0}-\x{10FF}\x{2126}\x{212A}\x{212B}]"
)


def _cased(letters: str, mapped: str) -> str:
    """A change of case, but for the letters whose mapping is longer, new, or depends on others."""
    failure = raising("CASE_MAPPING_MAY_DIFFER", "{0}", "VARCHAR")
    hard = letters.replace("{", "{{").replace("}", "}}")
    return f"CASE WHEN regexp_matches({{0}}, '{hard}') THEN {failure} ELSE {mapped} END"


_UPPER = _cased(_NOT_UPPER, "upper(replace({0}, 'ß', 'SS'))")
_LOWER = _cased(_NOT_LOWER, "lower(replace({0}, 'İ', 'i' || chr(775)))")
_INITCAP = _cased(
    _NOT_TITLE,
    "array_to_string(list_transform(string_split(lower({0}), ' '), "
    "lambda w: upper(left(w, 1)) || substring(w, 2)), ' ')",
)


def _overlay(site: Site) -> str:
    """Only from a literal position within the string; a negative length means the new part's."""
    string, part, start, *length = site.args
    if int(site.literals[2] or 0) < 1:
        raise NotAtParity("overlay from this position")
    given = length[0] if length else "-1"
    taken = f"CASE WHEN {given} < 0 THEN length({part}) ELSE {given} END"
    return f"(left({string}, {start} - 1) || {part} || substring({string}, {start} + {taken}))"


def _sha2(site: Site) -> str:
    if site.literals[1] not in ("0", "256"):
        raise NotAtParity(f"sha2 of {site.literals[1] or 'computed'} bits")
    return f"sha256({site.args[0]})"


_UNHEX = "CASE WHEN regexp_full_match({0}, '[0-9a-fA-F]*') THEN unhex({0}) END"
_DOUBLED = "(CAST(_d AS INTEGER) * (2 - _i % 2))"
_LUHN = (
    "CASE WHEN {0} IS NULL THEN NULL WHEN regexp_full_match({0}, '[0-9]+') THEN "
    "list_sum(list_transform(string_split(reverse({0}), ''), "
    f"lambda _d, _i: {_DOUBLED} // 10 + {_DOUBLED} % 10)) % 10 = 0 ELSE FALSE END"
)


def _to_number(site: Site) -> str:
    """A number of at most as many digits as the format has, between blanks."""
    value, target = site.args[0], spark_type_to_duckdb(site.result)
    shape = f" *[0-9]{{1,{len(site.literals[1] or '')}}} *"
    failure = raising("INVALID_FORMAT", value, target)
    return (
        f"CASE WHEN {value} IS NULL THEN NULL WHEN regexp_full_match({value}, '{shape}') "
        f"THEN CAST(trim({value}) AS {target}) ELSE {failure} END"
    )


ENTRIES: tuple[Entry, ...] = (
    Entry("length", "string", "CAST(length({0}) AS INTEGER)"),
    Entry("octet_length", "string", "CAST(strlen({0}) AS INTEGER)"),
    Entry("bit_length", "string", "CAST(bit_length({0}) AS INTEGER)"),
    Entry("concat", "string*", _concat),
    Entry("concat_ws", "string string string*", lambda s: f"concat_ws({', '.join(s.args)})"),
    Entry("concat_ws", "string", "left({0}, 0)"),
    Entry("upper", "string", _UPPER),
    Entry("lower", "string", _LOWER),
    Entry("initcap", "string", _INITCAP),
    Entry("overlay", "string string int", _overlay),
    Entry("overlay", "string string int int", _overlay),
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
    Entry("chr", "bigint", "CASE WHEN {0} < 0 THEN '' ELSE chr(CAST({0} & 255 AS INTEGER)) END"),
    Entry("bin", "bigint", "bin({0})"),
    Entry("hex", "bigint", "hex({0})"),
    Entry("hex", "string", "hex({0})"),
    Entry("hex", "binary", "hex({0})"),
    Entry("unhex", "string", _UNHEX),
    Entry("luhn_check", "string", _LUHN),
    Entry("to_number", "string string", _to_number),
    Entry("base64", "binary", "base64({0})"),
    Entry("sha2", "binary int", _sha2),
    Entry("md5", "string", "md5({0})"),
    Entry("sha", "string", "sha1({0})"),
    Entry("split_part", "string string int", _split_part),
    Entry("substring_index", "string string int", _substring_index),
    Entry("find_in_set", "string string", _FIND_IN_SET),
    *(Entry(name, "string string", _like) for name in ("like", "not like", "ilike", "not ilike")),
    Entry("rlike", "string string", regex.matches),
    Entry("regexp_replace", "string string string", regex.replaced),
    Entry("regexp_extract", "string string int", regex.extracted),
)
