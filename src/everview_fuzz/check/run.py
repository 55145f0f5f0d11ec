"""What a case shows when it is run: nothing, or the first thing that is wrong."""

from __future__ import annotations

import re
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias, TypeGuard

import pyarrow as pa

from everview.database.verdict import ViewAudit, compare
from everview.errors import UserError
from everview.lang.sql.parse.functions import Function
from everview.lang.sql.parse.statements import HIGHER_ORDER
from everview_fuzz.case import (
    Case,
    Compact,
    Contents,
    Reopen,
    Step,
    Table,
    Transaction,
    View,
    readers,
    reads,
)
from everview_fuzz.check.oracle import Claim, Oracle, Tally, Verdict
from everview_fuzz.check.reference import Reference, Unanswered, table_of
from everview_fuzz.check.subject import Stamp, Subject, reason
from everview_fuzz.script import create_function

Kind: TypeAlias = Literal[
    "view", "meaning", "spark", "table", "engines", "accepted", "refused", "changed", "crash"
]

FAILURE_TEXTS: dict[Kind, str] = {
    "view": "a view differs from its query",
    "meaning": "a view differs from what DuckDB itself answers to its text",
    "spark": "a view differs from what plain Spark answers to its text",
    "table": "a table does not hold what was written to it",
    "engines": "the two engines do not agree",
    "accepted": "a transaction that breaks a constraint was accepted",
    "refused": "a transaction was refused without need",
    "changed": "a transaction was refused and yet changed something",
    "crash": "an error that is not the user's",
}

VALUE_ERROR = "E010"
"""The code of an error in the user's values: overflow, division by zero."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, at which step; two failures with one `signature` are of the same kind."""

    kind: Kind
    step: int
    detail: str
    engine: str
    place: str = ""

    @property
    def signature(self) -> tuple[str, str, str]:
        """What stays the same while the case is made smaller."""
        return self.kind, self.engine, self.place


@dataclass(slots=True)
class Outcome:
    """The counts of one run, and its failure if there is one.

    `refused` views are missing on one engine at least, `undefined` ones on all. The text of a
    portable view was `asked` of DuckDB itself so often, and so often was it `unanswered`. The
    `claims` are for plain Spark to judge, whose verdicts the `tally` counts.
    """

    views: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    undefined: set[str] = field(default_factory=set)
    transactions: int = 0
    asked: int = 0
    unanswered: Counter[str] = field(default_factory=Counter)
    claims: list[Claim] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    stopped: str = ""
    failure: Failure | None = None


class FailureFound(Exception):  # noqa: N818 - it ends a run, it is not an error of ours
    """The run has found a failure."""

    def __init__(self, kind: Kind, detail: str, engine: str = "", place: str = "") -> None:
        super().__init__(detail)
        self.kind: Kind = kind
        self.detail = detail
        self.engine = engine
        self.place = place

    def at(self, step: int) -> Failure:
        """The failure, at a step."""
        return Failure(self.kind, step, self.detail, self.engine, self.place)


def run(
    case: Case, engines: tuple[str, ...], folder: Path, *, stop_at_refusal: bool = False
) -> Outcome:
    """Run a case on one engine, or on two side by side, in stores below `folder`."""
    outcome = Outcome()
    current = _Run(outcome, folder, [])
    try:
        current.subjects += [Subject(engine, folder / engine) for engine in engines]
        for step in case.steps:
            current.apply(step)
            if outcome.stopped or (stop_at_refusal and outcome.undefined):
                return outcome
        current.check()
    except FailureFound as failure:
        outcome.failure = failure.at(current.step)
    except Exception as problem:
        if _overflows_beside_a_sum(problem, case):
            outcome.stopped = f"{reason(problem)}, where a policy sums before it"
            return outcome
        shown = traceback.format_exc()
        outcome.failure = Failure("crash", current.step, shown, "", _place(problem))
    finally:
        current.reference.close()
        for subject in current.subjects:
            subject.database.close()
    return outcome


def _overflows_beside_a_sum(problem: Exception, case: Case) -> TypeGuard[UserError]:
    """Whether a query overflows in a product of integers that higher-order only sums."""
    declared = any(view.policy == HIGHER_ORDER for view in case.views)
    return isinstance(problem, UserError) and problem.code == VALUE_ERROR and declared


def judge(outcome: Outcome, oracle: Oracle) -> None:
    """Let an oracle judge the claims; the first that is wrong is a failure."""
    for verdict in oracle.judge(outcome.claims):
        outcome.tally.add(verdict)
        earlier = outcome.failure is None or verdict.claim.step < outcome.failure.step
        if earlier and verdict.word in ("wrong", "types"):
            claim = verdict.claim
            outcome.failure = Failure("spark", claim.step, _contradiction(verdict), claim.engine)
    outcome.claims.clear()


def _contradiction(verdict: Verdict) -> str:
    if verdict.rows is None:
        return f"the view {verdict.claim.view}\n{verdict.reason}"
    return _shown(verdict.rows, "only Spark", "only the view")


def _place(problem: Exception) -> str:
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [frame for frame in frames if "everview" in frame.filename]
    last = (ours or frames)[-1]
    return f"{type(problem).__name__} in {Path(last.filename).name}:{last.name}"


@dataclass(slots=True)
class _Run:
    outcome: Outcome
    folder: Path
    subjects: list[Subject]
    contents: Contents = field(default_factory=Contents)
    functions: list[Function] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    reference: Reference = field(default_factory=Reference)
    answered: dict[str, Stamp] = field(default_factory=dict)
    step: int = -1
    unchecked: bool = False

    def apply(self, step: Step) -> None:
        """One step on every subject. What changes no answer is checked with the step after it."""
        self.step += 1
        self.unchecked = isinstance(step, Reopen | Compact)
        match step:
            case Table():
                self.contents.create(step)
                for subject in self.subjects:
                    subject.create(step)
            case Function():
                self.functions.append(step)
                for subject in self.subjects:
                    subject.declare(step)
            case View():
                self._define(step)
            case Transaction():
                self._commit(step)
            case Reopen(other):
                self._reopen(other)
            case Compact():
                for subject in self.subjects:
                    subject.database.compact()

    def _define(self, view: View) -> None:
        self.outcome.views += 1
        if any(each.name == view.name for each in self.views):
            self._replace(view)
            return
        for subject in self.subjects:
            subject.define(view)
            if view.name not in subject.refused:
                self._judge(subject, subject.wrong_from_tables(view.name))
        self.views.append(view)
        for subject in self.subjects:
            if view.name in subject.refused:
                self.outcome.refused[view.name] = subject.refused[view.name]
        if all(view.name in subject.refused for subject in self.subjects):
            self.outcome.undefined.add(view.name)
        self._compare_engines([view])
        self._claim_answers([view])

    def _replace(self, view: View) -> None:
        """Another query for a view; where it is refused, all stays as it was."""
        problems = [subject.define(view) for subject in self.subjects]
        for refusal in filter(None, problems):
            self.outcome.refused[f"{view.name} again"] = refusal
        if any(problem is None for problem in problems):
            # A subject that keeps the old query has no part in what is compared from here on.
            for subject, problem in zip(self.subjects, problems, strict=True):
                if problem is not None:
                    subject.refused.update(dict.fromkeys(readers(view, self.views), ""))
            self.views = [view if each.name == view.name else each for each in self.views]
        self.unchecked = True
        self.check()

    def _commit(self, transaction: Transaction) -> None:
        self.outcome.transactions += 1
        after = self.contents.copy()
        for change in transaction.changes:
            after.apply(change)
        before = [subject.database.epoch for subject in self.subjects]
        problems = [subject.commit(transaction) for subject in self.subjects]
        for subject, epoch, problem in zip(tuple(self.subjects), before, problems, strict=True):
            if problem is None and transaction.forbidden:
                raise FailureFound("accepted", after.problem() or "", subject.engine)
            if problem is not None:
                if subject.database.epoch != epoch:
                    raise FailureFound("changed", problem.render(), subject.engine)
                self._refused(subject, transaction, after, problem)
        if not transaction.forbidden:
            self.contents = after
        self.unchecked = True
        self.check()

    def _refused(
        self, subject: Subject, transaction: Transaction, after: Contents, problem: UserError
    ) -> None:
        """A refusal is right for what is forbidden, and where recomputation fails as well."""
        if transaction.forbidden:
            return
        if problem.code != VALUE_ERROR or self._can_recompute(subject, after):
            raise FailureFound("refused", problem.render(), subject.engine, problem.code)
        wrong = subject.wrong_view() or subject.wrong_table(self.contents)
        if wrong is not None:
            raise FailureFound("changed", problem.render(), subject.engine)
        self.subjects.remove(subject)
        subject.database.close()
        if not self.subjects:
            self.outcome.stopped = reason(problem)

    def _can_recompute(self, subject: Subject, contents: Contents) -> bool:
        """Whether every view can be computed from these contents, from scratch."""
        fresh = Subject(
            subject.engine, self.folder / f"again-{subject.engine}-{self.outcome.transactions}"
        )
        try:
            for function in self.functions:
                fresh.declare(function)
            for table in contents.tables.values():
                fresh.create(replace(table, copied=""))
                rows = list(contents.rows[table.name].elements())
                fresh.database.insert(table.name, rows)
            for view in self.views:
                if view.name not in subject.refused:
                    fresh.define(view)
            return not fresh.refused
        finally:
            fresh.database.close()

    def _reopen(self, other: bool) -> None:
        """Each subject again; the two change places where every view runs on both."""
        names = [subject.engine for subject in self.subjects]
        if other and not any(subject.refused for subject in self.subjects):
            names.reverse()
        for subject in self.subjects:
            subject.database.close()
        for subject, name in zip(self.subjects, names, strict=True):
            subject.reopen(name)

    def check(self) -> None:
        """All views and tables, where anything happened since they were checked."""
        if not self.unchecked:
            return
        for subject in self.subjects:
            self._judge(subject, subject.wrong_view())
            table = subject.wrong_table(self.contents)
            if table is not None:
                raise FailureFound("table", f"the table {table}", subject.engine)
        self._compare_engines(self.views)
        self._claim_answers(self.views)
        self.unchecked = False

    def _judge(self, subject: Subject, wrong: ViewAudit | None) -> None:
        if wrong is not None:
            raise FailureFound("view", _shown(wrong, "missing", "surplus"), subject.engine)

    def _claim_answers(self, views: Sequence[View]) -> None:
        """Claim what each view holds, for the oracle; compare portable ones with DuckDB at once."""
        due = [
            (subject, view)
            for view in views
            for subject in self._holding(view)
            if self._may_differ(subject, view)
        ]
        if not due:
            return
        relations = {
            name: table_of(table.columns, self.contents.rows[name])
            for name, table in self.contents.tables.items()
        }
        for view in self.views:
            if any(view is each or reads(each, view.name) for _, each in due):
                for subject in self._holding(view):
                    relations[view.name] = subject.database.read(view.name).to_arrow()
        for subject, view in due:
            self._claim(subject, view, relations)
            if view.portable:
                self._compare_with_duckdb(subject, view, relations)

    def _holding(self, view: View) -> list[Subject]:
        """The first subject that has a view, if there is one: the others agree with it."""
        return [subject for subject in self.subjects if view.name not in subject.refused][:1]

    def _claim(self, subject: Subject, view: View, relations: Mapping[str, pa.Table]) -> None:
        self.outcome.claims.append(
            Claim(
                step=self.step,
                engine=subject.engine,
                view=view.name,
                query=view.query,
                schema=subject.database.catalog.schema(view.name),
                rows=relations[view.name],
                relations={name: rows for name, rows in relations.items() if reads(view, name)},
                functions=tuple(
                    create_function(each).removeprefix("CREATE ")
                    for each in self.functions
                    if f"{each.name}(" in view.query
                ),
                portable=view.portable,
            )
        )

    def _may_differ(self, subject: Subject, view: View) -> bool:
        """Whether anything that the view's answer depends on is new since it was last asked for."""
        stamp = subject.stamp(view.name)
        same = self.answered.get(view.name) == stamp
        self.answered[view.name] = stamp
        return not same

    def _compare_with_duckdb(
        self, subject: Subject, view: View, relations: Mapping[str, pa.Table]
    ) -> None:
        schema = subject.database.catalog.schema(view.name)
        self.outcome.asked += 1
        try:
            found = self.reference.wrong(view, schema, relations[view.name], relations)
        except Unanswered as problem:
            self.outcome.unanswered[re.sub(r"[0-9]+", "n", str(problem))[:90]] += 1
            return
        if not found.ok:
            raise FailureFound(
                "meaning", _shown(found, "only DuckDB", "only the view"), subject.engine
            )

    def _compare_engines(self, views: list[View]) -> None:
        """Both engines hold the same rows in every view that runs on both."""
        if len(self.subjects) < 2:
            return
        first, second = self.subjects
        for view in views:
            if view.name in first.refused or view.name in second.refused:
                continue
            schema = first.database.catalog.schema(view.name)
            if schema != second.database.catalog.schema(view.name):
                raise FailureFound("engines", f"the view {view.name} has other columns")
            found = compare(
                view.name,
                schema,
                first.database.read(view.name).to_arrow(),
                second.database.read(view.name).to_arrow(),
            )
            if not found.ok:
                raise FailureFound(
                    "engines", _shown(found, f"only {first.engine}", f"only {second.engine}")
                )


def _shown(wrong: ViewAudit, missing: str, surplus: str) -> str:
    lines = [f"the view {wrong.view}"]
    lines += [f"{missing}: {row}" for row in wrong.missing[:3]]
    lines += [f"{surplus}: {row}" for row in wrong.surplus[:3]]
    return "\n".join(lines)
