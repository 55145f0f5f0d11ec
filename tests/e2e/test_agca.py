"""Views in AGCA: after every transaction they are what the calculus says by definition."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import everview as ev
from agca_queries import definitions
from cases import THOROUGH
from everview import compiler
from everview.database.database import Database
from everview.errors import UserError
from everview.expr import scalar
from everview.lang.agca.evaluate import rows_of
from everview.lang.agca.normal_form import monomials_of
from everview.lang.agca.printer import print_definition
from everview.lang.agca.syntax import Definition
from everview.lang.agca.views import checked_definitions
from everview.plan.nodes import Filter
from everview.plan.traverse import schema_of, walk
from everview.program.policy import POLICIES, Decision

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = "CREATE TABLE r (a INT, b BIGINT); CREATE TABLE s (a BIGINT, b INT)"
VIEWS = """
    chain[x] := Sum(r(x, y) * s(y, z) * x * z);
    same[x] := Sum(r(x, y) * r(x', y));
    counted[] := Sum(r(x, y)) - 2 * Sum(s(x, y) * y);
    above[x, n] := r(x, y) * (n := y + 1)
        * (Sum(s(x', z) * (z > x) * z) >= 0.5 * Sum(s(x', z) * z));
    mixed[x] := Sum(r(x, y) * y) + Sum(s(z, x) * (z - x) * 3);
    twice[x] := Sum(same(x, v) * v) * Sum(s(x, y) * y);
    early[x] := (Sum(s(y, z) * y) > x) * r(x, y) * y;
    selected[x] := r(x, x) * (x <> 1) * ((x < 1) + 2 * (x > 0));
    per_pair[x, y] := r(x, y) - s(y, x);
    made[x] := (x := 1) * 5 + (x := 2) * Sum(r(y, z));
    present[x] := Sum(r(x, _))
"""


def contents(tables: dict[str, Counter]) -> dict[str, list]:
    return {name: list(rows.items()) for name, rows in tables.items()}


def follow(db: Database, views: tuple[Definition, ...], rng: random.Random, turns: int) -> None:
    """Change the tables again and again; after every change each view is what it means."""
    tables: dict[str, Counter] = {"r": Counter(), "s": Counter()}
    values = [0, 1, 2, 3, None]
    for turn in range(turns):
        with db.transaction() as tx:
            for name, rows in tables.items():
                there = sorted(rows.elements(), key=repr)
                gone = rng.sample(there, rng.randint(0, min(4, len(there))))
                if turn == turns - 1:
                    gone = there
                come = [(rng.choice(values), rng.choice(values)) for _ in range(rng.randint(0, 4))]
                tx.delete(name, gone)
                tx.insert(name, come)
                rows.subtract(gone)
                rows.update(come)
                tables[name] = +rows
        must_be(db, views, tables)
    assert db.audit().ok


def must_be(db: Database, views: tuple[Definition, ...], tables: dict[str, Counter]) -> None:
    known = contents(tables)
    for view in views:
        expected = rows_of(view, monomials_of(view), known)
        found = db.read(view.name).rows()
        assert len(found) == len(expected), print_definition(view)
        assert {row[:-1]: Fraction(row[-1]) for row in found} == expected, print_definition(view)
        known[view.name] = [((*key, value), 1) for key, value in expected.items()]


def test_views_are_what_the_calculus_says(tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        names = db.agca(VIEWS)
        views = checked_definitions(VIEWS)
        assert names == tuple(each.name for each in views)
        follow(db, views, random.Random(1), 30 if THOROUGH else 8)
    with ev.open(str(tmp_path / "store"), engine="duckdb") as again:
        assert again.audit().ok


@pytest.mark.spark
def test_views_are_what_the_calculus_says_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "store"), spark=spark) as db:
        db.sql(TABLES)
        db.agca(VIEWS)
        follow(db, checked_definitions(VIEWS), random.Random(2), 3)


@settings(
    max_examples=20 if THOROUGH else 3,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(listed=st.lists(definitions(), min_size=2, max_size=3), seed=st.integers(0, 9))
def test_random_views_are_what_the_calculus_says(listed, seed, tmp_path_factory) -> None:
    """Under each policy: all of them give the answers of the definition."""
    store, text = tmp_path_factory.mktemp("random") / "store", ""
    with ev.open(str(store), engine="duckdb") as db, pytest.MonkeyPatch.context() as patch:
        db.sql(TABLES)
        for at, policy in enumerate(POLICIES):
            under = Decision(policy)
            patch.setattr(compiler, "choose", lambda _plan, _rows, under=under: under)
            named = (
                Definition(f"q{number}_{at}", each.keys, each.body)
                for number, each in enumerate(listed)
            )
            declared = ";\n".join(map(print_definition, named))
            names = db.agca(declared)
            shown = {e.policy.split()[0] for e in db.status() if e.name in names}
            assert shown == {policy}
            text += f"{declared};\n"
        follow(db, checked_definitions(text), random.Random(seed), 3)


def test_decimals_texts_and_dates(tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql("CREATE TABLE sale (id INT PRIMARY KEY, item STRING, price DECIMAL(12,2), day DATE)")
        db.agca(
            """
            sold[item] := Sum(sale(_, item, price, day) * (day >= date '2024-02-01')
                              * (item like 'a%') * price * (1 - 0.05));
            exact[] := Sum(sale(_, item, price, _) * (item <> 'it''s') * price)
            """
        )
        rows = [
            (1, "apple", "10.00", "2024-02-01"),
            (2, "apple", "5.00", "2024-01-31"),
            (3, "avocado", None, "2024-03-01"),
            (4, "it's", "7.00", "2024-03-01"),
            (5, None, "8.00", "2024-03-01"),
        ]
        db.insert("sale", rows)
        assert db.read("sold").rows() == [("apple", Decimal("9.5000"))]
        assert db.read("exact").rows() == [(Decimal("15.00"),)]
        assert [c.type for c in db.catalog.schema("sold")] == ["string", "decimal(28,4)"]
        db.delete("sale", [rows[0]])
        assert db.read("sold").rows() == []
        assert db.audit().ok


def test_every_column_that_a_plan_reads_is_there(tmp_path: Path) -> None:
    """A condition with two Sums reads the columns of both; rewriting may hide that one is gone."""
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        for name in db.agca(VIEWS):
            for node in walk(db.catalog.written(name)):
                if isinstance(node, Filter):
                    there = {column.name for column in schema_of(node.child)}
                    assert scalar.columns(node.predicate) <= there, name


def test_a_text_is_declared_whole_or_not_at_all(tmp_path: Path) -> None:
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES)
        epoch = db.epoch
        with pytest.raises(UserError, match="G002"):
            db.agca("good[x] := r(x, y); bad[x] := nowhere(x)")
        assert db.epoch == epoch
        assert "good" not in db.catalog.views
        with pytest.raises(UserError, match="C"):
            db.agca("r[x] := s(x, y)")


REFUSED = {
    "q[x] := r(x, y) * t(x, _)": ("G005", "int and string"),
    "q[x] := t(x, _) * x": ("G005", "no exact number"),
    "q[x] := t(x, y) * y": ("G005", "double"),
    "q[x] := t(x, y) * (y > 0.5)": ("G005", "types"),
    "q[x] := r(x, y) * (x like 'a')": ("G005", "like"),
    "q[x] := r(x, y) + t(x, _)": ("G005", "the values of x"),
    "q[x] := r(x, y) * 100000000000000000000000000000000000000000": ("G005", "38 digits"),
    "q[x] := r(x)": ("G002", "2 columns"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_exact_value_is_refused_by_name(tmp_path: Path, text: str) -> None:
    code, part = REFUSED[text]
    with ev.open(str(tmp_path / "store"), engine="duckdb") as db:
        db.sql(TABLES + "; CREATE TABLE t (a STRING, b DOUBLE)")
        with pytest.raises(UserError) as refused:
            db.agca(text)
    assert refused.value.code == code
    assert part in refused.value.problem
