"""VERSION AS OF and TIMESTAMP AS OF after a table: which epoch of it a query reads."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from sqlglot import exp

from everview.errors import UserError
from everview.lang.sql.parse.ctes import cte_of
from everview.lang.sql.parse.span import span_of

_AS_OF = re.compile(r"\b(VERSION|TIMESTAMP|SYSTEM_TIME)\s+AS\s+OF\b", re.IGNORECASE)


def names_version(text: str) -> bool:
    """Whether a text may read an old epoch of a table."""
    return _AS_OF.search(text) is not None


def versioned_tables(tree: exp.Expr) -> list[exp.Table]:
    """The tables of a query that are read as of an epoch or a moment."""
    return [table for table in tree.find_all(exp.Table) if table.args.get("version")]


def version_of(table: exp.Table, text: str) -> int | datetime:
    """The epoch, or the moment, of which a query reads a table; UTC where no zone is named."""
    version = table.args["version"]
    given = version.expression
    value = given.this if isinstance(given, exp.Cast) else given
    kind = str(version.this).upper()
    written = value.name if isinstance(value, exp.Literal) else ""
    if cte_of(table) is not None:
        raise _wrong(
            table, text, f"{table.name} is a name of WITH, which has no epochs", "leave it out"
        )
    if version.args.get("kind") != "AS OF" or kind not in ("VERSION", "TIMESTAMP"):
        raise _wrong(table, text, f"{kind} … is not known here", "write VERSION AS OF n")
    if kind == "VERSION":
        if not re.fullmatch(r"[0-9]{1,15}", written, re.ASCII):
            raise _wrong(
                table, text, "VERSION AS OF takes the number of an epoch", "write VERSION AS OF 5"
            )
        return int(written)
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        remedy = "write TIMESTAMP AS OF '2024-01-31 12:00:00'"
        raise _wrong(table, text, "TIMESTAMP AS OF takes a moment", remedy) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def refuse_versions(tree: exp.Expr, text: str) -> None:
    """Refuse a definition that reads an old epoch: what is kept fresh follows the newest."""
    for table in versioned_tables(tree):
        raise UserError(
            "Q020",
            "AS OF cannot stand in a view or an assertion, which follows what is there now",
            span=span_of(table, text),
            remedy="leave AS OF out, or keep the rows by CREATE TABLE … AS SELECT … VERSION AS OF",
        )


def _wrong(table: exp.Table, text: str, problem: str, remedy: str) -> UserError:
    return UserError("Q024", problem, span=span_of(table, text), remedy=remedy)
