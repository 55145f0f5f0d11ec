"""What arithmetic, averages and casts of other dialects mean."""

from __future__ import annotations

from sqlglot import exp

from everview.expr.dialect import DIALECT
from everview.lang.sql.dialects.meanings import AWAY, CUT, DOUBLE, EVEN, SAME, WHOLE
from everview.lang.sql.dialects.site import (
    Rewrite,
    TranslationSite,
    bare,
    called,
    cast,
    kind_of,
    of_type,
)
from everview.lang.sql.dialects.types import (
    DECIMAL,
    FLOAT,
    INTEGER,
    NULL,
    NUMBERS,
    TEXT,
    Kind,
    common_kind,
)


def division(site: TranslationSite) -> Rewrite:
    """x / y: a whole number, a double or a decimal, by its operands."""
    node, way = site.node, site.meaning.division
    kind = _number_kind(site, node.this, node.expression)
    result = way.get(kind)
    if result is None:
        shown = f"/ of {'numbers of a type that is not known' if kind is None else f'{kind}s'}"
        site.refuse(shown, "cast an operand to DOUBLE PRECISION, or to the type you mean")

    def rewrite() -> exp.Expr:
        left, right = node.this, _not_zero(site, node.expression)
        if result == WHOLE:
            return exp.IntDiv(this=left, expression=right)
        if result == DOUBLE:
            left, right = cast(left, "DOUBLE"), cast(right, "DOUBLE")
        return exp.Div(this=left, expression=right, typed=False, safe=False)

    return rewrite


def whole_division(site: TranslationSite) -> Rewrite:
    """x // y and x DIV y, of integers."""
    node = site.node
    if _number_kind(site, node.this, node.expression) != INTEGER:
        site.refuse("integer division of other numbers", "divide integers, or use FLOOR")
    return lambda: exp.IntDiv(this=node.this, expression=_not_zero(site, node.expression))


def remainder(site: TranslationSite) -> Rewrite:
    """x % y, NULL of zero where the dialect says so."""
    node = site.node
    kind = _number_kind(site, node.this, node.expression)
    if kind not in site.meaning.remainder:
        site.refuse(f"% of {kind or 'unknown'} numbers", "take the remainder of integers")
    return lambda: exp.Mod(this=node.this, expression=_not_zero(site, node.expression))


def _number_kind(site: TranslationSite, *operands: exp.Expr) -> str | None:
    """The kind in which numbers meet, None where one is no number or not known; NULL has any."""
    kind = common_kind(map(site.kinds.of, operands))
    return INTEGER if kind == NULL else kind if kind in NUMBERS else None


def _not_zero(site: TranslationSite, divisor: exp.Expr) -> exp.Expr:
    """The divisor, NULL where it is zero and the dialect divides by zero without an error."""
    written = isinstance(divisor, exp.Literal) and float(divisor.name) != 0
    if not site.meaning.zero_is_null or written:
        return divisor
    return exp.Nullif(this=bare(divisor), expression=exp.Literal.number(0))


def average(site: TranslationSite) -> Rewrite | None:
    """AVG, which is a whole number, a decimal or a double."""
    node, way = site.node, site.meaning.average
    kind = _number_kind(site, node.this)
    result = way.get(kind)
    windowed = isinstance(node.parent, exp.Window)
    if result is None or (result == WHOLE and windowed):
        site.refuse(f"AVG of {kind or 'unknown'} numbers", "cast what is averaged to DOUBLE")
    if result == SAME:
        return None
    if result == WHOLE:
        return lambda: exp.Paren(
            this=exp.IntDiv(
                this=exp.Sum(this=node.this), expression=exp.Count(this=node.this.copy())
            )
        )
    type_ = "DOUBLE" if result == DOUBLE else result

    def rewrite() -> exp.Expr:
        if isinstance(node.this, exp.Distinct):
            inner = [cast(each, type_) for each in node.this.expressions]
            return exp.Avg(this=exp.Distinct(expressions=inner))
        return exp.Avg(this=cast(node.this, type_))

    return rewrite


def rounded(site: TranslationSite) -> Rewrite | None:
    """ROUND, which goes away from zero or to even at a half."""
    node = site.node
    rounding = site.meaning.round.get(_number_kind(site, node.this))
    if rounding is None or (rounding == EVEN and node.args.get("decimals")):
        site.refuse("ROUND of this", "cast what is rounded to a DECIMAL of so many digits")
    return None if rounding == SAME else lambda: called("BROUND", node.this)


def logarithm(site: TranslationSite) -> Rewrite | None:
    """LOG of one argument, which has base 10 or e."""
    node = site.node
    if node.args.get("expression") is not None:
        return None
    name = site.meaning.log
    if name is None:
        site.refuse("LOG of one argument", "write LN or LOG10")
    return lambda: called(name, node.this)


def extreme(site: TranslationSite) -> Rewrite | None:
    """GREATEST and LEAST, of which most dialects are NULL where an argument is."""
    node, skips = site.node, site.meaning.greatest_skips_null
    if skips is None:
        site.refuse(f"a NULL in {node.key.upper()}", "write CASE WHEN … END")
    if skips:
        return None

    def rewrite() -> exp.Expr:
        args = [node.this, *node.expressions]
        tests = [exp.Is(this=bare(arg.copy()), expression=exp.Null()) for arg in args]
        plain = type(node)(this=node.this, expressions=node.expressions)
        return exp.Case(ifs=[exp.If(this=exp.or_(*tests), true=exp.Null())], default=plain)

    return rewrite


def converted(site: TranslationSite) -> Rewrite | None:
    """CAST to an integer or to a text."""
    node = site.node
    target, kind = kind_of(node.args["to"]), site.kinds.of(node.this)
    if target == INTEGER:
        return _to_whole(site, kind)
    if target == TEXT:
        return _to_text(site, kind)
    return None


def _to_whole(site: TranslationSite, kind: Kind) -> Rewrite | None:
    node = site.node
    if kind is not None and kind not in (DECIMAL, FLOAT):
        return None
    how = site.meaning.casts.get(kind)
    if how is None:
        site.refuse("a cast to an integer", "write ROUND, FLOOR or CEIL of a DECIMAL first")
    if how == CUT:
        return None
    name = {AWAY: "ROUND", EVEN: "BROUND"}[how]
    return lambda: of_type(node, called(name, node.this))


def _to_text(site: TranslationSite, kind: Kind) -> Rewrite | None:
    node, digits = site.node, site.node.args["to"].expressions
    if kind in (None, FLOAT):
        site.refuse("the text of a fraction", "cast it to a DECIMAL first")
    type_ = node.args["to"].this
    if (
        type_ in (exp.DataType.Type.CHAR, exp.DataType.Type.NCHAR)
        and site.reading.dialect != "mysql"
    ):
        site.refuse("a cast to CHAR", "cast to VARCHAR")
    if not digits:
        return None
    if site.meaning.cuts_varchar is None:
        site.refuse("a cast to a text of some length", "cast to TEXT, and take SUBSTRING of it")
    plain = exp.DataType.build("STRING", dialect=DIALECT)
    length = exp.Literal.number(int(digits[0].name))

    def rewrite() -> exp.Expr:
        text = type(node)(this=node.this, to=plain, safe=node.args.get("safe"))
        if not site.meaning.cuts_varchar:
            return text
        return called("SUBSTRING", text, exp.Literal.number(1), length)

    return rewrite


def cut(site: TranslationSite) -> None:
    """TRUNC of a number, to a whole one."""
    if site.node.args.get("decimals") is not None or _number_kind(site, site.node.this) is None:
        site.refuse("TRUNC of this", "use Spark's dialect")


def literal(site: TranslationSite) -> Rewrite | None:
    """A number with a fraction, which is a double where there are no decimals."""
    node = site.node
    if site.meaning.fractions != FLOAT or node.is_string or node.name.isdigit():
        return None
    return lambda: cast(node.copy(), "DOUBLE")
