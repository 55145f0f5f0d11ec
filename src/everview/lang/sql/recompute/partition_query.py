"""Which blocks of a query are recomputed, so that the rest of it can be maintained."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from sqlglot import exp

from everview.errors import Span, UserError
from everview.expr.types import Schema, names, storable_type, unusable_name
from everview.lang.sql.lower.context import Analyze
from everview.lang.sql.lower.query import lower_query, lower_tree
from everview.lang.sql.parse.ctes import reads_of
from everview.lang.sql.parse.grammar import QUERIES
from everview.lang.sql.parse.parser import parse_query
from everview.lang.sql.parse.statements import Query
from everview.lang.sql.recompute.deterministic import must_be_repeatable
from everview.plan.nodes import Source

Describe = Callable[[str, Mapping[str, Schema]], Schema]
"""The columns of a query over relations, as the engine that will compute it says."""

_BLOCKS = (exp.Select, exp.SetOperation)


@dataclass(frozen=True, slots=True)
class Part:
    """A block of a view that is recomputed when what it reads changes, and why it is."""

    name: str
    query: str
    columns: Schema
    reads: tuple[str, ...]
    reason: str

    @property
    def asked(self) -> Query:
        """The query that is computed again."""
        return Query(self.query, self.reads, Span(self.query, 0, len(self.query)))

    @property
    def source(self) -> Source:
        """The part as plans read it."""
        return Source(self.name, self.columns)

    @property
    def sort(self) -> tuple[str, ...]:
        """The order its segments are stored in."""
        return names(self.columns)[:1]


@dataclass(frozen=True, slots=True)
class Divided:
    """A query in which parts stand for the blocks that are recomputed."""

    query: str
    parts: tuple[Part, ...] = ()


def divide(
    view: str,
    text: str,
    relations: Mapping[str, Source],
    analyze: Analyze,
    describe: Describe,
    columns: tuple[str, ...] = (),
) -> Divided:
    """The query of a view with the smallest blocks that cannot be maintained made parts.

    A block is a SELECT or a set operation that reads nothing of what is around it.
    """
    try:
        lower_query(text, relations, analyze, columns)
    except UserError as problem:
        if problem.code == VOLATILE:
            raise
        division = _Division(view, text, relations, analyze, describe)
        made, parts = division.divided(_without_ctes(parse_query(text), {}), whole=True)
        if not parts:
            raise
        query = made.sql(dialect=QUERIES)
        known = {**relations, **{part.name.lower(): part.source for part in parts}}
        lower_query(query, known, analyze, columns)
        return Divided(query, parts)
    return Divided(text)


@contextmanager
def recomputation_offered(text: str) -> Iterator[None]:
    """Tell whoever is refused a view that it could be recomputed, where that would be right."""
    try:
        yield
    except UserError as problem:
        with suppress(UserError):
            if problem.code == _REFUSED:
                must_be_repeatable(parse_query(text), text)
                problem.remedy += ", or declare the view WITH (refresh = 'auto') on Spark"
        raise


VOLATILE, _REFUSED = "Q021", "Q020"
_OTHERS = (_REFUSED, "E011")
"""What the language refuses, and what an engine does: with any other code the text is wrong."""


@dataclass(frozen=True, slots=True)
class _Division:
    """One query on its way to parts."""

    view: str
    text: str
    relations: Mapping[str, Source]
    analyze: Analyze
    describe: Describe

    def divided(self, block: exp.Expr, *, whole: bool = False) -> tuple[exp.Expr, tuple[Part, ...]]:
        """The block with parts in it, or a part in its place; `whole` is the block around all."""
        made, parts = block.copy(), tuple[Part, ...]()
        for inner in list(_blocks_in(made)):
            replaced, found = self.divided(inner)
            inner.replace(replaced)
            parts += found
        known = {**self.relations, **{part.name.lower(): part.source for part in parts}}
        try:
            lower_tree(made, self.text, known, self.analyze)
        except UserError as problem:
            part = self._part(block, problem, whole=whole)
            if part is not None:
                name = exp.to_identifier(part.name, quoted=True)
                return exp.select("*").from_(exp.Table(this=name)), (part,)
        return made, tuple(dict.fromkeys(parts))

    def _part(self, block: exp.Expr, refusal: UserError, *, whole: bool) -> Part | None:
        """The block as a part; None when it cannot stand alone, so one around it must."""
        query = self.text if whole else block.sql(dialect=QUERIES)
        found = [r for name in reads_of(block) if (r := self.relations.get(name.lower()))]
        try:
            columns = self.describe(query, {source.name: source.schema for source in found})
        except UserError as problem:
            if whole:
                raise problem if refusal.code in _OTHERS else refusal from None
            return None
        if not _can_be_stored(columns):
            if whole:
                raise refusal
            return None
        must_be_repeatable(block, self.text)
        digest = hashlib.blake2b(query.encode(), digest_size=5).hexdigest()
        reads = tuple(source.name for source in found)
        return Part(f"{self.view}__part__{digest}", query, columns, reads, refusal.problem)


def _can_be_stored(columns: Schema) -> bool:
    lowered = [name.lower() for name in names(columns)]
    return len(set(lowered)) == len(lowered) and all(
        storable_type(column.type) and not unusable_name(column.name) for column in columns
    )


def _blocks_in(node: exp.Expr) -> Iterator[exp.Expr]:
    """The blocks directly inside a block; those of a recursive WITH have names of their own."""
    for child in () if node.args.get("with_") else node.iter_expressions():
        if isinstance(child, _BLOCKS):
            yield child
        else:
            yield from _blocks_in(child)


def _without_ctes(tree: exp.Expr, known: Mapping[str, exp.Expr]) -> exp.Expr:
    """The query with a subquery in the place of every name that WITH gives.

    A recursive WITH stays as it is: the query it belongs to is one block.
    """
    made = tree.copy()
    clause = made.args.get("with_")
    if clause is not None and not clause.args.get("recursive"):
        clause.pop()
        for cte in clause.expressions:
            known = {**known, cte.alias.lower(): _named(cte, _without_ctes(cte.this, known))}
    elif clause is not None:
        known = {
            k: v for k, v in known.items() if k not in {c.alias.lower() for c in clause.expressions}
        }
    return _inlined(made, known)


def _named(cte: exp.Expr, query: exp.Expr) -> exp.Expr:
    return exp.Subquery(this=query, alias=cte.args["alias"].copy())


def _inlined(node: exp.Expr, known: Mapping[str, exp.Expr]) -> exp.Expr:
    for child in list(node.iter_expressions()):
        if isinstance(child, exp.Query) and child.args.get("with_"):
            child.replace(_without_ctes(child, known))
        elif isinstance(child, exp.Table) and not child.args.get("db"):
            _inlined(child, known)
            if child.name.lower() in known:
                _put(child, known[child.name.lower()].copy())
        else:
            _inlined(child, known)
    return node


def _put(table: exp.Expr, query: exp.Expr) -> None:
    """A subquery where a name stood, with the name's alias, joins and all else."""
    alias = table.args.get("alias")
    if alias is not None:
        given = query.args["alias"]
        own = alias.copy()
        if not own.args.get("columns") and given.args.get("columns"):
            own.set("columns", [each.copy() for each in given.args["columns"]])
        query.set("alias", own)
    for part in ("joins", "pivots", "laterals", "sample"):
        if table.args.get(part):
            query.set(part, table.args[part])
    table.replace(query)
