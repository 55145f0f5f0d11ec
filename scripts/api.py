"""Writes docs/api.md from the docstrings of the public API: python scripts/api.py > docs/api.md."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from types import FunctionType

import everview
from everview.database.audit_report import Audit
from everview.database.database import Database
from everview.database.introspect.history import Entry
from everview.database.introspect.status import MemoryStatus, RelationStatus
from everview.database.repair import LostRows, Repair
from everview.database.transaction import Transaction
from everview.database.verdict import ViewAudit
from everview.database.verify import Damaged, Verification
from everview.errors import Span, UserError
from everview.plan import build
from everview.runtime.results import Result
from everview.trigger_programs.running import Triggers

INTRODUCTION = """\
# The Python API

Written from the docstrings by `scripts/api.py`. A test compares the two.

```python
import everview as ev
```

Every call checks its arguments. What you can fix raises [`UserError`](#usererror) with a code, the
place in your text and a remedy, and nothing has changed. Anything else is a bug.
"""


@dataclass(frozen=True, slots=True)
class Part:
    """A class of the API: how one comes by it, and which of its members are for ourselves."""

    subject: type
    from_: str
    ours: frozenset[str] = frozenset()


PARTS = (
    Part(
        Database,
        "`ev.open(…)`",
        frozenset({"catalog", "engine", "run", "store"}),
    ),
    Part(
        Transaction,
        "`db.transaction()`",
        frozenset({"add_weighted", "pending", "removes", "run", "wait"}),
    ),
    Part(
        Result,
        "`db.read`, `db.changes` and `db.sql`",
        frozenset({"arrow", "frame", "stream", "within"}),
    ),
    Part(Audit, "`db.audit()`"),
    Part(ViewAudit, "an `Audit`"),
    Part(RelationStatus, "`db.status()`"),
    Part(MemoryStatus, "`db.memory`"),
    Part(Entry, "`db.history()`"),
    Part(Verification, "`ev.verify(…)`"),
    Part(Damaged, "a `Verification`"),
    Part(Repair, "`ev.repair(…)`"),
    Part(LostRows, "a `Repair`"),
    Part(Triggers, "`ev.triggers(…)`"),
    Part(UserError, "any call that raises"),
    Part(Span, "a `UserError`"),
)


def page() -> str:
    """The whole page."""
    return "\n".join((INTRODUCTION, *_module(), *_classes(), *_plans()))


def _module() -> Iterator[str]:
    yield "## The module\n"
    for name in everview.__all__:
        found = getattr(everview, name)
        if isinstance(found, FunctionType):
            yield _function(f"ev.{name}", found)


def _classes() -> Iterator[str]:
    for part in PARTS:
        yield f"## {part.subject.__name__}\n\nFrom {part.from_}.\n"
        yield _text(part.subject) + "\n"
        rows = [f"| `{name}` | {_type(kind)} |" for name, kind in fields(part)]
        if rows:
            yield "\n".join(("| Field | Type |", "|---|---|", *rows, ""))
        for name, member in members(part):
            if isinstance(member, property):
                yield f"### `.{name}`\n\n{_text(member)}\n"
            else:
                yield _function(f".{name}", member)


def _plans() -> Iterator[str]:
    yield "## Plans\n\nThe constructors in `everview.plan.build`; [plans](plans.md) shows them.\n"
    yield "| Constructor | |\n|---|---|"
    for name, function in builders():
        sentence = " ".join(_text(function).partition("\n\n")[0].split()).replace("|", "\\|")
        yield f"| `{name}{_parameters(function)}` | {sentence} |"
    yield ""


def members(part: Part) -> Iterator[tuple[str, property | FunctionType]]:
    """The public methods and properties of a class, in the order in which they are written."""
    seen: set[str] = set()
    for kind in part.subject.__mro__[:-1]:
        if not kind.__module__.startswith("everview"):
            continue
        for name, member in vars(kind).items():
            known = name in seen or name in part.ours
            if (
                not name.startswith("_")
                and not known
                and isinstance(member, property | FunctionType)
            ):
                seen.add(name)
                yield name, member


def fields(part: Part) -> Iterator[tuple[str, str]]:
    """The fields of a record with their types, as they are written."""
    if is_dataclass(part.subject):
        for name, kind in part.subject.__annotations__.items():
            if name not in part.ours and not name.startswith("_"):
                yield name, str(kind)


def builders() -> Iterator[tuple[str, FunctionType]]:
    """The constructors of plans."""
    for name, found in vars(build).items():
        ours = isinstance(found, FunctionType) and found.__module__ == build.__name__
        if ours and not name.startswith("_") and _gives(found) == "Plan":
            yield name, found


def _function(name: str, function: FunctionType) -> str:
    gives = _gives(function)
    ending = "" if gives == "None" else f" → `{gives}`"
    return f"### `{name}{_parameters(function)}`{ending}\n\n{_text(function)}\n"


def _gives(function: FunctionType) -> str:
    """What a function returns."""
    return str(inspect.signature(function).return_annotation)


def _parameters(function: FunctionType) -> str:
    """The parameters as one reads them: names and defaults, without types."""
    signature = inspect.signature(function)
    plain = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    return str(inspect.Signature(plain))


def _type(kind: str) -> str:
    return f"`{kind}`".replace("|", "\\|")


def _text(subject: object) -> str:
    """A docstring as Markdown: indented blocks and examples as code."""
    text = (inspect.getdoc(subject) or "").replace("For example:\n\n", "")
    return re.sub(r"(?m)^(>>> .*\n?(?:.+\n?)*)", _fenced, text)


def _fenced(found: re.Match[str]) -> str:
    return f"```python\n{found[1].rstrip()}\n```\n"


if __name__ == "__main__":
    print(page(), end="")
