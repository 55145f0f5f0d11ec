"""Fixtures every folder of tests may use."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import Phase, settings

import everview
from cases import THOROUGH
from everview import compiler
from everview.program.policy import CIRCUIT, Decision
from everview.store import change_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from everview.database.database import Database
    from everview_fuzz.check.plain_spark import PlainSpark


SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""How Java had better run tests: most code runs a few times only, in a small heap."""

POLICY = os.environ.get("EVERVIEW_TEST_POLICY")
"""The policy of all views that declare none, to run any test under: first-order, for example."""

GENERATING = {
    "spark.sql.codegen.wholeStage": str(THOROUGH).lower(),
    "spark.sql.codegen.factoryMode": "FALLBACK" if THOROUGH else "NO_CODEGEN",
}
"""Spark's answers are the same without code of their own for every query, which takes half of its
time to make where rows are few. `make test-all` has it make them, and so have the tests that begin
a Spark of their own.
"""

if not THOROUGH:
    os.environ.setdefault("SPARK_SUBMIT_OPTS", SHORT_LIVED)

NEEDS_SPARK = re.compile(r"spark|open_db|\bengine\b", re.IGNORECASE)
"""What occurs in every file that has a test for Spark: its mark, or a fixture that asks for it."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files without Spark alone where only tests with Spark are asked for."""
    marks = config.option.markexpr
    only_spark = "spark" in marks and "not spark" not in marks
    if only_spark and collection_path.name.startswith("test_"):
        return not NEEDS_SPARK.search(collection_path.read_text("utf-8")) or None
    return None


SPARK_ONE_IN = 8
"""Of the tests in a file that run on every engine, so many stand for one on Spark."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs on every engine runs on Spark as a sample of each file; all in `make test-all`."""
    of_file = Counter[Path]()
    for item in items if not THOROUGH else ():
        case = getattr(item, "callspec", None)
        if case is not None and case.params.get("engine") == "spark":
            if of_file[item.path] % SPARK_ONE_IN:
                item.add_marker(pytest.mark.slow)
            of_file[item.path] += 1


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over all tests: they stay, and take it half a second."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """At the end it looks at everything again, so that libraries see their objects go."""
    gc.unfreeze()


@pytest.fixture(scope="module", autouse=True)
def _what_stays_is_passed_over() -> Iterator[None]:
    """So it is with what a file of tests leaves behind, such as plans that are remembered."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local Spark for the whole run, as small as it goes."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2]")
        .appName("everview-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.ansi.enabled", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config(map=GENERATING)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def plain_spark(spark: SparkSession) -> PlainSpark:
    """Spark, asked texts as they are."""
    from everview_fuzz.check.plain_spark import PlainSpark

    return PlainSpark(spark)


Open = Callable[..., "Database"]


@pytest.fixture(scope="session", params=[pytest.param("spark", marks=pytest.mark.spark), "duckdb"])
def engine(request: pytest.FixtureRequest) -> str:
    """Every engine in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def open_db(engine: str, request: pytest.FixtureRequest) -> Open:
    """A function that opens a store with the engine of the test."""
    session = request.getfixturevalue("spark") if engine == "spark" else None

    def opened(path: object, **options: object) -> Database:
        return everview.open(str(path), engine=engine, spark=session, **options)

    return opened


@pytest.fixture
def own_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change is a Parquet file of its own, however few rows it has."""
    monkeypatch.setattr(change_file, "UNMEASURED_MAX_ROWS", 0)
    monkeypatch.setattr(change_file, "CHANGE_MAX_ROWS", 0)


@pytest.fixture(autouse=POLICY is not None)
def forced_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every view without a policy of its own is maintained under the one that is asked for."""
    decision = Decision(POLICY or CIRCUIT, reason="all views of this run are")
    monkeypatch.setattr(compiler, "choose", lambda _plan, _rows: decision)


settings.register_profile("fast", max_examples=40, deadline=None, print_blob=True)
settings.register_profile(
    "quick", max_examples=200, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
settings.register_profile("thorough", max_examples=200, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
