"""Re-runs what Spark could not compute as it is written, without conditions that Spark infers.

From a = b AND b - 1 > 0 Spark infers a - 1 > 0, which it computes of rows that join nothing. That
is cheaper than to join them first, and changes nothing but errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from pyspark.sql import SparkSession

from everview.runtime.retry import retry_consolidated

Answer = TypeVar("Answer")
INFERENCE = "spark.sql.constraintPropagation.enabled"


def retry_as_written(session: SparkSession, compute: Callable[[bool], Answer]) -> Answer:
    """What `compute(False)` gives; after an error, `compute(True)` without inferred conditions."""

    def attempt(consolidated: bool) -> Answer:
        if not consolidated:
            return compute(False)
        with _no_inference(session):
            return compute(True)

    return retry_consolidated(attempt)


@contextmanager
def _no_inference(session: SparkSession) -> Iterator[None]:
    """While Spark infers no conditions; others who use the session now only wait longer."""
    session.conf.set(INFERENCE, "false")
    try:
        yield
    finally:
        session.conf.unset(INFERENCE)
