"""A loop in memory: every way to run an iteration adds the same rows, at a cost by what it adds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import everview as ev
from everview.engines.duckdb.evaluator import DuckDBEvaluator, duckdb_workspace
from everview.expr.types import Column, Schema
from everview.plan.build import add, distinct, filter_, join, map_, project
from everview.plan.nodes import Fixpoint, Output, Plan, Recursive, Ref
from everview.runtime.arrow_types import arrow_schema
from everview.runtime.recursion import iterations, narrowed_body
from everview.runtime.recursion.key_index import KeyIndex
from everview.runtime.recursion.narrowing import Narrowing, NarrowingError
from everview.runtime.workspace import Workspace

PAIR: Schema = (Column("a", "int"), Column("b", "int"))
EDGES = Ref("e", PAIR)
WORDS = {None: None, **{n: f"w{n}" for n in range(5)}}


def renamed(plan: Plan, *names: str) -> Plan:
    """The two columns of a plan under other names."""
    one, other = names
    return map_(plan, (Output(one, "int", "`a`"), Output(other, "int", "`b`")))


def closed(plan: Plan, *rest: tuple[str, Plan]) -> Fixpoint:
    """A loop whose first relation is `t`."""
    return Fixpoint("t", (("t", plan), *rest))


T = Recursive("t", PAIR)
U = Recursive("u", PAIR)


def step(left: Plan, right: Plan) -> Plan:
    """The paths of one plan and then another."""
    both = join(renamed(left, "x", "y"), renamed(right, "v", "w"), (("y", "v"),))
    return map_(both, (Output("a", "int", "`x`"), Output("b", "int", "`w`")))


LOOPS: dict[str, Fixpoint] = {
    "right": closed(distinct(add(EDGES, step(T, EDGES)))),
    "left": closed(distinct(add(EDGES, step(EDGES, T)))),
    "both": closed(distinct(add(EDGES, step(T, T)))),
    "thrice": closed(distinct(add(EDGES, step(step(T, T), T)))),
    "filtered": closed(distinct(add(EDGES, filter_(step(T, filter_(EDGES, "a < 3")), "b > 0")))),
    "mutual": closed(
        distinct(add(EDGES, step(U, EDGES))), ("u", distinct(add(step(T, EDGES), step(T, U))))
    ),
    "product": closed(
        distinct(
            add(
                EDGES,
                filter_(
                    project(join(renamed(T, "a", "y"), renamed(EDGES, "v", "b"), ()), ("a", "b")),
                    "a = b",
                ),
            )
        )
    ),
}


def reach(loop: Fixpoint, edges: list[tuple[Any, Any]], **patched: int) -> Counter[tuple[Any, Any]]:
    """What a loop reaches, with other constants."""
    workspace = duckdb_workspace()
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in patched.items():
                patch.setattr(iterations, name, value)
            rows = evaluated(workspace, loop, edges)
        assert set(rows.column("_w").to_pylist()) <= {1}
        return Counter(zip(rows["a"].to_pylist(), rows["b"].to_pylist(), strict=True))
    finally:
        workspace.sql.close()


def evaluated(workspace: Workspace, loop: Fixpoint, edges: list[tuple[Any, Any]]) -> pa.Table:
    columns = [[a for a, _ in edges], [b for _, b in edges], [1] * len(edges)]
    schema = arrow_schema(PAIR)
    typed = [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
    return workspace.evaluate_over(loop, {"e": pa.table(typed, schema=schema)})


values = st.sampled_from((None, 0, 1, 2, 3, 4))


@pytest.mark.parametrize("name", LOOPS)
@settings(max_examples=settings.default.max_examples // 3)
@given(edges=st.lists(st.tuples(values, values), max_size=7))
def test_indexes_and_statements_reach_the_same(name, edges):
    by_sql = reach(LOOPS[name], edges, MAX_FAILURES=-1)
    assert reach(LOOPS[name], edges) == by_sql
    in_turns = reach(LOOPS[name], edges, VECTOR_MAX_ROWS=2)
    assert in_turns == by_sql


def test_every_loop_but_none_is_narrowed(monkeypatch):
    asked = []
    prepare = narrowed_body.NarrowedBodies.prepare

    def noted(self, plan):
        asked.append(prepare(self, plan))
        return asked[-1]

    monkeypatch.setattr(narrowed_body.NarrowedBodies, "prepare", noted)
    for loop in LOOPS.values():
        reach(loop, [(0, 1), (1, 2)])
    assert all(asked)


def operations(length: int, loop: Fixpoint, monkeypatch) -> tuple[int, int, int]:
    """Statements, rows added to indexes and rows found in them, for a path of so many edges."""
    workspace = duckdb_workspace()
    statements, indexed, found = [], [], []
    rows, append, find = workspace.rows, KeyIndex.append, KeyIndex.find

    def noted_find(self, probe, columns):
        slice_ = find(self, probe, columns)
        found.append(slice_.num_rows)
        return slice_

    def noted_append(self, batch):
        indexed.append(batch.num_rows)
        append(self, batch)

    def noted_rows(*args):
        statements.append(args)
        return rows(*args)

    monkeypatch.setattr(KeyIndex, "append", noted_append)
    monkeypatch.setattr(KeyIndex, "find", noted_find)
    monkeypatch.setattr(workspace, "rows", noted_rows)
    start = filter_(EDGES, "a = 0")
    one = closed(distinct(add(start, step(T, EDGES))) if loop is LOOPS["right"] else loop.body("t"))
    evaluated(workspace, one, [(n, n + 1) for n in range(length)])
    monkeypatch.undo()
    workspace.sql.close()
    return len(statements), sum(indexed), sum(found)


def test_an_iteration_costs_by_what_it_adds_however_many_there_were(monkeypatch):
    few, many = (operations(n, LOOPS["right"], monkeypatch) for n in (100, 1000))
    assert few[0] == many[0]
    assert (few[1], many[1]) == (100, 1000)
    assert many[2] <= 10 * few[2] + 10


def test_a_plan_that_reads_all_of_what_grows_is_not_narrowed():
    narrowing = Narrowing(frozenset({"now"}), frozenset({"before"}))
    with pytest.raises(NarrowingError):
        narrowing.narrow(distinct(Ref("before", PAIR)))


@given(parts=st.lists(st.lists(st.tuples(values, values), max_size=5), max_size=5), data=st.data())
@pytest.mark.parametrize("type_", ["int", "string"])
def test_an_index_finds_the_rows_of_its_keys(type_, parts, data):
    convert = WORDS.get if type_ == "string" else lambda value: value
    schema = arrow_schema((Column("a", type_), Column("b", "int")))

    def batch(rows):
        columns = ([convert(a) for a, _ in rows], [b for _, b in rows], [2] * len(rows))
        typed = [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)]
        return pa.record_batch(typed, schema=schema)

    index, came = KeyIndex(schema, ["a"]), []
    for part in parts:
        index.append(batch(part))
        came += part
        probe = data.draw(st.lists(st.tuples(values, values), max_size=3))
        rows = index.find(batch(probe), [0]).to_pylist()
        keys = {convert(a) for a, _ in probe}
        wanted = Counter((convert(a), b, 2) for a, b in came if convert(a) in keys)
        assert Counter((row["a"], row["b"], row["_w"]) for row in rows) == wanted
    assert len(index) == len(came)


PROGRAMS = {
    "numbers": """
.decl z(x: number)
.input z
.decl r(x: number)
.output r
z(0).
r(x) :- z(x).
r(x + 1) :- r(x), x < {0}.
""",
    "paths": """
.decl z(x: number)
.input z
.decl e(x: number, y: number)
.decl r(x: number, y: number)
.output r
z(0).
e(x, x + 1) :- z(x).
e(x, x + 1) :- e(_, x), x < {0}.
r(x, y) :- e(x, y).
r(x, z) :- r(x, y), r(y, z).
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_neither_a_build_nor_a_change_takes_a_statement_per_iteration(name, tmp_path, monkeypatch):
    asked: list[str] = []
    for method in ("rows", "execute"):
        ask = getattr(DuckDBEvaluator, method)

        def noted(self, sql, ask=ask):
            asked.append(sql)
            return ask(self, sql)

        monkeypatch.setattr(DuckDBEvaluator, method, noted)

    def statements(length: int) -> list[int]:
        counts = []
        with ev.open(str(tmp_path / str(length)), engine="duckdb") as db:
            for run in (
                lambda: db.datalog(PROGRAMS[name].format(length)),
                lambda: db.delete("z", [(0,)]),
                lambda: db.insert("z", [(0,)]),
                lambda: db.insert("z", [(2,)]),
            ):
                asked.clear()
                run()
                counts.append(len(asked))
                assert db.audit().ok
        return counts

    few, many = statements(8), statements(24)
    assert all(more <= less + 3 for less, more in zip(few, many, strict=True)), (few, many)
