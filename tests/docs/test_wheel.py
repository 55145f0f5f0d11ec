"""What is shipped works where nothing of the checkout is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {
    "polars": """
import polars
import everview as ev

with ev.open("extra", engine="duckdb") as db:
    db.sql("CREATE TABLE t (a BIGINT, b STRING)")
    db.insert("t", polars.DataFrame({"a": [1, 2], "b": ["x", "y"]}))
    assert polars.from_arrow(db.read("t").to_arrow()).sort("a").rows() == [(1, "x"), (2, "y")]
""",
}
"""What each optional part is for."""


def run(*command: str | Path, folder: Path) -> str:
    """What a command prints, run as by a user who has no checkout."""
    ours = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "EVERVIEW_ENGINE"}
    known = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(command, cwd=folder, env=known, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, folder=ROOT)
    [built] = folder.glob("*.whl")
    return built


def pip(python: Path, *words: str | Path, folder: Path) -> None:
    """Install into another environment; those that uv makes have no pip of their own."""
    try:
        import pip as _  # noqa: F401
    except ImportError:
        run("uv", "pip", "install", "--quiet", "--python", python, *words, folder=folder)
    else:
        install = ("-m", "pip", "--python", python, "install", "--quiet")
        run(sys.executable, *install, *words, folder=folder)


def environment(folder: Path) -> Path:
    """A new environment; its Python."""
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


def example() -> tuple[str, list[str]]:
    """The example of the README on the embedded engine, and the lines it promises."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    embedded = code.replace('ev.open("shop")', 'ev.open("shop", engine="duckdb")')
    assert embedded != code
    return embedded, re.findall(r"^# prints (.*)$", code, re.MULTILINE)


def must_run_the_example(python: Path, folder: Path) -> None:
    code, promised = example()
    printed = run(python, "-c", code, folder=folder).splitlines()
    assert promised
    assert all(line in printed for line in promised)


def test_a_wheel_holds_both_packages_and_their_types_and_nothing_else(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"everview/__init__.py", "everview/py.typed", "everview_fuzz/search.py"} <= names
    top = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert top == {"everview", "everview_fuzz"}
    shipped = {name for name in names if name.endswith(".py")}
    written = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    assert shipped == written


def test_an_installed_wheel_runs_the_command_and_the_example_of_the_readme(
    wheel: Path, tmp_path: Path
) -> None:
    # Dependencies are those of the environment of the tests; the package is that of the wheel.
    python = environment(tmp_path / "env")
    pip(python, "--no-deps", "--no-index", wheel, folder=tmp_path)
    [packages] = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = run(python, "-c", "import everview; print(everview.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(packages)
    assert "audit" in run(tmp_path / "env" / "bin" / "everview", "--help", folder=tmp_path)
    must_run_the_example(python, tmp_path)


def test_every_extra_is_tried() -> None:
    assert set(PROJECT.get("optional-dependencies", {})) == set(EXTRAS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_a_wheel_and_its_extras_install_into_a_clean_environment(
    extra: str, wheel: Path, tmp_path: Path
) -> None:
    # Needs the package index.
    python = environment(tmp_path / "env")
    wanted = f"everview[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    pip(python, wanted, folder=tmp_path)
    run(tmp_path / "env" / "bin" / "everview", "--help", folder=tmp_path)
    must_run_the_example(python, tmp_path)
    if extra:
        run(python, "-c", EXTRAS[extra], folder=tmp_path)
