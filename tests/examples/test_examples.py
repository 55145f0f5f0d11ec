"""The examples print what their pages show."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PAGES = {page.stem: page for page in EXAMPLES.rglob("*.md") if page.stem != "README"}
NAMES = sorted(PAGES)

ON_SPARK = ("streaming",)
"""Those that the embedded engine cannot run."""


def module_of(name: str) -> Any:
    """The script beside a page."""
    path = PAGES[name].relative_to(EXAMPLES.parent).with_suffix("")
    return import_module(".".join(path.parts))


def shown(name: str) -> str:
    page = PAGES[name].read_text(encoding="utf-8")
    [output] = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    return output


def test_every_example_has_a_page_and_is_listed() -> None:
    scripts = {p for p in EXAMPLES.rglob("*.py") if EXAMPLES / "data" not in p.parents}
    plain = {p for p in scripts if p.stem not in ("__init__", "common")}
    assert plain == {page.with_suffix(".py") for page in PAGES.values()}
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"({page.relative_to(EXAMPLES)})" in listed for page in PAGES.values())


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ON_SPARK])
def test_an_example_prints_what_its_page_shows(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module_of(name).main("duckdb")
    assert capsys.readouterr().out == shown(name)


@pytest.mark.spark
@pytest.mark.parametrize("name", ON_SPARK)
@pytest.mark.usefixtures("spark")
def test_an_example_on_spark_prints_what_its_page_shows(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module_of(name).main("spark")
    assert capsys.readouterr().out == shown(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_the_program_that_runs(name: str) -> None:
    page = PAGES[name].read_text(encoding="utf-8")
    (program,) = (EXAMPLES / "data" / name).glob("program.*")
    assert program.read_text(encoding="utf-8").rstrip() in page
