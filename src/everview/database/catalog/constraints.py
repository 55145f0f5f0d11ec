"""Constraints in a catalog: whether one may be declared, and its JSON in a manifest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

from everview.database.catalog.definitions import TableDefinition
from everview.database.collections.explode import read
from everview.errors import UserError
from everview.expr.quoting import spark_name
from everview.expr.types import Column, Schema, is_nested
from everview.lang.sql.parse.constraints import (
    ASSERTION,
    CASCADE,
    CHECK,
    FOREIGN_KEY,
    NO_ACTION,
    RESTRICT,
    SET_NULL,
    UNIQUE,
    Constraint,
    Reference,
)
from everview.lang.sql.violating_query import problem_in_expression, violating_queries

ConstraintDefinition: TypeAlias = Constraint
"""A declared constraint."""

Tables = Mapping[str, TableDefinition]

_SUFFIXES = {CHECK: "check", UNIQUE: "key", FOREIGN_KEY: "fkey"}


def resolved(constraint: Constraint, tables: Tables, known: Iterable[Constraint]) -> Constraint:
    """A constraint with its names as they are declared, refused where it can never hold."""
    if constraint.kind == ASSERTION:
        return constraint
    table = tables[constraint.table]
    if constraint.kind == CHECK:
        if problem := problem_in_expression(constraint.condition, table.columns):
            raise _refused(constraint, problem, "name columns of the table, or CREATE ASSERTION")
        return constraint
    columns = _spelled(constraint, table, constraint.columns)
    if constraint.references is None:
        return replace(constraint, columns=columns)
    to = constraint.references
    target = next((t for t in tables.values() if t.name.lower() == to.table.lower()), None)
    if target is None:
        problem = f"there is no table {to.table}"
        raise _refused(constraint, problem, "declare the table that it refers to first")
    theirs = _spelled(constraint, target, to.columns) if to.columns else target.key
    keys = [target.key, *(each.columns for each in known if _is_key_of(each, target))]
    if not theirs or not any({*theirs} == {*key} for key in keys):
        problem = f"{to.table} has no such key"
        raise _refused(constraint, problem, f"refer to a PRIMARY KEY or UNIQUE of {to.table}")
    _must_have_one_type(constraint, _columns(table, columns), _columns(target, theirs))
    if to.on_delete == SET_NULL and (lost := [c for c in columns if c in table.not_null]):
        raise _refused(constraint, f"{lost[0]} may not be NULL", "write ON DELETE CASCADE")
    return replace(
        constraint, columns=columns, references=Reference(target.name, theirs, to.on_delete)
    )


def _is_key_of(constraint: Constraint, table: TableDefinition) -> bool:
    return constraint.kind == UNIQUE and constraint.enforced and constraint.table == table.name


def _spelled(
    constraint: Constraint, table: TableDefinition, columns: tuple[str, ...]
) -> tuple[str, ...]:
    """Columns as the table spells them."""
    known = {column.name.lower(): column for column in table.columns}
    for name in columns:
        if name.lower() not in known:
            remedy = f"choose among {', '.join(column.name for column in table.columns)}"
            raise _refused(constraint, f"{table.name} has no column {name}", remedy)
        if is_nested(known[name.lower()].type):
            remedy = "identify rows by plain values"
            raise _refused(constraint, f"{name} is not a plain value", remedy)
    if len({name.lower() for name in columns}) < len(columns):
        raise _refused(constraint, "it names a column twice", "name every column of it once")
    return tuple(known[name.lower()].name for name in columns)


def _columns(table: TableDefinition, wanted: Iterable[str]) -> list[Column]:
    by_name = {column.name: column for column in table.columns}
    return [by_name[name] for name in wanted]


def _must_have_one_type(constraint: Constraint, ours: list[Column], theirs: list[Column]) -> None:
    if len(ours) != len(theirs):
        problem = f"{len(ours)} columns refer to {len(theirs)}"
        raise _refused(constraint, problem, "name as many columns on both sides")
    for mine, other in zip(ours, theirs, strict=True):
        if mine.type != other.type:
            problem = f"{mine.name} is {mine.type.upper()}, and {other.name} {other.type.upper()}"
            raise _refused(constraint, problem, "give both columns one type")


def _refused(constraint: Constraint, problem: str, remedy: str) -> UserError:
    return UserError("C009", f"{constraint.text} cannot be declared: {problem}", remedy=remedy)


def violating_queries_of(constraint: Constraint, tables: Tables) -> tuple[str, ...]:
    """Queries for the rows that violate a constraint, the best one first."""
    if constraint.kind == ASSERTION:
        constraint = replace(constraint, condition=read(constraint.condition, tables))
    return violating_queries(constraint, {name: t.columns for name, t in tables.items()})


def relies_on(reference: Constraint, key: Constraint, tables: Tables) -> bool:
    """Whether a foreign key refers to a UNIQUE, and could not refer to a primary key instead."""
    to = reference.references
    if to is None or key.kind != UNIQUE or to.table != key.table:
        return False
    return {*to.columns} == {*key.columns} != {*tables[key.table].key}


def keys_first(constraints: Iterable[Constraint]) -> list[str]:
    """The names of constraints, each after those that it may refer to."""
    return [each.name for each in sorted(constraints, key=lambda each: each.kind != UNIQUE)]


def no_condition(
    constraint: Constraint,
    tables: Tables,
    describe: Callable[[str, Mapping[str, Schema]], Schema],
) -> UserError | None:
    """The error for a CHECK of rows that is neither true nor false; None where it may be."""
    if constraint.kind != CHECK:
        return None
    table = constraint.table
    with suppress(UserError):
        asked = f"SELECT {constraint.condition} AS held FROM {spark_name(table)}"
        (held,) = describe(asked, {table: tables[table].columns})
        if held.type != "boolean":
            problem = f"it is {held.type.upper()}"
            return _refused(constraint, problem, "write a condition, which is a BOOLEAN")
    return None


def tables_that_follow(constraints: Iterable[Constraint], removes: Iterable[str]) -> frozenset[str]:
    """The tables that lose rows or references when some tables lose rows."""
    return tables_that_refer(
        (
            each
            for each in constraints
            if each.references is not None and each.references.on_delete in (CASCADE, SET_NULL)
        ),
        removes,
    )


def tables_that_refer(constraints: Iterable[Constraint], tables: Iterable[str]) -> frozenset[str]:
    """The tables with foreign keys to some tables, or to others that have such keys."""
    keys = [(each.references.table, each.table) for each in constraints if each.references]
    reached, found = [*tables], set[str]()
    for to in reached:
        for table in {own for other, own in keys if other == to} - found:
            found.add(table)
            reached.append(table)
    return frozenset(found)


def free_name(constraint: Constraint, taken: Collection[str]) -> str:
    """A name for a constraint that was given none, such as `orders_customer_fkey`."""
    suffix = _SUFFIXES[constraint.kind]
    plain = "_".join((constraint.table, *constraint.columns, suffix))
    name, number = plain, 1
    while name.lower() in taken:
        number += 1
        name = f"{plain}{number}"
    return name


def constraint_json(constraint: Constraint) -> dict[str, Any]:
    """A constraint, as JSON; what it does not have is left out."""
    plain: dict[str, Any] = {"name": constraint.name, "kind": constraint.kind}
    plain |= {"table": constraint.table} if constraint.table else {}
    plain |= {"columns": list(constraint.columns)} if constraint.columns else {}
    plain |= {"condition": constraint.condition} if constraint.condition else {}
    plain |= {"enforced": False} if not constraint.enforced else {}
    plain |= {"calls": list(constraint.calls)} if constraint.calls else {}
    if (to := constraint.references) is not None:
        plain["references"] = [to.table, list(to.columns), to.on_delete]
    return plain


def constraint_from(raw: Mapping[str, Any]) -> Constraint:
    """A constraint as `constraint_json` wrote it."""
    references = None
    if "references" in raw:
        table, columns, on_delete = raw["references"]
        references = Reference(table, tuple(columns), on_delete)
    return Constraint(
        raw["kind"],
        raw["name"],
        raw.get("table", ""),
        tuple(raw.get("columns", ())),
        raw.get("condition", ""),
        references,
        raw.get("enforced", True),
        tuple(raw.get("calls", ())),
    )


def problems_in(
    constraint: Constraint, tables: Tables, views: Collection[str], known: Iterable[Constraint]
) -> Iterator[str]:
    """Why a stored constraint cannot be one that a user declared, beside others that are known."""
    to = constraint.references or Reference("")
    texts: tuple[Any, ...] = (constraint.name, constraint.kind, constraint.table)
    texts += (constraint.condition, *constraint.columns, *constraint.calls, to.table, *to.columns)
    for value in texts:
        if not isinstance(value, str):
            yield f"{value!r:.40} is no text"
            return
    called = f"the constraint {constraint.name!r:.40}"
    if constraint.kind not in (*_SUFFIXES, ASSERTION) or not isinstance(constraint.enforced, bool):
        yield f"{called} is of no kind that there is"
        return
    if to.on_delete not in (NO_ACTION, RESTRICT, CASCADE, SET_NULL):
        yield f"{called} does what no constraint does"
    if constraint.table not in (("",) if constraint.kind == ASSERTION else tables):
        yield f"{called} is about no table that there is"
        return
    if (constraint.kind == FOREIGN_KEY) != (constraint.references is not None):
        yield f"{called} refers to nothing"
        return
    if (constraint.name in views) == constraint.enforced:
        yield f"{called} has no view of its violations, or one too many"
    if constraint.kind in (UNIQUE, FOREIGN_KEY) and not constraint.columns:
        yield f"{called} names no columns"
        return
    if resolved(constraint, tables, known) != constraint:
        yield f"{called} does not name what there is"
    violating_queries_of(constraint, tables)
