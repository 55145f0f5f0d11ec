"""The documents say what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.shop import lines
from everview.cli.main import COMMANDS
from everview.differentiate.rules import RULES, SPECIAL, UNDIFFERENTIATED

ROOT = Path(__file__).parents[2]


def test_the_page_of_rules_is_current(run):
    # When this fails: everview rules --markdown > docs/rules.md
    assert run("rules", "--markdown").stdout == (ROOT / "docs/rules.md").read_text()


def test_every_operator_is_on_the_page_of_rules():
    page = (ROOT / "docs/rules.md").read_text()
    for operator in (*RULES, *UNDIFFERENTIATED):
        assert f"`{operator.__name__}`" in page
    assert all(rule.law in page for rule in SPECIAL)


def test_rules_have_an_operator_a_law_and_a_citation(run):
    [found] = lines(run("rules", "--json"))
    shapes = [f"{rule.operator.__name__}: {rule.where}" for rule in SPECIAL]
    assert [rule["operator"] for rule in found["rules"]] == [o.__name__ for o in RULES] + shapes
    shown = run("rules").stdout
    for rule in found["rules"]:
        assert rule["law"] in shown
        assert rule["citation"] in shown


def test_the_rules_of_sets_are_printed_and_on_the_page(run):
    [found] = lines(run("rules", "--sets", "--json"))
    shown, page = run("rules", "--sets").stdout, (ROOT / "docs/rules.md").read_text()
    assert len(found["rules"]) == 8
    assert [each["number"] for each in found["equations"]] == list(range(1, 17))
    for each in (*found["rules"], *found["equations"]):
        for text in map(str, each.values()):
            assert text in shown
            assert text in page
    assert run("rules", "--sets", "--markdown").exit_code == 2


def test_the_page_of_commands_has_them_all():
    page = (ROOT / "docs/cli.md").read_text()
    for command in COMMANDS:
        assert f"everview {command.name}" in page


@pytest.mark.spark
def test_the_example_of_the_readme_runs_as_written(spark, tmp_path, monkeypatch, capsys):
    text = (ROOT / "README.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})
    promised = re.findall(r"^# prints (.*)$", example, re.MULTILINE)
    assert promised
    printed = capsys.readouterr().out
    for each in promised:
        assert each in printed


def test_the_example_of_policies_runs_as_written(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs/policies.md").read_text()
    example = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "docs/policies.md", "exec"), {})
    promised = re.findall(r"^# prints (.*)$", example, re.MULTILINE)
    assert len(promised) == 4
    printed = capsys.readouterr().out
    for each in promised:
        assert each in printed


PAGES = (
    "agca",
    "constraints",
    "domains",
    "files",
    "minimal-changes",
    "nested",
    "plans",
    "preview",
    "relalg",
    "schemas",
    "sql",
    "transactions",
    "triggers",
)
"""Pages with an example in Python."""


@pytest.mark.parametrize("page", PAGES)
def test_the_example_of_a_page_runs_as_written(page, tmp_path, monkeypatch, capsys):
    text = (ROOT / f"docs/{page}.md").read_text()
    example = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    monkeypatch.chdir(tmp_path)
    script = tmp_path / f"{page}.py"
    script.write_text(example)
    exec(compile(example, script, "exec"), {})
    promised = re.findall(r"^# prints (.*)$", example, re.MULTILINE)
    assert promised == capsys.readouterr().out.splitlines()


def test_the_readme_promises_nothing_that_no_command_checks():
    text = (ROOT / "README.md").read_text()
    section = text.partition("## What is promised")[2].partition("\n## ")[0]
    asked = re.findall(r"`([^`]+)`", section)
    names = {command.name for command in COMMANDS}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert len(asked) > 7
    for words in (each.split() for each in asked):
        match words:
            case ["everview", command, *_]:
                assert command in names, words
            case ["make", target, *_]:
                assert target in targets, words
            case [program, *paths]:
                assert program == ".venv/bin/pytest", words
                assert all((ROOT / path).exists() for path in paths), words
