"""What is installed beside Everview is looked at before it fails in some other way."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from sqlglot.dialects.spark import Spark

import everview as ev
from everview.environment import must_be_interpreted


def test_a_parser_in_python_can_be_used():
    must_be_interpreted(Spark.Parser)


def test_a_compiled_parser_is_refused_with_what_to_do(monkeypatch):
    compiled = ModuleType("compiled_parser")
    compiled.__file__ = "/somewhere/parser.cpython-311-x86_64-linux-gnu.so"
    monkeypatch.setitem(sys.modules, "compiled_parser", compiled)
    base = type("Parser", (), {"__module__": "compiled_parser"})
    derived = type("SparkParser", (base,), {"__module__": __name__})
    with pytest.raises(ev.UserError) as caught:
        must_be_interpreted(derived)
    assert caught.value.code == "E003"
    assert "pip uninstall sqlglotc" in caught.value.remedy
