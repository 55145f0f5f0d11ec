"""A module keeps to itself: its private names, and how many others it knows."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from architecture.modules import ROOT, Module, modules

FAN_OUT = 15
"""A module that knows more modules than this does more than one thing."""

WIDER = {
    "everview.engines.spark.engine": 34,
    "everview.engines.duckdb.engine": 27,
    "everview.database.database": 22,
    "everview.database.catalog.catalog": 18,
    "everview.engines.spark.text": 18,
    "everview.engines.duckdb.evaluator": 18,
    "everview.database.maintain": 17,
    "everview.engines.spark.large": 16,
}
"""Those that know more today, and how many. Numbers and lines here only ever go down."""

PRIVATE = {
    # The only way to ask a lock of Python whether this thread holds it.
    "everview.database.concurrency: self._lock._is_owned",
    # Spark Connect has no such context; PySpark offers no other way to the Java one.
    "everview.engines.spark.actions: context._jsc",
}
"""Private names of others that are used today, each with its reason. Lines here only ever go."""


def test_no_private_name_is_imported_from_another_package():
    assert [(m.name, each) for m in modules() for each in m.private_imports()] == []


def test_no_private_attribute_of_another_module_is_used():
    used = {f"{m.name}: {each}" for m in modules() for each in m.private_attributes()}
    assert used - PRIVATE == set(), "use a public name, or make one"
    assert PRIVATE - used == set(), "used no more: take it off the list"


def test_a_module_knows_few_others():
    known = {m.name: len({module for module, _ in m.imports()}) for m in modules()}
    wide = {name: count for name, count in known.items() if count > FAN_OUT}
    wider = {n: count for n, count in wide.items() if count > WIDER.get(n, 0)}
    assert wider == {}, "split it, or let another module do a part"
    narrower = {n: wide.get(n, 0) for n, count in WIDER.items() if wide.get(n, 0) < count}
    assert narrower == {}, "knows fewer now: write the new number into the list"


def test_the_checks_of_modules_can_fail():
    text = """
from everview.store import store
from everview.store.store import _private, Store
import everview.plan.nodes
class A:
    def __init__(self, other):
        self._mine = other._mine + other._theirs
        Store._create(store._name)
    def _create(self): ...
"""
    module = Module("everview.database.module", ast.parse(text))
    assert list(module.private_imports()) == ["everview.store.store._private"]
    assert sorted(module.private_attributes()) == ["Store._create", "other._theirs", "store._name"]
    known = {name for name, _ in module.imports()}
    assert known == {"everview.store.store", "everview.plan.nodes"}
    assert not list(Module("everview.store.other", ast.parse(text)).private_imports())


def test_imports_go_one_way():
    """The contracts of import-linter, which `make lint` runs too."""
    tool = Path(sys.executable).with_name("lint-imports")
    shown = _run([str(tool), "--no-cache"])
    assert shown.returncode == 0, shown.stdout


def test_everything_public_says_what_it_is():
    """Every public module, class, method and function of src has a docstring."""
    undocumented = "D100,D101,D102,D103,D106"
    command = ["-m", "ruff", "check", "--no-cache", "--ignore-noqa", "--output-format=concise"]
    shown = _run([sys.executable, *command, "--isolated", "--select", undocumented, "src"])
    assert shown.returncode == 0, shown.stdout


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT.parent, check=False)
