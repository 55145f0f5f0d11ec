"""What a sqlglot node says: the name of a construct, and its arguments in Spark's order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from everview.plan.types import Type


@dataclass(frozen=True, slots=True)
class Call:
    """A construct applied to arguments; `value` is what is fixed in the text (a unit, a name)."""

    name: str
    args: tuple[exp.Expr, ...] = ()
    value: str | None = None


def call(node: exp.Expr) -> Call | None:
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
    return Call(name, _arguments(node, keys))


def _named(name: str, args: tuple[exp.Expr, ...]) -> Call | None:
    if name == "date_part" and len(args) == 2 and isinstance(args[0], exp.Literal):
        return _extracted(args[0].name, args[1])
    return Call(_ALIASES.get(name, name), args)


def target_type(node: exp.Cast) -> Type | None:
    """The type a cast names, in Spark's simpleString, None where we have no name for it."""
    to = node.to
    base = _TYPE_NAMES.get(to.this)
    if base == "decimal":
        precision, scale = (*(p.name for p in to.expressions), "10", "0")[:2]
        if len(to.expressions) == 1:
            scale = "0"
        return f"decimal({precision},{scale})"
    return None if to.args.get("nested") else base


_KINDS = exp.DataType.Type
_TYPE_NAMES: dict[object, Type] = {
    _KINDS.TINYINT: "tinyint",
    _KINDS.SMALLINT: "smallint",
    _KINDS.INT: "int",
    _KINDS.BIGINT: "bigint",
    _KINDS.FLOAT: "float",
    _KINDS.DOUBLE: "double",
    _KINDS.DECIMAL: "decimal",
    _KINDS.BOOLEAN: "boolean",
    _KINDS.TEXT: "string",
    _KINDS.VARCHAR: "string",
    _KINDS.CHAR: "string",
    _KINDS.DATE: "date",
    _KINDS.TIMESTAMP: "timestamp",
    _KINDS.TIMESTAMPTZ: "timestamp",
    _KINDS.TIMESTAMPLTZ: "timestamp",
    _KINDS.TIMESTAMPNTZ: "timestamp_ntz",
    _KINDS.BINARY: "binary",
}


def _arguments(node: exp.Expr, keys: str) -> tuple[exp.Expr, ...]:
    """The arguments under `keys`, lists flattened, absent ones left out, wrappers taken off."""
    found: list[exp.Expr] = []
    for key in keys.split():
        value = node.args.get(key)
        found.extend(value if isinstance(value, list) else [value] if value is not None else [])
    return tuple(_unwrapped(arg) for arg in found)


def _unwrapped(node: exp.Expr) -> exp.Expr:
    """sqlglot marks arguments it believes to be dates; Spark's text has no such mark."""
    marks = (exp.TsOrDsToDate, exp.TimeStrToTime)
    return node.this if isinstance(node, marks) and not node.args.get("format") else node


_PLAIN: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Add: ("+", "this expression"),
    exp.Sub: ("-", "this expression"),
    exp.Mul: ("*", "this expression"),
    exp.Div: ("/", "this expression"),
    exp.Mod: ("%", "this expression"),
    exp.IntDiv: ("div", "this expression"),
    exp.Neg: ("negative", "this"),
    exp.BitwiseAnd: ("&", "this expression"),
    exp.BitwiseOr: ("|", "this expression"),
    exp.BitwiseXor: ("^", "this expression"),
    exp.BitwiseNot: ("~", "this"),
    exp.BitwiseLeftShift: ("shiftleft", "this expression"),
    exp.BitwiseRightShift: ("shiftright", "this expression"),
    exp.BitwiseCount: ("bit_count", "this"),
    exp.EQ: ("=", "this expression"),
    exp.NEQ: ("<>", "this expression"),
    exp.LT: ("<", "this expression"),
    exp.LTE: ("<=", "this expression"),
    exp.GT: (">", "this expression"),
    exp.GTE: (">=", "this expression"),
    exp.NullSafeEQ: ("<=>", "this expression"),
    exp.EqualNull: ("<=>", "this expression"),
    exp.NullSafeNEQ: ("is distinct from", "this expression"),
    exp.And: ("and", "this expression"),
    exp.Or: ("or", "this expression"),
    exp.Not: ("not", "this"),
    exp.Coalesce: ("coalesce", "this expressions"),
    exp.Greatest: ("greatest", "this expressions"),
    exp.Least: ("least", "this expressions"),
    exp.Abs: ("abs", "this"),
    exp.Sign: ("sign", "this"),
    exp.Ceil: ("ceil", "this decimals"),
    exp.Floor: ("floor", "this decimals"),
    exp.Round: ("round", "this decimals"),
    exp.Sqrt: ("sqrt", "this"),
    exp.Degrees: ("degrees", "this"),
    exp.Radians: ("radians", "this"),
    exp.Pow: ("power", "this expression"),
    exp.Exp: ("exp", "this"),
    exp.Ln: ("ln", "this"),
    exp.Cbrt: ("cbrt", "this"),
    exp.IsNan: ("isnan", "this"),
    exp.Nanvl: ("nanvl", "this expression"),
    exp.Rint: ("rint", "this"),
    exp.Factorial: ("factorial", "this"),
    exp.Pi: ("pi", ""),
    exp.SafeAdd: ("try_add", "this expression"),
    exp.SafeSubtract: ("try_subtract", "this expression"),
    exp.SafeMultiply: ("try_multiply", "this expression"),
    exp.SafeDivide: ("try_divide", "this expression"),
    exp.Length: ("length", "this"),
    exp.BitLength: ("bit_length", "this"),
    exp.Substring: ("substring", "this start length"),
    exp.Left: ("left", "this expression"),
    exp.Right: ("right", "this expression"),
    exp.Concat: ("concat", "expressions"),
    exp.DPipe: ("concat", "this expression"),
    exp.ConcatWs: ("concat_ws", "expressions"),
    exp.Upper: ("upper", "this"),
    exp.Lower: ("lower", "this"),
    exp.Initcap: ("initcap", "this"),
    exp.Replace: ("replace", "this expression replacement"),
    exp.Translate: ("translate", "this from_ to"),
    exp.StartsWith: ("startswith", "this expression"),
    exp.EndsWith: ("endswith", "this expression"),
    exp.Contains: ("contains", "this expression"),
    exp.StrPosition: ("locate", "substr this position"),
    exp.Reverse: ("reverse", "this"),
    exp.Repeat: ("repeat", "this times"),
    exp.Ascii: ("ascii", "this"),
    exp.Chr: ("chr", "expressions"),
    exp.MD5: ("md5", "this"),
    exp.SHA: ("sha", "this"),
    exp.SHA2: ("sha2", "this length"),
    exp.Hex: ("hex", "this"),
    exp.SplitPart: ("split_part", "this delimiter part_index"),
    exp.SubstringIndex: ("substring_index", "this delimiter count"),
    exp.RegexpReplace: ("regexp_replace", "this expression replacement position"),
    exp.RegexpExtract: ("regexp_extract", "this expression group"),
    exp.RegexpLike: ("rlike", "this expression"),
    exp.Year: ("year", "this"),
    exp.Quarter: ("quarter", "this"),
    exp.Month: ("month", "this"),
    exp.Day: ("day", "this"),
    exp.DayOfMonth: ("day", "this"),
    exp.DayOfWeek: ("dayofweek", "this"),
    exp.DayOfYear: ("dayofyear", "this"),
    exp.WeekOfYear: ("weekofyear", "this"),
    exp.Hour: ("hour", "this"),
    exp.Minute: ("minute", "this"),
    exp.Second: ("second", "this"),
    exp.AddMonths: ("add_months", "this expression"),
    exp.LastDay: ("last_day", "this"),
    exp.NextDay: ("next_day", "this expression"),
    exp.MonthsBetween: ("months_between", "this expression roundoff"),
    exp.DateTrunc: ("trunc", "this unit"),
    exp.UnixSeconds: ("unix_seconds", "this"),
    exp.UnixMillis: ("unix_millis", "this"),
    exp.UnixMicros: ("unix_micros", "this"),
    exp.Dayname: ("dayname", "this"),
    exp.Monthname: ("monthname", "this"),
}

_ALIASES = {
    "ucase": "upper",
    "lcase": "lower",
    "isnull": "is null",
    "isnotnull": "is not null",
    "mod": "%",
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
    "DOY": "dayofyear",
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), "minute"),
    **dict.fromkeys(("SECOND", "S", "SEC", "SECONDS", "SECS"), "second_fraction"),
}


def _extract(node: exp.Expr) -> Call | None:
    return _extracted(node.this.name, node.expression)


def _extracted(unit: str, moment: exp.Expr) -> Call | None:
    name = _EXTRACTS.get(unit.upper())
    return Call(name, (moment,)) if name else None


def _is(node: exp.Expr) -> Call | None:
    match node.expression:
        case exp.Null():
            return Call("is null", (node.this,))
        case exp.Boolean() as truth:
            return Call("is true" if truth.this else "is false", (node.this,))
        case _:
            return None


def _like(node: exp.Expr) -> Call | None:
    """A LIKE, with its escape character; one of ANY or ALL is not one construct."""
    escape = "\\"
    if isinstance(node, exp.Escape):
        node, escape = node.this, node.expression.name
    if isinstance(node.expression, exp.Any | exp.All):
        return None
    name = "like" if isinstance(node, exp.Like) else "ilike"
    return Call(("not " if node.args.get("negate") else "") + name, _pair(node), escape)


def _pair(node: exp.Expr) -> tuple[exp.Expr, ...]:
    return _arguments(node, "this expression")


def _trim(node: exp.Expr) -> Call:
    side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim")
    return Call(side, _pair(node))


def _pad(node: exp.Expr) -> Call:
    side = "lpad" if node.args.get("is_left") else "rpad"
    return Call(side, _arguments(node, "this expression fill_pattern"))


def _date_add(node: exp.Expr) -> Call:
    return Call("date_add", _pair(node))


def _date_diff(node: exp.Expr) -> Call:
    unit = node.args.get("unit")
    return Call("timestampdiff" if unit else "datediff", _pair(node), unit and unit.name.upper())


def _timestamp_add(node: exp.Expr) -> Call:
    return Call("timestampadd", _pair(node), node.args["unit"].name.upper())


def _timestamp_diff(node: exp.Expr) -> Call:
    return Call("timestampdiff", _pair(node), node.args["unit"].name.upper())


def _to_date(node: exp.Expr) -> Call:
    return Call("to_date", _arguments(node, "this format"))


def _date_trunc(node: exp.Expr) -> Call:
    return Call("date_trunc", (_unwrapped(node.this),), node.args["unit"].name.upper())


def _in(node: exp.Expr) -> Call | None:
    return Call("in", _arguments(node, "this expressions")) if node.expressions else None


def _interval(node: exp.Expr) -> Call | None:
    unit = node.args.get("unit")
    if not isinstance(unit, exp.Var) or not isinstance(node.this, exp.Literal):
        return None
    return Call("interval", (), f"{node.this.name} {unit.name.upper().removesuffix('S')}")


_SPECIAL: dict[type[exp.Expr], Callable[[exp.Expr], Call | None]] = {
    exp.Extract: _extract,
    exp.Is: _is,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _like,
    exp.Trim: _trim,
    exp.Pad: _pad,
    exp.TsOrDsAdd: _date_add,
    exp.DateDiff: _date_diff,
    exp.TimestampAdd: _timestamp_add,
    exp.TimestampDiff: _timestamp_diff,
    exp.TsOrDsToDate: _to_date,
    exp.TimestampTrunc: _date_trunc,
    exp.In: _in,
    exp.Interval: _interval,
}
