"""When two rows are the same row: typed values against typed values, and against recorded text."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

TOLERANCE = 1e-9
"""Sums of doubles depend on the order of addition; they agree to this relative difference."""
EMPTY = "(empty)"

Match = Callable[[Any, Any], bool]


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of an Arrow table as Python values; two columns may have one name."""
    columns = [
        [_plain(value, column.type) for value in column.to_pylist()] for column in table.columns
    ]
    return list(zip(*columns, strict=True)) if columns else []


def _plain(value: Any, type_: pa.DataType) -> Any:
    """Maps as dicts, as Spark shows them; everything else as Arrow gives it."""
    if value is not None and pa.types.is_map(type_):
        return dict(value)
    return value


def difference(
    expected: Iterable[Sequence[Any]], found: Iterable[Sequence[Any]], same: Match
) -> tuple[list[Sequence[Any]], list[Sequence[Any]]]:
    """Rows that are expected and not found, and rows found and not expected, as bags.

    >>> difference([("1",), ("2",)], [(2,), (2,)], is_written)
    ([('1',)], [(2,)])
    """
    missing, surplus = _without_equal(list(expected), list(found))
    left = []
    for row in missing:
        partner = next((i for i, other in enumerate(surplus) if _same_row(row, other, same)), None)
        if partner is None:
            left.append(row)
        else:
            surplus.pop(partner)
    return left, surplus


def _without_equal(
    expected: list[Sequence[Any]], found: list[Sequence[Any]]
) -> tuple[list[Sequence[Any]], list[Sequence[Any]]]:
    """Cancel the rows with equal cells, so that the slow comparison sees few."""
    wanted, present = Counter(map(_key, expected)), Counter(map(_key, found))
    missing, surplus = wanted - present, present - wanted
    return _take(expected, missing), _take(found, surplus)


def _key(row: Sequence[Any]) -> str:
    return json.dumps(encode_row(row))


def _take(rows: list[Sequence[Any]], counts: Counter[str]) -> list[Sequence[Any]]:
    left, taken = Counter(counts), []
    for row in rows:
        if left[_key(row)] > 0:
            left[_key(row)] -= 1
            taken.append(row)
    return taken


def _same_row(expected: Sequence[Any], found: Sequence[Any], same: Match) -> bool:
    return len(expected) == len(found) and all(map(same, expected, found))


# Typed values, encoded so that they can be kept in a file


def encode_row(row: Sequence[Any]) -> list[Any]:
    """A row in a form that JSON keeps: type and text of each value."""
    return [encode(value) for value in row]


def encode(value: Any) -> Any:
    """A value as JSON, different for different types and values.

    >>> encode(Decimal("1.50")), encode(1.5), encode(None)
    (['n', '1.50'], ['f', '1.5'], None)
    """
    match value:
        case None:
            return None
        case bool():
            return ["b", str(value)]
        case int():
            return ["i", str(value)]
        case float():
            return ["f", repr(value)]
        case Decimal():
            return ["n", f"{value:f}"]
        case datetime():
            return ["t", (value.astimezone(UTC) if value.tzinfo else value).isoformat()]
        case bytes():
            return ["x", value.hex()]
        case list() | tuple():
            return ["l", [encode(each) for each in value]]
        case Mapping():
            return ["m", [[encode(k), encode(v)] for k, v in value.items()]]
        case _:
            return [type(value).__name__, str(value)]


def decode_row(row: Sequence[Any]) -> tuple[Any, ...]:
    """The row that `encode_row` encoded."""
    return tuple(decode(value) for value in row)


def decode(value: Any) -> Any:
    """The value that `encode` encoded; types without a decoder stay text.

    >>> decode(encode([Decimal("1.50"), date(2024, 1, 31)]))
    [Decimal('1.50'), datetime.date(2024, 1, 31)]
    """
    if value is None:
        return None
    kind, content = value
    match kind:
        case "l":
            return [decode(each) for each in content]
        case "m":
            return {decode(k): decode(v) for k, v in content}
        case _:
            return _DECODERS.get(kind, str)(content)


_DECODERS: dict[str, Callable[[str], Any]] = {
    "b": lambda text: text == "True",
    "i": int,
    "f": float,
    "n": Decimal,
    "t": datetime.fromisoformat,
    "x": bytes.fromhex,
    "date": date.fromisoformat,
}


def is_value(expected: Any, found: Any) -> bool:
    """Whether two typed values are the same: doubles up to rounding, all else exactly."""
    if isinstance(expected, float) and isinstance(found, float):
        return _close(expected, found)
    return bool(encode(expected) == encode(found))


def _close(x: float, y: float) -> bool:
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)
    return x == y or math.isclose(x, y, rel_tol=TOLERANCE)


# Typed values against recorded text


def written(null: str) -> Match:
    """Whether a recorded cell says the same as a value, where NULL is written as `null`."""

    def same(text: str, value: Any) -> bool:
        return text == null if value is None else is_written(text, value)

    return same


def is_written(text: str, value: Any) -> bool:
    """Whether a recorded cell says the same as a value that is not NULL.

    >>> is_written("12.5", Decimal("12.50")), is_written("(empty)", ""), is_written("1", True)
    (True, True, True)
    """
    match value:
        case bool():
            return text.lower() in (("true", "t", "1") if value else ("false", "f", "0"))
        case int() | float() | Decimal():
            return _is_number(text, value)
        case datetime():
            return _is_moment(text, value)
        case date():
            return text in (value.isoformat(), f"{value.isoformat()} 00:00:00")
        case str():
            return text == value or (value == "" and text == EMPTY)
        case bytes():
            return text in (str(value), str(bytearray(value)), value.hex())
        case _:
            return text in (str(value), _bare(value), _row(value))


def _is_number(text: str, value: int | float | Decimal) -> bool:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    if isinstance(value, float) or not number.is_finite():
        return _close(float(number), float(value))
    if isinstance(value, Decimal):
        # A suite may record more digits than Spark's decimal type keeps.
        scale = -int(value.as_tuple().exponent)
        return value == number or value == round(number, scale)
    return number == value


def _is_moment(text: str, value: datetime) -> bool:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return False
    return moment.replace(tzinfo=None) == value.replace(tzinfo=None)


def _bare(value: Any) -> str:
    """A nested value with no quotes inside, as DuckDB prints it."""
    match value:
        case None:
            return "NULL"
        case list():
            return f"[{', '.join(map(_bare, value))}]"
        case Mapping():
            return f"{{{', '.join(f'{k}={_bare(v)}' for k, v in value.items())}}}"
        case _:
            return str(value)


def _row(value: Any) -> str:
    """A struct as PySpark prints a Row."""
    if not isinstance(value, Mapping):
        return str(value)
    return f"Row({', '.join(f'{k}={v!r}' for k, v in value.items())})"
