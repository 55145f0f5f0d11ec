"""The fuzzer finds faults that are planted, makes them small, and prints what shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

import everview
from everview.cli.exit_codes import DIFFERENCE
from everview.cli.main import main
from everview.differentiate.rules import RULES
from everview.plan.build import add, distinct, groups, join, negate, restrict_to_keys
from everview.plan.nodes import Distinct, Groups, Join, Map, Plan
from everview_fuzz.case import Change, Contents, Row, Step, Table, Transaction, View
from everview_fuzz.check.compare import same_bag
from everview_fuzz.generate.cases import generate
from everview_fuzz.report import finding_text
from everview_fuzz.script import script
from everview_fuzz.search import Report, Settings, search

Fault = Callable[[Any, Any], Plan]


def quietly(_report: Report, _now: str) -> None:
    """No progress is shown."""


def forgotten_term(node: Join, d: Any) -> Plan:
    return join(d(node.left), add(node.right, d(node.right)), node.on, node.residual)


def missing_old_value(node: Groups, d: Any) -> Plan:
    d_child = d(node.child)
    after = groups(add(node.child, d_child), node.keys)
    return restrict_to_keys(after, d_child, node.keys)


def linear_distinct(node: Distinct, d: Any) -> Plan:
    return distinct(d(node.child))


FAULTS: dict[str, tuple[type[Plan], Fault]] = {
    "a join forgets a term": (Join, forgotten_term),
    "groups forget their old value": (Groups, missing_old_value),
    "distinct is taken to be linear": (Distinct, linear_distinct),
    "a projection has the wrong sign": (Map, lambda n, d: negate(RULES_AS_THEY_ARE[Map](n, d))),
}
RULES_AS_THEY_ARE = {operator: rule.apply for operator, rule in RULES.items()}


def rows_of(step: Step) -> list[Row]:
    changes = step.changes if isinstance(step, Transaction) else ()
    written = (c.rows if isinstance(c, Change) else (c.row,) for c in changes)
    return [row for rows in written for row in rows]


*OTHERS, QUICK = FAULTS


@pytest.fixture(params=[QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def planted(request, monkeypatch):
    operator, fault = FAULTS[request.param]
    monkeypatch.setitem(RULES, operator, replace(RULES[operator], apply=fault))
    return request.param


def test_a_planted_fault_is_found_made_small_and_shown_by_its_script(planted, tmp_path):
    settings = Settings("duckdb", seed=1, seconds=300, cases=10, shrinking=240)
    report = search(settings, quietly)
    [finding] = report.findings
    assert finding.confirmed
    assert finding.failure.kind in ("view", "crash")
    small = finding.case
    rows = [row for step in small.steps for row in rows_of(step)]
    assert len(small.tables) <= 2
    assert len(small.views) == 1
    assert len(rows) <= 6
    path = tmp_path / "case.sql"
    path.write_text(finding_text(finding), encoding="utf-8")
    store = str(tmp_path / "store")
    ran = CliRunner().invoke(main, ["sql", store, str(path), "--engine", "duckdb"])
    if ran.exit_code == 0:
        audited = CliRunner().invoke(main, ["audit", store, "--engine", "duckdb"])
        assert audited.exit_code == DIFFERENCE
    else:
        assert finding.failure.kind == "crash"


@pytest.mark.parametrize("number", range(3))
def test_the_script_of_a_case_writes_what_the_case_writes(number, tmp_path):
    case = generate(6, number)
    steps = [s for s in case.steps if not (isinstance(s, View) or getattr(s, "forbidden", False))]
    contents = Contents()
    for step in steps:
        if isinstance(step, Table):
            contents.create(step)
        if isinstance(step, Transaction):
            for change in step.changes:
                contents.apply(change)
    with everview.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(script(replace(case, steps=tuple(steps))))
        for table in case.tables:
            assert same_bag(db.read(table.name).to_arrow(), contents.rows[table.name])


def test_the_command_says_what_it_searched():
    given = ["--engine", "duckdb", "--no-oracle", "--cases", "1", "--jobs", "1"]
    ran = CliRunner().invoke(main, ["fuzz", *given])
    assert ran.exit_code == 0, ran.output
    assert ran.stdout == ""
    assert ran.stderr.startswith("1 cases, ")
    assert "failures: 0" in ran.stderr
