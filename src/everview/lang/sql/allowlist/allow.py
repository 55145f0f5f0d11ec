"""What statements, never views, may read outside the store: what the caller of `open` allows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from everview import arguments
from everview.errors import UserError
from everview.lang.sql.allowlist.checked_text import spelled
from everview.lang.sql.bind.pure_functions import NEVER
from everview.lang.sql.parse.grammar import QUERIES

FORMATS = {each.lower(): each for each in ("csv", "json", "parquet", "orc", "text", "binaryFile")}
"""The formats of files, by the lower-case name that a query writes before the path."""
_UNSAFE_PATH = re.compile(r"[\\{}\[\]%\0]|(^|/)\.\.?(/|$)|//(?!$)")
"""Characters and parts of a path by which it may lead elsewhere: globs, `..`, escapes."""


@dataclass(frozen=True, slots=True)
class Allow:
    """The tables of Spark's catalogs, path prefixes of files, and functions that are allowed."""

    tables: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()
    functions: frozenset[str] = frozenset()

    def file(self, table: exp.Table) -> tuple[str, str] | None:
        """The format and path of the files that a table is, if those may be read."""
        format_, path = FORMATS.get(table.db.lower()), table.name
        if format_ is None or table.catalog or not self.reaches(path):
            return None
        return format_, path

    def reaches(self, path: str) -> bool:
        """Whether a path is an allowed one, or below it.

        >>> named = Allow(files=("/data",))
        >>> named.reaches("/data/a.csv"), named.reaches("/database"), named.reaches("/data/../etc")
        (True, False, False)
        """
        if _UNSAFE_PATH.search(_without_scheme(path)):
            return False
        return any(path == each or path.startswith(f"{each.rstrip('/')}/") for each in self.files)


NOTHING = Allow()


def allowed(given: Iterable[str]) -> Allow:
    """What the entries of `allow` name: `table:NAME`, `files:PREFIX`, `function:NAME`."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise _wrong(given, "give a list of texts")
    tables, files, functions = set[str](), list[str](), set[str]()
    for each in given:
        kind, _, name = arguments.text("an entry of allow", each).partition(":")
        if kind == "table":
            tables.add(_table(each, name))
        elif kind == "files" and name.strip("/") and not _UNSAFE_PATH.search(_without_scheme(name)):
            files.append(name)
        elif kind == "function" and re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            if name.lower() in NEVER:
                raise _wrong(each, "leave it out: what calls Java is never allowed")
            functions.add(name.lower())
        else:
            raise _wrong(each, "write table:NAME, files:PREFIX or function:NAME")
    return Allow(frozenset(tables), tuple(files), frozenset(functions))


def _table(entry: str, name: str) -> str:
    """The name of a table in an entry, spelled as it is looked up."""
    try:
        table = exp.to_table(name, dialect=QUERIES)
    except (SqlglotError, ValueError):
        raise _wrong(entry, "write the name of a table after table:") from None
    plain = all(isinstance(part, exp.Identifier) and part.name for part in table.parts)
    if not plain or any(v for k, v in table.args.items() if k not in ("this", "db", "catalog")):
        raise _wrong(entry, "write the name of a table after table:")
    return spelled(table)


def _without_scheme(path: str) -> str:
    return re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*:(//)?", "", path)


def _wrong(entry: object, remedy: str) -> UserError:
    return UserError("X002", f"allow cannot hold {arguments.shown(entry)}", remedy=remedy)
