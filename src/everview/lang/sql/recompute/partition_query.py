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
from everview.lang.sql.recompute.deterministic import must_be_deterministic
from everview.plan.nodes import Source

Describe = Callable[[str, Mapping[str, Schema]], Schema]
"""The columns of a query over relations, as the engine that will compute it says."""

_BLOCKS = (exp.Select, exp.SetOperation)


@dataclass(frozen=True, slots=True)
class RecomputedBlock:
    """A block of a view that is recomputed when a relation it reads changes, and why it is."""

    name: str
    query: str
    columns: Schema
    reads: tuple[str, ...]
    reason: str

    @property
    def as_query(self) -> Query:
        """The query that is computed again, as a statement."""
        return Query(self.query, self.reads, Span(self.query, 0, len(self.query)))

    @property
    def source(self) -> Source:
        """The block as plans read it."""
        return Source(self.name, self.columns)

    @property
    def sort(self) -> tuple[str, ...]:
        """The order its segments are stored in."""
        return names(self.columns)[:1]


@dataclass(frozen=True, slots=True)
class PartitionedQuery:
    """A query that reads the recomputed blocks, `parts`, as if they were tables."""

    query: str
    parts: tuple[RecomputedBlock, ...] = ()


def partition_query(
    view: str,
    text: str,
    relations: Mapping[str, Source],
    analyze: Analyze,
    describe: Describe,
    columns: tuple[str, ...] = (),
) -> PartitionedQuery:
    """The query of a view, with the smallest blocks that cannot be maintained replaced by tables.

    A block is a SELECT or a set operation that reads no columns of an outer query.
    """
    try:
        lower_query(text, relations, analyze, columns)
    except UserError as problem:
        if problem.code == VOLATILE:
            raise
        partitioning = _Partitioning(view, text, relations, analyze, describe)
        tree, parts = partitioning.partition(_without_ctes(parse_query(text), {}), whole=True)
        if not parts:
            raise
        query = tree.sql(dialect=QUERIES)
        known = {**relations, **{part.name.lower(): part.source for part in parts}}
        lower_query(query, known, analyze, columns)
        return PartitionedQuery(query, parts)
    return PartitionedQuery(text)


@contextmanager
def recomputation_offered(text: str) -> Iterator[None]:
    """Add to the refusal of a view that it could be recomputed, if its answer is deterministic."""
    try:
        yield
    except UserError as problem:
        with suppress(UserError):
            if problem.code == _REFUSED:
                must_be_deterministic(parse_query(text), text)
                problem.remedy += ", or declare the view WITH (refresh = 'auto') on Spark"
        raise


VOLATILE, _REFUSED = "Q021", "Q020"
_REFUSALS = (_REFUSED, "E011")
"""The codes of what the language and an engine refuse; with any other the text is wrong."""


@dataclass(frozen=True, slots=True)
class _Partitioning:
    """One query that is partitioned, with all that lowering it needs."""

    view: str
    text: str
    relations: Mapping[str, Source]
    analyze: Analyze
    describe: Describe

    def partition(
        self, block: exp.Expr, *, whole: bool = False
    ) -> tuple[exp.Expr, tuple[RecomputedBlock, ...]]:
        """The block with inner blocks replaced where needed, or a table in its own place.

        `whole` says that the block is the whole query.
        """
        tree, parts = block.copy(), tuple[RecomputedBlock, ...]()
        for inner in list(_blocks_in(tree)):
            replaced, inner_parts = self.partition(inner)
            inner.replace(replaced)
            parts += inner_parts
        known = {**self.relations, **{part.name.lower(): part.source for part in parts}}
        try:
            lower_tree(tree, self.text, known, self.analyze)
        except UserError as problem:
            part = self._recomputed(block, problem, whole=whole)
            if part is not None:
                name = exp.to_identifier(part.name, quoted=True)
                return exp.select("*").from_(exp.Table(this=name)), (part,)
        return tree, tuple(dict.fromkeys(parts))

    def _recomputed(
        self, block: exp.Expr, refusal: UserError, *, whole: bool
    ) -> RecomputedBlock | None:
        """The block as a recomputed one; None if it cannot stand alone, so an outer one must."""
        query = self.text if whole else block.sql(dialect=QUERIES)
        sources = [r for name in reads_of(block) if (r := self.relations.get(name.lower()))]
        try:
            columns = self.describe(query, {source.name: source.schema for source in sources})
        except UserError as problem:
            if whole:
                raise problem if refusal.code in _REFUSALS else refusal from None
            return None
        if not _can_be_stored(columns):
            if whole:
                raise refusal
            return None
        must_be_deterministic(block, self.text)
        digest = hashlib.blake2b(query.encode(), digest_size=5).hexdigest()
        reads = tuple(source.name for source in sources)
        return RecomputedBlock(
            f"{self.view}__part__{digest}", query, columns, reads, refusal.problem
        )


def _can_be_stored(columns: Schema) -> bool:
    lowered = [name.lower() for name in names(columns)]
    return len(set(lowered)) == len(lowered) and all(
        storable_type(column.type) and not unusable_name(column.name) for column in columns
    )


def _blocks_in(node: exp.Expr) -> Iterator[exp.Expr]:
    """The blocks directly inside a block; none of one with WITH, as they may read its names."""
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
