"""Many cases of one claim in one test: every case is tried, and each that fails is named."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

C = TypeVar("C")

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
"""Whether this is `make test-all`."""

ONE_IN = 20
"""How many cases of a sample stand for one."""


def check_each(
    cases: Iterable[C], check: Callable[[C], object], name: Callable[[C], str] = repr
) -> None:
    """Check every case; fail with the names and reasons of all that do not pass."""
    failures, tried = [], 0
    for case in cases:
        tried += 1
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as problem:
            failures.append(f"{name(case)}\n{_reason(problem)}")
    assert tried, "there are no cases"
    if failures:
        pytest.fail(f"{len(failures)} of {tried} cases\n\n" + "\n\n".join(failures), pytrace=False)


def sampled(
    cases: Iterable[C], engine: str, always: Callable[[C], bool] = lambda _: False
) -> list[C]:
    """All cases; on Spark, where each costs jobs, one in 20 and those that `always` names.

    For what is refused before an engine is asked. `make test-all` takes all on Spark, too.
    """
    if engine != "spark" or THOROUGH:
        return list(cases)
    return [case for at, case in enumerate(cases) if at % ONE_IN == ONE_IN // 2 or always(case)]


def _reason(problem: BaseException) -> str:
    """The error as pytest would show it in short, and the lines of ours that it came from."""
    lines = [
        f"  {frame.filename}:{frame.lineno}: {frame.line}"
        for frame in traceback.extract_tb(problem.__traceback__)
        if "/tests/" in frame.filename and not frame.filename.endswith("/cases.py")
    ]
    return "\n".join((*lines, f"  {type(problem).__name__}: {problem}"))
