"""THE MEANINGS: what constructs of other dialects mean, where it is not what they mean in Spark.

Every entry was checked against the engine or its documentation; a dialect refuses by name what
it has no entry for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from everview.lang.sql.dialects.types import DECIMAL, FLOAT, INTEGER, Kind

WHOLE, DOUBLE, SAME = "whole", "double", "same"
AWAY, EVEN, CUT = "away", "even", "cut"
DAYS = ("YEAR", "MONTH", "DAY", "QUARTER", "DOY", "DAYOFYEAR", "HOUR", "MINUTE")
"""Parts of a moment that are the same numbers everywhere."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the constructs of a dialect mean, in Spark's terms; None where that is not known.

    `division` and `average` say for each kind of operand whether the result is a WHOLE number, a
    DOUBLE, of another type first, or the SAME as Spark's; `casts` how a number becomes a whole
    one: rounded AWAY from zero or to EVEN at a half, or CUT. `decimal` is the type of a bare
    DECIMAL or NUMERIC, and with `decimal_literals` that of NUMERIC '1.5' too; `types` are
    others that are not what they are called, empty where we cannot tell what. `like_escape` is
    the escape where none is written, empty where there is none, and `boundaries` says that the
    difference of moments counts units that begin between.
    """

    division: dict[Kind, str] = field(default_factory=dict)
    average: dict[Kind, str] = field(default_factory=dict)
    remainder: tuple[Kind, ...] = ()
    casts: dict[Kind, str] = field(default_factory=dict)
    round: dict[Kind, str] = field(default_factory=dict)
    decimal: str | None = None
    decimal_literals: bool = False
    types: dict[str, str] = field(default_factory=dict)
    fractions: Kind = DECIMAL
    extracted: Kind = INTEGER
    zero_is_null: bool = False
    concat_skips_null: bool | None = None
    greatest_skips_null: bool | None = None
    like_escape: str | None = None
    like_ignores_case: bool = False
    like_classes: bool = False
    negative_start: bool = False
    log: str | None = None
    cuts_varchar: bool | None = None
    plus_joins_texts: bool = False
    date_minus_date: bool = False
    interval_makes_timestamp: bool = False
    parts: dict[str, str] = field(default_factory=dict)
    boundaries: bool | None = None
    week: str | None = None
    length: str | None = None
    ascii_case: bool = False
    day_of_week: str | None = None


_PARTS = dict.fromkeys(DAYS, SAME)
_NUMBERS = (INTEGER, DECIMAL, FLOAT)
_SUNDAY_IS_0 = "DAYOFWEEK({0}) - 1"
_MONDAY_IS_1 = "EXTRACT(DAYOFWEEK_ISO FROM {0})"

POSTGRES = Meaning(
    division={INTEGER: WHOLE, FLOAT: SAME},
    average={INTEGER: SAME, DECIMAL: DOUBLE, FLOAT: SAME},
    remainder=_NUMBERS,
    casts={DECIMAL: AWAY, FLOAT: EVEN},
    round={INTEGER: SAME, DECIMAL: SAME, FLOAT: EVEN},
    types={"MONEY": "DECIMAL(19,2)"},
    extracted=DECIMAL,
    concat_skips_null=True,
    greatest_skips_null=True,
    like_escape="\\",
    log="LOG10",
    cuts_varchar=True,
    date_minus_date=True,
    interval_makes_timestamp=True,
    parts={
        **_PARTS,
        "SECOND": SAME,
        "WEEK": SAME,
        "DOW": _SUNDAY_IS_0,
        "ISODOW": _MONDAY_IS_1,
    },
    week=SAME,
    length=SAME,
)
DUCKDB = Meaning(
    division={INTEGER: DOUBLE, DECIMAL: DOUBLE, FLOAT: DOUBLE, None: DOUBLE},
    average={INTEGER: SAME, DECIMAL: DOUBLE, FLOAT: SAME, None: DOUBLE},
    remainder=_NUMBERS,
    casts={DECIMAL: AWAY, FLOAT: EVEN},
    round={INTEGER: SAME, DECIMAL: SAME, FLOAT: SAME},
    decimal="DECIMAL(18,3)",
    decimal_literals=True,
    concat_skips_null=True,
    greatest_skips_null=True,
    negative_start=True,
    log="LOG10",
    cuts_varchar=False,
    date_minus_date=True,
    interval_makes_timestamp=True,
    parts={
        **_PARTS,
        "SECOND": "SECOND({0})",
        "WEEK": SAME,
        "DOW": _SUNDAY_IS_0,
        "DAYOFWEEK": _SUNDAY_IS_0,
        "ISODOW": _MONDAY_IS_1,
    },
    boundaries=True,
    week=SAME,
    day_of_week=_SUNDAY_IS_0,
    like_escape="",
    length=SAME,
)
SQLITE = Meaning(
    division={INTEGER: WHOLE, FLOAT: SAME},
    average={INTEGER: SAME, FLOAT: SAME},
    remainder=(INTEGER,),
    casts={FLOAT: CUT},
    round={FLOAT: SAME},
    types={"INT": "BIGINT", "SMALLINT": "BIGINT", "TINYINT": "BIGINT"},
    fractions=FLOAT,
    zero_is_null=True,
    concat_skips_null=True,
    greatest_skips_null=False,
    like_ignores_case=True,
    negative_start=True,
    log="LOG10",
    cuts_varchar=False,
    ascii_case=True,
    like_escape="",
    length=SAME,
)
MYSQL = Meaning(
    division={FLOAT: SAME},
    average={INTEGER: "DECIMAL(20,0)", DECIMAL: SAME, FLOAT: SAME},
    remainder=_NUMBERS,
    casts={DECIMAL: AWAY},
    round={INTEGER: SAME, DECIMAL: SAME},
    decimal="DECIMAL(10,0)",
    types={"FLOAT": ""},
    zero_is_null=True,
    greatest_skips_null=False,
    like_escape="\\",
    parts={**_PARTS, "SECOND": "SECOND({0})"},
    boundaries=False,
    day_of_week=SAME,
    concat_skips_null=False,
    length=SAME,
)
TRINO = Meaning(
    division={INTEGER: WHOLE, FLOAT: SAME},
    average={INTEGER: SAME, FLOAT: SAME},
    remainder=_NUMBERS,
    casts={DECIMAL: AWAY},
    round={INTEGER: SAME, DECIMAL: SAME, FLOAT: SAME},
    decimal="DECIMAL(38,0)",
    greatest_skips_null=False,
    cuts_varchar=True,
    parts={
        **_PARTS,
        "SECOND": "SECOND({0})",
        "WEEK": SAME,
        "DOW": _MONDAY_IS_1,
        "DAY_OF_WEEK": _MONDAY_IS_1,
    },
    boundaries=False,
    week=SAME,
    like_escape="",
    concat_skips_null=False,
    length=SAME,
)
TSQL = Meaning(
    division={INTEGER: WHOLE, FLOAT: SAME},
    average={INTEGER: WHOLE, FLOAT: SAME},
    remainder=(INTEGER, DECIMAL),
    casts={DECIMAL: CUT, FLOAT: CUT},
    round={INTEGER: SAME, DECIMAL: SAME, FLOAT: SAME},
    decimal="DECIMAL(18,0)",
    types={"FLOAT": "DOUBLE", "MONEY": "DECIMAL(19,4)"},
    concat_skips_null=True,
    like_classes=True,
    cuts_varchar=True,
    plus_joins_texts=True,
    parts=_PARTS,
    boundaries=True,
    length="LENGTH(RTRIM({0}))",
    like_escape="",
)
BIGQUERY = Meaning(
    division={INTEGER: SAME, FLOAT: SAME},
    average={INTEGER: SAME, FLOAT: SAME},
    remainder=(INTEGER,),
    casts={DECIMAL: AWAY, FLOAT: AWAY},
    round={INTEGER: SAME, DECIMAL: SAME, FLOAT: SAME},
    decimal="DECIMAL(38,9)",
    decimal_literals=True,
    fractions=FLOAT,
    greatest_skips_null=False,
    like_escape="\\",
    parts={**_PARTS, "SECOND": "SECOND({0})", "DAYOFWEEK": SAME},
    boundaries=True,
    concat_skips_null=False,
    length=SAME,
)
SNOWFLAKE = Meaning(
    division={FLOAT: SAME},
    average={FLOAT: SAME},
    remainder=_NUMBERS,
    casts={DECIMAL: AWAY, FLOAT: AWAY},
    round={INTEGER: SAME, DECIMAL: SAME, FLOAT: SAME},
    decimal="DECIMAL(38,0)",
    types={"INT": "DECIMAL(38,0)", "BIGINT": "DECIMAL(38,0)", "SMALLINT": "DECIMAL(38,0)"},
    greatest_skips_null=False,
    parts={**_PARTS, "SECOND": "SECOND({0})", "DOW": _SUNDAY_IS_0, "DAYOFWEEK": _SUNDAY_IS_0},
    boundaries=True,
    day_of_week=_SUNDAY_IS_0,
    like_escape="",
    concat_skips_null=False,
    length=SAME,
)
_LIKE_POSTGRES = replace(POSTGRES, casts={}, round={}, average={INTEGER: SAME, FLOAT: SAME})
"""Engines that follow PostgreSQL where their documentation says nothing else."""

MEANINGS: dict[str, Meaning] = {
    "postgres": POSTGRES,
    "risingwave": _LIKE_POSTGRES,
    "materialize": _LIKE_POSTGRES,
    "duckdb": DUCKDB,
    "sqlite": SQLITE,
    "mysql": MYSQL,
    "trino": TRINO,
    "presto": TRINO,
    "athena": TRINO,
    "tsql": TSQL,
    "bigquery": BIGQUERY,
    "snowflake": SNOWFLAKE,
}
AS_SPARK = ("spark", "spark2", "databricks", "hive")
"""Dialects in which everything here means what it means in Spark."""

_NAMES = """\
Abs Acos Alias And Array ArrayContains ArraySize Ascii Asin Atan Atan2 BitLength BitwiseAndAgg
BitwiseOrAgg BitwiseXorAgg Case Cbrt Ceil Chr Coalesce Contains Corr Cos Count CountIf CovarPop
CovarSamp CumeDist CurrentDate CurrentTime CurrentTimestamp CurrentDatetime DateFromParts Day
DayOfMonth DayOfYear Degrees DenseRank EndsWith Exists Exp Explode ExplodingGenerateSeries
Factorial First FirstValue Floor GenerateSeries GroupConcat Hour If IsNan Lag Last LastDay
LastValue Lead Levenshtein Ln LogicalAnd LogicalOr MD5 Max Median Min Minute Month Nullif NthValue
Ntile Or Overlay Pad PercentRank PercentileCont PercentileDisc Pi Posexplode Pow Quantile Quarter
Radians Rand Rank RegexpLike Repeat Replace Reverse RowNumber SHA SHA2 Second Sign Sin SplitPart
Sqrt StartsWith Stddev StddevPop StddevSamp StrPosition StrToDate StrToTime Struct Sum Tan
TimeStrToTime Translate Trim TsOrDsToDate TsOrDsToTimestamp Unnest Variance VariancePop WeekOfYear
Year"""
SAME_EVERYWHERE = frozenset(_NAMES.split())
"""Functions, as sqlglot calls them, that mean in every dialect what they mean in Spark."""
SAME_NAMES = frozenset(("octet_length", "make_date", "cardinality", "bit_count", "every"))
"""Functions that sqlglot has no name for, and that mean the same wherever they are there."""
