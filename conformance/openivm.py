"""The cases of openivm as steps: row-level changes where they are recorded, SQL otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance.cases import Case, Check, Drop, Statement, Step, View, change, parse_table

NULL = "NULL"
_IGNORED = ("session", "refresh", "engine", "index", "object", "other")


def load(folder: Path) -> list[Case]:
    """Every case of the suite, in the order of its file."""
    lines = (folder / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return [_case(json.loads(line)) for line in lines]


def _case(record: Mapping[str, Any]) -> Case:
    steps: list[Step] = []
    for step in record["steps"]:
        if not (step.get("expect_error") or step.get("pending_refresh")):
            steps += _steps(step)
    return Case(record["id"], "openivm", tuple(steps))


def _steps(step: Mapping[str, Any]) -> Iterator[Step]:
    kind = step["kind"]
    if kind in _IGNORED:
        return
    match kind:
        case "table":
            yield parse_table(step["spark"])
        case "view" | "plain_view":
            yield View(step["name"], step["spark"], "OR REPLACE" in step["sql"].upper())
        case "drop":
            yield Drop(step["name"], step["obj"])
        case "dml" if "delta" in step:
            delta = step["delta"]
            if delta["insert"] or delta["delete"]:
                yield change(delta["table"], delta["delete"], delta["insert"])
        case "dml":
            yield Statement(step["name"], step["spark"])
        case "check":
            if not is_self_check(step):
                expected = tuple(tuple(row) for row in step["expected"])
                yield Check(step["spark"], expected, NULL)
        case _:
            raise ValueError(f"a step of an unknown kind: {kind}")


def is_self_check(step: Mapping[str, Any]) -> bool:
    """Whether a check asks that a view minus its own query is empty.

    The comparison after every batch asks the same, and asks it of every view.
    """
    return step["expected"] == [["0"]] and "EXCEPT" in step["sql"].upper()
