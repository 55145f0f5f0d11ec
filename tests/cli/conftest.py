"""A small shop, and a way to run commands on it in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from cli.shop import SHOP
from everview.cli.main import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """Run a command without a store, or with one named by its path."""

    def invoke(*args: object, **options: Any) -> Result:
        return CliRunner().invoke(main, [str(arg) for arg in args], **options)

    return invoke


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one table and one view at epoch 3, for tests that only read."""
    path = tmp_path_factory.mktemp("stores") / "shop"
    made = CliRunner().invoke(main, ["sql", str(path), "-c", SHOP])
    assert made.exit_code == 0, made.output
    return path
