"""What functions of texts and of moments mean in other dialects."""

from __future__ import annotations

import re
from string import ascii_lowercase, ascii_uppercase

from sqlglot import exp

from everview.lang.sql.dialects.meanings import MEANINGS, SAME
from everview.lang.sql.dialects.site import (
    Rewrite,
    TranslationSite,
    called,
    cast,
    number,
    templated,
)
from everview.lang.sql.dialects.types import DATE, FLOAT, NULL, TEXT, TIMESTAMP, Kind


def joined(site: TranslationSite) -> Rewrite | None:
    """CONCAT, || and CONCAT_WS: fractions have other digits in other dialects."""
    node = site.node
    parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
    if FLOAT in map(site.kinds.of, parts):
        site.refuse("the text of a fraction", "cast it to a DECIMAL first")
    if site.meaning.concat_skips_null is None:
        site.refuse("a NULL among texts that are joined", "use Spark's dialect")
    if type(node) is exp.Concat and site.meaning.concat_skips_null:
        return lambda: called("CONCAT_WS", exp.Literal.string(""), *node.expressions)
    return None


def added(site: TranslationSite) -> Rewrite | None:
    """+ and −: of texts, of dates, and of intervals."""
    node, plus = site.node, isinstance(site.node, exp.Add)
    left, right = site.kinds.of(node.this), site.kinds.of(node.expression)
    if isinstance(node.expression, exp.Interval):
        return _plus_interval(site, left)
    if plus and site.meaning.plus_joins_texts:
        if TEXT in (left, right) and {left, right} <= {TEXT, NULL}:
            return lambda: exp.DPipe(this=node.this, expression=node.expression, safe=True)
        if left is None or right is None:
            site.refuse("+ of types that are not known", "cast both operands")
    if not plus and left == right == DATE:
        if not site.meaning.date_minus_date:
            site.refuse("a date minus a date", "use DATEDIFF of Spark's dialect")
        return lambda: called("DATEDIFF", node.this, node.expression)
    return None


def _plus_interval(site: TranslationSite, kind: Kind) -> Rewrite | None:
    node = site.node
    if not site.meaning.interval_makes_timestamp or kind == TIMESTAMP:
        return None
    if kind != DATE:
        site.refuse("an interval added to what is not known", "cast it to DATE or TIMESTAMP")
    return lambda: type(node)(this=cast(node.this, "TIMESTAMP_NTZ"), expression=node.expression)


def like(site: TranslationSite) -> Rewrite | None:
    """LIKE: its escape where none is written, and letters of either case."""
    node, meaning = site.node, site.meaning
    pattern = node.expression
    plain = isinstance(pattern, exp.Literal)
    if meaning.like_classes and (not plain or "[" in pattern.name):
        site.refuse("[ in a pattern", "write LIKE with a pattern that is a plain text")
    if meaning.like_escape is None:
        site.refuse(node.key.upper(), "use Spark's dialect")
    escapes = not isinstance(node.parent, exp.Escape) and meaning.like_escape == ""
    if isinstance(pattern, exp.Any | exp.All) or not (escapes or meaning.like_ignores_case):
        return None

    def rewrite() -> exp.Expr:
        value, found = node.this, node.expression
        if escapes and plain:
            found = exp.Literal.string(found.name.replace("\\", "\\\\"))
        elif escapes:
            marks = exp.Literal.string("\\"), exp.Literal.string("\\\\")
            found = called("REPLACE", found, *marks)
        if meaning.like_ignores_case:
            value, found = _small(value), _small(found)
        return type(node)(this=value, expression=found, negate=node.args.get("negate"))

    return rewrite


def cased(site: TranslationSite) -> Rewrite | None:
    """UPPER and LOWER where they know the letters of ASCII only."""
    node = site.node
    if not site.meaning.ascii_case:
        return None
    upper = isinstance(node, exp.Upper)
    return lambda: _small(node.this, upper=upper)


def _small(text: exp.Expr, *, upper: bool = False) -> exp.Expr:
    """A text in small letters, of ASCII only."""
    if isinstance(text, exp.Literal) and text.name.isascii():
        return exp.Literal.string(text.name.upper() if upper else text.name.lower())
    letters = [exp.Literal.string(each) for each in (ascii_uppercase, ascii_lowercase)]
    return called("TRANSLATE", text, *(reversed(letters) if upper else letters))


def substring(site: TranslationSite) -> Rewrite | None:
    """Places below one are counted in many ways."""
    start = site.node.args.get("start")
    place = number(start)
    if place is None or place == 0 or (place < 0 and not site.meaning.negative_start):
        site.refuse("SUBSTRING from a place that may be below 1", "write a place of at least 1")
    return None


def ends(site: TranslationSite) -> Rewrite | None:
    """LEFT and RIGHT, of which a negative number means many things."""
    if (number(site.node.expression) or -1) < 0:
        word = site.node.key.upper()
        site.refuse(f"{word} of a number that may be negative", "write how many letters")
    return None


def length(site: TranslationSite) -> Rewrite | None:
    """LENGTH, of which some count bytes, and some no blanks at the end."""
    node = site.node
    if node.args.get("binary"):
        return lambda: called("OCTET_LENGTH", node.this)
    how = site.meaning.length
    if how is None:
        site.refuse("LENGTH", "use Spark's dialect")
    return None if how == SAME else lambda: templated(how, node.this)


def part(site: TranslationSite) -> Rewrite | None:
    """EXTRACT, of the parts of a moment that have one meaning."""
    node = site.node
    name = node.this.name.upper()
    how = site.meaning.parts.get(name)
    if how is None:
        site.refuse(f"EXTRACT of {name}", "extract YEAR, MONTH, DAY, HOUR or MINUTE")
    return None if how == SAME else lambda: templated(how, node.expression)


def day_of_week(site: TranslationSite) -> Rewrite | None:
    """The day of the week, counted from Sunday or Monday, from 0 or 1."""
    node, how = site.node, site.meaning.day_of_week
    if isinstance(node, exp.DayOfWeekIso):
        return lambda: templated("EXTRACT(DAYOFWEEK_ISO FROM {0})", node.this)
    if how is None:
        site.refuse("the day of the week", "use Spark's dialect")
    return None if how == SAME else lambda: templated(how, node.this)


def week(site: TranslationSite) -> Rewrite | None:
    """The week of a year as ISO counts it."""
    node = site.node
    if "WEEK" not in site.meaning.parts:
        site.refuse("the week of a year", "use Spark's dialect")
    return lambda: called("WEEKOFYEAR", node.this)


_BETWEEN = {
    "YEAR": "YEAR({0}) - YEAR({1})",
    "QUARTER": "YEAR({0}) * 4 + QUARTER({0}) - YEAR({1}) * 4 - QUARTER({1})",
    "MONTH": "YEAR({0}) * 12 + MONTH({0}) - YEAR({1}) * 12 - MONTH({1})",
    "DAY": "DATEDIFF({0}, {1})",
}
"""How many units begin between two moments."""


def difference(site: TranslationSite) -> Rewrite | None:
    """The difference of moments: whole units, or units that begin between."""
    node = site.node
    unit = (node.args["unit"].name if node.args.get("unit") else "DAY").upper()
    if site.meaning.boundaries is None or (site.meaning.boundaries and unit not in _BETWEEN):
        site.refuse(f"a difference in units of {unit}", "count DAY, MONTH, QUARTER or YEAR")
    if not site.meaning.boundaries and (unit != "DAY" or site.kinds.of(node.this) != DATE):
        return None
    return lambda: templated(_BETWEEN[unit], node.this, node.expression)


def truncated(site: TranslationSite) -> Rewrite | None:
    """DATE_TRUNC, of which weeks begin on Sunday or Monday."""
    unit = site.node.args.get("unit")
    if unit is not None and "WEEK" in unit.sql().upper() and site.meaning.week is None:
        site.refuse("the beginning of a week", "use Spark's dialect")
    return None


def moved(site: TranslationSite) -> None:
    """DATE_ADD and its kin, of days and more added to a date; the time of a day would be lost."""
    unit = (site.node.args["unit"].name if site.node.args.get("unit") else "DAY").upper()
    whole = unit in ("DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
    if not whole or site.kinds.of(site.node.this) != DATE or site.meaning.interval_makes_timestamp:
        site.refuse("this sum of a moment and an interval", "write moment + INTERVAL")


def written(site: TranslationSite) -> None:
    """A moment written by a format of digits alone."""
    form = site.node.args["format"]
    plain = isinstance(form, exp.Literal) and _DIGITS.fullmatch(form.name)
    if not plain:
        site.refuse("a format of moments", "use year, month, day, hours, minutes and seconds")


_DIGITS = re.compile(r"(%[YmdHMS]|[-/:., T])+")


def day(site: TranslationSite) -> None:
    """DATE(x), which is a text in SQLite."""
    node = site.node
    if (
        site.reading.dialect not in MEANINGS
        or site.reading.dialect == "sqlite"
        or node.args.get("zone")
    ):
        site.refuse("the function DATE", "cast to DATE")


def replaced(site: TranslationSite) -> None:
    """REGEXP_REPLACE of every match; some dialects replace the first one."""
    node = site.node
    flags = node.args.get("modifiers")
    first = node.args.get("single_replace") and not (flags is not None and flags.name == "g")
    if first or site.reading.dialect not in MEANINGS:
        site.refuse("REGEXP_REPLACE of the first match", "replace all of them, with the flag 'g'")


def extracted(site: TranslationSite) -> None:
    """REGEXP_EXTRACT of a group that is named."""
    if site.node.args.get("group") is None:
        site.refuse("REGEXP_EXTRACT without a group", "write which group")
