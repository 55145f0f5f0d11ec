"""DuckDB's errors in the words of a user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from everview.errors import UserError
from everview.runtime.retry import not_computed

_DAMAGE = re.compile(r"(file|File) ['\"][^'\"]*\.parquet['\"]")
"""How DuckDB reports a file that it cannot read, whatever the values in it are."""


_RAISED = re.compile(r"string '([A-Z0-9_]+): (.*)' to ")
"""How DuckDB reports what `parity.type_classes.raised` let fail, with the value at fault."""


_SAID: tuple[tuple[str, str], ...] = (
    (r"(?i)(divide|division) by zero.*", "division by zero"),
    (r"^\w[\w ]* Error: ", ""),
    (r'invalid \w+ field format: "(?:CAST_INVALID_INPUT: )?(.*?)".*', r"cast invalid input (\1)"),
    (r"Type \w+ with value (.*?) can't be cast .* out of range.*", r"\1 does not fit its type"),
    (r'Casting value "(.*?)" to type (.*?) failed: value is out of range!', r"\1 does not fit \2"),
    (r"^Overflow (in|on) (\w+)(?: of \w+)? ?(\(.*?\))!?.*", r"overflow \1 \2 \3"),
)
"""What DuckDB says about its own query and types, and what a user is shown."""


def _words(problem: str) -> str:
    found = _RAISED.search(problem)
    words = f"{found[1].replace('_', ' ').lower()} ({found[2]})" if found else problem
    for said, told in _SAID:
        words = re.sub(said, told, words)
    return words


_INTERRUPTED = "Query interrupted"
"""How DuckDB says that a signal has ended a query."""


@contextmanager
def explained() -> Iterator[None]:
    """Turn what goes wrong with the user's values into a UserError."""
    try:
        yield
    except duckdb.InterruptException as problem:
        raise KeyboardInterrupt from problem
    except RuntimeError as problem:
        if str(problem) != _INTERRUPTED:
            raise
        raise KeyboardInterrupt from problem
    except duckdb.OutOfMemoryException as problem:
        raise UserError(
            "E013",
            "DuckDB has not enough memory for this, even with what it put on disk",
            remedy="send the change in smaller transactions, or open the store with engine='spark'",
        ) from problem
    except (
        duckdb.ConversionException,
        duckdb.InvalidInputException,
        duckdb.OutOfRangeException,
    ) as problem:
        if _DAMAGE.search(str(problem)):
            raise
        raise not_computed(_words(str(problem).splitlines()[0])) from problem
