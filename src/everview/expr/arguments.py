"""What Spark's functions take, where sqlglot takes something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from everview.environment import must_be_interpreted

Read = Callable[[list[exp.Expr]], exp.Expr]

_COUNTS: dict[type[exp.Expr], tuple[int, int | None]] = {
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
"""At least and at most; RANK and its kin take any number, and look at none."""


def miscounted(function: type[exp.Expr], given: int) -> str | None:
    """What is wrong with the number of arguments of a call, None if nothing is.

    >>> miscounted(exp.RowNumber, 1)
    'takes 0 arguments, not 1'
    >>> miscounted(exp.Greatest, 2)
    """
    least, most = _COUNTS.get(function, (0, None))
    if least <= given and (most is None or given <= most):
        return None
    bounds = f"at least {least}" if most is None else f"{least} to {most}"
    return f"takes {least if least == most else bounds} arguments, not {given}"


def kept(name: str) -> Read:
    """A function by its name, with its arguments as they are."""
    return lambda args: exp.Anonymous(this=name, expressions=args)


def pairs(name: str) -> Read:
    """A function of names and values as sqlglot reads it, if each value has a name."""
    known = Spark.Parser.FUNCTIONS[name]
    whole = kept(name)

    def read(args: list[exp.Expr]) -> exp.Expr:
        named = all(isinstance(each, exp.Literal) and each.is_string for each in args[::2])
        return known(args) if named and len(args) % 2 == 0 else whole(args)

    return read


def of_two(name: str) -> Read:
    """A function that is COALESCE of two values, and nothing of more or fewer."""
    whole = kept(name)
    return lambda args: (
        exp.Coalesce(this=args[0], expressions=args[1:]) if len(args) == 2 else whole(args)
    )


def cast_of_one(name: str, type_: str) -> Read:
    """A function that is a cast of one value, and reads more than one itself."""
    whole = kept(name)
    return lambda args: (
        exp.Cast(this=args[0], to=exp.DataType.build(type_, dialect="spark"))
        if len(args) == 1
        else whole(args)
    )


READ: dict[str, Read] = {
    **{name: of_two(name) for name in ("NVL", "IFNULL")},
    "NAMED_STRUCT": pairs("NAMED_STRUCT"),
    "TO_TIMESTAMP_NTZ": cast_of_one("TO_TIMESTAMP_NTZ", "TIMESTAMP_NTZ"),
}
"""Functions that sqlglot reads as something else when they are given too little."""

must_be_interpreted(Spark.Parser)


class CountingParser(Spark.Parser):  # type: ignore[valid-type, misc]
    """Spark's parser, which counts the arguments of functions as Spark does."""

    def validate_expression(self, expression: Any, args: list[Any] | None = None) -> Any:
        """The call, if it has as many arguments as Spark's function takes."""
        problem = miscounted(type(expression), len(args)) if args is not None else None
        if problem is not None:
            self.raise_error(problem)
        return super().validate_expression(expression, args)
