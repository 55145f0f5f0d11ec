"""Which functions of JSON give Spark's answer on DuckDB, and their SQL there.

Spark reads more than DuckDB (single quotes, text after the end, bare line ends in a string), and
DuckDB more than Spark (NaN, a last comma). What both read is answered, what begins like JSON and
only one of them reads raises.
"""

from __future__ import annotations

import re

from everview.expr.types import INTEGERS, Type, element_of, fields_of
from everview.sqlgen.parity.casts import cast
from everview.sqlgen.parity.entry import Entry, Site
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.parity.fragments import raising, struct_field

_STRINGS = r'"([^"\\]|\\.)*"'
_STRANGE = r"[NiI]|na|,\s*[\]}]"
_NAME = r"\.([A-Za-z_][A-Za-z0-9_]*)"
_PATH = re.compile(rf"\$(?:{_NAME}|\[\d{{1,9}}\])+")


def _read(text: str, opening: str, found: str, type_: str) -> str:
    """What is found in a text that both engines read; NULL where it opens or ends as no JSON."""
    bare = f"regexp_replace({text}, '{_STRINGS}', '0', 'g')"
    both = f"json_valid({text}) AND NOT regexp_matches({bare}, '{_STRANGE}')"
    closing = opening.replace("{", "}").replace("[", r"\]")
    return (
        rf"CASE WHEN {text} IS NULL OR NOT regexp_matches({text}, '^[ \t\n\r]*[{opening}]') "
        f"OR NOT regexp_matches({text}, '[{closing}]') THEN NULL "
        f"WHEN {both} THEN {found} ELSE {raising('JSON_OF_ONE_ENGINE', text, type_)} END"
    )


def _array_length(site: Site) -> str:
    [text] = site.args
    return _read(text, "[", f"CAST(json_array_length({text}) AS INTEGER)", "INTEGER")


def _object(site: Site) -> str:
    """The value at a literal path of names and places, as text; nested values if they are plain."""
    text, path = site.args[0], site.literals[1]
    if path is None or not _PATH.fullmatch(path):
        raise NotAtParity(f"{site.name} with the path {path or 'of a column'!r}")
    found, kind = f"json_extract({text}, '{path}')", f"json_type({text}, '{path}')"
    written = f"CAST({found} AS VARCHAR)"
    hard = raising("NESTED_VALUE_MAY_DIFFER", text, "VARCHAR")
    value = (
        f"CASE WHEN {kind} = 'VARCHAR' THEN json_extract_string({text}, '{path}') "
        f"WHEN {kind} IN ('BOOLEAN', 'BIGINT', 'UBIGINT') THEN {written} "
        f"WHEN {kind} = 'DOUBLE' THEN {cast(f'CAST({found} AS DOUBLE)', 'double', 'string')} "
        f"WHEN {kind} IN ('OBJECT', 'ARRAY') THEN "
        rf"CASE WHEN regexp_matches({written}, '[0-9][.eE]|\\') THEN {hard} ELSE {written} END "
        f"{_nothing(text, path, kind)} END"
    )
    return _read(text, "[" if path[1] == "[" else "{", value, "VARCHAR")


def _nothing(text: str, path: str, kind: str) -> str:
    """Where a name occurs twice, Spark goes on to the one that has a value, and we raise."""
    twice = " OR ".join(
        f"len({keys}) <> len(list_distinct({keys}))"
        for step in re.finditer(_NAME, path)
        for keys in [f"json_keys({text}, '{path[: step.start()]}')"]
    )
    null = f"WHEN {kind} = 'NULL' THEN 'null'" if path.endswith("]") else ""
    repeated = raising("NAME_OCCURS_TWICE", text, "VARCHAR")
    return f"{null} WHEN {twice} THEN {repeated}" if twice else null


def _written(site: Site) -> str:
    return _json_of(site.args[0], site.types[0])


def _json_of(sql: str, type_: Type) -> str:
    """A value as JSON: fields without value are left out, elements without value are null."""
    if type_ in INTEGERS or type_ == "boolean":
        return f"CAST({sql} AS VARCHAR)"
    if type_ == "string":
        return f"CAST(to_json({sql}) AS VARCHAR)"
    if type_ == "date":
        return f"('\"' || CAST({sql} AS VARCHAR) || '\"')"
    if type_ == "double":
        digits = cast(sql, "double", "string")
        words = f"isnan({sql}) OR isinf({sql})"
        return f"CASE WHEN {words} THEN '\"' || {digits} || '\"' ELSE {digits} END"
    if (element := element_of(type_)) is not None:
        each = f"lambda _e: COALESCE({_json_of('_e', element)}, 'null')"
        return f"('[' || array_to_string(list_transform({sql}, {each}), ',') || ']')"
    if not type_.startswith("struct<"):
        raise NotAtParity(f"to_json({type_})")
    fields = ", ".join(
        f"'\"{name}\":' || {_json_of(struct_field(sql, name), inner)}"
        for name, inner in fields_of(type_)
    )
    return f"CASE WHEN {sql} IS NOT NULL THEN '{{' || concat_ws(',', {fields}) || '}}' END"


ENTRIES: tuple[Entry, ...] = (
    Entry("json_array_length", "string", _array_length),
    Entry("get_json_object", "string string", _object),
    Entry("to_json", "struct", _written),
    Entry("to_json", "array", _written),
)
"""What may run on DuckDB of the functions on JSON."""
