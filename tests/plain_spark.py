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

from everview.expr.types import Column
from everview_fuzz.check.oracle import Claim
from everview_fuzz.check.plain_spark import Answer, NoAnswer, PlainSpark, Question, Reply

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
            key, entry = question_key(question), _entry(reply)
            if self._known.get(key) != entry:
                self.outdated.append(question.text)
                self._known[key] = entry
        if RECORDING and self.outdated:
            text = json.dumps(self._known, indent=0, sort_keys=True)
            self._path.write_text(text + "\n", encoding="utf-8")
            self.outdated.clear()
        return replies

    def _recalled(self, question: Question) -> Reply:
        entry = self._known.get(question_key(question))
        if entry is None:
            return NoAnswer(NOT_RECORDED, question.text)
        if "rows" not in entry:
            return NoAnswer(str(entry["condition"]), str(entry["problem"]))
        schema = tuple(Column(*pair) for pair in entry["schema"])  # type: ignore[attr-defined]
        return Answer(schema, _table(str(entry["rows"])))


def question_key(question: Question) -> str:
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


class Digests:
    """Digests of Spark's answers, for tests that ask so much that the rows would be too many."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, str] = {}
        if path.exists():
            self._known = json.loads(path.read_text(encoding="utf-8"))
        self._spark: PlainSpark | None = None

    def denied(self, claims: Sequence[Claim]) -> list[str]:
        """The views that do not hold what Spark answered; what was never asked is passed over."""
        questions = [Question(each.query, each.relations, each.functions) for each in claims]
        keys = [question_key(question) for question in questions]
        if RECORDING:
            self._record(questions, keys)
        return [
            each.view
            for each, key in zip(claims, keys, strict=True)
            if self._known.get(key, UNREAD) not in (UNREAD, digest(each.rows))
        ]

    def share(self, claims: Sequence[Claim]) -> float:
        """How many of the claims Spark was asked about."""
        keys = [question_key(Question(c.query, c.relations, c.functions)) for c in claims]
        return sum(key in self._known for key in keys) / len(keys) if keys else 1.0

    def _record(self, questions: Sequence[Question], keys: Sequence[str]) -> None:
        self._spark = self._spark or PlainSpark()
        due = {key: q for key, q in zip(keys, questions, strict=True) if key not in self._known}
        replies = self._spark.ask(list(due.values()))
        for key, reply in zip(due, replies, strict=True):
            self._known[key] = digest(reply.rows) if isinstance(reply, Answer) else UNREAD
        if due:
            text = json.dumps(self._known, indent=0, sort_keys=True)
            self._path.write_text(text + "\n", encoding="utf-8")


UNREAD = "unread"


def digest(rows: pa.Table) -> str:
    """The same for equal bags of rows, doubles to nine digits."""
    columns = ([_shown(value) for value in column.to_pylist()] for column in rows.columns)
    listed = sorted("\x1f".join(row) for row in zip(*columns, strict=True))
    return hashlib.sha256("\x1e".join(listed).encode()).hexdigest()[:16]


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value + 0.0:.9g}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_shown(each)}' for key, each in value.items())}}}"
    return repr(value)
