"""What a workspace makes of a step when some of what it reads is known to have no rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from everview.engines.duckdb.evaluator import duckdb_workspace
from everview.expr.types import Column
from everview.plan.build import add, map_
from everview.plan.nodes import Output, Ref
from everview.program.steps import Compute
from everview.runtime.vector.batches import VECTOR_MAX_ROWS

SCHEMA = (Column("c", "bigint"),)


@pytest.mark.parametrize("few", [VECTOR_MAX_ROWS, -1])
def test_what_is_left_of_a_step_is_said_as_the_step_is(few):
    """DuckDB's TRY is known of columns; the null that pads a row is none."""
    padded = map_(Ref("b", SCHEMA), (Output("c", "bigint", "CAST(NULL AS BIGINT)"),))
    doubled = map_(add(Ref("a", SCHEMA), padded), (Output("n", "bigint", "TRY_ADD(`c`, `c`)"),))
    workspace = duckdb_workspace(vector_max_rows=few)
    workspace.register_empty("a", SCHEMA)
    workspace.register("b", pa.table({"c": pa.array([1, 2], pa.int64()), "_w": [1, 1]}))
    workspace.compute(Compute("made", doubled, consolidated=True))
    made = workspace.table("made", (Column("n", "bigint"),))
    assert made.to_pylist() == [{"n": None, "_w": 2}]
    workspace.sql.close()
