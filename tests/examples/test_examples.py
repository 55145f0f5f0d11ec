"""The examples print what their pages show."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(page.stem for page in EXAMPLES.glob("*.md") if page.stem != "README")

ON_SPARK = ("streaming",)
"""Those that the embedded engine cannot run."""


def shown(name: str) -> str:
    page = (EXAMPLES / f"{name}.md").read_text(encoding="utf-8")
    [output] = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    return output


def test_every_example_has_a_page_and_is_listed() -> None:
    scripts = {p.stem for p in EXAMPLES.glob("*.py")} - {"__init__", "common"}
    assert scripts == set(NAMES)
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.md)" in listed for name in NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ON_SPARK])
def test_an_example_prints_what_its_page_shows(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import_module(f"examples.{name}").main("duckdb")
    assert capsys.readouterr().out == shown(name)


@pytest.mark.spark
@pytest.mark.parametrize("name", ON_SPARK)
@pytest.mark.usefixtures("spark")
def test_an_example_on_spark_prints_what_its_page_shows(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import_module(f"examples.{name}").main("spark")
    assert capsys.readouterr().out == shown(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_the_program_that_runs(name: str) -> None:
    page = (EXAMPLES / f"{name}.md").read_text(encoding="utf-8")
    (program,) = (EXAMPLES / "data" / name).glob("program.*")
    assert program.read_text(encoding="utf-8").rstrip() in page
