"""Tests of what SQL answers, run again with all views under one policy that none of them names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from everview.program.policy import FIRST_ORDER, HIGHER_ORDER, POLICIES

HERE = Path(__file__).parent
SAMPLE = ("test_group_keys.py",)
ANSWERS = (
    *("test_views.py", "test_group_keys.py", "test_not_in.py", "test_shared_subplans.py"),
    *("test_outer_joins_and_truncation.py", "test_correlated_tables.py", "test_constructs.py"),
    *("test_row_values.py", "test_window_filter.py", "test_together.py", "test_values.py"),
)


def run_under(policy: str, files: tuple[str, ...], marks: str) -> str:
    """What pytest says of files whose views are all maintained under a policy."""
    source = str(HERE.parents[1] / "src")
    environment = {**os.environ, "EVERVIEW_TEST_POLICY": policy, "PYTHONPATH": source}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", marks]
    done = subprocess.run(
        [*command, *(str(HERE / each) for each in files)],
        cwd=HERE.parents[1],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout if done.returncode else ""


@pytest.mark.parametrize("policy", [FIRST_ORDER, HIGHER_ORDER])
def test_a_sample_of_what_sql_answers_is_right_under_each_policy(policy):
    assert not run_under(policy, SAMPLE, "not spark and not slow")


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_what_sql_answers_is_right_under_each_policy(policy):
    assert not run_under(policy, ANSWERS, "not spark")
