"""What keeps the shape of the project: totality, and what may be loaded."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import everview
from everview.differentiate.rules import RULES, SPECIAL
from everview.plan.nodes import Plan

SOURCE = Path(everview.__file__).parent


def test_there_are_at_most_twenty_operators():
    assert len(get_args(Plan)) <= 20


def test_every_operator_says_what_it_denotes():
    """The first sentence of its docstring ends with its symbol, which its law is about."""
    symbols = {operator: _symbol(operator) for operator in get_args(Plan)}
    assert len(set(symbols.values())) == len(symbols), symbols
    for operator, rule in RULES.items():
        assert _bare(rule.law.partition(" = ")[0]) == _bare(f"Δ{symbols[operator]}"), operator


def _symbol(operator: type[Plan]) -> str:
    sentence = re.match(
        r"[A-Z][^:]+: (\S.*?)\.(?=\s|$)", " ".join((operator.__doc__ or "").split())
    )
    assert sentence, f"{operator.__name__}: {operator.__doc__}"
    return sentence[1]


def _bare(formula: str) -> str:
    """A formula without spaces and parentheses: σₚ(Q) and σₚ Q are the same."""
    return re.sub(r"[ ()]", "", formula)


def test_every_rule_has_a_law_and_a_citation():
    for rule in (*RULES.values(), *SPECIAL):
        assert rule.law.startswith("Δ"), rule
        assert rule.cites, rule


def test_importing_everview_loads_no_engine():
    engines = ("pyspark", "duckdb", "pyarrow")
    code = f"import everview, sys; print([m for m in {engines} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_types_are_shipped():
    """A checker believes annotations only of a package that says so, in the wheel too."""
    from hatchling.builders.wheel import WheelBuilder

    root = Path(everview.__file__).parents[2]
    shipped = {file.distribution_path for file in WheelBuilder(str(root)).recurse_included_files()}
    assert "everview/py.typed" in shipped
    assert "everview/__init__.py" in shipped


def test_spark_and_duckdb_are_asked_at_one_door_each():
    """What is checked there is checked everywhere; only the fuzzer hands Spark other text."""
    doors = {
        "session.sql(": ["engines/spark/door.py"],
        "duckdb.connect(": ["engines/duckdb/connection.py"],
    }
    for call, door in doors.items():
        found = [
            str(path.relative_to(SOURCE))
            for path in SOURCE.rglob("*.py")
            if call in path.read_text(encoding="utf-8")
        ]
        assert found == door


def test_no_name_is_put_in_quotes_by_hand():
    pasted = ("`{", '"{name}"', '"{column}"', 'replace("`"')
    folders = ("engines", "runtime", "sqlgen", "lang", "database")
    built = [path for folder in folders for path in (SOURCE / folder).rglob("*.py")]
    found = {
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in built
        for line in path.read_text(encoding="utf-8").splitlines()
        if any(each in line for each in pasted) and not _shows(line)
    }
    assert not found


def _shows(line: str) -> bool:
    """Whether a line takes quotes off for a message, or quotes a constant of ours."""
    constants = ("{SIGN}", "{_ITEMS}", "{bound}", '("`", "")', "`{column.name}`")
    return any(each in line for each in constants)
