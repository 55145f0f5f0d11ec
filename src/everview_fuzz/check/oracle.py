"""The oracle: judges the rows of a view by what plain Spark answers to its original text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import pyarrow as pa

from everview.database.verdict import ViewAudit, compare
from everview.expr.types import Schema
from everview_fuzz.check.differences import differs
from everview_fuzz.check.postgres import Postgres
from everview_fuzz.check.reference import Unanswered
from everview_fuzz.check.ties import refined, reprinted, reversed_windows

if TYPE_CHECKING:
    from everview_fuzz.check.plain_spark import NoAnswer, Question, Reply


ROW_ORDERS = 3
"""In how many other orders of rows Spark is asked before its answer counts as the only one."""


@dataclass(frozen=True, slots=True)
class Claim:
    """At a step of a case: these rows are what the query says over these relations."""

    step: int
    engine: str
    view: str
    query: str
    schema: Schema
    rows: pa.Table
    relations: Mapping[str, pa.Table]
    functions: tuple[str, ...] = ()
    portable: bool = False


Word: TypeAlias = Literal["right", "wrong", "types", "open", "fault", "unread"]
"""A verdict in a word.

`open`: Spark answers otherwise when the rows arrive in another order. `fault`: the query has a
shape in which Spark contradicts SQL. `unread`: Spark refuses the query or fails on the values.
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a claim."""

    claim: Claim
    word: Word
    reason: str = ""
    rows: ViewAudit | None = None
    answer: pa.Table | None = None


@dataclass(slots=True)
class Tally:
    """How many claims were made, and what became of them."""

    right: int = 0
    open: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)

    def add(self, verdict: Verdict) -> None:
        """Count a verdict that is no difference."""
        match verdict.word:
            case "right":
                self.right += 1
            case "open":
                self.open += 1
            case "fault":
                self.faults[verdict.reason] += 1
            case "unread":
                self.unread[verdict.reason] += 1
            case "wrong" | "types":
                pass

    def __iadd__(self, other: Tally) -> Tally:
        self.right += other.right
        self.open += other.open
        self.faults.update(other.faults)
        self.unread.update(other.unread)
        return self

    @property
    def claims(self) -> int:
        """All of them."""
        return self.right + self.open + self.faults.total() + self.unread.total()


class SparkAnswers(Protocol):
    """Plain Spark, or its recorded answers."""

    def ask(self, questions: Sequence[Question]) -> list[Reply]:
        """A reply to each question, in order."""


class Oracle:
    """Judges claims by asking plain Spark."""

    def __init__(self, spark: SparkAnswers) -> None:
        self._spark = spark

    def judge(self, claims: Sequence[Claim]) -> list[Verdict]:
        """A verdict on each claim, in order."""
        replies = self._spark.ask([_question(claim) for claim in claims])
        verdicts = [verdict_on(claim, reply) for claim, reply in zip(claims, replies, strict=True)]
        doubtful = [i for i, verdict in enumerate(verdicts) if verdict.word == "wrong"]
        for order in range(ROW_ORDERS):
            reordered = self._spark.ask([_reordered(claims[i], order) for i in doubtful])
            for i, reply in zip(doubtful, reordered, strict=True):
                if _depends_on_order(claims[i], replies[i], reply):
                    verdicts[i] = Verdict(claims[i], "open")
        for i in doubtful:
            if verdicts[i].word == "wrong" and self._ties(claims[i], replies[i]):
                verdicts[i] = Verdict(claims[i], "open")
        return verdicts

    def _ties(self, claim: Claim, reply: Reply) -> bool:
        """Whether Spark answers otherwise when rows that tie are put in another order.

        Where our printer alone changes the answer, nothing is concluded.
        """
        from everview_fuzz.check.plain_spark import Answer

        finer = [refined(claim.query, seed) for seed in range(ROW_ORDERS)]
        reversed_ = [reversed_windows(claim.query)] * ROW_ORDERS
        variants = [
            _reordered(replace(claim, query=text), order)
            for texts in (finer, reversed_)
            for order, text in enumerate(texts)
            if text is not None
        ]
        if not variants:
            return False
        plain = _question(replace(claim, query=reprinted(claim.query)))
        same, *others = self._spark.ask([plain, *variants])
        if not isinstance(same, Answer) or _depends_on_order(claim, reply, same):
            return False
        return any(_depends_on_order(claim, reply, other) for other in others)


@contextmanager
def spark_oracle(threads: int = 2) -> Iterator[Oracle]:
    """An oracle, for as long as the block runs."""
    from everview_fuzz.check.plain_spark import PlainSpark

    spark = PlainSpark(threads=threads)
    try:
        yield Oracle(spark)
    finally:
        spark.close()


def verdict_on(claim: Claim, reply: Reply) -> Verdict:
    """A claim against one reply."""
    from everview_fuzz.check.plain_spark import Answer

    if not isinstance(reply, Answer):
        return Verdict(claim, "unread", _reason(reply))
    types = tuple(column.type for column in reply.schema)
    if types != tuple(column.type for column in claim.schema):
        return Verdict(claim, "types", f"Spark's columns are {', '.join(types)}")
    difference = compared(claim, reply.rows)
    if difference.ok:
        return Verdict(claim, "right")
    fault = differs(claim.query, _types(claim))
    return (
        Verdict(claim, "fault", fault.title)
        if fault
        else Verdict(claim, "wrong", rows=difference, answer=reply.rows)
    )


def _types(claim: Claim) -> dict[str, dict[str, str]]:
    return {
        name.lower(): {field.name.lower(): str(field.type) for field in rows.schema}
        for name, rows in claim.relations.items()
    }


def compared(claim: Claim, answer: pa.Table) -> ViewAudit:
    """What the claimed rows lack of an answer, and what they have beyond it."""
    named = answer.rename_columns([column.name for column in claim.schema])
    return compare(claim.view, claim.schema, named, claim.rows)


def postgres_opinion(verdict: Verdict, postgres: Postgres | None) -> str:
    """With whom PostgreSQL agrees, where the view and Spark do not."""
    claim = verdict.claim
    if postgres is None or verdict.answer is None:
        return "PostgreSQL was not asked"
    try:
        answer = postgres.answer(claim.query, claim.schema, claim.relations)
    except Unanswered as problem:
        return f"PostgreSQL has no answer: {problem}"
    if compared(claim, answer).ok:
        return "PostgreSQL agrees with the view"
    names = [column.name for column in claim.schema]
    spark = verdict.answer.rename_columns(names)
    if compare(claim.view, claim.schema, spark, answer).ok:
        return "PostgreSQL agrees with Spark"
    return f"PostgreSQL agrees with neither: {answer.to_pylist()[:5]}"


def _question(claim: Claim) -> Question:
    from everview_fuzz.check.plain_spark import Question

    return Question(claim.query, claim.relations, claim.functions)


def _reordered(claim: Claim, order: int) -> Question:
    """The same question with the rows of every relation in another order, so that ties differ."""
    from everview_fuzz.check.plain_spark import Question

    def places(rows: int) -> list[int]:
        shuffled = list(range(rows - 1, -1, -1))
        if order:
            Random(order).shuffle(shuffled)
        return shuffled

    reordered = {
        name: rows.take(pa.array(places(rows.num_rows), pa.int64()))
        for name, rows in claim.relations.items()
    }
    return Question(claim.query, reordered, claim.functions)


def _depends_on_order(claim: Claim, reply: Reply, reordered: Reply) -> bool:
    from everview_fuzz.check.plain_spark import Answer

    if not isinstance(reply, Answer) or not isinstance(reordered, Answer):
        return False
    names = [column.name for column in claim.schema]
    first, second = (each.rows.rename_columns(names) for each in (reply, reordered))
    return not compare(claim.view, claim.schema, first, second).ok


def _reason(reply: NoAnswer) -> str:
    words = re.sub(r"`[^`]*`|\"[^\"]*\"|[0-9]+", "…", reply.problem)
    return words.removeprefix(f"[{reply.condition}] ").split(" SQLSTATE:")[0][:90]
