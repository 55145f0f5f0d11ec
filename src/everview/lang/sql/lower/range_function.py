"""RANGE(first, end, step) in FROM: whole numbers as rows of a query over nothing."""

from __future__ import annotations

from sqlglot import exp

from everview.lang.sql.bind.refuse import refused
from everview.lang.sql.lower.frames import whole_number

ROWS_MAX = 100_000
"""A view keeps its rows: a longer range belongs into a table."""


def range_query(node: exp.Table, text: str) -> exp.Expr | None:
    """The query for the numbers of a range, None for another item of FROM."""
    call = node.this
    if not isinstance(call, exp.Anonymous) or call.name.lower() != "range":
        return None
    given = [whole_number(each) for each in call.expressions]
    numbers = [each for each in given if each is not None]
    if len(numbers) != len(given) or not 1 <= len(numbers) <= 3:
        raise refused("this form of RANGE", call, text, "write range(first, end, step) in numbers")
    first, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) == 3 else 1
    rows = range(first, end, step) if step else range(0)
    if not step or len(rows) > ROWS_MAX:
        raise refused("this RANGE", call, text, f"let it have at most {ROWS_MAX} rows")
    last = rows[-1] if rows else first
    ends = [_bigint(first), _bigint(last), _bigint(step)]
    array = exp.Anonymous(this="SEQUENCE", expressions=ends)
    made = exp.select(exp.alias_(exp.Explode(this=array), "id"))
    return made if rows else made.where(exp.false())


def _bigint(value: int) -> exp.Expr:
    number = exp.Literal.number(abs(value))
    return exp.cast(exp.Neg(this=number) if value < 0 else number, "BIGINT")
