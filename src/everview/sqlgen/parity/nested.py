"""Which functions of arrays, structs and maps give Spark's answer on DuckDB, and their SQL.

Spellings name their own parameters with a leading underscore and a letter; those of the user end
in λ, so neither hides the other.
"""

from __future__ import annotations

from functools import reduce

from everview.expr.types import element_of
from everview.sqlgen.nested_order import sorted_list
from everview.sqlgen.parity import regex
from everview.sqlgen.parity.entry import Entry, Site
from everview.sqlgen.parity.errors import NotAtParity
from everview.sqlgen.parity.fragments import raising, struct_field
from everview.sqlgen.types import spark_type_to_duckdb


def _array(site: Site) -> str:
    return f"[{', '.join(site.args)}]"


def _struct(site: Site) -> str:
    names = (site.value or "").split(",")
    fields = (f"'{name}': {arg}" for name, arg in zip(names, site.args, strict=True))
    return f"{{{', '.join(fields)}}}"


def _map(site: Site) -> str:
    keys, values = ", ".join(site.args[0::2]), ", ".join(site.args[1::2])
    return f"MAP([{keys}], [{values}])"


def _field(site: Site) -> str:
    return struct_field(site.args[0], site.value or "")


def _fields(site: Site) -> str:
    return f"list_transform({site.args[0]}, lambda _e: {struct_field('_e', site.value or '')})"


def _known(*args: str) -> str:
    return " OR ".join(f"{arg} IS NULL" for arg in args)


def _strict(value: str, *args: str) -> str:
    """The value, NULL where an argument is."""
    return f"CASE WHEN {_known(*args)} THEN NULL ELSE {value} END"


def _at(outside: str, place: str) -> str:
    """A template for an element by its place, an error where there is none."""
    failure = raising("INVALID_ARRAY_INDEX", "{1}", "BIGINT")
    return (
        f"{{0}}[CASE WHEN {_known('{0}', '{1}')} THEN NULL WHEN {outside} THEN {failure} "
        f"ELSE {place} END]"
    )


def _sorted(site: Site) -> str:
    """sort_array, nulls first when it ascends; array_sort, nulls last."""
    direction = site.literals[1] if len(site.args) == 2 else "TRUE"
    if direction is None:
        raise NotAtParity("sort_array in an order of a column")
    nulls_first = direction == "TRUE" and site.name == "sort_array"
    element = element_of(site.types[0]) or ""
    descending = direction != "TRUE"
    return sorted_list(site.args[0], element, descending=descending, nulls_first=nulls_first)


def _slice(site: Site) -> str:
    array, start, length = site.args
    wrong = f"{start} = 0 OR {length} < 0"
    failure = raising("INVALID_PARAMETER_VALUE", start, "BIGINT")
    first = (
        f"CASE WHEN {wrong} THEN {failure} WHEN {start} > 0 THEN CAST({start} AS BIGINT) "
        f"ELSE len({array}) + {start} + 1 END"
    )
    taken = f"{array}[{first}:{first} + {length} - 1]"
    nothing = f"CAST([] AS {spark_type_to_duckdb(site.result)})"
    before = f"{start} < 0 AND len({array}) + {start} < 0 AND {length} >= 0"
    return (
        f"CASE WHEN {_known(array, start, length)} THEN NULL WHEN {before} THEN {nothing} "
        f"ELSE {taken} END"
    )


def _concat(site: Site) -> str:
    joined = reduce(lambda left, right: f"list_concat({left}, {right})", site.args)
    return _strict(joined, *site.args)


def _first_places(array: str, more: str = "") -> str:
    """The elements of an array where they first occur."""
    return f"list_filter({array}, lambda _e, _j: list_position({array}, _e) = _j{more})"


def _union(site: Site) -> str:
    return _strict(_first_places(f"list_concat({site.args[0]}, {site.args[1]})"), *site.args)


def _set(test: str) -> str:
    return _strict(_first_places("{0}", f" AND list_position({{1}}, _e) {test}"), "{0}", "{1}")


def _sequence(site: Site) -> str:
    first, last, *step = (f"CAST({arg} AS BIGINT)" for arg in site.args)
    stride = f"CASE WHEN {last} < {first} THEN -1 ELSE 1 END"
    if step:
        wrong = " OR ".join(
            f"({step[0]} {sign} 0 AND {first} {against} {last})"
            for sign, against in ((">", ">"), ("<", "<"), ("=", "<>"))
        )
        failure = raising("ILLEGAL_SEQUENCE_BOUNDARIES", step[0], "BIGINT")
        stride = f"CASE WHEN {wrong} THEN {failure} WHEN {first} = {last} THEN 1 ELSE {step[0]} END"
    series = f"generate_series({first}, {last}, {stride})"
    return _strict(f"CAST({series} AS {spark_type_to_duckdb(site.result)})", *site.args)


def _joined(site: Site) -> str:
    array, separator, *null = site.args
    if site.literals[1] is None:
        raise NotAtParity("array_join with a separator of a column")
    if null:
        array = f"list_transform({array}, lambda _e: COALESCE(_e, {null[0]}))"
    return _strict(f"COALESCE(array_to_string({array}, {separator}), '')", *site.args)


def _joined_by(site: Site) -> str:
    """concat_ws(separator, array): an array that is null has no elements."""
    separator, array = site.args
    if site.literals[0] is None:
        raise NotAtParity("concat_ws with a separator of a column")
    return f"COALESCE(array_to_string({array}, {separator}), '')"


def _aggregate(site: Site) -> str:
    array, first, merge, *finish = site.args
    total = f"list_reduce({array}, {merge}, {first})"
    if not finish:
        return total
    return f"CASE WHEN {array} IS NULL THEN NULL ELSE list_transform([{total}], {finish[0]})[1] END"


def _quantified(found: str, otherwise: str) -> str:
    """A template for exists and forall: whether a test gives a value somewhere, unknown apart."""
    tests = "list_transform({0}, {1})"
    return (
        f"CASE WHEN {{0}} IS NULL THEN NULL WHEN list_contains({tests}, {found}) THEN {found} "
        f"WHEN list_count({tests}) < len({{0}}) THEN NULL ELSE {otherwise} END"
    )


_CONTAINS = (
    "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN list_contains({0}, {1}) THEN TRUE "
    "WHEN list_count({0}) < len({0}) THEN NULL ELSE FALSE END"
)
_REPEATED = _strict("list_transform(range(greatest({1}, 0)), lambda _e: {0})", "{1}")
_OVERLAP = (
    "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL "
    "WHEN list_has_any(list_filter({0}, lambda _e: _e IS NOT NULL), {1}) THEN TRUE "
    "WHEN len({0}) > 0 AND len({1}) > 0 AND (list_count({0}) < len({0}) "
    "OR list_count({1}) < len({1})) THEN NULL ELSE FALSE END"
)

ENTRIES: tuple[Entry, ...] = (
    Entry("=", "nested nested", _strict("({0} IS NOT DISTINCT FROM {1})", "{0}", "{1}")),
    Entry("<>", "nested nested", _strict("({0} IS DISTINCT FROM {1})", "{0}", "{1}")),
    Entry("<=>", "nested nested", "({0} IS NOT DISTINCT FROM {1})"),
    Entry("is distinct from", "nested nested", "({0} IS DISTINCT FROM {1})"),
    Entry("array", "any*", _array),
    Entry("struct", "any*", _struct),
    Entry("map", "any*", _map),
    Entry("field", "struct", _field),
    Entry("field", "structs", _fields),
    Entry("[]", "array index", _at("{1} < 0 OR {1} >= len({0})", "CAST({1} AS BIGINT) + 1")),
    Entry("[]", "map plain", "{0}[{1}]"),
    Entry("element_at", "array int", _at("{1} = 0 OR abs({1}) > len({0})", "{1}")),
    Entry("element_at", "map plain", "{0}[{1}]"),
    Entry("try_element_at", "array int", _at("{1} = 0", "{1}")),
    Entry("try_element_at", "map plain", "{0}[{1}]"),
    Entry("get", "array int", "CASE WHEN {1} >= 0 THEN {0}[CAST({1} AS BIGINT) + 1] END"),
    Entry("size", "array", "CAST(len({0}) AS INTEGER)"),
    Entry("size", "map", "CAST(cardinality({0}) AS INTEGER)"),
    Entry("cardinality", "array", "CAST(len({0}) AS INTEGER)"),
    Entry("cardinality", "map", "CAST(cardinality({0}) AS INTEGER)"),
    Entry("array_contains", "list plain", _CONTAINS),
    Entry(
        "array_position",
        "list plain",
        _strict("CAST(COALESCE(list_position({0}, {1}), 0) AS BIGINT)", "{0}", "{1}"),
    ),
    Entry(
        "array_remove",
        "list plain",
        _strict("list_filter({0}, lambda _e: _e IS DISTINCT FROM {1})", "{1}"),
    ),
    Entry("array_append", "array any", _strict("list_append({0}, {1})", "{0}")),
    Entry("array_prepend", "array any", _strict("list_prepend({1}, {0})", "{0}")),
    Entry("array_compact", "array", "list_filter({0}, lambda _e: _e IS NOT NULL)"),
    Entry("array_distinct", "ordered_list", _first_places("{0}")),
    Entry("array_union", "ordered_list ordered_list", _union),
    Entry("array_intersect", "ordered_list ordered_list", _set("IS NOT NULL")),
    Entry("array_except", "ordered_list ordered_list", _set("IS NULL")),
    Entry("arrays_overlap", "list list", _OVERLAP),
    Entry("sort_array", "nested", _sorted),
    Entry("sort_array", "nested boolean", _sorted),
    Entry("array_sort", "nested", _sorted),
    Entry("array_max", "ordered_list", "list_max({0})"),
    Entry("array_min", "ordered_list", "list_min({0})"),
    Entry("slice", "array int int", _slice),
    Entry(
        "flatten", "array", "CASE WHEN list_count({0}) < len({0}) THEN NULL ELSE flatten({0}) END"
    ),
    Entry("concat", "array array*", _concat),
    Entry("reverse", "array", "list_reverse({0})"),
    Entry("array_join", "list string", _joined),
    Entry("array_join", "list string string", _joined),
    Entry("concat_ws", "string list", _joined_by),
    Entry("array_repeat", "any int", _REPEATED),
    Entry("sequence", "integer integer", _sequence),
    Entry("sequence", "integer integer integer", _sequence),
    Entry("split", "string string", regex.split),
    Entry("split", "string string int", regex.split),
    Entry("map_keys", "map", "map_keys({0})"),
    Entry("map_values", "map", "map_values({0})"),
    Entry("map_entries", "map", "map_entries({0})"),
    Entry(
        "map_contains_key",
        "map plain",
        _strict("list_contains(map_keys({0}), {1})", "{0}", "{1}"),
    ),
    Entry("map_from_arrays", "array array", _strict("MAP({0}, {1})", "{0}", "{1}")),
    Entry("map_from_entries", "structs", "map_from_entries({0})"),
    Entry(
        "map_filter",
        "map boolean",
        "map_from_entries(list_filter(map_entries({0}), {1}))",
    ),
    Entry(
        "transform_values",
        "map any",
        _strict("MAP(map_keys({0}), list_transform(map_entries({0}), {1}))", "{0}"),
    ),
    Entry(
        "transform_keys",
        "map plain",
        _strict("MAP(list_transform(map_entries({0}), {1}), map_values({0}))", "{0}"),
    ),
    Entry("transform", "array any", "list_transform({0}, {1})"),
    Entry("filter", "array boolean", "list_filter({0}, {1})"),
    Entry("exists", "array boolean", _quantified("TRUE", "FALSE")),
    Entry("forall", "array boolean", _quantified("FALSE", "TRUE")),
    Entry("aggregate", "array any any", _aggregate),
    Entry("aggregate", "array any any any", _aggregate),
)
"""What may run on DuckDB of the functions on nested values."""
