"""COPY INTO a table FROM files, and COPY of a query TO a file."""

from __future__ import annotations

from sqlglot import exp

from everview.errors import Span, UserError
from everview.lang.sql.parse.create import table_name
from everview.lang.sql.parse.ctes import reads_of
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.statements import CopyInto, CopyTo

OPTIONS = ("format", "header", "delimiter")
_REMEDY = "write COPY INTO table FROM 'path' (FORMAT csv), or COPY (SELECT …) TO 'path'"


def copy_statement(tree: exp.Expr, text: str, span: Span) -> CopyInto | CopyTo:
    """A statement that copies rows from or to files."""
    files = tree.args.get("files") or []
    path = files[0] if len(files) == 1 else None
    credentials = tree.args.get("credentials")
    if not isinstance(path, exp.Literal) or not path.is_string:
        raise _wrong("COPY names one path, in quotes", span)
    if credentials is not None and any(credentials.args.values()):
        raise _wrong("COPY takes no credentials", span)
    options = tuple(_option(each, span) for each in tree.args.get("params") or ())
    if len({name for name, _ in options}) < len(options):
        raise _wrong("COPY has an option twice", span)
    what = tree.this
    if tree.args.get("kind"):
        columns = tuple(each.name for each in what.expressions) if _is_listed(what) else ()
        target = what.this if _is_listed(what) else what
        if not isinstance(target, exp.Table):
            raise _wrong("COPY INTO names a table", span)
        return CopyInto(table_name(target, text), columns, path.name, options, span)
    if isinstance(what, exp.Table):
        what = exp.select("*").from_(what)
    query = what.unnest() if isinstance(what, exp.Subquery) else what
    if not isinstance(query, exp.Query | exp.Values):
        raise _wrong("COPY TO takes a table or a query in parentheses", span)
    return CopyTo(query.sql(dialect=QUERIES), reads_of(query), path.name, options, span)


def _is_listed(what: exp.Expr) -> bool:
    return isinstance(what, exp.Schema)


def _option(node: exp.Expr, span: Span) -> tuple[str, str]:
    name, value = node.name.lower(), node.args.get("expression")
    if name not in OPTIONS:
        raise _wrong(f"COPY has no option {node.name}", span, f"there are {', '.join(OPTIONS)}")
    match value:
        case exp.Boolean():
            return name, "true" if value.this else "false"
        case exp.Literal() | exp.Var() | exp.Column():
            return name, value.name
        case None if name == "header":
            return name, "true"
        case _:
            raise _wrong(f"the option {name} has no value that is known", span)


def _wrong(problem: str, span: Span, remedy: str = _REMEDY) -> UserError:
    return UserError("Q003", problem, span=span, remedy=remedy)
