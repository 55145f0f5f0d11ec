"""The cases of souffle, in a language that Everview does not read yet."""

from __future__ import annotations

import json
from pathlib import Path

from conformance.cases import Case

CONSTRUCT = "Datalog"


def load(folder: Path) -> list[Case]:
    """Every case of the suite, in the order of its file; only their names are used so far."""
    lines = (folder / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return [Case(json.loads(line)["id"], "souffle", ()) for line in lines]


def refusal(case: Case) -> str | None:
    """The construct for which a case is refused before it is tried; None when it can be tried."""
    return CONSTRUCT if case.suite == "souffle" else None
