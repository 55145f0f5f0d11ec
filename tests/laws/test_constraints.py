"""A transaction is accepted if and only if the state after it satisfies every constraint.

What a constraint means is written here a second time, in plain Python over lists of rows, and a
foreign key's action too. Three-valued logic: what is unknown is satisfied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import everview as ev
from cases import THOROUGH

FEW = settings(max_examples=150 if THOROUGH else 12)
"""Each case makes a store of its own."""

Rows = list[tuple[Any, ...]]
Holds = Callable[[Rows, Rows], bool]


def unique(rows: Rows, *columns: int) -> bool:
    keys = [tuple(row[c] for c in columns) for row in rows]
    known = Counter(key for key in keys if None not in key)
    return all(count == 1 for count in known.values())


def refers(parents: Rows, children: Rows) -> bool:
    there = {row[0] for row in parents}
    return all(row[1] is None or row[1] in there for row in children)


def sums(children: Rows) -> dict[Any, int]:
    totals: dict[Any, int] = {}
    for _, parent, n in children:
        totals[parent] = totals.get(parent, 0) + (n or 0)
    return totals


def reached(children: Rows) -> set[tuple[int, int]]:
    """Pairs of a path from id to parent, as edges among numbers."""
    edges = {(row[0], row[1]) for row in children if row[1] is not None}
    paths = set(edges)
    while True:
        more = {(a, d) for a, b in paths for c, d in edges if b == c} - paths
        if not more:
            return paths
        paths |= more


CONSTRAINTS: dict[str, Holds] = {
    "ALTER TABLE child ADD CONSTRAINT positive CHECK (n > 0 OR parent = 1)": (
        lambda p, c: all(
            (row[2] is not None and row[2] > 0) or row[1] == 1 or (row[2] is None or row[1] is None)
            for row in c
        )
    ),
    "ALTER TABLE parent ADD CONSTRAINT codes UNIQUE (code)": lambda p, c: unique(p, 1),
    "ALTER TABLE child ADD CONSTRAINT pairs UNIQUE (parent, n)": lambda p, c: unique(c, 1, 2),
    "ALTER TABLE child ADD CONSTRAINT ref FOREIGN KEY (parent) REFERENCES parent": refers,
    "CREATE ASSERTION sizes CHECK ("
    "(SELECT COUNT(*) FROM parent) >= (SELECT COUNT(*) FROM child))": (
        lambda p, c: len(p) >= len(c)
    ),
    "CREATE ASSERTION totals CHECK (NOT EXISTS (SELECT parent, SUM(n) AS total FROM child "
    "GROUP BY parent HAVING SUM(n) > 4))": (
        lambda p, c: all(total <= 4 for total in sums(c).values())
    ),
    "CREATE ASSERTION somebody CHECK (EXISTS (SELECT * FROM parent WHERE code = 1) "
    "OR NOT EXISTS (SELECT * FROM child))": (lambda p, c: any(row[1] == 1 for row in p) or not c),
    "CREATE ASSERTION joined CHECK (NOT EXISTS (SELECT * FROM parent AS p JOIN child AS c "
    "ON p.id = c.parent AND p.code = c.n))": (
        lambda p, c: (
            not any(a[0] == b[1] and a[1] is not None and a[1] == b[2] for a in p for b in c)
        )
    ),
    "CREATE ASSERTION ranked CHECK (NOT EXISTS (SELECT id FROM (SELECT id, ROW_NUMBER() OVER "
    "(PARTITION BY parent ORDER BY id) AS place FROM child) AS r WHERE place > 2))": (
        lambda p, c: all(count <= 2 for count in Counter(row[1] for row in c).values())
    ),
    "CREATE ASSERTION acyclic CHECK (NOT EXISTS (WITH RECURSIVE up(id, above) AS ("
    "SELECT id, parent FROM child WHERE parent IS NOT NULL UNION "
    "SELECT up.id, c.parent FROM up JOIN child AS c ON up.above = c.id WHERE c.parent IS NOT NULL) "
    "SELECT id FROM up WHERE id = above))": lambda p, c: not any(a == b for a, b in reached(c)),
    "CREATE ASSERTION over_view CHECK (NOT EXISTS (SELECT * FROM per_parent WHERE n > 2))": (
        lambda p, c: all(count <= 2 for count in Counter(row[1] for row in c).values())
    ),
}

SMALL = st.one_of(st.none(), st.integers(0, 3))
CHANGE = st.tuples(
    st.sampled_from(["parent", "child"]), st.booleans(), st.integers(0, 3), SMALL, SMALL
)
CASES = st.tuples(
    st.lists(st.sampled_from(list(CONSTRAINTS)), min_size=1, max_size=3, unique=True),
    st.lists(st.lists(CHANGE, min_size=1, max_size=4), min_size=1, max_size=5),
)


def applied(state: dict[str, Rows], changes: list[Any]) -> tuple[dict[str, Rows], list[Any]]:
    """The state after changes, and those of them that delete what is there or insert."""
    after = {name: list(rows) for name, rows in state.items()}
    done = []
    for table, deletes, number, first, second in changes:
        if deletes:
            if after[table]:
                row = after[table].pop(number % len(after[table]))
                done.append((table, -1, row))
            continue
        row = (number, first) if table == "parent" else (number, first, second)
        after[table].append(row)
        done.append((table, 1, row))
    return after, done


def commit(db: ev.Database, changes: list[Any]) -> bool:
    """Whether the changes, as one transaction, were accepted."""
    before = db.epoch
    try:
        with db.transaction() as tx:
            for table, weight, row in changes:
                (tx.insert if weight > 0 else tx.delete)(table, [row])
    except ev.UserError as problem:
        refused = problem
    else:
        return True
    assert refused.code in ("T010", "T014"), refused.render()
    assert db.epoch == before
    return False


def same(db: ev.Database, state: dict[str, Rows]) -> bool:
    return all(Counter(db.read(name).rows()) == Counter(rows) for name, rows in state.items())


SETUP = (
    "CREATE TABLE parent (id BIGINT PRIMARY KEY, code BIGINT);"
    "CREATE TABLE child (id BIGINT PRIMARY KEY, parent BIGINT, n BIGINT);"
    "CREATE VIEW per_parent AS SELECT parent, COUNT(*) AS n FROM child GROUP BY parent"
)


@FEW
@given(CASES)
@example(
    (
        ["ALTER TABLE child ADD CONSTRAINT ref FOREIGN KEY (parent) REFERENCES parent"],
        [
            [("child", False, 1, 2, None)],
            [("child", False, 1, 2, None), ("parent", False, 2, None, None)],
            [("parent", True, 0, None, None)],
            [("parent", True, 0, None, None), ("child", True, 0, None, None)],
        ],
    )
)
def test_a_transaction_is_accepted_iff_the_new_state_satisfies_all(case):
    chosen, transactions = case
    with TemporaryDirectory() as at, ev.open(at, engine="duckdb") as db:
        db.sql(";".join((SETUP, *chosen)))
        state: dict[str, Rows] = {"parent": [], "child": []}
        if not all(CONSTRAINTS[text]([], []) for text in chosen):
            pytest.fail("every constraint holds of empty tables")
        for changes in transactions:
            after, done = applied(state, changes)
            good = unique(after["parent"], 0) and unique(after["child"], 0)
            good = good and all(
                CONSTRAINTS[text](after["parent"], after["child"]) for text in chosen
            )
            assert commit(db, done) == good, (chosen, done, state)
            state = after if good else state
            assert same(db, state)
        assert db.audit().ok


@FEW
@given(
    st.sampled_from(list(CONSTRAINTS)),
    st.lists(CHANGE, max_size=8),
    st.booleans(),
)
def test_a_constraint_is_declared_iff_the_rows_that_are_there_satisfy_it(text, changes, enforced):
    after, done = applied({"parent": [], "child": []}, changes)
    if not (unique(after["parent"], 0) and unique(after["child"], 0)):
        return
    holds = CONSTRAINTS[text](after["parent"], after["child"])
    with TemporaryDirectory() as at, ev.open(at, engine="duckdb") as db:
        db.sql(SETUP)
        if done:
            commit(db, done)
        if not enforced:
            db.sql(f"{text} NOT ENFORCED")
            (name,) = db.catalog.constraints
            assert bool(db.read(name).rows()) != holds
            assert bool(db.sql("SELECT * FROM everview.violations").rows()) != holds
            return
        epoch = db.epoch
        if holds:
            db.sql(text)
            assert len(db.catalog.constraints) == 1
        else:
            with pytest.raises(ev.UserError) as caught:
                db.sql(text)
            assert caught.value.code == "T014"
            assert (db.epoch, len(db.catalog.constraints)) == (epoch, 0)


@FEW
@given(
    st.sampled_from(["CASCADE", "SET NULL"]),
    st.sampled_from(["CASCADE", "SET NULL"]),
    st.sampled_from(["bag", "set"]),
    st.lists(st.lists(CHANGE, min_size=1, max_size=5), min_size=1, max_size=5),
)
def test_actions_leave_nothing_that_refers_to_a_key_that_went(first, second, kind, transactions):
    """`child` refers to `parent`, and `tail` to `child`; each child has one tail row."""
    with TemporaryDirectory() as at, ev.open(at, engine="duckdb") as db:
        db.sql(
            f"{SETUP}; CREATE TABLE tail (child BIGINT REFERENCES child ON DELETE {second})"
            f"  WITH (kind = '{kind}');"
            f"ALTER TABLE child ADD FOREIGN KEY (parent) REFERENCES parent ON DELETE {first}"
        )
        state: dict[str, Rows] = {"parent": [], "child": [], "tail": []}
        for changes in transactions:
            after, done = applied(state, changes)
            added = [("tail", 1, (row[0],)) for table, w, row in done if (table, w) == ("child", 1)]
            after["tail"] += [row for _, _, row in added]
            follow(state, after, "parent", "child", 1, first)
            follow(state, after, "child", "tail", 0, second)
            good = unique(after["parent"], 0) and unique(after["child"], 0)
            after["tail"] = [*{*after["tail"]}] if kind == "set" else after["tail"]
            good = good and refers(after["parent"], after["child"])
            there = {row[0] for row in after["child"]}
            good = good and all(row[0] is None or row[0] in there for row in after["tail"])
            assert commit(db, [*done, *added]) == good, (done, state)
            state = after if good else state
            assert same(db, state)
        assert db.audit().ok


def follow(
    before: dict[str, Rows], after: dict[str, Rows], parent: str, child: str, at: int, action: str
) -> None:
    """What the rows that refer to a key that went become."""
    gone = {row[0] for row in before[parent]} - {row[0] for row in after[parent]}
    hit = [row for row in after[child] if row[at] in gone]
    after[child] = [row for row in after[child] if row[at] not in gone]
    if action == "SET NULL":
        after[child] += [(*row[:at], None, *row[at + 1 :]) for row in hit]
