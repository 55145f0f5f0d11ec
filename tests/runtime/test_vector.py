"""What is computed on columns is what the plan denotes, and what DuckDB answers, to the bit."""

from __future__ import annotations

from collections import Counter
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import check_each
from evaluation import WORKSPACE, evaluate
from everview.differentiate.derive import derive
from everview.engines.duckdb import functions
from everview.expr.coercion import decimal_result
from everview.expr.scalar import parse, text
from everview.expr.type_inference import Typed, annotate
from everview.expr.types import decimal_parts
from everview.plan.build import add, filter_, groups, negate, partition, restrict, totals, window
from everview.plan.nodes import Aggregate, Change, Measure, Order, Over, Plan, Ref, Source
from everview.plan.traverse import schema_of, transform, walk
from everview.program.steps import change_name
from everview.runtime.vector import decimals, join, scalars
from everview.runtime.vector.aggregate import sum_by_key
from everview.runtime.vector.batches import batch
from everview.runtime.vector.errors import Unsupported
from everview.runtime.vector.join import matching_pairs
from everview.runtime.vector.operators import VectorEvaluator
from sqlgen import grid
from sqlgen.examples import EXAMPLES
from sqlgen.test_parity import ERROR, NULLED, _bits, _duckdb_answers, by_construct
from strategies import EVERY, SIGNED, T, as_arrow, as_bag, changes, one_of_each, plans, worlds

COLUMNS = VectorEvaluator(WORKSPACE.sql.constant)


def on_columns(plan, world, change):
    """The value of a plan, None where the database is asked."""

    def named(node: Plan) -> Plan:
        match node:
            case Source(name, schema, _):
                return Ref(name, schema)
            case Change(name, schema):
                return Ref(change_name(name), schema)
            case _:
                return node

    known = {}
    for node in walk(plan):
        if isinstance(node, Source):
            known[node.name] = batch(as_arrow(world[node.name], node.schema))
        if isinstance(node, Change):
            known[change_name(node.name)] = batch(as_arrow(change[node.name], node.schema))
    try:
        rows = COLUMNS.evaluate(transform(plan, named), known, consolidated=True)
    except (Unsupported, pa.ArrowException):
        return None
    assert rows.schema.names[:-1] == [column.name for column in schema_of(plan)]
    return as_bag(pa.Table.from_batches([rows]))


@given(data=st.data(), plan=plans(), world=worlds())
def test_a_derivative_on_columns_is_its_meaning(data, plan, world):
    change = data.draw(changes(world))
    for each in (plan, derive(plan)):
        found = on_columns(each, world, change)
        assert found is None or found == evaluate(each, world, change)


@given(data=st.data(), each=one_of_each(SIGNED, (*EVERY, "restrict")), world=worlds())
def test_each_operator_on_columns_is_its_meaning(data, each, world):
    change = data.draw(changes(world))
    for plan in each:
        found = on_columns(plan, world, change)
        assert found is None or found == evaluate(plan, world, change)


def test_most_plans_are_known_on_columns():
    """The laws above would hold of an evaluator that knows nothing."""
    seen: dict[str, int] = {}

    @given(data=st.data(), each=one_of_each(SIGNED, (*EVERY, "restrict")), world=worlds())
    def count(data, each, world):
        change = data.draw(changes(world))
        for kind, plan in zip((*EVERY, "restrict"), each, strict=True):
            seen[kind] = seen.get(kind, 0) + (on_columns(plan, world, change) is not None)

    count()
    known = {kind for kind, times in seen.items() if times}
    assert known >= {
        *("filter", "map", "add", "subtract", "join", "match", "distinct", "positive"),
        *("surplus", "restrict", "count", "extremes"),
    }


@pytest.mark.parametrize("many", [0, join.SORT_PROBES_MIN_KEYS])
@pytest.mark.parametrize("nulls", [True, False])
@given(data=st.data())
def test_pairs_are_all_places_with_equal_keys(nulls, many, data):
    values = data.draw(st.sampled_from([st.integers(0, 3), st.none() | st.integers(0, 2)]))
    left, right = (data.draw(st.lists(values, min_size=1, max_size=6)) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "SORT_PROBES_MIN_KEYS", many)
        at, there = matching_pairs(
            *([pa.array(each, pa.int32())] for each in (left, right)), nulls=nulls
        )
    assert sorted(zip(at.tolist(), there.tolist(), strict=True)) == [
        (i, j)
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if a == b and (nulls or a is not None)
    ]


@given(world=worlds(), data=st.data())
def test_rows_are_numbered_in_their_order(world, data):
    present = filter_(T, "NOT `a` IS NULL AND NOT `b` IS NULL")
    order = tuple(Order(name, data.draw(st.booleans())) for name in ("a", "b"))
    numbered = window(present, ("x",), (Over("n", "int", "row_number", (), order),))
    found = on_columns(numbered, world, world)
    assert found is not None
    assert found == evaluate(numbered, world)


@pytest.mark.parametrize("keys", [(), ("x",), ("x", "b")])
@pytest.mark.parametrize("present", ["TRUE", "NOT `a` IS NULL", "`b` IS NULL"])
@given(world=worlds())
def test_the_least_and_the_greatest_values_of_groups_are_found(keys, present, world):
    asked = (("least", "min"), ("most", "max"))
    aggregates = tuple(Aggregate(name, "int", function, "a") for name, function in asked)
    extremes = partition(filter_(T, present), keys, aggregates)
    found = on_columns(extremes, world, world)
    assert found is not None
    assert found == evaluate(extremes, world)


@pytest.mark.parametrize("keys", [("a",), ("x", "b"), ()])
@given(data=st.data(), world=worlds())
def test_groups_before_and_after_are_told_apart(keys, data, world):
    """Whatever the rows: some groups may have fewer rows than none."""
    change = Change("t", T.schema)
    sides = data.draw(st.permutations([T, change, add(T, change), negate(change)]))
    measures = (Measure("n", "bigint", "count", "a"), Measure("s", "decimal(38,2)", "sum", "x"))
    one, other, *more = (totals(each, keys, measures) for each in sides)
    more = more[: data.draw(st.integers(0, 2))]
    after, before = groups(add(one, *more), keys), groups(add(other, *more[1:]), keys)
    asked = restrict(add(after, negate(before)), change, ()), add(after, negate(before))
    whole = add(restrict(after, change, ()), negate(restrict(before, change, ())))
    delta = data.draw(changes(world) | st.just({**world, "t": Counter()}))
    for plan in (*asked, whole):
        found = on_columns(plan, world, delta)
        assert found is not None
        assert found == evaluate(plan, world, delta)


SCHEMA = grid.schema()
TEXTS = tuple(dict.fromkeys((*(text(parse(example)) for example in EXAMPLES), *NULLED)))
CELLS = batch(grid.table().select([column.name for column in SCHEMA]))


def compiled(each: str) -> scalars.Compute | None:
    try:
        return scalars.compile_scalar(each, SCHEMA, WORKSPACE.sql.constant)[0]
    except (Unsupported, pa.ArrowException):
        return None


KNOWN = [each for each in TEXTS if compiled(each) is not None]
CONSTRUCTS = by_construct(KNOWN)


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    functions.define(connection)
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("grid", grid.table())
    return connection


def _value(compute: scalars.Compute, row: int) -> Any:
    """The bits of a value, ERROR where the database is asked."""
    try:
        found = compute(CELLS.slice(row, 1))
    except (Unsupported, pa.ArrowException):
        return ERROR
    return _bits(_plain(found if isinstance(found, pa.Scalar) else found[0]))


def _plain(value: pa.Scalar) -> Any:
    if pa.types.is_date32(value.type):
        value = value.cast(pa.int32())
    if pa.types.is_timestamp(value.type):
        value = value.cast(pa.int64())
    return value.as_py()


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_a_scalar_on_columns_has_the_value_that_duckdb_gives(construct):
    def agrees(each: str) -> None:
        compute = compiled(each)
        assert compute is not None
        expected = _duckdb_answers(_connection(), each).values
        found = [_value(compute, row) for row in range(CELLS.num_rows)]
        for ours, theirs in zip(found, expected, strict=True):
            assert ours in (ERROR, theirs)
        assert any(value != ERROR for value in found) or all(value == ERROR for value in expected)
        _agrees_of_many_rows(compute, found)

    check_each(CONSTRUCTS[construct], agrees)


def _agrees_of_many_rows(compute: scalars.Compute, of_each: list[Any]) -> None:
    """Of many rows at once, a scalar has the values that it has of each row by itself."""
    known = [row for row, value in enumerate(of_each) if value != ERROR]
    if known:
        found = compute(CELLS.take(pa.array(known)))
        for place, row in enumerate(known):
            value = found if isinstance(found, pa.Scalar) else found[place]
            assert _bits(_plain(value)) == of_each[row]


def test_every_construct_on_columns_is_among_the_examples():
    used: set[str] = set()

    def collect(node: Typed) -> None:
        used.add(node.name)
        for arg in node.args:
            collect(arg)

    for each in KNOWN:
        collect(annotate(each, SCHEMA))
    assert set(scalars.CONSTRUCTS) <= used


precisions = st.integers(1, 38).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, p)))


@given(data=st.data(), left=precisions, right=precisions)
def test_a_quotient_of_decimals_is_rounded_half_away_from_zero(data, left, right):
    to = decimal_result("/", left, right)
    over, under = (data.draw(st.integers(-(10**p) + 1, 10**p - 1)) for p, _ in (left, right))
    with localcontext(prec=120):
        a, b = Decimal(over).scaleb(-left[1]), Decimal(under).scaleb(-right[1])
        operands = (pa.array([a], pa.decimal128(*left)), pa.array([b], pa.decimal128(*right)))
        types = tuple(f"decimal({p},{s})" for p, s in (left, right))
        try:
            (found,) = decimals.quotient(types, to)(*operands).to_pylist()
        except (Unsupported, pa.ArrowInvalid):
            return
        scale = decimal_parts(to)[1]
        assert found == (a / b).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP)


@given(
    cells=st.lists(
        st.tuples(st.none() | st.integers(-(10**30) + 1, 10**30 - 1), st.integers(-3, 3)),
        min_size=1,
        max_size=6,
    ),
    digits=st.sampled_from([5, 18, 24, 25, 30]),
    heavy=st.booleans(),
)
def test_decimals_are_added_up_as_often_as_their_weights_say(cells, digits, heavy):
    kept = [(None if v is None else v % 10**digits, w * (10**9 if heavy else 1)) for v, w in cells]
    values = pa.array(
        [None if v is None else Decimal(v) for v, _ in kept], pa.decimal128(digits, 0)
    )
    try:
        products = decimals.times_weights(values, pa.array([w for _, w in kept], pa.int64()))
    except pa.ArrowInvalid:
        assert heavy
        return
    found = pa.compute.sum(products).as_py()
    with localcontext(prec=90):
        assert (found or 0) == sum(Decimal(v) * w for v, w in kept if v is not None)


def test_sums_beyond_64_bits_are_left_to_the_database():
    rows = pa.record_batch({"k": [1, 1], "_w": [2**62, 2**62]})
    with pytest.raises(Unsupported):
        sum_by_key(rows, ["k"], rows.schema)
    least = pa.record_batch({"k": [1, 1], "_w": [-(2**63), 1]})
    with pytest.raises(Unsupported):
        sum_by_key(least, ["k"], least.schema)
