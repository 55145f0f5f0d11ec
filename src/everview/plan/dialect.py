"""How Spark 4 SQL is read and printed: sqlglot's dialect with its lossy spellings repaired."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from everview.plan.arguments import READ, CountingParser, kept


class _Percentile:
    """PERCENTILE as it is written: sqlglot forgets that each value may have a frequency."""

    @staticmethod
    def from_arg_list(args: list[exp.Expr]) -> exp.Expr:
        if len(args) == 2:
            return exp.Quantile(this=args[0], quantile=args[1])
        return exp.Anonymous(this="PERCENTILE", expressions=args)


KEPT = (
    *("DATE_FORMAT", "DATE_SUB", "FROM_UNIXTIME", "GET_JSON_OBJECT", "INSTR", "LOG10", "LOG2"),
    *("PARSE_JSON", "TO_CHAR", "TO_DATE", "TO_TIMESTAMP", "TO_UNIX_TIMESTAMP", "TO_VARCHAR"),
    *("UNIX_DATE", "UNIX_TIMESTAMP"),
)
"""Functions sqlglot prints as something that is not quite the same."""


class Spark4(Spark):
    """Spark 4: a doubled quote is a quote, and no function is printed as another one.

    sqlglot reads `'it''s'` as two strings, and prints `unix_date` as a `datediff` of another type,
    `date_sub(d, n)` as `date_add(d, n * -1)`, which overflows for the smallest n, and patterns of
    dates through those of C, which drops `to_date`'s format and makes `SSS` six digits.
    """

    class Tokenizer(Spark.Tokenizer):
        """Reads a doubled quote as Spark 4 does."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(CountingParser):
        """Keeps the functions that sqlglot would rewrite."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {
            **Spark.Parser.FUNCTIONS,
            **{name: kept(name) for name in KEPT},
            **READ,
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
        """Keeps a column before a field apart from a table before a column."""

        def tablealias_sql(self, expression: exp.TableAlias) -> str:
            """An alias, with the levels that a recursion may have."""
            alias = str(super().tablealias_sql(expression))
            limit = self.sql(expression, "limit")
            return f"{alias} MAX RECURSION LEVEL {limit}" if limit else alias

        def dot_sql(self, expression: exp.Dot) -> str:
            """A field of a struct; a plain column is written in parentheses."""
            whole = super().dot_sql(expression)
            column = expression.this
            if not isinstance(column, exp.Column) or column.args.get("table"):
                return str(whole)
            return f"({self.sql(column)}).{self.sql(expression, 'expression')}"


DIALECT = Spark4
"""The dialect of every scalar text: read SQL with it, print SQL with it."""
