"""What is told of a recursion: its strata, the iterations of the last change, the rows of each."""

from __future__ import annotations

import pytest

import everview
from cli.shop import lines

PATH = """WITH RECURSIVE t(x, y) AS (SELECT a, b FROM e UNION
    SELECT t.x, e.b FROM t JOIN e ON e.a = t.y)"""


@pytest.fixture
def graph(tmp_path):
    """A path of 25 edges with a closure and what is over it, and an edge that came last."""
    path = tmp_path / "graph"
    with everview.open(str(path), engine="duckdb") as db:
        db.sql("CREATE TABLE e (a INT, b INT)")
        db.insert("e", [(n, n + 1) for n in range(25)])
        db.sql(f"CREATE VIEW paths AS {PATH} SELECT x, y FROM t")
        db.sql(f"""CREATE VIEW marked AS {PATH}, u(x) AS (SELECT 24 UNION
            SELECT t.y FROM u JOIN t ON t.x = u.x) SELECT x FROM u""")
        db.sql("CREATE VIEW plain AS SELECT a FROM e")
        db.insert("e", [(-1, 24)])
    return path


def explained(run, graph, view):
    text = run("explain", graph, view, "--engine", "duckdb")
    assert text.exit_code == 0, text.output
    [found] = lines(run("explain", graph, view, "--engine", "duckdb", "--json"))
    assert found["text"] == text.stdout.removesuffix("\n")
    return found


def test_the_rows_of_each_iteration_are_those_that_come_at_it(run, graph):
    found = explained(run, graph, "paths")
    [stratum] = found["strata"]
    assert (stratum["relations"], stratum["from_scratch"], stratum["iterations"]) == (
        ["t"],
        False,
        2,
    )
    assert len(stratum["rows_by_iteration"]) == 2
    # A path of n edges comes at iteration n; of the new edge there is one path of one and of two.
    wanted = [{"iteration": n, "rows": 26 - n + (n < 3)} for n in range(1, 26)]
    assert list(stratum["rows_by_iteration"].values()) == [wanted, wanted]


def test_the_table_of_iterations_ends_after_twenty_lines(run, graph):
    text = explained(run, graph, "paths")["text"]
    [header] = [line for line in text.splitlines() if line.strip().startswith("-- iteration")]
    table = text[text.index(header) :].splitlines()[:21]
    rows = [line.split()[1:] for line in table]
    assert rows[0][1:] == list(explained(run, graph, "paths")["strata"][0]["rows_by_iteration"])
    assert rows[1:20] == [[str(n), *[str(26 - n + (n < 3))] * 2] for n in range(1, 20)]
    assert rows[20] == ["20–25", "21", "21"]
    assert "-- stratum of t: 2 iterations, last time" in text


def test_every_stratum_has_its_own_states(run, graph):
    upper, lower = explained(run, graph, "marked")["strata"]
    assert (upper["relations"], lower["relations"]) == (["u"], ["t"])
    assert {*upper["rows_by_iteration"]}.isdisjoint(lower["rows_by_iteration"])
    assert all(upper["rows_by_iteration"].values())


def test_a_view_without_recursion_has_no_strata(run, graph):
    assert "strata" not in explained(run, graph, "plain")
