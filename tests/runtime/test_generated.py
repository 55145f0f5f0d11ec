"""What generated Python computes is what the plan denotes, and what DuckDB answers, to the bit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import check_each
from evaluation import WORKSPACE, evaluate
from everview.differentiate.derive import derive
from everview.engines.duckdb.evaluator import duckdb_workspace
from everview.expr.types import Column
from everview.plan.build import add, groups, join, map_, negate, restrict, totals
from everview.plan.nodes import Change, Measure, Output, Plan, Ref, Source
from everview.plan.traverse import schema_of, transform, walk
from everview.program.steps import Compute, change_name
from everview.runtime.arrow_types import arrow_type
from everview.runtime.generated import codegen, evaluator, scalars
from everview.runtime.generated.values import column_values, to_arrow, to_batch
from everview.runtime.vector.batches import batch
from everview.runtime.vector.errors import Unsupported
from everview.runtime.workspace import Evaluator
from runtime.test_vector import CELLS, SCHEMA, TEXTS, _connection, _plain
from sqlgen.test_parity import ERROR, _bits, _duckdb_answers, by_construct
from strategies import EVERY, SIGNED, T, as_arrow, as_bag, changes, one_of_each, plans, worlds

FOLD = WORKSPACE.sql.constant
UNKNOWN = (Unsupported, ArithmeticError, ValueError, pa.ArrowException)


def by_rows(plan, world, change):
    """The value of a plan, None where vector operators are asked."""

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
    made, schema = transform(plan, named), schema_of(plan)
    try:
        function = codegen.generate(made, FOLD, consolidated=True)
        rows = function(lambda name, column: column_values(known[name], column))
    except UNKNOWN:
        return None
    columns = [list(each) for each in zip(*rows, strict=True)] or [[]] * (len(schema) + 1)
    values = dict(zip((*schema, codegen.WEIGHT_COLUMN), columns, strict=True))
    return as_bag(pa.Table.from_batches([to_batch(values, schema)]))


@given(data=st.data(), plan=plans(), world=worlds())
def test_a_derivative_by_rows_is_its_meaning(data, plan, world):
    change = data.draw(changes(world))
    for each in (plan, derive(plan)):
        found = by_rows(each, world, change)
        assert found is None or found == evaluate(each, world, change)


@given(data=st.data(), each=one_of_each(SIGNED, (*EVERY, "restrict")), world=worlds())
def test_each_operator_by_rows_is_its_meaning(data, each, world):
    change = data.draw(changes(world))
    for plan in each:
        found = by_rows(plan, world, change)
        assert found is None or found == evaluate(plan, world, change)


def test_most_plans_are_known_by_rows():
    """The laws above would hold of code that knows nothing."""
    seen: dict[str, int] = {}

    @given(data=st.data(), each=one_of_each(SIGNED, (*EVERY, "restrict")), world=worlds())
    def count(data, each, world):
        change = data.draw(changes(world))
        for kind, plan in zip((*EVERY, "restrict"), each, strict=True):
            seen[kind] = seen.get(kind, 0) + (by_rows(plan, world, change) is not None)

    count()
    assert {kind for kind, times in seen.items() if times} >= {
        *("filter", "map", "add", "subtract", "join", "match", "distinct", "positive"),
        *("surplus", "restrict", "count"),
    }


MEASURES = (
    Measure("n", "bigint", "count"),
    Measure("m", "bigint", "count", "a"),
    Measure("s", "decimal(38,2)", "sum", "x"),
)


@pytest.mark.parametrize("keys", [("a",), ("x", "b"), ()])
@given(data=st.data(), world=worlds())
def test_groups_of_totals_by_rows_are_their_meaning(keys, data, world):
    change = data.draw(changes(world))
    delta = totals(Change("t", T.schema), keys, MEASURES)
    old = totals(T, keys, MEASURES)
    touched = restrict(old, delta, tuple((key, key) for key in keys))
    for plan in (delta, groups(add(touched, delta), keys), negate(groups(touched, keys))):
        found = by_rows(plan, world, change)
        assert found is not None
        assert found == evaluate(plan, world, change)


@pytest.mark.parametrize("nulls", [True, False])
@given(world=worlds())
def test_pairs_by_rows_are_those_of_equal_keys(nulls, world):
    other = map_(T, tuple(Output(f"r.{c.name}", c.type, f"`{c.name}`") for c in T.schema))
    for on in ((("a", "r.a"),), (("b", "r.a"), ("x", "r.x")), ()):
        plan = join(T, other, on, "`a` < `r.b`", nulls=nulls)
        found = by_rows(plan, world, world)
        assert found is not None
        assert found == evaluate(plan, world)


def compiled(each: str) -> tuple[codegen.Generated, str] | None:
    type_ = scalars.annotate(each, SCHEMA).type or ""
    try:
        plan = map_(Ref("grid", SCHEMA), (Output("v", type_, each),))
        return codegen.generate(plan, FOLD, consolidated=False), type_
    except UNKNOWN:
        return None


KNOWN = [each for each in TEXTS if compiled(each) is not None]
CONSTRUCTS = by_construct(KNOWN)


def _values(function: codegen.Generated, type_: str, rows: pa.RecordBatch) -> list[Any]:
    """The bits of each value; ERROR where vector operators are asked."""
    weighted = pa.record_batch(
        [*rows.columns, pa.array([1] * rows.num_rows, pa.int64())],
        names=[*rows.schema.names, "_w"],
    )
    try:
        found = [v for v, _ in function(lambda _, column: column_values(weighted, column))]
    except UNKNOWN:
        return [ERROR] * rows.num_rows
    return [_bits(_plain(each)) for each in to_arrow(found, arrow_type(type_))]


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_a_generated_scalar_has_the_value_that_duckdb_gives(construct):
    def agrees(each: str) -> None:
        function, type_ = compiled(each)
        expected = _duckdb_answers(_connection(), each).values
        found = _values(function, type_, CELLS)
        if ERROR in found:
            rows = (CELLS.slice(row, 1) for row in range(CELLS.num_rows))
            found = [_values(function, type_, row)[0] for row in rows]
        for ours, theirs in zip(found, expected, strict=True):
            assert ours in (ERROR, theirs)
        assert any(value != ERROR for value in found) or all(value == ERROR for value in expected)

    check_each(CONSTRUCTS[construct], agrees)


def test_every_generated_construct_is_among_the_examples():
    used: set[str] = set()

    def collect(node) -> None:
        used.add(node.name)
        for arg in node.args:
            collect(arg)

    for each in KNOWN:
        collect(scalars.annotate(each, SCHEMA))
    assert scalars.CONSTRUCTS.keys() <= used


MOST = Decimal(f"{'9' * 32}.{'9' * 6}")
VALUES = {
    "tinyint": [-128, None, 127],
    "bigint": [-(2**63), None, 2**63 - 1],
    "decimal(38,6)": [
        Decimal(f"{sign}{'9' * 32}.{'9' * 6}") if sign else None for sign in ("+", "", "-")
    ],
    "string": ["", None, "ß€𝄞"],
    "binary": [b"", None, b"\xff"],
    "boolean": [True, None, False],
    "date": [-719162, None, 2932896],
    "timestamp": [-1, None, 1],
}


@pytest.mark.parametrize("type_", VALUES)
def test_values_come_back_as_they_were(type_):
    plain = {"date": pa.int32(), "timestamp": pa.int64()}.get(type_, arrow_type(type_))
    array = pa.array(VALUES[type_], plain).cast(arrow_type(type_))
    for rows in (array, array[1:], array[:1], array[:0], pa.concat_arrays([array[2:], array[:1]])):
        given_ = pa.record_batch([rows], names=["c"])
        assert to_arrow(column_values(given_, Column("c", type_)), rows.type).equals(rows)


C = (Column("k", "bigint"), Column("c", "bigint"))
TOTAL = totals(Ref("a", C), ("k",), (Measure("s", "bigint", "sum", "c"),))


@pytest.mark.parametrize(
    ("values", "by"),
    [
        ([1, 2, None], Evaluator.GENERATED),
        ([2**62, 2**62, 1], Evaluator.SQL),
        ([1] * 201, Evaluator.VECTOR),
    ],
)
def test_what_generated_code_does_not_compute_others_do(values, by, monkeypatch):
    """A sum beyond 64 bits is an error, whoever computes it, and many rows are for vectors."""
    monkeypatch.setattr(evaluator, "GENERATE_AFTER", 1)
    workspace = duckdb_workspace()
    rows = {"k": pa.array([1] * len(values)), "c": pa.array(values, pa.int64())}
    workspace.register("a", pa.table({**rows, "_w": [1] * len(values)}))
    step = Compute("made", TOTAL)
    if by is Evaluator.SQL:
        with pytest.raises(Exception, match="does not fit its type"):
            workspace.compute(step)
    else:
        assert workspace.compute(step) is by
        found = workspace.table("made", schema_of(TOTAL)).to_pylist()
        assert found == [{"k": 1, "s": sum(v or 0 for v in values), "_w": len(values)}]
    workspace.sql.close()


def test_a_weight_beyond_64_bits_is_refused(monkeypatch):
    monkeypatch.setattr(evaluator, "GENERATE_AFTER", 1)
    workspace = duckdb_workspace()
    workspace.register("a", pa.table({"k": [1], "c": [1], "_w": [2**62]}))
    other = map_(Ref("a", C), (Output("r", "bigint", "`k`"),))
    with pytest.raises(Exception, match="overflow in multiplication"):
        workspace.compute(Compute("made", join(Ref("a", C), other, (("k", "r"),))))
    workspace.sql.close()
