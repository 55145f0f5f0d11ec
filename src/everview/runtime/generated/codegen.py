"""A plan as one Python function over the rows of small relations.

The function is straight-line: operators that need all rows of a child (a join's right side, totals,
groups) fill a dict, and all others are nested loops in between. Names in it are numbers with a
letter and constants are handed over as values, so nothing that a user wrote is in it. Condition of
correctness: it gives the answer of the vectorized operators, or raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from everview.expr import scalar
from everview.expr.types import INTEGERS, Column, Schema, Type, decimal_parts, names, type_in
from everview.plan.nodes import (
    Add,
    Distinct,
    Empty,
    Filter,
    Groups,
    Join,
    Map,
    Measure,
    Negate,
    Plan,
    Positive,
    Ref,
    Restrict,
    Totals,
)
from everview.plan.traverse import schema_of
from everview.runtime.generated.scalars import Writer, day, divide, write_scalar
from everview.runtime.generated.values import WEIGHT_COLUMN, is_exact, range_of
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.scalars import Fold

Values: TypeAlias = list[Any]
ReadColumn: TypeAlias = Callable[[str, Column], Values]
"""The values of a column of a relation, of which the weight is one."""
Generated: TypeAlias = Callable[[ReadColumn], list[tuple[Any, ...]]]
"""The rows of a plan, the weight of each last."""
_Then: TypeAlias = Callable[[Mapping[str, str], str, int], None]
"""Writes what is done with a row: its variables by column, its weight, and how deep it is."""

MAX_PAIRS = 100_000
"""A join of more pairs is left to the vectorized operators."""
_CONSOLIDATED = Distinct | Positive | Groups | Totals


def generate(plan: Plan, fold: Fold, *, consolidated: bool) -> Generated:
    """A function for a plan; `Unsupported` where a part of it is not known here.

    `fold` gives the value of an expression without columns.
    """
    text, constants = python_of(plan, fold, consolidated=consolidated)
    scope: dict[str, Any] = {
        **constants,
        "Unsupported": Unsupported,
        "divide": divide,
        "day": day,
        "__builtins__": {"zip": zip, "abs": abs, "set": set},
    }
    exec(compile(text, "<plan>", "exec"), scope)
    function: Generated = scope["rows"]
    return function


def python_of(plan: Plan, fold: Fold, *, consolidated: bool) -> tuple[str, dict[str, Any]]:
    """The text of the function for a plan, and the constants that it reads."""
    code = _Code(Writer(fold))
    schema = schema_of(plan)
    body = code.writer.lines
    if consolidated and not isinstance(plan, _CONSOLIDATED):
        code.summed(plan, schema, "!= 0", code.appended(schema, "out"))
    else:
        code.rows(plan, frozenset(names(schema)), code.appended(schema, "out"))
    code.writer.lines = ["def rows(read):"]
    for (relation, column), name in code.reads.items():
        constants = (code.writer.constant(relation), code.writer.constant(column))
        code.writer.line(1, f"{name} = read({', '.join(constants)})")
    code.writer.line(1, "out = []")
    lines = [*code.writer.lines, *body, "    return out"]
    return "\n".join(lines) + "\n", code.writer.constants


@dataclass(slots=True)
class _Code:
    """What is written so far; loops of operators follow each other at depth 1."""

    writer: Writer
    reads: dict[tuple[str, Column], str] = field(default_factory=dict)
    """The variable of each column that is read."""

    def appended(self, schema: Schema, to: str) -> _Then:
        """Append a row to a list, the weight last."""

        def then(row: Mapping[str, str], weight: str, depth: int) -> None:
            values = [row[name] for name in names(schema)]
            self.writer.line(depth, f"{to}.append({_tuple([*values, weight])})")

        return then

    def rows(self, plan: Plan, read: frozenset[str], then: _Then) -> None:
        """Write the loop over the rows of a plan of which at least some columns are read."""
        match plan:
            case Empty():
                return
            case Ref(name, schema):
                self._ref(name, _kept(schema, read), then)
            case Filter(child, predicate):
                self._filter(child, predicate, read, then)
            case Map():
                self._map(plan, then)
            case Add():
                self._add(plan, read, then)
            case Negate(child):
                self.rows(child, read, lambda row, weight, depth: then(row, f"-{weight}", depth))
            case Join():
                self._join(plan, read, then)
            case Restrict():
                self._restrict(plan, read, then)
            case Totals():
                self._totals(plan, then)
            case Groups():
                self._groups(plan, then)
            case Distinct(child):
                once: _Then = lambda row, _, depth: then(row, "1", depth)  # noqa: E731
                self.summed(child, schema_of(child), "> 0", once)
            case Positive(child):
                self.summed(child, schema_of(child), "> 0", then)
            case _:
                raise Unsupported(type(plan).__name__)

    def summed(self, plan: Plan, schema: Schema, test: str, then: _Then) -> None:
        """Rows with the weights of equal ones added, where that passes a test."""
        sums, key, total = (self.writer.fresh() for _ in range(3))
        self.writer.line(1, f"{sums} = {{}}")

        def add(row: Mapping[str, str], weight: str, depth: int) -> None:
            self.writer.line(depth, f"{key} = {_tuple(row[name] for name in names(schema))}")
            self.writer.line(depth, f"{sums}[{key}] = {sums}.get({key}, 0) + {weight}")

        self.rows(plan, frozenset(names(schema)), add)
        row = {name: self.writer.fresh() for name in names(schema)}
        self.writer.line(1, f"for {_tuple(row.values())}, {total} in {sums}.items():")
        self.writer.line(2, f"if {total} {test}:")
        then(row, total, 3)

    def _ref(self, relation: str, kept: Schema, then: _Then) -> None:
        row = {column.name: self.writer.fresh() for column in kept}
        weight = self.writer.fresh()
        columns = [self._column(relation, column) for column in (*kept, WEIGHT_COLUMN)]
        self.writer.line(1, f"for {_tuple([*row.values(), weight])} in zip({', '.join(columns)}):")
        then(row, weight, 2)

    def _column(self, relation: str, column: Column) -> str:
        if not is_exact(column.type):
            raise Unsupported(column.type)
        if (relation, column) not in self.reads:
            self.reads[relation, column] = f"r{len(self.reads)}"
        return self.reads[relation, column]

    def _filter(self, child: Plan, predicate: str, read: frozenset[str], then: _Then) -> None:
        needed = read | scalar.columns(predicate)
        self.rows(child, needed, self._tested(predicate, schema_of(child), then))

    def _tested(self, predicate: str, schema: Schema, then: _Then) -> _Then:
        def test(row: Mapping[str, str], weight: str, depth: int) -> None:
            value, type_ = write_scalar(predicate, _kept(schema, row), row, self.writer, depth)
            if type_ != "boolean":
                raise Unsupported(type_)
            self.writer.line(depth, f"if {value}:")
            then(row, weight, depth + 1)

        return test

    def _map(self, plan: Map, then: _Then) -> None:
        schema = schema_of(plan.child)

        def mapped(row: Mapping[str, str], weight: str, depth: int) -> None:
            fresh: dict[str, str] = {}
            for output in plan.outputs:
                if not is_exact(output.type):
                    raise Unsupported(output.type)
                column = scalar.as_column(output.scalar)
                if column is not None and type_in(schema, column) == output.type:
                    fresh[output.name] = row[column]
                    continue
                value, type_ = write_scalar(
                    output.scalar, _kept(schema, row), row, self.writer, depth
                )
                if type_ != output.type:
                    raise Unsupported(f"{type_} for {output.type}")
                fresh[output.name] = value
            then(fresh, weight, depth)

        read = frozenset[str]().union(*(scalar.columns(each.scalar) for each in plan.outputs))
        self.rows(plan.child, read, mapped)

    def _add(self, plan: Add, read: frozenset[str], then: _Then) -> None:
        """All summands are gathered, so that what follows is written once."""
        kept = _kept(schema_of(plan), read)
        gathered = self.writer.fresh()
        self.writer.line(1, f"{gathered} = []")
        for part in _summands(plan):
            if _types(_kept(schema_of(part), read)) != _types(kept):
                raise Unsupported("summands of different types")
            self.rows(part, read, self.appended(kept, gathered))
        row = {column.name: self.writer.fresh() for column in kept}
        weight = self.writer.fresh()
        self.writer.line(1, f"for {_tuple([*row.values(), weight])} in {gathered}:")
        then(row, weight, 2)

    def _join(self, plan: Join, read: frozenset[str], then: _Then) -> None:
        """The right side by its keys, then a loop over the left one."""
        both = read | scalar.columns(plan.residual) if plan.residual else read
        left, right = schema_of(plan.left), schema_of(plan.right)
        ours, theirs = ([pair[side] for pair in plan.on] for side in (0, 1))
        _must_be_comparable(left, ours, right, theirs)
        kept = _kept(right, both)
        index, found = self.writer.fresh(), self.writer.fresh()
        self.writer.line(1, f"{index} = {{}}")
        self.writer.line(1, f"{found} = 0")

        def build(row: Mapping[str, str], weight: str, depth: int) -> None:
            if plan.on and not plan.nulls:
                valid = " and ".join(f"{row[name]} is not None" for name in theirs)
                self.writer.line(depth, f"if {valid}:")
                depth += 1
            value = _tuple([*(row[column.name] for column in kept), weight])
            key = _tuple(row[name] for name in theirs)
            self.writer.line(depth, f"{index}.setdefault({key}, []).append({value})")

        def probe(row: Mapping[str, str], weight: str, depth: int) -> None:
            more = {column.name: self.writer.fresh() for column in kept}
            factor = self.writer.fresh()
            key = _tuple(row[name] for name in ours)
            pattern = _tuple([*more.values(), factor])
            self.writer.line(depth, f"for {pattern} in {index}.get({key}, ()):")
            self.writer.line(depth + 1, f"{found} += 1")
            self.writer.line(depth + 1, f"if {found} > {MAX_PAIRS}:")
            self.writer.line(depth + 2, "raise Unsupported")
            product = self.writer.assigned(depth + 1, f"{weight} * {factor}")
            pair = {**more, **row}
            if plan.residual:
                self._tested(plan.residual, schema_of(plan), then)(pair, product, depth + 1)
            else:
                then(pair, product, depth + 1)

        self.rows(plan.right, frozenset(names(kept)) | frozenset(theirs), build)
        self.rows(plan.left, frozenset(names(_kept(left, both))) | frozenset(ours), probe)

    def _restrict(self, plan: Restrict, read: frozenset[str], then: _Then) -> None:
        child, to = schema_of(plan.child), schema_of(plan.to)
        ours, theirs = ([pair[side] for pair in plan.on] for side in (0, 1))
        _must_be_comparable(child, ours, to, theirs)
        keys = self.writer.fresh()
        self.writer.line(1, f"{keys} = set()")

        def build(row: Mapping[str, str], _weight: str, depth: int) -> None:
            self.writer.line(depth, f"{keys}.add({_tuple(row[name] for name in theirs)})")

        def probe(row: Mapping[str, str], weight: str, depth: int) -> None:
            self.writer.line(depth, f"if {_tuple(row[name] for name in ours)} in {keys}:")
            then(row, weight, depth + 1)

        self.rows(plan.to, frozenset(theirs), build)
        self.rows(plan.child, read | frozenset(ours), probe)

    def _totals(self, plan: Totals, then: _Then) -> None:
        """The measures of each group that has rows, even where their weights cancel."""
        schema = schema_of(plan.child)
        for measure in plan.measures:
            _must_be_exact(measure, schema)
        adds = [*(_added(measure) for measure in plan.measures), lambda _, weight: weight]
        types = [*(measure.type for measure in plan.measures), "bigint"]
        read = frozenset((*plan.keys, *(name for m in plan.measures for name in m.reads)))
        groups = self._grouped(plan.child, plan.keys, read, adds)
        self._each_group(groups, schema_of(plan), types, then)

    def _groups(self, plan: Groups, then: _Then) -> None:
        """Totals of equal keys added up: the groups of positive weight; without keys always one."""
        schema = schema_of(plan)
        measures = [column for column in schema if column.name not in plan.keys]
        if any(each.type != "bigint" and not decimal_parts(each.type) for each in measures):
            raise Unsupported("accumulators that are not exact")
        adds = [*(_plain(column.name) for column in measures), lambda _, weight: weight]
        groups = self._grouped(plan.child, plan.keys, frozenset(names(schema)), adds)
        if not plan.keys:
            self.writer.line(1, f"{groups}.setdefault((), [0{', 0' * len(measures)}])")

        def kept(row: Mapping[str, str], weight: str, depth: int) -> None:
            if plan.keys:
                self.writer.line(depth, f"if {weight} > 0:")
                depth += 1
            then(row, "1", depth)

        types = [*(column.type for column in measures), "bigint"]
        self._each_group(groups, (*_kept_of(schema, plan.keys), *measures), types, kept)

    def _grouped(
        self,
        child: Plan,
        keys: Sequence[str],
        read: frozenset[str],
        adds: Sequence[Callable[[Mapping[str, str], str], str]],
    ) -> str:
        """The name of a dict from keys to the sums of what each row adds."""
        groups, key, group = (self.writer.fresh() for _ in range(3))
        self.writer.line(1, f"{groups} = {{}}")

        def add(row: Mapping[str, str], weight: str, depth: int) -> None:
            self.writer.line(depth, f"{key} = {_tuple(row[name] for name in keys)}")
            self.writer.line(depth, f"{group} = {groups}.get({key})")
            self.writer.line(depth, f"if {group} is None:")
            self.writer.line(depth + 1, f"{group} = {groups}[{key}] = [0{', 0' * (len(adds) - 1)}]")
            for place, added in enumerate(adds):
                self.writer.line(depth, f"{group}[{place}] += {added(row, weight)}")

        self.rows(child, read, add)
        return groups

    def _each_group(self, groups: str, schema: Schema, types: Sequence[str], then: _Then) -> None:
        """Loop over groups: `schema` has their keys, then the sums, whose weight is the last."""
        count = len(types) - 1
        row = {column.name: self.writer.fresh() for column in schema}
        variables, weight = [*row.values()], self.writer.fresh()
        keys, sums = variables[: len(schema) - count], variables[len(schema) - count :]
        pattern = f"{_tuple(keys)}, {_tuple([*sums, weight])}" if keys else _tuple([*sums, weight])
        of = f"{groups}.items()" if keys else f"{groups}.values()"
        self.writer.line(1, f"for {pattern} in {of}:")
        for value, type_ in zip([*sums, weight], types, strict=True):
            self.writer.within(2, value, type_)
        then(row, weight, 2)


def _added(measure: Measure) -> Callable[[Mapping[str, str], str], str]:
    """What a row adds to a measure, as Python."""
    if measure.function == "product":
        return lambda row, _: " * ".join(f"({row[name]} or 0)" for name in measure.factors)
    column = measure.column
    if column is None:
        return lambda _, weight: weight
    if measure.function == "count":
        return lambda row, weight: f"0 if {row[column]} is None else {weight}"
    return lambda row, weight: f"0 if {row[column]} is None else {row[column]} * {weight}"


def _plain(name: str) -> Callable[[Mapping[str, str], str], str]:
    return lambda row, _: f"{row[name]} or 0"


def _must_be_exact(measure: Measure, schema: Schema) -> None:
    """Unsupported unless the units of what is added are those of the measure."""
    scales = [_scale(type_in(schema, name)) for name in measure.reads]
    if measure.function == "count" or not measure.reads:
        scales = [0]
    if range_of(measure.type) is None or None in scales:
        raise Unsupported(measure.type)
    if sum(scale for scale in scales if scale is not None) != _scale(measure.type):
        raise Unsupported(measure.type)


def _scale(type_: Type) -> int | None:
    """The digits behind the point of an exact number."""
    parts = decimal_parts(type_)
    return parts[1] if parts else 0 if type_ in INTEGERS else None


def _must_be_comparable(
    left: Schema, ours: Sequence[str], right: Schema, theirs: Sequence[str]
) -> None:
    for our, their in zip(ours, theirs, strict=True):
        type_ = type_in(left, our)
        if type_ != type_in(right, their) or not is_exact(type_):
            raise Unsupported("keys of different types")


def _summands(plan: Plan) -> list[Plan]:
    return [*_summands(plan.left), *_summands(plan.right)] if isinstance(plan, Add) else [plan]


def _kept(schema: Schema, read: Iterable[str]) -> Schema:
    wanted = frozenset(read)
    return tuple(column for column in schema if column.name in wanted)


def _kept_of(schema: Schema, ordered: Sequence[str]) -> Schema:
    by_name = {column.name: column for column in schema}
    return tuple(by_name[name] for name in ordered)


def _types(schema: Schema) -> dict[str, str]:
    return {column.name: column.type for column in schema}


def _tuple(parts: Iterable[str]) -> str:
    """A tuple as Python, also as a pattern."""
    return f"({''.join(f'{part}, ' for part in parts).rstrip()})"
