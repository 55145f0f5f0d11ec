"""What a statement may reach beside the store, as whoever opens it says; no view ever may."""

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
"""What files may be read as, by the lower-case name that a query puts before their path."""
_ELSEWHERE = re.compile(r"[\\{}\[\]%\0]|(^|/)\.\.?(/|$)|//(?!$)")
"""What in a path may lead to another place than it seems to name."""


@dataclass(frozen=True, slots=True)
class Allow:
    """Tables of Spark's catalogs, files under some paths, and functions, that are named."""

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
        """Whether a path is one that is named, or under it.

        >>> named = Allow(files=("/data",))
        >>> named.reaches("/data/a.csv"), named.reaches("/database"), named.reaches("/data/../etc")
        (True, False, False)
        """
        if _ELSEWHERE.search(_without_scheme(path)):
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
        elif kind == "files" and name.strip("/") and not _ELSEWHERE.search(_without_scheme(name)):
            files.append(name)
        elif kind == "function" and re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            if name.lower() in NEVER:
                raise _wrong(each, "leave it out: what calls Java is never allowed")
            functions.add(name.lower())
        else:
            raise _wrong(each, "write table:NAME, files:PREFIX or function:NAME")
    return Allow(frozenset(tables), tuple(files), frozenset(functions))


def _table(entry: str, name: str) -> str:
    """The name that an entry gives a table, as queries are looked up by it."""
    try:
        found = exp.to_table(name, dialect=QUERIES)
    except (SqlglotError, ValueError):
        raise _wrong(entry, "write the name of a table after table:") from None
    plain = all(isinstance(part, exp.Identifier) and part.name for part in found.parts)
    if not plain or any(v for k, v in found.args.items() if k not in ("this", "db", "catalog")):
        raise _wrong(entry, "write the name of a table after table:")
    return spelled(found)


def _without_scheme(path: str) -> str:
    return re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*:(//)?", "", path)


def _wrong(entry: object, remedy: str) -> UserError:
    return UserError("X002", f"allow cannot hold {arguments.shown(entry)}", remedy=remedy)
