"""Spark with and without compiling what it is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(
    scope="module",
    params=["NO_CODEGEN", pytest.param("CODEGEN_ONLY", marks=pytest.mark.slow)],
)
def generating(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Spark that interprets expressions, or generates code for them.

    To compile hundreds of expressions takes it a minute, so the quick tests run them interpreted.
    """
    settings = {
        "spark.sql.codegen.factoryMode": request.param,
        "spark.sql.codegen.wholeStage": str(request.param != "NO_CODEGEN").lower(),
    }
    before = {name: spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, former in before.items():
        spark.conf.set(name, str(former))
