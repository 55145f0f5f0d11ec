"""The pages about the project agree with its configuration and its folders."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _page(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_the_layers_of_contributing_are_those_of_the_contract_in_their_order() -> None:
    contracts = CONFIG["tool"]["importlinter"]["contracts"]
    [layers] = [each["layers"] for each in contracts if each["id"] == "layers"]
    table = _page("CONTRIBUTING.md").partition("## The layers")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == layers


def test_every_folder_of_the_source_is_on_the_page_of_the_architecture() -> None:
    page, source = _page("docs/architecture.md"), ROOT / "src/everview"
    folders = {path for path in source.iterdir() if (path / "__init__.py").exists()}
    below = {
        path for name in ("database", "engines", "runtime") for path in (source / name).iterdir()
    }
    folders |= {path for path in below if (path / "__init__.py").exists()}
    for folder in folders - {source / "engines"}:
        assert f"[`{folder.relative_to(source)}/`]" in page, folder


def test_continuous_integration_runs_the_tests_on_versions_that_are_promised() -> None:
    workflow = _page(".github/workflows/test.yml")
    [versions] = re.findall(r"python: \[(.*)\]", workflow)
    promised = " ".join(CONFIG["project"]["classifiers"])
    tested = re.findall(r'"([\d.]+)"', versions)
    assert tested
    assert all(f"Python :: {version}" in promised for version in tested)
    assert "run: make test" in workflow


def test_the_description_of_the_package_is_the_one_that_it_gives_itself() -> None:
    described = CONFIG["project"]["description"]
    assert f'"""{described}"""' in _page("src/everview/__init__.py")
