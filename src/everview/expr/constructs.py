"""The construct of a sqlglot node: the name that Spark has for it, and its arguments in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from everview.expr.types import FLOATS, INTEGERS, Type, storable_type


@dataclass(frozen=True, slots=True)
class Construct:
    """A construct applied to arguments; `value` is what is fixed in the text (a unit, a name)."""

    name: str
    args: tuple[exp.Expr, ...] = ()
    value: str | None = None


def construct_of(node: exp.Expr) -> Construct | None:
    """The construct of a node, None where we do not know it."""
    special = _SPECIAL.get(type(node))
    if special is not None:
        return special(node)
    if isinstance(node, exp.Anonymous):
        return _named(node.name.lower(), tuple(node.expressions))
    plain = _PLAIN.get(type(node))
    if plain is None:
        return None
    name, keys = plain
    return None if _says_more(node, keys) else Construct(name, _arguments(node, keys))


def _says_more(node: exp.Expr, keys: str) -> bool:
    """Whether the node has an argument that is not under `keys`: a call we do not know whole."""
    rest = (value for key, value in node.args.items() if key not in keys.split())
    return any(isinstance(value, exp.Expr | list) and value for value in rest)


def _named(name: str, args: tuple[exp.Expr, ...]) -> Construct | None:
    if name in ("date_part", "datepart") and len(args) == 2 and isinstance(args[0], exp.Literal):
        return _extracted(args[0].name, args[1])
    if name == "instr" and len(args) == 2:
        return Construct("locate", args[::-1])
    return Construct(_ALIASES.get(name, name), args)


def cast_call(node: exp.Expr) -> tuple[exp.Expr, Type] | None:
    """The argument and the type of a cast written as a function, bigint(x), that sqlglot keeps."""
    if not isinstance(node, exp.Anonymous) or len(node.expressions) != 1:
        return None
    target = _CAST_CALLS.get(node.name.lower())
    return (node.expressions[0], target) if target else None


def target_type(node: exp.Cast) -> Type | None:
    """The type a cast names, in Spark's simpleString, None where we have no name for it."""
    to = node.to
    if to.args.get("nested"):
        return storable_type(to.sql(dialect="spark"))
    base = _TYPE_NAMES.get(to.this)
    if base == "decimal":
        precision, scale = (*(p.name for p in to.expressions), "10", "0")[:2]
        if len(to.expressions) == 1:
            scale = "0"
        return f"decimal({precision},{scale})"
    return base


def interval_cast(node: exp.Cast) -> Construct | None:
    """CAST('5' AS INTERVAL DAY) of a literal of one unit, which is INTERVAL '5' DAY."""
    to, unit = node.to.this, None
    if isinstance(to, exp.Interval) and isinstance(node.this, exp.Literal):
        unit = to.args.get("unit")
    count = re.fullmatch(r"\s*([+-]?\d{1,9})\s*", node.this.name) if unit is not None else None
    if count is None or not isinstance(unit, exp.Var):
        return None
    return Construct("interval", (), f"{int(count[1])} {unit.name.upper()}")


_CAST_CALLS = {
    **{name: name for name in ("tinyint", "smallint", "bigint", "float", "binary")},
    "decimal": "decimal(10,0)",
}
_KINDS = exp.DataType.Type
_TYPE_NAMES: dict[object, Type] = {
    **{_KINDS[name.upper()]: name for name in (*INTEGERS, *FLOATS, "decimal", "boolean")},
    **{_KINDS[name.upper()]: name for name in ("date", "binary")},
    **dict.fromkeys((_KINDS.TEXT, _KINDS.VARCHAR, _KINDS.CHAR), "string"),
    **dict.fromkeys((_KINDS.TIMESTAMP, _KINDS.TIMESTAMPTZ, _KINDS.TIMESTAMPLTZ), "timestamp"),
    _KINDS.TIMESTAMPNTZ: "timestamp_ntz",
}


def _arguments(node: exp.Expr, keys: str) -> tuple[exp.Expr, ...]:
    """The arguments under `keys`, lists flattened, absent ones left out, wrappers taken off."""
    arguments: list[exp.Expr] = []
    for key in keys.split():
        value = node.args.get(key)
        arguments.extend(value if isinstance(value, list) else [value] if value is not None else [])
    return tuple(_unwrapped(arg) for arg in arguments)


def _unwrapped(node: exp.Expr) -> exp.Expr:
    """sqlglot marks arguments it believes to be dates; Spark's text has no such mark."""
    marks = (exp.TsOrDsToDate, exp.TimeStrToTime)
    return node.this if isinstance(node, marks) and not node.args.get("format") else node


def _rows(table: str) -> Iterator[tuple[type[exp.Expr], tuple[str, str]]]:
    """Node, construct and keys, from lines `keys: Node Node=construct …`."""
    for line in table.replace("\n  ", " ").split("\n"):
        keys, _, nodes = line.partition(": ")
        for node in nodes.split():
            name, _, construct = node.partition("=")
            yield getattr(exp, name), (construct or name.lower(), keys)


_TABLE = """\
this: Neg=negative Negative BitwiseNot=~ BitwiseCount=bit_count Not Abs Sign Sqrt Degrees Radians
  Exp Ln Sin Cos Tan Cbrt IsNan Rint Factorial Length BitLength=bit_length Upper Lower
  Reverse Ascii MD5 SHA Hex Unhex ToBase64=base64 Year Quarter Month Day DayOfMonth=day DayOfWeek
  DayOfYear WeekOfYear Hour Minute Second LastDay=last_day DateFromUnixDate=date_from_unix_date
  UnixSeconds=unix_seconds UnixMillis=unix_millis UnixMicros=unix_micros Dayname Monthname
  ArraySize=size ArrayDistinct=array_distinct ArrayCompact=array_compact ArrayMax=array_max
  ArrayMin=array_min Flatten MapKeys=map_keys MapFromEntries=map_from_entries
  JSONFormat=to_json
this expression: Add=+ Sub=- Mul=* Div=/ Mod=% IntDiv=div BitwiseAnd=& BitwiseOr=| BitwiseXor=^
  BitwiseLeftShift=shiftleft BitwiseRightShift=shiftright EQ== NEQ=<> LT=< LTE=<= GT=> GTE=>=
  NullSafeEQ=<=> EqualNull=<=> And Or Pow=power Log Nanvl
  SafeAdd=try_add SafeSubtract=try_subtract SafeMultiply=try_multiply SafeDivide=try_divide Left
  Right DPipe=concat StartsWith EndsWith Contains
  RegexpLike=rlike AddMonths=add_months NextDay=next_day ArrayContains=array_contains
  ArrayExcept=array_except ArrayPosition=array_position ArrayRemove=array_remove
  ArrayAppend=array_append ArrayPrepend=array_prepend
this expressions: Coalesce Greatest Least
this decimals: Ceil Floor Round
expressions: Concat ConcatWs=concat_ws Chr Array ArrayIntersect=array_intersect
: Pi
this start length: Substring
this expression replacement: Replace
this from_ to: Translate
substr this position: StrPosition=locate
this expression from_ for_: Overlay
this times: Repeat
this length: SHA2
this format: ToNumber=to_number
this expression null: ArrayToString=array_join
this start end: ArraySlice=slice
this expression limit: RegexpSplit=split
start end step: GenerateSeries=sequence
keys values: Map=map_from_arrays
this key: MapContainsKey=map_contains_key
this delimiter part_index: SplitPart=split_part
this delimiter count: SubstringIndex=substring_index
this expression replacement position: RegexpReplace=regexp_replace
this expression group: RegexpExtract=regexp_extract
this expression roundoff: MonthsBetween=months_between
this unit: DateTrunc=trunc
year month day hour min sec: TimestampFromParts=make_timestamp"""
"""The nodes that are a construct by themselves, after the keys of their arguments, in order."""

_PLAIN: dict[type[exp.Expr], tuple[str, str]] = {
    **dict(_rows(_TABLE)),
    exp.NullSafeNEQ: ("is distinct from", "this expression"),
}

_ALIASES = {
    "ucase": "upper",
    "lcase": "lower",
    "isnull": "is null",
    "isnotnull": "is not null",
    "mod": "%",
    "regexp": "rlike",
    "to_unix_timestamp": "unix_timestamp",
    "sha1": "sha",
    "char": "chr",
    "curdate": "current_date",
}

_EXTRACTS = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), "year"),
    **dict.fromkeys(("QUARTER", "QTR"), "quarter"),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), "month"),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), "weekofyear"),
    **dict.fromkeys(("DAY", "D", "DAYS"), "day"),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), "dayofweek"),
    **dict.fromkeys(("DAYOFWEEK_ISO", "DOW_ISO"), "dayofweek_iso"),
    "YEAROFWEEK": "yearofweek",
    "DOY": "dayofyear",
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), "minute"),
    **dict.fromkeys(("SECOND", "S", "SEC", "SECONDS", "SECS"), "second_fraction"),
}


def _extract(node: exp.Expr) -> Construct | None:
    return _extracted(node.this.name, node.expression)


def _extracted(unit: str, moment: exp.Expr) -> Construct | None:
    name = _EXTRACTS.get(unit.upper())
    return Construct(name, (moment,)) if name else None


def _is(node: exp.Expr) -> Construct | None:
    match node.expression:
        case exp.Null():
            return Construct("is null", (node.this,))
        case exp.Boolean() as truth:
            return Construct("is true" if truth.this else "is false", (node.this,))
        case _:
            return None


def _like(node: exp.Expr) -> Construct | None:
    """A LIKE, with its escape character; one of ANY or ALL is several."""
    escape = "\\"
    if isinstance(node, exp.Escape):
        node, escape = node.this, node.expression.name
    if isinstance(node.expression, exp.Any | exp.All):
        return None
    name = "like" if isinstance(node, exp.Like) else "ilike"
    return Construct(("not " if node.args.get("negate") else "") + name, _pair(node), escape)


def _pair(node: exp.Expr) -> tuple[exp.Expr, ...]:
    return _arguments(node, "this expression")


def _trim(node: exp.Expr) -> Construct:
    side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim")
    return Construct(side, _pair(node))


def _pad(node: exp.Expr) -> Construct:
    side = "lpad" if node.args.get("is_left") else "rpad"
    return Construct(side, _arguments(node, "this expression fill_pattern"))


def _date_diff(node: exp.Expr) -> Construct:
    return (
        _by_unit("timestampdiff")(node)
        if node.args.get("unit")
        else Construct("datediff", _pair(node))
    )


def _by_unit(name: str) -> Callable[[exp.Expr], Construct]:
    return lambda node: Construct(name, _pair(node), node.args["unit"].name.upper())


def _in(node: exp.Expr) -> Construct | None:
    return Construct("in", _arguments(node, "this expressions")) if node.expressions else None


def _interval(node: exp.Expr) -> Construct | None:
    unit = node.args.get("unit")
    if not isinstance(unit, exp.Var) or not isinstance(node.this, exp.Literal):
        return None
    return Construct("interval", (), f"{node.this.name} {unit.name.upper().removesuffix('S')}")


def _item(node: exp.Expr) -> Construct | None:
    """x[i], or element_at, which sqlglot tells apart by where counting begins."""
    name = "[]"
    if node.args.get("offset") is not None:
        name = "try_element_at" if node.args.get("safe") else "element_at"
    items = node.expressions
    return Construct(name, (node.this, items[0])) if len(items) == 1 else None


def _struct(node: exp.Expr) -> Construct | None:
    named = [each for each in node.expressions if isinstance(each, exp.PropertyEQ)]
    if len(named) != len(node.expressions):
        return None
    names = ",".join(each.this.name for each in named)
    return Construct("struct", tuple(each.expression for each in named), names)


def _map(node: exp.Expr) -> Construct | None:
    keys, values = node.args["keys"].expressions, node.args["values"].expressions
    return Construct("map", tuple(each for pair in zip(keys, values, strict=True) for each in pair))


def _sorted(node: exp.Expr) -> Construct | None:
    """sort_array has nulls first, array_sort last; the order of a comparator we do not know."""
    if node.args.get("expression") is not None:
        return None
    direction, first = node.args.get("asc"), node.args.get("nulls_first")
    if direction is not None:
        return Construct("sort_array", (node.this, direction))
    sort = isinstance(first, exp.Boolean) and bool(first.this)
    return Construct("sort_array" if sort else "array_sort", (node.this,))


_SPECIAL: dict[type[exp.Expr], Callable[[exp.Expr], Construct | None]] = {
    exp.Extract: _extract,
    exp.Is: _is,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _like,
    exp.Initcap: lambda node: Construct("initcap", (node.this,)),
    exp.Trim: _trim,
    exp.Pad: _pad,
    exp.TsOrDsAdd: lambda node: Construct("date_add", _pair(node)),
    exp.DateDiff: _date_diff,
    exp.TimestampAdd: _by_unit("timestampadd"),
    exp.TimestampDiff: _by_unit("timestampdiff"),
    exp.TsOrDsToDate: lambda node: Construct("to_date", _arguments(node, "this format")),
    exp.TimestampTrunc: lambda node: Construct(
        "date_trunc", (_unwrapped(node.this),), node.args["unit"].name.upper()
    ),
    exp.In: _in,
    exp.Interval: _interval,
    exp.Bracket: _item,
    exp.Dot: lambda node: Construct("field", (node.this,), node.expression.name),
    exp.Struct: _struct,
    exp.VarMap: _map,
    exp.ArraySort: _sorted,
}
