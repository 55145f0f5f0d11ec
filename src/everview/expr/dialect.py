"""How Spark 4 SQL is read and printed: sqlglot's dialect with its lossy spellings repaired."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.transforms import (
    any_to_exists,
    eliminate_distinct_on,
    preprocess,
    unnest_to_explode,
)

from everview.environment import must_be_interpreted

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*", re.ASCII)


class _Percentile:
    """PERCENTILE as it is written: sqlglot forgets that each value may have a frequency."""

    @staticmethod
    def from_arg_list(args: list[exp.Expr]) -> exp.Expr:
        if len(args) == 2:
            return exp.Quantile(this=args[0], quantile=args[1])
        return exp.Anonymous(this="PERCENTILE", expressions=args)


_KEPT = (
    *("DATE_FORMAT", "DATE_SUB", "FROM_UNIXTIME", "GET_JSON_OBJECT", "INSTR", "LOG10", "LOG2"),
    *("PARSE_JSON", "TIME_DIFF", "TIME_TRUNC", "TO_CHAR", "TO_DATE", "TO_TIMESTAMP"),
    *("TO_UNIX_TIMESTAMP", "TO_VARCHAR", "UNIX_DATE", "UNIX_TIMESTAMP"),
)
"""Functions sqlglot prints as something that is not quite the same."""


_Reader = Callable[[list[exp.Expr]], exp.Expr]

_ARGUMENT_COUNTS: dict[type[exp.Expr], tuple[int, int | None]] = {
    **dict.fromkeys((exp.RowNumber, exp.CumeDist), (0, 0)),
    exp.Ntile: (0, 1),
    **dict.fromkeys((exp.Lag, exp.Lead), (1, 3)),
    exp.NthValue: (2, 2),
    **dict.fromkeys((exp.ArrayAgg, exp.ArrayUniqueAgg, exp.CountIf, exp.Grouping), (1, 1)),
    **dict.fromkeys((exp.Explode, exp.ExplodeOuter, exp.Inline), (1, 1)),
    **dict.fromkeys((exp.Posexplode, exp.PosexplodeOuter), (1, 1)),
    exp.RegrCount: (2, 2),
    exp.Count: (1, None),
    **dict.fromkeys((exp.Greatest, exp.Least), (2, None)),
}
"""At least and at most so many arguments; RANK and the like take any number and ignore them."""


def miscounted(function: type[exp.Expr], given: int) -> str | None:
    """What is wrong with the number of arguments of a call, None if nothing is.

    >>> miscounted(exp.RowNumber, 1)
    'takes 0 arguments, not 1'
    >>> miscounted(exp.Greatest, 2)
    """
    least, most = _ARGUMENT_COUNTS.get(function, (0, None))
    if least <= given and (most is None or given <= most):
        return None
    bounds = f"at least {least}" if most is None else f"{least} to {most}"
    return f"takes {least if least == most else bounds} arguments, not {given}"


def _kept(name: str) -> _Reader:
    """A function by its name, with its arguments as they are."""
    return lambda args: exp.Anonymous(this=name, expressions=args)


def _pairs(name: str) -> _Reader:
    """A function of names and values as sqlglot reads it, if each value has a name."""
    known = Spark.Parser.FUNCTIONS[name]
    whole = _kept(name)

    def read(args: list[exp.Expr]) -> exp.Expr:
        named = all(isinstance(each, exp.Literal) and each.is_string for each in args[::2])
        if not named or len(args) % 2:
            return whole(args)
        tree: exp.Expr = known(args)
        for field in tree.find_all(exp.PropertyEQ) if isinstance(tree, exp.Struct) else ():
            if isinstance(field.this, exp.Identifier):
                field.this.set("quoted", True)  # it was a text: it may be a reserved word
        return tree

    return read


def _of_two(name: str) -> _Reader:
    """A function that is COALESCE of two values, and nothing of more or fewer."""
    whole = _kept(name)
    return lambda args: (
        exp.Coalesce(this=args[0], expressions=args[1:]) if len(args) == 2 else whole(args)
    )


def _cast_of_one(name: str, type_: str) -> _Reader:
    """A function that is a cast of one value, and reads more than one itself."""
    whole = _kept(name)
    return lambda args: (
        exp.Cast(this=args[0], to=exp.DataType.build(type_, dialect="spark"))
        if len(args) == 1
        else whole(args)
    )


_REPAIRED: dict[str, _Reader] = {
    **{name: _of_two(name) for name in ("NVL", "IFNULL")},
    "NAMED_STRUCT": _pairs("NAMED_STRUCT"),
    "TO_TIMESTAMP_NTZ": _cast_of_one("TO_TIMESTAMP_NTZ", "TIMESTAMP_NTZ"),
}
"""Functions that sqlglot reads as something else when they have too few arguments."""

must_be_interpreted(Spark.Parser)


class _CountingParser(Spark.Parser):  # type: ignore[valid-type, misc]
    """Spark's parser, which counts the arguments of functions as Spark does."""

    def validate_expression(self, expression: Any, args: list[Any] | None = None) -> Any:
        """The call, if it has as many arguments as Spark's function takes."""
        problem = miscounted(type(expression), len(args)) if args is not None else None
        if problem is not None:
            self.raise_error(problem)
        return super().validate_expression(expression, args)


class Spark4(Spark):
    """Spark 4: a doubled quote is a quote, and no function is printed as another one.

    sqlglot reads `'it''s'` as two strings, and prints `unix_date` as a `datediff` of another type,
    `date_sub(d, n)` as `date_add(d, n * -1)`, which overflows for the smallest n, and patterns of
    dates through those of C, which drops `to_date`'s format and makes `SSS` six digits.
    """

    class Tokenizer(Spark.Tokenizer):
        """Reads a doubled quote as Spark 4 does."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(_CountingParser):
        """Keeps the functions that sqlglot would rewrite."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **Spark.Parser.FUNCTIONS,
            **{name: _kept(name) for name in _KEPT},
            **_REPAIRED,
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            **Spark.Parser.FUNCTION_PARSERS,
            "PERCENTILE": lambda self: self._parse_distinct_arg_function(_Percentile),
        }

        def _parse_table_alias(self, *args: Any, **kwargs: Any) -> Any:
            """An alias, and after one in WITH how many levels a recursion may have."""
            alias = super()._parse_table_alias(*args, **kwargs)
            if alias and self._match_text_seq("MAX", "RECURSION", "LEVEL"):
                alias.set("limit", self._parse_number())
            return alias

    class Generator(Spark.Generator):  # type: ignore[valid-type, misc]
        """Writes what was read, and keeps a column before a field apart from a table before one.

        sqlglot takes the WITH of a subquery out of it, where it has another meaning, puts QUALIFY
        into a subquery, has one percentile for all of them and no times of day.
        """

        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
        TYPE_MAPPING: ClassVar[dict[Any, str]] = {
            **Spark.Generator.TYPE_MAPPING,
            exp.DataType.Type.TIME: "TIME",
        }
        TRANSFORMS: ClassVar[dict[type[exp.Expr], Any]] = {
            **{
                kind: write
                for kind, write in Spark.Generator.TRANSFORMS.items()
                if kind not in (exp.GroupConcat, exp.WithinGroup)
            },
            exp.Select: preprocess([eliminate_distinct_on, unnest_to_explode, any_to_exists]),
        }

        def lateral_sql(self, expression: exp.Lateral) -> str:
            """LATERAL VIEW with the name of its rows in quotes, as any other name."""
            alias = expression.args.get("alias")
            if not expression.args.get("view") or alias is None:
                return str(super().lateral_sql(expression))
            generator = self.sql(expression, "this")
            outer = " OUTER" if expression.args.get("outer") else ""
            rows = f" {self.sql(alias, 'this')}" if alias.name else ""
            columns = self.expressions(alias, key="columns", flat=True)
            named = f" AS {columns}" if columns else ""
            return f"{self.seg(f'LATERAL VIEW{outer}')}{self.sep()}{generator}{rows}{named}"

        def tablealias_sql(self, expression: exp.TableAlias) -> str:
            """An alias, with the levels that a recursion may have."""
            alias = str(super().tablealias_sql(expression))
            limit = self.sql(expression, "limit")
            return f"{alias} MAX RECURSION LEVEL {limit}" if limit else alias

        def var_sql(self, expression: exp.Var) -> str:
            """A word; what sqlglot took for one, and is none, was a string."""
            return self._word(expression.name)

        def anonymous_sql(self, expression: exp.Anonymous) -> str:
            """A call by its plain name, also where it stands in quotes."""
            if isinstance(expression.this, exp.Identifier) and _PLAIN.fullmatch(expression.name):
                return str(self.func(expression.name.upper(), *expression.expressions))
            return str(super().anonymous_sql(expression))

        def groupconcat_sql(self, expression: exp.GroupConcat) -> str:
            """LISTAGG with the separator that was written; without one sqlglot makes it a comma."""
            order, value = "", expression.this
            if isinstance(value, exp.Order):
                order = (
                    f" WITHIN GROUP ({self.sql(exp.Order(expressions=value.expressions)).strip()})"
                )
                value = value.this
            return f"{self.func('LISTAGG', value, expression.args.get('separator'))}{order}"

        def extract_sql(self, expression: exp.Extract) -> str:
            """EXTRACT with the part of the moment as a word."""
            part = self._word(expression.this.name)
            return f"EXTRACT({part} FROM {self.sql(expression, 'expression')})"

        def _word(self, text: str) -> str:
            return text if _PLAIN.fullmatch(text) else str(self.sql(exp.Literal.string(text)))

        def dot_sql(self, expression: exp.Dot) -> str:
            """A field of a struct; a plain column is written in parentheses."""
            whole = super().dot_sql(expression)
            column = expression.this
            if not isinstance(column, exp.Column) or column.args.get("table"):
                return str(whole)
            return f"({self.sql(column)}).{self.sql(expression, 'expression')}"


DIALECT = Spark4
"""The dialect of every scalar text: read SQL with it, print SQL with it."""
