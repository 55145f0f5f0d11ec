"""When a value is what Spark printed for it in a golden file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from conformance.values import is_written

NULL = "NULL"


def is_printed(text: str, value: Any) -> bool:
    """Whether a cell of a golden file says the same as a value.

    >>> is_printed("[1,2]", [1, 2]), is_printed('{"a":1,"b":null}', {"a": 1, "b": None})
    (True, True)
    """
    if value is None:
        return text == NULL
    if isinstance(value, str):
        return text == value.strip() or text == value
    return text == printed(value) or is_written(text, value)


def printed(value: Any, *, nested: bool = False) -> str:
    """A value as Spark prints it, after Hive: texts inside others are quoted."""
    match value:
        case None:
            return "null" if nested else NULL
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False) if nested else value
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo else value
            text = moment.strftime("%Y-%m-%d %H:%M:%S")
            return text + f".{moment.microsecond:06d}".rstrip("0") * bool(moment.microsecond)
        case date():
            return value.isoformat()
        case timedelta():
            return str(value)
        case Decimal():
            return f"{value:f}"
        case bytes():
            return value.decode("utf-8", "replace")
        case list() | tuple():
            return f"[{','.join(printed(each, nested=True) for each in value)}]"
        case Mapping():
            pairs = (
                f"{printed(k, nested=True)}:{printed(v, nested=True)}" for k, v in value.items()
            )
            return f"{{{','.join(pairs)}}}"
        case _:
            return str(value)
