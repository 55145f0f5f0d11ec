"""The queries of spark_golden, by worlds: what the tables of a golden file are at some place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NULL = "NULL"
VIEWS_MAX = 40
"""So many views share one store, so that a store is neither idle nor slow."""
_NOTHING = "struct<>"
"""The answer of a statement that is not a query, such as WITH … INSERT."""
_SETTING = re.compile(r"\s*set\s+(?P<key>spark\.\S+?)\s*=\s*(?P<value>\S+)\s*", re.IGNORECASE)
_RESET = re.compile(r"\s*reset\s+(?P<key>spark\.\S+)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A query that can be a view, and the cells that Spark printed for it."""

    id: str
    sql: str
    reads: tuple[str, ...]
    expected: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class World:
    """What a query of a file finds: statements that make its tables, and the settings in force."""

    id: str
    setup: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    candidates: tuple[Candidate, ...]

    def reads(self) -> tuple[str, ...]:
        """The relations that some candidate reads."""
        return tuple(sorted({name for each in self.candidates for name in each.reads}))


def load(folder: Path) -> list[World]:
    """Every file of the suite as worlds: candidates that find the same tables share one."""
    lines = (folder / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    builtin = _builtin(folder)
    return [world for line in lines for world in _worlds(json.loads(line), builtin)]


def _worlds(record: Mapping[str, Any], builtin: Mapping[str, str]) -> Iterator[World]:
    """The candidates of one file by what is set up before them."""
    text = " ".join(step["sql"] for step in record["steps"])
    setup = [made for name, made in builtin.items() if re.search(rf"\b{name}\b", text, re.I)]
    settings = dict(each.split("=", 1) for each in record["conf"])
    found: dict[tuple[Any, ...], list[Candidate]] = {}
    for number, step in enumerate(record["steps"]):
        if step["kind"] != "query":
            if "expected_error" not in step:
                _take_in(step["sql"], setup, settings)
        elif step.get("view_candidate"):
            key = (tuple(setup), tuple(sorted(settings.items())))
            cells = tuple(tuple(row) for row in step["expected"])
            candidate = Candidate(
                f"{record['id']}#{number}", step["sql"], tuple(step["uses"]), cells
            )
            found.setdefault(key, []).append(candidate)
            if step["schema"] == _NOTHING:
                setup.append(step["sql"])
    for (statements, options), candidates in found.items():
        for first in range(0, len(candidates), VIEWS_MAX):
            chosen = tuple(candidates[first : first + VIEWS_MAX])
            yield World(chosen[0].id, statements, options, chosen)


def _take_in(sql: str, setup: list[str], settings: dict[str, str]) -> None:
    if found := _SETTING.fullmatch(sql):
        settings[found["key"]] = found["value"]
    elif found := _RESET.fullmatch(sql):
        settings.pop(found["key"], None)
    else:
        setup.append(sql)


def _builtin(folder: Path) -> dict[str, str]:
    """The tables of Spark's test harness, each as a statement that makes it."""
    path = folder / "builtin_tables.json"
    if not path.exists():
        return {}
    described = json.loads(path.read_text(encoding="utf-8"))
    return {name: _made(folder, name, each) for name, each in described.items()}


def _made(folder: Path, name: str, described: Mapping[str, str]) -> str:
    if "sql" in described:
        return f"CREATE TEMPORARY VIEW {name} AS {described['sql']}"
    path = folder / Path(described["csv_tab"]).name
    return (
        f"CREATE TEMPORARY VIEW {name} ({described['schema']}) USING csv "
        f"OPTIONS (path '{path}', sep '\\t', header 'false')"
    )
