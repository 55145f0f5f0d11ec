"""The page of the API is written from the docstrings, which cover it and whose examples run."""

from __future__ import annotations

import inspect
import os
import re
import sys
from importlib import util
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import everview as ev

ROOT = Path(__file__).parents[2]
NEEDS_SPARK = ("db.function(",)


def _script() -> Any:
    """scripts/api.py, which is in no package."""
    spec = util.spec_from_file_location("everview_api_page", ROOT / "scripts/api.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


api = _script()
MODULE = [getattr(ev, n) for n in ev.__all__ if isinstance(getattr(ev, n), FunctionType | type)]
SUBJECTS = {
    f"{getattr(each, '__module__', '')}.{getattr(each, '__qualname__', name)}": each
    for part in api.PARTS
    for name, each in [("", part.subject), *api.members(part)]
    if not isinstance(each, property)
} | {each.__qualname__: each for each in MODULE}


def examples(subject: object) -> list[str]:
    """The indented blocks of a docstring; doctests run as doctests."""
    text = inspect.getdoc(subject) or ""
    if ">>>" in text:
        return []
    blocks = re.findall(r"(?:^    .*\n?|^\n(?=    ))+", text, re.MULTILINE)
    return [inspect.cleandoc(block) for block in blocks]


def test_the_page_of_the_api_is_current() -> None:
    # When this fails: python scripts/api.py > docs/api.md
    assert api.page() == (ROOT / "docs/api.md").read_text(encoding="utf-8")


def test_every_public_name_is_on_the_page() -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    for name in ev.__all__:
        assert f"`ev.{name}(" in text or f"## {name}\n" in text or name == "__version__"


def test_every_public_name_has_a_sentence() -> None:
    for part in api.PARTS:
        members = dict(api.members(part))
        assert part.ours.isdisjoint(members)
        for name, each in {"": part.subject, **members}.items():
            member = each.fget if isinstance(each, property) else each
            sentence = (inspect.getdoc(member) or "").partition("\n\n")[0]
            assert len(sentence.split()) > 2, (part.subject, name)
            assert sentence[0].isupper(), (part.subject, name)
            assert sentence.rstrip().endswith((".", ":", ";")), (part.subject, name)


def test_what_is_kept_from_the_page_is_there() -> None:
    for part in api.PARTS:
        known = {name for kind in part.subject.__mro__ for name in vars(kind)}
        known |= set(getattr(part.subject, "__annotations__", {}))
        assert part.ours <= known, part.subject


@pytest.mark.parametrize("name", [name for name, each in SUBJECTS.items() if examples(each)])
def test_an_example_of_a_docstring_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for example in examples(SUBJECTS[name]):
        code = compile(example, name, "exec")
        if any(word in example for word in NEEDS_SPARK):
            continue
        location = f"store-{len(os.listdir())}" if name != "verify" else "store"
        with ev.open(location, engine="duckdb") as db:
            db.sql("""
                CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT, amount DECIMAL(12,2));
                CREATE MATERIALIZED VIEW revenue AS
                    SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer
            """)
            db.insert("orders", [(1, 7, "10.00"), (2, 7, "5.50"), (3, 8, "1.25")])
            if "tx." in example and "as tx" not in example:
                with db.transaction() as tx:
                    exec(code, {"ev": ev, "tx": tx})
            else:
                exec(code, {"ev": ev, "db": db})
            assert db.audit().ok


def test_most_calls_of_a_database_have_an_example() -> None:
    calls = [each for _, each in api.members(api.PARTS[0]) if isinstance(each, FunctionType)]
    assert sum(bool(examples(each)) for each in calls) > len(calls) / 2
