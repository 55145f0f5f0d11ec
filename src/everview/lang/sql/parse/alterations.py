"""The actions of ALTER TABLE and ALTER VIEW, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from everview.errors import Span
from everview.expr.types import Column
from everview.lang.sql.parse.constraints import Constraint


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD COLUMN: `default` is an expression, the value of rows without one.

    `constraints` are those that stand after the type.
    """

    column: Column
    length: int | None
    default: str | None
    required: bool
    comment: str
    if_not_exists: bool
    span: Span
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP COLUMN."""

    name: str
    if_exists: bool
    span: Span


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN … TO."""

    name: str
    to: str
    span: Span


@dataclass(frozen=True, slots=True)
class SetType:
    """ALTER COLUMN … TYPE; texts of a limited length have no limit after it."""

    column: Column
    span: Span


@dataclass(frozen=True, slots=True)
class SetComment:
    """ALTER COLUMN … COMMENT."""

    name: str
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER COLUMN … SET DEFAULT, or DROP DEFAULT without one; rows that are there stay."""

    name: str
    default: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class RenameTo:
    """RENAME TO, of a table or a view."""

    name: str
    span: Span


Action: TypeAlias = (
    AddColumn | DropColumn | RenameColumn | SetType | SetComment | SetDefault | RenameTo
)
