"""The expressions there are: a table of productions for each family of types."""

from __future__ import annotations

from everview_fuzz.generate.scalars import FAMILIES, Family, Kit, Palette, Production
from everview_fuzz.generate.values import literal

_EXACT: tuple[Family, ...] = ("whole", "decimal")
_LISTED: tuple[Family, ...] = ("whole", "text", "date", "decimal")
_RANGED: tuple[Family, ...] = ("whole", "decimal", "date", "text", "fraction")


def _case(family: Family) -> Production:
    def drawn(p: Palette, depth: int) -> str:
        test, a, b = p.condition(depth), p.scalar(family, depth), p.scalar(family, depth)
        forms = (
            f"CASE WHEN {test} THEN {a} ELSE {b} END",
            f"CASE WHEN {test} THEN {a} END",
            f"IF({test}, {a}, {b})",
            f"CASE {a} WHEN {b} THEN {a} ELSE {b} END",
        )
        return p.rng.choice(forms)

    return drawn


def _choice(family: Family) -> Production:
    def drawn(p: Palette, depth: int) -> str:
        a, b = p.scalar(family, depth), p.scalar(family, depth)
        names = ["COALESCE", "NULLIF"]
        if family not in ("truth", "bytes", "fraction"):
            names += ["GREATEST", "LEAST"]
        return f"{p.rng.choice(names)}({a}, {b})"

    return drawn


def _sum(family: Family) -> Production:
    return lambda p, depth: (
        f"({p.calm(family, depth)} {p.rng.choice('+-')} {p.calm(family, depth)})"
    )


def _product(p: Palette, depth: int) -> str:
    return f"(CAST({p.calm('whole', depth)} AS BIGINT) * {p.rng.choice((p.calm('whole', 0), '3'))})"


def _small_product(family: Family) -> Production:
    return lambda p, depth: f"({p.calm(family, depth)} * {p.calm(family, 0)})"


def _remainder(p: Palette, depth: int) -> str:
    symbol = p.rng.choice(("%", "DIV"))
    return f"({p.calm('whole', depth)} {symbol} {p.rng.choice((2, 3, 5, -2))})"


def _guarded(p: Palette, depth: int) -> str:
    return f"({p.calm('whole', depth)} DIV NULLIF({p.calm('whole', 0)}, 0))"


def _bits(p: Palette, depth: int) -> str:
    return f"({p.scalar('whole', depth)} {p.rng.choice('&|^')} {p.scalar('whole', depth)})"


def _signed(family: Family) -> Production:
    return lambda p, depth: f"{p.rng.choice(('ABS', '-'))}({p.calm(family, depth)})"


def _of(family: Family, *forms: str) -> Production:
    """One of the forms, over an expression of another family."""
    return lambda p, depth: p.rng.choice(forms).format(p.scalar(family, depth))


def _calm_of(family: Family, *forms: str) -> Production:
    """The same over operands that are not extreme."""
    return lambda p, depth: p.rng.choice(forms).format(p.calm(family, depth))


def _difference(p: Palette, depth: int) -> str:
    return f"DATEDIFF({p.scalar('date', depth)}, {p.scalar('date', depth)})"


def _comparison(p: Palette, depth: int) -> str:
    family = p.family()
    exact = p.kit.among(_EXACT)
    other = p.rng.choice(exact) if family in exact else family
    symbol = p.rng.choice(("=", "<>", "<", "<=", ">", ">=", "<=>", "IS DISTINCT FROM"))
    return f"({p.scalar(family, depth)} {symbol} {p.scalar(other, depth)})"


def _null_test(p: Palette, depth: int) -> str:
    return f"({p.scalar(p.family(), depth)} IS {p.rng.choice(('', 'NOT '))}NULL)"


def _connective(p: Palette, depth: int) -> str:
    return f"({p.condition(depth)} {p.rng.choice(('AND', 'OR'))} {p.condition(depth)})"


def _negation(p: Palette, depth: int) -> str:
    return f"(NOT {p.condition(depth)})"


def _membership(p: Palette, depth: int) -> str:
    family = p.family(_LISTED)
    values = [literal(p.rng, family) for _ in range(p.rng.randint(1, 4))]
    listed = ", ".join(values + ["NULL"] * (p.rng.random() < 0.15))
    return f"({p.scalar(family, depth)} {p.rng.choice(('', 'NOT '))}IN ({listed}))"


def _range(p: Palette, depth: int) -> str:
    family = p.family(_RANGED)
    low, high = literal(p.rng, family), p.leaf(family)
    return f"({p.scalar(family, depth)} {p.rng.choice(('', 'NOT '))}BETWEEN {low} AND {high})"


def _pattern(p: Palette, depth: int) -> str:
    wanted = p.rng.choice(("'a%'", "'%b'", "'_'", "'%a%'", "'%'", "''"))
    return f"({p.scalar('text', depth)} {p.rng.choice(('', 'NOT '))}LIKE {wanted})"


def _text_test(p: Palette, depth: int) -> str:
    name = p.rng.choice(("STARTSWITH", "ENDSWITH", "CONTAINS"))
    return f"{name}({p.scalar('text', depth)}, {p.leaf('text')})"


def _truth_test(p: Palette, depth: int) -> str:
    wanted = p.rng.choice(("TRUE", "FALSE", "NOT TRUE", "NULL"))
    return f"({p.condition(depth)} IS {wanted})"


def _concatenation(p: Palette, depth: int) -> str:
    a, b = p.scalar("text", depth), p.leaf("text")
    return p.rng.choice((f"CONCAT({a}, {b})", f"({a} || {b})", f"CONCAT_WS('-', {a}, {b})"))


def _joined_text(p: Palette, depth: int) -> str:
    return f"({p.scalar('text', depth)} || {p.leaf('text')})"


def _first_of(family: Family) -> Production:
    return lambda p, depth: f"COALESCE({p.scalar(family, depth)}, {p.scalar(family, depth)})"


def _parsed(p: Palette, _: int) -> str:
    return f"TRY_CAST({p.leaf('text')} AS INT)"


def _tried(family: Family) -> Production:
    """Arithmetic that has NULL for what does not fit, over extreme values too."""

    def drawn(p: Palette, _: int) -> str:
        name = p.rng.choice(("TRY_ADD", "TRY_SUBTRACT", "TRY_MULTIPLY", "TRY_MOD"))
        return f"{name}({p.leaf(family)}, {p.leaf(family)})"

    return drawn


def _of_map(p: Palette, depth: int) -> str:
    made = f"MAP('k', {p.scalar('whole', depth)}, 'l', {p.leaf('whole')})"
    return p.rng.choice(_MAP_FORMS).format(made)


def _in_struct(family: Family) -> Production:
    """A value put into a struct and taken out again."""
    return lambda p, depth: f"NAMED_STRUCT('f', {p.scalar(family, depth)}, 'g', 1).f"


def _made_date(p: Palette, depth: int) -> str:
    return f"MAKE_DATE(2024, 1 + ABS({p.calm('whole', depth)}) % 12, {p.rng.randint(1, 28)})"


def _apart(p: Palette, depth: int) -> str:
    family = p.rng.choice(p.kit.among(("date", "stamp", "local")))
    unit = p.rng.choice(("DAY", "MONTH") if family == "date" else ("HOUR", "SECOND", "DAY"))
    return f"TIMESTAMPDIFF({unit}, {p.calm(family, depth)}, {p.calm(family, 0)})"


def _moved(family: Family, units: tuple[str, ...]) -> Production:
    def drawn(p: Palette, depth: int) -> str:
        count = p.rng.randint(1, 40)
        unit = p.rng.choice(units)
        return f"({p.calm(family, depth)} {p.rng.choice('+-')} INTERVAL '{count}' {unit})"

    return drawn


def _dated(p: Palette, depth: int) -> str:
    day, count = p.calm("date", depth), p.rng.randint(-40, 40)
    forms = ("DATE_ADD({0}, {1})", "DATE_SUB({0}, {1})", "ADD_MONTHS({0}, {1})", "({0} + {1})")
    return p.rng.choice(forms).format(day, count)


def _elements(p: Palette, family: Family, depth: int) -> str:
    return f"ARRAY({p.scalar(family, depth)}, {p.leaf(family)})"


def _of_array(*forms: str) -> Production:
    """One of the forms, over an array of integers."""
    return lambda p, depth: p.rng.choice(forms).format(_elements(p, "whole", depth))


def _joined_array(p: Palette, depth: int) -> str:
    forms = ("ARRAY_JOIN({}, '-')", "GET({}, 1)", "ARRAY_JOIN(ARRAY_DISTINCT({}), '', 'n')")
    return p.rng.choice(forms).format(_elements(p, "text", depth))


def _among(p: Palette, depth: int) -> str:
    family = p.family(("whole", "text", "date"))
    array = _elements(p, family, depth)
    tests = (f"ARRAY_CONTAINS({array}, {p.leaf(family)})", f"EXISTS({array}, x -> x IS NULL)")
    return p.rng.choice((*tests, f"FORALL({array}, x -> x >= {p.leaf(family)})"))


_ARRAY_FORMS = (
    *("SIZE({})", "GET({}, 0)", "ELEMENT_AT({}, -1)", "ARRAY_MAX({})", "ARRAY_MIN({})"),
    *("SIZE(FILTER({}, x -> x > 1))", "GET(TRANSFORM({}, x -> coalesce(x, 0)), 1)"),
    *(
        "AGGREGATE({}, 0, (a, x) -> CASE WHEN x > 0 THEN a + 1 ELSE a END)",
        "SIZE(ARRAY_UNION({0}, {0}))",
    ),
    *("STRUCT({} AS f).f[1]", "GET(SORT_ARRAY({}), 0)"),
)
_MAP_FORMS = (
    *("ELEMENT_AT({}, 'k')", "{}['l']", "SIZE({})", "ARRAY_MAX(MAP_VALUES({}))"),
    *("TRY_ELEMENT_AT({}, 'm')", "SIZE(MAP_FILTER({}, (k, v) -> v > 0))"),
    "TRANSFORM_VALUES({}, (k, v) -> COALESCE(v, 0))['k']",
)
_DATE_PARTS = (
    *(f"{name}({{}})" for name in ("YEAR", "MONTH", "DAY", "DAYOFWEEK", "WEEKDAY", "QUARTER")),
    *("EXTRACT(YEAR FROM {})", "DATE_PART('MONTH', {})", "WEEKOFYEAR({})", "DAYOFYEAR({})"),
)
_TIME_PARTS = tuple(f"{name}({{}})" for name in ("HOUR", "MINUTE", "SECOND"))
_TEXT_FORMS = (
    *("SUBSTRING({}, 1, 1)", "SUBSTRING({}, -2, 2)", "LEFT({}, 2)", "RIGHT({}, 1)", "TRIM({})"),
    *("REPLACE({}, 'a', 'xy')", "LPAD({}, 3, '*')", "RPAD({}, 2, '-')", "REVERSE({})", "MD5({})"),
    *("LTRIM({})", "RTRIM({})", "TRANSLATE({}, 'ab', 'ba')", "REGEXP_REPLACE({}, 'a+', '-')"),
    *("REGEXP_EXTRACT({}, '(a|b)', 1)", "SPLIT_PART({}, 'a', 1)", "REPEAT({}, 2)"),
    "GET_JSON_OBJECT({}, '$.a')",
)

_EVERYTHING: dict[Family, tuple[Production, ...]] = {
    "whole": (
        *(_case("whole"), _choice("whole"), _sum("whole"), _sum("whole"), _product, _remainder),
        *(_guarded, _bits, _signed("whole"), _difference, _of("text", "LENGTH({})", "ASCII({})")),
        *(_of("date", *_DATE_PARTS), _of("stamp", *_TIME_PARTS), _of("truth", "CAST({} AS INT)")),
        _of("whole", "CAST({} AS BIGINT)"),
        *(_of_array(*_ARRAY_FORMS), _of("text", "SIZE(SPLIT({}, 'a'))")),
        *(_tried("whole"), _of_map, _in_struct("whole"), _apart),
        *(_of("text", "LOCATE('b', {})"), _parsed, _calm_of("decimal", "CAST({} AS BIGINT)")),
    ),
    "decimal": (
        *(_case("decimal"), _choice("decimal"), _sum("decimal"), _small_product("decimal")),
        *(_signed("decimal"), _calm_of("whole", "CAST({} AS DECIMAL(12,2))", "({} * 0.5)")),
        _calm_of("decimal", "ROUND({}, 1)", "CAST({} AS DECIMAL(20,4))", "({} % 1.3)", "FLOOR({})"),
        _calm_of("decimal", "ROUND({})", "CEIL({})", "({} + 1)", "(2 - {})"),
        *(_tried("decimal"), _of("text", "TRY_CAST({} AS DECIMAL(10,2))")),
    ),
    "fraction": (
        *(_case("fraction"), _choice("fraction"), _sum("fraction"), _small_product("fraction")),
        *(_signed("fraction"), _of("whole", "CAST({} AS DOUBLE)", "({} / 4)", "({} / 3)")),
        _of("decimal", "CAST({} AS DOUBLE)"),
        *(
            _of("whole", "TRY_DIVIDE({0}, {0} - 1)"),
            _of("date", "MONTHS_BETWEEN({}, DATE'2024-02-28')"),
        ),
        _of("fraction", "({} / 2)", "NANVL(CAST({} AS DOUBLE), CAST(0 AS DOUBLE))"),
        _of("fraction", "CAST({} AS DOUBLE)", "SQRT(ABS({}))", "CAST({} AS FLOAT)"),
        _of("fraction", "LN({})", "LOG10(ABS({}))", "POWER({}, 0.5)", "EXP(-ABS({}))"),
    ),
    "text": (
        *(_case("text"), _choice("text"), _concatenation, _of("text", *_TEXT_FORMS)),
        *(_joined_array, _in_struct("text"), _of("date", "DATE_FORMAT({}, 'yyyy-MM-dd')")),
        *(_of("text", *_TEXT_FORMS), _of("whole", "CAST({} AS STRING)")),
        *(_of("date", "CAST({} AS STRING)"), _of("truth", "CAST({} AS STRING)")),
        *(_of("decimal", "CAST({} AS STRING)"), _of("local", "CAST({} AS STRING)")),
    ),
    "truth": (
        *(_comparison, _comparison, _comparison, _comparison, _null_test, _connective, _negation),
        *(_connective, _membership, _range, _pattern, _text_test, _truth_test, _case("truth")),
        *(
            _choice("truth"),
            _of("truth", "{}"),
            _of("text", "({} RLIKE 'a|b')"),
            _among,
            _of("fraction", "ISNAN({})"),
        ),
    ),
    "date": (
        *(_case("date"), _choice("date"), _moved("date", ("DAY", "MONTH", "YEAR")), _dated),
        *(_calm_of("stamp", "CAST({} AS DATE)"), _calm_of("local", "CAST({} AS DATE)")),
        *(_made_date, _in_struct("date"), _of("text", "TRY_CAST({} AS DATE)")),
        _calm_of(
            "date", "LAST_DAY({})", "NEXT_DAY({}, 'MON')", "TRUNC({}, 'MONTH')", "TRUNC({}, 'YEAR')"
        ),
    ),
    "stamp": (
        *(_case("stamp"), _choice("stamp"), _moved("stamp", ("HOUR", "DAY", "MINUTE", "MONTH"))),
        _calm_of("stamp", "DATE_TRUNC('HOUR', {})", "DATE_TRUNC('DAY', {})"),
        _of("date", "CAST({} AS TIMESTAMP)"),
    ),
    "local": (
        *(_case("local"), _choice("local"), _moved("local", ("HOUR", "DAY", "SECOND"))),
        _of("date", "CAST({} AS TIMESTAMP_NTZ)"),
        _calm_of("stamp", "CAST({} AS TIMESTAMP_NTZ)"),
    ),
    "bytes": (_case("bytes"), _choice("bytes"), _of("text", "CAST({} AS BINARY)")),
}
"""What an expression of each family may be; a further function is one more entry."""

_SIMPLE: tuple[Production, ...] = (_comparison, _comparison, _null_test, _membership)

SPARK = Kit(FAMILIES, _EVERYTHING, _SIMPLE)
"""All expressions there are."""

PORTABLE = Kit(
    ("whole", "whole", "whole", "text", "text", "truth", "date"),
    {
        "whole": (
            *(_case("whole"), _first_of("whole"), _sum("whole"), _sum("whole")),
            _signed("whole"),
        ),
        "text": (_case("text"), _first_of("text"), _joined_text),
        "truth": (
            *(_comparison, _comparison, _comparison, _comparison, _null_test, _connective),
            *(_negation, _connective, _membership, _range, _truth_test, _case("truth")),
            _first_of("truth"),
        ),
        "date": (_case("date"), _first_of("date")),
    },
    _SIMPLE,
    portable=True,
)
"""Expressions whose text means the same wherever SQL is spoken."""
