"""Where the verdicts of plain Spark are kept, so that a second run asks nothing twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyspark

from conformance.cases import Case, Change, Check, Drop, Statement, Step, Table, View
from conformance.golden import World
from conformance.golden_plain import Judged, decoded, encoded
from conformance.plain import Plain
from conformance.values import decode_row, encode_row

_CODE = ("cases", "fixtures", "inserts", "openivm", "plain", "values")
_GOLDEN_CODE = ("cases", "fixtures", "golden", "golden_plain", "plain", "printed", "values")
_KINDS = {kind.__name__: kind for kind in (Table, View, Drop, Change, Statement, Check)}


class Verdicts:
    """The verdicts on one suite: a file with a line for each case."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = dict(map(_decode, _lines(path)))

    @classmethod
    def of(cls, suite: Path, folder: Path) -> Verdicts:
        """The verdicts that hold for this content of the suite, this code and this Spark."""
        return cls(_path(suite, folder, _CODE))

    def get(self, case: Case) -> Plain | None:
        """What is known of a case."""
        return self._known.get(case.id)

    def missing(self, cases: Iterable[Case]) -> list[Case]:
        """The cases of which nothing is known yet."""
        return [case for case in cases if case.id not in self._known]

    def add(self, verdict: Plain) -> None:
        """Keep a verdict, at once: a run that is cut short loses nothing."""
        self._known[verdict.case.id] = verdict
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(_encode(verdict)) + "\n")


class Worlds:
    """The verdicts on the golden files: a file with a line for each world."""

    def __init__(self, suite: Path, folder: Path) -> None:
        self.path = _path(suite, folder, _GOLDEN_CODE)
        self._known = {record["id"]: record for record in _lines(self.path)}

    def missing(self, worlds: Iterable[World]) -> list[World]:
        """The worlds of which nothing is known yet."""
        return [world for world in worlds if world.id not in self._known]

    def get(self, world: World) -> Judged:
        """What is known of a world."""
        return decoded(self._known[world.id])

    def add(self, judged: Judged) -> None:
        """Keep a verdict, at once."""
        self._known[judged.id] = encoded(judged)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(self._known[judged.id]) + "\n")


def _path(suite: Path, folder: Path, code: Iterable[str]) -> Path:
    """A file for this content of the suite, this code and this Spark."""
    folder.mkdir(exist_ok=True)
    here = Path(__file__).parent
    digest = hashlib.sha256(pyspark.__version__.encode())
    for part in (suite / "cases.jsonl", *(here / f"{name}.py" for name in code)):
        digest.update(hashlib.sha256(part.read_bytes()).digest())
    return folder / f"{suite.name}-{digest.hexdigest()[:16]}.jsonl"


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            # The last line of a run that was cut short.
            continue
    return found


def _encode(verdict: Plain) -> dict[str, Any]:
    case = verdict.case
    return {
        "id": case.id,
        "suite": case.suite,
        "steps": [_encode_step(step) for step in case.steps],
        "left_out": verdict.left_out,
        "answers": {str(step): answers for step, answers in verdict.answers.items()},
    }


def _encode_step(step: Step) -> list[Any]:
    fields: dict[str, Any] = {name: getattr(step, name) for name in step.__dataclass_fields__}
    if isinstance(step, Change):
        fields = {
            "delete": [[table, encode_row(row)] for table, row in step.delete],
            "insert": [[table, encode_row(row)] for table, row in step.insert],
        }
    return [type(step).__name__, fields]


def _decode(record: dict[str, Any]) -> tuple[str, Plain]:
    steps = tuple(_decode_step(*step) for step in record["steps"])
    case = Case(record["id"], record["suite"], steps)
    answers = {int(step): answers for step, answers in record["answers"].items()}
    return case.id, Plain(case, record["left_out"], answers)


def _decode_step(kind: str, fields: dict[str, Any]) -> Step:
    if kind == "Change":
        delete, insert = (
            tuple((table, decode_row(row)) for table, row in fields[side])
            for side in ("delete", "insert")
        )
        return Change(delete, insert)
    step: Step = _KINDS[kind](**{name: _frozen(value) for name, value in fields.items()})
    return step


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
