"""Every operator has a page: its head is what the code says, its example is what explain shows.

Run with EVERVIEW_GOLDEN=write to write heads and examples again, and read the difference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import get_args

import pytest

import everview as ev
from everview.differentiate.rules import RULES, SPECIAL, Rule
from everview.plan.nodes import Plan

PAGES = Path(__file__).parents[2] / "docs/operators"
SECTIONS = ("In SQL", "State", "Cost of a changed row", "Example")
OPERATORS = {operator.__name__: operator for operator in get_args(Plan)}


def head(operator: type) -> str:
    meaning = (operator.__doc__ or "").partition("\n\n")[0]
    rule = RULES.get(operator)
    if rule is None:
        told = "It occurs only in derivatives and programs, so it has no derivative itself."
    else:
        rules = (*(each for each in SPECIAL if each.operator is operator), rule)
        rows = "\n".join(map(row, rules))
        told = f"| Where | Class | Law | From |\n|---|---|---|---|\n{rows}"
    return f"# {operator.__name__}\n\n{meaning}\n\n{told}\n\n"


def row(rule: Rule) -> str:
    others = any(each.operator is rule.operator for each in SPECIAL)
    where = rule.where or ("otherwise" if others else "always")
    cells = (where, rule.kind, f"`{rule.law}`", rule.cites.removeprefix(f"{rule.kind}, "))
    return f"| {' | '.join(cells)} |"


def shown(page: str, folder: Path) -> str:
    """The page with its example run: the statements, then explain as the page asks for it."""
    [statements] = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    [(view, stage)] = re.findall(r"everview explain shop (\w+)(?: --stage (\w+))?\n", page)
    with ev.open(str(folder / "shop"), engine="duckdb") as db:
        db.sql(statements)
        text = db.explain(view, stage or "operators")
    return re.sub(r"```text\n.*?```", lambda _: f"```text\n{text}\n```", page, flags=re.DOTALL)


def test_every_operator_has_a_page_and_every_page_an_operator():
    pages = {path.stem for path in PAGES.glob("*.md")} - {"README"}
    assert pages == {name.lower() for name in OPERATORS}


@pytest.mark.parametrize("name", OPERATORS)
def test_the_page_of_an_operator_is_current(name, tmp_path):
    path = PAGES / f"{name.lower()}.md"
    page = path.read_text(encoding="utf-8")
    body = page[page.index("## ") :]
    current = shown(head(OPERATORS[name]) + body, tmp_path)
    if os.environ.get("EVERVIEW_GOLDEN") == "write":
        path.write_text(current, encoding="utf-8")
    assert page == current or os.environ.get("EVERVIEW_GOLDEN") == "write"


@pytest.mark.parametrize("name", OPERATORS)
def test_the_page_of_an_operator_has_its_sections_and_its_operator(name):
    page = (PAGES / f"{name.lower()}.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^## (.*)$", page, re.MULTILINE)) == SECTIONS
    assert name in page[page.index("```text") :]


def test_the_list_of_pages_is_complete():
    listed = re.findall(r"\[`(\w+)`\]\((\w+)\.md\)", (PAGES / "README.md").read_text())
    assert [name for name, _ in listed] == list(OPERATORS)
    assert all(name.lower() == page for name, page in listed)
