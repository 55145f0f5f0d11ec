"""Plain Spark's answers, recorded in a file, so that tests without Spark are judged by them too.

`EVERVIEW_RECORD=1 make test` writes the file again; without it, tests with Spark say where the
file is out of date.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from everview.engine.spark.plain import Answer, NoAnswer, PlainSpark, Question, Reply
from everview.plan.types import Column

RECORDING = "EVERVIEW_RECORD" in os.environ
NOT_RECORDED = "NOT_RECORDED"


class Recorded:
    """Answers from a file; with Spark, Spark's own, and the file is kept in step with them."""

    def __init__(self, path: Path, spark: PlainSpark | None = None) -> None:
        self._path, self._spark = path, spark
        self._known: dict[str, dict[str, object]] = {}
        if path.exists():
            self._known = json.loads(path.read_text(encoding="utf-8"))
        self.outdated: list[str] = []

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        """A reply to each question, in order."""
        if self._spark is None:
            return [self._recalled(question) for question in questions]
        replies = self._spark.ask(questions)
        for question, reply in zip(questions, replies, strict=True):
            key, entry = _key(question), _entry(reply)
            if self._known.get(key) != entry:
                self.outdated.append(question.text)
                self._known[key] = entry
        if RECORDING and self.outdated:
            text = json.dumps(self._known, indent=0, sort_keys=True)
            self._path.write_text(text + "\n", encoding="utf-8")
            self.outdated.clear()
        return replies

    def _recalled(self, question: Question) -> Reply:
        entry = self._known.get(_key(question))
        if entry is None:
            return NoAnswer(NOT_RECORDED, question.text)
        if "rows" not in entry:
            return NoAnswer(str(entry["condition"]), str(entry["problem"]))
        schema = tuple(Column(*pair) for pair in entry["schema"])  # type: ignore[attr-defined]
        return Answer(schema, _table(str(entry["rows"])))


def _key(question: Question) -> str:
    """A digest of the text, the functions, and the rows as a bag."""
    digest = hashlib.sha256(question.text.encode())
    for function in question.functions:
        digest.update(function.encode())
    for name in sorted(question.relations):
        rows = question.relations[name]
        digest.update(f"{name} {rows.schema.to_string()}".encode())
        for row in sorted(map(repr, rows.to_pylist())):
            digest.update(row.encode())
    return digest.hexdigest()[:24]


def _entry(reply: Reply) -> dict[str, object]:
    if isinstance(reply, NoAnswer):
        return {"condition": reply.condition, "problem": reply.problem}
    rows = reply.rows.take(_order(reply.rows))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema.remove_metadata()) as stream:
        stream.write_table(rows.replace_schema_metadata(None).combine_chunks())
    encoded = base64.b64encode(sink.getvalue().to_pybytes()).decode()
    return {"schema": [[c.name, c.type] for c in reply.schema], "rows": encoded}


def _order(rows: pa.Table) -> pa.Array:
    """The rows in an order of their own: Spark's may be another one each time."""
    shown = list(map(repr, rows.to_pylist()))
    return pa.array(sorted(range(len(shown)), key=shown.__getitem__), pa.int64())


def _table(encoded: str) -> pa.Table:
    with pa.ipc.open_stream(base64.b64decode(encoded)) as stream:
        return stream.read_all()
