"""COPY: rows of files into a table, and rows of a query into a file, where that is allowed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from everview.arguments import shown
from everview.database.transaction import Transaction
from everview.errors import UserError
from everview.expr.types import Schema
from everview.lang.sql.parse.statements import CopyInto, CopyTo
from everview.runtime.files.formats import FileOptions, known_format
from everview.runtime.files.paths import files_at, is_remote, local, must_be_allowed
from everview.runtime.files.reading import FileRows
from everview.runtime.files.writing import write_file
from everview.runtime.protocol import Engine
from everview.runtime.results import Result

OnProgress = Callable[[str], None]


def copy_into(tx: Transaction, statement: CopyInto, on_progress: OnProgress) -> int:
    """Insert the rows of files; how many. Columns that the files lack have their defaults."""
    table = tx.catalog.table(statement.table)
    declared = table.collections.columns if table.collections else table.columns
    columns = _columns(declared, statement)
    options = _options(dict(statement.options))
    allow = tx.engine.allow
    must_be_allowed(statement.path, allow)
    on_progress(f"copying {statement.path} into {table.name}")
    try:
        if is_remote(statement.path) and table.collections:
            remedy = "copy them here: rows with collections are shredded by the driver"
            problem = f"COPY INTO {table.name}, which has collections, from {shown(statement.path)}"
            raise UserError("C009", problem, span=statement.span, remedy=remedy)
        if is_remote(statement.path):
            _must_have_executors(tx.engine, statement.path)
            paths = [statement.path]
        else:
            paths = files_at(statement.path, allow)
        files = FileRows(paths, options, columns, on_progress)
        if table.collections:
            changes = tx.deep.inserted(table, files)
            tx.add_deep(changes)
            return sum(each.rows.num_rows for each in changes if each.relation == table.name)
        part = tx.taken(table, files)
    finally:
        on_progress("")
    return tx.add_weighted(table.name, part, removes=False)


def copy_to(
    result: Result,
    statement: CopyTo,
    engine: Engine,
    store: str,
    on_progress: OnProgress,
) -> int:
    """Write rows to a file, or by executors to a folder; how many. Nothing is replaced."""
    options = _options(dict(statement.options))
    must_be_allowed(statement.path, engine.allow, writing=True)
    _must_be_outside(statement.path, store)
    on_progress(f"copying to {statement.path}")
    try:
        if engine.frames.files is not None:
            return engine.frames.files.write(result, statement.path, options)
        _must_have_executors(engine, statement.path)
        return write_file(result, statement.path, options, on_progress)
    finally:
        on_progress("")


def _options(written: Mapping[str, str]) -> FileOptions:
    header, delimiter = written.get("header", "true").lower(), written.get("delimiter", ",")
    if header not in ("true", "false"):
        raise UserError("F001", f"HEADER is {shown(header)}", remedy="write HEADER true or false")
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        remedy = "give one character, such as ';'"
        raise UserError("F001", f"DELIMITER is {shown(delimiter)}", remedy=remedy)
    format_ = written.get("format")
    named = None if format_ is None else known_format(format_)
    return FileOptions(named, header == "true", delimiter)


def _columns(columns: Schema, statement: CopyInto) -> Schema:
    """The columns that the files have: those named, or all."""
    known = {column.name.lower(): column for column in columns}
    wanted = [name.lower() for name in statement.columns]
    for name in statement.columns:
        if name.lower() not in known or wanted.count(name.lower()) > 1:
            raise UserError(
                "Q007",
                f"COPY names {shown(name)} twice, or {statement.table} has no such column",
                span=statement.span,
                remedy=f"the columns are {', '.join(column.name for column in columns)}",
            )
    return tuple(known[name] for name in wanted) or columns


def _must_have_executors(engine: Engine, path: str) -> None:
    if engine.frames.files is None and is_remote(path):
        raise UserError(
            "E012",
            f"the embedded engine reads and writes files of this machine, not {shown(path)}",
            remedy="copy them here, or open the store with engine='spark'",
        )


def _must_be_outside(path: str, store: str) -> None:
    """Refuse to write into the store's own folder."""
    real, own = os.path.realpath(local(path)), os.path.realpath(local(store))
    if not is_remote(path) and (real == own or real.startswith(f"{own}/")):
        raise UserError(
            "F003",
            f"{shown(path)} lies inside the store",
            remedy="write to another folder",
        )
