"""Plans as SQL text, weights included: one emitter, two dialects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from everview.expr.aggregates import counts_copies
from everview.expr.types import WEIGHT, Column, Schema, decimal_parts, is_nested, type_in
from everview.plan.build import columns_of
from everview.plan.nodes import (
    Add,
    Aggregate,
    Change,
    Distinct,
    Empty,
    Filter,
    Fixpoint,
    Groups,
    Join,
    Map,
    Measure,
    Negate,
    Over,
    Partition,
    Plan,
    Positive,
    Recursive,
    Ref,
    Restrict,
    Source,
    Totals,
    Unnest,
    Values,
    Window,
)
from everview.plan.traverse import schema_of
from everview.program.steps import Compute
from everview.sqlgen.aggregates import emit_aggregate, emit_order
from everview.sqlgen.dialects import DUCKDB as DUCKDB
from everview.sqlgen.dialects import SPARK as SPARK
from everview.sqlgen.dialects import Dialect as Dialect
from everview.sqlgen.shared import shared_parts

Names: TypeAlias = Mapping[str, str]
_OWN_NAMES: Names = {}


def emit(plan: Plan, dialect: Dialect, relations: Names = _OWN_NAMES, careful: bool = False) -> str:
    """SQL whose rows are those of `plan` with their weights in `_w`.

    `relations` gives the SQL name of a source, change or result where it is not its own. A
    `careful` query consolidates the rows that an expression reads, so that no row that cancels
    can raise.
    """
    emitter = _emitter(plan, dialect, relations, careful)
    return emitter.with_shared(emitter.query(plan))


def emit_consolidated(
    plan: Plan, dialect: Dialect, relations: Names = _OWN_NAMES, careful: bool = False
) -> str:
    """As `emit`, equal rows added up and rows that cancel gone."""
    emitter = _emitter(plan, dialect, relations, careful)
    match plan:
        case Distinct() | Positive() | Groups() | Partition() | Totals() | Empty():
            rows = emitter.query(plan)
        case _:
            rows = emitter.consolidate(emitter.query(plan), schema_of(plan), ())
    return emitter.with_shared(rows)


def emit_step(
    step: Compute, dialect: Dialect, relations: Names = _OWN_NAMES, careful: bool = False
) -> str:
    """The SQL of a step; only what is written need be consolidated."""
    write = emit_consolidated if step.consolidated else emit
    return write(step.plan, dialect, relations, careful)


def consolidate(rows: str, schema: Schema, rings: tuple[str, ...], dialect: Dialect) -> str:
    """The sum of weighted rows: weights added for equal rows, and `rings` with them."""
    return _Emitter(dialect, _OWN_NAMES, careful=False).consolidate(rows, schema, rings)


def ring_columns(plan: Plan) -> tuple[str, ...]:
    """The columns of a stored plan that are added up with the weight: those of totals."""
    return tuple(m.name for m in plan.measures) if isinstance(plan, Totals) else ()


def _emitter(plan: Plan, dialect: Dialect, relations: Names, careful: bool) -> _Emitter:
    return _Emitter(dialect, relations, careful, shared_parts(plan))


_ALWAYS = " HAVING COUNT(*) >= 0"
"""Makes a SELECT without GROUP BY one group, even when it has no aggregate."""


@dataclass(frozen=True, slots=True)
class _Emitter:
    dialect: Dialect
    relations: Names
    careful: bool
    shared: tuple[Plan, ...] = ()
    """Parts that are written once, as common table expressions, the inner ones first."""

    def with_shared(self, rows: str) -> str:
        """A query behind the common table expressions that it reads."""
        parts = (f"{self._part(each)} AS ({self._text(each)})" for each in self.shared)
        return f"WITH {', '.join(parts)} {rows}" if self.shared else rows

    def query(self, plan: Plan) -> str:
        """The rows of a plan, read from its common table expression where it has one."""
        if plan in self.shared:
            return f"SELECT {self._columns(schema_of(plan))} FROM {self._part(plan)}"
        return self._text(plan)

    def _part(self, plan: Plan) -> str:
        return self._q(f"shared.{self.shared.index(plan)}")

    def _text(self, plan: Plan) -> str:
        match plan:
            case Empty(schema):
                return f"SELECT {self._nulls(schema)} WHERE FALSE"
            case Values(schema, rows):
                return " UNION ALL ".join(self._row(schema, row) for row in rows)
            case Source(name, schema, _) | Ref(name, schema) | Recursive(name, schema):
                return f"SELECT {self._columns(schema)} FROM {self._relation(name)}"
            case Change(name, schema):
                return f"SELECT {self._columns(schema)} FROM {self._relation('Δ' + name)}"
            case Filter(child, predicate):
                condition = self.dialect.scalar(predicate, schema_of(child))
                if self.careful:
                    # What hangs on the sum is not moved below it by an optimizer.
                    condition = f"CASE WHEN {WEIGHT} <> 0 THEN {condition} END"
                return f"SELECT * FROM ({self._present(child)}) AS q WHERE {condition}"
            case Map(child, outputs):
                read, scalar = schema_of(child), self.dialect.scalar
                made = (f"{scalar(o.scalar, read)} AS {self._q(o.name)}" for o in outputs)
                return f"SELECT {', '.join((*made, WEIGHT))} FROM ({self._present(child)}) AS q"
            case Unnest():
                return self._unnest(plan)
            case Add(Join(residual=str() as condition) as left, Join() as right) if (
                self.careful and right.residual == condition
            ):
                # Both are of one join: a pair in one may cancel a pair in the other.
                left, right = replace(left, residual=None), replace(right, residual=None)
                return self.query(Filter(Add(left, right), condition))
            case Add(left, right):
                return f"{self._ordered(left, plan)} UNION ALL {self._ordered(right, plan)}"
            case Negate(child):
                listed = self._list(columns_of(child))
                return f"SELECT {listed}-{WEIGHT} AS {WEIGHT} FROM {self._sub(child)}"
            case Join():
                return self._join(plan)
            case Distinct(child) | Positive(child):
                schema, total = schema_of(child), f"CAST(SUM({WEIGHT}) AS BIGINT) AS {WEIGHT}"
                weight = self._one() if isinstance(plan, Distinct) else total
                return (
                    f"SELECT {self._kept(schema)}{weight} FROM {self._sub(child)}"
                    f"{self._grouped(schema)} HAVING SUM({WEIGHT}) > 0"
                )
            case Totals(child, keys, measures):
                return self._totals(child, keys, measures)
            case Groups(child, keys):
                return self._groups(child, keys)
            case Partition(child, keys, aggregates):
                return self._partition(child, keys, aggregates)
            case Window(child, keys, columns):
                return self._window(child, keys, columns)
            case Restrict(child, to, on):
                return self._restrict(child, to, on)
            case Fixpoint():
                raise AssertionError("no one statement is a loop: an engine runs it before")
            case _:
                assert_never(plan)

    def consolidate(self, rows: str, schema: Schema, rings: tuple[str, ...]) -> str:
        keys = tuple(c for c in schema if c.name not in rings)
        summed = "".join(f"SUM({self._q(c)}) AS {self._q(c)}, " for c in rings)
        kept = " OR ".join(f"SUM({column}) <> 0" for column in (WEIGHT, *map(self._q, rings)))
        total = f"CAST(SUM({WEIGHT}) AS BIGINT) AS {WEIGHT}"
        return (
            f"SELECT {self._kept(keys)}{summed}{total} FROM ({rows}) AS q"
            f"{self._grouped(keys)} HAVING {kept}"
        )

    def _join(self, plan: Join) -> str:
        if self.careful and plan.residual:
            return self.query(Filter(replace(plan, residual=None), plan.residual))
        left, right = schema_of(plan.left), schema_of(plan.right)
        # DuckDB's own = between nested values loses pairs where it is one of several conditions.
        nested = any(is_nested(type_in(left, a)) for a, _ in plan.on)
        equal = self.dialect.null_safe_equal if plan.nulls or nested else "="
        on = [
            f"{self.dialect.comparable(self._q(a), type_in(left, a))} {equal} "
            f"{self.dialect.comparable(self._q(b), type_in(right, b))}"
            for a, b in plan.on
        ]
        if nested and not plan.nulls:
            on += [f"{self._q(side)} IS NOT NULL" for pair in plan.on for side in pair]
        if plan.residual:
            on.append(f"({self.dialect.scalar(plan.residual, left + right)})")
        columns = self._list(tuple(c.name for c in left + right))
        return (
            f"SELECT {columns}l.{WEIGHT} * r.{WEIGHT} AS {WEIGHT} FROM {self._sub(plan.left, 'l')} "
            f"JOIN {self._sub(plan.right, 'r')} ON {' AND '.join(on) or 'TRUE'}"
        )

    def _unnest(self, plan: Unnest) -> str:
        listed = self._list(columns_of(plan.child))
        items = self.dialect.scalar(plan.array, schema_of(plan.child))
        place = self._q(plan.position) if plan.position else ""
        element, rows = self._q(plan.element.name), self._present(plan.child)
        return self.dialect.unnest(rows, listed, items, element, place, plan.outer)

    def _totals(self, child: Plan, keys: tuple[str, ...], measures: tuple[Measure, ...]) -> str:
        schema, own = schema_of(child), _picked(schema_of(child), keys)
        made = "".join(f"{self._measure(m, schema)} AS {self._q(m.name)}, " for m in measures)
        return (
            f"SELECT {self._kept(own)}{made}CAST(SUM({WEIGHT}) AS BIGINT) AS {WEIGHT} "
            f"FROM {self._sub(child)}{self._grouped(own)}{'' if keys else ' HAVING COUNT(*) > 0'}"
        )

    def _measure(self, measure: Measure, schema: Schema) -> str:
        if measure.function == "product":
            return self._product(measure, schema)
        if measure.column is None:
            return f"CAST(SUM({WEIGHT}) AS BIGINT)"
        column = self._q(measure.column)
        if measure.function == "count":
            weight = f"CASE WHEN {column} IS NULL THEN 0 ELSE {WEIGHT} END"
            return f"CAST(SUM({weight}) AS BIGINT)"
        decimal = decimal_parts(type_in(schema, measure.column))
        value = column if decimal else f"CAST({column} AS {self.dialect.wide_integer})"
        product = self.dialect.times_weight(value, decimal) if decimal else f"{value} * {WEIGHT}"
        if self.dialect.name == "spark":
            product = f"CAST({product} AS {measure.type})"
        return f"CAST(COALESCE(SUM({product}), 0) AS {self.dialect.type_(measure.type)})"

    def _product(self, measure: Measure, schema: Schema) -> str:
        """Totals multiplied in 38 digits; more digits raise on both engines."""
        scale, value = 0, ""
        for name in measure.factors:
            parts = decimal_parts(type_in(schema, name)) or (38, 0)
            factor = f"CAST({self._q(name)} AS DECIMAL(38, {parts[1]}))"
            scale += parts[1]
            wide = f"CAST({value} * {factor} AS DECIMAL(38, {scale}))"
            value = wide if value else factor
        return f"CAST(COALESCE(SUM({value}), 0) AS {self.dialect.type_(measure.type)})"

    def _groups(self, child: Plan, keys: tuple[str, ...]) -> str:
        made = []
        for column in schema_of(child):
            if column.name not in keys:
                name, type_ = self._q(column.name), self.dialect.type_(column.type)
                made.append(f"CAST(COALESCE(SUM({name}), 0) AS {type_}) AS {name}, ")
        own = _picked(schema_of(child), keys)
        having = f" HAVING SUM({WEIGHT}) > 0" if keys else _ALWAYS
        return (
            f"SELECT {self._kept(own)}{''.join(made)}{self._one()} "
            f"FROM {self._sub(child)}{self._grouped(own)}{having}"
        )

    def _partition(
        self, child: Plan, keys: tuple[str, ...], aggregates: tuple[Aggregate, ...]
    ) -> str:
        rows = self.consolidate(self.query(child), schema_of(child), ())
        if any(counts_copies(a.function) for a in aggregates):
            listed = self._list(columns_of(child))
            rows = (
                f"SELECT {listed}{self._one()} FROM ({self.dialect.repeat_rows(rows, listed)}) AS c"
            )
        schema, own = schema_of(child), _picked(schema_of(child), keys)
        made = "".join(
            f"{emit_aggregate(a, schema, self.dialect)} AS {self._q(a.name)}, " for a in aggregates
        )
        return (
            f"SELECT {self._kept(own)}{made}{self._one()} FROM ({rows}) AS q"
            f"{self._grouped(own) or _ALWAYS}"
        )

    def _window(self, child: Plan, keys: tuple[str, ...], columns: tuple[Over, ...]) -> str:
        """Window functions over rows that stand as often as their weight says."""
        rows = self.consolidate(self.query(child), schema_of(child), ())
        listed = self._list(columns_of(child))
        copies = self.dialect.repeat_rows(rows, listed)
        schema = schema_of(child)
        made = "".join(f"{self._over(c, keys, schema)} AS {self._q(c.name)}, " for c in columns)
        return f"SELECT {listed}{made}{self._one()} FROM ({copies}) AS q"

    def _over(self, over: Over, keys: tuple[str, ...], schema: Schema) -> str:
        arguments = ", ".join(self.dialect.scalar(a, schema) for a in over.arguments)
        call = self._call(over, arguments or ("*" if over.function == "count" else ""))
        parts = []
        if keys:
            parts.append(f"PARTITION BY {', '.join(map(self._q, keys))}")
        if over.order:
            placed = emit_order(over.order, lambda name: self._placed(name, schema))
            parts.append(f"ORDER BY {placed}")
        if over.frame:
            parts.append(over.frame)
        call = f"{call} OVER ({' '.join(parts)})"
        return f"CAST({call} AS {self.dialect.type_(over.type)})"

    def _call(self, over: Over, arguments: str) -> str:
        """The engines write IGNORE NULLS on different sides of a parenthesis."""
        skip = " IGNORE NULLS" if over.skip_nulls else ""
        inside, behind = (skip, "") if self.dialect.name == "duckdb" else ("", skip)
        return f"{over.function.upper()}({arguments}{inside}){behind}"

    def _placed(self, name: str, schema: Schema) -> str:
        return self.dialect.sort_key(self._q(name), type_in(schema, name))

    def _restrict(self, child: Plan, to: Plan, on: tuple[tuple[str, str], ...]) -> str:
        columns = self._list(columns_of(child), "c")
        theirs, ours = schema_of(to), schema_of(child)
        keys = ", ".join(
            f"{self.dialect.comparable(self._q(b), type_in(theirs, b))} AS {self._q(f'k.{i}')}"
            for i, (_, b) in enumerate(on)
        )
        if not on:
            rows = f"SELECT 1 FROM {self._sub(to, 'k')}"
            return f"SELECT {columns}c.{WEIGHT} FROM {self._sub(child, 'c')} WHERE EXISTS ({rows})"
        null_safe = self.dialect.null_safe_equal
        same = " AND ".join(
            f"{self.dialect.comparable(f'c.{self._q(a)}', type_in(ours, a))} {null_safe} "
            f"k.{self._q(f'k.{i}')}"
            for i, (a, _) in enumerate(on)
        )
        return (
            f"SELECT {columns}c.{WEIGHT} FROM {self._sub(child, 'c')} {self.dialect.semi_join} "
            f"(SELECT DISTINCT {keys} FROM {self._sub(to)}) AS k ON {same}"
        )

    def _sub(self, plan: Plan, alias: str = "q") -> str:
        return f"({self.query(plan)}) AS {alias}"

    def _present(self, plan: Plan) -> str:
        """As `query`, for rows that something is computed of."""
        rows = self.query(plan)
        return self.consolidate(rows, schema_of(plan), ()) if self.careful else rows

    def _ordered(self, plan: Plan, like: Plan) -> str:
        return f"SELECT {self._list(columns_of(like))}{WEIGHT} FROM {self._sub(plan)}"

    def _columns(self, schema: Schema) -> str:
        return self._list(tuple(c.name for c in schema)) + WEIGHT

    def _list(self, columns: tuple[str, ...], alias: str = "") -> str:
        """Columns each followed by a comma, so that none at all is right too."""
        return "".join(f"{alias}{alias and '.'}{self._q(name)}, " for name in columns)

    def _kept(self, keys: Schema) -> str:
        """Columns that rows are grouped by, each followed by a comma."""
        return "".join(
            f"{name}, "
            if self.dialect.comparable(name, c.type) == name
            else f"ANY_VALUE({name}) AS {name}, "
            for c, name in ((c, self._q(c.name)) for c in keys)
        )

    def _grouped(self, keys: Schema) -> str:
        by = ", ".join(self.dialect.comparable(self._q(c.name), c.type) for c in keys)
        return f" GROUP BY {by}" if by else ""

    def _one(self) -> str:
        return f"CAST(1 AS BIGINT) AS {WEIGHT}"

    def _nulls(self, schema: Schema) -> str:
        made = (f"CAST(NULL AS {self.dialect.type_(c.type)}) AS {self._q(c.name)}" for c in schema)
        return ", ".join((*made, f"CAST(0 AS BIGINT) AS {WEIGHT}"))

    def _row(self, schema: Schema, row: tuple[str, ...]) -> str:
        made = (
            f"CAST({self.dialect.scalar(text, ())} AS {self.dialect.type_(column.type)}) "
            f"AS {self._q(column.name)}"
            for text, column in zip(row, schema, strict=True)
        )
        return f"SELECT {', '.join((*made, self._one()))}"

    def _relation(self, name: str) -> str:
        return self.relations.get(name) or self._q(name)

    def _q(self, name: str) -> str:
        return self.dialect.quote(name)


def _picked(schema: Schema, names: tuple[str, ...]) -> Schema:
    """Some columns of a schema, in the order of their names."""
    return tuple(Column(name, type_in(schema, name)) for name in names)
